package matching

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"exchange/core/trading"
)

// TestIDTableAgreesWithAMap compares the table with a map for ids in patterns that a poor hash
// would pile up. It deletes from full chains that wrap around the end of the table too.
func TestIDTableAgreesWithAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	f := func(name string, next func(i uint64) uint64) {
		t.Helper()
		var table idTable
		var records slab[order]
		want := map[uint64]uint32{}
		var live []uint64
		for i := range uint64(20_000) {
			// 1,500 of 2,048: nearly full
			if len(live) > 0 && (rng.IntN(100) < 45 || len(live) == 1500) {
				k := rng.IntN(len(live))
				id := live[k]
				live[k] = live[len(live)-1]
				live = live[:len(live)-1]
				at, found := table.find(id, &records)
				if !found || uint32(table.entries[at]) != want[id] {
					t.Fatalf("%s: id %d is lost", name, id)
				}
				table.remove(at)
				delete(want, id)
			} else {
				id := next(i)
				table.reserve()
				at, found := table.find(id, &records)
				if found {
					t.Fatalf("%s: id %d is there already", name, id)
				}
				n := records.grow()
				records.at(n).id = id
				table.put(at, id, n)
				want[id] = n
				live = append(live, id)
			}
			if i%500 == 0 {
				for id, n := range want {
					if got := table.lookup(id, &records); got != n {
						t.Fatalf("%s: id %d has record %d, want %d", name, id, got, n)
					}
				}
			}
		}
		if table.count != len(want) {
			t.Errorf("%s: %d entries, want %d", name, table.count, len(want))
		}
		if far := farthest(&table); far > 100 {
			t.Errorf("%s: an entry is %d places from its home", name, far)
		}
	}
	f("dense", func(i uint64) uint64 { return i })
	f("every 1024th", func(i uint64) uint64 { return i << 10 })
	f("high bits only", func(i uint64) uint64 { return i << 48 })
	f("bits reversed", bits.Reverse64)
	f("around 2^32", func(i uint64) uint64 { return 1<<32 - 10_000 + i })
	f("random", func(uint64) uint64 { return rng.Uint64() })
}

func TestIDsOfEqualHashAreDistinguished(t *testing.T) {
	seen := map[uint32]uint64{}
	var pair [2]uint64
	for id := uint64(1); ; id++ {
		other, ok := seen[hashID(id*id)] // among 2^17 of 2^32 hashes about two collide
		if ok {
			pair = [2]uint64{other, id * id}
			break
		}
		seen[hashID(id*id)] = id * id
	}
	for i := range 2 {
		b := New()
		rest(b, trading.Buy, pair[0], 100, 1)
		if _, ok := b.Get(pair[1]); ok {
			t.Fatalf("%d is taken for %d", pair[0], pair[1])
		}
		rest(b, trading.Buy, pair[1], 100, 1)
		if o, ok := b.Cancel(pair[i]); !ok || o.ID != pair[i] {
			t.Fatalf("cancelled %+v, %v", o, ok)
		}
		holds(t, b, trading.Buy, pair[1-i])
	}
}

// farthest returns the largest distance of an entry from its home.
func farthest(t *idTable) (far int) {
	mask := len(t.entries) - 1
	for at, e := range t.entries {
		if e != 0 {
			far = max(far, (at-t.home(uint32(e>>32)))&mask)
		}
	}
	return far
}
