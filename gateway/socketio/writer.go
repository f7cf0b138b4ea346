package socketio

import "time"

// All packets for a client go through send: pings, acknowledgements, closes, and the owner's
// deliveries. While a websocket's outbox is empty, the sender writes at once. The rest waits in the
// outbox, for a goroutine that lives until the outbox is empty.

// writeBytes is the approximate size of one write of the writer, in bytes.
const writeBytes = 256 << 10

// send sends deliveries to the client, in order. It appends the dropped tags to dropped. ok is
// false if that ended the session. It never blocks. mu is held, and the session is not closed.
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

// say sends the protocol's own frames. It drops nothing, because no owner would receive the tags;
// the next delivery drops instead. mu is held, and the session is not closed.
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

// wait queues a delivery. free is true if the queue was empty before. mu is held.
func (x *session) wait(d Delivery, free bool) {
	d.free = free
	if x.out.empty() {
		x.progress = x.server.now()
		defer x.schedule() // the client may never fetch it
	}
	if n := x.out.push(d); n > 0 {
		x.server.counters.dropped[d.Policy].Add(uint64(n))
	}
}

// writeNow writes as much as the system takes without blocking, if the queue is empty. It returns
// the remaining deliveries. The rest of a partially written one is queued already. mu is held.
func (x *session) writeNow(list []Delivery) ([]Delivery, error) {
	if !x.raw.ok() || x.writerRuns || !x.out.empty() {
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
			if list[i].More != nil {
				break // its next frames are not made yet
			}
		}
		if size == 0 {
			return nil, nil
		}
		n, err := x.raw.write(a, false)
		if err != nil {
			return list, err
		}
		x.countWrite(n)
		size -= n
		for len(list) > 0 && n >= len(list[0].Frames) {
			n -= len(list[0].Frames)
			d := list[0]
			if list = list[1:]; d.next() { // the rest is made as the client reads it
				d.free = true
				x.out.push(d)
				return list, nil
			}
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

// countWrite counts a write in the session, because a shared counter would be contended. mu is
// held.
func (x *session) countWrite(n int) {
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

// enqueue queues deliveries.
func (x *session) enqueue(list []Delivery, free bool, dropped []uint32) (_ []uint32, ok bool) {
	first := len(dropped)
	if dropped, ok = x.fit(dropped); !ok { // the rest of a partially written delivery
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

// fit makes the outbox fit into QueueBytes, or ends the session. It appends the dropped tags to
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

// flush starts the writer, or releases the poll, unless the queue is empty. mu is held.
func (x *session) flush() {
	switch {
	case x.link == nil:
		if !x.out.empty() {
			x.release()
		}
	case x.writerRuns || x.aborted:
	case x.out.empty():
		if x.closed.Load() {
			x.link.closeWrite()
		}
	default:
		x.writerRuns = true
		x.server.tasks.start(x.runWriter)
	}
}

// runWriter is the writer's goroutine. It ends when the queue is empty.
func (x *session) runWriter() {
	a := acquireAttempt()
	defer a.release()
	var joined []byte
	timeout := x.server.opts.StallTimeout
	for {
		x.mu.Lock()
		if x.aborted || x.out.empty() {
			x.writerRuns = false
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
		x.countWrite(n)
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
	if x.closed.Load() { // it was writing the close frame
		x.abort()
		return
	}
	x.end(reason, nil)
}

// timedOut reports whether a write failed by its deadline alone. After a partial write the next one
// may continue.
func timedOut(err error) bool {
	e, ok := err.(interface{ Timeout() bool })
	return ok && e.Timeout()
}

// attach makes a websocket the transport. mu is held, or no other goroutine has the session.
func (x *session) attach(l *link) {
	x.link, x.raw = l, l.raw
	if x.held {
		x.server.opts.Hold(l.Conn, true)
	}
}
