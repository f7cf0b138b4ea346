package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/persistence"
	"exchange/persistence/backup"
)

// The operator's command that takes a backup of the running exchange.

// Names of backups are exchange-<sequence>.backup.
const backupPrefix, backupSuffix = "exchange-", ".backup"

func backupName(sequence uint64) string {
	return fmt.Sprintf("%s%d%s", backupPrefix, sequence, backupSuffix)
}

type backupAnswer struct {
	File     string `json:"file"`
	Sequence uint64 `json:"sequence"`
	Accounts int    `json:"accounts"`
	Rows     int    `json:"rows"`
	Bytes    int64  `json:"bytes"`
}

const backupHelp = `Writes a backup of everything that the running exchange remembers at one moment into DIR: its state, and the
history up to then. The exchange goes on meanwhile. The file gets its name, exchange-SEQUENCE.backup, when it is
whole and was read back without a fault; only its owner can read it.

` + "`exchange restore`" + ` fills an empty store from it, of the same kind or of another.

The backup does not have the server's secret key (exchange.key), which the API secrets in it are sealed with, and the
whole backup is authenticated with: a restore needs it. Keep a copy of the key, but not in the same place.`

func (p *program) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Write a backup of the running exchange into a folder",
		Long:  backupHelp,
		Args:  takes("DIR"),
		RunE: run(func(ctx context.Context, args []string) error {
			if args[0] == "" {
				return usage("backup needs DIR, which is empty")
			}
			return p.backup(ctx, args[0])
		}),
	}
}

func (p *program) backup(ctx context.Context, dir string) error {
	c, err := p.client()
	if err != nil {
		return err
	}
	if err := makeFolder("the folder for the backup", dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	response, err := c.send(ctx, "/operator/v1/backup", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	g := p.progress()
	defer g.done()
	var a backupAnswer
	err = writeBeside(dir, func(f *os.File) (name string, err error) {
		if a.Bytes, err = io.Copy(f, &counting{response.Body, 0,
			func(n int64) { g.show("%s", megabytes(n)) }}); err != nil {
			var read readError
			if errors.As(err, &read) {
				return "", c.brokeOff(cause(read.error))
			}
			return "", err
		}
		info, err := verify(f, nil, g) // the key is the server's, and may be out of reach here
		if err != nil {
			return "", withExit(exitUnavailable,
				fmt.Errorf(
					"the backup from %s is not whole and is thrown away: %w; the log of the "+
						"server may say why", c.address, err))
		}
		for _, n := range info.Rows {
			a.Rows += n
		}
		a.Sequence, a.Accounts = info.Sequence, info.Accounts
		a.File = filepath.Join(dir, backupName(info.Sequence))
		return a.File, nil
	})
	if err != nil {
		return err
	}
	g.done()
	return p.print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "backup\t%s\nsequence\t%d\naccounts\t%d\nrows\t%d\nbytes\t%d\n", a.File,
			a.Sequence, a.Accounts, a.Rows, a.Bytes)
		fmt.Fprint(w,
			"\nKeep the server's secret key (exchange.key) with it, but in another place: "+
				"without the key the API secrets in\n"+
				"the backup are lost, and with both anybody can use them.\n")
	})
}

// verify reads a whole backup back from its file.
func verify(f *os.File, by persistence.Authority, g *progress) (*backup.Info, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return backup.Verify(&counting{f, 0, func(n int64) { g.show("%s verified", megabytes(n)) }}, by)
}

// A counting reader says how much was read. Its errors are readErrors, to be told from those of a
// writer.
type counting struct {
	io.Reader
	n    int64
	tell func(n int64)
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	c.tell(c.n)
	if err != nil && err != io.EOF { //nolint:errorlint // as io.Reader demands
		err = readError{err}
	}
	return n, err
}

type readError struct{ error }

func (e readError) Unwrap() error { return e.error }
