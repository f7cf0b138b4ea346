//go:build prove

package recorded

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"exchange/persistence/redistest"
)

// plain are requests that v1 has always had: limit orders, their outcomes, and invalid ones. Their
// parameters include names that are unknown to v1.
const plain = `
- GET /api/v1/pairs/
- GET /api/v1/pairs/?currency1=BTC
- GET /api/v1/pairs/?currency2=BTC
- GET /api/v1/pairs/?currency1=EUR
alice POST /api/v1/order/ amount=1&client_order_id=a1&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=1&client_order_id=a1&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=1.50000000&comment=hello&pair=BTC_USDT&price=1.01e2&type=sell
alice POST /api/v1/order/ amount=2&pair=BTC_USDT&price=102.25&type=sell
alice POST /api/v1/order/ amount=1&pair=BTC_USDT&price=110&side=buy&type=sell
bob POST /api/v1/order/ amount=0.25&client_order_id=b1&pair=BTC_USDT&price=100&type=buy
bob POST /api/v1/order/ amount=2.25&pair=BTC_USDT&price=102.25&type=buy
bob POST /api/v1/order/ amount=3&client_order_id=b3&pair=BTC_USDT&price=103&type=buy
bob POST /api/v1/order/ amount=1&pair=BTC_USDT&price=90.5&type=buy
bob POST /api/v1/order/ amount=1&pair=BTC_USDT&price=90.5&type=buy
alice POST /api/v1/order/ amount=1.5&pair=BTC_USDT&price=90&type=sell
alice POST /api/v1/order/ amount=0.2&client_order_id=a2&pair=BTC_USDT&price=99&type=sell
alice POST /api/v1/order/ amount=0.1&client_order_id=a3&pair=BTC_USDT&price=100&type=buy
alice POST /api/v1/order/
alice POST /api/v1/order/ amount=&pair=BTC_USD&price=abc&type=short
alice POST /api/v1/order/ amount=0&pair=BTC_USDT&price=0&type=sell
alice POST /api/v1/order/ amount=-1&pair=BTC_USDT&price=-1&type=sell
alice POST /api/v1/order/ amount=1.123456789&pair=BTC_USDT&price=100.001&type=sell
alice POST /api/v1/order/ amount=0.000001&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=1000001&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=0.00001&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=1&client_order_id=a%20b&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=1&amount=2&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=100&pair=BTC_USDT&price=200&type=sell
bob POST /api/v1/order/ amount=100&pair=BTC_USDT&price=90&type=buy
- GET /api/v1/orderbook/BTC_USDT/
- GET /api/v1/orderbook/BTC_USDT/?group=1&limit_sell=1
- GET /api/v1/ticker/
- GET /api/v1/exchanges/
- GET /api/v1/exchanges/?pair=BTC_USDT&limit=2
- GET /api/v1/exchanges/?limit=2&offset=1&ordering=id
- GET /api/v1/exchanges/?before=3&ordering=-id
- GET /api/v1/exchanges/?before=0&limit=0&offset=100001&ordering=price&pair=X
alice GET /api/v1/wallets/
bob GET /api/v1/wallets/?currency_id=USDT
alice GET /api/v1/wallets/?currency_id=EUR
alice GET /api/v1/orders/own/
alice GET /api/v1/orders/own/?status=1
alice GET /api/v1/orders/own/?status=3&type=sell&pair=BTC_USDT
alice GET /api/v1/orders/own/?before=5&limit=1
alice GET /api/v1/orders/own/?offset=2&limit=2
alice GET /api/v1/orders/own/?client_order_id=a2
alice GET /api/v1/orders/own/?client_order_id=b1
alice GET /api/v1/orders/own/?before=x&client_order_id=&limit=-1&offset=x&pair=X&status=4&type=X
bob GET /api/v1/orders/own/
bob GET /api/v1/order/1/
alice GET /api/v1/order/1/
alice GET /api/v1/order/3/
bob GET /api/v1/order/7/
alice GET /api/v1/order/0/
alice GET /api/v1/order/x/
alice GET /api/v1/exchanges/own/
bob GET /api/v1/exchanges/own/?ordering=id&limit=3
bob GET /api/v1/exchanges/own/?type=buy&my_side=sell
bob GET /api/v1/exchanges/own/?my_side=buy&offset=1&before=4
bob GET /api/v1/exchanges/own/?before=x&limit=x&my_side=x&offset=x&ordering=x&pair=x&type=x
alice POST /api/v1/order-cancel/
alice POST /api/v1/order-cancel/ order=0
alice POST /api/v1/order-cancel/ order=x
alice POST /api/v1/order-cancel/ order=99
alice POST /api/v1/order-cancel/ order=1
bob POST /api/v1/order-cancel/ order=3
alice POST /api/v1/order-cancel/ order=4
alice POST /api/v1/order-cancel/ order=4
alice GET /api/v1/order/4/
bob POST /api/v1/order-cancel-all/
bob POST /api/v1/order-cancel-all/ all=0
bob POST /api/v1/order-cancel-all/ pair=BTC_EUR
bob POST /api/v1/order-cancel-all/ all=1&pair=BTC_USDT
bob POST /api/v1/order-cancel-all/ all=1
alice POST /api/v1/order-cancel-all/ pair=BTC_USDT
alice GET /api/v1/orders/own/?status=2
alice GET /api/v1/wallets/
bob GET /api/v1/wallets/
- GET /api/v1/orderbook/BTC_USDT/
`

