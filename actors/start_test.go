package actors

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
)

// A process whose configuration lacks a traded pair cannot serve. So it must not end the serving
// one.
func TestAStartWithAnotherConfigurationEndsNoOtherEngine(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		if g.Exclusive() {
			g.end()
			return // no other engine serves
		}
		less := g.o
		less.Pairs = less.Pairs[1:]
		refused := func(when string) {
			t.Helper()
			if _, err := Start(context.Background(), less); !errors.Is(err, ErrConfig) {
				t.Errorf("%s: the start ends with %v", when, err)
			}
			g.ends(when+": an order at the one that serves", g.placing(g.sell(coin)), accepted)
		}
		order := g.rest(g.sell(coin))
		refused("with an order that no snapshot has")
		g.end()
		g.again() // with a snapshot
		less.Store = g.o.Store
		refused("with orders in a snapshot")

		// Orders of a snapshot may be closed since. Then the start takes over, and the first one
		// ends.
		g.nonce++
		must[*Command](t)(g.e.CancelAll(g.key, g.nonce, CancelFilter{})).Free()
		second, err := Start(context.Background(), less)
		if err != nil {
			t.Fatalf("all orders of the pair are cancelled, first of all %d: %v", order, err)
		}
		<-g.e.Dead()
		if !errors.Is(g.e.Err(), persistence.ErrFenced) {
			t.Errorf("the first one ends with %v", g.e.Err())
		}
		g.e.Abandon()
		second.Abandon()
		g.close()
	})
}

// An append of the start has the same patience as others, and its error names its records.
func TestAStartWhoseRecordsAreNotAcceptedEnds(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.end()
		s := newGate(g.at())
		defer s.Close()
		o := g.o
		o.Store, o.Timing.StallMax = s, time.Millisecond
		o.Currencies = append(o.Currencies, directory.Currency{Code: "XYZ"})
		for err, want := range map[error]error{errors.New("out of memory"): ErrStalled,
			persistence.ErrInvalid: persistence.ErrInvalid} {
			s.set(func() { s.appendErr = err })
			if _, got := Start(context.Background(), o); !errors.Is(got, want) ||
				!strings.Contains(got.Error(), err.Error()) {
				t.Errorf("%v: the start ends with %v", err, got)
			}
		}
	})
}

// Cancel-alls of many accounts have at most InFlight cancels in flight together, and one for each.
func TestCancelAllsShareTheirSlots(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		const most, accounts, orders = 6, 4, 10
		g := newGated(t, fresh, func(o *Options) {
			o.Limits.InFlight, o.Limits.InFlightCancels, o.Limits.InFlightPerAccount = most, 1, most
		})
		var keys []*directory.Key
		for i := range accounts {
			key := fund(t, g.e, string(rune('a'+i))+"-orders", map[string]money.Amount{"BTC": coin})
			for n := range orders {
				must[*Command](t)(g.e.Place(key, uint64(n+1), g.sell(1e5))).Free()
			}
			keys = append(keys, key)
		}
		g.hold()
		var answers []<-chan string
		for _, key := range keys {
			answers = append(answers, g.begin(func() (*Command, error) {
				return g.e.CancelAll(key, orders+1, CancelFilter{})
			}))
		}
		out := func() (sum int) {
			for _, key := range keys {
				g.e.probeWallet(key.Account, func(w *wallet) {
					if w.flight != nil && w.cancellingAll != nil {
						sum += w.cancellingAll.out
					}
				})
			}
			return sum
		}
		eventually(t, "all slots are taken", func() bool {
			return out() == most+accounts || out() == accounts*orders
		})
		if n := out(); n != most+accounts {
			t.Errorf("%d cancels are in flight", n)
		}
		g.letGo()
		for _, done := range answers {
			wantOutcome(t, "done", <-done, accepted)
		}
		if left := g.e.extraCancels.Load(); left != 0 {
			t.Errorf("%d slots are not returned", left)
		}
		g.end()
	})
}

func TestAJumpOfTheClockIsSeenOnce(t *testing.T) {
	var w clockWatch
	for i, c := range []struct {
		wall, monotonic int64
		want            time.Duration
	}{{1000, 10, 0}, {1200, 210, 0}, {1400 + 3600, 410, 3600}, {1600 + 3600, 610, 0},
		{1800, 810, -3600}, {2000, 1009, 1}} {
		if got := w.jumped(c.wall, c.monotonic); got != c.want {
			t.Errorf("check %d: %d, want %d", i, got, c.want)
		}
	}
}

// A start folds a store that other processes may own before it claims the store. The recovery
// continues that fold if only new records have come since, and folds from scratch otherwise.
func TestARecoveryReusesThePrecheckedState(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		precheckOf := func(g *gated) *committed.Preview {
			t.Helper()
			return must[*committed.Preview](t)(committed.NewPreview(t.Context(), g.o.Store))
		}
		const nothing, imager, fold = "nothing", "the imager", "the fold"
		recovered := func(what string, g *gated, seen *committed.Preview, want string) {
			t.Helper()
			g.folded()
			state := seen.State()
			c, err := committed.Recover(t.Context(), &committed.RecoverOptions{Store: g.o.Store,
				Last: g.e.committed.Folded(), Log: g.o.Log, Meter: metrics.NewEngine(),
				Preview: seen})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			twin, by := c.Imager().State(), nothing
			switch state {
			case twin:
				by = imager
			case c.State():
				by = fold
			}
			if by != want || !slices.Equal(imageOf(c.State()), imageOf(twin)) ||
				twin == c.State() || twin.Seq() != c.Folded() {
				t.Errorf("%s: %s continues the precheck, want %s; the twin has %d of %d",
					what, by, want, twin.Seq(), c.Folded())
			}
		}
		g, other := newGated(t, fresh, nil), newGated(t, fresh, nil)
		for _, g := range []*gated{g, other} {
			g.rest(g.sell(coin))
			g.folded()
		}
		recovered("the same records", g, precheckOf(g), imager)
		recovered("another history", other, precheckOf(g), nothing)
		seen := precheckOf(g)
		g.rest(g.sell(coin))
		recovered("more records", g, seen, imager)
		recovered("fewer records", other, precheckOf(g), nothing)
		seen = precheckOf(g)
		g.end()
		g.again() // with a snapshot
		recovered("a newer image", g, seen, nothing)
		seen = precheckOf(g)
		g.rest(g.sell(coin))
		recovered("an image, and more records after it", g, seen, fold)
		recovered("an image and records after it", g, precheckOf(g), imager)
		g.end()
		other.end()
	})
}

func imageOf(s *state.State) (image []byte) {
	for piece := range s.Image {
		image = append(image, piece...)
	}
	return image
}
