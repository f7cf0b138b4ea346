package api

import (
	"strconv"

	"exchange/actors/committed"
	"exchange/core/trading"
	"exchange/gateway/encode"
)

func (c *Call) currencies() { c.body = append(c.body, c.api.currencies...) }

func (c *Call) pairs() {
	first, second := c.currency("currency1"), c.currency("currency2")
	if c.failOnBadFields() {
		return
	}
	b, config := append(c.body, '['), c.api.configured.Load()
	for i, p := range c.public.Pairs() {
		if first != nil && p.Base != first.Code || second != nil && p.Quote != second.Code {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, config.pairs[i]...)
	}
	c.body = append(b, ']')
}

// everyLevel is the default of an order book's limits, above the size of any book.
const everyLevel = 1 << 40

func (c *Call) orderBook() {
	pair := c.public.Pair([]byte(c.Path.Pair))
	if pair == nil {
		c.Fail(NotFound, "")
		return
	}
	sell, buy := c.bookLimit("limit_sell", "limit_asks"), c.bookLimit("limit_buy", "limit_bids")
	kind := committed.ViewOrders
	if c.flag(&c.Query, "group") {
		kind = committed.ViewLevels
	}
	if c.failOnBadFields() {
		return
	}
	v, err := c.public.View(kind, pair, 0, buy, sell)
	if err != nil {
		c.failRead(err)
		return
	}
	c.updateID, c.isBook = v.UpdateID, true
	d := v.Depth
	allSell, allBuy := len(d.SellLevels)+len(d.SellOrders), len(d.BuyLevels)+len(d.BuyOrders)
	sell, buy = min(sell, allSell), min(buy, allBuy)
	entry := func(orders []trading.Order, levels []trading.Level) func([]byte, int) []byte {
		if kind == committed.ViewLevels {
			return func(b []byte, i int) []byte {
				return encode.Level(b, levels[i].Price, levels[i].Amount)
			}
		}
		return func(b []byte, i int) []byte { return appendBookOrder(b, &orders[i]) }
	}
	sells, buys := entry(d.SellOrders, d.SellLevels), entry(d.BuyOrders, d.BuyLevels)
	json := shown(v)
	c.shown, c.span = json, span{sellList: {0, sell}, buyList: {0, buy}}
	if sell == allSell && buy == allBuy {
		c.pieces = append(c.pieces, json.body(func() []byte {
			b := append(make([]byte, 0, (sell+buy+1)*entryBytes(kind)), bookBegin.json...)
			b = append(appendEntries(b, sell, sells), bookMiddle.json...)
			return append(appendEntries(b, buy, buys), bookEnd.json...)
		}))
		return
	}
	c.pieces = append(c.pieces, bookBegin, json.part(sellList, 0, sell, sells), bookMiddle,
		json.part(buyList, 0, buy, buys), bookEnd)
}

// The lists of a book's view.
const (
	sellList = iota
	buyList
)

// The texts around them.
var (
	bookBegin  = piece{json: []byte(`{"sell":[`)}
	bookMiddle = piece{json: []byte(`],"buy":[`)}
	bookEnd    = piece{json: []byte(`]}`)}
)

func appendEntries(b []byte, n int, entry func(b []byte, i int) []byte) []byte {
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = entry(b, i)
	}
	return b
}

// entryBytes returns the usual size of a level or an order in an answer, rounded up.
func entryBytes(kind committed.ViewKind) int {
	if kind == committed.ViewLevels {
		return 64
	}
	return 96
}

// bookLimit returns one side's limit under its name or its alias. The name wins.
func (c *Call) bookLimit(name, alias string) int {
	n := c.limit(alias, everyLevel, everyLevel)
	if _, ok := c.Query.Get(name); ok {
		n = c.limit(name, everyLevel, everyLevel)
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
	DefaultTrades = 100
	MaxTrades     = 1000
)

// tradePage reads the parameters of a page of trades, except the pair.
func (c *Call) tradePage(q *committed.TradeQuery) {
	q.Before, q.Offset, q.Ascending = c.before(), c.offset(), c.ascending()
	q.Limit = c.limit("limit", DefaultTrades, MaxTrades)
	if _, one := c.Query.Get("pair"); one {
		q.After = c.after()
		q.SinceUs, q.UntilUs = c.momentUs("since", true), c.momentUs("until", false)
		return
	}
	// Ids and times ascend together, and in the order of commits, within a pair only.
	for _, name := range [...]string{"after", "since", "until"} {
		if _, ok := c.Query.Get(name); ok {
			c.addError(name, FieldNeedsPair)
		}
	}
}

func (c *Call) trades() {
	q := committed.TradeQuery{Pair: c.everPair()}
	if c.tradePage(&q); c.failOnBadFields() {
		return
	}
	list, err := c.public.Trades(c.readingClient(), q)
	answerRows(c, list, err, func(b []byte, t *committed.Trade) []byte {
		return append(appendTrade(b, t, c.public.Market(t.Pair).Name), '}')
	})
}
