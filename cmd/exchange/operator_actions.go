package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's command that lists what operators did.

type (
	actionRow struct {
		Sequence json.Number `json:"sequence"` // of the record in the journal
		Time     string      `json:"time"`
		Who      string      `json:"who"`
		What     string      `json:"what"`
		Words    string      `json:"words,omitempty"` // What, said for people
	}
	actionsAnswer struct {
		Actions []actionRow `json:"actions"`
	}
)

func (a *actionsAnswer) complete() bool { return a.Actions != nil }

func (p *program) actionsCommand() *cobra.Command {
	var limit int
	var before uint64
	c := &cobra.Command{
		Use:   "actions",
		Short: "List what operators did, newest first",
		Long: "Lists what operators did, newest first. Who did it is what the operator's program " +
			"said of itself (--as), and the address that " +
			"it came from.",
		Args: takes(),
	}
	limitFlag(c, &limit, 100)
	c.Flags().Uint64Var(&before, "before", 0,
		"list only actions before the one with this sequence (default from the newest on)")
	c.RunE = run(func(ctx context.Context, _ []string) error {
		if err := checkLimit(limit); err != nil {
			return err
		}
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		if c.Flags().Changed("before") {
			if before == 0 {
				return usage("--before is 0: write the sequence of an action")
			}
			query.Set("before", strconv.FormatUint(before, 10))
		}
		var a actionsAnswer
		if err := p.ask(ctx, "/operator/v1/actions?"+query.Encode(), &a); err != nil {
			return err
		}
		return p.print(&a, func(w *tabwriter.Writer) {
			fmt.Fprintln(w, "SEQUENCE\tTIME\tWHO\tWHAT")
			for _, x := range a.Actions {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Sequence, x.Time, orDash(x.Who),
					orDash(cmp.Or(x.Words, x.What)))
			}
			if n := len(a.Actions); n > 0 && n >= limit {
				fmt.Fprintf(w, "\nThere may be older ones: exchange actions --before %s\n",
					a.Actions[n-1].Sequence)
			}
		})
	})
	return c
}
