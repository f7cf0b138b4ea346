package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"exchange/actors/seal"
	"exchange/config"
	"exchange/persistence"
	"exchange/persistence/backup"
)

// The command that fills an empty store from a backup, while no server runs.

type restoreAnswer struct {
	Store    string    `json:"store"`
	File     string    `json:"file"`
	Of       int       `json:"of"` // so many backups were in the folder
	Sequence uint64    `json:"sequence"`
	Taken    time.Time `json:"taken"`
	Accounts int       `json:"accounts"`
	Rows     int       `json:"rows"`
	// SecretKey says whether the server's key is the one that the API secrets are sealed with: "there",
	// "missing", "another", or "unneeded".
	SecretKey string `json:"secret_key"`
}

func (a *restoreAnswer) complete() bool { return true }

const restoreHelp = `Fills the configured store from a backup of ` + "`exchange backup`" + `: a file, or the newest in a folder. The store must be
empty, and may be of another kind than the one that was backed up. No server may be running on it.

The backup is verified as a whole before anything is written. If the restore breaks off after that, the store is
filled by half, and the exchange does not start on it: empty it and restore again.

The store is found as ` + "`exchange serve`" + ` finds it, by the same flags, variables and configuration file.`

func (p *program) restoreCommand() *cobra.Command {
	var given sources
	c := &cobra.Command{
		Use:   "restore DIR|FILE",
		Short: "Fill an empty store from a backup",
		Long:  restoreHelp,
		Args:  takes("DIR|FILE"),
		RunE: run(func(ctx context.Context, args []string) error {
			cfg, err := p.load(&given)
			if err != nil {
				return err
			}
			for _, name := range cfg.Ignored {
				fmt.Fprintf(p.stderr, "exchange: the environment variable %s names no option and is ignored\n", name)
			}
			file, of, err := findBackup(args[0])
			if err != nil {
				return err
			}
			return p.restore(ctx, cfg, file, of)
		}),
	}
	given.register(c.Flags())
	return c
}

// findBackup is the file itself, or the newest backup in a folder that has so many.
func findBackup(path string) (file string, of int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", 0, withExit(exitUsage, fmt.Errorf("there is no backup: %w", err))
	}
	if !info.IsDir() {
		return path, 1, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", 0, withExit(exitUsage, fmt.Errorf("the folder of the backup cannot be read: %w", err))
	}
	var newest time.Time
	for _, e := range entries {
		var sequence uint64
		if _, err := fmt.Sscanf(e.Name(), backupPrefix+"%d"+backupSuffix, &sequence); err != nil || e.Name() != backupName(sequence) {
			continue
		}
		name := filepath.Join(path, e.Name())
		taken, err := takenAt(name)
		if err != nil {
			return "", 0, withExit(exitBroken, fmt.Errorf("%s: %w: if it is not the one to restore, name the file that is", name, err))
		}
		if of++; of == 1 || taken.After(newest) {
			file, newest = name, taken
		}
	}
	if of == 0 {
		return "", 0, withExit(exitUsage, fmt.Errorf("there is no backup in %s: it would be called %s", path, backupPrefix+"SEQUENCE"+backupSuffix))
	}
	return file, of, nil
}

// takenAt is when a backup was taken: its sequence alone does not say which is newest, since a restored exchange
// goes on from a lower one.
func takenAt(name string) (time.Time, error) {
	f, err := os.Open(name)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	info, err := backup.Describe(f)
	if err != nil {
		return time.Time{}, err
	}
	return info.Taken, nil
}

