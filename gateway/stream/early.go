package stream

import (
	"slices"

	"exchange/gateway/socketio"
)

// A name of a whole family is answered once all its channels have admitted the client, before their
// first event. Until then their frames are held here.

// A backlog holds the deliveries that wait for an answer. Its bound excludes Shared snapshots, as
// in the queue of a slow client.
type backlog struct {
	list  []socketio.Delivery
	bytes int
	full  bool // over the bound: the client is closed, and nothing is kept
	// by pair, the client's index in audience.early, plus 1; 0: not in it. Nil: in none
	at []int32
}

// backlog returns the backlog of a family, creating it if necessary.
func (c *client) backlog(f family) *backlog {
	if c.early[f] == nil {
		c.early[f] = new(backlog)
	}
	return c.early[f]
}

// deliveryOverhead is the cost of a delivery besides its bytes.
const deliveryOverhead = 64

func cost(d *socketio.Delivery) int {
	if d.Shared {
		return 0
	}
	return len(d.Frames) + deliveryOverhead
}

// keep holds deliveries until an answer, up to most bytes. Above that it returns false, once, and
// the caller closes the client: its admission is slow, or lost in a failed channel.
func (c *client) keep(f family, most int, list ...socketio.Delivery) bool {
	e := c.backlog(f)
	if e.full {
		return true
	}
	for i := range list {
		e.bytes += cost(&list[i])
	}
	if e.bytes > most {
		*e = backlog{full: true, at: e.at}
		return false
	}
	e.list = append(e.list, list...)
	return true
}

// drop removes the deliveries of a channel.
func (e *backlog) drop(t topic) {
	e.list = slices.DeleteFunc(e.list, func(d socketio.Delivery) bool {
		if d.Tag != uint32(t) {
			return false
		}
		e.bytes -= cost(&d)
		return true
	})
}

// release sends a client the frames held for a family. Its time does not depend on the number of
// waiting clients, because after a restart all of them wait.
func (s *shard) release(c *client, f family) {
	for place := range s.hub.names.pairs {
		t := s.hub.names.topic(f, place)
		if s.unholdFrames(c, t) {
			a := s.topics[t]
			a.list = append(a.list, subscriber{c, c.socket})
		}
	}
	if e := c.early[f]; e != nil && len(e.list) > 0 {
		s.put(c, e.list...)
	}
	c.early[f] = nil
}

// keep holds deliveries until an answer, and closes a client over the bound.
func (s *shard) keep(c *client, f family, list []socketio.Delivery) {
	if !c.keep(f, s.hub.opts.QueueBytes, list...) {
		c.socket.Close(socketio.ServerClose)
	}
}

// holdFrames starts holding a client's frames of a channel.
func (s *shard) holdFrames(c *client, t topic) {
	a, n := s.audience(t), s.hub.names
	e := c.backlog(n.familyOf(t))
	if e.at == nil {
		e.at = make([]int32, len(n.pairs))
	}
	a.early = append(a.early, c)
	e.at[n.placeOf(t)] = int32(len(a.early))
}

// unholdFrames stops holding them. It returns false if they are not held.
func (s *shard) unholdFrames(c *client, t topic) bool {
	n := s.hub.names
	f, pair := n.familyOf(t), n.placeOf(t)
	if e := c.early[f]; e == nil || e.at == nil || e.at[pair] == 0 {
		return false
	}
	a, own := s.topics[t], c.early[f].at
	at, last := own[pair], len(a.early)-1
	moved := a.early[last]
	a.early[at-1], a.early[last] = moved, nil
	moved.early[f].at[pair] = at
	own[pair] = 0
	if a.early = a.early[:last]; last == 0 {
		a.early = nil // frees the memory of many clients
	}
	return true
}

// dropHeld drops a client's held frames of a channel.
func (s *shard) dropHeld(c *client, t topic) {
	if s.unholdFrames(c, t) {
		c.early[s.hub.names.familyOf(t)].drop(t)
	}
}
