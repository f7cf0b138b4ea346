package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"exchange/actors"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/gateway/encode"
	"exchange/persistence"
)

// storeTimeout bounds one query of the history.
const storeTimeout = 5 * time.Second

func (r *request) storeContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), storeTimeout)
}

// storeFailed answers for a query that the store did not answer.
func (r *request) storeFailed(err error) {
	r.cause = fmt.Errorf("the history did not answer: %w", err)
	r.fail(StoreUnavailable, "")
}

// ask sends a read to the engine, with the request's nonce if it has a key. False: it is answered. The
// request keeps its place among the reads in flight until it is answered, because what the read does not
// have is asked of the history.
func (r *request) ask(q *actors.Read, key *actors.Key) bool {
	err := r.engine.BeginRead(false)
	if err == nil {
		r.reading = true
		err = r.engine.AskWithin(q, key, r.nonce)
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, actors.ErrTimeout): // the read is not ours any more
		r.cause = err
		r.fail(StoreUnavailable, "")
		return false
	}
	q.Free()
	r.engineFailed(err)
	return false
}

func (g *Gateway) wallets(r *request) {
	only := r.currency("currency_id")
	if r.badFields() {
		return
	}
	q := actors.NewRead(actors.ReadWallet)
	if !r.ask(q, r.key) {
		return
	}
	b := append(r.body, '[')
	for _, c := range r.engine.Currencies() {
		if only != nil && c.Number != only.Number {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		h := holding(q.Holdings, c.Number)
		b = encode.Text(append(b, `{"currency":`...), c.Code)
		b = appendBalance(b, "balance", h.Balance)
		b = appendBalance(b, "reserve", h.Reserve)
		b = append(b, '}')
	}
	r.body = append(b, ']')
	q.Free()
}

func holding(all []ledger.Holding, currency uint16) ledger.Holding {
	for _, h := range all {
		if h.Currency == currency {
			return h
		}
	}
	return ledger.Holding{}
}

// maxOrders is the default and the largest limit of orders/own.
const maxOrders = 2000

// An orderFilter has the parameters of orders/own.
type orderFilter struct {
	side   matching.Side
	pair   uint16
	status uint8
	before uint64
	id     event.ClientID
}

func (f *orderFilter) passes(o *persistence.Order) bool {
	return (f.side == 0 || o.Side == f.side) && (f.pair == 0 || o.Pair == f.pair) && (f.status == 0 || o.Status == f.status) && (f.before == 0 || o.ID < f.before)
}

func (g *Gateway) ownOrders(r *request) {
	f := orderFilter{side: r.side("type"), pair: r.pair(), id: r.clientID(&r.query), before: r.before(), status: r.orderStatus()}
	l := orderList{r: r, skip: r.offset(), left: r.limit("limit", maxOrders, maxOrders)}
	if r.badFields() {
		return
	}
	q := actors.NewRead(actors.ReadOrders)
	q.Side, q.Pair, q.ClientID, q.Before, q.Limit = f.side, f.pair, f.id, f.before, l.skip+l.left
	if !r.ask(q, r.key) {
		return
	}
	r.body = append(r.body, '[')
	var err error
	if q.Complete {
		err = l.named(&f, q)
	} else {
		err = l.merge(&f, q)
	}
	if r.body = append(r.body, ']'); err != nil {
		r.storeFailed(err)
	}
	q.Free()
}

// named writes the one order that has a client order id.
func (l *orderList) named(f *orderFilter, q *actors.Read) error {
	if q.ID != 0 {
		o, err := l.r.closedOrder(q.ID)
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

// merge writes two lists that are both exact at one sequence, in the order of their ids: the open orders,
// from the committed state, and the closed ones, from the history up to that sequence.
func (l *orderList) merge(f *orderFilter, q *actors.Read) error {
	open := slices.DeleteFunc(q.Orders, func(o persistence.Order) bool { return !f.passes(&o) })
	if f.status != persistence.StatusActive {
		ctx, cancel := l.r.storeContext()
		defer cancel()
		closed := persistence.OrderQuery{Account: l.r.key.Account.ID, Pair: f.pair, Side: f.side, Status: f.status, ClientID: f.id.String(), Before: f.before, MaxSeq: q.Seq}
		err := l.r.engine.History().Orders(ctx, closed, func(o *persistence.Order) bool {
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

// orderStatus is the parameter status, 0 if it is not there.
func (r *request) orderStatus() uint8 {
	p, ok := r.query.Get("status")
	if !ok {
		return 0
	}
	n, ok := integer(p.Value)
	if !ok || n < persistence.StatusActive || n > persistence.StatusDone {
		r.bad("status", fieldChoice+" It must be 1, 2 or 3.")
		return 0
	}
	return uint8(n)
}

// An orderList writes a page of orders.
type orderList struct {
	r          *request
	skip, left int
	some       bool
}

// add writes one order unless it is before the page; false when the page is full.
func (l *orderList) add(o *persistence.Order) bool {
	switch {
	case l.left == 0:
		return false
	case l.skip > 0:
		l.skip--
		return true
	}
	if l.some {
		l.r.body = append(l.r.body, ',')
	}
	l.r.body = appendOrder(l.r.body, o, l.r.engine.Market(o.Pair).Name)
	l.some = true
	l.left--
	return l.left > 0
}

func (g *Gateway) order(r *request) {
	pk, _ := r.ctx.UserValue("pk").(string)
	id, _ := integer([]byte(pk)) // it is one, or the path would not exist
	q := actors.NewRead(actors.ReadOrder)
	q.ID = id
	if !r.ask(q, r.key) {
		return
	}
	var o *persistence.Order
	if len(q.Orders) > 0 {
		o = &q.Orders[0]
	} else {
		var err error
		if o, err = r.closedOrder(id); err != nil {
			r.storeFailed(err)
			return
		}
	}
	if o == nil {
		r.fail(NotFound, "")
	} else {
		r.body = appendOrder(r.body, o, r.engine.Market(o.Pair).Name)
	}
	q.Free()
}

// closedOrder looks an order of the request's account up in the history. nil: it has none with that id,
// or history has forgotten it.
func (r *request) closedOrder(id uint64) (*persistence.Order, error) {
	ctx, cancel := r.storeContext()
	defer cancel()
	o, err := r.engine.History().Order(ctx, r.key.Account.ID, id)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	return &o, err
}

func (g *Gateway) ownTrades(r *request) {
	me := r.key.Account.ID
	q := persistence.TradeQuery{Account: me, Pair: r.pair(), TakerSide: r.side("type"), MySide: r.side("my_side"),
		Before: r.before(), Offset: r.offset(), Ascending: r.ascending()}
	limit := r.limit("limit", defaultTrades, maxTrades)
	if r.badFields() {
		return
	}
	barrier := actors.NewRead(actors.ReadHistory)
	if !r.ask(barrier, r.key) {
		return
	}
	barrier.Free()
	r.listTrades(q, limit, func(b []byte, t *persistence.Trade) []byte {
		mine, fee := t.TakerSide, t.TakerFee
		if t.Taker != me {
			mine, fee = t.TakerSide.Opposite(), t.MakerFee
		}
		b = encode.Side(append(b, `,"my_side":`...), mine)
		b = appendBalance(b, "fee", fee)
		return encode.Text(append(b, `,"fee_currency":`...), r.received(t.Pair, mine))
	})
}

// received is the currency that a side of a trade gets.
func (r *request) received(pair uint16, side matching.Side) string {
	m := r.engine.Market(pair)
	if side == matching.Buy {
		return m.Base
	}
	return m.Quote
}
