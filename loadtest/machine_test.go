package loadtest

import (
	"strings"
	"testing"
	"time"
)

func TestTheReportShowsTheMachinesLoad(t *testing.T) {
	before, ok1 := readUsage("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1\n")
	now, ok2 := readUsage("cpu  300 100 200 900 200 50 50 200 60 0\ncpu0 1\n")
	if _, ok := readUsage("cpu 1 2"); !ok1 || !ok2 || ok {
		t.Errorf("read: %t, %t, %t", ok1, ok2, ok)
	}
	m := now.since(before) // 1,000 ticks: 300 idle, 200 stolen
	m.Processors, m.Load, m.Own = 2, 3.25, 0.5
	r := Report{Machine: m, Substituted: Substituted{Cancels: 1234, Orders: 5}}
	const want = "in place of orders 1,234 cancels were sent: an account keeps at most 4,000 " +
		"open orders\n" +
		"in place of cancels 5 orders were sent: nothing rested\n" +
		"machine: load 3.2 on 2 processors, 50 % busy, 20.0 % stolen by other machines; " +
		"this program used 0.50 processors"
	if got := strings.Join(r.remarks(), "\n"); got != want {
		t.Errorf("it says\n%s", got)
	}
}

// The last, partial second counts, and is in no plot: it would look like a fall.
func TestAPartOfASecondIsNotPlotted(t *testing.T) {
	allWays(t, func(t *testing.T) {
		r := soak(t, &smallExchange{}, func(o *Options) { o.Duration = 2250 * time.Millisecond })
		last := r.Timeline[len(r.Timeline)-1]
		if whole := r.plotted(); !last.Partial || len(whole) != len(r.Timeline)-1 {
			t.Errorf("%d of %d seconds are plotted, the last is %+v", len(whole), len(r.Timeline),
				last)
		}
	})
	r := Report{Timeline: []Second{{At: 1, Rate: 9}, {At: 1.2, Rate: 1, Partial: true}}}
	for _, p := range []plot{r.ratePlot(), r.timelinePlot(), r.backlogPlot()} {
		if len(p.series[0].x) != 1 || p.title == "" || p.xName == "" || p.yName == "" {
			t.Errorf("%+v", p)
		}
	}
	r.Samples = []Sample{{At: 1}}
	for _, p := range r.serverPlots() {
		if p.title == "" || p.xName == "" || p.yName == "" ||
			!strings.Contains(string(p.svg()), `<text class="title"`) {
			t.Errorf("%+v", p)
		}
	}
}
