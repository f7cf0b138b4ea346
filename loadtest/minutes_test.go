package loadtest

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// flat returns a report of seven rows with the same memory and orders.
func flat() *Report {
	r := &Report{}
	for i := range 7 {
		r.Minutes = append(r.Minutes, Minute{From: float64(i), To: float64(i + 1), RSS: 1e9,
			Open: 1000, Placed: float64(1000 * i)})
		r.Timeline = append(r.Timeline, Second{At: float64(i + 1), P99: 5, Max: 20})
	}
	return r
}

func TestBoundsAreJudged(t *testing.T) {
	for name, x := range map[string]struct {
		change           func(r *Report)
		broken, unjudged string
	}{
		"flat":        {func(*Report) {}, "", ""},
		"few refused": {func(r *Report) { r.Requests, r.Refused = 1000, 10 }, "", ""},
		"refused": {func(r *Report) { r.Requests, r.Refused = 1000, 11 },
			"refused: 11 of 1,000 requests were refused, which is 1.1 %; at most 1 % may be", ""},
		"all refused": {func(r *Report) { r.Requests, r.Refused = 7, 7 },
			"refused: 7 of 7 requests were refused, which is 100 %", ""},
		"late": {func(r *Report) { r.Requests, r.Late = 7, 7 }, "", ""},
		"memory": {func(r *Report) { r.Minutes[6].RSS = 1.21e9 },
			"growth: the resident memory of the last row is 1210 MB", ""},
		"heap": {func(r *Report) { r.Minutes[4].Heap, r.Minutes[6].Heap = 5e8, 6.1e8 },
			"growth: the heap of the last row is 610 MB, 1.22 times that of row 5 (500 MB)", ""},
		"snapshot": {func(r *Report) { r.Minutes[4].Bytes, r.Minutes[6].Bytes = 5e6, 7e6 },
			"growth: the snapshot of the last row is 7 MB, 1.40 times that of row 5 (5 MB)", ""},
		"no snapshot": {func(r *Report) { r.Minutes[6].Bytes = 7e6 }, "", ""},
		"less":        {func(r *Report) { r.Minutes[6].RSS = 0.5e9 }, "", ""},
		"early":       {func(r *Report) { r.Minutes[0].RSS = 0.1e9 }, "", ""},
		"unknown": {func(r *Report) { r.Minutes[6].RSS = 0 },
			"growth: the server has not reported its memory", ""},
		"orders": {func(r *Report) { r.Minutes[6].Open = 1100 },
			"level: 1,100 orders are open in the last row and 1,000 in row 5", ""},
		"short": {func(r *Report) { r.Minutes = r.Minutes[:5] }, "",
			"growth: that takes more than 5 rows"},
		"stall": {func(r *Report) {
			r.Timeline[3].Max, r.Timeline[5].Max = 150, 300
			r.Marks = []Mark{{Kind: markSnapshot, From: 3.5, To: 3.9}}
		}, "stall: 2 of 7 seconds have a request of more than 100 ms; the longest took 300 ms, " +
			"in the second that ends at 6 s; 1 of them beside a snapshot", ""},
		"deposit": {func(r *Report) { r.Banker = &Banker{Latency: Latency{Max: 200}} },
			"stall: a deposit took 200 ms", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := flat()
			x.change(r)
			broken, unjudged := r.judge(&Options{Stall: 100 * time.Millisecond, Growth: 1.2,
				AllowRefused: 1, Every: time.Minute})
			for what, got := range map[string][]string{x.broken: broken, x.unjudged: unjudged} {
				if text := strings.Join(got, "\n"); what == "" && x.broken+x.unjudged == "" &&
					text != "" || what != "" && (len(got) != 1 || !strings.HasPrefix(text, what)) {
					t.Errorf("%q, want %q", got, what)
				}
			}
		})
	}
	r := flat()
	r.Minutes[6].RSS, r.Timeline[3].Max = 9e9, 9000
	if broken, unjudged := r.judge(&Options{}); len(broken)+len(unjudged) > 0 {
		t.Errorf("without bounds: %q %q", broken, unjudged)
	}
}

// sampled returns the samples of a server with a second snapshot in progress for two of them.
func sampled(began time.Time) []Sample {
	unix := func(s float64) float64 { return float64(began.UnixMicro())/1e6 + s }
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	before := span{unix(-9), unix(-8)}
	one, two := span{unix(1.25), unix(1.5)}, span{unix(2.5), unix(1.5)}
	ended := span{two.begin, unix(4.5)}
	return []Sample{
		{taken: at(0.5), snapshot: before, stages: [snapshotStages]float64{9, 9, 9}, RSS: 1e9},
		{taken: at(2), snapshot: one, stages: [snapshotStages]float64{0.02, 0.2, 0.01}, size: 1e6,
			RSS: 2e9, CPU: 1},
		{taken: at(3), snapshot: two, stages: [snapshotStages]float64{0.75, 0.2, 0.01}, size: 1e6,
			RSS: 2e9, rewriting: 1, CPU: 3},
		{taken: at(4), snapshot: two, stages: [snapshotStages]float64{0.75, 0.2, 0.01}, size: 1e6,
			RSS: 2e9, rewriting: 1, CPU: 3},
		{taken: at(5), snapshot: ended, stages: [snapshotStages]float64{0.75, 1, 0.5}, size: 2e6,
			RSS: 2e9, audit: span{unix(4.75), unix(4.9)}, CPU: 3, Open: 7, Placed: 70, Disk: 3e6}}
}

