package loadtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

	"exchange/core/money"
)

// A liar is a server with one account and a test's answers.
type liar struct {
	mu       sync.Mutex
	orders   []string // newest first
	byClient map[string]string
	trades   []string
	maker    string // the rate of its fee
	wallets  string
	book     string
	update   string
	audit    string
}

func (s *liar) answer(ctx *fasthttp.RequestCtx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := func(rows []string) { ctx.SetBodyString("[" + strings.Join(rows, ",") + "]") }
	switch path := string(ctx.Path()); {
	case path == "/api/v1/orders/own/" && ctx.QueryArgs().Has("client_order_id"):
		if row := s.byClient[string(ctx.QueryArgs().Peek("client_order_id"))]; row != "" {
			list([]string{row})
		} else {
			list(nil)
		}
	case path == "/api/v1/orders/own/":
		list(s.orders)
	case path == "/api/v1/exchanges/own/":
		list(s.trades)
	case path == "/api/v1/wallets/":
		ctx.SetBodyString(s.wallets)
	case path == "/api/v1/fees/":
		fmt.Fprintf(ctx, `[{"pair":"BTC_USDT","maker":%s,"taker":0.002}]`, s.maker)
	case strings.HasPrefix(path, "/api/v1/orderbook/"):
		ctx.Response.Header.Set("X-Update-Id", s.update)
		ctx.SetBodyString(s.book)
	case path == "/operator/v1/audit":
		ctx.SetBodyString(`{"at":1,"of":2}` + "\n" + s.audit + "\n")
	default:
		ctx.SetStatusCode(404)
	}
}

const price, lot = money.Price(500e8), money.Amount(1e8)

// honest returns a server and a client's state. The client has a partly traded sale, a cancelled
// purchase, a refused order, and two orders without an outcome, one of which is in.
func honest() (*liar, *account) {
	a := &account{name: "loadtest-1",
		before: funds{"BTC": {balance: balance("100")}, "USDT": {balance: balance("100000")}}}
	newUser(a, 0, Key{"key", "secret"}, 0)
	a.feesBefore = map[string]money.Rate{"BTC_USDT": 0.001e8}
	a.newest.order, a.newest.trade = 9, 4
	a.orders = []sentOrder{
		{id: 10, price: price, amount: 3 * lot, filled: lot, outcome: done, serial: 1},
		{id: 11, price: price - 100e8, amount: lot, buy: true, outcome: done, cancelSent: true,
			cancelOutcome: done, serial: 2},
		{price: price, amount: lot, outcome: refused, serial: 3},
		{price: price, amount: lot, outcome: unknown, serial: 4},
		{price: price + 100e8, amount: lot, outcome: unknown, serial: 5},
	}
	a.trades = []takerTrade{{id: 5, maker: 7, price: price, amount: lot}}
	const row = `{"id":%d,"pair":"BTC_USDT","type":"%s","status":%d,"price":%d,"amount":%d,"amount_filled":%d,"amount_original":%d,"date":1,"client_order_id":"lt0-0-%d"}`
	in := fmt.Sprintf(row, 12, "sell", 1, 600, 1, 0, 1, 5)
	s := &liar{
		orders: []string{in, fmt.Sprintf(row, 11, "buy", 2, 400, 1, 0, 1, 2),
			fmt.Sprintf(row, 10, "sell", 1, 500, 2, 1, 3, 1),
			`{"id":9,"pair":"OLD_PAIR","type":"buy","status":3,"price":1,"amount":0,"amount_filled":1,"amount_original":1}`},
		byClient: map[string]string{"lt0-0-5": in},
		trades: []string{
			`{"id":5,"price":500,"pair":"BTC_USDT","type":"sell","timestamp":1.5,"amount":1,"my_side":"sell","fee":1,"fee_currency":"USDT"}`,
			`{"id":4,"price":500,"pair":"OLD_PAIR","type":"sell","timestamp":1.5,"amount":1,"my_side":"sell","fee":1,"fee_currency":"USDT"}`},
		wallets: `[{"currency":"BTC","balance":99,"reserve":3},{"currency":"USDT","balance":100499,"reserve":0}]`,
		book:    `{"sell":[{"price":500,"amount":2},{"price":600,"amount":1}],"buy":[]}`,
		update:  "3",
		maker:   "0.001",
		audit:   `{"end":{"sequence":1,"differences":[]}}`,
	}
	return s, a
}

