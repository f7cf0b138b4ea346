package loadtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// reportLayout is the layout of a JSON report. It grows when a member is removed or changes its
// meaning; an added member does not change it.
const reportLayout = 2

// MaxReport bounds the file of a report, in bytes. A run of a day has some 30 MB.
const MaxReport = 256 << 20

// Bounds of a report's values.
const (
	mostOperations = 100
	mostNumber     = 1e12
)

// ParseReport parses a JSON report. It refuses one of a failed run, which is no measure of the
// exchange.
func ParseReport(text []byte) (*Report, error) {
	var head struct {
		Layout *int `json:"layout"`
	}
	r := &Report{}
	switch err := json.Unmarshal(text, &head); {
	case err != nil:
		return nil, fmt.Errorf("it is no JSON report of a load test: %w", err)
	case head.Layout == nil:
		return nil, errors.New("it has no layout, so it is no JSON report of a load test, or one " +
			"of an older version: test again with --json FILE")
	case *head.Layout != reportLayout:
		return nil, fmt.Errorf("its layout is %d, and this program reads layout %d: use the "+
			"version that wrote it, or test again", *head.Layout, reportLayout)
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return r, r.fit()
}

// fit returns why a report cannot be compared.
func (r *Report) fit() error {
	v, rate, p99 := r.Verification, plausible(r.Rate), plausible(r.Latency.P99)
	switch {
	case r.Differs():
		return fmt.Errorf("its run has failed: the verification found %d differences", v.Found)
	case v != nil && v.Incomplete != "":
		return fmt.Errorf("its run has failed: the verification did not finish: %s",
			v.Incomplete)
	case r.Broke():
		return fmt.Errorf("its run has failed: %s", strings.Join(r.Broken, "; "))
	case r.Ramp != nil && r.Ramp.Highest == 0:
		return errors.New("its run has failed: no rate of the ramp held")
	case r.Done == 0:
		return errors.New("its run has failed: nothing was done")
	case len(r.Stages) > maxStages:
		return fmt.Errorf("it is damaged: no run has %d stages", len(r.Stages))
	case len(r.Operations) > mostOperations || rate == nil || *rate == 0 || p99 == nil || *p99 == 0:
		return errors.New("it is damaged: no run has such a rate, p99 or number of operations")
	}
	return nil
}

// A Comparison holds two reports side by side.
type Comparison struct {
	A        Side      `json:"a"`
	B        Side      `json:"b"`
	Settings []Setting `json:"settings"` // those that differ
	Notes    []string  `json:"notes"`    // parts that cannot be compared
	Rows     []Change  `json:"rows"`
	Worse    []string  `json:"worse"` // findings of Judge, in words
}

// A Side is one of the two reports.
type Side struct {
	File    string    `json:"file"`
	Started time.Time `json:"started"`
}

// A Setting is an option in which the two runs differ.
type Setting struct {
	Name string `json:"setting"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// A Change is a measure of both runs.
type Change struct {
	Row     string   `json:"row"`     // an operation, or an outcome of requests
	Measure string   `json:"measure"` // with its unit
	A       *float64 `json:"a"`       // null: this run has none
	B       *float64 `json:"b"`
	Ratio   *float64 `json:"ratio"` // B/A; null without both, or where A is 0
}

// Names of rows and measures with special meanings.
const (
	rowDone     = "all done"
	rowRamp     = "ramp"
	measureRate = "rate_per_second"
	measureP99  = "p99_ms"
	measurePart = "percent"

	measureMissed = "not_done_percent"

	measureCPU    = "cpu_per_order_us"
	measureAppend = "mean_append_ms"
	measureBatch  = "mean_batch_records"
)

// Compare sets two reports side by side.
func Compare(a, b *Report) (*Comparison, error) {
	if (a.Ramp == nil) != (b.Ramp == nil) {
		return nil, errors.New("one report is of a ramp and the other one is not: compare two of " +
			"a kind")
	}
	c := &Comparison{A: Side{Started: a.Started}, B: Side{Started: b.Started},
		Settings: []Setting{}, Notes: []string{}, Worse: []string{}}
	of, with := a.settings(), b.settings()
	for i, s := range of {
		if s.value != with[i].value {
			c.Settings = append(c.Settings, Setting{s.name, clip(s.value), clip(with[i].value)})
		}
	}
	if a.Ramp != nil {
		c.add(rowRamp, measureRate, plausible(a.Ramp.Highest), plausible(b.Ramp.Highest))
	}
	c.add(rowDone, measureRate, plausible(a.Rate), plausible(b.Rate))
	c.addLatencies(rowDone, &a.Latency, &b.Latency)
	for _, name := range bothOperations(a, b) {
		x, y := a.operation(name), b.operation(name)
		c.add(clip(name), measureRate, plausible(x.Rate), plausible(y.Rate))
		c.addLatencies(clip(name), &x.Latency, &y.Latency)
	}
	if a.Server != nil || b.Server != nil {
		c.addServers(a.Server, b.Server)
	}
	parts, others := a.parts(), b.parts()
	for i, x := range parts {
		y := others[i]
		if x.always || x.latency.Count+y.latency.Count > 0 {
			c.add(x.name, measurePart, plausible(x.percent), plausible(y.percent))
		}
		if x.latency.Count+y.latency.Count > 0 {
			c.addLatencies(x.name, x.latency, y.latency)
		}
	}
	c.addStages(a.Stages, b.Stages)
	return c, nil
}

// addStages adds the stages, if the runs had the same ones.
func (c *Comparison) addStages(a, b []StageReport) {
	if !slices.EqualFunc(a, b, func(x, y StageReport) bool {
		return x.Seconds == y.Seconds && x.From == y.From && x.To == y.To
	}) {
		c.Notes = append(c.Notes, "The stages differ, so they are not compared one by one.")
		return
	}
	for i := range a {
		x, y := &a[i], &b[i]
		row := clip(fmt.Sprintf("stage %d, %s/s", i+1, ratesText(x.From, x.To)))
		c.add(row, measureRate, x.rate(), y.rate())
		c.addLatencies(row, &x.Latency, &y.Latency)
		c.add(row, measureMissed, plausible(x.missed()), plausible(y.missed()))
	}
}

// rate returns the requests done a second in the stage's own time; nil: not in the report.
func (s *StageReport) rate() *float64 {
	if s.Rate == nil {
		return nil
	}
	return plausible(*s.Rate)
}

// missed returns the percentage of requests that were refused, had no outcome, or were not sent.
func (s *StageReport) missed() float64 {
	return 100 * float64(s.Refused+s.Unknown+s.Unsent) / max(float64(s.Requests+s.Unsent), 1)
}

// A part is a share of the requests that was not done.
type part struct {
	name    string
	percent float64 // of all requests, including unsent ones
	latency *Latency
	always  bool // has a row even if zero
}

func (r *Report) parts() []part {
	all := []part{{name: "too late", latency: &r.Lates},
		{name: "refused", latency: &r.Refusals, always: true},
		{name: "without an outcome", latency: &r.Unknowns, always: true},
		{name: "due and not sent", latency: &r.UnsentLatency}}
	for i := range all {
		all[i].percent = 100 * float64(all[i].latency.Count) / max(float64(r.Requests+r.Unsent), 1)
	}
	return all
}

// bothOperations returns the names of the operations of either report.
func bothOperations(a, b *Report) (names []string) {
	for _, x := range slices.Concat(a.Operations, b.Operations) {
		if !slices.Contains(names, x.Name) {
			names = append(names, x.Name)
		}
	}
	return names
}

// operation returns the measures of an operation, 0 if there was none.
func (r *Report) operation(name string) Operation {
	for _, x := range r.Operations {
		if x.Name == name {
			return x
		}
	}
	return Operation{}
}

// plausible returns a number of a report; nil if it is impossible.
func plausible(v float64) *float64 {
	if !(v >= 0 && v <= mostNumber) { // or not a number
		return nil
	}
	return &v
}

func (c *Comparison) add(row, measure string, a, b *float64) {
	x := Change{Row: row, Measure: measure, A: a, B: b}
	if a != nil && b != nil && *a > 0 {
		if ratio := *b / *a; !math.IsInf(ratio, 0) {
			x.Ratio = &ratio
		}
	}
	c.Rows = append(c.Rows, x)
}

// addLatencies adds the percentiles of a row.
func (c *Comparison) addLatencies(row string, a, b *Latency) {
	for _, m := range []struct {
		name string
		of   func(l *Latency) float64
	}{{"p50_ms", func(l *Latency) float64 { return l.P50 }},
		{"p90_ms", func(l *Latency) float64 { return l.P90 }},
		{measureP99, func(l *Latency) float64 { return l.P99 }},
		{"p999_ms", func(l *Latency) float64 { return l.P999 }},
		{"max_ms", func(l *Latency) float64 { return l.Max }}} {
		value := func(l *Latency) *float64 {
			if l.Count == 0 {
				return nil
			}
			return plausible(m.of(l))
		}
		c.add(row, m.name, value(a), value(b))
	}
}

// addServers adds the run's cost on the servers; nil: unknown.
func (c *Comparison) addServers(a, b *Server) {
	for _, m := range []struct {
		name string
		of   func(s *Server) float64
	}{{measureCPU, func(s *Server) float64 { return s.CPU }},
		{measureAppend, func(s *Server) float64 { return s.Append }},
		{measureBatch, func(s *Server) float64 { return s.Batch }}} {
		value := func(s *Server) *float64 {
			if s == nil || m.of(s) == 0 {
				return nil
			}
			return plausible(m.of(s))
		}
		c.add("server", m.name, value(a), value(b))
	}
}

// Judge notes the measures that are worse in B by more than that percentage: the rate of done
// requests, and its p99. For ramps it is the highest rate that held.
func (c *Comparison) Judge(percent float64) {
	for _, x := range c.Rows {
		if x.A == nil || x.B == nil {
			continue
		}
		a, b := *x.A, *x.B
		switch {
		case x.Measure == measureRate && b < a*(1-percent/100) && x.Row == c.judged():
			c.Worse = append(c.Worse, fmt.Sprintf("%s fell by %.3g %%, from %s to %s",
				x.title(), 100*(1-b/a), x.text(x.A), x.text(x.B)))
		case x.Measure == measureP99 && b > a*(1+percent/100) && x.Row == c.judged():
			c.Worse = append(c.Worse, fmt.Sprintf("p99 rose by %.3g %%, from %s to %s",
				100*(b/a-1), x.text(x.A), x.text(x.B)))
		}
	}
}

// judged returns the row for Judge.
func (c *Comparison) judged() string {
	if c.Rows[0].Row == rowRamp {
		return rowRamp
	}
	return rowDone
}

// titles are names of measures for people.
var titles = map[string]string{measureRate: "done/s", measurePart: "%",
	measureMissed: "% not done", "p999_ms": "p99.9",
	"max_ms": "longest", measureCPU: "CPU us/order", measureAppend: "mean append",
	measureBatch: "records/append"}

// title returns the measure's name for people.
func (x *Change) title() string {
	if x.Row == rowRamp {
		return "highest rate"
	}
	if title := titles[x.Measure]; title != "" {
		return title
	}
	return strings.TrimSuffix(x.Measure, "_ms")
}

// text writes a value for people.
func (x *Change) text(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case x.Measure == measureRate:
		return thousands(uint64(*v + 0.5))
	case x.Measure == measurePart || x.Measure == measureMissed:
		return fmt.Sprintf("%.3g", *v)
	case x.Measure == measureCPU || x.Measure == measureBatch:
		return fmt.Sprintf("%.1f", *v)
	}
	return ms(*v)
}

// change formats the ratio for people: as a factor from the double and the half on.
func (x *Change) change() string {
	if x.Ratio == nil {
		return ""
	}
	switch r := *x.Ratio; {
	case r >= 2 || r <= 0.5:
		return fmt.Sprintf("x%.3g", r)
	case math.Abs(r-1) < 0.0005:
		return "0 %"
	default:
		return fmt.Sprintf("%+.1f %%", 100*(r-1))
	}
}

// A setting is a run's option, for people.
type setting struct{ name, value string }

// settings returns a run's options. All reports have the same names in the same order.
func (r *Report) settings() []setting {
	o := &r.Options
	rate := "closed loop"
	if r.Ramp != nil {
		rate = "ramp, p99 of at most " + ms(r.Ramp.Bound)
	} else if o.Stages != "" {
		rate = "stages"
	} else if o.Rate > 0 {
		rate = fmt.Sprintf("%g/s", o.Rate)
	}
	var subscribers []string
	for channel, n := range o.Subscribers {
		subscribers = append(subscribers, fmt.Sprintf("%s=%d", channel, n))
	}
	slices.Sort(subscribers)
	all := []setting{{"rate", rate}, {"stages", o.Stages},
		{"connections", fmt.Sprint(o.Connections)},
		{"sockets", fmt.Sprint(o.Sockets)}, {"batch", fmt.Sprint(o.Batch)},
		{"threads", fmt.Sprint(o.Threads)}, {"pairs", fmt.Sprint(o.Pairs)},
		{"accounts", fmt.Sprint(o.Accounts)}, {"duration", fmt.Sprintf("%g s", o.Duration)},
		{"warmup", fmt.Sprintf("%g s", o.Warmup)}, {"interrupted", fmt.Sprint(r.Interrupted)},
		{"model", o.Model}, {"mix", o.Mix},
		{"instructed", fmt.Sprint(o.Instructed)}, {"open orders", fmt.Sprint(o.OpenOrders)},
		{"deposits", fmt.Sprintf("%g/s", o.Deposits)}, {"seed", fmt.Sprint(o.Seed)},
		{"subscribers", strings.Join(subscribers, ",")}, {"address", o.Address}}
	s := Server{}
	if r.Server != nil {
		s = *r.Server
	}
	all = append(all, setting{"version", s.Version}, setting{"commit", s.Commit},
		setting{"store", s.Store}, setting{"cluster", fmt.Sprint(s.Node != "")})
	for i := range all {
		all[i].value = cmp.Or(all[i].value, "-")
	}
	return all
}

// clipAt is the longest text of a report that is shown, in characters.
const clipAt = 34

// clip makes a text of a report safe for a terminal.
func clip(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
	if utf8.RuneCountInString(text) > clipAt {
		text = string([]rune(text)[:clipAt-3]) + "..."
	}
	return text
}

// WriteText writes the comparison for people, within 100 columns.
func (c *Comparison) WriteText(out io.Writer) error {
	b := &strings.Builder{}
	const layout = "2006-01-02 15:04:05"
	fmt.Fprintf(b, "A  %s UTC  %s\nB  %s UTC  %s\n\n", c.A.Started.UTC().Format(layout), c.A.File,
		c.B.Started.UTC().Format(layout), c.B.File)
	if len(c.Settings) == 0 {
		b.WriteString("The settings are the same.\n")
	} else {
		rows := [][]string{{"settings that differ", "A", "B"}}
		for _, s := range c.Settings {
			rows = append(rows, []string{s.Name, s.A, s.B})
		}
		writeTable(b, rows, len(rows[0]))
	}
	for _, text := range c.Notes {
		fmt.Fprintln(b, text)
	}
	b.WriteByte('\n')
	rows, last := [][]string{{"", "", "A", "B", "change"}}, ""
	for _, x := range c.Rows {
		name := x.Row
		if name == last {
			name = ""
		}
		last = x.Row
		rows = append(rows, []string{name, x.title(), x.text(x.A), x.text(x.B), x.change()})
	}
	writeTable(b, rows, 2)
	for _, text := range c.Worse {
		fmt.Fprintf(b, "WORSE %s\n", text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeTable writes rows of cells. The first left columns are left-aligned, the others
// right-aligned.
func writeTable(b *strings.Builder, rows [][]string, left int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line += "  "
			}
			if i < left {
				line += cell + fill
			} else {
				line += fill + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
