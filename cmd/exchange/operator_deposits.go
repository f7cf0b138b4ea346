package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's command that credits accounts.

type depositAnswer struct {
	Deposit   json.Number `json:"deposit"`
	Account   string      `json:"account"`
	Currency  string      `json:"currency"`
	Amount    json.Number `json:"amount"`
	Balance   json.Number `json:"balance"`
	Reference string      `json:"reference"`
	Repeated  bool        `json:"repeated,omitempty"`
}

func (a *depositAnswer) complete() bool {
	return a.Deposit != "" && a.Amount != "" && a.Balance != "" && a.Reference != ""
}

func (p *program) depositCommand() *cobra.Command {
	var reference string
	c := &cobra.Command{
		Use:   "deposit ACCOUNT CURRENCY AMOUNT",
		Short: "Credit an account",
		Long: "Credits an account. A reference is credited once, however often the command is " +
			"repeated with it: give the number of the bank's " +
			"or chain's transaction. Without --reference a new one is made, and named in the " +
			"answer.",
		Args: takes("ACCOUNT", "CURRENCY", "AMOUNT"),
	}
	c.Flags().StringVar(&reference, "reference", "",
		"what this deposit is known by, unique over all accounts (default: a random one)")
	c.RunE = run(func(ctx context.Context, args []string) error {
		amount, err := readAmount(args[2])
		fresh := !c.Flags().Changed("reference")
		if fresh {
			reference = "cli-" + strings.ToLower(rand.Text())
		}
		if err := cmp.Or(checkAccount(args[0]), checkCurrency(args[1]), err,
			checkReference(reference)); err != nil {
			return err
		}
		var a depositAnswer
		in := map[string]string{"account": args[0], "currency": args[1], "amount": amount.String(),
			"reference": reference}
		repeats, err := p.changeUntilKnown(ctx, "/operator/v1/deposits", in, &a,
			"repeat the command with --reference "+reference+": it is credited once at most")
		if err != nil {
			return err
		}
		if fresh && repeats > 0 {
			// no other command knows a fresh reference: the first try of this one had landed
			a.Repeated = false
		}
		err = p.print(&a, func(w *tabwriter.Writer) {
			fmt.Fprintf(w,
				"deposit\t%s\naccount\t%s\namount\t%s %s\nbalance\t%s %s\nreference\t%s\n",
				a.Deposit, a.Account, a.Amount, a.Currency, a.Balance, a.Currency, a.Reference)
			if a.Repeated {
				fmt.Fprintln(w, "\nThis reference was credited before: nothing was added now.")
			}
		})
		if err != nil {
			return fmt.Errorf("the deposit is credited, repeat it only with --reference %s: %w",
				a.Reference, err)
		}
		return nil
	})
	return c
}
