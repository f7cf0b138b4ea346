package loadtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/loadtest/generator"
)

func TestStagesRoundTrip(t *testing.T) {
	got, err := ParseStages("30s@1000, 1m30s@..5000,1h@5000..0.5,500ms@..0,1h0m1s@7..7,20s@0")
	stage := func(length time.Duration, from, to float64) generator.Stage {
		return generator.Stage{Length: length, From: from, To: to}
	}
	want := []generator.Stage{stage(30*time.Second, 1000, 1000), stage(90*time.Second, 1000, 5000),
		stage(time.Hour, 5000, 0.5), stage(500*time.Millisecond, 0.5, 0),
		stage(time.Hour+time.Second, 7, 7), stage(20*time.Second, 0, 0)}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	if text := stagesText(got); text !=
		"30s@1000,1m30s@1000..5000,1h@5000..0.5,500ms@0.5..0,1h0m1s@7,20s@0" {
		t.Error(text)
	}
	if got, err = ParseStages("10s@..100"); err != nil || got[0].From != 0 || got[0].To != 100 {
		t.Errorf("a first line without its first rate: %v %v", got, err)
	}
	for text, say := range map[string]string{"": `the stage ""`, "30s": `the stage "30s"`,
		"30@1000": `the stage "30@1000"`, "1s@1,": `the stage ""`, "1s@": `the rate ""`,
		"1s@many": `the rate "many"`, "1s@1..": `the rate ""`, "1s@1..2..3": `the rate "2..3"`,
		"1s@1-2":                      `the rate "1-2"`,
		strings.Repeat("1s@1,", 100):  "more than 100",
		strings.Repeat("1s@1,", 1000): "more than 100"} {
		_, err := ParseStages(text)
		var u Usage
		if err == nil || !strings.Contains(err.Error(), say) || !errors.As(err, &u) ||
			!strings.HasPrefix(err.Error(), "--stages") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// staged returns options with stages.
func staged(t testing.TB, text string) Options {
	t.Helper()
	o := good()
	o.Duration = 0
	var err error
	if o.Stages, err = ParseStages(text); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWrongStagesAreRefused(t *testing.T) {
	const fine = "1s@10,1s@0"
	o := staged(t, fine)
	o.Warmup = time.Second
	if err := o.Validate(); err != nil || o.length() != 2*time.Second {
		t.Error(err, o.length())
	}
	for _, x := range []struct {
		stages, say string
		change      func(o *Options)
	}{{fine, "no --duration, --rate or --ramp", func(o *Options) { o.Duration = time.Second }},
		{fine, "no --duration, --rate or --ramp", func(o *Options) { o.Rate = 5 }},
		{fine, "no --duration, --rate or --ramp",
			func(o *Options) { o.Ramp, o.P99 = true, time.Second }},
		{"1s@10,0s@10", "has the stage 0s@10: write a time", nil},
		{"-1s@10", "write a time", nil}, {"1s@-1", `rate "-1"`, nil}, {"1s@1..-1", `rate "-1"`, nil},
		{"1s@NaN", `rate "NaN"`, nil}, {"1s@10000001", "0 to 10000000", nil},
		{"1s@1..Inf", "0 to 10000000", nil}, {"1s@0,1m@0..0", "no rate above 0", nil},
		{"168h@1,1ns@1", "longer than 168h0m0s", nil},
		{"2562047h@1,2562047h@1", "longer than 168h0m0s", nil},
		{"1s@..10", "--warmup", func(o *Options) { o.Warmup = time.Second }},
		{fine, "at most 100", func(o *Options) { o.Stages = slices.Repeat(o.Stages, 51) }}} {
		o := staged(t, x.stages)
		if x.change != nil {
			x.change(&o)
		}
		err := o.Validate()
		var u Usage
		if err == nil || !strings.Contains(err.Error(), x.say) || !errors.As(err, &u) {
			t.Errorf("%s: %v", x.stages, err)
		}
	}
}

// A server that stalls in the second stage answers its requests in the fourth one. They count in
// the stage in which they were due, and so do those never sent. The rate of a stage counts the
// requests done in it.
func TestARequestCountsInTheStageInWhichItWasDue(t *testing.T) {
	for _, batch := range []int{0, 5} {
		t.Run(fmt.Sprintf("batch=%d", batch), func(t *testing.T) {
			allWays(t, func(t *testing.T) {
				items := uint64(max(batch, 1))
				var requests, ids atomic.Uint64
				stalled := make(chan struct{})
				address := serve(t, func(ctx *fasthttp.RequestCtx) {
					if requests.Add(1) >= 250/items {
						<-stalled
					}
					answerAll(ctx, &ids)
				})
				o := staged(t, "200ms@1000,200ms@1000,100ms@0,200ms@0..2000,1s@..0")
				o.Addresses, o.Mix, o.Batch = []string{address}, Mix{Place: 100}, batch
				o.Connections, o.Accounts, o.Threads, o.Timeout = 6, 6, 3, time.Minute
				x, _ := newSender(t, &o)
				ended := reported(t, x, &o)
				// More wait than were due in the second stage, so it is the fourth one.
				for waiting := uint64(0); waiting*items < 200; {
					waiting = 0
					for _, l := range x.clients {
						l.generator.Inspect(func(_ int, n uint64) { waiting += n })
					}
					select {
					case <-ended:
						t.Fatal("it ended before enough waited")
					case <-time.After(time.Millisecond):
					}
				}
				close(stalled)
				for i, s := range <-ended {
					all, want := s.Requests+s.Unsent, []uint64{200, 200, 0, 200, 1000}[i]
					if all != want || s.Done != s.Requests || s.Latency.Count != int64(s.Done) ||
						s.Ran != s.Seconds {
						t.Errorf("%d requests count in stage %d, where %d were due: %+v", all, i+1,
							want, s)
					}
					if i == 1 && (s.Longest < 100 || math.Round(*s.Rate*s.Ran) > 100) {
						t.Errorf("the stall over the third stage is not seen in the second, which "+
							"did %g requests a second: %+v", *s.Rate, s)
					}
				}
			})
		})
	}
}

func TestARequestThatIsNotSentCountsInItsStage(t *testing.T) {
	allWays(t, func(t *testing.T) {
		release := make(chan struct{})
		o := staged(t, "100ms@1000,100ms@0..4000,50ms@0")
		o.Addresses = []string{serve(t, func(*fasthttp.RequestCtx) { <-release })}
		o.Mix, o.Connections, o.Accounts, o.Timeout = Mix{Place: 100}, 2, 2, 300*time.Millisecond
		x, _ := newSender(t, &o)
		s, took, err := x.phase(o.schedule(), o.length(), x.stageTitle)
		close(release)
		if err != nil {
			t.Fatal(err)
		}
		r := o.stageReports(s, took)
		if a, b, c := r[0], r[1], r[2]; a.Requests+a.Unsent != 100 || b.Requests+b.Unsent != 200 ||
			a.Unsent == 0 || b.Unsent == 0 || a.Done+b.Done != 0 || a.Unknown+b.Unknown == 0 ||
			a.Longest < 150 || c.Requests+c.Unsent != 0 || c.Longest != 0 {
			t.Errorf("%+v", r)
		}
		if s.unknown != s.requests || s.unknown < 2 || s.kinds["no answer in time"] != s.unknown ||
			s.all.TotalCount() > 0 || s.unsentWaits.ValueAtPercentile(10) < 10_000 {
			t.Errorf("%+v %v", s.counters, s.kinds)
		}
	})
}

// answerAll accepts an order, or each order of a batch.
func answerAll(ctx *fasthttp.RequestCtx, ids *atomic.Uint64) {
	if string(ctx.Path()) != "/api/v1/order-batch/" {
		ctx.SetStatusCode(201)
		fmt.Fprintf(ctx, placedAnswer, ids.Add(1))
		return
	}
	var orders []json.RawMessage
	_ = json.Unmarshal(ctx.PostArgs().Peek("orders"), &orders) // without any, counts are wrong
	answers := make([]string, len(orders))
	for i := range orders {
		answers[i] = `{"status":201,"body":` + fmt.Sprintf(placedAnswer, ids.Add(1)) + "}"
	}
	fmt.Fprintf(ctx, `{"results":[%s]}`, strings.Join(answers, ","))
}

func TestTheProgressNamesTheStage(t *testing.T) {
	o := staged(t, "1s@10,1s@10..20.5")
	x := &test{o: &o}
	for at, want := range map[time.Duration]string{0: "stage 1 of 2 at 10/s: ",
		time.Second: "stage 2 of 2 at 10..20.5/s: ", time.Hour: "stage 2 of 2 at 10..20.5/s: "} {
		if got := x.stageTitle(at); got != want {
			t.Errorf("at %v it is %q", at, got)
		}
	}
	o = good()
	if got := x.stageTitle(0); got != "" {
		t.Errorf("without stages it is %q", got)
	}
}

// stagedReport returns a report of two stages, the second of which was interrupted.
func stagedReport(t *testing.T) *Report {
	o := staged(t, "2s@400,4s@400..0")
	x := &test{o: &o, base: time.UnixMicro(1_700_000_000_000_000),
		availability: []*availability{{}}, field: &field{pairs: []*pair{{name: "BTC_USDT"}}}}
	s := newStats(1, 1, 2)
	for i := range 1000 {
		s.note(&item{op: opPlace, pair: x.field.pairs[0], stage: i % 2}, 0,
			time.Duration(1+i%2)*time.Millisecond, isDone)
	}
	s.note(&item{op: opPlace, stage: 1}, 0, time.Minute, isRefused)
	s.note(&item{op: opCancel, stage: 1}, 0, time.Second, isLate)
	s.note(&item{op: opCancel, stage: 1}, 0, time.Second, isUnknown)
	s.noteUnsent(1, 2*time.Minute)
	for at, n := range map[time.Duration]uint64{0: 300, 2*time.Second - 1: 100,
		2 * time.Second: 400, 4 * time.Second: 101, 6 * time.Second: 100, time.Hour: 7} {
		s.finish(o.schedule(), at, n)
	}
	x.seconds = []Second{{At: 1, Rate: 400, Asked: 400}, {At: 4, Rate: 250, Asked: 300}}
	sum := newStats(1, 1, 2)
	sum.merge(s)
	r := x.newReport()
	r.setMeasurements(x, sum, 4*time.Second, time.Second)
	return r
}

func TestEachStageHasARow(t *testing.T) {
	r := stagedReport(t)
	if a, b := &r.Stages[0], &r.Stages[1]; a.Requests != 500 || *a.Rate != 200 || a.Ran != 2 ||
		a.Latency.P50 < 0.99 || a.Latency.P50 > 1.01 || a.Longest != 1 || a.Unsent != 0 ||
		b.Requests != 503 || b.Done != 500 || b.Late != 1 || b.Refused != 1 || b.Unknown != 1 ||
		b.Unsent != 1 || *b.Rate != 250.5 || b.Ran != 2 || b.Seconds != 4 || b.From != 400 ||
		b.To != 0 || b.Latency.Count != 500 || b.Longest != 120_000 {
		t.Errorf("%+v\n%+v", a, b)
	}
	if r.Options.Stages != "2s@400,4s@400..0" || r.Options.Rate != 0 || r.Options.Duration != 6 {
		t.Errorf("%+v", r.Options)
	}
	var text, page bytes.Buffer
	worked(t, errors.Join(r.WriteText(&text), r.WriteHTML(&page)))
	for _, say := range []string{"random-walk, open loop of 2 stages, mix", "1 due and not sent\n",
		"stage  from  to  asked/s  done/s  requests  refused  unknown  not sent  ",
		"    1    0s  2s      400     200       500        0        0         0",
		"    2    2s  6s   400..0     251       503        1        1         1", "120000 ms\n",
		stageNote} {
		if !strings.Contains(text.String(), say) {
			t.Errorf("%q is not said in\n%s", say, &text)
		}
	}
	for _, say := range []string{"open loop of 2 stages", "<h2>Stages</h2>",
		"<td>400..0<td>251<td>503", stageNote,
		"1 due and not sent", "<title>stage 2 begins</title>", "<title>asked</title>"} {
		if !strings.Contains(page.String(), say) {
			t.Errorf("%q is not there", say)
		}
	}
	if n := strings.Count(page.String(), "<title>stage "); n != 3 { // one in each plot over time
		t.Errorf("%d lines between stages", n)
	}
}

func TestStagesOfTwoReportsAreComparedIfTheyAreTheSame(t *testing.T) {
	a, b := parsed(t, recorded(t, "before.json")), parsed(t, recorded(t, "before.json"))
	a.Options.Stages, a.Stages = "2s@400,4s@400..0", stagedReport(t).Stages
	b.Options.Stages, b.Stages = a.Options.Stages, slices.Clone(a.Stages)
	rate := 501.0
	b.Stages[1].Rate, b.Stages[1].Latency.P99, b.Stages[1].Unsent = &rate, 4, 504
	text := func() string {
		var out strings.Builder
		worked(t, compared(t, a, b).WriteText(&out))
		return out.String()
	}
	for _, say := range []string{"settings are the same", "\nstage 1, 400/s      done/s ",
		"\nstage 2, 400..0/s   done/s               251       501       x2\n", " 4.00 ms ",
		"% not done         0.595      50.2 "} {
		if !strings.Contains(text(), say) {
			t.Errorf("%q is not said in\n%s", say, text())
		}
	}
	// The rate of an earlier version counted the due requests.
	earlier := parsed(t, strings.Replace(recorded(t, "before.json"), `"operations": [`,
		`"stages": [{"seconds": 2, "from_rate": 400, "to_rate": 400, "ran_seconds": 2, "rate": 9}, `+
			`{"seconds": 4, "from_rate": 400, "rate": 9}], "operations": [`, 1))
	earlier.Options.Stages = a.Options.Stages
	a, earlier = earlier, a
	say := "\nstage 1, 400/s      done/s                 -       200\n"
	if !strings.Contains(text(), say) {
		t.Errorf("%q is not said in\n%s", say, text())
	}
	a = earlier
	b.Stages[1].To = 1
	b.Options.Stages = "2s@400,4s@400..1"
	for _, say := range []string{"\nstages                2s@400,4s@400..0  2s@400,4s@400..1\n",
		"The stages differ, so they are not compared one by one.\n"} {
		if !strings.Contains(text(), say) || strings.Contains(text(), "\nstage 1") {
			t.Errorf("%q is not said in\n%s", say, text())
		}
	}
	whole := strings.Replace(recorded(t, "before.json"), `"operations": [`,
		`"stages": [`+strings.Repeat(`{},`, maxStages)+`{}], "operations": [`, 1)
	if _, err := ParseReport([]byte(whole)); err == nil || !strings.Contains(err.Error(),
		"no run has 101 stages") {
		t.Error(err)
	}
}

// reported sends by the schedule of some options, and returns the stages once they have ended.
func reported(t *testing.T, x *test, o *Options) <-chan []StageReport {
	ended := make(chan []StageReport, 1)
	go func() {
		s, took, err := x.phase(o.schedule(), o.length(), x.stageTitle)
		if err != nil {
			t.Error(err)
		}
		ended <- o.stageReports(s, took)
	}()
	return ended
}
