package loadtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept in microseconds up to an hour, to three digits.
const (
	longest = int64(time.Hour / time.Microsecond)
	digits  = 3
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, digits) }

func record(h *hdrhistogram.Histogram, latency time.Duration) {
	_ = h.RecordValue(min(max(int64(latency/time.Microsecond), 1), longest)) // it is in the range
}

// counters count outcomes, in an interval or in all.
type counters struct {
	requests uint64 // answered, or given up
	done     uint64 // 2xx
	late     uint64 // cancels of orders that were filled before
	refused  uint64 // other refusals
	unknown  uint64 // outcomes that the server did not tell
	unsent   uint64 // due before the end, and not sent
}

// A result is what the sender knows of a request.
type result uint8

const (
	isDone result = iota
	isLate
	isRefused
	isUnknown
)

// count counts one request.
func (c *counters) count(r result) {
	c.requests++
	switch r {
	case isDone:
		c.done++
	case isLate:
		c.late++
	case isRefused:
		c.refused++
	case isUnknown:
		c.unknown++
	}
}

func (c *counters) add(d counters) {
	c.requests += d.requests
	c.done += d.done
	c.late += d.late
	c.refused += d.refused
	c.unknown += d.unknown
	c.unsent += d.unsent
}

// stats are the measurements of one generator, since the phase began and since the last look.
type stats struct {
	counters
	byOperation [operations]*hdrhistogram.Histogram // nil: none was sent
	all         *hdrhistogram.Histogram
	recent      *hdrhistogram.Histogram
	lately      counters
	kinds       map[string]uint64
	byPair      []pairStats
	byAddress   []addressStats
	cpu         time.Duration
}

// addressStats are the requests that went to one address.
type addressStats struct {
	counters
	latency *hdrhistogram.Histogram
}

type pairStats struct {
	requests uint64
	latency  *hdrhistogram.Histogram // nil: there are too many pairs
}

// maxPairHistograms bounds the memory for them.
const maxPairHistograms = 500

func newStats(pairs, addresses int) *stats {
	s := &stats{all: newHistogram(), recent: newHistogram(), kinds: map[string]uint64{},
		byPair: make([]pairStats, pairs), byAddress: make([]addressStats, addresses)}
	for i := range s.byAddress {
		s.byAddress[i].latency = newHistogram()
	}
	if pairs <= maxPairHistograms {
		for i := range s.byPair {
			s.byPair[i].latency = hdrhistogram.New(1, longest, 2)
		}
	}
	return s
}

// note counts one request, which went to the address of that number.
func (s *stats) note(x *item, address int, latency time.Duration, r result) {
	h := s.byOperation[x.op]
	if h == nil {
		h = newHistogram()
		s.byOperation[x.op] = h
	}
	record(h, latency)
	record(s.all, latency)
	record(s.recent, latency)
	if x.pair != nil {
		of := &s.byPair[x.pair.index]
		of.requests++
		if of.latency != nil {
			record(of.latency, latency)
		}
	}
	at := &s.byAddress[address]
	record(at.latency, latency)
	at.count(r)
	s.count(r)
	s.lately.count(r)
}

// maxKinds bounds the list of errors.
const maxKinds = 50

func (s *stats) kind(name string) {
	if _, ok := s.kinds[name]; !ok && len(s.kinds) >= maxKinds {
		name = "others"
	}
	s.kinds[name]++
}

// merge adds the measurements of another generator.
func (s *stats) merge(t *stats) {
	s.add(t.counters)
	for op, h := range t.byOperation {
		if h == nil {
			continue
		}
		if s.byOperation[op] == nil {
			s.byOperation[op] = newHistogram()
		}
		s.byOperation[op].Merge(h)
	}
	s.all.Merge(t.all)
	for kind, n := range t.kinds {
		s.kinds[kind] += n
	}
	for i := range t.byPair {
		s.byPair[i].requests += t.byPair[i].requests
		if s.byPair[i].latency != nil {
			s.byPair[i].latency.Merge(t.byPair[i].latency)
		}
	}
	for i := range t.byAddress {
		s.byAddress[i].add(t.byAddress[i].counters)
		s.byAddress[i].latency.Merge(t.byAddress[i].latency)
	}
	s.cpu += t.cpu
}

// A Second has the measurements of one second of the load.
type Second struct {
	At       float64 `json:"at"` // seconds since the load began, its end
	Rate     float64 `json:"rate"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
	InFlight int     `json:"in_flight"`
	Waiting  uint64  `json:"waiting"` // due, and not sent yet
	Errors   uint64  `json:"errors"`  // refused or unknown
}

// A Kind is a kind of error and its count.
type Kind struct {
	Kind  string `json:"kind"`
	Count uint64 `json:"count"`
}

func sortedKinds(m map[string]uint64) []Kind {
	all := []Kind{}
	for k, n := range m {
		all = append(all, Kind{k, n})
	}
	slices.SortFunc(all, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

func milliseconds(us int64) float64 { return float64(us) / 1000 }