func (p *program) restore(ctx context.Context, cfg *config.Config, file string, of int) error {
	f, err := os.Open(file)
	if err != nil {
		return withExit(exitUsage, fmt.Errorf("the backup cannot be read: %w", err))
	}
	defer f.Close()
	g := p.progress()
	defer g.done()
	b, err := openBackup(f, g)
	if err != nil {
		return withExit(exitBroken, fmt.Errorf("%s: %w; nothing was written", file, err))
	}
	defer b.Close()
	store, err := openStore(ctx, cfg, true, newLogger(p.stderr, config.Log{Level: "warn", Format: cfg.Log.Format}))
	if errors.Is(err, persistence.ErrCorrupt) {
		return withExit(exitUsage, fmt.Errorf("%w; nothing was written to it: name an empty store", err))
	}
	if err != nil {
		return startFailed(ctx, err)
	}
	info, err := fill(ctx, store, b, g)
	g.done()
	if err != nil {
		return restoreFailed(store, err)
	}
	a := restoreAnswer{Store: store.String(), File: file, Of: of, Sequence: info.Sequence, Taken: info.Taken, Accounts: info.Accounts, SecretKey: p.keyFor(cfg, info)}
	for _, n := range info.Rows {
		a.Rows += n
	}
	return p.print(&a, func(w *tabwriter.Writer) { a.write(w, cfg) })
}

// fill restores an open backup into a store, which it closes.
func fill(ctx context.Context, store persistence.Store, b *backup.Backup, g *progress) (*backup.Info, error) {
	info, err := b.Load(ctx, store, func(rows int) { g.show("%s rows restored", thousands(rows)) })
	return info, errors.Join(err, store.Close())
}

// openBackup reads a whole backup, and opens it.
func openBackup(f *os.File, g *progress) (*backup.Backup, error) {
	if _, err := verify(f, g); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return backup.Open(f)
}

func restoreFailed(store persistence.Store, err error) error {
	if errors.Is(err, backup.ErrNotEmpty) {
		return withExit(exitUsage, fmt.Errorf("%w; nothing was written to %s: name an empty store, or empty this one if nothing in it is needed", err, store))
	}
	return withExit(exitUnavailable, fmt.Errorf("%w; %s may be filled by half, and no exchange starts on it then: empty it before the next try", err, store))
}

// keyFor says whether the server's secret key is the one that is needed.
func (p *program) keyFor(cfg *config.Config, info *backup.Info) string {
	if len(info.SealedBy) == 0 {
		return "unneeded"
	}
	key, err := seal.Load(p.env(config.EnvSecretKey), cfg.SecretKeyFile, false)
	if err != nil {
		return "missing"
	}
	for _, text := range info.SealedBy {
		if id, err := strconv.ParseUint(text, 16, 64); err != nil || !key.Opens(id) {
			return "another"
		}
	}
	return "there"
}

func (a *restoreAnswer) write(w *tabwriter.Writer, cfg *config.Config) {
	from := a.File
	if a.Of > 1 {
		from += fmt.Sprintf(", the newest of %d", a.Of)
	}
	fmt.Fprintf(w, "restored\t%s\nfrom\t%s\ntaken\t%s\nsequence\t%d\naccounts\t%d\nrows\t%d\n", a.Store, from, a.Taken.Format(time.RFC3339), a.Sequence, a.Accounts, a.Rows)
	fmt.Fprintln(w, "\nNext:")
	switch a.SecretKey {
	case "missing":
		fmt.Fprintf(w, "- bring the server's secret key, which was kept apart, to %s (mode 0600), or give it in %s\n", cfg.SecretKeyFile, config.EnvSecretKey)
	case "another":
		fmt.Fprintf(w, "- bring the server's secret key, which was kept apart, to %s: the key that is there is another\n", cfg.SecretKeyFile)
	}
	if parts, err := os.ReadDir(cfg.Archive); cfg.Archive != "" && err == nil && len(parts) > 0 {
		fmt.Fprintf(w, "- name an empty folder as archive, where one begins with this backup's state: that in %s belongs to what was before; keep it\n", cfg.Archive)
	}
	fmt.Fprintln(w, "- start the exchange with this configuration: exchange serve")
	fmt.Fprintln(w, "- compare its books: exchange audit")
}
