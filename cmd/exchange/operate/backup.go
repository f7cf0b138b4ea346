package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/persistence/backup"
)

// The operator's command that takes a backup of the running exchange.

type backupAnswer struct {
	File     string `json:"file"`
	Sequence uint64 `json:"sequence"`
	Accounts int    `json:"accounts"`
	Rows     int    `json:"rows"`
	Bytes    int64  `json:"bytes"`
}

const backupHelp = `Writes a backup of the running exchange at one moment into DIR: its state, and the history up to
then. The exchange keeps running. The file is renamed to exchange-SEQUENCE.backup once it is complete
and was verified; only its owner can read it.

` +
	"`exchange restore`" + ` fills an empty store from it, of the same kind or of another.

The backup does not contain the server's secret key (exchange.key), which seals the API secrets in it
and authenticates the whole backup: a restore needs it. Keep a copy of the key, but not in the same
place.`

func (p *Commands) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Write a backup of the running exchange into a folder",
		Long:  backupHelp,
		Args:  cli.Takes("DIR"),
		RunE: cli.Run(func(ctx context.Context, args []string) error {
			if args[0] == "" {
				return cli.Usage("DIR is empty: name the folder for the backup")
			}
			return p.backup(ctx, args[0])
		}),
	}
}

func (p *Commands) backup(ctx context.Context, dir string) error {
	c, err := p.client()
	if err != nil {
		return err
	}
	if err := cli.MakeFolder("the folder for the backup", dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cli.StreamTimeout)
	defer cancel()
	response, err := c.send(ctx, "/operator/v1/backup", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	g := p.Progress()
	defer g.Done()
	var a backupAnswer
	err = cli.WriteBeside(dir, func(f *os.File) (name string, err error) {
		if a.Bytes, err = io.Copy(f, g.Reader(response.Body, "%s")); err != nil {
			if read, ok := errors.AsType[cli.ReadError](err); ok {
				return "", c.brokeOff(cause(read.Unwrap()))
			}
			return "", err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		// the key is the server's, and may not be readable here
		info, err := backup.Verify(g.Reader(f, "%s verified"), nil)
		if err != nil {
			return "", cli.WithExit(cli.ExitUnavailable,
				fmt.Errorf(
					"the backup from %s is incomplete and was discarded: %w; "+
						"see the server's log", c.address, err))
		}
		for _, n := range info.Rows {
			a.Rows += n
		}
		a.Sequence, a.Accounts = info.Sequence, info.Accounts
		a.File = filepath.Join(dir, backup.FileName(info.Sequence))
		return a.File, nil
	})
	if err != nil {
		return err
	}
	g.Done()
	return p.Print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "backup\t%s\nsequence\t%d\naccounts\t%d\nrows\t%d\nbytes\t%d\n", a.File,
			a.Sequence, a.Accounts, a.Rows, a.Bytes)
		fmt.Fprint(w,
			"\nKeep the server's secret key (exchange.key) with it, but in another place: "+
				"without the key the API secrets in\n"+
				"the backup are lost, and with both anybody can use them.\n")
	})
}
