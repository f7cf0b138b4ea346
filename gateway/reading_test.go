package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/persistence"
)

// A slowHistory is a store whose lists and lookups of the past wait at a gate, and are counted.
type slowHistory struct {
	persistence.Store
	mu       sync.Mutex
	gate     chan struct{} // queries wait until the gate is closed; nil: they do not wait
	in, most int           // queries now, and at once at most
	asked    int           // queries in all
}

func (s *slowHistory) enter() (leave func()) {
	s.mu.Lock()
	gate := s.gate
	s.in, s.asked = s.in+1, s.asked+1
	s.most = max(s.most, s.in)
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return func() {
		s.mu.Lock()
		s.in--
		s.mu.Unlock()
	}
}

// block holds queries back until the function that it returns is called.
func (s *slowHistory) block() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate, s.most = gate, 0
	return func() {
		s.mu.Lock()
		s.gate = nil
		s.mu.Unlock()
		close(gate)
	}
}

func (s *slowHistory) queries() (now, most, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in, s.most, s.asked
}

func (s *slowHistory) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	defer s.enter()()
	return s.Store.Trades(context.WithoutCancel(ctx), q, fn)
}

func (s *slowHistory) Orders(ctx context.Context, q persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	defer s.enter()()
	return s.Store.Orders(context.WithoutCancel(ctx), q, fn)
}

func (s *slowHistory) Order(ctx context.Context, account uint32, id uint64) (persistence.Order,
	error) {
	defer s.enter()()
	return s.Store.Order(context.WithoutCancel(ctx), account, id)
}

func (s *slowHistory) OrdersByID(ctx context.Context, account uint32, ids []uint64,
	fn func(*persistence.Order) bool) error {
	defer s.enter()()
	return s.Store.OrdersByID(context.WithoutCancel(ctx), account, ids, fn)
}

func (s *slowHistory) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	defer s.enter()()
	return s.Store.Deposits(context.WithoutCancel(ctx), q, fn)
}

func (s *slowHistory) Withdrawals(ctx context.Context, q persistence.WithdrawalQuery,
	fn func(*persistence.Withdrawal) bool) error {
	defer s.enter()()
	return s.Store.Withdrawals(context.WithoutCancel(ctx), q, fn)
}

func (s *slowHistory) Withdrawal(ctx context.Context, id uint64) (persistence.Withdrawal, error) {
	defer s.enter()()
	return s.Store.Withdrawal(context.WithoutCancel(ctx), id)
}

func (s *slowHistory) Candles(ctx context.Context, q persistence.CandleQuery,
	fn func(*persistence.Candle) bool) error {
	defer s.enter()()
	return s.Store.Candles(context.WithoutCancel(ctx), q, fn)
}

func (s *slowHistory) Actions(ctx context.Context, q persistence.ActionQuery,
	fn func(*persistence.Action) bool) error {
	defer s.enter()()
	return s.Store.Actions(context.WithoutCancel(ctx), q, fn)
}

// withSlowHistory is an exchange with a past that memory holds only in part. Alice has the keys
// key-0 ... key-11, so that her requests need not come in the order of one nonce.
func withSlowHistory(t *testing.T, reads int) (*harness, *slowHistory) {
	s := &slowHistory{}
	h := withHistory(t, seeded(t), 2500, func(o *actors.Options) {
		s.Store = o.Store
		o.Store, o.Limits.Reads, o.Limits.KeysPerAccount = s, reads, 100
	})
	for i := range 12 {
		h.key("alice", fmt.Sprint(i), event.AllPermissions)
	}
	return h, s
}

// crowdsTheStore sends many requests at once. Those that find a place wait for the store. All
// others are refused at once.
func (h *harness) crowdsTheStore(store *slowHistory, what string, places, requests int,
	request func(i int) answer, refused, good func(answer) bool,
) {
	t := h.t
	t.Helper()
	release := sync.OnceFunc(store.block())
	defer release()
	answers := make(chan answer, requests)
	for i := range requests {
		go func() { answers <- request(i) }()
	}
	eventually(t, "all requests without a place are answered", func() bool {
		return len(answers) >= requests-places
	})
	for range requests - places {
		if a := <-answers; !refused(a) {
			t.Errorf("%s: one of too many has %d %s%s", what, a.status, a.header, a.body)
		}
	}
	eventually(t, "the others are in the store", func() bool {
		now, _, _ := store.queries()
		return now == places
	})
	// an orderly stop waits for these
	if n := h.engine.Stats().ReadsInFlight; n != int64(places) {
		t.Errorf("%s: %d reads are in flight, want %d", what, n, places)
	}
	h.do("GET", "/api/v1/orderbook/BTC_USDT/", "", "").is(t, 200, what, "data in memory")
	release()
	for range places {
		if a := <-answers; !good(a) {
			t.Errorf("%s: %d %.300s", what, a.status, a.body)
		}
	}
	if _, most, _ := store.queries(); most != places {
		t.Errorf("%s: %d queries were in the store at once", what, most)
	}
	eventually(t, "all places are given back", func() bool {
		return h.engine.Stats().ReadsInFlight == 0
	})
}

