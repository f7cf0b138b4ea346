package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's commands about accounts.

type (
	accountAnswer struct {
		Account string      `json:"account"`
		ID      json.Number `json:"id"`
		Email   string      `json:"email"`
	}
	accountRow struct {
		accountAnswer
		Frozen *bool  `json:"frozen,omitempty"` // nil: the server is older and does not tell
		Held   string `json:"held_until,omitempty"`
		Closed string `json:"closed,omitempty"` // when
	}
	accountsAnswer struct {
		Accounts []accountRow `json:"accounts"`
		Next     json.Number  `json:"next,omitempty"` // there may be more accounts after this id
		*totalsAnswer
	}
	// totalsAnswer has the sums over all accounts, after all records up to Sequence.
	totalsAnswer struct {
		Sequence json.Number  `json:"sequence"`
		Totals   []auditTotal `json:"totals"`
	}
	emailAnswer struct {
		accountAnswer
		Before *string `json:"before"`
		Held   string  `json:"held_until,omitempty"`
		// Repeated: it was so already, and no hold began
		Repeated bool `json:"repeated,omitempty"`
	}
	endAnswer struct {
		Account string      `json:"account"`
		ID      json.Number `json:"id"`
		Closed  *bool       `json:"closed"`
		// Repeated: it was so already
		Repeated bool `json:"repeated,omitempty"`
	}
	freezeAnswer struct {
		Account  string `json:"account"`
		On       *bool  `json:"on"`
		Repeated bool   `json:"repeated,omitempty"`
	}
	// shownAccount is an account at one moment: after all records up to Sequence.
	shownAccount struct {
		Account     string          `json:"account"`
		ID          json.Number     `json:"id"`
		Email       string          `json:"email"`
		Frozen      *bool           `json:"frozen"`
		Held        string          `json:"held_until,omitempty"`
		Closed      string          `json:"closed,omitempty"` // when
		Sequence    json.Number     `json:"sequence"`
		Holdings    []holdingRow    `json:"holdings"`
		Open        json.Number     `json:"open_orders"`   // how many there are
		Newest      []orderRow      `json:"newest_orders"` // the newest of them
		Withdrawals []withdrawalRow `json:"pending_withdraws"`
	}
	holdingRow struct {
		Currency  string      `json:"currency"`
		Balance   json.Number `json:"balance"`
		Reserve   json.Number `json:"reserve"`
		Available json.Number `json:"available"`
	}
	orderRow struct {
		Order     json.Number `json:"order"`
		Pair      string      `json:"pair"`
		Type      string      `json:"type"`
		Price     json.Number `json:"price"`
		Amount    json.Number `json:"amount"`
		Remaining json.Number `json:"remaining"`
		Time      string      `json:"time"`
	}
)

func (a *accountAnswer) complete() bool  { return a.Account != "" && a.ID != "" }
func (a *accountsAnswer) complete() bool { return a.Accounts != nil }
func (a *totalsAnswer) complete() bool   { return a.Sequence != "" && a.Totals != nil }
func (a *emailAnswer) complete() bool {
	return a.accountAnswer.complete() && a.Before != nil && (a.Held != "" || a.Repeated)
}
func (a *endAnswer) complete() bool {
	return a.Account != "" && a.ID != "" && a.Closed != nil && *a.Closed
}
func (a *freezeAnswer) complete() bool { return a.Account != "" && a.On != nil }
func (a *shownAccount) complete() bool {
	return a.Account != "" && a.ID != "" && a.Frozen != nil && a.Sequence != "" && a.Open != "" &&
		a.Holdings != nil && a.Newest != nil && a.Withdrawals != nil
}

func (p *program) accountCommand() *cobra.Command {
	return group("account", "Open, list, show, freeze and close accounts",
		p.accountCreateCommand(), p.accountListCommand(), p.accountShowCommand(),
		p.accountEmailCommand(), p.accountCloseCommand(),
		p.freezeCommand("freeze",
			"Keep an account's keys from doing anything, and its withdraws from being approved; "+
				"its open orders stay", true),
		p.freezeCommand("unfreeze", "Let an account's keys work again", false))
}

