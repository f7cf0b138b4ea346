package metrics

import (
	"slices"
	"sync"
	"testing"
	"time"
)

func TestAValueIsInTheFirstBucketWhoseBoundIsNotBelowIt(t *testing.T) {
	f := func(v int64, bucket int) {
		t.Helper()
		h := NewHistogram([]int64{1, 10, 100})
		h.Observe(v)
		want := make([]uint64, 4)
		want[bucket] = 1
		own := newDistribution([]int64{1, 10, 100})
		own.Observe(v)
		for _, d := range []Distribution{h.Read(), own, own.Clone()} {
			if !slices.Equal(d.Counts, want) || d.Sum != v || d.Count() != 1 {
				t.Errorf("%d: %+v, want %v", v, d, want)
			}
		}
	}
	f(-1, 0)
	f(0, 0)
	f(1, 0)
	f(2, 1)
	f(10, 1)
	f(11, 2)
	f(100, 2)
	f(101, 3)
	f(1<<62, 3)
}

func TestNothingIsLostWhenManyObserveAndShardsAddUp(t *testing.T) {
	const goroutines, each = 8, 10_000
	shards := [2]*Histogram{NewHistogram(stepBounds), NewHistogram(stepBounds)}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				shards[g%2].Observe(int64(i))
			}
		})
	}
	wg.Wait()
	var d Distribution
	for _, h := range shards {
		h.AddTo(&d)
	}
	if d.Count() != goroutines*each || d.Sum != goroutines*each*(each-1)/2 {
		t.Errorf("%d values, sum %d", d.Count(), d.Sum)
	}
	if d.Counts[0] != goroutines*1001 { // 0 to 1000 ns
		t.Errorf("%d are at most 1 us", d.Counts[0])
	}
}

func TestBoundsAscendOverTheirWholeRange(t *testing.T) {
	f := func(name string, bounds []int64, least, most int64) {
		t.Helper()
		if !slices.IsSorted(bounds) || len(slices.Compact(slices.Clone(bounds))) != len(bounds) ||
			bounds[0] != least || bounds[len(bounds)-1] != most {
			t.Errorf("%s: %v", name, bounds)
		}
	}
	f("steps", stepBounds, int64(time.Microsecond), int64(10*time.Second))
	f("requests", RequestBounds, int64(50*time.Microsecond), int64(10*time.Second))
	f("snapshots", snapshotBounds, int64(5*time.Millisecond), int64(250*time.Second))
	f("records", recordBounds, 1, 5000)
	f("bytes", byteBounds, 128, 512<<10)
}

func TestCountingAllocatesNothing(t *testing.T) {
	e := NewEngine()
	trace := Trace{Sent: Now(), Matching: Now(), Decided: Now()}
	if n := testing.AllocsPerRun(100, func() {
		e.Apply.Observe(1)
		e.Journal.Append.Observe(1)
		e.Traced(&trace, Now(), Now())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A command without a book was decided when it entered its batch.
func TestStagesOfACommandThatMetNoBookHaveNoMatch(t *testing.T) {
	f := func(trace Trace, queue, match int64) {
		t.Helper()
		e := NewEngine()
		e.Traced(&trace, 500, 900)
		got := [4]int64{}
		for i := range got {
			got[i] = e.Stages[i].Read().Sum
		}
		if want := [4]int64{queue, match, 500 - trace.Decided, 400}; got != want {
			t.Errorf("%+v: %v, want %v", trace, got, want)
		}
	}
	f(Trace{Sent: 100, Matching: 300, Decided: 310}, 200, 10)
	f(Trace{Sent: 100, Decided: 310}, 210, 0)
}
