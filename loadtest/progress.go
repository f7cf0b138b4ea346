package loadtest

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A progress shows the progress of the test: one line that changes on a terminal, otherwise a plain
// line now and then. Any goroutine may use it.
type progress struct {
	mu       sync.Mutex
	w        io.Writer // nil: nothing is shown
	terminal bool
	shown    time.Time
	width    int
}

// sayEvery is the least time between frequent messages: on a terminal, and elsewhere.
const (
	sayEvery      = 100 * time.Millisecond
	sayPlainEvery = time.Second
)

// say shows the progress, unless something was shown just now.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := sayEvery
	if !p.terminal {
		every = sayPlainEvery
	}
	if p.w == nil || time.Since(p.shown) < every {
		return
	}
	p.write(fmt.Sprintf(format, args...))
}

// line always shows a line.
func (p *progress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil {
		p.write(text)
	}
}

func (p *progress) write(text string) {
	p.shown = time.Now()
	if !p.terminal {
		fmt.Fprintln(p.w, text)
		return
	}
	fmt.Fprintf(p.w, "\r%-*s", p.width, text)
	p.width = len(text)
}

// clear removes the line before the next print.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && p.width > 0 {
		fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
		p.width = 0
	}
}

// second shows the line of one second of the load.
func (p *progress) second(s *Second, title string, at, of time.Duration) {
	text := fmt.Sprintf("%s%s/s, %d in flight, p50 %s, p99 %s, %s errors", title,
		thousands(uint64(s.Rate+0.5)), s.InFlight, ms(s.P50), ms(s.P99), thousands(s.Errors))
	if s.Waiting > 0 {
		text += fmt.Sprintf(", %s wait", thousands(s.Waiting))
	}
	left := max(of-at, 0).Round(time.Second)
	if p.terminal {
		const width = 20
		full := int(width * min(at.Seconds()/of.Seconds(), 1))
		text += fmt.Sprintf("  [%s%s] %v left", strings.Repeat("#", full),
			strings.Repeat(".", width-full), left)
	} else {
		text = fmt.Sprintf("%v of %v: %s", at.Round(time.Second), of, text)
	}
	p.line(text)
}

// ms writes milliseconds with three digits.
func ms(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f ms", v)
	case v >= 10:
		return fmt.Sprintf("%.1f ms", v)
	case v >= 1:
		return fmt.Sprintf("%.2f ms", v)
	}
	return fmt.Sprintf("%.3f ms", v)
}

// thousands formats a number for people.
func thousands(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
