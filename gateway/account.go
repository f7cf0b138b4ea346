package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/trading"
	"exchange/gateway/api"
	"exchange/gateway/encode"
	"exchange/persistence"
)

// storeTimeout bounds one query of the history.
const storeTimeout = 5 * time.Second

// storeContext is for one query of the history. If it is a long one, it takes turns with others.
func (r *request) storeContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	s := scan{turns: &longScans, ctx: ctx, asker: r.asker()}
	return persistence.WithPace(ctx, s.goOn), func() {
		cancel()
		s.end()
	}
}

// storeFailed answers for a query that the store did not answer.
func (r *request) storeFailed(err error) {
	r.cause = fmt.Errorf("the history did not answer: %w", err)
	r.fail(StoreUnavailable, "")
}

// ask sends a read to the engine, with the request's nonce if it has a key. False: it is answered.
// The request keeps its place among the reads in flight until it is answered, because what the read
// does not have is asked of the history.
func (r *request) ask(q *actors.Read, key *directory.Key) bool {
	err := r.engine.BeginRead(false)
	if err == nil {
		r.reading = true
		err = r.engine.AskWithin(q, key, r.nonce)
	}
	return r.answered(q, err)
}

// askMore is ask once more, for an answer that takes two reads: the nonce is taken, and the first
// one has the places.
func (r *request) askMore(q *actors.Read) bool {
	q.Account = r.key.Account.ID
	return r.answered(q, r.engine.AskWithin(q, nil, 0))
}

func (r *request) answered(q *actors.Read, err error) bool {
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
	defer q.Free()
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

func (g *Gateway) ownOrders(r *request) {
	f := orderFilter{side: r.side("type"), pair: r.pair(), id: r.clientID(&r.query),
		before: r.before(), status: r.orderStatus()}
	l := orderList{r: r, skip: r.offset(), left: r.limit("limit", maxOrders, maxOrders)}
	if r.badFields() {
		return
	}
	q := l.question(&f)
	if !r.ask(q, r.key) {
		return
	}
	defer q.Free()
	page := q
	if q.Kind == actors.ReadOpenIDs {
		if err := l.turn(&f, q); err != nil {
			r.storeFailed(err)
			return
		}
		if l.skip > 0 { // there are not so many
			r.body = append(r.body, "[]"...)
			return
		}
		page = f.read(actors.ReadOrders, l.left)
		if !r.askMore(page) {
			return
		}
		defer page.Free()
	}
	r.body = append(r.body, '[')
	var err error
	if page.Complete {
		err = l.named(&f, page)
	} else {
		err = l.merge(&f, page)
	}
	if r.body = append(r.body, ']'); err != nil {
		r.storeFailed(err)
	}
}

// question asks the committed state for no more than the list needs of it.
func (l *orderList) question(f *orderFilter) *actors.Read {
	q := f.read(actors.ReadOrders, l.left)
	q.ClientID = f.id
	switch {
	case !f.id.IsZero(): // one order
	case f.status == persistence.StatusActive: // the history has none
		q.Offset, l.skip = l.skip, 0
	case f.status != 0: // the history has them all
		q.Kind = actors.ReadHistory
	case l.skip > 0: // which of the open orders are on the page, the history has to tell
		q.Kind, q.Limit = actors.ReadOpenIDs, l.skip
	}
	return q
}

// read asks for open orders that pass the filter.
func (f *orderFilter) read(kind actors.ReadKind, limit int) *actors.Read {
	q := actors.NewRead(kind)
	q.Side, q.Pair, q.Before, q.Limit = f.side, f.pair, f.before, limit
	return q
}

// closed is the query for closed orders that pass the filter, up to a sequence.
func (f *orderFilter) closed(account uint32, seq uint64) persistence.OrderQuery {
	return persistence.OrderQuery{Account: account, Pair: f.pair, Side: f.side, Status: f.status,
		ClientID: f.id.String(), Before: f.before, MaxSeq: seq}
}

// turn leafs through what is before the page, by the ids alone: from then on the filter ends where
// the page begins, and nothing is left to skip. If something is, there are not so many orders.
func (l *orderList) turn(f *orderFilter, q *actors.Read) error {
	open, last := q.IDs, uint64(0)
	leaf := func(id uint64) bool {
		last = id
		l.skip--
		return l.skip > 0
	}
	ctx, cancel := l.r.storeContext()
	defer cancel()
	err := l.r.engine.History().Orders(ctx,
		f.closed(l.r.key.Account.ID, q.Seq), func(o *persistence.Order) bool {
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

// merge writes two lists that are both exact at one sequence, in the order of their ids: the open
// orders, from the committed state, and the closed ones, from the history up to that sequence.
func (l *orderList) merge(f *orderFilter, q *actors.Read) error {
	open := slices.DeleteFunc(q.Orders, func(o persistence.Order) bool { return !f.passes(&o) })
	if f.status != persistence.StatusActive {
		ctx, cancel := l.r.storeContext()
		defer cancel()
		err := l.r.engine.History().Orders(ctx,
			f.closed(l.r.key.Account.ID, q.Seq), func(o *persistence.Order) bool {
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
	n, ok := api.Integer(p.Value)
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
	id, _ := api.Integer([]byte(pk)) // it is one, or the path would not exist
	q := actors.NewRead(actors.ReadOrder)
	q.ID = id
	if !r.ask(q, r.key) {
		return
	}
	defer q.Free()
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
}

// closedOrder looks an order of the request's account up in the history. nil: it has none with that
// id, or history has forgotten it.
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
	q := persistence.TradeQuery{Account: me, Pair: r.pair(), TakerSide: r.side("type"),
		MySide: r.side("my_side"),
		Before: r.before(), Offset: r.offset(), Ascending: r.ascending()}
	limit := r.limit("limit", defaultTrades, maxTrades)
	if r.badFields() {
		return
	}
	barrier := actors.NewRead(actors.ReadHistory)
	if !r.ask(barrier, r.key) {
		return
	}
	defer barrier.Free()
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
func (r *request) received(pair uint16, side trading.Side) string {
	m := r.engine.Market(pair)
	if side == trading.Buy {
		return m.Base
	}
	return m.Quote
}
