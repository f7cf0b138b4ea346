package state

// How many trades an account has had is more than the history keeps of them: who reads the history finds out
// by it whether it is whole.

// countTrade counts one, once for an account that met itself.
func (s *State) countTrade(taker, maker uint32) {
	s.count(0)
	s.count(taker)
	if maker != taker {
		s.count(maker)
	}
}

func (s *State) count(account uint32) {
	if n := &s.trades[account]; *n != 0 {
		*n++
	}
}

// TradeCount is how many trades an account ever had as taker or maker, one with itself counted once; account
// 0: how many there were in all. known is false if the state goes back to an image of version 1, where nobody
// had counted.
func (s *State) TradeCount(account uint32) (n uint64, known bool) {
	if n = s.trades[account]; n == 0 {
		return 0, false
	}
	return n - 1, true
}