func TestNoMoreQueriesAreInTheStoreThanReadsMayBeInFlight(t *testing.T) {
	bubble(t, testNoMoreQueriesAreInTheStoreThanReadsMayBeInFlight)
}

func testNoMoreQueriesAreInTheStoreThanReadsMayBeInFlight(t *testing.T) {
	const reads, requests = 5, 12
	h, store := withSlowHistory(t, reads)
	ask := asOperator(t, h.gateway)
	h.do("GET", "/api/v1/orderbook/BTC_USDT/", "", "").must(t, 200)
	nonce := uint64(0)
	signedBy := func(i int, params string) []string { return signed(fmt.Sprint(i), nonce, params) }
	public := func(path string) func(int) answer {
		return func(int) answer { return h.do("GET", path, "", "") }
	}
	private := func(path string) func(int) answer {
		return func(i int) answer { return h.do("GET", path, "", "", signedBy(i, "")...) }
	}
	post := func(path, params string) func(int) answer {
		return func(i int) answer {
			return h.do("POST", path, formType, params,
				signedBy(i, params)...)
		}
	}
	operating := func(path string) func(int) answer {
		return func(int) answer { return ask("GET", path, "") }
	}
	f := func(what string, request func(i int) answer, refused, good func(answer) bool) {
		t.Helper()
		nonce++
		h.crowdsTheStore(store, what, reads, requests, request, refused, good)
	}
	overloaded := func(a answer) bool {
		return a.status == 503 && a.body == detail(api.Overloaded.Detail) &&
			string(a.header.Peek("Retry-After")) == "1"
	}
	found := func(a answer) bool { return a.status == 200 && a.body != "[]" }
	for _, path := range []string{"/api/v1/exchanges/?ordering=id",
		"/api/v1/exchanges/?offset=1000", "/api/charts/BTC_USDT/1/chart?limit=2000"} {
		f(path, public(path), overloaded, found)
	}
	for _, path := range []string{"/api/v1/orders/own/", "/api/v1/exchanges/own/",
		"/api/v1/deposits/"} {
		f(path, private(path), overloaded, found)
	}
	f("withdraws", private("/api/v1/withdraws/"),
		overloaded, func(a answer) bool { return a.status == 200 })
	f("an unknown order", private("/api/v1/order/999999/"),
		overloaded, func(a answer) bool { return a.status == 404 })
	for _, path := range []string{"/operator/v1/actions", "/operator/v1/withdraws?account=alice"} {
		busy := func(a answer) bool {
			return a.status == 503 &&
				string(a.header.Peek("Retry-After")) == "1"
		}
		f(path, operating(path), busy, func(a answer) bool { return a.status == 200 })
	}
	// The reason of a refusal is less exact rather than cost another query.
	text := func(want string) func(answer) bool {
		return func(a answer) bool { return a.status == 400 && a.body == want }
	}
	f("cancel", post("/api/v1/order-cancel/", "order=999999"),
		text(`{"order":["Order is not open"]}`), text(`{"order":["Order not found"]}`))
	f("withdraw", post("/api/v1/withdraw-cancel/", "withdraw=99"),
		text(`{"withdraw":["Withdraw is not pending"]}`),
		text(`{"withdraw":["Withdraw not found"]}`))
	h.get("alice", "/api/v1/orders/own/?limit=1").is(t, 200, "afterwards")
}

