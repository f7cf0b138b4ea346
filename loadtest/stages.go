package loadtest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"exchange/loadtest/generator"
)

// Limits of stages.
const (
	maxStages     = 100
	maxStagesTime = 7 * 24 * time.Hour // in all
)

// ParseStages parses stages such as 30s@1000,1m@1000..5000,30s@..0: each has its time, and a rate,
// or the rates of a straight line. Without its first rate a line begins where the previous stage
// ends, or at 0.
func ParseStages(text string) (all []generator.Stage, err error) {
	last := 0.0
	for _, part := range strings.Split(text, ",") {
		if len(all) == maxStages {
			return nil, usagef("--stages has more than %d: write fewer", maxStages)
		}
		x, err := parseStage(strings.TrimSpace(part), last)
		if err != nil {
			return nil, err
		}
		all, last = append(all, x), x.To
	}
	return all, nil
}

// parseStage parses one stage, after one that ends with the rate last.
func parseStage(text string, last float64) (x generator.Stage, err error) {
	length, rates, ok := strings.Cut(text, "@")
	if x.Length, err = time.ParseDuration(length); !ok || err != nil {
		return x, usagef("--stages has the stage %q: write TIME@RATE or TIME@FROM..TO, such as "+
			"30s@1000 or 1m@1000..5000", text)
	}
	from, to, line := strings.Cut(rates, "..")
	switch {
	case line && from == "":
		x.From = last
	default:
		if x.From, err = strconv.ParseFloat(from, 64); err != nil {
			return x, stageRate(text, from)
		}
	}
	if x.To = x.From; line {
		if x.To, err = strconv.ParseFloat(to, 64); err != nil {
			return x, stageRate(text, to)
		}
	}
	return x, nil
}

func stageRate(stage, rate string) error {
	return usagef("--stages has the rate %q in the stage %q: write requests a second, 0 to %d",
		rate, stage, maxRate)
}

// validateStages checks stages, which replace a rate and a time.
func (o *Options) validateStages() error {
	var sum time.Duration
	highest := 0.0
	switch n := len(o.Stages); {
	case n == 0:
		return nil
	case n > maxStages:
		return usagef("--stages has %d: write at most %d", n, maxStages)
	case o.Duration != 0 || o.Rate != 0 || o.Ramp:
		return usagef("--stages says for how long which rate is sent: write no --duration, " +
			"--rate or --ramp beside it")
	}
	for _, x := range o.Stages {
		text := stageText(x)
		switch {
		case x.Length <= 0:
			return usagef("--stages has the stage %s: write a time above 0", text)
		case !(x.From >= 0 && x.From <= maxRate): // or not a number
			return stageRate(text, rateText(x.From))
		case !(x.To >= 0 && x.To <= maxRate):
			return stageRate(text, rateText(x.To))
		case x.Length > maxStagesTime-sum:
			return usagef("--stages lasts longer than %v in all: write at most that", maxStagesTime)
		}
		sum += x.Length
		highest = max(highest, x.From, x.To)
	}
	switch {
	case highest == 0:
		return usagef("--stages has no rate above 0, so nothing would be sent")
	case o.Warmup > 0 && o.Stages[0].From == 0:
		return usagef("--warmup sends at the rate that --stages begins with, which is 0: begin " +
			"with a higher one, or write a stage in place of the warmup")
	}
	return nil
}

// schedule returns when requests are due, nil in a closed loop.
func (o *Options) schedule() *generator.Schedule {
	if len(o.Stages) > 0 {
		return generator.NewSchedule(o.Stages...)
	}
	return steady(o.Rate, o.Duration)
}

// warmupSchedule returns when requests of the warmup are due, nil in a closed loop.
func (o *Options) warmupSchedule() *generator.Schedule {
	if len(o.Stages) > 0 {
		return steady(o.Stages[0].From, o.Warmup)
	}
	return steady(o.Rate, o.Warmup)
}

// steady returns the schedule of a rate, nil without one.
func steady(rate float64, d time.Duration) *generator.Schedule {
	if rate == 0 {
		return nil
	}
	return generator.Steady(rate, d)
}

// length returns the length of the load.
func (o *Options) length() time.Duration {
	if s := o.schedule(); s != nil {
		return s.Length()
	}
	return o.Duration
}

// rateText formats a rate exactly, in the form of the option.
func rateText(rate float64) string { return strconv.FormatFloat(rate, 'f', -1, 64) }

// ratesText formats the rate of a stage, or both of a line.
func ratesText(from, to float64) string {
	if from == to {
		return rateText(from)
	}
	return rateText(from) + ".." + rateText(to)
}

// stageText formats a stage in the form of the option.
func stageText(x generator.Stage) string {
	length := x.Length.String()
	for _, zero := range []string{"m0s", "h0m"} { // 1h0m0s is 1h
		if strings.HasSuffix(length, zero) {
			length = strings.TrimSuffix(length, zero[1:])
		}
	}
	return length + "@" + ratesText(x.From, x.To)
}

