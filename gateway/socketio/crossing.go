package socketio

import "sync"

// A client that closes its polling session usually has a poll in flight, which may arrive after the
// close. That poll gets one empty answer, as if it had arrived before. Later requests belong to no
// session.

// mostCrossings is the maximum number of sessions with an expected last poll.
const mostCrossings = 256

// crossings are sessions that their clients closed while no poll was held. Any goroutine may use
// them.
type crossings struct {
	mu    sync.Mutex
	until map[string]int64 // by session, in nanoseconds of the server's clock
	order [mostCrossings]string
	next  int // oldest in order
}

// add registers a session whose poll may arrive until a time. Beyond mostCrossings it drops the
// oldest session.
func (c *crossings) add(id string, until int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil {
		c.until = map[string]int64{}
	}
	delete(c.until, c.order[c.next])
	c.order[c.next], c.until[id] = id, until
	c.next = (c.next + 1) % mostCrossings
}

// take returns true for the first poll of a session that crossed its close.
func (c *crossings) take(id string, now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.until[id]
	delete(c.until, id)
	return ok && now < until
}
