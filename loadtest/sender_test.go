package loadtest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"

	"exchange/gateway/sign"
	"exchange/loadtest/generator"
)

const placedAnswer = `{"success":true,"type":"sell","date":1.5,"oid":%d,"price":50000,"amount":0.5,"amount_filled":0.25,"amount_original":0.75,"trades":[{"tid":7,"type":"buy","price":49999.5,"amount":0.25,"o_id":3}]}`

func longerThan(h *hdrhistogram.Histogram, d time.Duration) (n int64) {
	for _, bar := range h.Distribution() {
		if bar.From > int64(d/time.Microsecond) {
			n += bar.Count
		}
	}
	return n
}

// A stalled server must show in the latencies of all requests that were due meanwhile, not only of
// the requests under way.
func TestAStallShowsInAllRequestsThatWereDueInIt(t *testing.T) {
	allWays(t, func(t *testing.T) {
		var requests, ids atomic.Uint64
		stalled := make(chan struct{})
		address := serve(t, func(ctx *fasthttp.RequestCtx) {
			if requests.Add(1) >= 100 {
				<-stalled
			}
			ctx.SetStatusCode(201)
			fmt.Fprintf(ctx, placedAnswer, ids.Add(1))
		})
		o := good()
		o.Addresses, o.Mix, o.Connections, o.Accounts = []string{address}, Mix{Place: 100}, 4, 4
		o.Timeout = time.Minute
		_, l := newSender(t, &o)
		const rate, behind = 2000, 300 // requests a second; how many wait before the stall ends
		ended := make(chan error, 1)
		go func() {
			ended <- l.run(generator.Phase{Schedule: generator.Steady(rate, time.Second)})
		}()
		for {
			var waiting uint64
			l.generator.Look(func(_ int, n uint64) { waiting = n })
			if waiting >= behind {
				break
			}
			select {
			case err := <-ended:
				t.Fatalf("it ended before anything waited: %v", err)
			case <-time.After(time.Millisecond):
			}
		}
		close(stalled)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		s := l.stats
		if all := s.requests + s.unsent; all < 1999 || all > 2001 {
			t.Errorf("%d requests are accounted for, 2000 were due", all)
		}
		if s.done != s.requests || s.unknown+s.refused > 0 ||
			s.all.TotalCount() != int64(s.requests) || s.waits.TotalCount() != int64(s.unsent) {
			t.Errorf("%+v, %d latencies", s.counters, s.all.TotalCount())
		}
		// Of the 300 that waited, the first did so for 150 ms, the last but 100 for 50 ms.
		n := longerThan(s.all, 50*time.Millisecond) + longerThan(s.waits, 50*time.Millisecond)
		if n < behind-100-4 {
			t.Errorf("%d requests took longer than 50 ms, %d were due in the stall", n, behind)
		}
	})
}

