package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange/actors/metrics"
)

// A sink receives the metrics of one scrape. Each is declared once, where its numbers are: its
// name, its help, and the names of its labels. The help has the meaning of the number and its alarm
// sign.
type sink struct{ ch chan<- prometheus.Metric }

// A family is a metric with its series.
type family struct {
	sink
	desc *prometheus.Desc
}

func (s sink) metric(name, help string, labels ...string) family {
	return family{s, prometheus.NewDesc("exchange_"+name, help, labels, nil)}
}

func (f family) gauge(v float64, labels ...string) {
	f.ch <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, v, labels...)
}

func (f family) counter(n uint64, labels ...string) {
	f.ch <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue, float64(n), labels...)
}

func (f family) yes(yes bool, labels ...string) {
	v := 0.0
	if yes {
		v = 1
	}
	f.gauge(v, labels...)
}

// moment gives a time; the zero time is 0.
func (f family) moment(t time.Time) {
	v := 0.0
	if !t.IsZero() {
		v = float64(t.UnixMicro()) / 1e6
	}
	f.gauge(v)
}

// Units of distributions: parts of a metric's own unit.
const (
	nanoseconds = 1e9
	ones        = 1
)

func (f family) histogram(d metrics.Distribution, unit float64, labels ...string) {
	buckets, n := make(map[float64]uint64, len(d.Bounds)), uint64(0)
	for i, bound := range d.Bounds {
		n += d.Counts[i]
		buckets[float64(bound)/unit] = n
	}
	f.ch <- prometheus.MustNewConstHistogram(f.desc, d.Count(), float64(d.Sum)/unit, buckets,
		labels...)
}
