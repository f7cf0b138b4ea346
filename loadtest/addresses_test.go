package loadtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/loadtest/generator"
)

// nowhere returns an address without a listener.
func nowhere() string {
	l := network.Listen("")
	l.Close()
	return l.Addr().String()
}

func TestConnectionsAreSpreadEvenlyAndThoseOfAnAccountDiffer(t *testing.T) {
	for _, x := range []struct{ addresses, accounts, connections int }{
		{1, 4, 9}, {2, 4, 8}, {3, 3, 9}, {3, 8, 16}, {3, 100, 7}, {4, 8, 64}, {5, 1, 10},
	} {
		o := Options{Addresses: make([]string, x.addresses), Accounts: x.accounts}
		at := make([]int, x.addresses)
		for i := range x.connections {
			at[o.addressOf(i)]++
		}
		if slices.Max(at)-slices.Min(at) > 1 {
			t.Errorf("%+v: %v", x, at)
		}
		for a := range min(x.accounts, x.connections) {
			if b := a + x.accounts; b < x.connections && x.addresses > 1 &&
				o.addressOf(a) == o.addressOf(b) {
				t.Errorf("%+v: connections %d and %d go to one address", x, a, b)
			}
		}
	}
}

// at returns a verifier of an account whose orders went to the first of these addresses.
func at(t *testing.T, a *account, addresses ...string) *verifier {
	t.Helper()
	r := newRest(&Options{Addresses: addresses, Operator: addresses[0]})
	r.patience = time.Millisecond
	f := &field{pairs: testPairs(t)[:1], accounts: []*account{a}}
	v := newVerifier(context.Background(), r, f, "lt0", r.answering(context.Background()))
	v.pause = time.Millisecond
	return v
}

func TestOrdersAcknowledgedAtOneAddressAreReadAtAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one, a := honest()
		other, _ := honest()
		first, second := serve(t, one.answer), serve(t, other.answer)
		say := func(string, ...any) {}
		v := at(t, a, first, second)
		r := v.verify(&subscribers{all: []*subscriber{stream(t)}}, say)
		if r.Found > 0 || r.Incomplete != "" || r.Orders != 3 || r.Across != 3 || r.Alike != 1 ||
			r.Books != 1 || r.Accounts != 1 || len(r.NotRead) > 0 ||
			!slices.Equal(v.read, []uint64{0, 1}) {
			t.Errorf("%+v, read %v", r, v.read)
		}

		// An account used at both is read at both, and counts once.
		newUser(a, 1, Key{"other", "secret"}, 0).at = 1
		a.orders[1].at = 1
		v = at(t, a, first, second)
		r = v.verify(nil, say)
		if r.Found > 0 || r.Incomplete != "" || r.Orders != 3 || r.Across != 3 || r.Accounts != 1 ||
			!slices.Equal(v.read, []uint64{1, 1}) {
			t.Errorf("%+v, read %v", r, v.read)
		}

		// A row missing at the other one is a difference, although the first one has it.
		a.users = a.users[:1]
		other.orders = append(slices.Clone(other.orders[:2]), other.orders[3])
		other.book = `{"sell":[{"price":600,"amount":1}],"buy":[]}`
		r = at(t, a, first, second).verify(nil, say)
		text := strings.Join(r.Differences, "\n")
		for _, say := range []string{"order 10 (lt0-0-1) was acknowledged, and is missing " +
			"(read at " + second, "the book of BTC_USDT is at update 3 "} {
			if !strings.Contains(text, say) {
				t.Errorf("%q is not said in %q", say, text)
			}
		}
		if r.Alike != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestAnAddressThatDoesNotAnswerIsSkippedAndReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, a := honest()
		x := stream(t)
		x.at = 1
		gone := nowhere()
		for _, late := range []bool{false, true} {
			v := at(t, a, serve(t, s.answer), gone)
			if late { // it dies during the verification
				v.alive = []int{0, 1}
			}
			r := v.verify(&subscribers{all: []*subscriber{x}}, func(string, ...any) {})
			if r.Found > 0 || r.Incomplete != "" || r.Orders != 3 || r.Across != 0 ||
				r.Books != 0 || !slices.Equal(r.NotRead, []string{gone}) || len(r.NotChecked) != 1 {
				t.Errorf("late %t: %+v", late, r)
			}
		}
		v := at(t, a, gone, nowhere())
		if r := v.verify(nil, func(string, ...any) {}); r.Incomplete == "" {
			t.Errorf("%+v", r)
		}
	})
}

