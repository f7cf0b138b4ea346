package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/persistence"
	"exchange/persistence/backup"
	"exchange/persistence/pebble"
)

// copies makes and takes copies of a node's local store, in the form of a backup, which the nodes'
// common key authenticates. A store that was a copy is in its own folder inside that of the
// embedded store, which may also be the data folder.
type copies struct {
	cfg   *config.Config
	known *knownData
	log   *slog.Logger
	key   persistence.Authority
}

const (
	copyFolder  = "copy"
	newerFolder = "copy.new" // while it is filled
	olderFolder = "copy.old" // until the newer one is in its place
)

// noCopies refuses a folder in which a node has a copy: the store beside it is not the newest.
func noCopies(folder string) error {
	for _, name := range []string{copyFolder, newerFolder, olderFolder} {
		switch _, err := os.Stat(filepath.Join(folder, name)); {
		case err == nil:
			return fmt.Errorf("%w: %s has the store of a cluster's node in its folder %s; serve "+
				"it as that node, or empty the whole folder first", errConfig, folder, name)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

func (c *copies) in(name string) string { return filepath.Join(c.cfg.PebbleFolder(), name) }

// open opens the local store: the copy, if there is one.
func (c *copies) open() (persistence.Store, error) {
	folder := c.in(copyFolder)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		folder = c.cfg.PebbleFolder()
	} else if err != nil {
		return nil, err
	}
	return c.openIn(folder)
}

func (c *copies) openIn(folder string) (persistence.Store, error) {
	s, err := pebble.Open(folder, pebble.Options{Retention: retention(c.cfg), Logger: c.log})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Write implements replicated.Copies with the newest snapshot.
func (c *copies) Write(ctx context.Context, local persistence.Store, least uint64,
	w io.Writer) error {
	return backup.WriteNewest(ctx, w, local, least, c.key)
}

// Fill implements replicated.Copies.
func (c *copies) Fill(ctx context.Context, r io.Reader) (uint64, error) {
	b, err := backup.Open(r, c.key)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	if err := os.RemoveAll(c.in(newerFolder)); err != nil {
		return 0, err
	}
	s, err := c.openIn(c.in(newerFolder))
	if err != nil {
		return 0, err
	}
	info, err := b.Copy(ctx, s)
	if err = errors.Join(err, s.Close()); err == nil {
		err = c.known.store.Remember(persistence.HistoryID(b.State().History()))
	}
	if err != nil {
		return 0, err
	}
	return info.Sequence, nil
}

// Swap implements replicated.Copies. After a crash between the two renames there is no copy, and
// the node starts over.
func (c *copies) Swap(_ context.Context, local persistence.Store) (persistence.Store, error) {
	older := c.in(olderFolder)
	for _, step := range []func() error{local.Close,
		func() error { return os.RemoveAll(older) },
		func() error {
			if err := os.Rename(c.in(copyFolder), older); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
		func() error { return os.Rename(c.in(newerFolder), c.in(copyFolder)) },
		func() error { return cli.SyncFolder(c.cfg.PebbleFolder()) },
		func() error { return os.RemoveAll(older) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c.open()
}
