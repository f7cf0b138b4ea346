package loadtest

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"
)

// A plot is lines over two axes.
type plot struct {
	title, xName, yName string
	xLog, yLog          bool
	series              []series
	marks               []Mark    // over the x axis
	boundaries          []float64 // ends of stages, on the x axis
}

type series struct {
	name string
	x, y []float64
}

func (s *series) add(x, y float64) { s.x, s.y = append(s.x, x), append(s.y, y) }

// The drawing in its own units.
const (
	plotWidth, plotHeight = 720.0, 260.0
	plotLeft, plotRight   = 62.0, 24.0
	plotTop, plotBottom   = 30.0, 34.0
	plotHead              = 22.0 // above it, for the title
	colours               = 8    // classes c0, c1, ... of the page
)

// An axis maps values to the drawing.
type axis struct {
	from, to float64
	log      bool
	at, size float64
}

func newAxis(values [][]float64, log bool, at, size float64) axis {
	a := axis{from: math.Inf(1), to: math.Inf(-1), log: log, at: at, size: size}
	for _, list := range values {
		for _, v := range list {
			if log && v <= 0 {
				continue
			}
			a.from, a.to = min(a.from, v), max(a.to, v)
		}
	}
	switch {
	case a.from > a.to:
		a.from, a.to = 1, 10
	case log:
		a.from, a.to = math.Pow(10, math.Floor(math.Log10(a.from))),
			math.Pow(10, math.Ceil(math.Log10(a.to)))
		if a.from == a.to {
			a.to *= 10
		}
	default:
		a.from = 0
		if a.to <= 0 {
			a.to = 1
		}
	}
	return a
}

func (a axis) place(v float64) float64 {
	if a.log {
		v = max(v, a.from)
		return a.at + a.size*math.Log10(v/a.from)/math.Log10(a.to/a.from)
	}
	return a.at + a.size*(v-a.from)/(a.to-a.from)
}

// ticks returns the labelled values of the axis.
func (a axis) ticks() (all []float64) {
	if a.log {
		for v := a.from; v <= a.to*1.001; v *= 10 {
			all = append(all, v)
		}
		return all
	}
	step := math.Pow(10, math.Floor(math.Log10(a.to/4)))
	for _, k := range []float64{5, 2} {
		if a.to/(step*k) >= 3 {
			step *= k
			break
		}
	}
	for v := 0.0; v <= a.to*1.001; v += step {
		all = append(all, v)
	}
	return all
}

func axisLabel(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

// svg draws it for a page.
func (p *plot) svg() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotWidth,
		plotHeight+plotHead, html.EscapeString(p.title))
	p.drawTitled(&b)
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // all texts are escaped
}

// drawTitled writes the plot below its title.
func (p *plot) drawTitled(b *strings.Builder) {
	fmt.Fprintf(b, `<text class="title" x="4" y="15">%s</text><g transform="translate(0,%g)">`,
		html.EscapeString(p.title), plotHead)
	p.draw(b)
	b.WriteString("</g>")
}

