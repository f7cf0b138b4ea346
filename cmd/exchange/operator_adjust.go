package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/core/event"
	"exchange/core/money"
)

// The operator's command that corrects accounts.

type adjustmentAnswer struct {
	Adjustment json.Number `json:"adjustment"`
	Account    string      `json:"account"`
	Currency   string      `json:"currency"`
	Amount     json.Number `json:"amount"` // below 0
	Balance    json.Number `json:"balance"`
	Reference  string      `json:"reference"`
	Reason     string      `json:"reason"`
	Repeated   bool        `json:"repeated,omitempty"`
}

func (a *adjustmentAnswer) complete() bool {
	return a.Adjustment != "" && a.Amount != "" && a.Balance != "" && a.Reference != ""
}

// belowZero begins an amount below 0, which would be read as flags. No flag begins so.
var belowZero = regexp.MustCompile(`^-[0-9.]`)

// amountLast puts the amount of an adjustment to the end, behind "--".
func amountLast(args []string) []string {
	command := slices.Index(args, "adjust")
	if command < 0 || slices.Contains(args, "--") {
		return args
	}
	for i := command + 1; i < len(args); i++ {
		if belowZero.MatchString(args[i]) && !takesNext(args[i-1]) {
			return append(slices.Delete(slices.Clone(args), i, i+1), "--", args[i])
		}
	}
	return args
}

// takesNext reports whether an argument is a flag whose value is the next argument.
func takesNext(arg string) bool {
	return strings.HasPrefix(arg, "--") && !strings.Contains(arg, "=") && arg != "--json" &&
		arg != "--help"
}

// readAdjustment reads an amount below 0, and returns what is taken.
func readAdjustment(s string) (money.Amount, error) {
	size, down := strings.CutPrefix(s, "-")
	a, err := money.ParseAmount(size)
	switch {
	case err != nil || down && a == 0:
		return 0, usage("the amount %q must be a number below 0, such as -0.5, with at most 8 "+
			"fractional digits and above -92,233,720,368", s)
	case !down:
		return 0, usage("the amount %q is not below 0, and an adjustment only takes money: to "+
			"credit an account use `exchange deposit`", s)
	}
	return a, nil
}

func (p *program) adjustCommand() *cobra.Command {
	var reference, reason string
	c := &cobra.Command{
		Use:   "adjust ACCOUNT CURRENCY -AMOUNT --reason TEXT",
		Short: "Take money out of an account, as a correction",
		Long: "Takes money out of an account, as a correction, such as of a deposit that was " +
			"credited twice. Only available money is taken: what open orders and pending " +
			"withdraws hold stays. The owner is told the reason, and `exchange statement`, " +
			"`exchange actions` and `exchange audit` show the adjustment. The amount is below 0, " +
			"such as -0.5.\n\nA reference is taken once, however often the command is repeated " +
			"with it. Without --reference a new one is made, and named in the answer.",
		Example: "  exchange adjust alice BTC -0.5 --reason 'wire 7 was credited twice'",
		Args:    takes("ACCOUNT", "CURRENCY", "-AMOUNT"),
	}
	c.Flags().StringVar(&reference, "reference", "",
		"what this adjustment is known by among the account's: 1 to 36 of A-Z, a-z, 0-9, '-' and "+
			"'_' (default: a random one)")
	c.Flags().StringVar(&reason, "reason", "", "why; the account's owner is told (required)")
	c.RunE = run(func(ctx context.Context, args []string) error {
		amount, err := readAdjustment(args[2])
		fresh := !c.Flags().Changed("reference")
		if fresh {
			reference = "adjust-" + strings.ToLower(rand.Text())
		}
		if _, bad := event.NewClientID(reference); bad != nil {
			err = cmp.Or(err, usage("the reference %.80q must be 1 to 36 of A-Z, a-z, 0-9, '-' "+
				"and '_'", reference))
		}
		if err == nil && !c.Flags().Changed("reason") {
			err = usage("adjust needs --reason TEXT: the account's owner is told why")
		}
		if err := cmp.Or(checkAccount(args[0]), checkCurrency(args[1]), err,
			checkText("--reason", reason, maxDetails)); err != nil {
			return err
		}
		return p.adjust(ctx, map[string]string{"account": args[0], "currency": args[1],
			"amount": "-" + amount.String(), "reference": reference, "reason": reason}, fresh)
	})
	return c
}

func (p *program) adjust(ctx context.Context, in map[string]string, fresh bool) error {
	var a adjustmentAnswer
	repeats, err := p.changeUntilKnown(ctx, "/operator/v1/adjustments", in, &a,
		"repeat the command with --reference "+in["reference"]+": it is taken once at most")
	if err != nil {
		return err
	}
	if fresh && repeats > 0 {
		a.Repeated = false // the first try of this command had landed
	}
	err = p.print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "adjustment\t%s\naccount\t%s\namount\t%s %s\nbalance\t%s %s\n"+
			"reference\t%s\nreason\t%s\n", a.Adjustment, a.Account, a.Amount, a.Currency,
			a.Balance, a.Currency, a.Reference, plain(a.Reason))
		if a.Repeated {
			fmt.Fprintln(w, "\nThis reference was taken before: nothing was taken now.")
		}
	})
	if err != nil {
		return fmt.Errorf("the adjustment is made, repeat it only with --reference %s: %w",
			a.Reference, err)
	}
	return nil
}
