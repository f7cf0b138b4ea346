package state

// The history keeps only some trades of an account. This count lets a reader of the history check
// whether it is complete.

// countTrade counts one trade, once for an account that traded with itself.
func (s *State) countTrade(taker, maker uint32) {
	s.tradeCounts[0]++
	s.tradeCounts[taker]++
	if maker != taker {
		s.tradeCounts[maker]++
	}
}

// TradeCount returns how many trades an account ever had as taker or maker; a trade with itself
// counts once. For account 0 it returns the number of all trades.
func (s *State) TradeCount(account uint32) uint64 { return s.tradeCounts[account] }
