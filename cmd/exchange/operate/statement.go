package operate

import (
	"context"
	"fmt"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/gateway/operator"
)

// The operator's command that lists every change of an account's balances.

// statementBlock is the number of lines formatted into columns at once, so that a long list begins
// to appear and need not fit into memory.
const statementBlock = 5000

func (p *Commands) statementCommand() *cobra.Command {
	var currency string
	c := &cobra.Command{
		Use:   "statement ACCOUNT",
		Short: "List every change of an account's balances, newest first",
		Long: "Lists every change of an account's balances, newest first, with the balance after " +
			"it and what caused it: a deposit, " +
			"a withdrawal, an adjustment, a trade, a fee, or, of the account that fees go to, " +
			"fee income. It goes back as far as the history reaches; " +
			"what was there before is brought forward.\n\nWith --json each line is an object.",
		Args: cli.Takes("ACCOUNT"),
	}
	c.Flags().StringVar(&currency, "currency", "", "list changes of this currency only")
	c.RunE = cli.Run(func(ctx context.Context, args []string) error {
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

func (p *Commands) statement(ctx context.Context, account, currency string) error {
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	of, end, n := typeOf[operator.StatementLine](), 0, 0
	query := url.Values{"account": {account}}
	if currency != "" {
		query.Set("currency", currency)
	}
	columns := columnsOf(of)
	err := p.lines(ctx, "/operator/v1/statement?"+query.Encode(), nil, func(line []byte) error {
		row, _ := parseMembers(line)
		if !complete(of, line) {
			return notOfListener(line)
		}
		if n++; p.JSON {
			_, err := fmt.Fprintf(p.Stdout, "%s\n", line)
			return err
		}
		if n == 1 {
			writeHeader(w, columns)
		}
		writeRow(w, columns, row)
		if n%statementBlock == 0 {
			return w.Flush()
		}
		return nil
	}, typeOf[int](), &end)
	if err == nil && !p.JSON && n == 0 {
		writeHeader(w, columns)
	}
	if flushed := w.Flush(); err == nil {
		err = flushed
	}
	if err == nil && end != n {
		err = cli.WithExit(cli.ExitUnavailable,
			fmt.Errorf("the statement has %d lines, the exchange reports %d", n, end))
	}
	return err
}
