package generator

import (
	"net"
	"time"
)

// request sends the next request of a connection.
func (g *Generator) request(c *conn, since time.Duration) {
	b := g.client.Request(c.number)
	if b == nil {
		g.spent++
		return
	}
	c.since, c.sent, c.busy = since, g.now(), true
	g.inFlight++
	if err := g.poll.Write(c.number, b); err != nil {
		g.broken(c, brokenSend)
	}
}

// receive reads the bytes that have come of an answer.
func (g *Generator) receive(c *conn) {
	if !c.up {
		return
	}
	if len(c.in) == cap(c.in) {
		c.in = append(make([]byte, 0, 2*cap(c.in)), c.in...)
	}
	n, err := g.poll.Read(c.number, c.in[len(c.in):cap(c.in)])
	if err == ErrAgain {
		return
	}
	if err != nil {
		g.broken(c, closedByPeer)
		return
	}
	c.in = c.in[:len(c.in)+n]
	a, whole, err := readAnswer(c.in)
	switch {
	case err != nil || whole && !c.busy:
		g.broken(c, notAnAnswer)
	case whole:
		g.answered(c, a)
	}
}

// answered gives an answer to the client, and the connection back.
func (g *Generator) answered(c *conn, a Answer) {
	if a.last { // nothing more is sent on it
		g.poll.Remove(c.number)
		c.up = false
	}
	rest := g.client.Answered(c.number, a, g.now()-c.since)
	now := g.now()
	c.in, c.busy = c.in[:0], false
	g.inFlight--
	switch {
	case !c.up:
		g.reconnect(c)
	case rest:
		c.idle, c.resume = true, now+restFor
		g.resting = append(g.resting, c)
	case g.phase.Rate == 0 && now < g.end && !g.stopped.Load():
		g.request(c, now)
	default:
		g.release(c, now)
	}
}

// broken ends a connection.
func (g *Generator) broken(c *conn, reason string) {
	g.poll.Remove(c.number)
	c.up = false
	g.drop(c)
	g.fail(g.client.Broken(c.number, reason, c.busy, g.now()-c.since))
	if c.busy {
		c.busy = false
		g.inFlight--
	}
	g.reconnect(c)
}

// fail keeps the first error of the client.
func (g *Generator) fail(err error) {
	if g.failed == nil {
		g.failed = err
	}
}

// drop takes a connection out of those that may send.
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

// reconnect dials again in a goroutine of its own, because that may take seconds.
func (g *Generator) reconnect(c *conn) {
	c.in = c.in[:0]
	wait := min(time.Duration(c.attempts)*100*time.Millisecond, time.Second)
	c.attempts++
	time.AfterFunc(wait, func() {
		conn, err := net.DialTimeout("tcp", g.options.Address, dialTimeout)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.dialed = append(g.dialed, dialed{c, conn, err})
	})
}

// look takes up new connections and gives up answers that are too late.
func (g *Generator) look(now time.Duration) {
	g.checked = now
	for _, d := range g.dialed {
		err := d.err
		if err == nil {
			err = g.poll.Add(d.c.number, d.conn)
		}
		if err != nil {
			g.fail(g.client.Broken(d.c.number, NotConnected, false, 0))
			g.reconnect(d.c)
			continue
		}
		d.c.up, d.c.attempts = true, 0
		g.release(d.c, now)
	}
	g.dialed = g.dialed[:0]
	for _, c := range g.conns {
		if c.busy && now-c.sent > g.options.Timeout {
			g.broken(c, noAnswer)
		}
	}
}
