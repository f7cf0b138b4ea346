package stream

import (
	"slices"

	"exchange/gateway/socketio"
)

// A name of a whole family is answered when all its channels have admitted the client, and before
// their first event. Until then their frames wait here.

// A backlog has the deliveries that wait for an answer. A snapshot, for which many clients wait,
// does not count, as in the queue of a slow client.
type backlog struct {
	list  []socketio.Delivery
	bytes int
	full  bool // too much came: the client is closed, and nothing is kept for it
	// by pair, the client's number in audience.early, from 1; 0: not in there. Nil: in none
	at []int32
}

// backlog returns the backlog of a family, which it makes if there is none.
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

// keep lets deliveries wait for an answer, up to most bytes. For more it returns false, once, and
// the caller closes the client: its admission is slow, or a failing channel has forgotten it.
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

// release gives a client the frames that waited for an answer to a name of a whole family. It takes
// the same time however many clients wait, because after a restart all of them wait.
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

// keep lets deliveries wait for an answer, and closes a client for which too much waits.
func (s *shard) keep(c *client, f family, list []socketio.Delivery) {
	if !c.keep(f, s.hub.opts.QueueBytes, list...) {
		c.socket.Close(socketio.ServerClose)
	}
}

// holdFrames lets a client's frames of a channel wait.
func (s *shard) holdFrames(c *client, t topic) {
	a, n := s.audience(t), s.hub.names
	e := c.backlog(n.familyOf(t))
	if e.at == nil {
		e.at = make([]int32, len(n.pairs))
	}
	a.early = append(a.early, c)
	e.at[n.placeOf(t)] = int32(len(a.early))
}

// unholdFrames ends that wait. It returns false if the client's frames do not wait.
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
		a.early = nil // gives back the memory of many clients
	}
	return true
}

// dropHeld drops the waiting frames of a channel for a client.
func (s *shard) dropHeld(c *client, t topic) {
	if s.unholdFrames(c, t) {
		c.early[s.hub.names.familyOf(t)].drop(t)
	}
}
