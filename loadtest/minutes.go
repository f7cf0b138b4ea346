package loadtest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"exchange/loadtest/generator"
)

// A Minute is a row of the table over time. The server's own numbers are 0 if the operator's
// address is unknown.
type Minute struct {
	From     float64 `json:"from"` // seconds since the load began
	To       float64 `json:"to"`
	Requests uint64  `json:"requests"`
	Done     uint64  `json:"done"`   // the latencies are of these
	Errors   uint64  `json:"errors"` // refused or unknown
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	P999     float64 `json:"p999_ms"`
	Max      float64 `json:"max_ms"`  // of all requests, whatever their outcome
	Late     uint64  `json:"late"`    // requests that the generator itself sent late
	Behind   float64 `json:"late_ms"` // the longest of these delays

	RSS       float64 `json:"rss_bytes"`  // mean
	Heap      float64 `json:"heap_bytes"` // mean
	Disk      float64 `json:"disk_bytes"` // at the end
	Snapshots int     `json:"snapshots"`  // begun
	Bytes     float64 `json:"snapshot_bytes"`
	Stage     float64 `json:"longest_stage_ms"`
	StageName string  `json:"longest_stage"`
	Open      float64 `json:"open_orders"`      // at the end
	Placed    float64 `json:"orders_placed"`    // at the end, since the server started
	ServerCPU float64 `json:"server_cpu_cores"` // mean
	OwnCPU    float64 `json:"own_cpu_cores"`    // mean
}

// A row gathers the latencies of a Minute.
type row struct {
	counters
	at      float64 // its end so far
	pace    generator.Pace
	latency *hdrhistogram.Histogram // nil: the row has not begun
	longest float64                 // in milliseconds
}

// gather adds the measurements of a second, which ends at that time of the load. A row ends with
// the second nearest to its end; it includes a shorter piece after the last second.
func (t *test) gather(s *Second, h *hdrhistogram.Histogram, c counters, pace generator.Pace) {
	at := s.At
	end := t.o.Every.Seconds() * float64(len(t.minutes)+1)
	if t.row.at >= end-0.5 && at > t.row.at+0.5 {
		t.endRow()
	}
	if t.row.latency == nil {
		t.row.latency = newHistogram()
	}
	t.row.latency.Merge(h)
	t.row.longest = max(t.row.longest, s.Max)
	t.row.add(c)
	t.row.pace.Add(pace)
	t.row.at = at
}

// endRow closes the open row.
func (t *test) endRow() {
	r := &t.row
	if r.latency == nil || r.requests+r.unsent == 0 {
		return
	}
	l := latency(r.latency)
	from := 0.0
	if n := len(t.minutes); n > 0 {
		from = t.minutes[n-1].To
	}
	t.minutes = append(t.minutes, Minute{From: from, To: r.at, Requests: r.requests,
		Done: r.done, Errors: r.refused + r.unknown, P50: l.P50, P99: l.P99, P999: l.P999,
		Max:  r.longest,
		Late: r.pace.Late, Behind: milliseconds(r.pace.Longest.Microseconds())})
	t.pace.Add(r.pace)
	t.row = row{}
}

// addSamples adds the server's samples in the row's time, and until a moment after it.
func (m *Minute) addSamples(samples []Sample, marks []Mark, until float64) {
	var first, last *Sample
	n := 0.0
	for i := range samples {
		s := &samples[i]
		if s.At < m.From || s.At > until {
			continue
		}
		if first == nil {
			first = s
		}
		last = s
		n++
		m.RSS += s.RSS
		m.Heap += s.Heap
	}
	if n == 0 {
		return
	}
	m.RSS /= n
	m.Heap /= n
	m.Disk, m.Open, m.Placed = last.Disk, last.Open, last.Placed
	if took := last.At - first.At; took > 0 {
		m.ServerCPU, m.OwnCPU = (last.CPU-first.CPU)/took, (last.Own-first.Own)/took
	}
	for _, k := range marks {
		if k.Kind != markSnapshot || k.From < m.From || k.From >= m.To {
			continue
		}
		m.Snapshots++
		m.Bytes = max(m.Bytes, k.Bytes)
		for _, name := range stageNames {
			if k.Stages[name] > m.Stage {
				m.Stage, m.StageName = k.Stages[name], name
			}
		}
	}
}

// Rows between which memory is compared: the fifth and the last.
const firstLevel = 5

