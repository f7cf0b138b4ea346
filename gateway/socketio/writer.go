package socketio

import "time"

// Everything for a client goes through send: pings, acknowledgements, closes, what others deliver.
// While nothing waits for a websocket, it is written at once by whoever sends. What the system does
// not take waits in the outbox, for a goroutine that is there as long as something does.

// writeBytes is about how much one write of the writer takes.
const writeBytes = 256 << 10

// send lets deliveries go to the client, in order. It appends the tags that were dropped to list;
// ok is false if that ended the session. It never blocks. mu is held, and the session is not
// closed.
func (x *session) send(list []Delivery, dropped []uint32) (_ []uint32, ok bool) {
	free := x.out.empty()
	list, err := x.writeNow(list)
	switch {
	case err != nil:
		x.end(TransportClose, nil)
		return dropped, false
	case len(list) == 0 && x.out.empty():
		return dropped, true
	}
	return x.enqueue(list, free, dropped)
}

// say is send for what is not an owner's delivery. It drops nothing, for nobody would hear of it:
// the next delivery does. mu is held, and the session is not closed.
func (x *session) say(frames []byte) (ok bool) {
	free := x.out.empty()
	list, err := x.writeNow([]Delivery{{Frames: frames}})
	if err != nil {
		x.end(TransportClose, nil)
		return false
	}
	for _, d := range list {
		x.wait(d, free)
	}
	if x.out.bytes > x.server.opts.QueueBytes &&
		x.out.bytes-x.out.resyncBytes() > x.server.opts.QueueBytes {
		x.server.counters.overflows.Add(1)
		x.endFor(SlowClient)
		return false
	}
	x.flush()
	return true
}

// wait lets a delivery wait; free says that nothing did when it came. mu is held.
func (x *session) wait(d Delivery, free bool) {
	d.free = free
	if x.out.empty() {
		x.progress = x.server.now()
		defer x.schedule() // for a client that does not come for it
	}
	if n := x.out.push(d); n > 0 {
		x.server.counters.dropped[d.Policy].Add(uint64(n))
	}
}

// writeNow writes what the system takes without waiting, if nothing waits before it. It answers the
// deliveries that are left; the rest of one that was written in part waits already. mu is held.
func (x *session) writeNow(list []Delivery) ([]Delivery, error) {
	if !x.raw.ok() || x.writing || !x.out.empty() {
		return list, nil
	}
	a := acquireAttempt()
	defer a.release()
	for len(list) > 0 {
		size := 0
		a.pieces = a.pieces[:0]
		for i := 0; i < len(list) && len(a.pieces) < maxPieces; i++ {
			if b := list[i].Frames; len(b) > 0 {
				a.pieces = append(a.pieces, b)
				size += len(b)
			}
		}
		if size == 0 {
			return nil, nil
		}
		n, err := x.raw.write(a, false)
		if err != nil {
			return list, err
		}
		x.wrote(n)
		size -= n
		for len(list) > 0 && n >= len(list[0].Frames) {
			n -= len(list[0].Frames)
			list = list[1:]
		}
		if n > 0 {
			d := list[0]
			d.Frames, d.free = d.Frames[n:], true
			x.out.push(d)
			x.out.begun = true
			list = list[1:]
		}
		if size > 0 {
			return list, nil
		}
	}
	return list, nil
}

// wrote counts a write: where only who writes to this client counts, for the processors would fight
// over a common place. mu is held.
func (x *session) wrote(n int) {
	if n <= 0 {
		return
	}
	x.writes++
	x.bytesOut += uint64(n)
	if x.counted {
		x.server.counters.writes.Add(1)
		x.server.counters.bytesOut.Add(uint64(n))
	}
}

// enqueue lets deliveries wait.
func (x *session) enqueue(list []Delivery, free bool, dropped []uint32) (_ []uint32, ok bool) {
	first := len(dropped)
	if dropped, ok = x.fit(dropped); !ok { // what is left of one that was written in part
		return dropped, false
	}
	for _, d := range list {
		if len(d.Frames) == 0 {
			continue
		}
		if d.Policy == Resync && !d.Shared && has(dropped[first:], d.Tag) {
			x.server.counters.dropped[Resync].Add(1)
			continue
		}
		x.wait(d, free)
		if dropped, ok = x.fit(dropped); !ok {
			return dropped, false
		}
	}
	x.flush()
	return dropped, true
}

// fit makes what waits fit into QueueBytes, or ends the session. It appends the tags it dropped to
// list.
func (x *session) fit(list []uint32) (_ []uint32, ok bool) {
	c, bound := &x.server.counters, x.server.opts.QueueBytes
	if x.out.bytes <= bound {
		return list, true
	}
	c.overflows.Add(1)
	list, n := x.out.dropResync(list)
	c.dropped[Resync].Add(uint64(n))
	if x.out.bytes > bound {
		x.endFor(SlowClient)
		return list, false
	}
	return list, true
}

// flush gets going what waits. mu is held.
func (x *session) flush() {
	switch {
	case x.link == nil:
		if !x.out.empty() {
			x.release()
		}
	case x.writing || x.aborted:
	case x.out.empty():
		if x.closed.Load() {
			x.link.closeWrite()
		}
	default:
		x.writing = true
		x.server.tasks.start(x.write)
	}
}

// write is the writer. It ends when nothing waits.
func (x *session) write() {
	a := acquireAttempt()
	defer a.release()
	var joined []byte
	timeout := x.server.opts.StallTimeout
	for {
		x.mu.Lock()
		if x.aborted || x.out.empty() {
			x.writing = false
			x.link.Conn.SetWriteDeadline(time.Time{}) //nolint:errcheck // then writing fails too
			x.flush()
			x.unlock()
			return
		}
		a.pieces = x.out.pieces(a.pieces[:0], maxPieces, writeBytes)
		x.mu.Unlock()

		l := x.link
		l.Conn.SetWriteDeadline(time.Now().Add(timeout)) //nolint:errcheck
		var n int
		var err error
		if l.raw.ok() {
			n, err = l.raw.write(a, true)
		} else {
			joined = joined[:0]
			for _, b := range a.pieces {
				joined = append(joined, b...)
			}
			n, err = l.Conn.Write(joined)
		}

		x.mu.Lock()
		x.wrote(n)
		if !x.aborted {
			x.out.advance(n)
			if err != nil && (n == 0 || !timedOut(err)) {
				x.writeFailed(err)
			}
		}
		x.unlock()
	}
}

// writeFailed ends a session that cannot be written to. mu is held.
func (x *session) writeFailed(err error) {
	reason := TransportClose
	if timedOut(err) {
		reason = StalledClient
	}
	if x.closed.Load() { // it was saying goodbye
		x.abort()
		return
	}
	x.end(reason, nil)
}

// timedOut is true if a write failed for want of time alone. If it got somewhere the next may go
// on.
func timedOut(err error) bool {
	e, ok := err.(interface{ Timeout() bool })
	return ok && e.Timeout()
}

// attach makes a websocket the transport. mu is held, or nobody else knows the session.
func (x *session) attach(l *link) {
	x.link, x.raw = l, l.raw
	if x.held {
		x.server.opts.Hold(l.Conn, true)
	}
}
