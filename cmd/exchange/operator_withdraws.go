package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's commands about withdrawals.

type (
	withdrawRow struct {
		Withdraw json.Number `json:"withdraw"`
		Account  string      `json:"account"`
		Currency string      `json:"currency"`
		Amount   json.Number `json:"amount"`
		Status   json.Number `json:"status"`
		State    string      `json:"state"` // the status in a word
		Address  string      `json:"address"`
		Details  string      `json:"details,omitempty"`
		Time     string      `json:"time"`             // when it was asked for
		Frozen   bool        `json:"frozen,omitempty"` // its account is
	}
	withdrawAnswer struct {
		withdrawRow
		Repeated bool `json:"repeated,omitempty"`
	}
	withdrawsAnswer struct {
		Withdraws []withdrawRow `json:"withdraws"`
	}
)

// holder is the account, marked if it is frozen.
func (r *withdrawRow) holder() string {
	if r.Frozen {
		return r.Account + " (frozen)"
	}
	return r.Account
}

func (a *withdrawAnswer) complete() bool {
	return a.Withdraw != "" && a.Account != "" && a.Amount != "" && a.Status != "" && a.State != ""
}
func (a *withdrawsAnswer) complete() bool { return a.Withdraws != nil }

func (p *program) withdrawCommand() *cobra.Command {
	return group("withdraw", "List, approve and refuse withdraws", p.withdrawListCommand(),
		p.withdrawApproveCommand(), p.withdrawRefuseCommand())
}

func (p *program) withdrawListCommand() *cobra.Command {
	var account string
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List the pending withdraws of all accounts, or all of one account",
		Long: "Lists the withdraws that are pending, of all accounts, newest first. With " +
			"--account it lists all of that account: " +
			"the pending ones, and then those that came to their end.",
		Args: takes(),
	}
	c.Flags().StringVar(&account, "account", "",
		"list all withdraws of this account (default the pending ones of all accounts)")
	limitFlag(c, &limit, 1000)
	c.RunE = run(func(ctx context.Context, _ []string) error {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		var err error
		if c.Flags().Changed("account") {
			query.Set("account", account)
			err = checkAccount(account)
		}
		if err := cmp.Or(err, checkLimit(limit)); err != nil {
			return err
		}
		var a withdrawsAnswer
		if err := p.ask(ctx, "/operator/v1/withdraws?"+query.Encode(), &a); err != nil {
			return err
		}
		return p.print(&a, func(w *tabwriter.Writer) {
			writeWithdraws(w, a.Withdraws)
			if len(a.Withdraws) >= limit && limit < maxList {
				fmt.Fprintln(w, "\nThere may be more: give a larger --limit.")
			}
		})
	})
	return c
}

func writeWithdraws(w io.Writer, list []withdrawRow) {
	fmt.Fprintln(w, "WITHDRAW\tTIME\tACCOUNT\tAMOUNT\tSTATE\tADDRESS\tDETAILS")
	for _, x := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s %s\t%s\t%s\t%s\n", x.Withdraw, x.Time, x.holder(), x.Amount,
			x.Currency, x.State, orDash(x.Address), orDash(x.Details))
	}
}

func (p *program) withdrawApproveCommand() *cobra.Command {
	var despiteFreeze bool
	c := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve a withdraw that its owner has confirmed: its money leaves the account",
		Long: "Approves a withdraw that its owner has confirmed: its money leaves the account. " +
			"The withdraw of a frozen account " +
			"is refused, unless --despite-freeze is given: the log and `exchange actions` have " +
			"the operator's name then.",
		Args: takes("ID"),
	}
	c.Flags().BoolVar(&despiteFreeze, "despite-freeze", false,
		"approve it though its account is frozen; that is logged")
	c.RunE = run(func(ctx context.Context, args []string) error {
		id, err := readID("withdraw", args[0])
		if err != nil {
			return err
		}
		in := map[string]any{"withdraw": id}
		if despiteFreeze {
			in["despite_freeze"] = true
		}
		return p.settleWithdraw(ctx, "/operator/v1/withdraws/approve", in)
	})
	return c
}

func (p *program) withdrawRefuseCommand() *cobra.Command {
	var details string
	c := &cobra.Command{
		Use:   "refuse ID --details TEXT",
		Short: "Refuse a withdraw: its money is the account's to use again",
		Long: "Refuses a withdraw, whether its owner has confirmed it or not: its money is the " +
			"account's to use again, " +
			"and its owner is told why.",
		Args: takes("ID"),
	}
	c.Flags().StringVar(&details, "details", "", "why; the account's owner is told (required)")
	c.RunE = run(func(ctx context.Context, args []string) error {
		id, err := readID("withdraw", args[0])
		if err == nil && !c.Flags().Changed("details") {
			err = usage("withdraw refuse needs --details TEXT: the account's owner is told why")
		}
		if err := cmp.Or(err, checkText("--details", details, maxDetails)); err != nil {
			return err
		}
		return p.settleWithdraw(ctx, "/operator/v1/withdraws/refuse",
			map[string]any{"withdraw": id, "details": details})
	})
	return c
}

// settleWithdraw approves or refuses, which the server does once however often it is asked.
func (p *program) settleWithdraw(ctx context.Context, path string, in any) error {
	var a withdrawAnswer
	repeats, err := p.changeUntilKnown(ctx, path, in, &a, repeatIt)
	if err != nil {
		return err
	}
	return p.print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "withdraw\t%s\naccount\t%s\namount\t%s %s\naddress\t%s\nstate\t%s\n",
			a.Withdraw, a.holder(), a.Amount, a.Currency, orDash(a.Address), a.State)
		if a.Details != "" {
			fmt.Fprintf(w, "details\t%s\n", plain(a.Details))
		}
		already(w, a.Repeated, repeats)
	})
}
