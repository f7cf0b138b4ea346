package loadtest

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

// someReport has all parts of a report, and foreign texts that could break a page.
func someReport() *Report {
	o := good()
	o.Addresses = []string{"a:1", "b:2"}
	x := &test{o: &o, base: time.UnixMicro(1_700_000_000_000_000), field: &field{
		pairs: []*pair{{name: "BTC_USDT"}, {name: "ETH_BTC", index: 1}}}}
	x.availability = []*availability{{}, {down: 2500 * time.Millisecond, more: 3,
		all: []outage{{x.base.Add(time.Second), x.base.Add(3 * time.Second)}}}}
	s := newStats(2, 2, 0)
	for i := range 1000 {
		s.note(&item{op: operation(i % int(operations)), pair: x.field.pairs[i%2]}, i%2,
			time.Duration(i)*time.Millisecond, isDone)
	}
	for range 500 {
		s.note(&item{op: opPlace, pair: x.field.pairs[1]}, 1, time.Minute, isRefused)
	}
	s.kind("400 <script>alert(1)</script>")
	s.kind("429 Request was throttled. Expected available in N seconds.")
	x.seconds = []Second{{At: 1, Rate: 600, P50: 1, P99: 2, Max: 3, Errors: 2, Backlog: 7},
		{At: 2, Rate: 400, P50: 1, P99: 20, Max: 300, Asked: 500, InFlight: 4, Waiting: 1230,
			Backlog: 1234}}
	x.pace.Sent = 1500
	r := x.newReport()
	r.setMeasurements(x, s, 2*time.Second, time.Second)
	x.minutes = []Minute{{To: 2.5, Requests: 600, P99: 2}, {From: 2.5, To: 5, Requests: 400}}
	x.o.Stall, x.o.AllowRefused = 100*time.Millisecond, 30
	w := &watcher{samples: sampled(x.base), unknown: errors.New("<b>gone</b>")}
	w.status.Version, w.status.Commit = "0.1.0", "v0.1.0"
	r.complete(x, w,
		&Banker{Deposits: 7, Latency: Latency{P99: 3}})
	r.Warmup = &Warmup{Seconds: 10, Requests: 5000, Refused: 7, Unsent: 3}
	r.Ramp = &Ramp{Bound: 10, Highest: 1000,
		Steps: []Step{{Rate: 1000, Achieved: 999, P99: 3, Holds: true},
			{Rate: 1500, Achieved: 1400, P99: 30}}}
	r.Subscribers = []ChannelReport{{Channel: "diff", Subscribers: 2, Events: 7}}
	r.Verification = &Verification{Orders: 7, Found: 2,
		Differences: []string{"<b>order 5</b> was acknowledged, and is missing"},
		NotChecked:  []string{"1 times: sums"}, Audit: "differs",
		Across: 6, Alike: 2, NotRead: []string{"b:2"}}
	return r
}

func TestTheTextReportsTheMeasurements(t *testing.T) {
	var b bytes.Buffer
	r := someReport()
	worked(t, r.WriteText(&b))
	for _, say := range []string{"RSS MB", "upload 1000 ms", "banker: 7 deposits",
		"BROKEN stall: 1 of 2 seconds", "500/s done of 750/s asked for, 33.3 % refused\n" +
			"Not counted: a warmup of 10.0 s with 5,000 requests, 7 refused, 0 without an " +
			"outcome, 3 due and not sent\n\n", "all done  ",
		"refused       500     250  60031 ms", "of 2 pairs the slowest",
		"BROKEN refused: 500 of 1,500 requests were refused, which is 33.3 %; at most 30 % may be",
		"read own orders", "place", "1,000",
		"start it with --no-rate-limits", "The highest rate that held a p99 of 10.0 ms: 1,000/s",
		"1,500/s asked",
		"2 differences:\n  <b>order 5</b>", "and 1 more", "the audit is NOT clean",
		"not checked, 1 times: sums", "diff", "b:2 did not serve for 2.0 s: from 1.0 s to 3.0 s",
		"b:2 did not serve 3 times more", "nothing was read at b:2",
		"6 of these orders were read at another address",
		"backlog: at most 1,234 requests were due and not answered, at 2 s",
		"server: exchange 0.1.0 (v0.1.0)", "us of CPU an order, of 70 orders",
		"metrics until 5.0 s of the load: <b>gone"} {
		if !strings.Contains(b.String(), say) {
			t.Errorf("%q is not said in\n%s", say, &b)
		}
	}
	r.Verification = nil
	b.Reset()
	if err := r.WriteText(&b); err != nil ||
		!strings.Contains(b.String(), "Nothing was verified.") {
		t.Error(err, b.String())
	}
}

