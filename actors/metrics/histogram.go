package metrics

import (
	"slices"
	"sync/atomic"
	"time"
)

// A Histogram counts values in buckets with fixed bounds. Observe costs one short search and two
// atomic additions. Any goroutine may use it.
type Histogram struct {
	bounds []int64         // ascending upper bounds, each within its bucket; shared, read only
	counts []atomic.Uint64 // by bucket; the last one counts values above all bounds
	sum    atomic.Int64
}

// NewHistogram makes a histogram with these ascending bounds, which it keeps.
func NewHistogram(bounds []int64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// Observe counts one value, in the unit of the bounds.
func (h *Histogram) Observe(v int64) {
	h.counts[bucket(h.bounds, v)].Add(1)
	h.sum.Add(v)
}

func bucket(bounds []int64, v int64) int {
	i := 0
	for i < len(bounds) && v > bounds[i] {
		i++
	}
	return i
}

// A Distribution is a snapshot of a histogram's counts. One goroutine may also use it as a
// histogram.
type Distribution struct {
	Bounds []int64  // read only
	Counts []uint64 // by bucket, one more than Bounds
	Sum    int64
}

// newDistribution makes an empty one with these ascending bounds, which it keeps.
func newDistribution(bounds []int64) Distribution {
	return Distribution{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// Observe counts one value, in the unit of the bounds.
func (d *Distribution) Observe(v int64) {
	d.Counts[bucket(d.Bounds, v)]++
	d.Sum += v
}

// Clone returns a copy that shares nothing but the bounds.
func (d *Distribution) Clone() Distribution {
	return Distribution{d.Bounds, slices.Clone(d.Counts), d.Sum}
}

// Read returns the counts so far. A concurrent Observe may be in Counts and not yet in Sum.
func (h *Histogram) Read() Distribution {
	var d Distribution
	h.AddTo(&d)
	return d
}

// AddTo adds the counts so far to a distribution with the same bounds, or to an empty one.
func (h *Histogram) AddTo(d *Distribution) {
	if d.Counts == nil {
		d.Bounds, d.Counts = h.bounds, make([]uint64, len(h.counts))
	}
	for i := range h.counts {
		d.Counts[i] += h.counts[i].Load()
	}
	d.Sum += h.sum.Load()
}

// Count returns the number of values.
func (d *Distribution) Count() (n uint64) {
	for _, c := range d.Counts {
		n += c
	}
	return n
}

// Bounds of the histograms. Durations are in nanoseconds.
var (
	// stepBounds are for the stages of an order within the process: 1 us to 10 s.
	stepBounds = steps(time.Microsecond, 10*time.Second)
	// RequestBounds are for requests and calls of the store: 50 us to 10 s.
	RequestBounds = steps(50*time.Microsecond, 10*time.Second)
	// snapshotBounds are for writes whose time grows with the state: 5 ms to 250 s.
	snapshotBounds = steps(5*time.Millisecond, 250*time.Second)
	// recordBounds and byteBounds are for batches.
	recordBounds = []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}
	byteBounds   = []int64{1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14,
		1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19}
)

// steps returns bounds from one duration to another in steps of 1, 2.5, 5 and 10: a percentile read
// between two of them is off by a factor of 2.5 at most.
func steps(from, to time.Duration) (bounds []int64) {
	for decade := time.Nanosecond; decade <= to; decade *= 10 {
		for _, d := range []time.Duration{decade, decade * 5 / 2, decade * 5} {
			if from <= d && d <= to {
				bounds = append(bounds, int64(d))
			}
		}
	}
	return bounds
}

var start = time.Now()

// Now returns the time for durations: nanoseconds of a clock that never goes back, always above 0.
func Now() int64 { return At(time.Now()) }

// At returns the value of Now at a moment of this process.
func At(t time.Time) int64 { return int64(t.Sub(start)) + 1 }