func (p *program) accountCreateCommand() *cobra.Command {
	var email string
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Open an account",
		Args:  takes("NAME"),
		RunE: run(func(ctx context.Context, args []string) error {
			if err := cmp.Or(checkAccount(args[0]), checkEmail(email)); err != nil {
				return err
			}
			var a accountAnswer
			in := map[string]string{"name": args[0], "email": email}
			if err := p.change(ctx, "/operator/v1/accounts", in, &a,
				"`exchange account list` shows whether the account was opened"); err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "account\t%s\nid\t%s\n", a.Account, a.ID)
				if a.Email != "" {
					fmt.Fprintf(w, "email\t%s\n", plain(a.Email))
				}
			})
		}),
	}
	c.Flags().StringVar(&email, "email", "", "address for mail about withdraws")
	return c
}

func (p *program) accountEmailCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "email NAME ADDRESS",
		Short: "Give an account another e-mail address, and hold its withdraws for 48 hours",
		Args:  takes("NAME", "ADDRESS"),
		RunE: run(func(ctx context.Context, args []string) error {
			err := cmp.Or(checkAccount(args[0]), checkEmail(args[1]))
			if err == nil && args[1] == "" {
				err = usage("an account that has an address cannot lose it: name the new one")
			}
			if err != nil {
				return err
			}
			var a emailAnswer
			in := map[string]string{"account": args[0], "email": args[1]}
			repeats, err := p.changeUntilKnown(ctx, "/operator/v1/accounts/email", in, &a, repeatIt)
			if err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "account\t%s\nemail\t%s\nbefore\t%s\nwithdraws held until\t%s\n",
					a.Account, plain(a.Email), orDash(*a.Before), orDash(a.Held))
				already(w, a.Repeated, repeats)
			})
		}),
	}
}

func (p *program) accountCloseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close NAME",
		Short: "End an empty account and its keys for good; its name stays taken",
		Long: "Ends an account that has no money, no open orders and no pending withdraws, and " +
			"all its keys. There is no way back, and no other account gets its name. `adjust` " +
			"takes out dust that is too little to withdraw.",
		Args: takes("NAME"),
		RunE: run(func(ctx context.Context, args []string) error {
			if err := checkAccount(args[0]); err != nil {
				return err
			}
			var a endAnswer
			repeats, err := p.changeUntilKnown(ctx, "/operator/v1/accounts/close",
				map[string]string{"account": args[0]}, &a, repeatIt)
			if err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "The account %s is closed, and its keys have ended.\n", a.Account)
				already(w, a.Repeated, repeats)
			})
		}),
	}
}

func (p *program) accountListCommand() *cobra.Command {
	var frozen, totals bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List all accounts",
		Args:  takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			a, err := p.accounts(ctx, frozen)
			if err == nil && totals {
				a.totalsAnswer = new(totalsAnswer)
				err = p.ask(ctx, "/operator/v1/totals", a.totalsAnswer)
			}
			if err != nil {
				return err
			}
			return p.print(a, a.print)
		}),
	}
	c.Flags().BoolVar(&frozen, "frozen", false, "only those that are frozen, and not closed")
	c.Flags().BoolVar(&totals, "totals", false,
		"add up what all accounts have of each currency, frozen or not, at one moment")
	return c
}

// accounts asks for all pages of accounts.
func (p *program) accounts(ctx context.Context, frozen bool) (*accountsAnswer, error) {
	a, query := &accountsAnswer{Accounts: []accountRow{}}, url.Values{}
	if frozen {
		query.Set("frozen", "1")
	}
	for more := true; more; {
		path := "/operator/v1/accounts"
		if len(query) > 0 {
			path += "?" + query.Encode()
		}
		var page accountsAnswer
		if err := p.ask(ctx, path, &page); err != nil {
			return nil, err
		}
		a.Accounts = append(a.Accounts, page.Accounts...)
		more = page.Next != ""
		query.Set("after", page.Next.String())
	}
	return a, nil
}

