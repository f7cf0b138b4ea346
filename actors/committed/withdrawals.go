package committed

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// A WithdrawalQuery selects withdrawals of the client's account, newest first. Zero fields do not
// filter.
type WithdrawalQuery struct {
	Currency uint16
	Status   uint8
	Before   uint64 // only ids below
	Offset   int    // matching rows to skip
	Limit    int
}

// WithdrawalRow returns a pending withdrawal as a row.
func WithdrawalRow(w *state.Withdrawal) Withdrawal {
	return Withdrawal{ID: w.ID, Account: w.Account, Currency: w.Currency, Amount: w.Amount,
		Status: w.Status, TimeUs: w.TimeUs, Address: w.Address, Details: w.Details,
		ClientID: w.ClientID.String()}
}

var withdrawalLists pool[List[Withdrawal]]

// Withdrawals lists withdrawals of the client's account, pending and ended. The caller frees the
// list.
func (d *Door) Withdrawals(by Client, q WithdrawalQuery) (*List[Withdrawal], error) {
	v, err := d.enter(by)
	if err != nil {
		return nil, err
	}
	defer v.end()
	// earlier limits may have admitted more than today's
	pending := &PendingWithdrawals{currency: q.Currency, before: q.Before, Limit: math.MaxInt}
	if err := v.ask(pending); err != nil {
		return nil, err
	}
	rows := pending.List
	if q.Status != 0 {
		rows = slices.DeleteFunc(rows,
			func(w state.Withdrawal) bool { return w.Status != q.Status })
	}
	list, skip := newList(&withdrawalLists), q.Offset
	add := func(w *Withdrawal) bool {
		if skip > 0 {
			skip--
			return true
		}
		return list.add(w, q.Limit)
	}
	return finished(list, v.mergeWithdrawals(rows, persistence.WithdrawalQuery{
		Account: pending.account, Currency: q.Currency, Status: q.Status, Before: q.Before,
		MaxSeq: pending.seq}, add))
}

// mergeWithdrawals calls add for pending and stored withdrawals, by descending id, until add
// returns false.
func (v *visit) mergeWithdrawals(pending []state.Withdrawal, ended persistence.WithdrawalQuery,
	add func(*Withdrawal) bool) error {
	more := true
	next := func() {
		row := WithdrawalRow(&pending[0])
		more, pending = add(&row), pending[1:]
	}
	if ended.Status == 0 || ended.Status > event.WithdrawalVerified {
		err := v.query(func(ctx context.Context, h persistence.History) error {
			return h.Withdrawals(ctx, ended, func(w *Withdrawal) bool {
				for more && len(pending) > 0 && pending[0].ID > w.ID {
					next()
				}
				more = more && add(w)
				return more
			})
		})
		if err != nil {
			return err
		}
	}
	for more && len(pending) > 0 {
		next()
	}
	return nil
}

// AllPending lists the pending withdrawals of all accounts, newest first. The caller frees the
// list.
func (d *Door) AllPending(limit int) (*List[Withdrawal], error) {
	v, err := d.enterOperator()
	if err != nil {
		return nil, err
	}
	defer v.end()
	list, _, err := v.pendingOf(0, limit)
	return list, err
}

// WithdrawalsOf lists withdrawals of an account: the pending ones and then the ended ones, each
// newest first. The caller frees the list.
func (d *Door) WithdrawalsOf(account uint32, limit int) (*List[Withdrawal], error) {
	v, err := d.enterOperator()
	if err != nil {
		return nil, err
	}
	defer v.end()
	list, seq, err := v.pendingOf(account, limit)
	if err != nil || len(list.Rows) >= limit {
		return list, err
	}
	return finished(list, v.query(func(ctx context.Context, h persistence.History) error {
		return h.Withdrawals(ctx, persistence.WithdrawalQuery{Account: account, MaxSeq: seq},
			func(w *Withdrawal) bool { return list.add(w, limit) })
	}))
}

func (v *visit) pendingOf(account uint32, limit int) (*List[Withdrawal], uint64, error) {
	q := &PendingWithdrawals{account: account, Limit: limit}
	if err := v.ask(q); err != nil {
		return nil, 0, err
	}
	list := newList(&withdrawalLists)
	for i := range q.List {
		list.Rows = append(list.Rows, WithdrawalRow(&q.List[i]))
	}
	return list, q.seq, nil
}

// WithdrawalOf returns a withdrawal, pending or not, to complete the answer to a command; false:
// there is none.
func (d *Door) WithdrawalOf(id uint64) (w Withdrawal, found bool, err error) {
	v, err := d.enterFollowUp()
	if err != nil {
		return w, false, err
	}
	defer v.end()
	q := &PendingWithdrawal{ID: id}
	if err := v.ask(q); err != nil {
		return w, false, err
	}
	if q.Found {
		return WithdrawalRow(&q.Withdrawal), true, nil
	}
	err = v.query(func(ctx context.Context, h persistence.History) (err error) {
		w, err = h.Withdrawal(ctx, id)
		return err
	})
	switch {
	case errors.Is(err, persistence.ErrNotFound):
		return w, false, nil
	case err != nil:
		return w, false, &HistoryError{err}
	}
	return w, true, nil
}

// PendingWithdrawals asks for pending withdrawals, newest first. The store has the ended ones, up
// to Seq. Zero filters do not filter.
type PendingWithdrawals struct {
	account  uint32
	currency uint16
	before   uint64
	Limit    int

	seq  uint64
	List []state.Withdrawal
}

func (q *PendingWithdrawals) of(account uint32) { q.account = account }

func (q *PendingWithdrawals) from(c *Side) (needs uint64) {
	s := c.state
	q.seq = s.Seq()
	var ids []uint64
	if q.account == 0 {
		for id := range s.Withdrawals() {
			ids = append(ids, id)
		}
	} else {
		for _, w := range s.Account(q.account).Withdrawals() {
			ids = append(ids, w.ID)
		}
	}
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Compare(b, a) })
	for _, id := range ids {
		w := s.Withdrawal(id)
		if len(q.List) >= q.Limit {
			break
		}
		if (q.before == 0 || w.ID < q.before) && (q.currency == 0 || w.Currency == q.currency) {
			q.List = append(q.List, *w)
		}
	}
	return q.seq
}

// A PendingWithdrawal asks for a pending withdrawal of any account. If not found, it is in the
// store or does not exist.
type PendingWithdrawal struct {
	ID uint64

	Withdrawal state.Withdrawal
	Found      bool
}

func (q *PendingWithdrawal) from(c *Side) (needs uint64) {
	w := c.state.Withdrawal(q.ID)
	if w == nil {
		return c.state.Seq()
	}
	q.Withdrawal, q.Found = *w, true
	return 0
}
