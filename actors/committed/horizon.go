package committed

import "exchange/persistence"

// An observer's history is a member's, which may be ahead of the observer's fold. So a question
// notes what was known when it was answered, and the history leaves out what has come since. What
// the projector writes is not kept, but left to the member: see RecoverOptions.Lent.

// horizon returns what the state knows.
func (c *Side) horizon() *persistence.Horizon {
	_, _, deposits := c.state.LastIDs()
	h := &persistence.Horizon{Seq: c.state.Seq(), Deposits: deposits}
	for _, p := range c.state.Pairs() {
		h.Trades = append(h.Trades, p.LastTrade())
	}
	return h
}
