package socketio

import "sync"

// A client that closes its session on polling usually has a poll on its way, which may arrive after
// the close. That poll is answered once, with nothing to say, as if it had come before. Later
// requests belong to no session.

// mostCrossings is the most sessions whose last poll is still expected.
const mostCrossings = 256

// crossings are sessions that their clients closed while no poll was held. Any goroutine may use
// them.
type crossings struct {
	mu    sync.Mutex
	until map[string]int64 // by session, in nanoseconds of the server's clock
	order [mostCrossings]string
	next  int // oldest in order
}

// add notes a session, whose poll may come until a time. Beyond mostCrossings it forgets the oldest
// session.
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