// draw writes the plot in its own units.
func (p *plot) draw(b *strings.Builder) {
	var xs, ys [][]float64
	for _, s := range p.series {
		xs, ys = append(xs, s.x), append(ys, s.y)
	}
	bottom := plotHeight - plotBottom
	x := newAxis(xs, p.xLog, plotLeft, plotWidth-plotLeft-plotRight)
	y := newAxis(ys, p.yLog, bottom, plotTop-bottom)
	p.drawMarks(b, &x)
	for _, v := range y.ticks() {
		at := y.place(v)
		fmt.Fprintf(b,
			`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`,
			plotLeft, plotWidth-plotRight, at, at, plotLeft-6, at+4, axisLabel(v))
	}
	for _, v := range x.ticks() {
		at := x.place(v)
		fmt.Fprintf(b,
			`<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/><text x="%.1f" y="%g" text-anchor="middle">%s</text>`,
			at, at, plotTop, bottom, at, bottom+15, axisLabel(v))
	}
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="end">%s</text><text x="4" y="14">%s</text>`,
		plotWidth-plotRight, plotHeight-4, html.EscapeString(p.xName), html.EscapeString(p.yName))
	p.drawLines(b, &x, &y)
}

// drawLines draws the series, and the key of series and marks above them.
func (p *plot) drawLines(b *strings.Builder, x, y *axis) {
	key := plotLeft
	for i, s := range p.series {
		var points strings.Builder
		for j := range s.x {
			fmt.Fprintf(&points, "%.1f,%.1f ", x.place(s.x[j]), y.place(s.y[j]))
		}
		fmt.Fprintf(b, `<polyline class="c%d" points="%s"><title>%s</title></polyline>`, i%colours,
			strings.TrimSpace(points.String()), html.EscapeString(s.name))
		fmt.Fprintf(b,
			`<line class="c%d" x1="%g" x2="%g" y1="14" y2="14"/><text x="%g" y="18">%s</text>`,
			i%colours, key, key+14, key+18, html.EscapeString(s.name))
		key += 32 + 6.6*float64(len(s.name))
	}
	for _, kind := range markKinds {
		if slices.ContainsFunc(p.marks, func(m Mark) bool { return m.Kind == kind }) {
			fmt.Fprintf(b, `<rect class="%s" x="%g" y="8" width="14" height="12"/>`+
				`<text x="%g" y="18">%s</text>`, kind, key, key+18, kind)
			key += 32 + 6.6*float64(len(kind))
		}
	}
}

// drawMarks draws a band for each mark, and a line for the end of each stage. A short band is
// widened to be visible.
func (p *plot) drawMarks(b *strings.Builder, x *axis) {
	for i, v := range p.boundaries {
		if at := x.place(v); at <= plotWidth-plotRight {
			fmt.Fprintf(b, `<line class="stage" x1="%.1f" x2="%.1f" y1="%g" y2="%g">`+
				`<title>stage %d begins</title></line>`, at, at, plotTop, plotHeight-plotBottom, i+2)
		}
	}
	for _, m := range p.marks {
		from, to := x.place(max(m.From, 0)), x.place(min(m.To, x.to))
		if from > plotWidth-plotRight {
			continue
		}
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%g" width="%.1f" height="%g">`+
			`<title>%s, %.0f ms</title></rect>`, m.Kind, from, plotTop, max(to-from, 1.5),
			plotHeight-plotBottom-plotTop, m.Kind, 1000*(m.To-m.From))
	}
}

// drawingStyle is that of a drawing without a page; report.html has the same for the page.
const drawingStyle = `:root { --text: #667; --grid: #dde1e6;
--c0: #0969da; --c1: #bf5700; --c2: #1a7f37; --c3: #8250df }
@media (prefers-color-scheme: dark) { :root { --text: #9aa3ad; --grid: #2b313a;
--c0: #6cb0ff; --c1: #f0a050; --c2: #57c26f; --c3: #b892ff } }
text { fill: var(--text); font: 11px system-ui, sans-serif } text.title { font-size: 13px }
.grid { stroke: var(--grid) } polyline { fill: none; stroke-linejoin: round }
.c0, .c1, .c2, .c3 { stroke-width: 1.8 } .c0 { stroke: var(--c0) } .c1 { stroke: var(--c1) }
.c2 { stroke: var(--c2) } .c3 { stroke: var(--c3) }
.snapshot, .rewrite, .audit { fill-opacity: .3 } .snapshot { fill: #bf5700 }
.rewrite { fill: #8250df } .audit { fill: #1a7f37 }
.stage { stroke: var(--text); stroke-dasharray: 5 4 }`

// drawTogether returns one drawing of several plots, one below the other.
func drawTogether(plots []plot) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g"><style>%s</style>`,
		plotWidth, (plotHeight+plotHead)*float64(len(plots)), drawingStyle)
	for i := range plots {
		fmt.Fprintf(&b, `<g transform="translate(0,%g)">`, (plotHeight+plotHead)*float64(i))
		plots[i].drawTitled(&b)
		b.WriteString("</g>")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// pairPlot has a bar for each of the slowest pairs, by the rate done.
func pairPlot(pairs []PairReport) template.HTML {
	pairs = pairs[:min(len(pairs), shownPairs)]
	most := 1.0
	for _, p := range pairs {
		most = max(most, p.Rate)
	}
	const row, left, width = 16.0, 130.0, 470.0
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%[3]s">`+
		`<text class="title" x="4" y="15">%[3]s</text>`, plotWidth,
		plotHead+row*float64(len(pairs))+4, "Requests done a second, and the p99 of their latency")
	for i, p := range pairs {
		y := plotHead + row*float64(i)
		fmt.Fprintf(&b,
			`<text x="%g" y="%g" text-anchor="end">%s</text><rect x="%g" y="%g" width="%.1f" height="%g"/>`,
			left-6, y+12, html.EscapeString(p.Pair), left, y+2, width*p.Rate/most, row-4)
		fmt.Fprintf(&b, `<text x="%.1f" y="%g">%s/s`, left+width*p.Rate/most+6, y+12,
			thousands(uint64(p.Rate+0.5)))
		if p.P99 > 0 {
			fmt.Fprintf(&b, ", p99 %s", ms(p.P99))
		}
		b.WriteString("</text>")
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // all texts are escaped
}
