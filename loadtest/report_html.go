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

// WriteHTML writes the report as one self-contained page.
func (r *Report) WriteHTML(w io.Writer) error {
	var verified strings.Builder
	r.writeVerification(&verified)
	rate, timeline, backlog := r.ratePlot(), r.timelinePlot(), r.backlogPlot()
	var server []template.HTML
	for _, p := range r.serverPlots() {
		server = append(server, p.svg())
	}
	rows, stages := r.tableRows(), r.stageRows()
	return page.Execute(w, map[string]any{"R": r, "Headline": r.headline(),
		"Open": r.Options.open(), "NotDone": r.notDone(),
		"Remarks": r.remarks(), "Told": r.Server.lines(), "Warmup": r.Warmup.line(),
		"Latency": r.latencyPlot(), "Rate": rate.svg(), "Timeline": timeline.svg(),
		"Backlog": backlog.svg(),
		"ByPair":  pairPlot(r.Pairs), "Server": server,
		"Outages": r.outages(), "RowHead": rows[0], "Rows": rows[1:],
		"StageHead": stages[0], "Stages": stages[1:], "StageNote": stageNote,
		"Curve": r.rampPlots(), "More": max(len(r.Pairs)-shownPairs, 0),
		"Verified": strings.TrimSpace(verified.String())})
}

// shownPairs is the number of the slowest pairs with a bar.
const shownPairs = 60

// rampPlots are the curve of a ramp: the rate done, and its p99, by the requested rate.
func (r *Report) rampPlots() (all []template.HTML) {
	if r.Ramp == nil {
		return nil
	}
	steps := slices.Clone(r.Ramp.Steps)
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(a.Rate, b.Rate) })
	asked, done, p99 := series{name: "asked"}, series{name: "done"}, series{name: "p99"}
	bound := series{name: "bound"}
	for _, s := range steps {
		asked.add(s.Rate, s.Rate)
		done.add(s.Rate, s.Achieved)
		p99.add(s.Rate, s.P99)
		bound.add(s.Rate, r.Ramp.Bound)
	}
	for _, p := range []plot{
		{title: "Done", xName: "asked/s", yName: "/s", series: []series{done, asked}},
		{title: "p99", xName: "asked/s", yName: "ms", yLog: true, series: []series{p99, bound}}} {
		all = append(all, p.svg())
	}
	return all
}

// latencyPlot returns the latency at 1 in N requests, of all operations.
func (r *Report) latencyPlot() template.HTML {
	p := plot{title: "Latency: one request in N takes longer", xName: "1 in", yName: "ms",
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

// plotted are the seconds in plots.
func (r *Report) plotted() []Second {
	return slices.DeleteFunc(slices.Clone(r.Timeline), func(s Second) bool { return s.Partial })
}

func (r *Report) ratePlot() plot {
	rate, errors, asked := series{name: "done"}, series{name: "errors"}, series{name: "asked"}
	last := 0.0
	for _, s := range r.plotted() {
		rate.add(s.At, s.Rate)
		asked.add(s.At, s.Asked)
		errors.add(s.At, float64(s.Errors)/max(s.At-last, 1e-3))
		last = s.At
	}
	all := []series{rate, errors}
	if slices.ContainsFunc(asked.y, func(v float64) bool { return v > 0 }) { // an open loop
		all = append(all, asked)
	}
	return plot{title: "Requests a second", xName: "s", yName: "/s", marks: r.Marks, series: all,
		boundaries: r.stageEnds()}
}

// backlogPlot returns the requests due and not answered, and the part of them that was sent.
func (r *Report) backlogPlot() plot {
	backlog, sent := series{name: "due and not answered"}, series{name: "in flight"}
	for _, s := range r.plotted() {
		backlog.add(s.At, float64(s.Backlog))
		sent.add(s.At, float64(s.InFlight))
	}
	return plot{title: "Backlog at the end of each second", xName: "s", yName: "requests",
		marks: r.Marks, series: []series{backlog, sent}, boundaries: r.stageEnds()}
}

func (r *Report) timelinePlot() plot {
	p50, p99, longest := series{name: "p50"}, series{name: "p99"}, series{name: "longest"}
	for _, s := range r.plotted() {
		p50.add(s.At, s.P50)
		p99.add(s.At, s.P99)
		longest.add(s.At, s.Max)
	}
	return plot{title: "Latency in each second", xName: "s", yName: "ms", yLog: true,
		marks: r.Marks, series: []series{p50, p99, longest}, boundaries: r.stageEnds()}
}

// serverPlots are of the samples of the server; nil without any.
func (r *Report) serverPlots() []plot {
	if len(r.Samples) == 0 {
		return nil
	}
	rss, heap, disk, cpu, own, open := series{name: "RSS"}, series{name: "heap"},
		series{name: "disk"}, series{name: "server"}, series{name: "this program"},
		series{name: "open orders"}
	for i, s := range r.Samples {
		rss.add(s.At, s.RSS/1e6)
		heap.add(s.At, s.Heap/1e6)
		if s.Disk > 0 {
			disk.add(s.At, s.Disk/1e6)
		}
		open.add(s.At, s.Open)
		if i > 0 {
			before := &r.Samples[i-1]
			took := max(s.At-before.At, 1e-3)
			cpu.add(s.At, (s.CPU-before.CPU)/took)
			own.add(s.At, (s.Own-before.Own)/took)
		}
	}
	memory := []series{rss, heap}
	if len(disk.x) > 0 {
		memory = append(memory, disk)
	}
	return []plot{
		{title: "Memory and disk of the server", xName: "s", yName: "MB", marks: r.Marks,
			series: memory},
		{title: "Open orders", xName: "s", yName: "orders", marks: r.Marks, series: []series{open}},
		{title: "Processors in use", xName: "s", yName: "cores", marks: r.Marks,
			series: []series{cpu, own}}}
}

// WriteSVG draws the course over time.
func (r *Report) WriteSVG(w io.Writer) error {
	_, err := io.WriteString(w,
		drawTogether(append([]plot{r.timelinePlot(), r.ratePlot(), r.backlogPlot()},
			r.serverPlots()...)))
	return err
}