// print writes the accounts as text.
func (a *accountsAnswer) print(w *tabwriter.Writer) {
	fmt.Fprintln(w, "ID\tACCOUNT\tEMAIL\tFROZEN")
	for _, x := range a.Accounts {
		frozen := "unknown"
		if x.Frozen != nil {
			frozen = either(*x.Frozen, "frozen", "-")
		}
		switch {
		case x.Closed != "":
			frozen = "closed"
		case x.Held != "" && frozen == "-":
			frozen = "withdraws held until " + x.Held
		case x.Held != "":
			frozen += ", withdraws held until " + x.Held
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.ID, x.Account, orDash(x.Email), frozen)
	}
	if a.totalsAnswer == nil {
		return
	}
	fmt.Fprintf(w, "\nAll accounts together, as of sequence %s:\n", a.Sequence)
	fmt.Fprintln(w, "CURRENCY\tBALANCE\tRESERVE")
	for _, t := range a.Totals {
		fmt.Fprintf(w, "%s\t%s\t%s\n", plain(t.Currency), t.Balances, t.Reserved)
	}
}

func (p *program) freezeCommand(name, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Use:   name + " NAME",
		Short: short,
		Args:  takes("NAME"),
		RunE: run(func(ctx context.Context, args []string) error {
			if err := checkAccount(args[0]); err != nil {
				return err
			}
			var a freezeAnswer
			in := map[string]any{"account": args[0], "on": on}
			repeats, err := p.changeUntilKnown(ctx, "/operator/v1/accounts/freeze", in, &a,
				repeatIt)
			if err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "The account %s is %s.\n", a.Account,
					either(*a.On, "frozen", "not frozen"))
				already(w, a.Repeated, repeats)
			})
		}),
	}
}

func (p *program) accountShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME",
		Short: "Show an account at one moment: its money, its newest open orders, its pending " +
			"withdraws",
		Args: takes("NAME"),
		RunE: run(func(ctx context.Context, args []string) error {
			if err := checkAccount(args[0]); err != nil {
				return err
			}
			var a shownAccount
			if err := p.ask(ctx, "/operator/v1/account?"+url.Values{"name": {args[0]}}.Encode(),
				&a); err != nil {
				return err
			}
			return p.print(&a, a.write)
		}),
	}
}

func (a *shownAccount) write(w *tabwriter.Writer) {
	fmt.Fprintf(w, "account\t%s\nid\t%s\nemail\t%s\nfrozen\t%s\n", a.Account, a.ID, orDash(a.Email),
		either(*a.Frozen, "yes", "no"))
	if a.Held != "" && a.Closed == "" {
		fmt.Fprintf(w, "withdraws held until\t%s\n", a.Held)
	}
	if a.Closed != "" {
		fmt.Fprintf(w, "closed\t%s\n", a.Closed)
	}
	fmt.Fprintf(w, "open orders\t%s\npending withdraws\t%d\nas of sequence\t%s\n", a.Open,
		len(a.Withdrawals), a.Sequence)
	if len(a.Holdings) > 0 {
		fmt.Fprintln(w, "\nCURRENCY\tBALANCE\tRESERVE\tAVAILABLE")
		for _, x := range a.Holdings {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Currency, x.Balance, x.Reserve, x.Available)
		}
	}
	if len(a.Newest) > 0 {
		fmt.Fprintln(w, "\nORDER\tPAIR\tTYPE\tPRICE\tAMOUNT\tREMAINING\tTIME")
		for _, x := range a.Newest {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Order, x.Pair, x.Type, x.Price,
				x.Amount, x.Remaining, x.Time)
		}
		if a.Open.String() != fmt.Sprint(len(a.Newest)) {
			fmt.Fprintf(w, "\nThese are the newest %d of %s open orders.\n", len(a.Newest), a.Open)
		}
	}
	if len(a.Withdrawals) > 0 {
		fmt.Fprintln(w)
		writeWithdrawals(w, a.Withdrawals)
	}
}