// The load continues at one address while the other one refuses requests, or closes connections.
// The outcome of a request in flight is unknown then, and the address is used again.
func TestTheOutcomesOfEachAddressAreCountedAndWhenItDoesNotServe(t *testing.T) {
	allWays(t, func(t *testing.T) {
		const fine, refused, all = 20, 10, 60
		accepts := func(ctx *fasthttp.RequestCtx) {
			ctx.SetStatusCode(201)
			fmt.Fprintf(ctx, placedAnswer, 7)
		}
		var requests atomic.Uint64
		first, second := serve(t, accepts), serve(t, func(ctx *fasthttp.RequestCtx) {
			switch n := requests.Add(1); {
			case n <= fine || n > fine+refused+1:
				accepts(ctx)
				if n == all-10 {
					ctx.SetConnectionClose()
				}
			case n <= fine+refused:
				ctx.SetStatusCode(503)
				ctx.Response.Header.Set("Retry-After", "1")
			default:
				ctx.HijackSetNoResponse(true)
				ctx.Hijack(nil)
				ctx.Conn().Close()
			}
		})
		o := good()
		o.Addresses, o.Mix = []string{first, second}, Mix{Place: 100}
		o.Connections, o.Accounts = 2, 2
		x, l := newSender(t, &o)
		go func() {
			for requests.Load() < all {
				<-time.After(time.Millisecond)
			}
			x.stop()
		}()
		worked(t, l.run(generator.Phase{Length: time.Minute}))
		r := x.newReport()
		r.setMeasurements(x, l.stats, time.Second, 0)
		a, b := r.Addresses[0], r.Addresses[1]
		if a.Address != first || a.Connections != 1 || a.Done == 0 || a.Done != a.Requests ||
			a.Down != 0 || len(a.Outages) > 0 {
			t.Errorf("%+v", a)
		}
		if b.Address != second || b.Refused != refused || b.Unknown != 1 ||
			b.Done+refused+1 != b.Requests || b.Requests < all || b.Down == 0 {
			t.Errorf("%+v", b)
		}
		if s := l.stats; s.requests != a.Requests+b.Requests || s.refused != refused ||
			s.unknown != 1 {
			t.Errorf("%+v", s.counters)
		}
	})
}

// Short outages count, and are not listed; one that has not ended is marked.
func TestOutagesAreBoundedAndTheLastOneMayBeOpen(t *testing.T) {
	o := good()
	x := &test{o: &o, base: time.Now(), field: &field{}, availability: []*availability{{}}}
	r := x.availability[0]
	end := func(took time.Duration) {
		r.noteFailure()
		r.since = x.base
		r.endLocked(x.base.Add(took))
		r.isDown.Store(false)
	}
	end(shortestOutage / 2)
	for range mostOutages + 2 {
		end(shortestOutage)
	}
	a := x.addresses(x.newStats(), time.Second)[0]
	if len(a.Outages) != mostOutages || a.MoreOutages != 2 || a.Outages[mostOutages-1].AtEnd ||
		a.Outages[0] != (Outage{From: 0, To: 0.1}) || int(a.Down*1000+0.5) != 10_250 {
		t.Errorf("%+v", a)
	}
	x.availability[0] = &availability{}
	x.availability[0].noteFailure()
	x.availability[0].since = time.Now().Add(-time.Hour)
	a = x.addresses(x.newStats(), time.Second)[0]
	if len(a.Outages) != 1 || !a.Outages[0].AtEnd || a.Down < 3600 {
		t.Errorf("%+v", a)
	}
}

// An order missing at another address after its acknowledgement is a difference; an address that
// does not answer proves nothing.
func TestAnOrderThatAnotherAddressDoesNotShowAtOnceIsADifference(t *testing.T) {
	bubble(t, func(t *testing.T) {
		good := func(id, filled string) fasthttp.RequestHandler {
			return func(ctx *fasthttp.RequestCtx) {
				ctx.SetBodyString(`{"id":` + id + `,"amount_filled":` + filled + `}`)
			}
		}
		a := &account{name: "loadtest-1",
			witnessUser: newUser(&account{}, 0, Key{"key", "secret"}, 0)}
		order := seen{account: a, id: 7, filled: lot}
		for say, handler := range map[string]fasthttp.RequestHandler{
			"": good("7", "1"),
			"order 7 was acknowledged at 127.0.0.1:1, and then it was not there": func(
				ctx *fasthttp.RequestCtx) {
				ctx.SetStatusCode(404)
			},
			"then order 8":    good("8", "1"),
			"with 0.5 filled": good("7", "0.5"),
			"no answer":       nil,
		} {
			o := &Options{Addresses: []string{"127.0.0.1:1", nowhere()}}
			if handler != nil {
				o.Addresses[1] = serve(t, handler)
			}
			r := newRest(o)
			r.patience = 0
			w := startWitness(context.Background(), &test{o: o, rest: r})
			w.check(context.Background(), order, 1)
			w.end()
			v := newVerifier(context.Background(), r, &field{}, "lt0", []int{0, 1})
			w.addTo(v)
			found := strings.Join(v.result.Differences, " ")
			switch {
			case handler == nil && (v.result.Witnessed != 0 || found != ""),
				handler != nil && say == "" && (v.result.Witnessed != 1 || found != ""),
				handler != nil && say != "" && !strings.Contains(found, say):
				t.Errorf("%q: %d, %q", say, v.result.Witnessed, found)
			}
		}
	})
}
