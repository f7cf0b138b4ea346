package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's command that has the books compared.

type (
	auditReport struct {
		Sequence    json.Number  `json:"sequence"`
		From        json.Number  `json:"replayed_from"`
		Records     json.Number  `json:"records"`
		Accounts    json.Number  `json:"accounts"`
		OpenOrders  json.Number  `json:"open_orders"`
		Withdrawals json.Number  `json:"pending_withdraws"`
		Wallets     json.Number  `json:"projections_compared"`
		Changed     json.Number  `json:"projections_changed_meanwhile"`
		Rows        json.Number  `json:"rows_compared"`
		Trimmed     json.Number  `json:"rows_trimmed"`
		PausedMs    json.Number  `json:"paused_ms"`
		Totals      []auditTotal `json:"totals"`
		Differences []string     `json:"differences"`
	}
	auditTotal struct {
		Currency  string      `json:"currency"`
		Deposited json.Number `json:"deposited"`
		Withdrawn json.Number `json:"withdrawn"`
		Adjusted  json.Number `json:"adjusted"`
		Balances  json.Number `json:"balances"`
		Reserved  json.Number `json:"reserved"`
	}
)

func (a *auditReport) complete() bool {
	return a.Sequence != "" && a.From != "" && a.Records != "" && a.Totals != nil &&
		a.Differences != nil
}

const auditHelp = `Derives every balance, reserve, open order and pending withdraw anew, from the oldest kept snapshot and the
journal after it, and compares them with what the running exchange has: its committed state, its wallets
and books at work, and in the store the wallets, nonces, deposits and withdraws, and every row of the history
that the replayed records gave rise to, as far as it is kept. Per currency, all deposits less all withdraws and
adjustments must be all balances. Commands of clients wait for the moment that the wallets and books are looked at; all else goes on.

With --archive it begins at the very first record instead, with what ` +
	"`exchange serve --archive`" + ` kept in DIR; or, if that
archive was begun late or after a restore, at the state that it begins with. Each part must be authentic: written under
the server's secret key or one that was retired from its file, by the same exchange, behind the part before it.
--without-authentication takes the parts as they are: a writer of the folder decides what is compared.

Exits with 70 if there is any difference.`

func (p *program) auditCommand() *cobra.Command {
	var archive string
	var without bool
	c := &cobra.Command{
		Use:   "audit [--archive DIR]",
		Short: "Derive all balances and orders anew and compare them with the running exchange",
		Long:  auditHelp,
		Args:  takes(),
	}
	c.Flags().StringVar(&archive, "archive", "",
		"begin where the archive begins that the server keeps in this folder, with the very "+
			"first record if it has that")
	c.Flags().BoolVar(&without, "without-authentication", false,
		"take the archive's parts as they are, without a proof that the exchange wrote them")
	c.RunE = run(func(ctx context.Context, _ []string) error {
		in := map[string]any{}
		if without && !c.Flags().Changed("archive") {
			return usage("--without-authentication is about an archive: name it with --archive")
		}
		if c.Flags().Changed("archive") {
			if archive == "" {
				return usage("--archive is empty: name the folder of `exchange serve --archive`")
			}
			dir, err := filepath.Abs(archive)
			if err != nil {
				return err
			}
			in["archive"] = dir
		}
		if without {
			in["without_authentication"] = true
			fmt.Fprintf(p.stderr,
				"exchange: WITHOUT AUTHENTICATION: nothing proves that the parts in %s were "+
					"written by this exchange, or are all there\n", archive)
		}
		return p.audit(ctx, in)
	})
	return c
}

func (p *program) audit(ctx context.Context, in map[string]any) error {
	g := p.progress()
	var a auditReport
	err := p.lines(ctx, "/operator/v1/audit", in, func(line []byte) error {
		var at struct{ At, Of uint64 }
		if err := json.Unmarshal(line, &at); err == nil && at.Of > 0 {
			g.show("replayed %s of %s records (%d %%)", thousands(at.At), thousands(at.Of),
				100*at.At/at.Of)
		}
		return nil
	}, &a)
	g.done()
	if err != nil {
		return err
	}
	if err := p.print(&a, func(w *tabwriter.Writer) {
		a.write(w, in["archive"] != nil)
	}); err != nil {
		return err
	}
	switch n := len(a.Differences); n {
	case 0:
		return nil
	case 1:
		return withExit(exitBroken, fmt.Errorf("the books do not balance: there is a difference"))
	default:
		return withExit(exitBroken, fmt.Errorf("the books do not balance: there are %d differences",
			n))
	}
}

func (a *auditReport) write(w *tabwriter.Writer, archived bool) {
	from := "the oldest kept snapshot, at sequence " + a.From.String()
	if a.From == "0" {
		from = "the very first record" + either(archived, ", by the archive", "")
	} else if archived {
		from = "the state that the archive begins with, at sequence " + a.From.String()
	}
	fmt.Fprintf(w, "sequence\t%s\nreplayed from\t%s\nrecords replayed\t%s\n", a.Sequence, from,
		a.Records)
	fmt.Fprintf(w, "accounts\t%s\nopen orders\t%s\npending withdraws\t%s\n", a.Accounts,
		a.OpenOrders, a.Withdrawals)
	fmt.Fprintf(w,
		"stored wallets\t%s compared, %s had changed since\nstored history\t%s rows compared, %s "+
			"are not kept any more\ncommands paused\t%s ms\n",
		a.Wallets, a.Changed, a.Rows, a.Trimmed, a.PausedMs)
	fmt.Fprintln(w, "\nCURRENCY\tDEPOSITED\tWITHDRAWN\tADJUSTED\tBALANCES\tRESERVED")
	for _, t := range a.Totals {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Currency, t.Deposited, t.Withdrawn,
			t.Adjusted, t.Balances, t.Reserved)
	}
	if len(a.Differences) == 0 {
		fmt.Fprintln(w, "\nThe books balance: no difference was found.")
		return
	}
	fmt.Fprintln(w, "\nDifferences:")
	for _, d := range a.Differences {
		fmt.Fprintf(w, "  %s\n", plain(d))
	}
}
