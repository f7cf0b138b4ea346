package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange/actors/metrics"
)

// A family is one metric's description.
type family = *prometheus.Desc

func describe(name, help string, labels ...string) family {
	return prometheus.NewDesc("exchange_"+name, help, labels, nil)
}

// A sink takes the metrics of one scrape.
type sink struct{ ch chan<- prometheus.Metric }

func (s sink) gauge(f family, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(f, prometheus.GaugeValue, v, labels...)
}

func (s sink) counter(f family, n uint64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(f, prometheus.CounterValue, float64(n), labels...)
}

func (s sink) yes(f family, yes bool) {
	v := 0.0
	if yes {
		v = 1
	}
	s.gauge(f, v)
}

// moment gives a time; the zero time is 0.
func (s sink) moment(f family, t time.Time) {
	v := 0.0
	if !t.IsZero() {
		v = float64(t.UnixMicro()) / 1e6
	}
	s.gauge(f, v)
}

// Units of distributions: parts of a metric's own unit.
const (
	nanoseconds = 1e9
	ones        = 1
)

func (s sink) histogram(f family, d metrics.Distribution, unit float64, labels ...string) {
	buckets, n := make(map[float64]uint64, len(d.Bounds)), uint64(0)
	for i, bound := range d.Bounds {
		n += d.Counts[i]
		buckets[float64(bound)/unit] = n
	}
	s.ch <- prometheus.MustNewConstHistogram(f, d.Count(), float64(d.Sum)/unit, buckets, labels...)
}
