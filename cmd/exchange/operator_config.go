package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// appliedMarket is the answer to a market part that was applied.
type appliedMarket struct {
	Keys []string `json:"keys"` // that differ from the one before
}

func (a *appliedMarket) complete() bool { return a.Keys != nil }

func (p *program) configApplyCommand() *cobra.Command {
	var from sources
	c := &cobra.Command{
		Use:   "apply [--config FILE]",
		Short: "Have the nodes of a cluster agree on a file's market part",
		Long: "Checks a configuration as `exchange config check` does, and has all nodes of the " +
			"cluster agree on its market part: currencies, pairs with their fees, and the limits " +
			"that clients see. It counts from the next reign on, which " +
			"`exchange cluster transfer` begins. It is refused if a pair is missing in which " +
			"orders are open, or a currency that accounts hold.",
		Args: takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			cfg, err := p.load(&from)
			if err != nil {
				return err
			}
			packed, err := pack(cfg.Market())
			if err != nil {
				return withExit(exitBroken, err)
			}
			var a appliedMarket
			err = p.change(ctx, "/operator/v1/cluster/apply", map[string][]byte{"market": packed},
				&a, repeatIt)
			if err != nil {
				return err
			}
			return p.print(&a, a.write)
		}),
	}
	c.Flags().StringVar(&from.file, "config", "", "configuration file (default $EXCHANGE_CONFIG)")
	return c
}

func (a *appliedMarket) write(w *tabwriter.Writer) {
	if len(a.Keys) == 0 {
		fmt.Fprintln(w, "The cluster has this market part already.")
		return
	}
	fmt.Fprintf(w, "Applied: %s. It counts from the next reign on: `exchange cluster transfer` "+
		"begins one.\n", plain(strings.Join(a.Keys, ", ")))
}