// mostDrift is how far the number of open orders may drift when memory is compared.
const mostDrift = 0.05

// judge lists the violated bounds, and those that could not be judged.
func (r *Report) judge(o *Options) (broken, unjudged []string) {
	if percent := r.refusedPercent(); percent > o.AllowRefused && !o.Ramp { // a ramp judges itself
		broken = append(broken, fmt.Sprintf("refused: %s of %s requests were refused, which is "+
			"%.3g %%; at most %g %% may be (--allow-refused)", thousands(r.Refused),
			thousands(r.Requests), percent, o.AllowRefused))
	}
	if o.Stall > 0 {
		broken = append(broken, r.stalls(milliseconds(o.Stall.Microseconds()))...)
	}
	if o.Growth == 0 {
		return broken, nil
	}
	if len(r.Minutes) <= firstLevel {
		return broken, []string{fmt.Sprintf(
			"growth: that takes more than %d rows of %v", firstLevel, o.Every)}
	}
	base, last := &r.Minutes[firstLevel-1], &r.Minutes[len(r.Minutes)-1]
	if base.RSS == 0 || last.RSS == 0 {
		return append(broken, "growth: the server has not reported its memory"), nil
	}
	if drift := last.Open/max(base.Open, 1) - 1; math.Abs(drift) > mostDrift {
		broken = append(broken, fmt.Sprintf(
			"level: %s orders are open in the last row and %s in row %d, so memory cannot be "+
				"compared",
			thousands(uint64(last.Open)), thousands(uint64(base.Open)), firstLevel))
	}
	for _, grown := range []struct {
		what        string
		first, last float64
	}{{"resident memory", base.RSS, last.RSS}, {"heap", base.Heap, last.Heap},
		{"snapshot", base.Bytes, last.Bytes}} { // only if the first row has a snapshot
		if by := grown.last / grown.first; grown.first > 0 && by > o.Growth {
			broken = append(broken, fmt.Sprintf(
				"growth: the %s of the last row is %g MB, %.2f times that of row %d (%g MB); "+
					"at most %g times is allowed", grown.what, math.Round(grown.last/1e5)/10, by,
				firstLevel, math.Round(grown.first/1e5)/10, o.Growth))
		}
	}
	return broken, nil
}

// stalls lists the seconds whose longest latency is above the bound.
func (r *Report) stalls(bound float64) []string {
	var worst Second
	n := 0
	during := map[string]int{}
	for i, s := range r.Timeline {
		if s.Max <= bound {
			continue
		}
		if n++; s.Max > worst.Max {
			worst = s
		}
		from := 0.0
		if i > 0 {
			from = r.Timeline[i-1].At
		}
		kinds := map[string]bool{}
		for _, m := range r.Marks {
			kinds[m.Kind] = kinds[m.Kind] || m.From <= s.At && m.To >= from
		}
		for kind, yes := range kinds {
			if yes {
				during[kind]++
			}
		}
	}
	var all []string
	if n > 0 {
		text := fmt.Sprintf("stall: %d of %d seconds have a request of more than %s; the longest "+
			"took %s, in the second that ends at %.0f s", n, len(r.Timeline), ms(bound),
			ms(worst.Max), worst.At)
		for _, kind := range markKinds {
			if during[kind] > 0 {
				text += fmt.Sprintf("; %d of them beside a %s", during[kind], kind)
			}
		}
		all = append(all, text)
	}
	if b := r.Banker; b != nil && b.Latency.Max > bound {
		all = append(all, fmt.Sprintf("stall: a deposit took %s, more than %s", ms(b.Latency.Max),
			ms(bound)))
	}
	return all
}

// Broke reports whether the load violated a bound.
func (r *Report) Broke() bool { return len(r.Broken) > 0 }

// complete adds the samples, joins them with the rows, and judges.
func (r *Report) complete(t *test, w *watcher, b *Banker) {
	began := t.base.Add(t.began)
	r.Banker = b
	r.Pace = Pace{t.pace.Sent, t.pace.Late, milliseconds(t.pace.Longest.Microseconds())}
	r.Samples, r.Marks, r.Minutes = []Sample{}, []Mark{}, append([]Minute{}, t.minutes...)
	if w != nil {
		samples, marks := course(w.samples, began)
		r.Samples, r.Marks = append(r.Samples, samples...), append(r.Marks, marks...)
		r.Unsampled, r.Server = w.unanswered, w.server(samples)
	}
	for i := range r.Minutes {
		until := math.Inf(1)
		if i < len(r.Minutes)-1 {
			until = r.Minutes[i].To + watchEvery.Seconds()/2
		}
		r.Minutes[i].addSamples(r.Samples, r.Marks, until)
	}
	broken, unjudged := r.judge(t.o)
	r.Broken, r.Unjudged = append([]string{}, broken...), append([]string{}, unjudged...)
}