// stagesText formats stages in the form of the option.
func stagesText(stages []generator.Stage) string {
	texts := make([]string, len(stages))
	for i, x := range stages {
		texts[i] = stageText(x)
	}
	return strings.Join(texts, ",")
}

// stageStats are the requests that were due in one stage.
type stageStats struct {
	counters
	latency *hdrhistogram.Histogram // of done requests; nil: none
	longest time.Duration           // whatever the outcome
	within  uint64                  // requests done in the stage's time, whenever they were due
}

func (s *stageStats) merge(t *stageStats) {
	s.add(t.counters)
	s.longest = max(s.longest, t.longest)
	s.within += t.within
	if t.latency != nil {
		s.histogram().Merge(t.latency)
	}
}

// histogram returns that of done requests. Two digits keep those of 100 stages small.
func (s *stageStats) histogram() *hdrhistogram.Histogram {
	if s.latency == nil {
		s.latency = hdrhistogram.New(1, longest, 2)
	}
	return s.latency
}

// A StageReport counts the requests that were due in one stage, whenever they were answered. Only
// its rate is of the stage's own time.
type StageReport struct {
	Seconds float64 `json:"seconds"` // requested
	From    float64 `json:"from_rate"`
	To      float64 `json:"to_rate"`
	Ran     float64 `json:"ran_seconds"` // less if the load was interrupted
	// done or too late in the time that the stage ran, whenever due; null: it did not run, or an
	// earlier version wrote the report, with a rate of another meaning
	Rate     *float64 `json:"done_per_second"`
	Requests uint64   `json:"requests"`
	Done     uint64   `json:"done"`
	Late     uint64   `json:"late_cancels"`
	Refused  uint64   `json:"refused"`
	Unknown  uint64   `json:"outcome_unknown"`
	Unsent   uint64   `json:"unsent"`
	Latency  Latency  `json:"latency"`    // of done or too late
	Longest  float64  `json:"longest_ms"` // of all requests, whatever their outcome
}

// stageReports reports each stage of a load that lasted took.
func (o *Options) stageReports(s *stats, took time.Duration) []StageReport {
	all := []StageReport{}
	for i, x := range o.Stages {
		of := &s.byStage[i]
		ran := min(max(took, 0), x.Length)
		took -= x.Length
		r := StageReport{Seconds: x.Length.Seconds(), From: x.From, To: x.To, Ran: ran.Seconds(),
			Requests: of.requests, Done: of.done, Late: of.late, Refused: of.refused,
			Unknown: of.unknown, Unsent: of.unsent, Latency: latency(of.histogram()),
			Longest: milliseconds(of.longest.Microseconds())}
		if ran > 0 {
			rate := float64(of.within) / ran.Seconds()
			r.Rate = &rate
		}
		all = append(all, r)
	}
	return all
}

// stageHead are the columns of the table of stages.
var stageHead = []string{"stage", "from", "to", "asked/s", "done/s", "requests", "refused",
	"unknown", "not sent", "p50", "p99", "longest"}

// stageNote explains the columns of the table of stages.
const stageNote = "done/s counts requests done in the time of the stage, the columns " +
	"after it those due in it."

// stageRows returns the table of stages, its head first.
func (r *Report) stageRows() [][]string {
	rows := [][]string{stageHead}
	from := 0.0
	for i, s := range r.Stages {
		to := from + s.Seconds
		rate, p50, p99, most := "-", "-", "-", "-"
		if s.Rate != nil {
			rate = thousands(uint64(*s.Rate + 0.5))
		}
		if s.Latency.Count > 0 {
			p50, p99 = ms(s.Latency.P50), ms(s.Latency.P99)
		}
		if s.Longest > 0 {
			most = ms(s.Longest)
		}
		rows = append(rows, []string{fmt.Sprint(i + 1), secondsText(from), secondsText(to),
			ratesText(s.From, s.To), rate, thousands(s.Requests), thousands(s.Refused),
			thousands(s.Unknown), thousands(s.Unsent), p50, p99, most})
		from = to
	}
	return rows
}

// secondsText writes a time of the load.
func secondsText(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

// writeStages writes the table of stages.
func (r *Report) writeStages(b *strings.Builder) {
	if len(r.Stages) > 0 {
		b.WriteByte('\n')
		writeTable(b, r.stageRows(), 0)
		fmt.Fprintln(b, stageNote)
	}
}

// stageEnds returns when the stages end, except the last one.
func (r *Report) stageEnds() (all []float64) {
	at := 0.0
	for _, s := range r.Stages[:max(len(r.Stages)-1, 0)] {
		at += s.Seconds
		all = append(all, at)
	}
	return all
}

// stageTitle names the stage at a time in the progress line.
func (t *test) stageTitle(at time.Duration) string {
	if len(t.o.Stages) == 0 {
		return ""
	}
	i := t.o.schedule().StageAt(at)
	x := t.o.Stages[i]
	return fmt.Sprintf("stage %d of %d at %s/s: ", i+1, len(t.o.Stages), ratesText(x.From, x.To))
}
