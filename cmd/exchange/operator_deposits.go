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

	"exchange/core/money"
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
	var reference, file string
	c := &cobra.Command{
		Use:   "deposit ACCOUNT CURRENCY AMOUNT",
		Short: "Credit an account",
		Long: "Credits an account. A reference is credited once, however often the command is " +
			"repeated with it: give the number of the bank's " +
			"or chain's transaction. Without --reference a new one is made, and named in the " +
			"answer.\n\n" +
			"--csv credits the lines of a file with the columns account,currency,amount," +
			"reference under a first line with these names. Every line is checked before the " +
			"first is sent: its form, its account, its currency, and that no two have one " +
			"reference. Lines that the exchange refuses all the same, as for a reference of " +
			"another deposit, are named; " +
			"the others are credited. The same file again credits what is missing, and nothing " +
			"twice.",
		Args: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("csv") {
				return takes()(c, args)
			}
			return takes("ACCOUNT", "CURRENCY", "AMOUNT")(c, args)
		},
	}
	c.Flags().StringVar(&reference, "reference", "",
		"what this deposit is known by, unique over all accounts (default: a random one)")
	c.Flags().StringVar(&file, "csv", "", "credit the lines of this file instead")
	c.RunE = run(func(ctx context.Context, args []string) error {
		switch csv := c.Flags().Changed("csv"); {
		case csv && c.Flags().Changed("reference"):
			return usage("--reference is of one deposit: in a file each line has its own")
		case csv && file == "":
			return usage("--csv is empty: name a file")
		case csv:
			return p.depositFile(ctx, file)
		}
		amount, err := readAmount(args[2])
		fresh := !c.Flags().Changed("reference")
		if fresh {
			reference = "cli-" + strings.ToLower(rand.Text())
		}
		if err := cmp.Or(checkAccount(args[0]), checkCurrency(args[1]), err,
			checkReference(reference)); err != nil {
			return err
		}
		a, repeats, err := p.credit(ctx, args[0], args[1], amount, reference,
			"repeat the command with --reference "+reference+": it is credited once at most")
		if err != nil {
			return err
		}
		if fresh && repeats > 0 {
			// no other command knows a fresh reference: the first try of this one had landed
			a.Repeated = false
		}
		err = p.print(a, func(w *tabwriter.Writer) {
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

// credit makes a deposit once, and returns how often the request was repeated until its outcome was
// known.
func (p *program) credit(ctx context.Context, account, currency string, amount money.Amount,
	reference, advice string) (*depositAnswer, int, error) {
	a := new(depositAnswer)
	in := map[string]string{"account": account, "currency": currency, "amount": amount.String(),
		"reference": reference}
	repeats, err := p.changeUntilKnown(ctx, "/operator/v1/deposits", in, a, advice)
	return a, repeats, err
}
