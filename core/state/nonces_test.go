package state

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A key's set against a list of all accepted nonces.
func TestNoncesKeepTheGreatestAndAcceptEachOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 12).Draw(t, "most")
		n, all, high := NewNonces(most), []uint64{}, uint64(0)
		for range rapid.IntRange(0, 200).Draw(t, "nonces") {
			nonce := rapid.Uint64Range(0, high+5).Draw(t, "nonce")
			high = max(high, nonce)
			good := nonce > 0 && !slices.Contains(all, nonce) &&
				(len(all) < most || nonce > all[0])
			if n.Used(nonce) == good {
				t.Fatalf("nonce %d of %v is used: %v", nonce, all, !good)
			}
			if n.Take(nonce) != good {
				t.Fatalf("nonce %d of %v is taken: %v", nonce, all, !good)
			}
			if good {
				all = append(all, nonce)
				slices.Sort(all)
				all = all[max(0, len(all)-most):]
			}
			if rapid.IntRange(0, 9).Draw(t, "clone") == 0 {
				was := n
				n = n.Clone()
				was.Take(high + 100) // of the original alone
			}
			if got := slices.Collect(n.All()); !slices.Equal(got, all) || n.count() != len(all) {
				t.Fatalf("%v, want %v", got, all)
			}
		}
	})
}

// Requests in any order leave one set, and so do records that commit in another order.
func TestTheOrderOfNoncesMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Uint64Range(1, 40), 0, 60).Draw(t, "nonces")
		one, other := NewNonces(8), NewNonces(8)
		for _, nonce := range list {
			one.Take(nonce)
		}
		for _, nonce := range rapid.Permutation(list).Draw(t, "in another order") {
			other.Take(nonce)
		}
		a, b := slices.Collect(one.All()), slices.Collect(other.All())
		if !slices.Equal(a, b) {
			t.Fatalf("%v, and in another order %v", a, b)
		}
	})
}

func TestTakingNoncesAllocatesNothing(t *testing.T) {
	n := NewNonces(1024)
	next := uint64(0)
	take := func() { next++; n.Take(next ^ 1) }
	for range 5000 {
		take()
	}
	if allocs := testing.AllocsPerRun(5000, take); allocs != 0 {
		t.Errorf("%v allocations a nonce", allocs)
	}
	if c := cap(n.used); c > 4*1024 {
		t.Errorf("1,024 nonces have room for %d", c)
	}
}
