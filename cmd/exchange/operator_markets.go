package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's commands that list what is set: pairs, and fees.

type (
	pairRow struct {
		Pair              string      `json:"pair"`
		PricePrecision    json.Number `json:"price_precision"`
		AmountPrecision   json.Number `json:"amount_precision"`
		PriceTick         json.Number `json:"price_tick"`
		AmountStep        json.Number `json:"amount_step"`
		MinimumOrderSize  json.Number `json:"minimum_order_size"`
		MaximumOrderSize  json.Number `json:"maximum_order_size"`
		MinimumOrderValue json.Number `json:"minimum_order_value"`
		PriceBand         json.Number `json:"price_band"`
		Maker             json.Number `json:"maker"`
		Taker             json.Number `json:"taker"`
		Last              json.Number `json:"last"` // 0: there was no trade
		Open              json.Number `json:"open_orders"`
		Halted            *bool       `json:"halted"`
		Since             string      `json:"since"` // "": open, or that is not known any more
	}
	pairsAnswer struct {
		Pairs []pairRow `json:"pairs"`
	}
	feeRow struct {
		Account string      `json:"account,omitempty"`
		ID      json.Number `json:"id,omitempty"`
		Pair    string      `json:"pair"`
		Maker   json.Number `json:"maker"`
		Taker   json.Number `json:"taker"`
	}
	feeListAnswer struct {
		Pairs    []feeRow    `json:"pairs"`    // the usual rates
		Accounts []feeRow    `json:"accounts"` // rates of their own
		Next     json.Number `json:"next,omitempty"`
	}
)

func (a *pairsAnswer) complete() bool {
	for i := range a.Pairs {
		if a.Pairs[i].Halted == nil {
			return false
		}
	}
	return a.Pairs != nil
}
func (a *feeListAnswer) complete() bool { return a.Pairs != nil && a.Accounts != nil }

func (p *program) pairListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the pairs with their rules, fees, last prices and halts",
		Args:  takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			var a pairsAnswer
			if err := p.ask(ctx, "/operator/v1/pairs", &a); err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "PAIR\tTICK\tSTEP\tMINIMUM\tVALUE FROM\tMAKER\tTAKER\t"+
					"LAST\tOPEN\tSTATE")
				for i := range a.Pairs {
					x := &a.Pairs[i]
					state := "open"
					if *x.Halted {
						state = "cancels only " + since(x.Since)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(x.Pair),
						x.PriceTick, x.AmountStep, x.MinimumOrderSize, x.MinimumOrderValue, x.Maker,
						x.Taker, either(x.Last == "0", "-", x.Last.String()), x.Open, state)
				}
			})
		}),
	}
}

func (p *program) feesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the usual rates of all pairs, and the accounts with rates of their own",
		Args:  takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			a := feeListAnswer{Pairs: []feeRow{}, Accounts: []feeRow{}}
			for path := "/operator/v1/fees"; path != ""; {
				var page feeListAnswer
				if err := p.ask(ctx, path, &page); err != nil {
					return err
				}
				a.Pairs = append(a.Pairs, page.Pairs...)
				a.Accounts = append(a.Accounts, page.Accounts...)
				path = ""
				if page.Next != "" {
					path = "/operator/v1/fees?" +
						url.Values{"after": {page.Next.String()}}.Encode()
				}
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "ACCOUNT\tPAIR\tMAKER\tTAKER")
				for _, list := range [][]feeRow{a.Pairs, a.Accounts} {
					for _, x := range list {
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", orDash(x.Account), plain(x.Pair),
							percent(x.Maker), percent(x.Taker))
					}
				}
			})
		}),
	}
}
