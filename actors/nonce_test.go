package actors

import (
	"sync"
	"testing"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
)

// together runs commands at once and gives their outcomes in the same order.
func together(runs []func() (*Command, error)) []string {
	ends := make([]string, len(runs))
	begin := make(chan struct{})
	var wait sync.WaitGroup
	for i, run := range runs {
		wait.Go(func() {
			<-begin
			ends[i] = outcome(run)
		})
	}
	close(begin)
	wait.Wait()
	return ends
}

func count(ends []string, want string) (n int) {
	for _, end := range ends {
		if end == want {
			n++
		}
	}
	return n
}

// withNonce returns orders, and cancels of the given orders, all with one nonce.
func (g *gated) withNonce(nonce uint64, orders int, cancel []uint64) (runs []func() (*Command,
	error)) {
	for range orders {
		runs = append(runs, func() (*Command, error) {
			return g.e.Place(g.key, nonce, g.sell(1e5))
		})
	}
	for _, id := range cancel {
		runs = append(runs, func() (*Command, error) { return g.e.Cancel(g.key, nonce, id) })
	}
	return runs
}

func TestOfEqualNoncesInFlightOneIsTakenAndNoneIsToldBeforeItIsDurable(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		for range 3 {
			var open []uint64
			for range 15 {
				open = append(open, g.rest(g.sell(1e5)))
			}
			g.nonce++
			runs := g.withNonce(g.nonce, 15, open)
			g.hold()
			ends := make(chan string, len(runs))
			for _, run := range runs {
				go func() { ends <- outcome(run) }()
			}
			g.inMailbox(len(runs))
			silent(t, "one of thirty commands with one nonce", ends)
			g.letGo()
			var all []string
			for range runs {
				all = append(all, <-ends)
			}
			if taken, refused := count(all, accepted),
				count(all, refusedFor(event.RefusedNonce)); taken != 1 || refused != 29 {
				t.Errorf("%d were taken and %d refused: %v", taken, refused, all)
			}
		}
		g.end()
	})
}

func TestOfEqualNoncesOfOrdersCancelsAndReadsOneIsTaken(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		for round := range 20 {
			open := []uint64{g.rest(g.sell(1e5)), g.rest(g.sell(1e5)), g.rest(g.sell(1e5)),
				g.rest(g.sell(1e5))}
			g.nonce++
			var runs []func() (*Command, error)
			for _, id := range open {
				runs = append(append(runs, g.withNonce(g.nonce, 1, []uint64{id})...),
					g.asking(new(committed.Wallet), g.key, g.nonce))
			}
			ends := together(runs)
			taken := count(ends, accepted)
			if refused := count(ends, refusedFor(event.RefusedNonce)) + count(ends,
				committed.ErrNonce.Error()); taken != 1 || refused != len(runs)-1 {
				t.Errorf("round %d: %d were taken and %d refused: %v", round, taken, refused, ends)
			}
		}
		last := g.rest(g.sell(1e5))
		g.crash()
		g.again()
		used := append(g.withNonce(g.nonce, 4, []uint64{last, last}),
			g.withNonce(g.nonce-1, 4, []uint64{last, last})...)
		for _, end := range together(used) {
			if end != refusedFor(event.RefusedNonce) {
				t.Errorf("a nonce of before the crash: %s", end)
			}
		}
		g.ends("the next", g.cancelling(last), accepted)
		g.end()
	})
}

func TestRacingNoncesAreTakenInGrowingOrderAndTheHighestAlways(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		const n = 60
		for round := range uint64(5) {
			ids := make([]uint64, n) // by nonce; 0: refused
			var runs []func() (*Command, error)
			for k := range uint64(n) {
				i := k * 37 % n // each once, and neighbours far apart
				runs = append(runs, func() (*Command, error) {
					c, err := g.e.Place(g.key, 1+round*n+i, g.sell(1e5))
					if err == nil && c.Outcome() == Accepted {
						ids[i] = c.Record().Order.ID
					}
					return c, err
				})
			}
			ends := together(runs)
			if taken, refused := count(ends, accepted),
				count(ends, refusedFor(event.RefusedNonce)); taken+refused != n {
				t.Errorf("round %d: %v", round, ends)
			}
			if ids[n-1] == 0 {
				t.Errorf("round %d: the highest nonce was refused", round)
			}
			before := uint64(0)
			for i, id := range ids {
				if id != 0 && id <= before {
					t.Errorf("round %d: nonce %d made order %d, a lower one order %d", round, i+1,
						id, before)
				}
				before = max(before, id)
			}
		}
		g.end()
	})
}

func TestEachKeyHasItsOwnNonces(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		must[Admin](t)(g.e.CreateKey("test", "ann", "second-key", "secret", event.AllPermissions,
			nil))
		second := g.e.Key([]byte("second-key"))
		ben := fund(t, g.e, "ben", map[string]money.Amount{"BTC": coin})
		var runs []func() (*Command, error)
		for _, key := range []*directory.Key{g.key, second, ben} {
			for range 5 {
				runs = append(runs, func() (*Command, error) {
					return g.e.Place(key, 7, g.sell(1e5))
				})
			}
		}
		ends := together(runs)
		for i, name := range []string{"ann's key", "ann's other key", "ben's key"} {
			if taken := count(ends[5*i:5*i+5], accepted); taken != 1 {
				t.Errorf("%s: %d of five equal nonces were taken", name, taken)
			}
		}
		must[Admin](t)(g.e.CreateKey("test", "ann", "third-key", "secret", event.AllPermissions,
			nil))
		third := g.e.Key([]byte("third-key"))
		g.ends("nonce 0 of a new key",
			func() (*Command, error) { return g.e.Place(third, 0, g.sell(1e5)) },
			refusedFor(event.RefusedNonce))
		g.end()
	})
}

func TestNoncesOfReadsOutliveAStop(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.ends("a read", g.asking(new(committed.Wallet), g.key, 77), accepted)
		g.end()
		g.again()
		g.ends("the same nonce again", g.asking(new(committed.Wallet), g.key, 77),
			committed.ErrNonce.Error())
		g.ends("the next nonce", g.asking(new(committed.Wallet), g.key, 78), accepted)
		g.end()
	})
}
