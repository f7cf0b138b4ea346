package state

// The history keeps fewer trades of an account than there were. With this count a reader of the
// history finds out whether the history is whole.

// countTrade counts one trade, once for an account that met itself.
func (s *State) countTrade(taker, maker uint32) {
	s.trades[0]++
	s.trades[taker]++
	if maker != taker {
		s.trades[maker]++
	}
}

// TradeCount returns how many trades an account ever had as taker or maker; a trade with itself
// counts once. For account 0 it returns the number of all trades.
func (s *State) TradeCount(account uint32) uint64 { return s.trades[account] }
