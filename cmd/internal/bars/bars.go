// Package bars draws rows of numbers as horizontal bars over a logarithmic axis: an SVG picture of
// its own, for pages that are read in light and in dark.
package bars

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"unicode/utf8"
)

// A Chart is a title and its rows.
type Chart struct {
	Title string
	// From is the value at which all bars begin, more than 0. A bar to the left of it is of a
	// smaller value.
	From   float64
	Begin  string // what a value of From means; it stands over the line there
	Ticks  []Tick // those within the values are drawn
	Rows   []Row
	Footer string // a line below the rows; "": none
}

// A Tick is a value with a line of its own.
type Tick struct {
	Value float64
	Text  string
}

// A Row is one bar.
type Row struct {
	Name      string
	Value     float64 // more than 0
	Low, High float64 // the ends of a thin line, more than 0; 0: there is none
	Text      string  // to the right of the drawing
	Poor      bool    // the bar has the colour of what falls short
}

// The drawing in its own units. A letter of its font is at most letter wide.
const (
	rowHeight, barHeight = 17.0, 9.0
	letter               = 6.1
	barsWidth            = 300.0
	gap                  = 10.0
	top                  = 44.0
)

const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" ` +
	`role="img" aria-label="%s"><style>
rect.page{fill:#fff}text{font:11px system-ui,sans-serif;fill:#222}text.h{font-weight:600}
text.n{text-anchor:end}text.m{text-anchor:middle;fill:#666}rect.good{fill:#2f8f6b}
rect.poor{fill:#d9822b}path{stroke:#222;fill:none}path.a{stroke:#999}path.g{stroke:#e4e4e4}
</style><rect class="page" width="100%%" height="100%%"/>
<text class="h" x="%.0f" y="18">%s</text>
`

// WriteTo writes the picture.
func (c *Chart) WriteTo(w io.Writer) (int64, error) {
	names, texts := 0, 0
	low, high := c.From, c.From
	for i := range c.Rows {
		r := &c.Rows[i]
		names = max(names, utf8.RuneCountInString(r.Name))
		texts = max(texts, utf8.RuneCountInString(r.Text))
		for _, v := range []float64{r.Value, r.Low, r.High} {
			if v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if low == high {
		high = 10 * low
	}
	left := 2*gap + letter*float64(names)
	width := left + barsWidth + 2*gap + letter*float64(texts)
	height := top + rowHeight*float64(len(c.Rows)) + 2*gap
	place := func(v float64) float64 {
		return left + barsWidth*math.Log(v/low)/math.Log(high/low)
	}
	var b bytes.Buffer
	title := html.EscapeString(c.Title)
	fmt.Fprintf(&b, head, width, height, width, title, gap, title)
	bottom := top + rowHeight*float64(len(c.Rows))
	line := func(class string, at float64, text string) {
		fmt.Fprintf(&b, "<path class=\"%s\" d=\"M%.1f %.0fV%.1f\"/>\n", class, at, top-4, bottom)
		fmt.Fprintf(&b, "<text class=\"m\" x=\"%.1f\" y=\"%.0f\">%s</text>\n", at, top-8,
			html.EscapeString(text))
	}
	for _, t := range c.Ticks {
		if low <= t.Value && t.Value <= high {
			line("g", place(t.Value), t.Text)
		}
	}
	begin := place(c.From)
	for i := range c.Rows {
		c.Rows[i].draw(&b, top+rowHeight*(float64(i)+0.5), left, begin, place)
	}
	line("a", begin, c.Begin)
	fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%.1f\">%s</text>\n</svg>\n", gap, bottom+gap+4,
		html.EscapeString(c.Footer))
	n, err := w.Write(b.Bytes())
	return int64(n), err
}

// draw draws a row whose middle is at y.
func (r *Row) draw(b *bytes.Buffer, y, left, begin float64, place func(float64) float64) {
	class := "good"
	if r.Poor {
		class = "poor"
	}
	end := place(r.Value)
	fmt.Fprintf(b, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", left-gap, y+4,
		html.EscapeString(r.Name))
	fmt.Fprintf(b, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\"/>\n",
		class, min(begin, end), y-barHeight/2, max(math.Abs(end-begin), 1), barHeight)
	if r.Low > 0 && r.High > 0 {
		fmt.Fprintf(b, "<path d=\"M%.1f %.1fH%.1f\"/>\n", place(r.Low), y, place(r.High))
	}
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", left+barsWidth+gap, y+4,
		html.EscapeString(r.Text))
}
