package state

// How many trades an account has had is more than the history keeps of them: who reads the history
// finds out by it whether it is whole.

// countTrade counts one, once for an account that met itself.
func (s *State) countTrade(taker, maker uint32) {
	s.trades[0]++
	s.trades[taker]++
	if maker != taker {
		s.trades[maker]++
	}
}

// TradeCount is how many trades an account ever had as taker or maker, one with itself counted
// once; account 0: how many there were in all.
func (s *State) TradeCount(account uint32) uint64 { return s.trades[account] }
