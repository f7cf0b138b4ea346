package state

import "exchange/core/event"

// isEvent reports whether records of a kind are events of the accounts that they settle: orders,
// cancels, freezes, deposits and withdrawals. A refusal, a wrong code, a switch and settings are
// not: they change nothing that an account is notified of.
func isEvent(k event.Kind) bool {
	switch k {
	case event.KindDeposit, event.KindOrder, event.KindCancel, event.KindWithdrawal,
		event.KindWithdrawalStatus, event.KindInstructed,
		event.KindStop, event.KindTriggered, event.KindAmended, event.KindExpired,
		event.KindSwitchCancel, event.KindFreeze, event.KindAdjusted:
		return true
	}
	return false
}

// LastEvent returns the sequence of the account's newest event; 0: none.
func (a *Account) LastEvent() uint64 { return a.lastEvent }
