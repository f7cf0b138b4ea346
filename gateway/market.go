package gateway

import (
	"errors"
	"strconv"

	"exchange/actors"
	"exchange/core/trading"
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
	allSell, allBuy := len(d.SellLevels)+len(d.SellOrders), len(d.BuyLevels)+len(d.BuyOrders)
	sell, buy = min(sell, allSell), min(buy, allBuy)
	entry := func(orders []trading.Order, levels []trading.Level) func([]byte, int) []byte {
		if kind == actors.ReadLevels {
			return func(b []byte, i int) []byte {
				return encode.Level(b, levels[i].Price, levels[i].Amount)
			}
		}
		return func(b []byte, i int) []byte { return appendBookOrder(b, &orders[i]) }
	}
	sells, buys := entry(d.SellOrders, d.SellLevels), entry(d.BuyOrders, d.BuyLevels)
	if sell == allSell && buy == allBuy {
		r.shared = v.Body(func(*actors.View) []byte {
			b := appendEntries(append(make([]byte, 0, (sell+buy+1)*entryBytes(kind)), bookBegin...),
				sell, sells)
			return append(appendEntries(append(b, bookMiddle...), buy, buys), bookEnd...)
		})
		return
	}
	r.parts = append(r.parts, bookBegin, v.Part(sellList, 0, sell, sells), bookMiddle,
		v.Part(buyList, 0, buy, buys), bookEnd)
}

// The lists of a book's view.
const (
	sellList = iota
	buyList
)

// What stands around them.
var bookBegin, bookMiddle, bookEnd = []byte(`{"sell":[`), []byte(`],"buy":[`), []byte(`]}`)

func appendEntries(b []byte, n int, entry func(b []byte, i int) []byte) []byte {
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = entry(b, i)
	}
	return b
}

// entryBytes is what a level or an order of a book usually takes in an answer, rounded up.
func entryBytes(kind actors.ReadKind) int {
	if kind == actors.ReadLevels {
		return 64
	}
	return 96
}

// viewFailed answers for a view that could not be made.
func (r *request) viewFailed(err error) {
	if errors.Is(err, actors.ErrTimeout) {
		r.cause = err
		r.fail(StoreUnavailable, "")
		return
	}
	r.engineFailed(err)
}

// bookLimit is one side's limit under its name or its alias; the name wins.
func (r *request) bookLimit(name, alias string) int {
	n := r.limit(alias, everyLevel, everyLevel)
	if _, ok := r.query.Get(name); ok {
		n = r.limit(name, everyLevel, everyLevel)
	}
	return n
}

func appendBookOrder(b []byte, o *trading.Order) []byte {
	b = o.Price.Append(append(b, `{"price":`...))
	b = o.Remaining.Append(append(b, `,"amount":`...))
	b = strconv.AppendUint(append(b, `,"id":`...), o.ID, 10)
	b = encode.Seconds(append(b, `,"timestamp":`...), o.TimeUs)
	return append(b, '}')
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
		r.listTrades(persistence.TradeQuery{Pair: q.Pair, Before: q.Before, Offset: q.Offset,
			Ascending: q.Ascending}, q.Limit, nil)
	}
	q.Free()
}

// listTrades writes the trades of a query; more, unless it is nil, adds fields to each.
func (r *request) listTrades(q persistence.TradeQuery, limit int, more func([]byte,
	*persistence.Trade) []byte) {
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
