package loadtest

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// A plot is lines over two axes.
type plot struct {
	title, xName, yName string
	xLog, yLog          bool
	series              []series
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
	colours               = 8 // classes c0, c1, ... of the page
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

// ticks are the values that are written at the axis.
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

// svg draws it.
func (p *plot) svg() template.HTML {
	var xs, ys [][]float64
	for _, s := range p.series {
		xs, ys = append(xs, s.x), append(ys, s.y)
	}
	bottom := plotHeight - plotBottom
	x := newAxis(xs, p.xLog, plotLeft, plotWidth-plotLeft-plotRight)
	y := newAxis(ys, p.yLog, bottom, plotTop-bottom)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotWidth, plotHeight,
		html.EscapeString(p.title))
	for _, v := range y.ticks() {
		at := y.place(v)
		fmt.Fprintf(&b,
			`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`,
			plotLeft, plotWidth-plotRight, at, at, plotLeft-6, at+4, axisLabel(v))
	}
	for _, v := range x.ticks() {
		at := x.place(v)
		fmt.Fprintf(&b,
			`<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/><text x="%.1f" y="%g" text-anchor="middle">%s</text>`,
			at, at, plotTop, bottom, at, bottom+15, axisLabel(v))
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="end">%s</text><text x="4" y="14">%s</text>`,
		plotWidth-plotRight, plotHeight-4, html.EscapeString(p.xName), html.EscapeString(p.yName))
	key := plotLeft
	for i, s := range p.series {
		var points strings.Builder
		for j := range s.x {
			fmt.Fprintf(&points, "%.1f,%.1f ", x.place(s.x[j]), y.place(s.y[j]))
		}
		fmt.Fprintf(&b, `<polyline class="c%d" points="%s"><title>%s</title></polyline>`, i%colours,
			strings.TrimSpace(points.String()), html.EscapeString(s.name))
		fmt.Fprintf(&b,
			`<line class="c%d" x1="%g" x2="%g" y1="14" y2="14"/><text x="%g" y="18">%s</text>`,
			i%colours, key, key+14, key+18, html.EscapeString(s.name))
		key += 32 + 6.6*float64(len(s.name))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // all texts are escaped
}

// pairPlot has a bar for each of the busiest pairs.
func pairPlot(pairs []PairReport) template.HTML {
	pairs = pairs[:min(len(pairs), shownPairs)]
	most := 1.0
	for _, p := range pairs {
		most = max(most, p.Rate)
	}
	const row, left, width = 16.0, 130.0, 470.0
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="Requests by pair">`, plotWidth,
		row*float64(len(pairs))+4)
	for i, p := range pairs {
		y := row * float64(i)
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
