package loadtest

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// recorded returns the text of a report in testdata.
func recorded(t *testing.T, name string) string {
	t.Helper()
	b := must(os.ReadFile("testdata/" + name))
	return string(b)
}

func parsed(t *testing.T, text string) *Report {
	t.Helper()
	return must(ParseReport([]byte(text)))
}

func compared(t *testing.T, a, b *Report) *Comparison {
	t.Helper()
	c := must(Compare(a, b))
	c.A.File, c.B.File = "before.json", "after.json"
	return c
}

const comparedText = `A  2026-11-01 10:00:00 UTC  before.json
B  2026-11-02 10:00:00 UTC  after.json

settings that differ  A       B
connections           64      128
commit                v0.1.0  v0.1.0-7

                                           A         B   change
all done            done/s             9,900     8,415  -15.0 %
                    p50             0.500 ms  0.500 ms      0 %
                    p90              1.50 ms   1.20 ms  -20.0 %
                    p99              4.00 ms   12.0 ms       x3
                    p99.9            20.0 ms   20.0 ms      0 %
                    longest          50.0 ms   50.0 ms      0 %
place               done/s             5,900     5,900      0 %
                    p50             0.600 ms  0.600 ms      0 %
                    p90              1.50 ms   1.50 ms      0 %
                    p99              4.00 ms   4.00 ms      0 %
                    p99.9            20.0 ms   20.0 ms      0 %
                    longest          50.0 ms   50.0 ms      0 %
cancel              done/s             4,000         0       x0
                    p50             0.400 ms         -
                    p90              1.40 ms         -
                    p99              4.00 ms         -
                    p99.9            20.0 ms         -
                    longest          45.0 ms         -
read book           done/s                 0     4,000
                    p50                    -  0.400 ms
                    p90                    -   1.40 ms
                    p99                    -   4.00 ms
                    p99.9                  -   20.0 ms
                    longest                -   45.0 ms
server              CPU us/order        80.0     100.0  +25.0 %
                    mean append     0.600 ms   1.50 ms     x2.5
                    records/append      10.0      20.0       x2
refused             %                      1         2       x2
                    p50             0.200 ms  0.200 ms      0 %
                    p90             0.200 ms  0.200 ms      0 %
                    p99             0.400 ms  0.400 ms      0 %
                    p99.9            1.00 ms   1.00 ms      0 %
                    longest          1.00 ms   1.00 ms      0 %
without an outcome  %                      0      0.01
                    p50                    -  10000 ms
                    p90                    -  10000 ms
                    p99                    -  10000 ms
                    p99.9                  -  10000 ms
                    longest                -  10000 ms
due and not sent    %                      0      13.8
                    p50                    -    100 ms
                    p90                    -    200 ms
                    p99                    -    900 ms
                    p99.9                  -   1000 ms
                    longest                -   1200 ms
WORSE done/s fell by 15 %, from 9,900 to 8,415
WORSE p99 rose by 200 %, from 4.00 ms to 12.0 ms
`

