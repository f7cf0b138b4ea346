package socketio

import "sync/atomic"

// Stats are counts since the start, and the state of this moment.
type Stats struct {
	Polling, WebSocket int // sessions at present, by transport
	HeldPolls          int // GETs that are held at present
	QueuedBytes        int // cost of all waiting deliveries, as in QueueBytes

	Handshakes uint64            // that succeeded
	upgrades   uint64            // that succeeded, from polling to a websocket
	Refused    map[string]uint64 // requests that got an error, by its message
	Closed     map[Reason]uint64 // sessions
	PacketsIn  uint64            // from clients
	bytesIn    uint64            // of these packets
	Writes     uint64            // to websockets, and answers to polls
	BytesOut   uint64            // of these writes
	overflows  uint64            // deliveries that exceeded a client's QueueBytes
	// Dropped are deliveries dropped before they were written, by Policy: replaced by a newer one
	// (Latest; Final if by the last one), or by a snapshot to come (Resync). No delivery with Keep
	// or Final is dropped.
	Dropped [policies]uint64
}

// counters are the counts of Stats, except those of live sessions: writes and bytesOut are those of
// ended sessions.
type counters struct {
	handshakes, upgrades, packetsIn, bytesIn, writes, bytesOut, overflows atomic.Uint64

	dropped [policies]atomic.Uint64
	refused [failures]atomic.Uint64
	closed  [reasons]atomic.Uint64
}

// Stats returns the server's counts. It visits every session, so it is for monitoring, not for each
// event.
func (s *Server) Stats() Stats {
	c := &s.counters
	s.mu.RLock() // a session is either in the list or in the counts
	sessions, writes, bytesOut := s.list(), c.writes.Load(), c.bytesOut.Load()
	s.mu.RUnlock()
	out := Stats{
		Handshakes: c.handshakes.Load(), upgrades: c.upgrades.Load(),
		PacketsIn: c.packetsIn.Load(), bytesIn: c.bytesIn.Load(),
		Writes: writes, BytesOut: bytesOut, overflows: c.overflows.Load(),
		Refused: map[string]uint64{}, Closed: map[Reason]uint64{},
	}
	for i := range c.dropped {
		out.Dropped[i] = c.dropped[i].Load()
	}
	for i := range c.refused {
		out.Refused[failureTable[i].message] = c.refused[i].Load()
	}
	for i := ServerClose; i < reasons; i++ {
		out.Closed[i] = c.closed[i].Load()
	}
	for _, x := range sessions {
		x.mu.Lock()
		out.Writes += x.writes
		out.BytesOut += x.bytesOut
		switch {
		case x.closed.Load():
		case x.link != nil:
			out.WebSocket++
		default:
			out.Polling++
		}
		if x.poll != nil && !x.poll.released {
			out.HeldPolls++
		}
		out.QueuedBytes += x.out.bytes
		x.mu.Unlock()
	}
	return out
}