func TestAPlainRequestKeepsItsAnswer(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T) *session{
		"pebble":   func(t *testing.T) *session { return newSession(t, "pebble:"+t.TempDir()) },
		"redis":    func(t *testing.T) *session { return newSession(t, redistest.Start(t).URL()) },
		"observer": newSessionThroughObserver,
	} {
		t.Run(name, func(t *testing.T) { keepsItsAnswer(t, begin(t)) })
	}
}

func keepsItsAnswer(t *testing.T, s *session) {
	t.Helper()
	s.play(opening)
	s.list.Reset()
	s.plain = true
	c := dial(t, s)
	c.receive() // the session
	c.send("40")
	c.receive()
	c.send(`42["subscribe","ticker","orderbook.20","diff","trades","book_BTC_USDT"]`)
	e := events{t: t, from: c, last: map[string]string{}}
	e.await(func() bool { return len(e.last) == 3 }) // the states before the first order
	s.play(plain)
	e.awaitAll(s)
	comparePermanent(t, "plain.txt", s.list.String()+e.String())
}

// events are those that a subscriber has received. Of a channel of states only the newest one
// counts, because the number of earlier states depends on the time.
type events struct {
	t                  *testing.T
	from               subscriber
	diffs, trades, own []string
	last               map[string]string // by event
}

// await receives events until enough holds.
func (e *events) await(enough func() bool) {
	e.t.Helper()
	for !enough() {
		switch name, body := event(e.t, e.from.receive()); name {
		case "depth.diff":
			e.diffs = append(e.diffs, body)
			e.last[name] = body
		case "trades":
			e.trades = append(e.trades, body)
		case "book_BTC_USDT":
			e.own = append(e.own, body)
		case "ticker", "orderbook.20":
			e.last[name] = body
		}
	}
}

// awaitAll receives events until they show the same as REST.
func (e *events) awaitAll(s *session) {
	e.t.Helper()
	var trades []json.RawMessage
	body := s.get(s.s.Listen, "/api/v1/exchanges/?limit=1000")
	succeeds(e.t, json.Unmarshal(body, &trades))
	ticker := masked(strings.Trim(string(s.get(s.s.Listen, "/api/v1/ticker/")), "[]"))
	e.await(func() bool {
		update := fmt.Sprintf(`"update_id":%d,`, len(e.own))
		return len(e.trades) == len(trades) && len(e.diffs) == len(e.own)+1 &&
			strings.Contains(e.last["depth.diff"], update) &&
			strings.Contains(e.last["orderbook.20"], update) &&
			masked(e.last["ticker"]) == ticker
	})
}

func (e *events) String() string {
	var b strings.Builder
	for _, part := range []struct {
		name   string
		events []string
	}{{"depth.diff", e.diffs}, {"trades", e.trades}, {"book_BTC_USDT", e.own},
		{"orderbook.20", []string{e.last["orderbook.20"]}},
		{"ticker", []string{e.last["ticker"]}}} {
		fmt.Fprintf(&b, "%s\n%s\n\n", part.name,
			masked(strings.Join(part.events, "\n")))
	}
	return b.String()
}