var drawing = regexp.MustCompile(`(?s)<svg .*?</svg>`)

func TestThePageNeedsNothingElseAndRunsNothing(t *testing.T) {
	var b bytes.Buffer
	worked(t, someReport().WriteHTML(&b))
	text := b.String()
	for _, say := range []string{"longest stage", "1 of 2 seconds have", "BTC_USDT", "ETH_BTC",
		"&lt;script&gt;", "&lt;b&gt;order 5",
		"prefers-color-scheme: dark", "<td>b:2", "b:2 did not serve for 2.0 s",
		"1,000/s</b>", "not checked", "p99.9", "server: exchange 0.1.0", "&lt;b&gt;gone",
		"Not counted: a warmup of 10.0 s", "Backlog at the end", "<title>asked</title>"} {
		if !strings.Contains(text, say) {
			t.Errorf("%q is not there", say)
		}
	}
	for _, never := range []string{"<script", "http:", "https:", "src=", "@import", "url(",
		"<b>order", "NaN", "Inf", "ZgotmplZ"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is there", never)
		}
	}
	drawings := drawing.FindAllString(text, -1)
	if len(drawings) != 10 {
		t.Errorf("%d drawings", len(drawings))
	}
	for _, svg := range drawings {
		rectangles(t, svg)
	}
	// Without a single request there is a page too.
	o := good()
	x := &test{o: &o, field: &field{}, availability: []*availability{{}}}
	r := x.newReport()
	r.setMeasurements(x, newStats(0, 1, 0), 0, 0)
	b.Reset()
	if err := r.WriteHTML(&b); err != nil || strings.Contains(b.String(), "NaN") ||
		strings.Contains(b.String(), "Inf") {
		t.Errorf("%v %s", err, &b)
	}
}

func TestHistogramsKeepThreeDigitsAndAllMerge(t *testing.T) {
	a, b := newStats(1, 1, 0), newStats(1, 1, 0)
	p := &pair{name: "BTC_USDT"}
	for i := range 1000 {
		of := a
		if i%2 == 0 {
			of = b
		}
		of.note(&item{op: opPlace, pair: p}, 0, time.Duration(i+1)*time.Millisecond, isDone)
	}
	a.kind("x")
	b.kind("x")
	b.note(&item{op: opCancel}, 0, 2*time.Hour, isUnknown) // longer than its maximum
	b.note(&item{op: opCancel}, 0, 0, isRefused)
	a.merge(b)
	l := latency(a.byOperation[opPlace])
	if l.Count != 1000 || l.P50 < 499 || l.P50 > 501 || l.P99 < 989 || l.P99 > 991 || l.Max < 999 ||
		l.Max > 1001 {
		t.Errorf("%+v", l)
	}
	if a.requests != 1002 || a.done != 1000 || a.unknown != 1 || a.refused != 1 ||
		a.kinds["x"] != 2 || a.all.TotalCount() != 1000 || a.refusals.TotalCount() != 1 ||
		a.unknowns.TotalCount() != 1 || a.byPair[0].requests != 1000 {
		t.Errorf("%+v %v", a.counters, a.kinds)
	}
	if most := a.unknowns.Max(); most < longest*99/100 {
		t.Errorf("the longest is %d", most)
	}
	for i := range 2 * maxKinds {
		a.kind(strings.Repeat("y", i))
	}
	if len(a.kinds) > maxKinds+1 || a.kinds["others"] == 0 {
		t.Errorf("%d kinds", len(a.kinds))
	}
}

func TestProgressIsALineThatChangesOrALineASecond(t *testing.T) {
	s := Second{Rate: 1234.4, P50: 0.5, P99: 12.34, Errors: 2, InFlight: 3, Waiting: 5}
	var b bytes.Buffer
	p := &progress{w: &b}
	p.second(&s, "", 2*time.Second, 10*time.Second)
	if got := b.String(); got !=
		"2s of 10s: 1,234/s, 3 in flight, p50 0.500 ms, p99 12.3 ms, 2 errors, 5 wait\n" {
		t.Errorf("%q", got)
	}
	b.Reset()
	p = &progress{w: &b, terminal: true}
	p.second(&s, "", 5*time.Second, 10*time.Second)
	p.clear()
	if got := b.String(); strings.Contains(got, "\n") ||
		!strings.Contains(got, "[##########..........] 5s left") || !strings.HasSuffix(got, " \r") {
		t.Errorf("%q", got)
	}
	(&progress{}).line("nobody reads it")
}
