package loadtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/sign"
	"exchange/loadtest/generator"
)

const placedAnswer = `{"success":true,"type":"sell","date":1.5,"oid":%d,"price":50000,"amount":0.5,"amount_filled":0.25,"amount_original":0.75,"trades":[{"tid":7,"type":"buy","price":49999.5,"amount":0.25,"o_id":3}]}`

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
		go func() { // stop once enough has happened
			for {
				var n uint64
				l.generator.Inspect(func(int, uint64) { n = l.stats.requests })
				if n > 500 {
					x.stop()
					return
				}
				<-time.After(time.Millisecond)
			}
		}()
		worked(t, l.run(generator.Phase{Length: time.Minute}))
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
				if o.cancelSent && o.cancelOutcome == done {
					cancels++
				} else if o.cancelSent {
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

func TestACancelOrChangeOfADoneOrderIsNoRefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := good()
		o.Addresses = []string{serve(t, func(*fasthttp.RequestCtx) {})}
		_, l := newSender(t, &o)
		c := l.conns[0]
		c.user = c.users[0]
		c.user.orders = append(c.user.orders, sentOrder{})
		for _, op := range []operation{opCancel, opAmend, opPlace} {
			l.answered(c, &item{op: op}, generator.Answer{Status: 400,
				Body: []byte(`{"order":["Order already done"]}`)}, time.Millisecond)
		}
		if s := l.stats; s.late != 2 || s.refused != 1 || s.all.TotalCount() != 0 ||
			s.lates.TotalCount() != 2 || s.kinds["400 order:Order already done"] != 1 {
			t.Errorf("%+v %v", s.counters, s.kinds)
		}
	})
}

// Substitutes for requests of the mix are counted.
func TestSubstitutesForTheMixAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, x := range []struct {
			mix             Mix
			open            int
			op              operation
			cancels, orders uint64
		}{
			{Mix{Place: 100}, mostOpen - 1, opPlace, 0, 0},
			{Mix{Place: 100}, mostOpen, opCancel, 1, 0},
			{Mix{Cancel: 100}, 1, opCancel, 0, 0},
			{Mix{Cancel: 100}, mostOpen, opCancel, 0, 0},
			{Mix{Cancel: 100}, 0, opPlace, 0, 1},
		} {
			o := good()
			o.Addresses, o.Mix, o.Accounts, o.Connections = []string{serve(t, nil)}, x.mix, 1, 1
			_, l := newSender(t, &o)
			u := l.conns[0].users[0]
			u.open = slices.Repeat([]openOrder{{7, -1}}, x.open)
			l.Request(0, 0)
			if s := l.stats; l.conns[0].items[0].op != x.op || s.cancelsInstead != x.cancels ||
				s.ordersInstead != x.orders {
				t.Errorf("%+v: it sends %d: %+v", x, l.conns[0].items[0].op, s.counters)
			}
		}
	})
}

// A refused cancel is sent again. When that one has no outcome, the order may be cancelled.
func TestACancelThatIsSentAgainMayHaveNoOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := good()
		o.Addresses, o.Mix = []string{serve(t, nil)}, Mix{Place: 100}
		o.Connections, o.Accounts = 1, 1
		_, l := newSender(t, &o)
		c := l.conns[0]
		u := c.users[0]
		c.user = u
		u.orders = append(u.orders[:0], sentOrder{id: 5, outcome: done})
		u.open = append(u.open[:0], openOrder{5, 0})
		c.items = append(c.items[:0], l.end(u))
		l.Answered(0, generator.Answer{Status: 503, Later: true}, time.Millisecond)
		if u.orders[0].cancelSent || len(u.open) != 1 {
			t.Errorf("turned away: %+v, open are %v", u.orders[0], u.open)
		}
		c.items = append(c.items[:0], l.end(u))
		worked(t, l.Broken(0, "closed", true, time.Millisecond))
		if is := &u.orders[0]; !is.cancelSent || is.cancelOutcome != unknown {
			t.Errorf("without an outcome: %+v", is)
		}
	})
}
