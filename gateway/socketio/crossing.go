package socketio

import "sync"

// A client that closes its session on polling has a poll on its way as a rule, and that may arrive
// behind the close. It is answered as if it had been there: with nothing to say, once. What comes
// then belongs to no session.

// mostCrossings is how many sessions there are at most whose last poll is waited for.
const mostCrossings = 256

// crossings are sessions that their clients closed while no poll was there. Any goroutine may use
// them.
type crossings struct {
	mu    sync.Mutex
	until map[string]int64 // by session, by the server's clock
	order [mostCrossings]string
	next  int // oldest in order
}

// add notes a session, whose poll may come until then. The oldest session is forgotten when there
// are too many.
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

// take is true of the first poll of a session that crossed its close.
func (c *crossings) take(id string, now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.until[id]
	delete(c.until, id)
	return ok && now < until
}
