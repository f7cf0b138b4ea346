package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
)

// The operator's commands share this file. Each checks its arguments, makes one request, and prints
// the answer. The commands themselves are in operator_*.go, by subject.
//
// The types of the answers there have the fields of the server and of --json. Amounts and ids are
// json.Number: their digits pass through untouched. A required field that may be false is a
// pointer, so that a command notices an answer without it.

// operatorCommands returns all operators' commands.
func (p *program) operatorCommands() []*cobra.Command {
	return []*cobra.Command{p.statusCommand(), p.accountCommand(), p.keyCommand(),
		p.depositCommand(), p.adjustCommand(), p.withdrawalCommand(), p.orderCommand(),
		p.switchCommand(), p.pairCommand(), p.feesCommand(), p.maintenanceCommand(),
		p.actionsCommand(), p.auditCommand(), p.statementCommand(), p.exportCommand(),
		p.backupCommand()}
}

// print writes the answer as JSON, or as text in columns that fn writes, separated by tabs.
func (p *program) print(a answer, fn func(w *tabwriter.Writer)) error {
	if p.json {
		return printJSON(p.stdout, a)
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fn(w)
	return w.Flush()
}

// ask makes a request that changes nothing.
func (p *program) ask(ctx context.Context, path string, out answer) error {
	c, err := p.client()
	if err != nil {
		return err
	}
	return c.call(ctx, path, nil, out)
}

// change makes a request that changes something, once. When it is not known whether it did, the
// error says so, and advice how to find out.
func (p *program) change(ctx context.Context, path string, in any, out answer,
	advice string) error {
	c, err := p.client()
	if err != nil {
		return err
	}
	return adviseIfUnknown(c.call(ctx, path, in, out), advice)
}

// repeatIt is the advice after a change that comes to the same however often it is made.
const repeatIt = "run the same command again until it answers"

// pauses lie between the tries of a request that may be repeated.
var pauses = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// changeUntilKnown makes a request that the server carries out once, even if it comes again, and
// repeats it some times while its outcome is unknown. It returns how often it was repeated.
func (p *program) changeUntilKnown(ctx context.Context, path string, in any, out answer,
	advice string) (repeats int, err error) {
	c, err := p.client()
	if err != nil {
		return 0, err
	}
	maybeDone := false // some try may have been carried out
	for {
		err = c.call(ctx, path, in, out)
		var u unknownError
		if errors.As(err, &u) {
			maybeDone = true
		} else if !maybeDone || exitCode(err) != exitUnavailable {
			return repeats, err
		}
		if repeats == len(pauses) || !wait(ctx, pauses[repeats]) {
			return repeats, adviseIfUnknown(unknown("%w", err), advice)
		}
		repeats++
	}
}

func adviseIfUnknown(err error, advice string) error {
	var u unknownError
	if errors.As(err, &u) {
		return unknown("%s; whether it was done is unknown: %s",
			strings.TrimSuffix(err.Error(), "."), advice)
	}
	return err
}

// wait returns false if ctx ends before d has passed.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// already says, in text, that there was nothing to do.
func already(w io.Writer, repeated bool, repeats int) {
	switch {
	case repeated && repeats > 0:
		fmt.Fprintln(w, "\nIt was so already, perhaps by an earlier try of this command.")
	case repeated:
		fmt.Fprintln(w, "\nIt was so already: nothing was changed.")
	}
}

func either(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return plain(s)
}

// plain returns foreign text for a terminal, without characters that could move its cursor or the
// columns.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Lists.
const maxList = 100_000 // rows, the server's own bound

// limitFlag adds --limit to the command of a list.
func limitFlag(c *cobra.Command, limit *int, usual int) {
	c.Flags().IntVar(limit, "limit", usual, fmt.Sprintf("list at most so many, 1 to %d", maxList))
}

func checkLimit(n int) error {
	if n < 1 || n > maxList {
		return usage("--limit is %d: write 1 to %d", n, maxList)
	}
	return nil
}
