package committed

import (
	"context"

	"exchange/core/trading"
	"exchange/persistence"
)

// A TradeQuery selects trades, newest first. Zero fields do not filter.
type TradeQuery struct {
	Pair      uint16
	Before    uint64 // only ids below
	After     uint64 // only ids above
	SinceUs   int64  // only with Pair: at this time or later
	UntilUs   int64  // only with Pair: at this time or earlier
	Offset    int    // matching rows to leave out first
	Limit     int
	Ascending bool // oldest first
}

// stored returns the query as the store is asked it.
func (q *TradeQuery) stored() persistence.TradeQuery {
	return persistence.TradeQuery{Pair: q.Pair, Before: q.Before, After: q.After,
		SinceUs: q.SinceUs, UntilUs: q.UntilUs, Offset: q.Offset, Ascending: q.Ascending}
}

var tradeLists pool[List[Trade]]

// Trades lists public trades. The caller frees the list.
func (d *Door) Trades(by Asker, q TradeQuery) (*List[Trade], error) {
	v, err := d.enter(by)
	if err != nil {
		return nil, err
	}
	defer v.end()
	newest := newestTrades.get()
	newest.TradeQuery = q
	if err := v.ask(newest); err != nil {
		return nil, err
	}
	list, complete := newList(&tradeLists), newest.Complete
	if complete { // memory has all of them, even while the store does not answer
		list.Rows, newest.Trades = newest.Trades, list.Rows
	}
	*newest = NewestTrades{Trades: kept(newest.Trades)}
	newestTrades.Put(newest)
	if complete {
		return list, nil
	}
	return v.trades(list, q.stored(), q.Limit)
}

// OwnTrades lists trades in which the asker's account took part. takerSide is the side of a trade's
// taker and own that of the account; 0 is either. The caller frees the list.
func (d *Door) OwnTrades(by Asker, takerSide, own trading.Side, q TradeQuery) (*List[Trade],
	error) {
	v, err := d.enter(by)
	if err != nil {
		return nil, err
	}
	defer v.end()
	if _, err := v.written(); err != nil {
		return nil, err
	}
	stored := q.stored()
	stored.Account, stored.TakerSide, stored.MySide = by.Key.Account.ID, takerSide, own
	return v.trades(newList(&tradeLists), stored, q.Limit)
}

// trades fills a list from the store.
func (v *visit) trades(list *List[Trade], q persistence.TradeQuery, limit int) (*List[Trade],
	error) {
	ctx, done := v.patience()
	defer done()
	err := v.door.history.Trades(ctx, q, func(t *Trade) bool { return list.add(t, limit) })
	return finished(list, err)
}

// PairTrades waits until the history has all that was released, and returns the list of a pair's
// trades, oldest first. The list calls fn for each until fn returns false. It may be long, so it
// holds no slot.
func (d *Door) PairTrades(pair uint16) (list func(ctx context.Context,
	fn func(*Trade) bool) error, err error) {
	if err := d.Ask(new(Written), nil, 0); err != nil {
		return nil, err
	}
	return func(ctx context.Context, fn func(*Trade) bool) error {
		return d.history.Trades(ctx, persistence.TradeQuery{Pair: pair, Ascending: true}, fn)
	}, nil
}

// NewestTrades asks for public trades. If Complete, memory has all of them. Otherwise the store has
// them once it has answered.
type NewestTrades struct {
	TradeQuery

	Seq      uint64
	Trades   []Trade
	Complete bool
}

var newestTrades pool[NewestTrades]

func (q *NewestTrades) from(c *Side) (needs uint64) {
	q.Seq = c.state.Seq()
	if q.Complete = c.tradesOf(q.Pair).page(q); q.Complete {
		return 0
	}
	return q.Seq
}
