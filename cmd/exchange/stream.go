package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"
)

// Commands with long answers share this file: answers come line by line, and a line on the terminal
// shows the progress.

const (
	// streamTimeout bounds a long answer. It is longer than the server's own patience, one hour.
	streamTimeout = time.Hour + time.Minute
	// maxLine bounds one line of a long answer, in bytes: the longest is the audit's report.
	maxLine = 16 << 20
)

// lines asks for a long answer and gives each of its lines to fn, but the last: its end, which is
// one of a type, becomes end. The slice is valid during the call only. An answer that breaks off is
// an error, even if its first lines were good.
func (p *program) lines(ctx context.Context, path string, in any, fn func(line []byte) error,
	of reflect.Type, end any) error {
	c, err := p.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	response, err := c.send(ctx, path, in)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	scanner := bufio.NewScanner(response.Body)
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Bytes()
		switch {
		case !json.Valid(line) && n == 1:
			return notOfListener(line)
		case !json.Valid(line):
			return c.brokeOff(fmt.Errorf("line %d is cut off", n))
		case bytes.HasPrefix(line, []byte(`{"error":`)):
			return c.failed(line)
		case bytes.HasPrefix(line, []byte(`{"end":`)):
			if err := lastLine(line, of, end); err != nil {
				return c.brokeOff(err)
			}
			if scanner.Scan() {
				return c.brokeOff(errors.New("there is more behind its end"))
			}
			return nil
		}
		if err := fn(line); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return c.brokeOff(cause(err))
	}
	return c.brokeOff(errors.New("its last line is missing"))
}

func lastLine(line []byte, of reflect.Type, end any) error {
	n, _ := parseMembers(line)
	if !complete(of, n["end"]) || json.Unmarshal(n["end"], end) != nil {
		return errors.New("its last line is not one of an exchange's operator listener")
	}
	return nil
}

// notOfListener is the error of a line that means nothing.
func notOfListener(line []byte) error {
	return withExit(exitUnavailable,
		fmt.Errorf("the answer is not one of an exchange's operator listener: %.80q", line))
}

// brokeOff is the error of an answer that is not whole. Nothing was changed, so it can be asked for
// again.
func (c *client) brokeOff(err error) error {
	return withExit(exitUnavailable,
		fmt.Errorf("the answer of the exchange at %s broke off and is not whole: %w", c.address,
			err))
}

// failed returns the error at the end of a server's answer.
func (c *client) failed(line []byte) error {
	var e struct {
		Error   string
		Damaged bool
	}
	if err := json.Unmarshal(line, &e); err != nil || e.Error == "" {
		return c.brokeOff(errors.New("its last line says nothing"))
	}
	if e.Damaged {
		return withExit(exitBroken, errors.New(e.Error))
	}
	return withExit(exitUnavailable, errors.New(e.Error))
}

// isTerminal reports whether a person may be watching. Tests replace it.
var isTerminal = func(w io.Writer) bool {
	if o, ok := w.(*outputWriter); ok {
		w = o.to
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// A progress is one line on a terminal, written over again and again. Without a terminal it is
// silent.
type progress struct {
	w     io.Writer // nil: no terminal
	shown time.Time
	width int
}

// progress begins one on standard error.
func (p *program) progress() *progress {
	if p.json || !isTerminal(p.stderr) {
		return &progress{}
	}
	return &progress{w: p.stderr}
}

// progressEvery is the time between two changes of the line.
const progressEvery = 200 * time.Millisecond

// show replaces the line, unless it was replaced just now.
func (g *progress) show(format string, args ...any) {
	if g.w == nil || time.Since(g.shown) < progressEvery {
		return
	}
	g.shown = time.Now()
	g.write(fmt.Sprintf(format, args...))
}

func (g *progress) write(text string) {
	fmt.Fprintf(g.w, "\r%-*s", g.width, text)
	g.width = len(text)
}

// done clears the line for the next output.
func (g *progress) done() {
	if g.w != nil && g.width > 0 {
		g.write("")
		fmt.Fprint(g.w, "\r")
		g.width = 0
	}
}

// thousands writes a number so that people can read it: 1,234,567.
func thousands[N int | int64 | uint64](n N) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, digit := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// megabytes returns a size for people.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
