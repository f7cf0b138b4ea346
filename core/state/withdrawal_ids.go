package state

import (
	"fmt"
	"slices"

	"exchange/core/event"
)

// WithdrawalIDs are the reserved client ids of an account's withdrawals. The account's wallet has
// its own, which includes withdrawals in flight. The zero WithdrawalIDs is empty. It is a short,
// rarely used list, so it has no index.
type WithdrawalIDs struct{ list []namedWithdrawal } // ascending numbers

type namedWithdrawal struct {
	number uint64
	id     event.ClientID
}

// Withdrawal returns the withdrawal that has an id; 0: none.
func (w *WithdrawalIDs) Withdrawal(id event.ClientID) (number uint64) {
	for i := range w.list {
		if w.list[i].id == id {
			return w.list[i].number
		}
	}
	return 0
}

// of returns the id of a withdrawal; the zero ClientID: none is kept.
func (w *WithdrawalIDs) of(number uint64) event.ClientID {
	if i, found := w.find(number); found {
		return w.list[i].id
	}
	return event.ClientID{}
}

func (w *WithdrawalIDs) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(w.list, number, func(n namedWithdrawal, number uint64) int {
		switch {
		case n.number < number:
			return -1
		case n.number > number:
			return 1
		}
		return 0
	})
}

// Add adds a withdrawal with an id; its number is above all others. It drops the one that is too
// old now, unless that is pending.
func (w *WithdrawalIDs) Add(number uint64, id event.ClientID, pending func(number uint64) bool) {
	w.list = append(w.list, namedWithdrawal{number, id})
	if i := len(w.list) - 1 - event.KeptWithdrawalIDs; i >= 0 && !pending(w.list[i].number) {
		w.list = slices.Delete(w.list, i, i+1)
	}
}

// Finish notes that a withdrawal is no longer pending. It drops the id if that is too old.
func (w *WithdrawalIDs) Finish(number uint64) {
	if i, found := w.find(number); found && i < len(w.list)-event.KeptWithdrawalIDs {
		w.list = slices.Delete(w.list, i, i+1)
	}
}

// Len returns the number of ids.
func (w *WithdrawalIDs) Len() int { return len(w.list) }

// Equal reports whether both hold the same ids.
func (w *WithdrawalIDs) Equal(other *WithdrawalIDs) bool { return slices.Equal(w.list, other.list) }

// Clone returns a copy that shares nothing.
func (w *WithdrawalIDs) Clone() WithdrawalIDs { return WithdrawalIDs{slices.Clone(w.list)} }

// check returns an error for a list that Add and Finish cannot produce.
func (w *WithdrawalIDs) check(s *State) error {
	known := make(map[event.ClientID]struct{}, len(w.list))
	for i, n := range w.list {
		_, twice := known[n.id]
		known[n.id] = struct{}{}
		switch {
		case n.id.IsZero(), twice:
			return fmt.Errorf("withdrawal %d has no client id, or that of another one", n.number)
		case n.number == 0, n.number > s.lastWithdrawal, i > 0 && n.number <= w.list[i-1].number:
			return fmt.Errorf("the client ids of withdrawals are not in order at %d", n.number)
		case i < len(w.list)-event.KeptWithdrawalIDs && s.withdrawals[n.number] == nil:
			return fmt.Errorf("withdrawal %d keeps its client id for too long", n.number)
		}
	}
	return nil
}

// WithdrawalIDs returns the client ids of the account's withdrawals. Read only.
func (a *Account) WithdrawalIDs() *WithdrawalIDs {
	if a.rare == nil {
		return new(WithdrawalIDs)
	}
	return &a.rare.withdrawalIDs
}
