package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's command that lists every change of an account's balances.

// A statementLine is one change. A balance from before the history's begin is brought forward and
// has no time.
type statementLine struct {
	Time     string      `json:"time"`
	Currency string      `json:"currency"`
	Change   json.Number `json:"change"`
	Balance  json.Number `json:"balance"`
	Cause    string      `json:"cause"`
	ID       json.Number `json:"id"`
	Pair     string      `json:"pair"`
	Reason   string      `json:"reason"`
}

func (l *statementLine) complete() bool {
	return l.Currency != "" && l.Change != "" && l.Balance != "" && l.Cause != ""
}

// statementBlock is the number of lines that are brought into columns at once, so that a long list
// begins to appear and need not fit into memory.
const statementBlock = 5000

func (p *program) statementCommand() *cobra.Command {
	var currency string
	c := &cobra.Command{
		Use:   "statement ACCOUNT",
		Short: "List every change of an account's balances, newest first",
		Long: "Lists every change of an account's balances, newest first, with the balance after " +
			"it and what caused it: a deposit, " +
			"a withdraw, an adjustment, a trade, a fee, or, of the account that fees go to, " +
			"fee income. It goes back as far as the history reaches; " +
			"what was there before is brought forward.\n\nWith --json each line is an object.",
		Args: takes("ACCOUNT"),
	}
	c.Flags().StringVar(&currency, "currency", "", "list changes of this currency only")
	c.RunE = run(func(ctx context.Context, args []string) error {
		if err := checkAccount(args[0]); err != nil {
			return err
		}
		if c.Flags().Changed("currency") {
			if err := checkCurrency(currency); err != nil {
				return err
			}
		}
		return p.statement(ctx, args[0], currency)
	})
	return c
}

func (p *program) statement(ctx context.Context, account, currency string) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	head, n := "TIME\tCURRENCY\tCHANGE\tBALANCE\tCAUSE\tID\tPAIR\n", 0
	var end int
	query := url.Values{"account": {account}}
	if currency != "" {
		query.Set("currency", currency)
	}
	err := p.lines(ctx, "/operator/v1/statement?"+query.Encode(), nil, func(line []byte) error {
		var l statementLine
		if err := json.Unmarshal(line, &l); err != nil || !l.complete() {
			return notOfListener(line)
		}
		if n++; p.json {
			_, err := fmt.Fprintf(p.stdout, "%s\n", line)
			return err
		}
		fmt.Fprint(w, head)
		head = ""
		id := l.ID.String()
		if l.Time == "" {
			id = "-"
		}
		cause := l.Cause
		if l.Reason != "" {
			cause += ": " + l.Reason
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", orDash(l.Time), plain(l.Currency), l.Change,
			l.Balance, plain(cause), id, orDash(l.Pair))
		if n%statementBlock == 0 {
			return w.Flush()
		}
		return nil
	}, &end)
	if err == nil && !p.json {
		fmt.Fprint(w, head)
	}
	if flushed := w.Flush(); err == nil {
		err = flushed
	}
	if err == nil && end != n {
		err = withExit(exitUnavailable,
			fmt.Errorf("the statement has %d lines, the exchange speaks of %d", n, end))
	}
	return err
}