func TestMarksAreTheServersWorkInTheLoad(t *testing.T) {
	began := time.UnixMicro(1_700_000_000_000_000)
	samples, marks := course(sampled(began), began)
	if len(samples) != 5 || samples[1].At != 2 || len(marks) != 4 {
		t.Fatalf("%+v %+v", samples, marks)
	}
	for i, want := range []Mark{{Kind: markSnapshot, From: 1.25, To: 1.5, Bytes: 1e6},
		{Kind: markSnapshot, From: 2.5, To: 4.5, Bytes: 2e6},
		{Kind: markRewrite, From: 3, To: 4}, {Kind: markAudit, From: 4.75, To: 4.9}} {
		near := func(a, b float64) bool { return a-b < 1e-4 && b-a < 1e-4 }
		if m := marks[i]; m.Kind != want.Kind || !near(m.From, want.From) ||
			!near(m.To, want.To) || m.Bytes != want.Bytes {
			t.Errorf("%+v, want %+v", m, want)
		}
	}
	if s := marks[1].Stages; s["image"] != 750 || s["upload"] != 1000 || s["trim"] != 500 {
		t.Errorf("%v", s)
	}
	// While a snapshot runs, the later stages are those of the one before.
	if _, early := course(sampled(began)[:4], began); len(early[1].Stages) != 1 ||
		early[1].To != 4 || early[1].Bytes != 0 {
		t.Errorf("%+v", early[1])
	}
	m := Minute{From: 0, To: 5}
	m.addSamples(samples, marks, 5)
	if m.Snapshots != 2 || m.Bytes != 2e6 || m.StageName != "upload" || m.Stage != 1000 ||
		m.Open != 7 || m.Placed != 70 || m.Disk != 3e6 || m.RSS != 1.8e9 ||
		m.ServerCPU != 3/4.5 {
		t.Errorf("%+v", m)
	}
}

func TestTheDueRateEndsWithThePhase(t *testing.T) {
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	s := steady(100, at(2))
	for _, x := range []struct{ from, to, want float64 }{{0, 1, 100}, {1, 2, 100},
		{1.75, 2.75, 25}, {2, 3, 0}, {3, 4, 0}, {2.5, 2.5, 0}} {
		if got := dueRate(s, at(x.from), at(x.to)); got != x.want {
			t.Errorf("from %g to %g it is %g, not %g", x.from, x.to, got, x.want)
		}
	}
	if got := dueRate(nil, 0, time.Second); got != 0 {
		t.Errorf("in a closed loop it is %g", got)
	}
}

func TestAScrapeIsRead(t *testing.T) {
	var s Sample
	if !s.read("# TYPE x gauge\nprocess_resident_memory_bytes 1.5e+09\n" +
		`exchange_snapshot_stage_seconds{stage="upload"} 0.25` + "\nexchange_open_orders 12\n" +
		"exchange_store_append_duration_seconds_sum 1.5\n" +
		"exchange_store_append_duration_seconds_count 1000\n" +
		"exchange_journal_batch_records_sum 7000\nexchange_journal_batch_records_count 1000\n" +
		`exchange_http_requests_total{code="200"} 7` + "\n") {
		t.Error("it is not read")
	}
	if s.RSS != 1.5e9 || s.stages != [snapshotStages]float64{0, 0.25, 0} || s.Open != 12 ||
		s.appends != (tally{1.5, 1000}) || s.batches != (tally{7000, 1000}) {
		t.Errorf("%+v", s)
	}
	if s.read("<html>another program</html>") {
		t.Error("a page is read")
	}
}

// rectangles counts those of a drawing by their classes, and requires it to be XML.
func rectangles(t *testing.T, svg string) map[string]int {
	t.Helper()
	rects := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return rects
		} else if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects[e.Attr[0].Value]++
		}
	}
}

func TestTheDrawingIsSelfContained(t *testing.T) {
	r := someReport()
	var b strings.Builder
	worked(t, r.WriteSVG(&b))
	rects := rectangles(t, b.String())
	// In each of six plots a key and the first snapshot. The second and everything else come after
	// the two seconds of three plots.
	if rects["snapshot"] != 6+6+3 || rects["rewrite"] != 6+3 || rects["audit"] != 6+3 {
		t.Errorf("%v", rects)
	}
	for _, say := range []string{"Latency in each second", "Open orders", "RSS", "disk",
		"this program", "prefers-color-scheme: dark"} {
		if !strings.Contains(b.String(), say) {
			t.Errorf("%q is not said", say)
		}
	}
}
