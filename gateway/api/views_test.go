package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/core/money"
	"exchange/prove/harness"
)

// book returns the model's open orders in a pair: as orders, by price, and the best prices.
func (m *model) book(pair string) (orders, levels string, buy, sell int) {
	side := func(side string) (orders, levels []string, best int) {
		var open []*listedOrder
		for _, o := range m.orders {
			if o.Pair == pair && o.Type == side && o.Status == 1 {
				open = append(open, o)
			}
		}
		slices.SortFunc(open, func(a, b *listedOrder) int {
			if side == "buy" {
				return cmp.Or(cmp.Compare(b.Price, a.Price), cmp.Compare(a.ID, b.ID))
			}
			return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.ID, b.ID))
		})
		sum := 0
		for i, o := range open {
			orders = append(orders, fmt.Sprintf(`{"price":%d,"amount":%d,"id":%d,"timestamp":T}`,
				o.Price, o.Amount, o.ID))
			if sum += o.Amount; i == len(open)-1 || open[i+1].Price != o.Price {
				levels = append(levels, fmt.Sprintf(`{"price":%d,"amount":%d}`, o.Price, sum))
				sum = 0
			}
		}
		if len(open) > 0 {
			best = open[0].Price
		}
		return orders, levels, best
	}
	sells, sellLevels, sell := side("sell")
	buys, buyLevels, buy := side("buy")
	text := func(sells, buys []string) string {
		return `{"sell":[` + strings.Join(sells, ",") + `],"buy":[` + strings.Join(buys, ",") + "]}"
	}
	return text(sells, buys), text(sellLevels[:min(100, len(sellLevels))],
		buyLevels[:min(100, len(buyLevels))]), buy, sell
}

// A client with an answer to an order sees the effect in all public answers, while others request
// the same all the time. All clients see the same bytes of one state of a book.
func TestPublicAnswersAreCurrentAfterEachOrder(t *testing.T) {
	random := harness.Seeded(t)
	h := harness.New(t, nil)
	for _, name := range []string{"alice", "bob"} {
		h.Account(name)
		for _, c := range []string{"BTC", "USDT"} {
			h.Deposit(name, "100000000", c, name+c)
		}
	}
	m, updates := &model{orders: map[uint64]*listedOrder{}}, 0
	place := func(owner, side string, amount, price int) {
		t.Helper()
		m.place(t, h, owner, side, "BTC_USDT", amount, price, "")
		updates++
	}
	for i := range 105 { // the book is deep, far from where it trades
		place("alice", "sell", 1, 1000+i)
	}
	end := readers(t, h)
	defer end()
	for range 40 {
		o := m.open(random)
		if o != nil && random.IntN(4) == 0 {
			h.Post(o.owner, "/api/v1/order-cancel/",
				"order="+strconv.FormatUint(o.ID, 10)).Must(t, 200)
			o.Status = 2
			updates++
		} else {
			place([]string{"alice", "bob"}[random.IntN(2)], []string{"buy", "sell"}[random.IntN(2)],
				1+random.IntN(9), 20+random.IntN(8))
		}
		orders, levels, buy, sell := m.book("BTC_USDT")
		for query, body := range map[string]string{"": orders,
			"?group=1&limit_sell=100&limit_buy=100": levels, "?limit_sell=2000": orders} {
			a := h.Do("GET", "/api/v1/orderbook/BTC_USDT/"+query, "", "")
			if harness.Want(t, "book"+query, a, 200,
				body); string(a.Header.Peek("X-Update-Id")) != strconv.Itoa(updates) {
				t.Fatalf("X-Update-Id is %s after %d changes", a.Header.Peek("X-Update-Id"),
					updates)
			}
		}
		var trades []marketTrade
		last := 0
		for _, x := range m.trades {
			trades = append(trades, marketTrade{int64(math.Round(x.Timestamp * 1e6)),
				money.Price(x.Price) * 1e8, money.Amount(x.Amount) * 1e8})
			last = x.Price
		}
		ticker := h.Do("GET", "/api/v1/ticker?pair=BTC_USDT", "", "").Body
		if !strings.Contains(ticker, fmt.Sprintf(`"last":%d,`, last)) ||
			!strings.HasSuffix(ticker, fmt.Sprintf(`"buy":%d,"sell":%d}]`, buy, sell)) {
			t.Fatalf("the ticker is %s, want last %d, buy %d, sell %d", ticker, last, buy, sell)
		}
		checkTicker(t, h, "BTC_USDT", trades)
		f := frames[random.IntN(len(frames))]
		checkChart(t, h, "BTC_USDT", f, candlesOf(trades, f.seconds), random)
		if t.Failed() {
			return
		}
	}
	h.Verify()
}

// open is an open order near where the book trades.
func (m *model) open(random *rand.Rand) *listedOrder {
	var list []*listedOrder
	for _, o := range m.orders {
		if o.Status == 1 && o.Price < 1000 {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *listedOrder) int { return cmp.Compare(a.ID, b.ID) })
	return list[random.IntN(len(list))]
}

// readers request everything public until the function that it returns is called.
func readers(t *testing.T, h *harness.Exchange) (end func()) {
	const book = "/api/v1/orderbook/BTC_USDT/"
	paths := []string{book, book + "?group=1&limit_sell=100", book + "?limit_buy=1&limit_sell=1",
		book + "?group=1", "/api/v1/ticker/", "/api/v1/ticker/?pair=BTC_USDT",
		"/api/charts/BTC_USDT/1/chart", "/api/charts/BTC_USDT/D/chart?limit=1",
		"/api/v1/exchanges/?limit=5"}
	var seen sync.Map // path and update id -> body
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for reader := range 2 {
		wait.Go(func() {
			newest := map[string]int{}
			for i := reader; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				path := paths[i%len(paths)]
				a := h.Do("GET", path, "", "")
				id := string(a.Header.Peek("X-Update-Id"))
				if a.Status != 200 || strings.HasPrefix(path, book) != (id != "") ||
					!json.Valid([]byte(a.Body)) {
					t.Errorf("%s: %d with X-Update-Id %q: %s", path, a.Status, id, a.Body)
					return
				}
				if id == "" {
					continue
				}
				if same, _ := seen.LoadOrStore(path+" "+id, a.Body); same != a.Body {
					t.Errorf("%s at update %s has two bodies:\n%s\n%s", path, id, same, a.Body)
				}
				n, err := strconv.Atoi(id)
				if err != nil || n < newest[path] {
					t.Errorf("%s: update %s after %d", path, id, newest[path])
				}
				newest[path] = n
			}
		})
	}
	return func() {
		close(stop)
		wait.Wait()
	}
}

// The tickers of all pairs are shared too, and are rebuilt when one of them changes or the minute
// turns.
func TestTheListOfTickersFollowsEachPair(t *testing.T) {
	h := harness.Traded(t)
	for i, pair := range harness.ListPairs[:2] {
		before := h.Do("GET", "/api/v1/ticker/", "", "").Body
		h.Post("bob", "/api/v1/order", harness.Order("buy", pair, "1", strconv.Itoa(i+2))).Must(t,
			201)
		tickers := harness.Decode[[]struct {
			Pair      string
			Buy       int
			Timestamp float64
		}](t, h.Do("GET", "/api/v1/ticker/", "", ""))
		if tickers[i].Pair != pair || tickers[i].Buy != i+2 ||
			tickers[i].Timestamp < float64(time.Now().Add(-time.Minute).Unix()) {
			t.Errorf("after a bid in %s: %+v, before %s", pair, tickers, before)
		}
	}
}
