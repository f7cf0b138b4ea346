// Package clitest runs command lines of the program inside a test. Only tests use it.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
)

// A Line runs command lines of a tree of commands.
type Line func(p *cli.Program) *cobra.Command

// A Result is the outcome of one run.
type Result struct {
	Code        int
	Out, ErrOut string
}

// Run runs one command line.
func (l Line) Run(environ []string, args ...string) Result {
	return l.RunUntil(context.Background(), environ, args...)
}

// RunUntil runs one command line, which an end of ctx interrupts.
func (l Line) RunUntil(ctx context.Context, environ []string, args ...string) Result {
	var out, errOut bytes.Buffer
	p := &cli.Program{Environ: environ, Stdout: &out, Stderr: &errOut}
	code := p.Execute(ctx, l, args)
	return Result{code, out.String(), errOut.String()}
}

// Want expects a code and both outputs.
func (r Result) Want(t testing.TB, code int, out, errOut string) {
	t.Helper()
	if r.Code != code || r.Out != out || r.ErrOut != errOut {
		t.Errorf("got code %d, out\n%s\nerr\n%s\nwant code %d, out\n%s\nerr\n%s", r.Code, r.Out,
			r.ErrOut, code, out, errOut)
	}
}

// WantError expects no output, one line with text on stderr, and the code.
func (r Result) WantError(t testing.TB, code int, text string) {
	t.Helper()
	if r.Code != code || r.Out != "" || !strings.Contains(r.ErrOut, text) {
		t.Errorf("got code %d, out %q, err %q; want code %d and %q", r.Code, r.Out, r.ErrOut, code,
			text)
	}
	if strings.Contains(r.ErrOut, "Usage:") || strings.Count(r.ErrOut, "\n") > 2 {
		t.Errorf("this is a wall of text: %s", r.ErrOut)
	}
}

// WantJSONError expects exactly one object {"error"} on stderr.
func (r Result) WantJSONError(t testing.TB, code int, text string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.ErrOut))
	d.DisallowUnknownFields()
	var e struct{ Error string }
	if err := d.Decode(&e); err != nil || d.More() || r.Out != "" || r.Code != code ||
		!strings.Contains(e.Error, text) {
		t.Errorf("got code %d, out %q, err %q; want code %d and %q", r.Code, r.Out, r.ErrOut, code,
			text)
	}
}
