package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/core/money"
)

// The operator's commands about the fees of single accounts; the usual ones are the pair's, in the
// configuration.

type feesAnswer struct {
	Account  string      `json:"account"`
	Pair     string      `json:"pair"`
	Own      *bool       `json:"own"` // false: the pair's rates count
	Maker    json.Number `json:"maker"`
	Taker    json.Number `json:"taker"`
	Repeated bool        `json:"repeated,omitempty"`
}

func (a *feesAnswer) complete() bool {
	return a.Account != "" && a.Pair != "" && a.Own != nil && a.Maker != "" && a.Taker != ""
}

func (p *program) feesCommand() *cobra.Command {
	return group("fees", "Give an account its own fees, and list fees", p.feesSetCommand(),
		p.feesResetCommand(), p.feesListCommand())
}

func (p *program) feesSetCommand() *cobra.Command {
	var maker, taker string
	c := &cobra.Command{
		Use:   "set ACCOUNT PAIR --maker RATE --taker RATE",
		Short: "Give an account its own rates in a pair",
		Long: "Gives an account its own rates in a pair, for trades from now on. A rate is the " +
			"fraction that is taken of what the account " +
			"receives: 0.001 is 0.1 %, and 0 is no fee.",
		Args: takes("ACCOUNT", "PAIR"),
	}
	c.Flags().StringVar(&maker, "maker", "",
		"rate for orders that rested, such as 0.001 (required)")
	c.Flags().StringVar(&taker, "taker", "",
		"rate for orders that met them, such as 0.002 (required)")
	c.RunE = run(func(ctx context.Context, args []string) error {
		if !c.Flags().Changed("maker") || !c.Flags().Changed("taker") {
			return usage("fees set needs --maker RATE and --taker RATE")
		}
		m, err1 := readRate("--maker", maker)
		t, err2 := readRate("--taker", taker)
		if err := cmp.Or(checkAccount(args[0]), checkPair(args[1]), err1, err2); err != nil {
			return err
		}
		return p.setFees(ctx, map[string]any{"account": args[0], "pair": args[1],
			"maker": m.String(), "taker": t.String()})
	})
	return c
}

func (p *program) feesResetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reset ACCOUNT PAIR",
		Short: "Let the pair's usual rates count for an account again",
		Args:  takes("ACCOUNT", "PAIR"),
		RunE: run(func(ctx context.Context, args []string) error {
			if err := cmp.Or(checkAccount(args[0]), checkPair(args[1])); err != nil {
				return err
			}
			return p.setFees(ctx, map[string]any{"account": args[0], "pair": args[1],
				"usual": true})
		}),
	}
}

func (p *program) setFees(ctx context.Context, in any) error {
	var a feesAnswer
	repeats, err := p.changeUntilKnown(ctx, "/operator/v1/fees", in, &a, repeatIt)
	if err != nil {
		return err
	}
	return p.print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "account\t%s\npair\t%s\nmaker\t%s\ntaker\t%s\nrates\t%s\n", a.Account,
			a.Pair, percent(a.Maker), percent(a.Taker),
			either(*a.Own, "the account's own", "the pair's"))
		already(w, a.Repeated, repeats)
	})
}

// percent shows a rate both ways, so that an operator sees the mistake of 0.5 for 0.5 %.
func percent(rate json.Number) string {
	r, err := money.ParseRate(rate.String())
	if err != nil {
		return rate.String()
	}
	return fmt.Sprintf("%s (%s %%)", rate, money.Amount(r)*100)
}