// A chart asks the store only for the candles that memory lacks.
func TestAChartThatMemoryHasAsksTheStoreNothing(t *testing.T) {
	h, store := withSlowHistory(t, 100)
	v, err := h.engine.View(committed.ViewCandles, h.engine.Pairs()[0], 0, 0, 0)
	if err != nil || !v.Older {
		t.Fatalf("memory has all of the chart: %v", err)
	}
	oldest, newest := v.Candles[0].Time, v.Candles[len(v.Candles)-1].Time
	f := func(query string, args ...any) (asked bool) {
		t.Helper()
		_, _, before := store.queries()
		a := h.do("GET", "/api/charts/BTC_USDT/1/chart"+fmt.Sprintf(query, args...), "", "")
		if a.status != 200 || !strings.Contains(a.body, `"time"`) {
			t.Errorf("%s: %d %.100s", query, a.status, a.body)
		}
		_, _, after := store.queries()
		return after != before
	}
	for range 2 {
		for _, asked := range []bool{f(""), f("?limit=720"), f("?since=%d&limit=2000", oldest),
			f("?since=%d.5&limit=2000", oldest-60), f("?since=%d&limit=2000", oldest-59),
			f("?until=%d&limit=1", newest)} {
			if asked {
				t.Error("the store was queried for data in memory")
			}
		}
		for _, asked := range []bool{f("?limit=721"), f("?since=%d&limit=2000", oldest-3600*24),
			f("?until=%d", oldest-1)} {
			if !asked {
				t.Error("the store was not queried for data that only it has")
			}
		}
	}
	// Each candle is encoded once, for all ranges.
	for i := range 100 {
		f("?since=%d&until=%d&limit=%d", newest-int64(i)%60, newest+int64(i), 1+i)
	}
	api.Part(v, 0, len(v.Candles), func([]byte, int) []byte {
		t.Error("a candle was encoded twice")
		return nil
	})
}

// For all limits together, each entry of a book is encoded once for a part and once for the whole,
// and none beyond a limit.
func TestABookIsEncodedOnceHoweverItIsAskedFor(t *testing.T) {
	h := traded(t)
	for i := range 4 {
		h.post("alice", "/api/v1/order/",
			order("sell", "BTC_USDT", "0.01", fmt.Sprint(200+i))).must(t, 201)
	}
	for _, group := range []string{"0", "1"} {
		ask := func(sell, buy int) string {
			t.Helper()
			a := h.do("GET",
				fmt.Sprintf("/api/v1/orderbook/BTC_USDT/?group=%s&limit_sell=%d&limit_buy=%d",
					group, sell, buy), "", "")
			if a.status != 200 {
				t.Fatal(a)
			}
			return a.body
		}
		for i := range 100 {
			ask(100_001+i, 1_000_000-i)
		}
		v, err := h.engine.View(map[string]committed.ViewKind{"0": committed.ViewOrders,
			"1": committed.ViewLevels}[group], h.engine.Pairs()[0], 0, -1, -1)
		if err != nil {
			t.Fatal(err)
		}
		twice := func(place int) { t.Errorf("group %s: place %d was encoded twice", group, place) }
		api.Whole(v, func() []byte { twice(-1); return nil })
		made := 0
		api.Part(v, 0, 0, func([]byte, int) []byte { made++; return nil })
		short := ask(2, 1)
		for range 2 {
			for n := 1; n <= 4; n++ {
				if body := ask(n, 1); !json.Valid([]byte(body)) || n == 2 && body != short {
					t.Errorf("group %s: %d of %s", group, n, body)
				}
			}
		}
		api.Part(v, 0, 4, func(b []byte, place int) []byte { twice(place); return b })
		api.Part(v, 0, 5, func(b []byte, place int) []byte {
			if made++; place != 4 {
				t.Errorf("place %d is not the one after the last that was asked for", place)
			}
			return append(b, 'x')
		})
		if made != 1 {
			t.Errorf("group %s: %d entries were new", group, made)
		}
	}
}

// A query that was not answered in time has done nothing, and may be repeated; only a command's
// outcome is unknown.
func TestAnOperatorsQuestionWithoutAnAnswerHasNoUnknownOutcome(t *testing.T) {
	store := &tampered{}
	h := newHarness(t, func(o *actors.Options) {
		store.Store = o.Store
		o.Store, o.Timing.Request = store, time.Second
	})
	defer store.hold()()
	h.account("alice")
	a := asOperator(t, h.gateway)("GET", "/operator/v1/actions", "")
	says(t, "actions", a, 503, refusal(committed.ErrTimeout.Error()))
	if got := string(a.header.Peek("Retry-After")); got != "1" {
		t.Errorf("Retry-After is %q", got)
	}
	if id := a.header.Peek("X-Request-Id"); len(id) == 0 {
		t.Error("the log does not have it")
	}
}
