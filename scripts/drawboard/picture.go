package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// The picture in its own units.
const (
	width      = 1080.0
	margin     = 14.0
	headHeight = 44.0
	unitHeight = 29.0 // of the grid
	gap        = 8.0  // between panels
	columns    = 24
)

const unitWidth = (width - 2*margin + gap) / columns

const styles = `
.paper{fill:#f6f8fa;stroke:#d0d7de}.panel{fill:#fff;stroke:#d8dee4}
.board{font-size:18px;font-weight:600;fill:#1f2328}.about{font-size:12.5px;fill:#57606a}
.row{font-size:14px;font-weight:600;fill:#1f2328}.more{font-size:12.5px;fill:#57606a}
.title{font-size:13px;font-weight:600;fill:#1f2328}.axis{font-size:11px;fill:#57606a}
.key{font-size:11.5px;fill:#1f2328}.grid{stroke:#e6eaef}.tip{fill:none;stroke:#57606a;stroke-width:1.6}
.small{font-size:12px;font-weight:500;fill:#fff}.value{font-weight:600;fill:#fff}
.end{text-anchor:end}.middle{text-anchor:middle}path{stroke-linejoin:round;stroke-linecap:round}
`

// The colours that a board names, dark enough for white text.
var named = map[string]string{"green": "#1a7f37", "orange": "#bc4c00", "red": "#cf222e",
	"grey": "#6e7781"}

// A picture is an SVG that is written from its top.
type picture struct{ strings.Builder }

func (p *picture) add(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

func (p *picture) text(class string, x, y float64, text string) {
	p.add(`<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, html.EscapeString(text))
}

func (p *picture) panel(x, y, w, h float64, fill string) {
	look := `class="panel"`
	if fill != "" {
		look = fmt.Sprintf(`fill="%s"`, fill)
	}
	p.add(`<rect %s x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4"/>`, look, x, y, w, h)
}

// draw returns a board as an SVG, with its values of a time.
func draw(b *board, from *prometheus, open []string) (string, error) {
	panels, units, err := b.layout(open)
	if err != nil {
		return "", err
	}
	height := headHeight + float64(units)*unitHeight + margin - gap/2
	p := &picture{}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" role="img" `+
		`aria-label="%s">`, width, height, html.EscapeString("Grafana board: "+b.Title))
	p.add("<style>%s</style>", styles)
	p.add(`<rect class="paper" x="0.5" y="0.5" width="%g" height="%g" rx="8"/>`, width-1, height-1)
	p.text("board", margin, 29, b.Title)
	p.text("about end", width-margin, 28, from.from.Format("2006-01-02 15:04:05")+" to "+
		from.to.Format("15:04:05")+" UTC")
	for _, one := range panels {
		x := margin + float64(one.GridPos.X)*unitWidth
		y := headHeight + float64(one.y)*unitHeight
		w := float64(one.GridPos.W)*unitWidth - gap
		h := float64(one.GridPos.H)*unitHeight - gap
		if one.Type == "row" {
			p.row(one, x, y)
			continue
		}
		lines, err := from.lines(one.panel)
		if err != nil {
			return "", err
		}
		switch one.Type {
		case "stat":
			p.stat(one.panel, lines, x, y, w, h)
		case "timeseries":
			p.series(one.panel, lines, from, x, y, w, h)
		default:
			return "", fmt.Errorf("the panel %q is of a kind that is not drawn: %s", one.Title,
				one.Type)
		}
	}
	p.add("</svg>")
	return p.String(), nil
}

// row draws a row's head: open, or closed with the number of its panels.
func (p *picture) row(row placed, x, y float64) {
	middle := y + (unitHeight-gap)/2
	if row.hidden == 0 {
		p.add(`<path class="tip" d="M%.1f %.1fl4 4 4-4"/>`, x+2, middle-2)
		p.text("row", x+18, middle+5, row.Title)
		return
	}
	p.add(`<path class="tip" d="M%.1f %.1fl4 4-4 4"/>`, x+4, middle-4)
	p.add(`<text class="row" x="%.1f" y="%.1f">%s <tspan class="more" dx="6" `+
		`font-weight="400">(%d panels)</tspan></text>`, x+18, middle+5,
		html.EscapeString(row.Title), row.hidden)
}

// stat draws a panel of one value, on the colour that its mapping or its threshold says.
func (p *picture) stat(of *panel, lines []line, x, y, w, h float64) {
	f := &of.FieldConfig.Defaults
	value, name := math.NaN(), ""
	if len(lines) > 0 {
		value, name = lines[0].last(), lines[0].name
	}
	text, colour := showStat(value, f), "green"
	for _, step := range f.Thresholds.Steps {
		if step.Value == nil || value >= *step.Value {
			colour = step.Color
		}
	}
	if math.IsNaN(value) {
		colour = "grey"
	}
	for _, m := range f.Mappings {
		if as, ok := m.Options[strconv.FormatFloat(value, 'g', -1, 64)]; ok {
			text, colour = as.Text, as.Color
		}
	}
	if of.Options.TextMode == "name" && name != "" {
		text = name
	}
	p.panel(x, y, w, h, named[colour])
	title := wrap(strings.Fields(of.Title), w-16, 12)
	for i, words := range title {
		p.text("small middle", x+w/2, y+20+15*float64(i), words)
	}
	size := min(20, 20*(w-20)/textWidth(text, 20))
	p.add(`<text class="value middle" style="font-size:%.1fpx" x="%.1f" y="%.1f">%s</text>`, size,
		x+w/2, y+h/2+size/3+14, html.EscapeString(text))
}

// wrap puts words into lines of at most a width.
func wrap(words []string, width, size float64) (lines []string) {
	for _, word := range words {
		last := len(lines) - 1
		if last >= 0 && textWidth(lines[last]+" "+word, size) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// textWidth is about how wide a text is, in a wide font.
func textWidth(text string, size float64) (w float64) {
	for _, c := range text {
		switch {
		case strings.ContainsRune("iljtfr.,:;|!'()[]/ ", c):
			w += 0.36
		case strings.ContainsRune("mwMW%", c):
			w += 0.92
		case c >= 'A' && c <= 'Z':
			w += 0.7
		default:
			w += 0.61
		}
	}
	return w * size
}
