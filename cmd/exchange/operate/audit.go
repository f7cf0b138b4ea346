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

const auditHelp = `Derives every balance, reserve, open order and pending withdraw anew, from the oldest kept snapshot and the
journal after it, and compares them with what the running exchange has: its committed state,
	its wallets
and books at work, and in the store the wallets, nonces, deposits and withdraws,
	and every row of the history
that the replayed records gave rise to, as far as it is kept. Per currency,
	all deposits less all withdraws and
adjustments must be all balances. Commands of clients wait for the moment that the wallets and books are looked at; all else goes on.

With --archive it begins at the very first record instead, with what ` +
	"`exchange serve --archive`" + ` kept in DIR; or, if that
archive was begun late or after a restore,
	at the state that it begins with. Each part must be authentic: written under
the server's secret key or one that was retired from its file, by the same exchange, behind the part before it.
--without-authentication takes the parts as they are: a writer of the folder decides what is compared.

Exits with 70 if there is any difference.`

func (p *Commands) auditCommand() *cobra.Command {
	var archive string
	var without bool
	c := &cobra.Command{
		Use:   "audit [--archive DIR]",
		Short: "Derive all balances and orders anew and compare them with the running exchange",
		Long:  auditHelp,
		Args:  cli.Takes(),
	}
	c.Flags().StringVar(&archive, "archive", "",
		"begin where the archive begins that the server keeps in this folder, with the very "+
			"first record if it has that")
	c.Flags().BoolVar(&without, "without-authentication", false,
		"take the archive's parts as they are, without a proof that the exchange wrote them")
	c.RunE = cli.Run(func(ctx context.Context, _ []string) error {
		var in operator.AuditRequest
		if without && !c.Flags().Changed("archive") {
			return cli.Usage("--without-authentication is about an archive: name it with --archive")
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
