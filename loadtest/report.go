package loadtest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Report is the result of a test. Latencies are in milliseconds.
type Report struct {
	Layout      int       `json:"layout"` // reportLayout
	Started     time.Time `json:"started"`
	Options     Summary   `json:"options"`
	Interrupted bool      `json:"interrupted"` // before its time
	Warmup      *Warmup   `json:"warmup"`      // null: none
	Seconds     float64   `json:"seconds"`
	Requests    uint64    `json:"requests"`
	Rate        float64   `json:"rate"`            // of done requests
	Done        uint64    `json:"done"`            // 2xx
	Late        uint64    `json:"late_cancels"`    // and changes, of orders that were filled before
	Refused     uint64    `json:"refused"`         // otherwise
	Unknown     uint64    `json:"outcome_unknown"` // requests without a known outcome
	// due in an open loop, and not sent before its end
	Unsent        uint64              `json:"unsent"`
	Substituted   Substituted         `json:"substituted"`
	Latency       Latency             `json:"latency"` // as the rate
	Lates         Latency             `json:"late_latency"`
	Refusals      Latency             `json:"refused_latency"` // of refused requests
	Unknowns      Latency             `json:"outcome_unknown_latency"`
	UnsentLatency Latency             `json:"unsent_waited"`
	Operations    []Operation         `json:"operations"`
	Errors        []Kind              `json:"errors"`
	Timeline      []Second            `json:"timeline"`
	Stages        []StageReport       `json:"stages"`
	Pairs         []PairReport        `json:"pairs"` // highest p99 first, then most requests
	Addresses     []AddressReport     `json:"addresses"`
	CPU           CPU                 `json:"cpu"`
	Machine       *Machine            `json:"machine"` // null: not reported by the system
	Subscribers   []ChannelReport     `json:"subscribers"`
	Ramp          *Ramp               `json:"ramp,omitempty"`
	Verification  *Verification       `json:"verification,omitempty"`
	Minutes       []Minute            `json:"minutes"`
	Samples       []Sample            `json:"samples"` // of the server, a second apart
	Unsampled     int                 `json:"unsampled"`
	Marks         []Mark              `json:"marks"`
	Server        *Server             `json:"server"` // null: the operator's address is unknown
	Banker        *Banker             `json:"banker,omitempty"`
	Pace          Pace                `json:"schedule"`
	Broken        []string            `json:"broken"`   // bounds
	Unjudged      []string            `json:"unjudged"` // bounds, and why
	distributions map[string][]points // for plots, by operation
}

// A Summary holds the options of the test.
type Summary struct {
	Address     string         `json:"address"` // or several, with commas
	Model       string         `json:"model"`
	Mix         string         `json:"mix"`
	Seed        uint64         `json:"seed"`
	Pairs       int            `json:"pairs"`
	Accounts    int            `json:"accounts"`
	Connections int            `json:"connections"`
	Sockets     int            `json:"sockets"` // for orders, of these; 0: over HTTP
	Batch       int            `json:"batch"`   // orders of one request; 0: no batches
	Instructed  int            `json:"instructed"`
	OpenOrders  int            `json:"open_orders"`
	Deposits    float64        `json:"deposits_per_second"`
	Threads     int            `json:"threads"`
	Duration    float64        `json:"duration_seconds"`
	Warmup      float64        `json:"warmup_seconds"`
	Rate        float64        `json:"rate"`   // 0: closed loop, or stages
	Stages      string         `json:"stages"` // in the form of the option; "": none
	Subscribers map[string]int `json:"subscribers"`
}

// A Latency is a distribution in short.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean_ms"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	P9999 float64 `json:"p9999_ms"`
	Max   float64 `json:"max_ms"`
}

// Substituted counts requests sent in place of the mix's choice.
type Substituted struct {
	Cancels uint64 `json:"cancels"` // for orders: an account keeps at most mostOpen open ones
	Orders  uint64 `json:"orders"`  // for cancels: nothing rested
}

// A Warmup is the load before the counted one.
type Warmup struct {
	Seconds  float64 `json:"seconds"`
	Requests uint64  `json:"requests"`
	Done     uint64  `json:"done"`
	Late     uint64  `json:"late_cancels"`
	Refused  uint64  `json:"refused"`
	Unknown  uint64  `json:"outcome_unknown"`
	Unsent   uint64  `json:"unsent"`
}

// An Operation is one kind of request.
type Operation struct {
	Name    string  `json:"name"`
	Rate    float64 `json:"rate"`
	Latency Latency `json:"latency"`
	// the whole histogram in microseconds: HdrHistogram V2, compressed, base64
	HDR string `json:"hdr"`
}

// A PairReport is one pair's share.
type PairReport struct {
	Pair     string  `json:"pair"`
	Requests uint64  `json:"requests"`
	Rate     float64 `json:"rate"`   // done
	P50      float64 `json:"p50_ms"` // 0 with more than 500 pairs
	P99      float64 `json:"p99_ms"`
}

// A CPU is the CPU time of the test itself.
type CPU struct {
	Generator float64 `json:"generator_us_per_request"` // its threads; 0 if unknown
	Process   float64 `json:"process_us_per_request"`   // with subscribers and all
}

// A ChannelReport counts the events of a channel's subscribers.
type ChannelReport struct {
	Channel     string  `json:"channel"`
	Subscribers int     `json:"subscribers"`
	Events      uint64  `json:"events"`
	Rate        float64 `json:"events_per_second"`
	Bytes       uint64  `json:"bytes"`
	Wholes      uint64  `json:"whole_books"` // in place of changes
	Lost        uint64  `json:"connections_lost"`
	// of "own": from the acknowledgement of an order to its event, 0 for earlier events
	Lag    *Latency `json:"after_acknowledgement,omitempty"`
	Before uint64   `json:"before_acknowledgement,omitempty"`
}

