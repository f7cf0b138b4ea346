package committed

import "exchange/persistence"

// An observer's history is a member's, which may be ahead of the observer's fold. So a question
// records the horizon of the state that answered it, and the history leaves out later rows. Rows of
// the projector are not stored, but left to the member: see RecoverOptions.RemoteHistory.

// horizon returns the newest ids in the state.
func (c *Side) horizon() *persistence.Horizon {
	h := &persistence.Horizon{Seq: c.state.Seq()}
	for _, p := range c.state.Pairs() {
		h.Trades = append(h.Trades, p.LastTrade())
	}
	return h
}
