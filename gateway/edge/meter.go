package edge

import (
	"slices"
	"sync/atomic"

	"exchange/actors/metrics"
	"exchange/gateway/api"
)

// A Meter counts the requests of one listener by route and status, and measures their time. A route
// is a pattern of the API, never a client's text, so clients cannot make more series.
//
// Every request is counted, orders too. So routes and statuses are indexes into arrays of atomics,
// and each array exists several times, so that processors do not compete for it. The memory of a
// request is pooled by processor, and keeps its shard.
type Meter struct {
	Listener string
	Routes   []string // by number
	shards   [meterShards][]routeMeter
}

// A routeMeter holds the counts of one route in one shard.
type routeMeter struct {
	statuses  []atomic.Uint64 // by statusNumber
	durations *metrics.Histogram
}

// The listeners.
const (
	Public    = "public"
	operators = "operator"
	watchers  = "metrics"
)

// meterShards is a power of two. Eight shards are enough for some dozens of processors.
const meterShards = 8

// Numbers that stand for no route.
const (
	uncounted  = -1 // a refused connection, whose request was not read
	unmatched  = 0  // a path without a route
	malformed  = 1  // bytes that never became a request
	firstRoute = 2
)

// MeteredStatuses are the statuses counted one by one: of successes, and of the catalogue.
var MeteredStatuses = func() []int {
	list := []int{200, 201, 204, 302, 304}
	for _, f := range api.Failures {
		list = append(list, f.Status)
	}
	slices.Sort(list)
	return slices.Compact(list)
}()

// statusNumber holds the index of each metered status in routeMeter.statuses. All others share the
// last index.
var statusNumber = func() (table [600]uint8) {
	for status := range table {
		n := slices.Index(MeteredStatuses, status)
		if n < 0 {
			n = len(MeteredStatuses)
		}
		table[status] = uint8(n)
	}
	return table
}()

// newMeter makes a meter for a listener's routes, which are numbered from firstRoute on.
func newMeter(listener string, routes []string) *Meter {
	m := &Meter{Listener: listener,
		Routes: append([]string{unmatched: "unmatched", malformed: "malformed"}, routes...)}
	for i := range m.shards { // one after the other, so that each shard is one piece of memory
		m.shards[i] = make([]routeMeter, len(m.Routes))
		for j := range m.Routes {
			m.shards[i][j] = routeMeter{make([]atomic.Uint64, len(MeteredStatuses)+1),
				metrics.NewHistogram(metrics.RequestBounds)}
		}
	}
	return m
}

// count counts one answer. Any goroutine may call it, with any shard.
func (m *Meter) count(shard uint32, route, status int, took int64) {
	if route == uncounted {
		return
	}
	r := &m.shards[shard%meterShards][route]
	n := len(MeteredStatuses)
	if uint(status) < uint(len(statusNumber)) {
		n = int(statusNumber[status])
	}
	r.statuses[n].Add(1)
	r.durations.Observe(took)
}

// Read returns the counts of a route by statusNumber, and the distribution of its requests' times.
func (m *Meter) Read(route int) (statuses []uint64, took metrics.Distribution) {
	statuses = make([]uint64, len(MeteredStatuses)+1)
	for i := range m.shards {
		r := &m.shards[i][route]
		for j := range r.statuses {
			statuses[j] += r.statuses[j].Load()
		}
		r.durations.AddTo(&took)
	}
	return statuses, took
}

// nextShard numbers the pooled requests, for their shards.
var nextShard atomic.Uint32