// A Ramp is a search for the highest rate.
type Ramp struct {
	Bound   float64 `json:"p99_bound_ms"`
	Highest float64 `json:"highest_rate"` // that held; 0: none
	Steps   []Step  `json:"steps"`
}

// points are a distribution for a plot: the latency at 1 in oneIn.
type points struct{ oneIn, ms float64 }

func (t *test) newReport() *Report {
	o := t.o
	return &Report{Layout: reportLayout, Started: time.Now().UTC(),
		Options: Summary{Address: strings.Join(o.Addresses, ","), Model: o.Model,
			Mix: o.Mix.String(), Seed: o.Seed,
			Pairs:    len(t.field.pairs),
			Accounts: o.Accounts, Connections: o.Connections, Sockets: o.Sockets, Batch: o.Batch,
			Instructed: o.Instructed, OpenOrders: o.OpenOrders, Deposits: o.Deposits,
			Threads:  len(t.clients),
			Duration: o.length().Seconds(), Warmup: o.Warmup.Seconds(), Rate: o.Rate,
			Stages:      stagesText(o.Stages),
			Subscribers: o.Subscribers},
		Subscribers: []ChannelReport{}, distributions: map[string][]points{}}
}

// open reports whether requests were due by a schedule.
func (o *Summary) open() bool { return o.Rate > 0 || o.Stages != "" }

// refusedPercent is the percentage of refusals among all requests.
func (r *Report) refusedPercent() float64 {
	return 100 * float64(r.Refused) / max(float64(r.Requests), 1)
}

// setMeasurements sets the measurements.
func (r *Report) setMeasurements(t *test, s *stats, took, process time.Duration) {
	r.Addresses, r.Stages = t.addresses(s, took), t.o.stageReports(s, took)
	r.Seconds = took.Seconds()
	r.Requests, r.Done, r.Late, r.Refused, r.Unknown, r.Unsent = s.requests, s.done, s.late,
		s.refused, s.unknown, s.unsent
	perSecond := func(n uint64) float64 { return float64(n) / max(took.Seconds(), 1e-6) }
	r.Rate, r.Substituted = perSecond(s.done), Substituted{s.cancelsInstead, s.ordersInstead}
	r.Latency, r.Lates, r.Refusals, r.Unknowns, r.UnsentLatency = latency(s.all), latency(s.lates),
		latency(s.refusals), latency(s.unknowns), latency(s.unsentWaits)
	r.distributions["all"] = distribution(s.all)
	r.Operations = []Operation{}
	for op, h := range s.byOperation {
		if h == nil {
			continue
		}
		encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			panic("BUG: a histogram cannot be encoded: " + err.Error())
		}
		r.Operations = append(r.Operations,
			Operation{operationNames[op], perSecond(uint64(h.TotalCount())), latency(h),
				string(encoded)})
		r.distributions[operationNames[op]] = distribution(h)
	}
	r.Errors, r.Timeline = sortedKinds(s.kinds), t.seconds
	r.Pairs = []PairReport{}
	for i, p := range s.byPair {
		x := PairReport{Pair: t.field.pairs[i].name, Requests: p.requests,
			Rate: perSecond(p.done)}
		if p.latency != nil {
			x.P50, x.P99 = milliseconds(p.latency.ValueAtQuantile(50)),
				milliseconds(p.latency.ValueAtQuantile(99))
		}
		r.Pairs = append(r.Pairs, x)
	}
	slices.SortStableFunc(r.Pairs, func(a, b PairReport) int {
		return cmp.Or(cmp.Compare(b.P99, a.P99), cmp.Compare(b.Requests, a.Requests))
	})
	n := max(float64(s.requests+s.unpooled), 1)
	r.CPU = CPU{float64(s.cpu.Nanoseconds()) / 1000 / n, float64(process.Nanoseconds()) / 1000 / n}
}

// subscribers adds the events of the subscribers, once all have come.
func (r *Report) subscribers(s *subscribers) {
	for _, x := range s.all {
		r.Addresses[x.at].Subscribers++
	}
	for _, channel := range Channels {
		c := ChannelReport{Channel: channel}
		lags := newHistogram()
		for _, x := range s.all {
			if x.channel == channel {
				c.Subscribers++
				received := x.snapshot()
				c.Events += received.events - x.warm.events
				c.Bytes += received.bytes - x.warm.bytes
				c.Wholes += received.wholes - x.warm.wholes
				c.Lost += received.lost - x.warm.lost
			}
			if x.channel == channel && channel == ownChannel {
				c.Before += x.user.lag.addTo(lags)
			}
		}
		if channel == ownChannel {
			l := latency(lags)
			c.Lag = &l
		}
		if c.Subscribers > 0 {
			c.Rate = float64(c.Events) / max(r.Seconds, 1e-6)
			r.Subscribers = append(r.Subscribers, c)
		}
	}
}

// distribution returns the latency at 1 in 2, 2.5, 3.2, ... requests, up to their number.
func distribution(h *hdrhistogram.Histogram) []points {
	var all []points
	const step = 1.2589254117941673 // ten in a decade
	n := float64(h.TotalCount())
	for oneIn := 2.0; oneIn < n; oneIn *= step {
		all = append(all, points{oneIn, milliseconds(h.ValueAtQuantile(100 * (1 - 1/oneIn)))})
	}
	if n > 0 {
		all = append(all, points{max(n, 2), milliseconds(h.Max())})
	}
	return all
}

// Differs reports whether the verification found differences.
func (r *Report) Differs() bool { return r.Verification != nil && r.Verification.Found > 0 }