func balance(text string) money.Balance {
	b, err := parseBalance([]byte(text))
	if err != nil {
		panic(err)
	}
	return b
}

// stream returns a subscriber with the book of the honest server.
func stream(t *testing.T) *subscriber {
	s := &subscriber{channel: "diff", keeps: true, books: map[string]*localBook{},
		last: map[string]uint64{}}
	tell(t, s,
		`{"pair":"BTC_USDT","update_id":1,"prev_update_id":null,"snapshot":true,"timestamp":1.5,"sell":[{"price":500,"amount":3}],"buy":[]}`)
	tell(t, s,
		`{"pair":"BTC_USDT","update_id":2,"prev_update_id":1,"timestamp":1.5,"sell":[{"price":500,"amount":2},{"price":600,"amount":1}],"buy":[{"price":400,"amount":1}]}`)
	tell(t, s,
		`{"pair":"BTC_USDT","update_id":3,"prev_update_id":2,"timestamp":1.5,"sell":[],"buy":[{"price":400,"amount":0}]}`)
	return s
}

func tell(t *testing.T, s *subscriber, diff string) {
	t.Helper()
	worked(t, s.event([]byte(`"depth.diff",`+diff+"]")))
}

func check(t *testing.T, s *liar, a *account, x *subscriber) *Verification {
	t.Helper()
	a.pairs = testPairs(t)[:1]
	v := at(t, a, serve(t, s.answer))
	result := v.verify(&subscribers{all: []*subscriber{x}}, func(string, ...any) {})
	v.audit()
	return result
}

func TestAnHonestServerHasNoDifferences(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, a := honest()
		v := check(t, s, a, stream(t))
		if v.Found > 0 || v.Incomplete != "" {
			t.Error(v.Differences, v.Incomplete)
		}
		if v.Orders != 3 || v.Cancels != 1 || v.Trades != 1 || v.Accounts != 1 ||
			v.UnknownIn != 1 || v.UnknownOut != 1 || v.Books != 1 ||
			v.Updates != 3 || v.Audit != "clean" {
			t.Errorf("%+v", v)
		}
	})
}

func TestEveryLieIsFoundAndNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		change := func(rows []string, i int, old, now string) {
			if !strings.Contains(rows[i], old) {
				t.Fatalf("%s has no %s", rows[i], old)
			}
			rows[i] = strings.Replace(rows[i], old, now, 1)
		}
		for name, test := range map[string]struct {
			lie func(s *liar, a *account)
			say string
		}{
			"a missing order": {func(s *liar, a *account) {
				s.orders = append(s.orders[:2], s.orders[3])
			}, "order 10 (lt0-0-1) was acknowledged, and is missing"},
			"an order of another price": {func(s *liar, a *account) {
				change(s.orders, 2, `"price":500`, `"price":501`)
			},
				"order 10 (lt0-0-1) was sent as sell 3 BTC_USDT at 500, and is there as sell 3 " +
					"BTC_USDT at 501"},
			"an order of another side": {func(s *liar, a *account) {
				change(s.orders, 2, "sell", "buy")
			}, "is there as buy 3"},
			"an order of another pair": {func(s *liar, a *account) {
				change(s.orders, 2, "BTC_USDT", "ETH_BTC")
			}, "is there as sell 3 ETH_BTC"},
			"a fill that is taken back": {func(s *liar, a *account) {
				change(s.orders, 2, `"amount_filled":1`, `"amount_filled":0`)
			}, "1 were filled when it was placed, and now it says 0"},
			"a rest that does not add up": {func(s *liar, a *account) {
				change(s.orders, 2, `"amount":2`, `"amount":1`)
			}, "of order 10 (lt0-0-1) of 3, 1 are filled and 1 remain"},
			"a lost cancel": {func(s *liar, a *account) {
				change(s.orders, 1, `"status":2`, `"status":1`)
			}, "the cancel of order 11 (lt0-0-2) was acknowledged, and its status is 1"},
			"a cancel of nobody's": {func(s *liar, a *account) {
				change(s.orders, 2, `"status":1`, `"status":2`)
			}, "order 10 (lt0-0-1) is cancelled, and no cancel was acknowledged"},
			"done, and something is left": {func(s *liar, a *account) {
				change(s.orders, 2, `"status":1`, `"status":3`)
			}, "has status 3, and 2 of it remain"},
			"a refused order that is there": {func(s *liar, a *account) {
				change(s.orders, 0, "lt0-0-5", "lt0-0-3")
			}, "order lt0-0-3 was refused, and is there with id 12"},
			"an order of nobody's": {func(s *liar, a *account) {
				change(s.orders, 0, "lt0-0-5", "else")
				delete(s.byClient, "lt0-0-5")
			}, "order 12 (else) is there, and this test has not sent it"},
			"a missing trade": {func(s *liar, a *account) { s.trades = nil },
				"trade 5 was acknowledged, and is missing"},
			"a trade of another amount": {func(s *liar, a *account) {
				change(s.trades, 0, `"amount":1`, `"amount":0.5`)
			}, "trade 5 was acknowledged as sell 1 BTC_USDT at 500, and is there as sell 0.5"},
			"a trade without an order": {func(s *liar, a *account) {
				s.trades = append([]string{strings.Replace(s.trades[0], `"id":5`, `"id":6`, 1)},
					s.trades...)
			}, "of its orders to sell BTC_USDT, 1 are filled, and its trades have 2"},
			"a wrong balance": {func(s *liar, a *account) {
				s.wallets = strings.Replace(s.wallets, "100499", "100499.0000000000000001", 1)
			}, "its balance is 100499.0000000000000001 USDT"},
			"a missing wallet": {func(s *liar, a *account) {
				s.wallets = `[{"currency":"USDT","balance":100499,"reserve":0}]`
			}, "its balance is 0 BTC"},
			"a wrong reserve": {func(s *liar, a *account) {
				s.wallets = strings.Replace(s.wallets, `"reserve":3`, `"reserve":2`, 1)
			}, "2 BTC are reserved, and its open orders hold 3"},
			"a wrong book": {func(s *liar, a *account) {
				s.book = strings.Replace(s.book, `"amount":2`, `"amount":3`, 1)
			},
				"the book of BTC_USDT at update 3: at 500 to sell the local book has 2, and the " +
					"REST book 3"},
			"a level too few": {func(s *liar, a *account) {
				s.book = `{"sell":[{"price":500,"amount":2}],"buy":[]}`
			}, "at 600 to sell the local book has 1, and the REST book nothing"},
			"books that the server itself doubts": {func(s *liar, a *account) {
				s.audit = `{"end":{"sequence":1,"differences":["a hole"]}}`
			}, "the audit says: a hole"},
		} {
			s, a := honest()
			test.lie(s, a)
			v := check(t, s, a, stream(t))
			if v.Found == 0 || !strings.Contains(strings.Join(v.Differences, "\n"), test.say) {
				t.Errorf("%s: %d differences, none says %q: %q %s", name, v.Found, test.say,
					v.Differences, v.Incomplete)
			}
		}
	})
}

// selfTrade returns a server and a client whose two orders traded with each other.
func selfTrade(t *testing.T) (*liar, *account, *subscriber) {
	s, a := honest()
	a.orders = []sentOrder{{id: 10, price: price, amount: lot, outcome: done, serial: 1},
		{id: 11, price: price, amount: lot, buy: true, filled: lot, outcome: done, serial: 2}}
	a.trades = []takerTrade{{id: 5, maker: 10, price: price, amount: lot, buy: true}}
	const row = `{"id":%d,"pair":"BTC_USDT","type":"%s","status":3,"price":500,"amount":0,"amount_filled":1,"amount_original":1,"client_order_id":"lt0-0-%d"}`
	s.orders = []string{fmt.Sprintf(row, 11, "buy", 2), fmt.Sprintf(row, 10, "sell", 1)}
	s.trades = []string{
		`{"id":5,"price":500,"pair":"BTC_USDT","type":"buy","amount":1,"my_side":"buy","fee":0.002,"fee_currency":"BTC"}`}
	s.wallets = `[{"currency":"BTC","balance":99.998,"reserve":0},{"currency":"USDT","balance":99999.5,"reserve":0}]`
	s.book = `{"sell":[],"buy":[]}`
	x := stream(t)
	tell(t, x,
		`{"pair":"BTC_USDT","update_id":4,"prev_update_id":3,"timestamp":1.5,"sell":[{"price":500,"amount":0},{"price":600,"amount":0}],"buy":[]}`)
	s.update = "4"
	return s, a, x
}