// A Pace is how well the generator kept the schedule of an open loop.
type Pace struct {
	Sent    uint64  `json:"sent"`
	Late    uint64  `json:"late"`    // more than 1 ms after the due time, with a free connection
	Longest float64 `json:"late_ms"` // the longest of these delays
}

// writeMinutes writes the table over time, and the results of the bounds.
func (r *Report) writeMinutes(b *strings.Builder) {
	if len(r.Minutes) > 1 || len(r.Samples) > 0 {
		r.writeRows(b)
	}
	if p := r.Pace; p.Sent > 0 {
		fmt.Fprintf(b, "\nschedule: of %s requests the generator sent %s more than 1 ms late "+
			"beside a free connection, the longest by %s\n", thousands(p.Sent), thousands(p.Late),
			ms(p.Longest))
		if s := r.longestBacklog(); s.Backlog > 0 {
			fmt.Fprintf(b, "backlog: at most %s requests were due and not answered, at %.0f s\n",
				thousands(s.Backlog), s.At)
		}
	}
	if k := r.Banker; k != nil {
		fmt.Fprintf(b, "banker: %s deposits, %s failed; p50 %s, p99 %s, longest %s\n",
			thousands(k.Deposits), thousands(k.Failed), ms(k.Latency.P50), ms(k.Latency.P99),
			ms(k.Latency.Max))
	}
	if r.Unsampled > 0 {
		fmt.Fprintf(b, "%d times the server did not return its metrics\n", r.Unsampled)
	}
	for _, text := range r.Unjudged {
		fmt.Fprintf(b, "not judged: %s\n", text)
	}
	for _, text := range r.Broken {
		fmt.Fprintf(b, "BROKEN %s\n", text)
	}
}

// longestBacklog returns the second that ended with the most requests due and not answered.
func (r *Report) longestBacklog() (most Second) {
	for _, s := range r.Timeline {
		if s.Backlog > most.Backlog {
			most = s
		}
	}
	return most
}

// rowHead are the columns of the table over time.
var rowHead = []string{"until", "requests", "done", "p50", "p99", "p99.9", "longest", "late by",
	"RSS MB", "heap MB", "disk MB", "snapshots", "MB", "longest stage", "open orders", "placed",
	"server CPU", "own CPU"}

// cells returns a row's cells, below rowHead; "-" is unknown.
func (m *Minute) cells() []string {
	known := func(v float64, text string) string {
		if v == 0 {
			return "-"
		}
		return text
	}
	number := func(v float64) string { return thousands(uint64(v + 0.5)) }
	return []string{time.Duration(math.Round(m.To) * float64(time.Second)).String(),
		thousands(m.Requests), thousands(m.Done), ms(m.P50), ms(m.P99), ms(m.P999), ms(m.Max),
		ms(m.Behind),
		known(m.RSS, megabytes(m.RSS)), known(m.Heap, megabytes(m.Heap)),
		known(m.Disk, megabytes(m.Disk)), fmt.Sprint(m.Snapshots),
		known(m.Bytes, fmt.Sprintf("%.1f", m.Bytes/1e6)),
		known(m.Stage, m.StageName+" "+ms(m.Stage)), known(m.Placed, number(m.Open)),
		known(m.Placed, number(m.Placed)), known(m.ServerCPU, fmt.Sprintf("%.2f", m.ServerCPU)),
		known(m.OwnCPU, fmt.Sprintf("%.2f", m.OwnCPU))}
}

func (r *Report) writeRows(b *strings.Builder) {
	b.WriteByte('\n')
	writeTable(b, r.tableRows(), 0)
}

func megabytes(v float64) string { return thousands(uint64(v/1e6 + 0.5)) }

// tableRows returns the table over time, its head first.
func (r *Report) tableRows() [][]string {
	rows := slices.Grow([][]string{rowHead}, len(r.Minutes))
	for i := range r.Minutes {
		rows = append(rows, r.Minutes[i].cells())
	}
	return rows
}
