package committed

import (
	"context"
	"math"

	"exchange/core/state"
	"exchange/persistence"
)

// All rows of all accounts, for exports. The lists may be long, so they hold no slot.

// A Past is the retained history of all accounts and pairs at one sequence.
type Past struct {
	Accounts uint32 // the largest id; ids start at 1
	Pairs    uint16 // the largest number of a pair

	seq                uint64
	tradeID, depositID uint64             // the newest ids
	pending            []state.Withdrawal // newest first
	history            persistence.History
}

// Past returns the history, once the store has it. Errors are those of Ask.
func (d *Door) Past() (*Past, error) {
	q := &Past{history: d.history}
	if err := d.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	return q, nil
}

func (q *Past) from(c *Side) (needs uint64) {
	s := c.state
	q.seq = s.Seq()
	q.Accounts, q.Pairs = uint32(len(s.Accounts())), uint16(len(s.Pairs()))
	_, q.tradeID, q.depositID = s.LastIDs()
	pending := PendingWithdrawals{Limit: math.MaxInt}
	pending.from(c)
	q.pending = pending.List
	return q.seq
}

// Trades calls fn for the trades of a pair, oldest first, until fn returns false.
func (q *Past) Trades(ctx context.Context, pair uint16, fn func(*Trade) bool) error {
	return q.history.Trades(ctx,
		persistence.TradeQuery{Pair: pair, Before: q.tradeID + 1, Ascending: true}, fn)
}

// Deposits calls fn for the deposits of an account, newest first, until fn returns false.
func (q *Past) Deposits(ctx context.Context, account uint32, fn func(*Deposit) bool) error {
	return q.history.Deposits(ctx,
		persistence.DepositQuery{Account: account, Before: q.depositID + 1}, fn)
}

// Withdrawals calls fn for all withdrawals, pending and ended, newest first, until fn returns
// false.
func (q *Past) Withdrawals(ctx context.Context, fn func(*Withdrawal) bool) error {
	pending := make([]Withdrawal, 0, len(q.pending))
	for i := range q.pending {
		pending = append(pending, WithdrawalRow(&q.pending[i]))
	}
	return mergeNewest(pending, func(w *Withdrawal) uint64 { return w.ID },
		func(add func(*Withdrawal) bool) error {
			return q.history.Withdrawals(ctx, persistence.WithdrawalQuery{MaxSeq: q.seq}, add)
		}, fn)
}

// mergeNewest merges rows in memory with those listed by the store, both by descending id, and
// calls fn for each until fn returns false.
func mergeNewest[T any](rows []T, id func(*T) uint64, stored func(func(*T) bool) error,
	fn func(*T) bool) error {
	more := true
	err := stored(func(row *T) bool {
		for more && len(rows) > 0 && id(&rows[0]) > id(row) {
			more, rows = fn(&rows[0]), rows[1:]
		}
		more = more && fn(row)
		return more
	})
	for ; err == nil && more && len(rows) > 0; rows = rows[1:] {
		more = fn(&rows[0])
	}
	return err
}

// EveryOrder calls fn for the orders of all accounts, open and closed, until fn returns false: by
// account id, and each account's newest first. The orders of one account are from one sequence.
func (d *Door) EveryOrder(ctx context.Context, fn func(*Order) bool) error {
	gone := false
	for q := (&wholeAccounts{more: true}); q.more && !gone; {
		q = &wholeAccounts{after: q.last}
		if err := d.Ask(q, nil, 0); err != nil {
			return err
		}
		rows := q.open
		for account := q.after + 1; account <= q.last && !gone; account++ {
			n := 0
			for n < len(rows) && rows[n].Account == account {
				n++
			}
			err := mergeNewest(rows[:n], func(o *Order) uint64 { return o.ID },
				func(add func(*Order) bool) error {
					return d.history.Orders(ctx,
						persistence.OrderQuery{Account: account, MaxSeq: q.seq}, add)
				}, func(o *Order) bool {
					gone = !fn(o)
					return !gone
				})
			if err != nil {
				return err
			}
			rows = rows[n:]
		}
	}
	return nil
}

// ordersAtOnce is the number of open orders after which a question ends, at the next account
// boundary: about a millisecond.
const ordersAtOnce = 2000

// wholeAccounts asks for all open orders of some accounts, each account's newest first. The store
// has the closed ones, up to seq.
type wholeAccounts struct {
	after uint32 // only accounts with an id above

	seq  uint64
	last uint32 // the last visited account; equal to after: none
	more bool   // there are accounts after last
	open []Order
}

func (q *wholeAccounts) from(c *Side) (needs uint64) {
	all := c.state.Accounts()
	q.seq, q.last = c.state.Seq(), q.after
	part, _ := span(all, uint64(q.after), accountsAtOnce)
	for _, a := range part {
		for open := range a.Open.Newest() {
			o, p, _ := c.state.OpenOrder(a, open.ID)
			q.open = append(q.open, openRow(a, o, p))
		}
		if q.last = a.ID; len(q.open) >= ordersAtOnce {
			break
		}
	}
	q.more = int(q.last) < len(all)
	return q.seq
}
