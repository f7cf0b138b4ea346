package harness

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prommodel "github.com/prometheus/common/model"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// A scraped has the metrics of one scrape by name.
type scraped map[string]*dto.MetricFamily

// Scraping gives a function that scrapes a gateway.
func Scraping(t *testing.T, g *gateway.Gateway) func() scraped {
	g.Options().PollPatience = time.Minute // no scrape of a test lacks slow values
	ask := AsOperator(t, g)
	return func() scraped {
		t.Helper()
		a := ask("GET", "/metrics", "")
		if kind := string(a.Header.ContentType()); a.Status != 200 ||
			!strings.HasPrefix(kind, "text/plain; version=0.0.4") {
			t.Fatalf("%d %s %.200s", a.Status, kind, a.Body)
		}
		parser := expfmt.NewTextParser(prommodel.UTF8Validation)
		return Must(parser.TextToMetricFamilies(strings.NewReader(a.Body)))
	}
}

// Series are the metrics of a family that have these labels (name, value ...).
func (s scraped) Series(name string, labels ...string) (list []*dto.Metric) {
	for _, m := range s[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i+1 < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			list = append(list, m)
		}
	}
	return list
}

// Value is the sum of a family's series with these labels; of histograms, of their counts. NaN:
// there are none.
func (s scraped) Value(name string, labels ...string) float64 {
	list := s.Series(name, labels...)
	if len(list) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, m := range list {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(
			m.GetHistogram().GetSampleCount())
	}
	return sum
}

// WithAll is a scrape with the metrics of two gateways that have a certificate: a leader, and an
// observer.
func (s scraped) WithAll(t *testing.T) scraped {
	t.Helper()
	_, _, c := NewCertificate(t, time.Now().Add(ADay), Quiet())
	leads, observes := NewFakeCluster(), NewFakeCluster()
	leads.View.Leader, observes.View.Observer = leads.View.Node, true
	for _, cluster := range []operator.Cluster{leads, observes} {
		g := gateway.New(edge.Options{Log: Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
			Connections: 10, OperatorToken: OperatorToken, Certificate: c, Cluster: cluster,
			Folders: []edge.Folder{{Name: "data", Path: t.TempDir()}}})
		for name, f := range Scraping(t, g)() {
			if s[name] == nil {
				s[name] = f
			}
		}
	}
	return s
}

// metricName finds the names of metrics in PromQL, with the labels that choose them.
var metricName = regexp.MustCompile(`\b((?:exchange|go|process)_[a-z0-9_]+)(?:\{([^}]*)\})?`)

// UsedBy returns the metrics that an expression of PromQL names. An unknown metric or label is an
// error of the place that has the expression.
func (s scraped) UsedBy(t *testing.T, where, expr string) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	for _, m := range metricName.FindAllStringSubmatch(expr, -1) {
		f := s[m[1]]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(m[1],
				suffix); ok && f == nil && s[base].GetType() == dto.MetricType_HISTOGRAM {
				f = s[base]
			}
		}
		if f == nil {
			t.Errorf("%s: there is no %s in the scrape", where, m[1])
			continue
		}
		used[f.GetName()] = true
		for label := range strings.SplitSeq(m[2], ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(label), "=")
			name = strings.TrimRight(name, "!")
			value = strings.Trim(value, `"`)
			if strings.HasPrefix(value, "~") || name == "code" || name == "route" {
				value = "" // a pattern, or a series without requests in this scrape
			}
			if name != "" && name != "instance" && name != "job" && !hasLabel(f, name, value) {
				t.Errorf("%s: %s has no label %s", where, m[1], label)
			}
		}
	}
	return used
}

// hasLabel reports whether a metric has a label with a value, with any value if none is given.
func hasLabel(f *dto.MetricFamily, name, value string) bool {
	return slices.ContainsFunc(f.GetMetric(), func(m *dto.Metric) bool {
		return name == "quantile" && m.GetSummary() != nil ||
			slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
				return l.GetName() == name && (value == "" || l.GetValue() == value)
			})
	})
}

// Line is the first line that has a text, "" if there is none.
func (c *Captured) Line(text string) string {
	for line := range strings.Lines(c.String()) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}