func TestRequestsThatCouldNotBeSentCount(t *testing.T) {
	allWays(t, func(t *testing.T) {
		release := make(chan struct{})
		address := serve(t, func(ctx *fasthttp.RequestCtx) { <-release })
		o := good()
		o.Addresses, o.Timeout = []string{address}, 100*time.Millisecond
		o.Connections, o.Accounts = 2, 2
		_, l := newSender(t, &o)
		err := l.run(generator.Phase{Schedule: generator.Steady(1000, 200*time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		close(release)
		s := l.stats
		if s.requests+s.unsent != 200 || s.unknown != s.requests || s.unknown < 2 ||
			s.kinds["no answer in time"] != s.unknown {
			t.Errorf("%+v %v", s.counters, s.kinds)
		}
		// The requests waited at least until the end of the load; the first was due 199 ms before
		// the end.
		n := longerThan(s.unknowns, 10*time.Millisecond) + longerThan(s.waits, 10*time.Millisecond)
		if n < 180 || s.all.TotalCount() > 0 {
			t.Errorf("%d of 200 waited for more than 10 ms", n)
		}
	})
}

// A strictServer checks signatures and nonces, and answers in many ways.
type strictServer struct {
	keyed  *sign.Keyed
	mu     sync.Mutex // of the fields below
	nonces map[string]uint64
	bad    []string
	id     uint64
}

func (s *strictServer) handle(ctx *fasthttp.RequestCtx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, signature, nonce := string(ctx.Request.Header.Peek("X-KEY")),
		string(ctx.Request.Header.Peek("X-SIGN")), number(ctx.Request.Header.Peek("X-NONCE"))
	if nonce <= s.nonces[key] {
		s.bad = append(s.bad, fmt.Sprintf("nonce %d of %s after %d", nonce, key, s.nonces[key]))
	}
	s.nonces[key] = nonce
	want := string(s.keyed.Sign(nil, append([]byte(key), ctx.PostBody()...)))
	if signature != want {
		s.bad = append(s.bad, fmt.Sprintf("%s %s is signed %s", ctx.Path(), ctx.PostBody(),
			signature))
	}
	s.id++
	switch string(ctx.Path()) {
	case "/api/v1/order/":
		switch {
		case s.id%10 == 0:
			ctx.SetStatusCode(400)
			ctx.SetBodyString(`{"date":1570599531.481437,"error":"Out of balance -9.99243661 BTC"}`)
		case s.id%11 == 0:
			ctx.SetStatusCode(503)
			ctx.SetBodyString(`{"detail":"Outcome unknown.","code":"outcome_unknown"}`)
		default:
			ctx.SetStatusCode(201)
			fmt.Fprintf(ctx, placedAnswer, s.id)
		}
	case "/api/v1/order-cancel/":
		if s.id%2 == 0 {
			ctx.SetStatusCode(400)
			ctx.SetBodyString(`{"order":["Order already done"]}`)
		} else {
			ctx.SetBody(ctx.PostBody())
		}
	}
}

func TestRequestsAreSignedAndTheirAnswersKept(t *testing.T) {
	allWays(t, func(t *testing.T) {
		server := &strictServer{keyed: sign.New([]byte("secret")), nonces: map[string]uint64{}}
		address := serve(t, server.handle)
		o := good()
		o.Addresses, o.Mix = []string{address}, Mix{Place: 60, Cancel: 40}
		o.Connections, o.Accounts = 3, 7
		x, l := newSender(t, &o)
		go func() { // the end is when enough has happened
			for {
				var n uint64
				l.generator.Look(func(int, uint64) { n = l.stats.requests })
				if n > 500 {
					x.stop()
					return
				}
				<-time.After(time.Millisecond)
			}
		}()
		if err := l.run(generator.Phase{Length: time.Minute}); err != nil {
			t.Fatal(err)
		}
		for _, text := range server.bad {
			t.Error(text)
		}
		var orders, unknowns, refusals, trades, cancels, late uint64
		for _, a := range x.field.accounts {
			if len(a.orders) == 0 {
				t.Errorf("%s sent nothing", a.name)
			}
			trades += uint64(len(a.trades))
			for _, o := range a.orders {
				switch {
				case o.outcome == done && o.id > 0 && o.filled == 25e6:
					orders++
				case o.outcome == unknown:
					unknowns++
				case o.outcome == refused:
					refusals++
				}
				if o.canceled && o.cancel == done {
					cancels++
				} else if o.canceled {
					late++
				}
			}
		}
		s := l.stats
		if s.done != orders+cancels || s.unknown != unknowns || s.refused != refusals ||
			s.late != late || trades != orders {
			t.Errorf("%+v: %d orders, %d unknown, %d refused, %d cancels, %d late, %d trades",
				s.counters, orders, unknowns, refusals, cancels, late, trades)
		}
		if s.kinds["400 Out of balance -N BTC"] != refusals || len(s.kinds) != 2 {
			t.Errorf("%v", s.kinds)
		}
	})
}

func TestACancelOrChangeOfAnOrderThatIsDoneIsNoRefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := good()
		o.Addresses = []string{serve(t, func(*fasthttp.RequestCtx) {})}
		_, l := newSender(t, &o)
		c := l.conns[0]
		c.user = c.users[0]
		c.user.orders = append(c.user.orders, sent{})
		for _, op := range []operation{opCancel, opAmend, opPlace} {
			l.answered(c, &item{op: op}, generator.Answer{Status: 400,
				Body: []byte(`{"order":["Order already done"]}`)}, time.Millisecond)
		}
		if s := l.stats; s.late != 2 || s.refused != 1 || s.all.TotalCount() != 2 ||
			s.kinds["400 order:Order already done"] != 1 {
			t.Errorf("%+v %v", s.counters, s.kinds)
		}
	})
}

// A server that comes again later is found again. The outcome of requests under way is unknown.
func TestBrokenConnectionsLeaveOutcomesUnknown(t *testing.T) {
	allWays(t, func(t *testing.T) {
		var requests atomic.Uint64
		address := serve(t, func(ctx *fasthttp.RequestCtx) {
			switch n := requests.Add(1); {
			case n == 50:
				ctx.HijackSetNoResponse(true)
				ctx.Hijack(nil)
				ctx.Conn().Close()
				return
			case n == 60:
				ctx.SetConnectionClose()
			}
			ctx.SetStatusCode(201)
			fmt.Fprintf(ctx, placedAnswer, requests.Load())
		})
		o := good()
		o.Addresses, o.Mix, o.Connections, o.Accounts = []string{address}, Mix{Place: 100}, 1, 1
		x, l := newSender(t, &o)
		go func() {
			for requests.Load() < 100 {
				<-time.After(time.Millisecond)
			}
			x.stop()
		}()
		if err := l.run(generator.Phase{Length: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if s := l.stats; s.unknown != 1 || s.refused != 0 || s.done != s.requests-1 {
			t.Errorf("%+v %v", s.counters, s.kinds)
		}
	})
}

// A cancel that was turned away is sent again. When that one has no outcome, the order may be
// cancelled.
func TestACancelThatIsSentAgainMayHaveNoOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := good()
		o.Addresses, o.Mix = []string{serve(t, nil)}, Mix{Place: 100}
		o.Connections, o.Accounts = 1, 1
		_, l := newSender(t, &o)
		c := l.conns[0]
		u := c.users[0]
		c.user = u
		u.orders = append(u.orders[:0], sent{id: 5, outcome: done})
		u.open = append(u.open[:0], openOrder{5, 0})
		c.items = append(c.items[:0], l.end(u))
		l.Answered(0, generator.Answer{Status: 503, Later: true}, time.Millisecond)
		if u.orders[0].canceled || len(u.open) != 1 {
			t.Errorf("turned away: %+v, open are %v", u.orders[0], u.open)
		}
		c.items = append(c.items[:0], l.end(u))
		if err := l.Broken(0, "closed", true, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if is := &u.orders[0]; !is.canceled || is.cancel != unknown {
			t.Errorf("without an outcome: %+v", is)
		}
	})
}
