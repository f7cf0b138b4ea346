package committed

import (
	"context"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/persistence"
)

// Newest asks for the newest ids in the lists of the history, once the history has caught up.
type Newest struct {
	Trades  []uint64 // by pair-1: the newest trade's id
	Deposit uint64
}

func (q *Newest) from(c *Side) (needs uint64) {
	for _, p := range c.state.Pairs() {
		q.Trades = append(q.Trades, p.LastTrade())
	}
	_, _, q.Deposit = c.state.LastIDs()
	return c.state.Seq()
}

// A Statement contains an account's holdings at one sequence, and the lists of everything that
// changed them. The lists may be long, so they hold no slot.
type Statement struct {
	Account    uint32
	Holdings   []ledger.Holding
	TradeCount uint64 // trades of the account ever; of the fee account: all trades

	name    string
	seq     uint64
	newest  Newest
	history persistence.History
}

// Statement returns the statement of the account with a name; nil: no such account.
func (d *Door) Statement(name string) (*Statement, error) {
	q := &Statement{name: name, history: d.history}
	if err := d.Ask(q, nil, 0); err != nil || q.Account == 0 {
		return nil, err
	}
	return q, nil
}

func (q *Statement) from(c *Side) (needs uint64) {
	s := c.state
	q.seq = s.Seq()
	if a := s.AccountByName(q.name); a != nil {
		q.Account = a.ID
		q.Holdings = append(q.Holdings, a.Wallet.Holdings()...)
		q.TradeCount = s.TradeCount(q.tradesAccount())
	}
	return q.newest.from(c)
}

// tradesAccount returns the account whose trades count; 0: all, for the fee account.
func (q *Statement) tradesAccount() uint32 {
	if q.name == directory.FeeAccount {
		return 0
	}
	return q.Account
}

// Trades calls fn for the account's trades, newest first, until fn returns false. For the fee
// account these are all trades.
func (q *Statement) Trades(ctx context.Context, fn func(*Trade) bool) error {
	return q.history.Trades(ctx, persistence.TradeQuery{Account: q.tradesAccount()},
		func(t *Trade) bool { return t.ID > q.newest.Trades[t.Pair-1] || fn(t) })
}

// Deposits calls fn for the account's deposits, newest first, until fn returns false.
func (q *Statement) Deposits(ctx context.Context, fn func(*Deposit) bool) error {
	return q.history.Deposits(ctx,
		persistence.DepositQuery{Account: q.Account, Before: q.newest.Deposit + 1}, fn)
}

// Left calls fn for the account's approved withdrawals and its adjustments, newest first, until fn
// returns false.
func (q *Statement) Left(ctx context.Context, fn func(*Withdrawal) bool) error {
	return q.history.Withdrawals(ctx, persistence.WithdrawalQuery{Account: q.Account,
		Status: event.WithdrawalApproved, MaxSeq: q.seq}, fn)
}
