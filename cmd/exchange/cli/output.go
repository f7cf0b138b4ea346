package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// An outputWriter is the standard output of a command. After an error, such as of a full disk, it
// only repeats it.
type outputWriter struct {
	out io.Writer
	err error
}

func (w *outputWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.out.Write(b)
	if err != nil {
		w.err = WithExit(ExitUnavailable,
			fmt.Errorf(
				"cannot write standard output; the command may have been "+
					"carried out: %w", err))
	}
	return n, w.err
}

// PrintJSON writes one object and a line break.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Print writes the answer as JSON, or as text in columns that fn writes, separated by tabs.
func (p *Program) Print(a any, fn func(w *tabwriter.Writer)) error {
	if p.JSON {
		return PrintJSON(p.Stdout, a)
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	fn(w)
	return w.Flush()
}

func Either(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return Plain(s)
}

// Plain returns foreign text for a terminal, without characters that could move its cursor or the
// columns.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
