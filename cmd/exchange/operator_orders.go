package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's commands about open orders.

type (
	openOrderRow struct {
		Order         json.Number `json:"order"`
		Account       string      `json:"account,omitempty"`
		Pair          string      `json:"pair"`
		Type          string      `json:"type"`
		Price         json.Number `json:"price"`
		Amount        json.Number `json:"amount"`
		Remaining     json.Number `json:"remaining"`
		Time          string      `json:"time"`
		ClientOrderID string      `json:"client_order_id,omitempty"`
		Waiting       *bool       `json:"waiting"`
		OrderType     string      `json:"order_type,omitempty"`
		TimeInForce   string      `json:"time_in_force,omitempty"`
		Expires       string      `json:"expires,omitempty"`
		PostOnly      bool        `json:"post_only,omitempty"`
		Display       json.Number `json:"display_amount,omitempty"`
		TriggerPrice  json.Number `json:"trigger_price,omitempty"`
		TriggerWhen   string      `json:"trigger_when,omitempty"`
		OCOTrigger    json.Number `json:"oco_trigger_price,omitempty"`
		OCOPrice      json.Number `json:"oco_price,omitempty"`
	}
	openOrdersAnswer struct {
		Orders []openOrderRow `json:"orders"`
		Next   json.Number    `json:"next,omitempty"` // there may be more orders below this id
		// Of all accounts: there may be more orders behind this account, or, if Next is there, of
		// the account behind it.
		After json.Number `json:"after,omitempty"`
	}
	cancelAnswer struct {
		Order   json.Number `json:"order"`
		Account string      `json:"account"`
		Pair    string      `json:"pair"`
	}
	cancelAllAnswer struct {
		Orders []json.Number `json:"orders"`
		// Incomplete is this program's own: an earlier try may have cancelled orders that are not
		// listed.
		Incomplete bool `json:"incomplete,omitempty"`
	}
)

func (a *openOrdersAnswer) complete() bool {
	return a.Orders != nil &&
		!slices.ContainsFunc(a.Orders, func(o openOrderRow) bool { return o.Waiting == nil })
}
func (a *cancelAnswer) complete() bool {
	return a.Order != "" && a.Account != "" && a.Pair != ""
}
func (a *cancelAllAnswer) complete() bool { return a.Orders != nil }

func (p *program) orderCommand() *cobra.Command {
	return group("order", "List and cancel open orders", p.orderListCommand(),
		p.orderCancelCommand(), p.orderCancelAllCommand())
}

func (p *program) orderListCommand() *cobra.Command {
	var pair string
	var limit int
	c := &cobra.Command{
		Use:   "list [ACCOUNT]",
		Short: "List open orders of an account or of all, those that wait for a trigger, too",
		Long: "Lists the open orders of an account, newest first. Without ACCOUNT it lists those " +
			"of all accounts, account by account. Orders that change meanwhile may be missing, " +
			"or be as they were.",
		Args: mayTake("ACCOUNT"),
	}
	c.Flags().StringVar(&pair, "pair", "", "only orders in this pair")
	limitFlag(c, &limit, maxList)
	c.RunE = run(func(ctx context.Context, args []string) error {
		if err := checkLimit(limit); err != nil {
			return err
		}
		in := url.Values{}
		if len(args) == 1 {
			if err := checkAccount(args[0]); err != nil {
				return err
			}
			in.Set("account", args[0])
		}
		if c.Flags().Changed("pair") {
			if err := checkPair(pair); err != nil {
				return err
			}
			in.Set("pair", pair)
		}
		a, err := p.openOrders(ctx, in, limit)
		if err != nil {
			return err
		}
		return p.print(a, a.print)
	})
	return c
}

// openOrders asks for pages of open orders until there are so many. Where more may follow, the
// answer says where they go on.
func (p *program) openOrders(ctx context.Context, in url.Values, limit int) (*openOrdersAnswer,
	error) {
	a := &openOrdersAnswer{Orders: []openOrderRow{}}
	for more := true; more && len(a.Orders) < limit; {
		if left := limit - len(a.Orders); left < pageOfOrders {
			in.Set("limit", strconv.Itoa(left))
		}
		path := "/operator/v1/orders"
		if len(in) > 0 {
			path += "?" + in.Encode()
		}
		var page openOrdersAnswer
		if err := p.ask(ctx, path, &page); err != nil {
			return nil, err
		}
		a.Orders = append(a.Orders, page.Orders...)
		a.Next, a.After = page.Next, page.After
		more = a.mayGoOn()
		for name, at := range map[string]json.Number{"before": page.Next, "after": page.After} {
			in.Del(name)
			if at != "" {
				in.Set(name, at.String())
			}
		}
	}
	return a, nil
}

// mayGoOn reports whether there may be more orders.
func (a *openOrdersAnswer) mayGoOn() bool { return a.Next != "" || a.After != "" }

// pageOfOrders is how many orders the server puts on a page by itself.
const pageOfOrders = 1000

// print writes the orders as text.
func (a *openOrdersAnswer) print(w *tabwriter.Writer) {
	fmt.Fprintln(w, "ORDER\tPAIR\tTYPE\tPRICE\tREMAINING\tOF\tTIME\tID\tINSTRUCTIONS\tACCOUNT")
	for i := range a.Orders {
		o := &a.Orders[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", o.Order, plain(o.Pair),
			plain(o.Type), o.Price, o.Remaining, o.Amount, plain(o.Time),
			orDash(o.ClientOrderID), orDash(o.instructions()), orDash(o.Account))
	}
	if a.mayGoOn() {
		fmt.Fprintln(w, "\nThere may be more: give a larger --limit, an account, or --pair.")
	}
}

