package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/prove/harness"
)

// withSlowHistory is an exchange with a past that memory holds only in part. Alice has the keys
// key-0 ... key-11, so that her requests need not come in the order of one nonce.
func withSlowHistory(t *testing.T, reads int) (*harness.Exchange, *harness.SlowHistory) {
	s := &harness.SlowHistory{}
	h := withHistory(t, harness.Seeded(t), 2500, func(o *actors.Options) {
		s.Store = o.Store
		o.Store, o.Limits.Reads, o.Limits.KeysPerAccount = s, reads, 100
	})
	for i := range 12 {
		h.Key("alice", fmt.Sprint(i), event.AllPermissions)
	}
	return h, s
}

func TestNoMoreQueriesAreInTheStoreThanReadsMayBeInFlight(t *testing.T) {
	harness.Bubble(t, testNoMoreQueriesAreInTheStoreThanReadsMayBeInFlight)
}

func testNoMoreQueriesAreInTheStoreThanReadsMayBeInFlight(t *testing.T) {
	const reads, requests = 5, 12
	h, store := withSlowHistory(t, reads)
	ask := harness.AsOperator(t, h.Gateway)
	h.Do("GET", "/api/v1/orderbook/BTC_USDT/", "", "").Must(t, 200)
	nonce := uint64(0)
	signedBy := func(i int,
		params string) []string {
		return harness.Signed(fmt.Sprint(i), nonce, params)
	}
	public := func(path string) func(int) harness.Answer {
		return func(int) harness.Answer { return h.Do("GET", path, "", "") }
	}
	private := func(path string) func(int) harness.Answer {
		return func(i int) harness.Answer { return h.Do("GET", path, "", "", signedBy(i, "")...) }
	}
	post := func(path, params string) func(int) harness.Answer {
		return func(i int) harness.Answer {
			return h.Do("POST", path, harness.FormType, params,
				signedBy(i, params)...)
		}
	}
	operating := func(path string) func(int) harness.Answer {
		return func(int) harness.Answer { return ask("GET", path, "") }
	}
	f := func(what string, request func(i int) harness.Answer, refused,
		good func(harness.Answer) bool) {
		t.Helper()
		nonce++
		h.CrowdsTheStore(store, what, reads, requests, request, refused, good)
	}
	overloaded := func(a harness.Answer) bool {
		return a.Status == 503 && a.Body == harness.Detail(api.Overloaded.Detail) &&
			string(a.Header.Peek("Retry-After")) == "1"
	}
	found := func(a harness.Answer) bool { return a.Status == 200 && a.Body != "[]" }
	for _, path := range []string{"/api/v1/exchanges/?ordering=id",
		"/api/v1/exchanges/?offset=1000", "/api/charts/BTC_USDT/1/chart?limit=2000"} {
		f(path, public(path), overloaded, found)
	}
	for _, path := range []string{"/api/v1/orders/own/", "/api/v1/exchanges/own/",
		"/api/v1/deposits/"} {
		f(path, private(path), overloaded, found)
	}
	f("withdraws", private("/api/v1/withdraws/"),
		overloaded, func(a harness.Answer) bool { return a.Status == 200 })
	f("an unknown order", private("/api/v1/order/999999/"),
		overloaded, func(a harness.Answer) bool { return a.Status == 404 })
	for _, path := range []string{"/operator/v1/actions", "/operator/v1/withdraws?account=alice"} {
		busy := func(a harness.Answer) bool {
			return a.Status == 503 &&
				string(a.Header.Peek("Retry-After")) == "1"
		}
		f(path, operating(path), busy, func(a harness.Answer) bool { return a.Status == 200 })
	}
	// The reason of a refusal is less exact rather than cost another query.
	text := func(want string) func(harness.Answer) bool {
		return func(a harness.Answer) bool { return a.Status == 400 && a.Body == want }
	}
	f("cancel", post("/api/v1/order-cancel/", "order=999999"),
		text(`{"order":["Order is not open"]}`), text(`{"order":["Order not found"]}`))
	f("withdraw", post("/api/v1/withdraw-cancel/", "withdraw=99"),
		text(`{"withdraw":["Withdraw is not pending"]}`),
		text(`{"withdraw":["Withdraw not found"]}`))
	h.Get("alice", "/api/v1/orders/own/?limit=1").Is(t, 200, "afterwards")
}

// A chart asks the store only for the candles that memory lacks.
func TestAChartThatMemoryHasAsksTheStoreNothing(t *testing.T) {
	h, store := withSlowHistory(t, 100)
	v, err := h.Engine.View(committed.ViewCandles, h.Engine.Pairs()[0], 0, 0, 0)
	if err != nil || !v.Older {
		t.Fatalf("memory has all of the chart: %v", err)
	}
	oldest, newest := v.Candles[0].Time, v.Candles[len(v.Candles)-1].Time
	f := func(query string, args ...any) (asked bool) {
		t.Helper()
		_, _, before := store.Queries()
		a := h.Do("GET", "/api/charts/BTC_USDT/1/chart"+fmt.Sprintf(query, args...), "", "")
		if a.Status != 200 || !strings.Contains(a.Body, `"time"`) {
			t.Errorf("%s: %d %.100s", query, a.Status, a.Body)
		}
		_, _, after := store.Queries()
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
	h := harness.Traded(t)
	for i := range 4 {
		h.Post("alice", "/api/v1/order/",
			harness.Order("sell", "BTC_USDT", "0.01", fmt.Sprint(200+i))).Must(t, 201)
	}
	for _, group := range []string{"0", "1"} {
		ask := func(sell, buy int) string {
			t.Helper()
			a := h.Do("GET",
				fmt.Sprintf("/api/v1/orderbook/BTC_USDT/?group=%s&limit_sell=%d&limit_buy=%d",
					group, sell, buy), "", "")
			if a.Status != 200 {
				t.Fatal(a)
			}
			return a.Body
		}
		for i := range 100 {
			ask(100_001+i, 1_000_000-i)
		}
		v, err := h.Engine.View(map[string]committed.ViewKind{"0": committed.ViewOrders,
			"1": committed.ViewLevels}[group], h.Engine.Pairs()[0], 0, -1, -1)
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
	store := &harness.Tampered{}
	h := harness.New(t, func(o *actors.Options) {
		store.Store = o.Store
		o.Store, o.Timing.Request = store, time.Second
	})
	defer store.Hold()()
	h.Account("alice")
	a := harness.AsOperator(t, h.Gateway)("GET", "/operator/v1/actions", "")
	harness.Says(t, "actions", a, 503, harness.Refusal(committed.ErrTimeout.Error()))
	if got := string(a.Header.Peek("Retry-After")); got != "1" {
		t.Errorf("Retry-After is %q", got)
	}
	if id := a.Header.Peek("X-Request-Id"); len(id) == 0 {
		t.Error("the log does not have it")
	}
}
