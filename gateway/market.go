package gateway

import (
	"errors"
	"strconv"

	"exchange/actors"
	"exchange/core/matching"
	"exchange/gateway/encode"
	"exchange/persistence"
)

// static has what follows from the configuration alone, encoded once.
type static struct {
	currencies []byte
	pairs      [][]byte // an object each, in order
}

func newStatic(e *actors.Engine) *static {
	s := &static{}
	b := []byte{'['}
	for i, c := range e.Currencies() {
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Text(append(b, `{"sign":`...), c.Sign)
		b = encode.Text(append(b, `,"short_name":`...), c.Code)
		b = append(b, '}')
	}
	s.currencies = append(b, ']')
	for _, p := range e.Pairs() {
		b := encode.Text([]byte(`{"name":`), p.Name)
		b = encode.Text(append(b, `,"currency1":`...), p.Base)
		b = encode.Text(append(b, `,"currency2":`...), p.Quote)
		b = p.MinimumOrderSize.Append(append(b, `,"minimum_order_size":`...))
		b = p.MaximumOrderSize.Append(append(b, `,"maximum_order_size":`...))
		b = p.MinimumOrderValue.Append(append(b, `,"minimum_order_value":`...))
		b = strconv.AppendInt(append(b, `,"price_precision":`...), int64(p.PricePrecision), 10)
		b = strconv.AppendInt(append(b, `,"amount_precision":`...), int64(p.AmountPrecision), 10)
		s.pairs = append(s.pairs, append(b, '}'))
	}
	return s
}

func (g *Gateway) currencies(r *request) { r.body = append(r.body, r.static.currencies...) }

func (g *Gateway) pairs(r *request) {
	first, second := r.currency("currency1"), r.currency("currency2")
	if r.badFields() {
		return
	}
	b := append(r.body, '[')
	for i, p := range r.engine.Pairs() {
		if first != nil && p.Base != first.Code || second != nil && p.Quote != second.Code {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, r.static.pairs[i]...)
	}
	r.body = append(b, ']')
}

// everyLevel is the default of an order book's limits: all.
const everyLevel = 1 << 40

func (g *Gateway) orderBook(r *request) {
	name, _ := r.ctx.UserValue("pair").(string)
	pair := r.engine.Pair([]byte(name))
	if pair == nil {
		r.fail(NotFound, "")
		return
	}
	sell, buy := r.bookLimit("limit_sell", "limit_asks"), r.bookLimit("limit_buy", "limit_bids")
	kind := actors.ReadDepth
	if p, ok := r.query.Get("group"); ok {
		switch string(p.Value) {
		case "0":
		case "1":
			kind = actors.ReadLevels
		default:
			r.bad("group", fieldChoice+" It must be 0 or 1.")
		}
	}
	if r.badFields() {
		return
	}
	v, err := r.engine.View(kind, pair, 0, buy, sell)
	if err != nil {
		r.viewFailed(err)
		return
	}
	r.ctx.Response.Header.SetBytesV("X-Update-Id", strconv.AppendUint(r.body, v.UpdateID, 10))
	d := v.Depth
	sell, buy = allOf(sell, len(d.SellLevels)+len(d.SellOrders)), allOf(buy, len(d.BuyLevels)+len(d.BuyOrders))
	r.shared = v.Body(actors.BodyKey{int64(sell), int64(buy)}, func(*actors.View) []byte {
		if kind == actors.ReadLevels {
			b := make([]byte, 0, (len(first(d.SellLevels, sell))+len(first(d.BuyLevels, buy))+1)*levelBytes)
			b = encode.Levels(append(b, `{"sell":`...), first(d.SellLevels, sell))
			return append(encode.Levels(append(b, `,"buy":`...), first(d.BuyLevels, buy)), '}')
		}
		b := make([]byte, 0, (len(first(d.SellOrders, sell))+len(first(d.BuyOrders, buy))+1)*bookOrderBytes)
		b = appendBookOrders(append(b, `{"sell":`...), first(d.SellOrders, sell))
		return append(appendBookOrders(append(b, `,"buy":`...), first(d.BuyOrders, buy)), '}')
	})
}

// allOf is a limit of a list that is so long: negative if all of it is shown.
func allOf(limit, length int) int {
	if limit >= length {
		return -1
	}
	return limit
}

// What a level and an order of a book usually take in an answer, rounded up.
const (
	levelBytes     = 64
	bookOrderBytes = 96
)

// viewFailed answers for a view that could not be made.
func (r *request) viewFailed(err error) {
	if errors.Is(err, actors.ErrTimeout) {
		r.cause = err
		r.fail(StoreUnavailable, "")
		return
	}
	r.engineFailed(err)
}

// first is the first n of a list, all of it if n is negative.
func first[T any](list []T, n int) []T {
	if n < 0 || n >= len(list) {
		return list
	}
	return list[:n]
}

// bookLimit is one side's limit under its name or its alias; the name wins.
func (r *request) bookLimit(name, alias string) int {
	n := r.limit(alias, -1, everyLevel)
	if _, ok := r.query.Get(name); ok {
		n = r.limit(name, -1, everyLevel)
	}
	return n
}

func appendBookOrders(b []byte, orders []matching.Order) []byte {
	b = append(b, '[')
	for i := range orders {
		o := &orders[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, `{"id":`...), o.ID, 10)
		b = encode.Seconds(append(b, `,"timestamp":`...), o.TimeUs)
		b = o.Price.Append(append(b, `,"price":`...))
		b = o.Remaining.Append(append(b, `,"amount":`...))
		b = append(b, '}')
	}
	return append(b, ']')
}

// Limits of lists of trades.
const (
	defaultTrades = 100
	maxTrades     = 1000
)

func (g *Gateway) trades(r *request) {
	q := actors.NewRead(actors.ReadTrades)
	q.Pair, q.Before, q.Offset, q.Ascending = r.pair(), r.before(), r.offset(), r.ascending()
	if q.Limit = r.limit("limit", defaultTrades, maxTrades); r.badFields() {
		q.Free()
		return
	}
	if !r.ask(q, nil) {
		return
	}
	if q.Complete { // memory has them all, also while the store is not there
		b := append(r.body, '[')
		for i := range q.Trades {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendTrade(b, &q.Trades[i], r.engine.Market(q.Trades[i].Pair).Name), '}')
		}
		r.body = append(b, ']')
	} else {
		r.listTrades(persistence.TradeQuery{Pair: q.Pair, Before: q.Before, Offset: q.Offset, Ascending: q.Ascending}, q.Limit, nil)
	}
	q.Free()
}

// listTrades writes the trades of a query; more, unless it is nil, adds fields to each.
func (r *request) listTrades(q persistence.TradeQuery, limit int, more func([]byte, *persistence.Trade) []byte) {
	ctx, cancel := r.storeContext()
	defer cancel()
	b, n := append(r.body, '['), 0
	err := r.engine.History().Trades(ctx, q, func(t *persistence.Trade) bool {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendTrade(b, t, r.engine.Market(t.Pair).Name)
		if more != nil {
			b = more(b, t)
		}
		b = append(b, '}')
		n++
		return n < limit
	})
	r.body = append(b, ']')
	if err != nil {
		r.storeFailed(err)
	}
}
