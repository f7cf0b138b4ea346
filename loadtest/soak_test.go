package loadtest

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// A smallExchange accepts orders and cancels, and has metrics. It is its own operator.
type smallExchange struct {
	mu       sync.Mutex
	id       uint64
	keys     int
	deposits int
	scrapes  int
	open     map[string]bool
	growth   float64 // factor of its memory per scrape
	refuses  bool    // all orders

	stallAt uint64        // the order that it stops at; 0: none
	stalled chan struct{} // closed when it resumes
}

func (x *smallExchange) answer(ctx *fasthttp.RequestCtx) {
	switch path := string(ctx.Path()); path {
	case "/api/v1/pairs/":
		ctx.SetBodyString(somePairs)
	case "/api/v1/wallets/", "/operator/v1/accounts", "/operator/v1/keys/revoke",
		"/api/v1/order-cancel-all/":
		ctx.SetBodyString("[]")
	case "/operator/v1/keys":
		x.mu.Lock()
		x.keys++
		fmt.Fprintf(ctx, `{"key":"key-%d","secret":"secret"}`, x.keys)
		x.mu.Unlock()
	case "/operator/v1/deposits":
		x.mu.Lock()
		x.deposits++
		x.mu.Unlock()
		ctx.SetBodyString("{}")
	case "/api/v1/order/":
		x.order(ctx)
	case "/api/v1/order-cancel/":
		x.mu.Lock()
		delete(x.open, string(ctx.PostArgs().Peek("order")))
		x.mu.Unlock()
	case "/metrics":
		x.metrics(ctx)
	default:
		ctx.SetStatusCode(404)
	}
}

func (x *smallExchange) order(ctx *fasthttp.RequestCtx) {
	if x.refuses {
		ctx.SetStatusCode(400)
		ctx.SetBodyString(`{"error":"Out of balance"}`)
		return
	}
	x.mu.Lock()
	x.id++
	id := x.id
	x.open[strconv.FormatUint(id, 10)] = true
	x.mu.Unlock()
	if id == x.stallAt {
		<-time.After(300 * time.Millisecond)
		close(x.stalled)
	} else if id > x.stallAt && x.stallAt > 0 {
		<-x.stalled
	}
	ctx.SetStatusCode(201)
	fmt.Fprintf(ctx, placedAnswer, id)
}

func (x *smallExchange) metrics(ctx *fasthttp.RequestCtx) {
	x.mu.Lock()
	defer x.mu.Unlock()
	fmt.Fprintf(ctx, "# HELP process_resident_memory_bytes x\nprocess_resident_memory_bytes %g\n"+
		"exchange_open_orders %d\nexchange_orders_accepted_total %d\n",
		1e8*math.Pow(1+x.growth, float64(x.scrapes)), len(x.open), x.id)
	x.scrapes++
}

// soak loads a small exchange.
func soak(t *testing.T, x *smallExchange, change func(o *Options)) *Report {
	t.Helper()
	x.open, x.stalled = map[string]bool{}, make(chan struct{})
	o := good()
	o.Addresses = []string{serve(t, x.answer)}
	o.Operator, o.Token, o.Subscribers = o.Addresses[0], "token", nil
	o.Rate, o.Mix, o.NoVerify, o.Every = 400, Mix{60, 40, 0}, true, time.Second
	o.OpenOrders, o.Deposits, o.Timeout = 200, 20, time.Minute
	change(&o)
	return must(Run(context.Background(), o))
}

// The planted stall is found, and all requests due in it are in the distribution.
func TestAStallBreaksTheBound(t *testing.T) {
	allWays(t, func(t *testing.T) {
		r := soak(t, &smallExchange{stallAt: 400}, func(o *Options) {
			o.Rate, o.OpenOrders, o.Mix, o.Deposits = 1000, 0, Mix{100, 0, 0}, 0
			o.Stall = 100 * time.Millisecond
		})
		if len(r.Broken) != 1 ||
			!strings.Contains(r.Broken[0], "have a request of more than 100 ms") {
			t.Errorf("%q", r.Broken)
		}
		// A fifth of all was due in its first 200 ms.
		if r.Latency.Max < 290 || r.Latency.P90 < 100 {
			t.Errorf("%+v", r.Latency)
		}
		due, last := 0.0, 0.0
		for _, s := range r.Timeline {
			due += s.Asked * (s.At - last)
			last = s.At
			if s.Backlog != uint64(s.InFlight)+s.Waiting {
				t.Errorf("%+v", s)
			}
		}
		if due < 990 || due > 1010 {
			t.Errorf("by its seconds %g requests were due, and 1000 were", due)
		}
		var b strings.Builder
		if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "BROKEN stall: ") ||
			!r.Broke() {
			t.Errorf("%v %s", err, &b)
		}
	})
}