// A self-trade moves nothing but fees. If they changed, it is unknown which of two fees it paid, so
// the one balance that they are in is not verified. All others are.
func TestFeesThatChangeInATestAreNoDamage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, a, x := selfTrade(t)
		v := check(t, s, a, x)
		if v.Found > 0 || v.Incomplete != "" || v.Accounts != 1 {
			t.Errorf("%+v", v)
		}
		s, a, x = selfTrade(t)
		s.maker = "0.003"
		v = check(t, s, a, x)
		if v.Found > 0 || v.Incomplete != "" || v.Accounts != 0 || !slices.Equal(v.NotChecked,
			[]string{"1 times: the balance in USDT of an account that traded BTC_USDT with " +
				"itself, while its maker's fee changed from 0.001 to 0.003"}) {
			t.Errorf("%+v", v)
		}
		s, a, x = selfTrade(t)
		s.maker = "0.003"
		s.wallets = strings.Replace(s.wallets, "99.998", "99.997", 1)
		if v := check(t, s, a, x); v.Found != 1 || !strings.Contains(v.Differences[0],
			"its balance is 99.997 BTC") {
			t.Errorf("%+v", v)
		}
		s, a = honest() // without a trade with itself a balance does not depend on the maker's fee
		s.maker = "0.003"
		if v := check(t, s, a, stream(t)); v.Found > 0 || v.Accounts != 1 || len(v.NotChecked) > 0 {
			t.Errorf("%+v", v)
		}
	})
}

func TestAGapInTheStreamIsFoundAndNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, x := range map[string]struct{ event, say string }{
			"a gap": {
				`{"pair":"BTC_USDT","update_id":5,"prev_update_id":4,"sell":[],"buy":[]}`,
				"the stream of BTC_USDT is not dense: update 5, which says that it follows 4, " +
					"comes after update 3"},
			"a step of two": {
				`{"pair":"BTC_USDT","update_id":5,"prev_update_id":3,"sell":[],"buy":[]}`, "not dense"},
			"a repeat": {
				`{"pair":"BTC_USDT","update_id":3,"prev_update_id":2,"sell":[],"buy":[]}`, "not dense"},
			"no update before": {
				`{"pair":"BTC_USDT","update_id":4,"prev_update_id":null,"sell":[],"buy":[]}`,
				"not dense"},
			"a book of before": {
				`{"pair":"BTC_USDT","update_id":2,"prev_update_id":null,"snapshot":true,"sell":[],"buy":[]}`,
				"a whole book of update 2 comes after update 3"},
			"a trade of before": {"", "trade 7 of BTC_USDT comes after trade 7"},
		} {
			s := stream(t)
			if x.event == "" {
				for range 2 {
					worked(t, s.event([]byte(`"trades",{"id":7,"pair":"BTC_USDT"}]`)))
				}
			} else {
				tell(t, s, x.event)
			}
			if len(s.wrong) != 1 || !strings.Contains(s.wrong[0], x.say) {
				t.Errorf("%s: %q", name, s.wrong)
			}
		}
		// A whole book in place of changes that did not fit is no gap.
		s := stream(t)
		tell(t, s,
			`{"pair":"BTC_USDT","update_id":9,"prev_update_id":null,"snapshot":true,"sell":[],"buy":[]}`)
		if len(s.wrong) > 0 || s.wholes.Load() != 1 {
			t.Error(s.wrong, s.wholes.Load())
		}
		// A difference of the stream is one of the test.
		l, a := honest()
		s = stream(t)
		s.note("the stream of %s is not dense", "BTC_USDT")
		if v := check(t, l, a, s); v.Found != 1 {
			t.Error(v.Differences)
		}
	})
}
