package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Orders of independent clients: a fixed number a second are due, half of what the exchange can do
// at most. The latency of each counts from its due time. Beside them runs the durable yardstick at
// the same rate.

// openLoop has an exchange on Pebble, and the yardstick.
type openLoop struct {
	options             options
	yardstick, exchange *openSide
	rate                *row
	highest             float64 // requests a second of the exchange in a closed loop
	background          [3]float64
}

// An openSide is one of the two.
type openSide struct {
	*server
	latencies *hdrhistogram.Histogram // microseconds, of all rounds
	round     *hdrhistogram.Histogram
	rows      []*row
}

// backgroundMetrics are the exchange's other work meanwhile.
var backgroundMetrics = [...]struct{ metric, name string }{
	{metricSnapshots, "snapshots"}, {metricApplies, "steps of projections"},
	{metricCycles, "cycles of the collector"}}

// openQuantiles are those of the rows; mostRatio is zero where nothing is asked for.
var openQuantiles = []struct {
	name      string
	percent   float64
	mostRatio float64
}{{"p50", 50, 0}, {"p99", 99, 3}, {"p99.9", 99.9, 0}, {"longest", 100, 3}}

// longestLatency is the most that a histogram takes, in microseconds.
const longestLatency = int64(10 * time.Minute / time.Microsecond)

func newLatencies() *hdrhistogram.Histogram { return hdrhistogram.New(1, longestLatency, 3) }

func newOpenLoop(o options) *openLoop {
	l := &openLoop{options: o, rate: &row{subject: "open loop: requests that are due",
		unit: "requests/s", group: groupOpen}}
	side := func(title string, start func(*server, string) error) *openSide {
		return &openSide{server: &server{title: title, options: o, start: start},
			latencies: newLatencies()}
	}
	l.yardstick = side("no-op and fdatasync", startDurable)
	l.exchange = side("Pebble", func(s *server, dir string) error {
		return startExchange(s, dir, nil)
	})
	for _, q := range openQuantiles {
		bare := &row{subject: "open loop, " + q.name + ": " + l.yardstick.title, unit: "ms",
			group: groupOpen}
		l.yardstick.rows = append(l.yardstick.rows, bare)
		l.exchange.rows = append(l.exchange.rows,
			&row{subject: "open loop, " + q.name + ": " + l.exchange.title, unit: "ms",
				group:     groupOpen,
				yardstick: bare, aim: aim{mostRatio: q.mostRatio}})
	}
	return l
}

func (l *openLoop) name() string { return "open loop" }

func (l *openLoop) rows() []*row {
	list := []*row{l.rate}
	for i := range openQuantiles {
		list = append(list, l.yardstick.rows[i], l.exchange.rows[i])
	}
	return list
}

func (l *openLoop) begin(_ context.Context, dir string) error {
	for _, s := range []*openSide{l.yardstick, l.exchange} {
		if err := s.start(s.server, dir); err != nil {
			return err
		}
		if _, err := s.clients.run(l.options.length); err != nil {
			return err
		}
	}
	return nil
}

func (l *openLoop) end() {
	l.yardstick.end()
	l.exchange.end()
}

// measure takes the yardstick before and after the exchange, half each, so a change meanwhile
// changes both.
func (l *openLoop) measure(context.Context) error {
	const closedLoops = 3 // the highest of several is the least disturbed
	for range closedLoops {
		closed, err := l.exchange.clients.run(l.options.length)
		if err != nil {
			return err
		}
		l.highest = max(l.highest, closed.rate())
	}
	rate := l.highest / 2
	l.yardstick.round, l.exchange.round = newLatencies(), newLatencies()
	half := l.options.openLength / 2
	if err := l.load(l.yardstick, rate, half); err != nil {
		return err
	}
	before, err := scrape(l.exchange.server)
	if err != nil {
		return err
	}
	if err := l.load(l.exchange, rate, l.options.openLength); err != nil {
		return err
	}
	after, err := scrape(l.exchange.server)
	if err != nil {
		return err
	}
	if err := l.load(l.yardstick, rate, l.options.openLength-half); err != nil {
		return err
	}
	for i, m := range backgroundMetrics {
		l.background[i] += after[m.metric] - before[m.metric]
	}
	l.rate.values = append(l.rate.values, rate)
	for _, s := range []*openSide{l.yardstick, l.exchange} {
		s.latencies.Merge(s.round)
		for i, q := range openQuantiles {
			s.rows[i].values = append(s.rows[i].values,
				milliseconds(s.round.ValueAtPercentile(q.percent)))
		}
	}
	return nil
}

// load waits until the exchange has finished all earlier work, and then loads one side.
func (l *openLoop) load(s *openSide, rate float64, d time.Duration) error {
	err := await("the exchange's history", func() bool {
		values, err := scrape(l.exchange.server)
		return err == nil && values[metricLag] == 0
	})
	if err != nil {
		return err
	}
	_, err = s.clients.runOpen(rate, d, s.round)
	return err
}

func milliseconds(us int64) float64 { return float64(us) / 1000 }

// note shows both distributions, over all rounds.
func (l *openLoop) note() string {
	n := l.exchange.latencies.TotalCount()
	if n == 0 || l.yardstick.latencies.TotalCount() == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		"\nopen loop: milliseconds from when a request was due to its answer, %s requests of the "+
			"exchange", show(float64(n)))
	for i, m := range backgroundMetrics {
		fmt.Fprintf(&b, ", %.0f %s", l.background[i], m.name)
	}
	b.WriteString("\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "percentile\t1 in\t%s\t%s\tx\t\n", l.yardstick.title, l.exchange.title)
	for _, percent := range []float64{50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.995,
		99.999} {
		if oneIn := 100 / (100 - percent); oneIn <= float64(n) {
			l.line(w, fmt.Sprint(percent), show(oneIn), percent)
		}
	}
	l.line(w, "longest", show(float64(n)), 100)
	w.Flush() //nolint:errcheck // a builder takes everything
	return b.String()
}

func (l *openLoop) line(w *tabwriter.Writer, name, oneIn string, percent float64) {
	bare, orders := milliseconds(l.yardstick.latencies.ValueAtPercentile(percent)),
		milliseconds(l.exchange.latencies.ValueAtPercentile(percent))
	fmt.Fprintf(w, "%s\t%s\t%.3f\t%.3f\t%.2f\t\n", name, oneIn, bare, orders, orders/bare)
}