// instructions describes what an order does beyond a plain limit order.
func (o *openOrderRow) instructions() string {
	var all []string
	if o.OrderType == "market" {
		all = append(all, o.OrderType)
	}
	if o.TimeInForce != "" && o.TimeInForce != "gtc" && o.TimeInForce != "gtd" {
		all = append(all, o.TimeInForce)
	}
	if o.Waiting != nil && *o.Waiting {
		all = append(all, "waits for a "+o.TriggerWhen+" to "+o.TriggerPrice.String())
	} else if o.TriggerPrice != "" {
		all = append(all, "triggered at "+o.TriggerPrice.String())
	}
	if o.OCOTrigger != "" {
		all = append(all, "or below "+o.OCOTrigger.String())
	}
	if o.PostOnly {
		all = append(all, "post-only")
	}
	if o.Display != "" {
		all = append(all, "shows "+o.Display.String())
	}
	if o.Expires != "" {
		all = append(all, "until "+o.Expires)
	}
	return strings.Join(all, ", ")
}

func (p *program) orderCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel an open order, whoever's it is",
		Args:  takes("ID"),
		RunE: run(func(ctx context.Context, args []string) error {
			id, err := readID("order", args[0])
			if err != nil {
				return err
			}
			var a cancelAnswer
			repeats, err := p.changeUntilKnown(ctx, "/operator/v1/orders/cancel",
				map[string]any{"order": id}, &a, repeatIt)
			if repeats > 0 && exitCode(err) == exitUsage {
				// The order is closed, but this does not say by whom.
				return unknown(
					"%s; an earlier try of this command may have cancelled it: `exchange "+
						"actions` shows whether one did", strings.TrimSuffix(err.Error(), "."))
			}
			if err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "The order %s of %s in %s is cancelled.\n", a.Order, a.Account,
					a.Pair)
			})
		}),
	}
}

func (p *program) orderCancelAllCommand() *cobra.Command {
	var account, pair string
	c := &cobra.Command{
		Use:   "cancel-all [ACCOUNT|PAIR]",
		Short: "Cancel all open orders of an account, of a pair, or of an account in a pair",
		Long: "Cancels all open orders of an account, or all in a pair; with both, those of the " +
			"account in the pair. " +
			"An argument such as BTC_USDT is a pair, any other an account; --account and --pair " +
			"say it without doubt.",
	}
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage(
				"%q is one argument too many for order cancel-all: name an account and a pair by "+
					"--account and --pair", args[1])
		}
		return nil
	}
	c.Flags().StringVar(&account, "account", "", "cancel orders of this account only")
	c.Flags().StringVar(&pair, "pair", "", "cancel orders in this pair only")
	c.RunE = run(func(ctx context.Context, args []string) error {
		// A flag that is given must name something: an empty one, from a script's variable that is
		// not set, would cancel far more than was meant.
		in := map[string]string{}
		if c.Flags().Changed("account") {
			in["account"] = account
		}
		if c.Flags().Changed("pair") {
			in["pair"] = pair
		}
		if len(args) == 1 {
			kind, err := accountOrPair(args[0])
			if err != nil {
				return err
			}
			if _, given := in[kind]; given {
				return usage("order cancel-all takes one %s: %q and --%s name two", kind, args[0],
					kind)
			}
			in[kind] = args[0]
		}
		if err := checkScope(in); err != nil {
			return err
		}
		return p.cancelAll(ctx, in)
	})
	return c
}

// accountOrPair says what a name is of.
func accountOrPair(name string) (kind string, err error) {
	switch isPair := validPair.MatchString(name); {
	case isPair && validName.MatchString(name): // only digits, such as 1_2
		return "", usage("%q can be an account or a pair: write --account or --pair before it",
			name)
	case isPair:
		return "pair", nil
	}
	return "account", nil
}

// checkScope checks the account and the pair that are there.
func checkScope(in map[string]string) error {
	if len(in) == 0 {
		return usage("order cancel-all needs an account or a pair")
	}
	if name, given := in["account"]; given {
		if err := checkAccount(name); err != nil {
			return err
		}
	}
	if name, given := in["pair"]; given {
		return checkPair(name)
	}
	return nil
}

func (p *program) cancelAll(ctx context.Context, in any) error {
	var a cancelAllAnswer
	repeats, err := p.changeUntilKnown(ctx, "/operator/v1/orders/cancel-all", in, &a, repeatIt)
	if err != nil {
		return err
	}
	a.Incomplete = repeats > 0
	return p.print(&a, func(w *tabwriter.Writer) {
		for _, id := range a.Orders {
			fmt.Fprintln(w, id)
		}
		switch n := len(a.Orders); n {
		case 0:
			fmt.Fprintln(w, "No order was open.")
		case 1:
			fmt.Fprintln(w, "1 order is cancelled.")
		default:
			fmt.Fprintf(w, "%d orders are cancelled.\n", n)
		}
		if a.Incomplete {
			fmt.Fprintln(w,
				"Earlier tries of this command may have cancelled more: `exchange actions` shows "+
					"them.")
		}
	})
}
