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
	withdrawalRow struct {
		Withdrawal json.Number `json:"withdraw"`
		Account    string      `json:"account"`
		Currency   string      `json:"currency"`
		Amount     json.Number `json:"amount"`
		Status     json.Number `json:"status"`
		State      string      `json:"state"` // the status in a word
		Address    string      `json:"address"`
		Details    string      `json:"details,omitempty"`
		Time       string      `json:"time"`             // when it was asked for
		Frozen     bool        `json:"frozen,omitempty"` // its account is
	}
	withdrawalAnswer struct {
		withdrawalRow
		Repeated bool `json:"repeated,omitempty"`
	}
	withdrawalsAnswer struct {
		Withdrawals []withdrawalRow `json:"withdraws"`
	}
)

// holder returns the account's name, marked if the account is frozen.
func (r *withdrawalRow) holder() string {
	if r.Frozen {
		return r.Account + " (frozen)"
	}
	return r.Account
}

func (a *withdrawalAnswer) complete() bool {
	return a.Withdrawal != "" && a.Account != "" && a.Amount != "" && a.Status != "" &&
		a.State != ""
}
func (a *withdrawalsAnswer) complete() bool { return a.Withdrawals != nil }

func (p *program) withdrawalCommand() *cobra.Command {
	return group("withdraw", "List, approve and refuse withdraws", p.withdrawalListCommand(),
		p.withdrawalApproveCommand(), p.withdrawalRefuseCommand())
}

func (p *program) withdrawalListCommand() *cobra.Command {
	var account string
	var limit int
	c := &cobra.Command{
		Use:   "list [ACCOUNT]",
		Short: "List the pending withdraws of all accounts, or all of one account",
		Long: "Lists the withdraws that are pending, of all accounts, newest first. With " +
			"ACCOUNT, or --account, it lists all of that account: " +
			"the pending ones, and then those that came to their end. One that is new waits for " +
			"the code that was mailed to its owner; one that is verified waits for you.",
		Args: mayTake("ACCOUNT"),
	}
	c.Flags().StringVar(&account, "account", "",
		"list all withdraws of this account (default the pending ones of all accounts)")
	limitFlag(c, &limit, 1000)
	c.RunE = run(func(ctx context.Context, args []string) error {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		var err error
		isNamed := c.Flags().Changed("account")
		if len(args) == 1 {
			if isNamed {
				return usage("withdraw list has the account twice: leave out --account")
			}
			account, isNamed = args[0], true
		}
		if isNamed {
			query.Set("account", account)
			err = checkAccount(account)
		}
		if err := cmp.Or(err, checkLimit(limit)); err != nil {
			return err
		}
		var a withdrawalsAnswer
		if err := p.ask(ctx, "/operator/v1/withdraws?"+query.Encode(), &a); err != nil {
			return err
		}
		return p.print(&a, func(w *tabwriter.Writer) {
			writeWithdrawals(w, a.Withdrawals)
			if len(a.Withdrawals) >= limit && limit < maxList {
				fmt.Fprintln(w, "\nThere may be more: give a larger --limit.")
			}
		})
	})
	return c
}

func writeWithdrawals(w io.Writer, list []withdrawalRow) {
	fmt.Fprintln(w, "WITHDRAW\tTIME\tACCOUNT\tAMOUNT\tSTATE\tADDRESS\tDETAILS")
	for _, x := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s %s\t%s\t%s\t%s\n", x.Withdrawal, x.Time, x.holder(),
			x.Amount,
			x.Currency, x.State, orDash(x.Address), orDash(x.Details))
	}
}

func (p *program) withdrawalApproveCommand() *cobra.Command {
	var despiteFreeze bool
	var reference string
	c := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve a withdraw that its owner has confirmed: its money leaves the account",
		Long: "Approves a withdraw that its owner has confirmed: its money leaves the account. " +
			"The withdraw of a frozen account " +
			"is refused, unless --despite-freeze is given: the log and `exchange actions` have " +
			"the operator's name then. --reference names the transaction that pays it: the " +
			"account's owner sees it as details, and the export has it.",
		Args: takes("ID"),
	}
	c.Flags().StringVar(&reference, "reference", "",
		"the transaction that pays it; the account's owner is told")
	c.Flags().BoolVar(&despiteFreeze, "despite-freeze", false,
		"approve it though its account is frozen; that is logged")
	c.RunE = run(func(ctx context.Context, args []string) error {
		id, err := readID("withdraw", args[0])
		if err == nil && c.Flags().Changed("reference") {
			err = checkText("--reference", reference, maxDetails)
		}
		if err != nil {
			return err
		}
		in := map[string]any{"withdraw": id}
		if reference != "" {
			in["reference"] = reference
		}
		if despiteFreeze {
			in["despite_freeze"] = true
		}
		return p.settleWithdrawal(ctx, "/operator/v1/withdraws/approve", in)
	})
	return c
}

func (p *program) withdrawalRefuseCommand() *cobra.Command {
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
		return p.settleWithdrawal(ctx, "/operator/v1/withdraws/refuse",
			map[string]any{"withdraw": id, "details": details})
	})
	return c
}

// settleWithdrawal approves or refuses, which the server does once however often it is asked.
func (p *program) settleWithdrawal(ctx context.Context, path string, in any) error {
	var a withdrawalAnswer
	repeats, err := p.changeUntilKnown(ctx, path, in, &a, repeatIt)
	if err != nil {
		return err
	}
	return p.print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "withdraw\t%s\naccount\t%s\namount\t%s %s\naddress\t%s\nstate\t%s\n",
			a.Withdrawal, a.holder(), a.Amount, a.Currency, orDash(a.Address), a.State)
		if a.Details != "" {
			fmt.Fprintf(w, "details\t%s\n", plain(a.Details))
		}
		already(w, a.Repeated, repeats)
	})
}
