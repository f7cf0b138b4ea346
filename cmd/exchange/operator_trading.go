package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's commands that stop and resume trading: of one pair, or of all.

type (
	haltAnswer struct {
		Pair     string `json:"pair"`
		On       *bool  `json:"on"`
		Repeated bool   `json:"repeated,omitempty"`
	}
	haltsAnswer struct {
		Pairs []haltAnswer `json:"pairs"`
	}
	maintenanceAnswer struct {
		On       *bool  `json:"on"`
		Message  string `json:"message,omitempty"`
		Cancels  bool   `json:"cancels,omitempty"` // clients may cancel
		Repeated bool   `json:"repeated,omitempty"`
	}
)

func (a *haltsAnswer) complete() bool {
	return a.Pairs != nil &&
		!slices.ContainsFunc(a.Pairs, func(x haltAnswer) bool { return !x.complete() })
}
func (a *haltAnswer) complete() bool        { return a.Pair != "" && a.On != nil }
func (a *maintenanceAnswer) complete() bool { return a.On != nil }

func (p *program) pairCommand() *cobra.Command {
	return group("pair", "Halt and resume trading on pairs, and list them",
		p.haltCommand("halt", "Take no new orders on a pair; open ones stay, and can be cancelled",
			true),
		p.haltCommand("resume", "Take orders on a pair again", false), p.pairListCommand())
}

func (p *program) haltCommand(name, short string, on bool) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   name + " [PAIR]",
		Short: short,
		Long: short + ". With --all it does so to each configured pair, one after the " +
			"other: each is an action of its own.",
	}
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case !all:
			return takes("PAIR")(c, args)
		case len(args) > 0:
			return usage("pair %s takes a pair or --all, and %q and --all are both", name, args[0])
		}
		return nil
	}
	c.Flags().BoolVar(&all, "all", false, "all configured pairs")
	c.RunE = run(func(ctx context.Context, args []string) error {
		if all {
			return p.haltAll(ctx, on)
		}
		if err := checkPair(args[0]); err != nil {
			return err
		}
		var a haltAnswer
		in := map[string]any{"pair": args[0], "on": on}
		repeats, err := p.changeUntilKnown(ctx, "/operator/v1/pairs/halt", in, &a, repeatIt)
		if err != nil {
			return err
		}
		return p.print(&a, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "Trading on %s is %s.\n", a.Pair, either(*a.On, "halted", "open"))
			already(w, a.Repeated, repeats)
		})
	})
	return c
}

func (p *program) haltAll(ctx context.Context, on bool) error {
	var a haltsAnswer
	if _, err := p.changeUntilKnown(ctx, "/operator/v1/pairs/halt",
		map[string]any{"all": true, "on": on}, &a, repeatIt); err != nil {
		return err
	}
	return p.print(&a, func(w *tabwriter.Writer) {
		for _, x := range a.Pairs {
			fmt.Fprintf(w, "Trading on %s is %s%s.\n", plain(x.Pair),
				either(*x.On, "halted", "open"), either(x.Repeated, ", as before", ""))
		}
	})
}

func (p *program) maintenanceCommand() *cobra.Command {
	var message string
	var cancels bool
	on := &cobra.Command{
		Use:   "on",
		Short: "Take no commands of clients, also after a restart, until `maintenance off`",
		Long: "Takes no commands of clients from now on, lets those that are in flight end, and " +
			"answers when none is left. " +
			"Clients can still read, and operators can still do everything. It outlives " +
			"restarts. With --cancels clients can cancel from then on: orders and withdraws. " +
			"Their switches cancel, too. Nothing trades, and no stop is triggered. The same " +
			"command without it ends that.",
		Args: takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			if message != "" {
				if err := checkText("--message", message, maxMessage); err != nil {
					return err
				}
			}
			in := map[string]any{"on": true, "message": message}
			if cancels { // an older server does not know the field
				in["cancels"] = true
			}
			return p.maintain(ctx, in)
		}),
	}
	on.Flags().StringVar(&message, "message", "",
		"what clients are told besides, such as until when")
	on.Flags().BoolVar(&cancels, "cancels", false, "clients can cancel meanwhile")
	off := &cobra.Command{
		Use:   "off",
		Short: "Take commands of clients again",
		Args:  takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			return p.maintain(ctx, map[string]any{"on": false})
		}),
	}
	status := &cobra.Command{
		Use:   "status",
		Short: "Show whether there is maintenance, and since when",
		Args:  takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			var a closedAnswer
			if err := p.ask(ctx, "/operator/v1/maintenance", &a); err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "Maintenance is %s\n", a.text())
			})
		}),
	}
	return group("maintenance", "Begin, end and show maintenance: no commands of clients are taken",
		on, off, status)
}

func (p *program) maintain(ctx context.Context, in any) error {
	var a maintenanceAnswer
	repeats, err := p.changeUntilKnown(ctx, "/operator/v1/maintenance", in, &a, repeatIt)
	if err != nil {
		return err
	}
	return p.print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Maintenance is %s.\n",
			either(*a.On, either(a.Cancels, "on: of clients' commands cancels alone are taken",
				"on: no commands of clients are taken"), "off"))
		if a.Message != "" {
			fmt.Fprintf(w, "Clients are told: %s\n", plain(a.Message))
		}
		already(w, a.Repeated, repeats)
	})
}
