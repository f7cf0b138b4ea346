package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway/operator"
)

// The operator's command that starts an audit of the books.

const auditHelp = `Recomputes every balance, reserve, open order and pending withdrawal from the oldest kept snapshot and
the journal after it. It compares them with the running exchange: its committed state, its working
wallets and books, and in the store the wallets, nonces, deposits and withdrawals, and every kept row
of the history that the replayed records produced. Per currency, all deposits less all withdrawals and
adjustments must be the sum of all balances. Clients' commands pause while the wallets and books are
compared; everything else continues.

With --archive it starts at the first record instead, from the archive that
` +
	"`exchange serve --archive`" + ` keeps in DIR. If that archive was begun late or after a restore, it
starts at the archive's first state. Each part must be authentic: written by the same exchange under
the server's secret key or one that was retired from its file, in sequence after the part before it.
--without-authentication accepts the parts unchecked: a writer of the folder decides what is
compared.

Exits with 70 if there is any difference.`

func (p *Commands) auditCommand() *cobra.Command {
	var archive string
	var without bool
	c := &cobra.Command{
		Use:   "audit [--archive DIR]",
		Short: "Recompute all balances and orders and compare them with the running exchange",
		Long:  auditHelp,
		Args:  cli.Takes(),
	}
	c.Flags().StringVar(&archive, "archive", "",
		"start at the beginning of the server's archive in this folder, the "+
			"first record if it has that")
	c.Flags().BoolVar(&without, "without-authentication", false,
		"accept the archive's parts unchecked, without proof that the exchange wrote them")
	c.RunE = cli.Run(func(ctx context.Context, _ []string) error {
		var in operator.AuditRequest
		if without && !c.Flags().Changed("archive") {
			return cli.Usage("--without-authentication needs --archive")
		}
		if c.Flags().Changed("archive") {
			if archive == "" {
				return cli.Usage(
					"--archive is empty: name the folder of `exchange serve --archive`")
			}
			dir, err := filepath.Abs(archive)
			if err != nil {
				return err
			}
			in.Archive = dir
		}
		if without {
			in.Without = true
			fmt.Fprintf(p.Stderr,
				"exchange: WITHOUT AUTHENTICATION: nothing proves that the parts in %s were "+
					"written by this exchange, or are all there\n", archive)
		}
		return p.audit(ctx, &in)
	})
	return c
}

func (p *Commands) audit(ctx context.Context, in *operator.AuditRequest) error {
	g := p.Progress()
	var end json.RawMessage
	err := p.lines(ctx, "/operator/v1/audit", in, func(line []byte) error {
		var at operator.ProgressLine
		if err := json.Unmarshal(line, &at); err == nil && at.Of > 0 {
			g.Show("replayed %s of %s records (%d %%)", config.Thousands(at.At),
				config.Thousands(at.Of), 100*at.At/at.Of)
		}
		return nil
	}, typeOf[operator.AuditAnswer](), &end)
	g.Done()
	if err != nil {
		return err
	}
	if err := p.show(typeOf[operator.AuditAnswer](), end); err != nil {
		return err
	}
	n, _ := parseMembers(end)
	differences := length(n["differences"])
	if differences == 0 {
		if !p.JSON {
			fmt.Fprintln(p.Stdout, "\nThe books balance: no difference was found.")
		}
		return nil
	}
	return cli.WithExit(cli.ExitBroken, fmt.Errorf("the books do not balance: %d %s", differences,
		cli.Either(differences == 1, "difference", "differences")))
}
