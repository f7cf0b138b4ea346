package state

import "exchange/core/event"

// isEvent reports whether records of a kind are events of the accounts that they settle: orders,
// cancels, freezes, and money that comes and goes. A refusal, a wrong code, a switch and settings
// are none, because they change nothing that an account is told.
func isEvent(k event.Kind) bool {
	switch k {
	case event.KindDeposit, event.KindOrder, event.KindCancel, event.KindWithdrawal,
		event.KindWithdrawalMoved, event.KindInstructed,
		event.KindStop, event.KindTriggered, event.KindAmended, event.KindExpired,
		event.KindSwept, event.KindFreeze, event.KindAdjusted:
		return true
	}
	return false
}

// LastEvent returns the sequence of the account's newest event; 0: none was counted.
func (a *Account) LastEvent() uint64 { return a.lastEvent }

// Counted returns the sequence after which the state counts events of accounts. It is 0 if all
// events were counted.
func (s *State) Counted() uint64 { return s.counted }

// CountAfter forgets the events up to a sequence, as if the state had counted none of them. So a
// state that was derived from the very beginning can be compared with one that counts since later.
func (s *State) CountAfter(seq uint64) {
	if seq <= s.counted {
		return
	}
	s.counted = seq
	for _, a := range s.accounts {
		if a.lastEvent <= seq {
			a.lastEvent = 0
		}
	}
}