func TestTwoReportsAreComparedSideBySide(t *testing.T) {
	a, b := parsed(t, recorded(t, "before.json")), parsed(t, recorded(t, "after.json"))
	c := compared(t, a, b)
	c.Judge(10)
	var out strings.Builder
	if err := c.WriteText(&out); err != nil || out.String() != comparedText {
		t.Errorf("%v\n%s", err, &out)
	}
	same := compared(t, a, a)
	same.Judge(0)
	out.Reset()
	if err := same.WriteText(&out); err != nil || len(same.Worse) > 0 ||
		!strings.Contains(out.String(), "The settings are the same.") ||
		strings.Contains(out.String(), "due and not sent") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestWorseIsLessDoneOrAHigherP99(t *testing.T) {
	a := parsed(t, recorded(t, "before.json"))
	for name, x := range map[string]struct {
		change  func(r *Report)
		percent float64
		worse   string
	}{
		"faster":        {func(r *Report) { r.Rate, r.Latency.P99 = 20_000, 1 }, 0, ""},
		"within":        {func(r *Report) { r.Rate, r.Latency.P99 = 9500, 4.3 }, 10, ""},
		"slower":        {func(r *Report) { r.Rate = 8000 }, 10, "done/s fell by 19.2 %"},
		"p99":           {func(r *Report) { r.Latency.P99 = 4.5 }, 10, "p99 rose by 12.5 %"},
		"of operations": {func(r *Report) { r.Operations[0].Latency.P99 = 99 }, 10, ""},
		"of refusals":   {func(r *Report) { r.Refusals.P99 = 99 }, 10, ""},
	} {
		b := parsed(t, recorded(t, "before.json"))
		x.change(b)
		c := compared(t, a, b)
		c.Judge(x.percent)
		got := strings.Join(c.Worse, "\n")
		if x.worse == "" && got != "" || x.worse != "" && !strings.HasPrefix(got, x.worse) {
			t.Errorf("%s: %q", name, got)
		}
	}
	// For ramps the highest rate is judged. The done requests are of all steps, and p99 has a
	// bound.
	before, after := parsed(t, recorded(t, "before.json")), parsed(t, recorded(t, "before.json"))
	before.Ramp, after.Ramp = &Ramp{Bound: 10, Highest: 2000}, &Ramp{Bound: 10, Highest: 1000}
	after.Rate, after.Latency.P99 = 1, 99
	c := compared(t, before, after)
	c.Judge(10)
	if len(c.Worse) != 1 || c.Worse[0] != "highest rate fell by 50 %, from 2,000 to 1,000" {
		t.Errorf("%q", c.Worse)
	}
	if _, err := Compare(before, a); err == nil || !strings.Contains(err.Error(), "of a ramp") {
		t.Error(err)
	}
}

func TestAReportThatCannotBeComparedIsRefused(t *testing.T) {
	whole := recorded(t, "before.json")
	for say, text := range map[string]string{
		"no JSON report":      "p99 4 ms",
		"no JSON":             `[1]`,
		"has no layout":       `{"requests":7}`,
		"its layout is 7":     strings.Replace(whole, `"layout": 2`, `"layout": 7`, 1),
		"it is damaged: json": strings.Replace(whole, `"rate": 9900`, `"rate": "high"`, 1),
		"such a rate":         strings.Replace(whole, `"rate": 9900`, `"rate": -1`, 1),
		"such a rate, p99":    strings.Replace(whole, `"p99_ms": 4,`, `"p99_ms": 1e300,`, 1),
		"found 3 differences": strings.Replace(whole, `"found": 0`, `"found": 3`, 1),
		"not finish: why": strings.Replace(whole, `"incomplete": ""`, `"incomplete": "why"`,
			1),
		"failed: refused: 9": strings.Replace(whole, `"broken": []`, `"broken": ["refused: 9"]`,
			1),
		"nothing was done": strings.Replace(whole, `"done": 590000, "late_cancels": 4000`,
			`"done": 0, "late_cancels": 0`, 1),
		"no rate of the ramp held": strings.Replace(whole, `"broken": []`,
			`"broken": [], "ramp": {"highest_rate": 0}`, 1),
		"number of operations": strings.Replace(whole, `"operations": [`,
			`"operations": [`+strings.Repeat(`{"name":"x"},`, mostOperations), 1),
	} {
		if _, err := ParseReport([]byte(text)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q is not said: %v", say, err)
		}
	}
}

// Texts of a report move no cursor and make no line longer than 100 columns.
func TestAForeignReportIsShownWithinItsColumns(t *testing.T) {
	a, b := parsed(t, recorded(t, "before.json")), parsed(t, recorded(t, "after.json"))
	long := "\x1b[2J" + strings.Repeat("long", 100)
	a.Server, b.Server.CPU, b.Server.Commit = nil, 1e12, long
	a.Options.Model, a.Options.Address, a.Operations[0].Name = long, "x\ny", long
	b.Options.Subscribers = map[string]int{long: 7}
	a.Latency.Max, b.Latency.Max, b.Latency.P90 = 1e300, 1e12, -1
	b.Started = time.Time{}
	var out strings.Builder
	worked(t, compared(t, a, b).WriteText(&out))
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(line) > 101 || strings.Contains(line, "\x1b") {
			t.Errorf("%q", line)
		}
	}
}
