package loadtest

import (
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Funcs(
	template.FuncMap{"ms": ms, "n": thousands,
		"round": func(v float64) string { return thousands(uint64(v + 0.5)) }}).Parse(pageText))

// WriteHTML writes the report as one page that loads nothing.
func (r *Report) WriteHTML(w io.Writer) error {
	var verified strings.Builder
	r.writeVerification(&verified)
	busiest := slices.Clone(r.Pairs)
	slices.SortStableFunc(busiest, func(a, b PairReport) int {
		return cmp.Compare(b.Requests, a.Requests)
	})
	return page.Execute(w, map[string]any{"R": r, "Latency": r.latencyPlot(), "Rate": r.ratePlot(),
		"Timeline": r.timelinePlot(), "ByPair": pairPlot(busiest),
		"Pairs": busiest[:min(len(busiest), shownPairs)], "More": max(len(busiest)-shownPairs, 0),
		"Verified": strings.TrimSpace(verified.String())})
}

// shownPairs is how many of the busiest pairs have a bar.
const shownPairs = 60

// latencyPlot is the latency at 1 in so many requests, of all operations.
func (r *Report) latencyPlot() template.HTML {
	p := plot{title: "Latency: one request in so many takes longer", xName: "1 in", yName: "ms",
		xLog: true, yLog: true}
	for _, name := range append([]string{"all"}, operationNames[:]...) {
		if d := r.distributions[name]; len(d) > 0 && (name != "all" || len(r.Operations) > 1) {
			s := series{name: strings.TrimPrefix(name, "read ")}
			for _, x := range d {
				s.add(x.oneIn, x.ms)
			}
			p.series = append(p.series, s)
		}
	}
	return p.svg()
}

func (r *Report) ratePlot() template.HTML {
	rate, errors := series{name: "answers"}, series{name: "errors"}
	last := 0.0
	for _, s := range r.Timeline {
		rate.add(s.At, s.Rate)
		errors.add(s.At, float64(s.Errors)/max(s.At-last, 1e-3))
		last = s.At
	}
	return (&plot{title: "Requests a second", xName: "s", yName: "/s",
		series: []series{rate, errors}}).svg()
}

func (r *Report) timelinePlot() template.HTML {
	p50, p99, longest := series{name: "p50"}, series{name: "p99"}, series{name: "longest"}
	for _, s := range r.Timeline {
		p50.add(s.At, s.P50)
		p99.add(s.At, s.P99)
		longest.add(s.At, s.Max)
	}
	return (&plot{title: "Latency in each second", xName: "s", yName: "ms", yLog: true,
		series: []series{p50, p99, longest}}).svg()
}
