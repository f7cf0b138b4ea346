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

// reloaded is the answer to a reload.
type reloaded struct {
	Applied []struct {
		Key    string `json:"key"`
		Before string `json:"before"`
		After  string `json:"after"`
		Origin string `json:"origin"`
	} `json:"applied"`
	Faults []string `json:"faults"` // certificates and tokens that stay as they were
}

func (a *reloaded) complete() bool { return a.Applied != nil && a.Faults != nil }

func (p *program) configReloadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Have the running exchange take up its configuration",
		Long: "Has the running exchange read its configuration again, from the same file, flags " +
			"and environment as at its start, and take up what has changed; certificates and " +
			"tokens, too. SIGHUP does the same.\n\nAll changes are taken up, or none: if one of " +
			"them needs a restart, or the agreement of a cluster's nodes, the answer says which " +
			"and why, and the exchange goes on as before. In a cluster the node that is asked " +
			"reloads.",
		Args: takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			var a reloaded
			err := p.change(ctx, "/operator/v1/config/reload", map[string]string{}, &a, repeatIt)
			if err != nil {
				return err
			}
			return p.print(&a, a.write)
		}),
	}
}

func (a *reloaded) write(w *tabwriter.Writer) {
	if len(a.Applied) == 0 {
		fmt.Fprintln(w, "The configuration is as it was.")
	} else {
		fmt.Fprintln(w, "OPTION\tNOW\tBEFORE\tFROM")
	}
	for _, x := range a.Applied {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", plain(x.Key), plain(x.After), plain(x.Before),
			plain(x.Origin))
	}
	for _, fault := range a.Faults {
		fmt.Fprintf(w, "%s\n", plain(fault))
	}
}
