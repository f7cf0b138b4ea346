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
	Offset    int    // matching rows to skip
	Limit     int
	Ascending bool // oldest first
}

// stored returns the query for the store.
func (q *TradeQuery) stored() persistence.TradeQuery {
	return persistence.TradeQuery{Pair: q.Pair, Before: q.Before, After: q.After,
		SinceUs: q.SinceUs, UntilUs: q.UntilUs, Offset: q.Offset, Ascending: q.Ascending}
}

var tradeLists pool[List[Trade]]

// Trades lists public trades. The caller frees the list.
func (d *Door) Trades(by Client, q TradeQuery) (*List[Trade], error) {
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
	if complete { // memory is complete, even while the store does not answer
		list.Rows, newest.Trades = newest.Trades, list.Rows
	}
	*newest = NewestTrades{Trades: kept(newest.Trades)}
	newestTrades.Put(newest)
	if complete {
		return list, nil
	}
	return v.trades(list, q.stored(), q.Limit)
}

// An OwnTrade is a trade from the view of one of its accounts.
type OwnTrade struct {
	Trade
	Order    uint64 // the account's own
	Maker    bool   // its order was the resting one
	ClientID string // of its order; "": none, or dropped with the order
}

var ownTradeLists pool[List[OwnTrade]]

// OwnTrades lists trades in which the client's account took part. takerSide is the side of a
// trade's taker and own that of the account; 0 is either. Of a self-trade the account sees the
// taker's part. The caller frees the list.
func (d *Door) OwnTrades(by Client, takerSide, own trading.Side, q TradeQuery) (*List[OwnTrade],
	error) {
	v, err := d.enter(by)
	if err != nil {
		return nil, err
	}
	defer v.end()
	if _, err := v.awaitHistory(); err != nil {
		return nil, err
	}
	stored, account := q.stored(), by.Key.Account.ID
	stored.Account, stored.TakerSide, stored.MySide = account, takerSide, own
	list := newList(&ownTradeLists)
	err = v.query(func(ctx context.Context, h persistence.History) error {
		return h.Trades(ctx, stored, func(t *Trade) bool {
			x := OwnTrade{Trade: *t, Order: t.TakerOrder}
			if t.Taker != account {
				x.Order, x.Maker = t.MakerOrder, true
			}
			return list.add(&x, q.Limit)
		})
	})
	if list, err = finished(list, err); err != nil {
		return nil, err
	}
	if err := v.nameOrders(list.Rows, account); err != nil {
		list.Free()
		return nil, err
	}
	return list, nil
}

// nameOrders gives an account's trades the client order ids of its orders: those of the committed
// state, and for orders that closed earlier those of the store.
func (v *visit) nameOrders(rows []OwnTrade, account uint32) error {
	q := orderNames{account: account, names: map[uint64]string{}}
	for i := range rows {
		q.names[rows[i].Order] = ""
	}
	if err := v.ask(&q); err != nil {
		return err
	}
	if err := v.nameClosed(&q); err != nil {
		return err
	}
	for i := range rows {
		rows[i].ClientID = q.names[rows[i].Order]
	}
	return nil
}

// nameClosed fills in the client order ids of orders that only the store has.
func (v *visit) nameClosed(q *orderNames) error {
	if len(q.closed) == 0 {
		return nil
	}
	if err := v.query(func(ctx context.Context, h persistence.History) error {
		return h.OrdersByID(ctx, q.account, q.closed, func(o *Order) bool {
			q.names[o.ID] = o.ClientID
			return true
		})
	}); err != nil {
		return &HistoryError{err}
	}
	return nil
}

// orderNames asks for the client order ids of an account's orders.
type orderNames struct {
	account uint32
	names   map[uint64]string // by order; those of closed orders are ""

	closed []uint64 // orders that only the store has
}

func (q *orderNames) of(account uint32) { q.account = account }

func (q *orderNames) from(c *Side) (needs uint64) {
	a := c.state.Account(q.account)
	for id := range q.names {
		if a.Open.Pair(id) != 0 {
			q.names[id] = a.ClientIDs.Of(id).String()
		} else if o := c.recent.find(q.account, id); o != nil {
			q.names[id] = o.ClientID
		} else {
			q.closed = append(q.closed, id)
		}
	}
	if len(q.closed) == 0 {
		return 0
	}
	return c.recent.evicted
}

// trades fills a list from the store.
func (v *visit) trades(list *List[Trade], q persistence.TradeQuery, limit int) (*List[Trade],
	error) {
	return finished(list, v.query(func(ctx context.Context, h persistence.History) error {
		return h.Trades(ctx, q, func(t *Trade) bool { return list.add(t, limit) })
	}))
}

// NewestTrades asks for public trades. If Complete, the answer is in Trades, otherwise in the
// store.
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
