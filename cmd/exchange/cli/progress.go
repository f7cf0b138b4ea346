package cli

import (
	"fmt"
	"io"
	"os"
	"time"
)

// IsTerminal reports whether a person may be watching. Tests replace it.
var IsTerminal = func(w io.Writer) bool {
	if o, ok := w.(*outputWriter); ok {
		w = o.out
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// A Progress is one line on a terminal, rewritten repeatedly. Without a terminal it is silent.
type Progress struct {
	w     io.Writer // nil: no terminal
	shown time.Time
	width int
}

// Progress begins one on standard error.
func (p *Program) Progress() *Progress {
	if p.JSON || !IsTerminal(p.Stderr) {
		return &Progress{}
	}
	return &Progress{w: p.Stderr}
}

// progressEvery is the time between two changes of the line.
const progressEvery = 200 * time.Millisecond

// Show replaces the line, unless it was replaced just now.
func (g *Progress) Show(format string, args ...any) {
	if g.w == nil || time.Since(g.shown) < progressEvery {
		return
	}
	g.shown = time.Now()
	g.write(fmt.Sprintf(format, args...))
}

func (g *Progress) write(text string) {
	fmt.Fprintf(g.w, "\r%-*s", g.width, text)
	g.width = len(text)
}

// Done clears the line for the next output.
func (g *Progress) Done() {
	if g.w != nil && g.width > 0 {
		g.write("")
		fmt.Fprint(g.w, "\r")
		g.width = 0
	}
}

// megabytes formats a size.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// Reader returns a reader that shows the bytes read: text has a place for a size, as "%s verified".
// Its errors are ReadErrors.
func (g *Progress) Reader(r io.Reader, text string) io.Reader { return &counting{r, 0, g, text} }

// A counting reader shows the bytes read.
type counting struct {
	io.Reader
	n    int64
	g    *Progress
	text string
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	c.g.Show(c.text, megabytes(c.n))
	if err != nil && err != io.EOF { //nolint:errorlint // as io.Reader demands
		err = ReadError{err}
	}
	return n, err
}

// A ReadError is an error of the source, to distinguish it from one of the writer.
type ReadError struct{ error }

func (e ReadError) Unwrap() error { return e.error }
