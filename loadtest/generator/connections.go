package generator

import (
	"bytes"
	"time"
)

// request sends the next request of a connection.
func (g *Generator) request(c *conn, stage int, since time.Duration) {
	b := g.client.Request(c.number, stage)
	if b == nil {
		g.spent++
		return
	}
	c.since, c.sentAt, c.busy = since, g.now(), true
	g.inFlight++
	g.write(c.link, b)
}

// write writes at once over HTTP. On a socket flush writes all pending data together.
func (g *Generator) write(l *link, b []byte) {
	if g.options.Depth == 0 {
		if err := g.poll.Write(l.number, b); err != nil {
			g.broken(l, brokenSend)
		}
		return
	}
	if len(l.out) == 0 {
		g.written = append(g.written, l)
	}
	l.out = append(l.out, b...)
}

func (g *Generator) flush() {
	for _, l := range g.written {
		if len(l.out) == 0 { // it broke
			continue
		}
		if err := g.poll.Write(l.number, l.out); err != nil {
			g.broken(l, brokenSend)
		}
		l.out = l.out[:0]
	}
	g.written = g.written[:0]
}

// receive reads the available bytes of answers.
func (g *Generator) receive(l *link) {
	if !l.up {
		return
	}
	if len(l.in) == cap(l.in) {
		l.in = append(make([]byte, 0, 2*cap(l.in)), l.in...)
	}
	n, err := g.poll.Read(l.number, l.in[len(l.in):cap(l.in)])
	if err == ErrAgain {
		return
	}
	if err != nil {
		g.broken(l, closedByPeer)
		return
	}
	l.in = l.in[:len(l.in)+n]
	if g.options.Depth > 0 {
		g.frames(l)
		return
	}
	c := l.conns[0]
	a, whole, err := readAnswer(l.in)
	switch {
	case err != nil || whole && !c.busy:
		g.broken(l, notAnAnswer)
	case whole:
		if a.last { // nothing more is sent on it
			g.poll.Remove(l.number)
			l.up = false
		}
		l.in = l.in[:0]
		g.answered(c, a)
	}
}

// frames processes the complete frames.
func (g *Generator) frames(l *link) {
	b := l.in
	for l.up {
		kind, text, rest, whole, err := readFrame(b)
		if err != nil {
			g.broken(l, notAnAnswer)
			return
		}
		if !whole {
			l.in = l.in[:copy(l.in, b)]
			return
		}
		b = rest
		g.packet(l, kind, text)
	}
}

// packet processes one packet of Socket.IO. It ignores events.
func (g *Generator) packet(l *link, kind byte, text []byte) {
	switch {
	case kind == frameClose:
		g.broken(l, closedByPeer)
	case kind == frameText && len(text) == 1 && text[0] == '2': // ping
		g.write(l, AppendFrame(nil, pong))
	case kind == frameText && bytes.HasPrefix(text, packetAck):
		id, a, err := readAck(text)
		if err != nil || id >= len(g.conns) || g.conns[id].link != l || !g.conns[id].busy {
			g.broken(l, notAnAnswer)
			return
		}
		g.answered(g.conns[id], a)
	case kind != frameText || !bytes.HasPrefix(text, packetEvent):
		g.broken(l, notAnAnswer)
	}
}

// answered passes an answer to the client, and frees the connection.
func (g *Generator) answered(c *conn, a Answer) {
	rest := g.client.Answered(c.number, a, g.now()-c.since)
	now := g.now()
	c.busy = false
	g.inFlight--
	switch {
	case !c.link.up:
		g.reconnect(c.link)
	case rest:
		c.idle, c.resume = true, now+restFor
		g.resting = append(g.resting, c)
	case !g.open() && now < g.end && !g.stopped.Load():
		g.request(c, 0, now)
	default:
		g.release(c, now)
	}
}

// broken closes a socket. It reports each request in flight to the client, or one break if there is
// none.
func (g *Generator) broken(l *link, reason string) {
	g.poll.Remove(l.number)
	l.up, l.out = false, l.out[:0]
	reported := false
	for _, c := range l.conns {
		g.drop(c)
		if c.busy {
			g.fail(g.client.Broken(c.number, reason, true, g.now()-c.since))
			c.busy, reported = false, true
			g.inFlight--
		}
	}
	if !reported {
		g.fail(g.client.Broken(l.conns[0].number, reason, false, 0))
	}
	g.reconnect(l)
}

// fail keeps the client's first error.
func (g *Generator) fail(err error) {
	if g.failed == nil {
		g.failed = err
	}
}

// drop removes a connection from those that may send.
func (g *Generator) drop(c *conn) {
	if !c.idle {
		return
	}
	c.idle = false
	for _, list := range []*[]*conn{&g.free, &g.resting} {
		for i, d := range *list {
			if d == c {
				*list = append((*list)[:i], (*list)[i+1:]...)
				break
			}
		}
	}
}

// reconnect redials in its own goroutine, because that may take seconds.
func (g *Generator) reconnect(l *link) {
	l.in = l.in[:0]
	wait := min(time.Duration(l.attempts)*100*time.Millisecond, time.Second)
	l.attempts++
	time.AfterFunc(wait, func() {
		conn, err := g.dial(l)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.dialed = append(g.dialed, dialed{l, conn, err})
	})
}

// checkTimeouts adopts new sockets and gives up late answers.
func (g *Generator) checkTimeouts(now time.Duration) {
	g.checked = now
	for _, d := range g.dialed {
		err := d.err
		if err == nil {
			err = g.poll.Add(d.link.number, d.conn)
		}
		if err != nil {
			g.fail(g.client.Broken(d.link.conns[0].number, NotConnected, false, 0))
			g.reconnect(d.link)
			continue
		}
		d.link.up, d.link.attempts = true, 0
		for _, c := range d.link.conns {
			g.release(c, now)
		}
	}
	g.dialed = g.dialed[:0]
	for _, c := range g.conns {
		if c.busy && now-c.sentAt > g.options.Timeout {
			g.broken(c.link, noAnswer)
		}
	}
}
