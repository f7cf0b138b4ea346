package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The colours of lines, in their order.
var colours = []string{"#0969da", "#bf5700", "#1a7f37", "#8250df", "#cf222e", "#0e8a8a", "#9a6700",
	"#bf3989", "#57606a", "#7aa7d9"}

// quiet is the colour of lines that are 0 all the time, where many are.
const quiet = "#8c959f"

const (
	keyHeight  = 16.0 // of a line of the legend
	titleSpace = 32.0 // above a plot
	timeSpace  = 20.0 // between a plot and its legend
)

// A plot is the place of lines in a panel.
type plot struct {
	left, right float64
	y           axis
	steps       int
}

func (p *plot) x(step int) float64 {
	return p.left + (p.right-p.left)*float64(step)/float64(max(p.steps-1, 1))
}

// series draws a panel of lines over time, with its axes and its legend.
func (p *picture) series(of *panel, lines []line, from *prometheus, x, y, w, h float64) {
	f := &of.FieldConfig.Defaults
	p.panel(x, y, w, h, "")
	p.text("title", x+12, y+20, of.Title)
	if len(lines) == 0 {
		p.text("about middle", x+w/2, y+h/2+4, "No data")
		return
	}
	keys, colour := legend(lines)
	rows := rowsOf(keys, w-24)
	bottom := y + h - 8 - keyHeight*float64(len(rows)) - timeSpace
	tops := lines
	if f.Custom.Stacking.Mode == "normal" {
		tops = stacked(lines)
	}
	at := &plot{right: x + w - 14, steps: from.steps(),
		y: newAxis(tops, f, bottom, y+titleSpace)}
	p.axes(at, f, from, x)
	for i := range lines {
		base := line{}
		if i > 0 && f.Custom.Stacking.Mode == "normal" {
			base = tops[i-1]
		}
		opacity := f.Custom.FillOpacity / 100
		if at.y.log {
			opacity = 0 // a logarithmic axis has no bottom from which to fill
		}
		p.line(at, tops[i], base, opacity, colour[i])
	}
	p.legend(rows, x+12, bottom+timeSpace+keyHeight-2)
}

// stacked returns the sums of each line and those before it. A value that is missing counts as 0.
func stacked(lines []line) []line {
	all := make([]line, len(lines))
	for i, l := range lines {
		all[i] = line{name: l.name, values: make([]float64, len(l.values))}
		for j, v := range l.values {
			if i > 0 {
				all[i].values[j] = all[i-1].values[j]
			}
			if !math.IsNaN(v) {
				all[i].values[j] += v
			}
		}
	}
	return all
}

// axes draws the grid with its values and times. The plot begins right of the widest value.
func (p *picture) axes(at *plot, f *field, from *prometheus, x float64) {
	widest := 0.0
	for _, v := range at.y.ticks() {
		widest = max(widest, textWidth(show(v, f.Unit, 3), 11))
	}
	at.left = x + 12 + widest + 8
	for _, v := range at.y.ticks() {
		place := at.y.place(v)
		p.add(`<path class="grid" d="M%.1f %.1fH%.1f"/>`, at.left, place, at.right)
		p.text("axis end", at.left-7, place+4, show(v, f.Unit, 3))
	}
	const label = 72.0 // how much a time needs
	every := 15 * time.Second
	total := from.to.Sub(from.from)
	for float64(total/every)*label > at.right-at.left {
		every *= 2
	}
	for t := from.from.Truncate(every); !t.After(from.to); t = t.Add(every) {
		place := at.x(int(t.Sub(from.from) / from.scrape))
		if t.Before(from.from) || place-label/2 < x || place+label/2 > at.right+14 {
			continue
		}
		p.add(`<path class="grid" d="M%.1f %.1fV%.1f"/>`, place, at.y.bottom, at.y.top)
		p.text("axis middle", place, at.y.bottom+15, t.Format("15:04:05"))
	}
}

// line draws a line, and fills what is between it and its base: the line below it in a stack, or
// the bottom.
func (p *picture) line(at *plot, l, base line, opacity float64, colour string) {
	for from := 0; from < len(l.values); from++ {
		if !at.y.has(l.values[from]) {
			continue
		}
		to := from
		for to+1 < len(l.values) && at.y.has(l.values[to+1]) {
			to++
		}
		var top strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&top, "%.1f %.1f ", at.x(i), at.y.place(l.values[i]))
		}
		if opacity > 0 {
			p.add(`<path fill="%s" fill-opacity="%g" d="M%s%s"/>`, colour, opacity, top.String(),
				at.back(base, from, to))
		}
		p.add(`<path fill="none" stroke="%s" stroke-width="1.4" d="M%sh0"/>`, colour,
			strings.TrimSpace(top.String()))
		from = to
	}
}

// back returns the way from the end of a filled place to its begin, along its base.
func (p *plot) back(base line, from, to int) string {
	if base.values == nil {
		return fmt.Sprintf("V%.1fH%.1fz", p.y.bottom, p.x(from))
	}
	var b strings.Builder
	b.WriteString("L")
	for i := to; i >= from; i-- {
		fmt.Fprintf(&b, "%.1f %.1f ", p.x(i), p.y.place(base.values[i]))
	}
	return strings.TrimSpace(b.String()) + "z"
}

// A key is a line's name in the legend.
type key struct {
	x            float64
	colour, name string
}

// legend returns the legend and the colour of each line. Of more than eight lines, those that are 0
// all the time have one colour and one key.
func legend(lines []line) (keys []key, colour []string) {
	zero := 0
	for _, l := range lines {
		if l.isZero() && len(lines) > 8 {
			zero++
			colour = append(colour, quiet)
			continue
		}
		colour = append(colour, colours[len(keys)%len(colours)])
		keys = append(keys, key{colour: colour[len(colour)-1], name: l.name})
	}
	if zero > 0 {
		keys = append(keys, key{colour: quiet, name: fmt.Sprintf("%d others: 0", zero)})
	}
	return keys, colour
}

// rowsOf puts keys into rows of at most a width.
func rowsOf(keys []key, width float64) (rows [][]key) {
	x := width
	for i, k := range keys {
		needs := 20 + textWidth(k.name, 11.5) + 12
		if i == 0 || x+needs-12 > width {
			rows = append(rows, nil)
			x = 0
		}
		k.x = x
		rows[len(rows)-1] = append(rows[len(rows)-1], k)
		x += needs
	}
	return rows
}

func (p *picture) legend(rows [][]key, x, y float64) {
	for i, row := range rows {
		at := y + keyHeight*float64(i)
		for _, k := range row {
			p.add(`<path stroke="%s" stroke-width="3" d="M%.1f %.1fh13"/>`, k.colour, x+k.x, at-4)
			p.text("key", x+k.x+18, at, k.name)
		}
	}
}
