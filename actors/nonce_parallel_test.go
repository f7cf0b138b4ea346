package actors

import (
	"fmt"
	"slices"
	"testing"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
)

// parallelKey makes a key for parallel use.
func (g *gated) parallelKey(name string, nonces int) *directory.Key {
	g.t.Helper()
	must[Admin](g.t)(g.e.CreateParallelKey("test", g.key.Account.Name, name, "secret",
		event.AllPermissions, nil, nonces))
	return g.e.Key([]byte(name))
}

func (g *gated) placingBy(key *directory.Key, nonce uint64) func() (*Command, error) {
	return func() (*Command, error) { return g.e.Place(key, nonce, g.sell(1e5)) }
}

func TestRequestsOfAKeyForParallelUseOvertakeEachOther(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		const n = 64
		key := g.parallelKey("parallel", n)
		for round := range uint64(5) {
			var runs []func() (*Command, error)
			for k := range uint64(n) {
				nonce := 1 + round*n + k*37%n // each once, and neighbours far apart
				runs = append(runs, g.placingBy(key, nonce), g.placingBy(key, nonce))
			}
			ends := together(runs)
			for i := range n {
				pair := ends[2*i : 2*i+2]
				if count(pair, accepted) != 1 || count(pair, refusedFor(event.RefusedNonce)) != 1 {
					t.Errorf("round %d, a nonce that was sent twice: %v", round, pair)
				}
			}
		}
		g.end()
	})
}

func TestAKeyForParallelUseTakesNoNonceAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		key := g.parallelKey("parallel", 4)
		for _, x := range []struct {
			nonce uint64
			good  bool
		}{{0, false}, {10, true}, {7, true}, {10, false}, {8, true}, {7, false}, {1, true},
			{9, true}, // the set is full: 1 leaves
			{1, false}, {2, false}, {7, false}, {20, true}, {7, false}, {8, false}, {11, true}} {
			want := accepted
			if !x.good {
				want = refusedFor(event.RefusedNonce)
			}
			g.ends(fmt.Sprint("nonce ", x.nonce), g.placingBy(key, x.nonce), want)
		}
		c, err := g.e.Place(key, 9, g.sell(1e5))
		if err != nil || c.LastNonce() != 20 {
			t.Errorf("a refusal tells %d as the last: %v", c.LastNonce(), err)
		}
		c.Free()
		for _, nonce := range []uint64{14, 12, 13} {
			g.ends(fmt.Sprint("nonce ", nonce), g.placingBy(key, nonce), accepted)
		}
		replayed := func(when string) {
			key = g.e.Key([]byte("parallel"))
			for _, nonce := range []uint64{0, 1, 7, 8, 9, 10, 11, 12, 13, 14, 20} {
				g.ends(fmt.Sprint("nonce ", nonce, " after ", when), g.placingBy(key, nonce),
					refusedFor(event.RefusedNonce))
			}
		}
		g.end()
		g.again()
		replayed("a stop")
		g.crash()
		g.again()
		replayed("a crash")
		g.ends("one that was overtaken before the crash", g.placingBy(key, 15), accepted)
		g.end()
	})
}

func TestReadsOfAKeyForParallelUseTakeNonces(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		key := g.parallelKey("parallel", 16)
		read := func(nonce uint64) func() (*Command, error) {
			return g.asking(new(committed.Wallet), key, nonce)
		}
		g.ends("a read", read(5), accepted)
		g.ends("a read that was overtaken", read(3), accepted)
		g.ends("the same again", read(3), committed.ErrNonce.Error())
		g.ends("a command with the nonce of a read", g.placingBy(key, 5),
			refusedFor(event.RefusedNonce))
		g.ends("a command", g.placingBy(key, 4), accepted)
		g.ends("a read with the nonce of a command", read(4), committed.ErrNonce.Error())
		g.end()
		g.again()
		key = g.e.Key([]byte("parallel"))
		g.ends("the greatest of the reads, after a stop", read(5), committed.ErrNonce.Error())
		g.ends("a command's, after a stop", read(4), committed.ErrNonce.Error())
		g.end()
	})
}

// The commands of a sweep have one nonce, which is taken once.
func TestACancelAllOfAKeyForParallelUseTakesOneNonce(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		key := g.parallelKey("parallel", 3)
		for nonce := range uint64(3) {
			g.ends("an order", g.placingBy(key, nonce+1), accepted)
		}
		g.ends("the sweep", func() (*Command, error) {
			return g.e.CancelAll(key, 9, CancelFilter{})
		}, accepted)
		g.end()
		g.again()
		for _, k := range g.e.committed.State().Keys() {
			if k.Key.Key == "parallel" &&
				!slices.Equal(slices.Collect(k.Used.All()), []uint64{2, 3, 9}) {
				t.Errorf("it has used %v", slices.Collect(k.Used.All()))
			}
		}
		g.end()
	})
}

func TestAKeyKeepsABoundedNumberOfNonces(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		for _, nonces := range []int{-1, 0, event.MaxParallel + 1} {
			_, err := g.e.CreateParallelKey("test", "ann", "too-many", "secret",
				event.PermissionTrade, nil, nonces)
			const want = "a key for parallel use keeps 1 to 1024 nonces"
			if err == nil || err.Error() != want {
				t.Errorf("%d: %v", nonces, err)
			}
		}
		g.end()
	})
}
