package committed

import (
	"context"
	"errors"

	"exchange/persistence"
)

// The rows of lists are those of the history. Rows of open orders and pending withdrawals have the
// same form.
type (
	Order      = persistence.Order
	Trade      = persistence.Trade
	Deposit    = persistence.Deposit
	Withdrawal = persistence.Withdrawal
	Action     = persistence.Action
)

// A List is a page of rows, all from one sequence.
type List[T any] struct {
	Rows []T
	home *pool[List[T]]
}

// Free gives an answered list back to its pool.
func (l *List[T]) Free() {
	l.Rows = kept(l.Rows)
	l.home.Put(l)
}

// newList returns an empty list from a pool.
func newList[T any](home *pool[List[T]]) *List[T] {
	l := home.get()
	l.home = home
	return l
}

// add appends a copy of a row, and reports whether the list has room for more.
func (l *List[T]) add(row *T, most int) bool {
	l.Rows = append(l.Rows, *row)
	return len(l.Rows) < most
}

// finished returns a list, or the store's error in its place.
func finished[T any](l *List[T], err error) (*List[T], error) {
	if err != nil {
		l.Free()
		return nil, &HistoryError{err}
	}
	return l, nil
}

var (
	depositLists pool[List[Deposit]]
	actionLists  pool[List[Action]]
)

// awaitHistory waits until the history is complete up to the sequence that it returns.
func (v *visit) awaitHistory() (seq uint64, err error) {
	q := barriers.get()
	if err := v.ask(q); err != nil {
		return 0, err
	}
	seq = q.Seq
	q.free()
	return seq, nil
}

// A DepositQuery selects deposits of the client's account, newest first. Zero fields do not filter.
type DepositQuery struct {
	Currency uint16
	Before   uint64 // only ids below
	Offset   int    // matching rows to skip
	Limit    int
}

// Deposits lists deposits of the client's account. The caller frees the list.
func (d *Door) Deposits(by Client, q DepositQuery) (*List[Deposit], error) {
	v, err := d.enter(by)
	if err != nil {
		return nil, err
	}
	defer v.end()
	if _, err := v.awaitHistory(); err != nil {
		return nil, err
	}
	list := newList(&depositLists)
	return finished(list, v.query(func(ctx context.Context, h persistence.History) error {
		return h.Deposits(ctx, persistence.DepositQuery{Account: by.Key.Account.ID,
			Currency: q.Currency, Before: q.Before, Offset: q.Offset},
			func(row *Deposit) bool { return list.add(row, q.Limit) })
	}))
}

// Actions lists operators' actions below a sequence (0: all), newest first. The caller frees the
// list.
func (d *Door) Actions(before uint64, limit int) (*List[Action], error) {
	v, err := d.enterOperator()
	if err != nil {
		return nil, err
	}
	defer v.end()
	if _, err := v.awaitHistory(); err != nil {
		return nil, err
	}
	list := newList(&actionLists)
	return finished(list, v.query(func(ctx context.Context, h persistence.History) error {
		return h.Actions(ctx, persistence.ActionQuery{Before: before},
			func(row *Action) bool { return list.add(row, limit) })
	}))
}

// Damaged reports whether an error means inconsistent stored data. A retry does not help then.
func Damaged(err error) bool { return errors.Is(err, persistence.ErrCorrupt) }
