package loadtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"exchange/loadtest/generator"
)

// Latencies are kept in microseconds up to an hour, to three digits.
const (
	longest = int64(time.Hour / time.Microsecond)
	digits  = 3
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, digits) }

func record(h *hdrhistogram.Histogram, latency time.Duration) {
	_ = h.RecordValue(min(max(int64(latency/time.Microsecond), 1), longest)) // in its range
}

// counters count outcomes, in an interval or in all.
type counters struct {
	requests uint64 // answered, or given up
	done     uint64 // 2xx
	late     uint64 // cancels and changes of orders filled before
	refused  uint64 // other refusals
	unknown  uint64 // outcomes that the server did not report
	unsent   uint64 // due before the end, and not sent
	// sent in place of the mix's choice: cancels for orders when an account keeps no more open
	// ones, and orders for cancels when nothing rests
	cancelsInstead, ordersInstead uint64
}

// A result is the sender's view of a request's outcome.
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
	c.cancelsInstead += d.cancelsInstead
	c.ordersInstead += d.ordersInstead
}

// stats are the measurements of one generator, since the phase began and since the last second.
// Latencies are of done requests; the others have their own histograms.
type stats struct {
	counters
	byOperation [operations]*hdrhistogram.Histogram // nil: none was done
	all         *hdrhistogram.Histogram
	lates       *hdrhistogram.Histogram
	refusals    *hdrhistogram.Histogram
	unknowns    *hdrhistogram.Histogram
	unsentWaits *hdrhistogram.Histogram // of requests due and not sent
	recent      *hdrhistogram.Histogram
	slowest     time.Duration // lately, whatever the outcome
	lately      counters
	kinds       map[string]uint64
	byPair      []pairStats
	byAddress   []addressStats
	byStage     []stageStats // empty without stages
	cpu         time.Duration
	unpooled    uint64 // requests that used cpu, and are counted nowhere else
}

// addressStats are the requests to one address.
type addressStats struct {
	counters
	latency *hdrhistogram.Histogram
}

type pairStats struct {
	requests uint64
	done     uint64
	latency  *hdrhistogram.Histogram // nil: there are too many pairs
}

// maxPairHistograms bounds their memory.
const maxPairHistograms = 500

func newStats(pairs, addresses, stages int) *stats {
	s := &stats{all: newHistogram(), recent: newHistogram(), lates: newHistogram(),
		refusals: newHistogram(), unknowns: newHistogram(), unsentWaits: newHistogram(),
		kinds: map[string]uint64{}, byPair: make([]pairStats, pairs),
		byAddress: make([]addressStats, addresses),
		byStage:   make([]stageStats, stages)}
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

// note counts one request, sent to the address of that number.
func (s *stats) note(x *item, address int, latency time.Duration, r result) {
	at := &s.byAddress[address]
	at.count(r)
	s.count(r)
	s.lately.count(r)
	s.slowest = max(s.slowest, latency)
	if of := s.stage(x.stage); of != nil {
		of.count(r)
		of.longest = max(of.longest, latency)
	}
	if x.pair != nil {
		s.byPair[x.pair.index].requests++
	}
	switch r {
	case isLate:
		record(s.lates, latency)
	case isRefused:
		record(s.refusals, latency)
	case isUnknown:
		record(s.unknowns, latency)
	case isDone:
		s.noteDone(x, at, latency)
	}
}

// noteDone notes the latency of a done request.
func (s *stats) noteDone(x *item, at *addressStats, latency time.Duration) {
	h := s.byOperation[x.op]
	if h == nil {
		h = newHistogram()
		s.byOperation[x.op] = h
	}
	record(h, latency)
	record(s.all, latency)
	record(s.recent, latency)
	record(at.latency, latency)
	if of := s.stage(x.stage); of != nil {
		record(of.histogram(), latency)
	}
	if x.pair == nil {
		return
	}
	of := &s.byPair[x.pair.index]
	of.done++
	if of.latency != nil {
		record(of.latency, latency)
	}
}

// stage returns the stats of a stage; nil if the load has no stages.
func (s *stats) stage(number int) *stageStats {
	if len(s.byStage) == 0 {
		return nil
	}
	return &s.byStage[number]
}

// finish counts requests done at a time of the schedule. After its end they are in no stage's time.
func (s *stats) finish(by *generator.Schedule, at time.Duration, done uint64) {
	if len(s.byStage) > 0 && by != nil && at < by.Length() {
		s.byStage[by.StageAt(at)].within += done
	}
}

// noteUnsent counts a request that was due in a stage, waited that long, and was not sent.
func (s *stats) noteUnsent(stage int, waited time.Duration) {
	record(s.unsentWaits, waited)
	s.slowest = max(s.slowest, waited)
	s.unsent++
	s.lately.unsent++
	if of := s.stage(stage); of != nil {
		of.unsent++
		of.longest = max(of.longest, waited)
	}
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
	s.lates.Merge(t.lates)
	s.refusals.Merge(t.refusals)
	s.unknowns.Merge(t.unknowns)
	s.unsentWaits.Merge(t.unsentWaits)
	for i := range t.byPair {
		s.byPair[i].requests += t.byPair[i].requests
		s.byPair[i].done += t.byPair[i].done
		if s.byPair[i].latency != nil {
			s.byPair[i].latency.Merge(t.byPair[i].latency)
		}
	}
	for i := range t.byAddress {
		s.byAddress[i].add(t.byAddress[i].counters)
		s.byAddress[i].latency.Merge(t.byAddress[i].latency)
	}
	for i := range t.byStage {
		s.byStage[i].merge(&t.byStage[i])
	}
	s.spend(t)
}

// leave adds only the CPU and the errors of measurements, which are not pooled with the others.
func (s *stats) leave(t *stats) {
	s.spend(t)
	s.unpooled += t.requests
}

// spend adds the CPU and the kinds of errors of measurements.
func (s *stats) spend(t *stats) {
	for kind, n := range t.kinds {
		s.kinds[kind] += n
	}
	s.cpu += t.cpu
	s.unpooled += t.unpooled
}

// A Second holds the measurements of one second of the load.
type Second struct {
	At       float64 `json:"at"`               // seconds since the load began, its end
	Rate     float64 `json:"rate"`             // done
	Asked    float64 `json:"asked_per_second"` // due in an open loop; 0: a closed loop
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"` // of all requests, whatever their outcome
	InFlight int     `json:"in_flight"`
	Waiting  uint64  `json:"waiting"` // due, and not sent yet
	Backlog  uint64  `json:"backlog"` // both: due, and not answered; a batch counts once
	Errors   uint64  `json:"errors"`  // refused or unknown
	Partial  bool    `json:"partial"` // shorter than a second, and not plotted
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
