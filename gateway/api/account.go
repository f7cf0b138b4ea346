package api

import (
	"errors"
	"slices"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/trading"
	"exchange/gateway/encode"
	"exchange/persistence"
)

func (c *Call) wallets() {
	only := c.currency("currency_id")
	if c.badFields() {
		return
	}
	q := committed.NewRead(committed.ReadWallet)
	if !c.ask(q, c.Key) {
		return
	}
	defer q.Free()
	b := append(c.body, '[')
	for _, currency := range c.engine.Currencies() {
		if only != nil && currency.Number != only.Number {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		h := holding(q.Holdings, currency.Number)
		b = encode.Text(append(b, `{"currency":`...), currency.Code)
		b = appendBalance(b, "balance", h.Balance)
		b = appendBalance(b, "reserve", h.Reserve)
		b = append(b, '}')
	}
	c.body = append(b, ']')
}

func holding(all []ledger.Holding, currency uint16) ledger.Holding {
	for _, h := range all {
		if h.Currency == currency {
			return h
		}
	}
	return ledger.Holding{}
}

// MaxOrders is the default and the largest limit of orders/own.
const MaxOrders = 2000

// An orderFilter has the parameters of orders/own.
type orderFilter struct {
	side   trading.Side
	pair   uint16
	status uint8
	before uint64
	id     event.ClientID
}

func (f *orderFilter) passes(o *persistence.Order) bool {
	return (f.side == 0 || o.Side == f.side) && (f.pair == 0 || o.Pair == f.pair) &&
		(f.status == 0 || o.Status == f.status) && (f.before == 0 || o.ID < f.before)
}

func (c *Call) ownOrders() {
	f := orderFilter{side: c.side("type"), pair: c.pair(), id: c.clientID(&c.Query),
		before: c.before(), status: c.orderStatus()}
	l := orderList{c: c, skip: c.offset(), left: c.limit("limit", MaxOrders, MaxOrders)}
	if c.badFields() {
		return
	}
	q := l.question(&f)
	if !c.ask(q, c.Key) {
		return
	}
	defer q.Free()
	page := q
	if q.Kind == committed.ReadOpenIDs {
		if err := l.turn(&f, q); err != nil {
			c.storeFailed(err)
			return
		}
		if l.skip > 0 { // the account has not so many
			c.body = append(c.body, "[]"...)
			return
		}
		page = f.read(committed.ReadOrders, l.left)
		if !c.askMore(page) {
			return
		}
		defer page.Free()
	}
	c.body = append(c.body, '[')
	var err error
	if page.Complete {
		err = l.named(&f, page)
	} else {
		err = l.merge(&f, page)
	}
	if c.body = append(c.body, ']'); err != nil {
		c.storeFailed(err)
	}
}

// question returns a read of the committed state that asks for no more than the list needs.
func (l *orderList) question(f *orderFilter) *committed.Read {
	q := f.read(committed.ReadOrders, l.left)
	q.ClientID = f.id
	switch {
	case !f.id.IsZero(): // one order
	case f.status == persistence.StatusActive: // the history has none
		q.Offset, l.skip = l.skip, 0
	case f.status != 0: // the history has them all
		q.Kind = committed.ReadHistory
	case l.skip > 0: // which of the open orders are on the page, the history has to tell
		q.Kind, q.Limit = committed.ReadOpenIDs, l.skip
	}
	return q
}

// read asks for open orders that pass the filter.
func (f *orderFilter) read(kind committed.ReadKind, limit int) *committed.Read {
	q := committed.NewRead(kind)
	q.Side, q.Pair, q.Before, q.Limit = f.side, f.pair, f.before, limit
	return q
}

// closed is the query for closed orders that pass the filter, up to a sequence.
func (f *orderFilter) closed(account uint32, seq uint64) persistence.OrderQuery {
	return persistence.OrderQuery{Account: account, Pair: f.pair, Side: f.side, Status: f.status,
		ClientID: f.id.String(), Before: f.before, MaxSeq: seq}
}

// turn leafs through the orders before the page, by their ids alone. Then the filter ends where the
// page begins, and nothing is left to skip. Otherwise the account has not so many orders.
func (l *orderList) turn(f *orderFilter, q *committed.Read) error {
	open, last := q.IDs, uint64(0)
	leaf := func(id uint64) bool {
		last = id
		l.skip--
		return l.skip > 0
	}
	ctx, cancel := l.c.storeContext()
	defer cancel()
	err := l.c.engine.History().Orders(ctx,
		f.closed(l.c.Key.Account.ID, q.Seq), func(o *persistence.Order) bool {
			for len(open) > 0 && open[0] > o.ID {
				id := open[0]
				if open = open[1:]; !leaf(id) {
					return false
				}
			}
			return leaf(o.ID)
		})
	if err != nil {
		return err
	}
	for i := 0; i < len(open) && l.skip > 0; i++ {
		leaf(open[i])
	}
	if l.skip == 0 {
		f.before = last
	}
	return nil
}

// named writes the one order that has a client order id.
func (l *orderList) named(f *orderFilter, q *committed.Read) error {
	if q.ID != 0 {
		o, err := l.c.closedOrder(q.ID)
		if err != nil || o == nil {
			return err
		}
		q.Orders = append(q.Orders, *o)
	}
	if len(q.Orders) > 0 && f.passes(&q.Orders[0]) {
		l.add(&q.Orders[0])
	}
	return nil
}

// merge writes two lists that are both exact at one sequence, in the order of their ids: open
// orders of the committed state, and closed orders of the history up to that sequence.
func (l *orderList) merge(f *orderFilter, q *committed.Read) error {
	open := slices.DeleteFunc(q.Orders, func(o persistence.Order) bool { return !f.passes(&o) })
	if f.status != persistence.StatusActive {
		ctx, cancel := l.c.storeContext()
		defer cancel()
		err := l.c.engine.History().Orders(ctx,
			f.closed(l.c.Key.Account.ID, q.Seq), func(o *persistence.Order) bool {
				for len(open) > 0 && open[0].ID > o.ID && l.left > 0 {
					l.add(&open[0])
					open = open[1:]
				}
				return l.add(o)
			})
		if err != nil {
			return err
		}
	}
	for i := range open {
		if !l.add(&open[i]) {
			break
		}
	}
	return nil
}

// orderStatus returns the parameter status, 0 without it.
func (c *Call) orderStatus() uint8 {
	p, ok := c.Query.Get("status")
	if !ok {
		return 0
	}
	n, ok := Integer(p.Value)
	if !ok || n < persistence.StatusActive || n > persistence.StatusDone {
		c.bad("status", FieldChoice+" It must be 1, 2 or 3.")
		return 0
	}
	return uint8(n)
}

// An orderList writes a page of orders.
type orderList struct {
	c          *Call
	skip, left int
	some       bool
}

// add writes one order unless it is before the page. It returns false when the page is full.
func (l *orderList) add(o *persistence.Order) bool {
	switch {
	case l.left == 0:
		return false
	case l.skip > 0:
		l.skip--
		return true
	}
	if l.some {
		l.c.body = append(l.c.body, ',')
	}
	l.c.body = appendOrder(l.c.body, o, l.c.engine.Market(o.Pair).Name)
	l.some = true
	l.left--
	return l.left > 0
}

func (c *Call) order() {
	id, _ := Integer([]byte(c.Names.Order)) // the edge has checked that it is one
	q := committed.NewRead(committed.ReadOrder)
	q.ID = id
	if !c.ask(q, c.Key) {
		return
	}
	defer q.Free()
	var o *persistence.Order
	if len(q.Orders) > 0 {
		o = &q.Orders[0]
	} else {
		var err error
		if o, err = c.closedOrder(id); err != nil {
			c.storeFailed(err)
			return
		}
	}
	if o == nil {
		c.Fail(NotFound, "")
	} else {
		c.body = appendOrder(c.body, o, c.engine.Market(o.Pair).Name)
	}
}

// closedOrder looks an order of the call's account up in the history. It returns nil if the account
// has no order of that id, or if the history has forgotten it.
func (c *Call) closedOrder(id uint64) (*persistence.Order, error) {
	ctx, cancel := c.storeContext()
	defer cancel()
	o, err := c.engine.History().Order(ctx, c.Key.Account.ID, id)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	return &o, err
}

func (c *Call) ownTrades() {
	me := c.Key.Account.ID
	q := persistence.TradeQuery{Account: me, Pair: c.pair(), TakerSide: c.side("type"),
		MySide: c.side("my_side"),
		Before: c.before(), Offset: c.offset(), Ascending: c.ascending()}
	limit := c.limit("limit", DefaultTrades, MaxTrades)
	if c.badFields() {
		return
	}
	barrier := committed.NewRead(committed.ReadHistory)
	if !c.ask(barrier, c.Key) {
		return
	}
	defer barrier.Free()
	c.listTrades(q, limit, func(b []byte, t *persistence.Trade) []byte {
		mine, fee := t.TakerSide, t.TakerFee
		if t.Taker != me {
			mine, fee = t.TakerSide.Opposite(), t.MakerFee
		}
		b = encode.Side(append(b, `,"my_side":`...), mine)
		b = appendBalance(b, "fee", fee)
		return encode.Text(append(b, `,"fee_currency":`...), c.received(t.Pair, mine))
	})
}

// received returns the code of the currency that a side of a trade gets.
func (c *Call) received(pair uint16, side trading.Side) string {
	m := c.engine.Market(pair)
	if side == trading.Buy {
		return m.Base
	}
	return m.Quote
}