// An exchange that refuses everything has done nothing, however fast it was.
func TestRefusalsBreakTheBoundAndAreNoWorkDone(t *testing.T) {
	allWays(t, func(t *testing.T) {
		r := soak(t, &smallExchange{refuses: true}, func(o *Options) {
			o.OpenOrders, o.Mix, o.Deposits, o.AllowRefused = 0, Mix{100, 0, 0}, 0, 1
		})
		if r.Rate != 0 || r.Latency.Count != 0 || r.Requests == 0 || r.Refused != r.Requests ||
			r.Refusals.Count != int64(r.Refused) || len(r.Operations) != 0 {
			t.Errorf("%+v", r)
		}
		for _, s := range r.Timeline {
			if s.Rate != 0 || s.P99 != 0 {
				t.Errorf("%+v", s)
			}
		}
		var b strings.Builder
		if err := r.WriteText(&b); err != nil || !r.Broke() ||
			!strings.Contains(b.String(), "\n0/s done of 400/s asked for, 100 % refused\n") ||
			!strings.Contains(b.String(), "BROKEN refused: ") {
			t.Errorf("%v %s", err, &b)
		}
	})
}

// A warmup trades like the load after it, and is in no rate, percentile or row.
func TestAWarmupIsNotCounted(t *testing.T) {
	allWays(t, func(t *testing.T) {
		x := &smallExchange{}
		r := soak(t, x, func(o *Options) { o.Warmup, o.Deposits = time.Second, 0 })
		w := r.Warmup
		if w == nil || w.Requests+w.Unsent != 400 || w.Done+w.Late != w.Requests || w.Seconds <= 0 {
			t.Fatalf("%+v", w)
		}
		if r.Requests+r.Unsent != 400 || r.Latency.Count != int64(r.Requests) ||
			r.Options.Warmup != 1 || r.Pace.Sent != r.Requests {
			t.Errorf("%+v", r)
		}
		var placed int64
		for _, op := range r.Operations {
			if op.Name == operationNames[opPlace] {
				placed = op.Latency.Count
			}
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		if placed == 0 || x.id <= uint64(placed) {
			t.Errorf("%d orders were placed in all, and %d are counted", x.id, placed)
		}
		sum := uint64(0)
		for _, m := range r.Minutes {
			sum += m.Requests
		}
		if sum != r.Requests || r.Minutes[0].From != 0 || r.Timeline[0].At <= 0 {
			t.Errorf("%d requests are in %+v", sum, r.Minutes)
		}
		var b strings.Builder
		if err := r.WriteText(&b); err != nil ||
			!strings.Contains(b.String(), "\nNot counted: a warmup of ") {
			t.Errorf("%v %s", err, &b)
		}
	})
}

func TestGrowthBreaksTheBoundAndALevelDoesNot(t *testing.T) {
	for name, growth := range map[string]float64{"level": 0, "grows": 0.5} {
		t.Run(name, func(t *testing.T) {
			allWays(t, func(t *testing.T) {
				x := &smallExchange{growth: growth}
				r := soak(t, x, func(o *Options) {
					o.Duration, o.Growth = 7*time.Second, 1.2
				})
				if n := len(r.Minutes); n < firstLevel+1 || len(r.Samples) < firstLevel {
					t.Fatalf("%d rows, %d samples", n, len(r.Samples))
				}
				if growth == 0 && len(r.Broken) > 0 ||
					growth > 0 && (len(r.Broken) != 1 ||
						!strings.HasPrefix(r.Broken[0], "growth: ")) {
					t.Errorf("%q", r.Broken)
				}
				last := &r.Minutes[len(r.Minutes)-1]
				if last.Open < 200-4-4 || last.Open > 200 || last.Placed <= last.Open {
					t.Errorf("%g orders are open of %g", last.Open, last.Placed)
				}
				if b := r.Banker; b == nil || b.Deposits < 20 || b.Failed > 0 ||
					uint64(x.deposits) < b.Deposits {
					t.Errorf("%+v", b)
				}
				sum := uint64(0)
				for _, m := range r.Minutes {
					sum += m.Requests
				}
				if sum != r.Requests || r.Pace.Sent != r.Requests {
					t.Errorf("%d requests, %d in the rows, %d sent", r.Requests, sum, r.Pace.Sent)
				}
			})
		})
	}
}

// Without a verification, a load of hours takes no more memory than its open orders do.
func TestClosedOrdersAreDroppedWithoutAVerification(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var id uint64
		o := good()
		o.Addresses, o.NoVerify, o.Mix = []string{serve(t, nil)}, true, Mix{50, 50, 0}
		o.Connections, o.Accounts = 1, 1
		o.OpenOrders = 10
		x, l := newSender(t, &o)
		for range 1000 {
			c := l.conns[0]
			l.Request(0, 0)
			if c.items[0].op == opPlace {
				id++
				l.Answered(0, okAnswer(201, fmt.Sprintf(placedAnswer, id)), 0)
			} else {
				l.Answered(0, okAnswer(200, ""), 0)
			}
		}
		a := x.field.accounts[0]
		if len(a.open) < 9 || len(a.open) > 10 || len(a.orders) > 11 || len(a.trades) > 0 {
			t.Errorf("%d open, %d kept, %d trades", len(a.open), len(a.orders), len(a.trades))
		}
	})
}
