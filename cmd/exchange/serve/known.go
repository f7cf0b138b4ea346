package serve

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/persistence"
	"exchange/persistence/archive"
	"exchange/persistence/folder"
	"exchange/persistence/pebble"
)

// A knownData is the record of the store and the archive in the data folder. An empty folder in
// place of a recorded one is mostly a disk that is not mounted: a start tries again until it is.
type knownData struct {
	cfg            *config.Config
	log            *slog.Logger
	store, archive *folder.Memory
	beginNew       bool
}

func newKnown(cfg *config.Config, beginNew bool, log *slog.Logger) *knownData {
	i := folder.Of(cfg.Data, log)
	return &knownData{cfg: cfg, log: log, store: i.Store(), archive: i.Archive(),
		beginNew: beginNew}
}

// has reports whether a store or an archive must be there.
func (k *knownData) has(m *folder.Memory) (bool, error) {
	ids, err := m.Known()
	return len(ids) > 0 && !k.beginNew, err
}

// missing returns the folders for which a start waits, mostly because their disks are not mounted.
// It makes nothing.
func (k *knownData) missing() []error {
	all := []error{k.mayMake(k.cfg.Data)}
	if info, err := os.Stat(k.cfg.Data); err == nil && !info.IsDir() {
		return all // nothing can be in it
	}
	if !k.cfg.Cluster.Observer {
		all = append(all, k.mayHaveKey(), k.checkFolder(), k.checkArchive())
	}
	return all
}

// mayMake returns the reason why a start may not make a folder, or a file: its parent is missing.
// The data folder is made before its content.
func (k *knownData) mayMake(path string) error {
	if k.beginNew || filepath.Dir(filepath.Clean(path)) == filepath.Clean(k.cfg.Data) {
		return nil
	}
	return mayServeIn(path)
}

// mayHaveKey refuses a missing folder of the secret key: it may hold a store's key, and no other
// one is made elsewhere.
func (k *knownData) mayHaveKey() error {
	if os.Getenv(config.EnvSecretKey) != "" {
		return nil
	}
	return k.mayMake(k.cfg.SecretKeyFile)
}

// keyOnDisk gives the error of a missing key its code: if its folder is empty too, a disk is mostly
// not mounted.
func keyOnDisk(cfg *config.Config, err error) error {
	dir := filepath.Dir(cfg.SecretKeyFile)
	if names, e := os.ReadDir(dir); !errors.Is(err, fs.ErrNotExist) || e != nil || len(names) > 0 {
		return err
	}
	return failf(cli.ExitUnavailable, "%w; the folder %s is empty: mount its disk", err, dir)
}

// mayServeIn returns the reason why a start may not make a folder, or a file: its parent is
// missing. Folders below the default data folder are made with all their parents.
func mayServeIn(dir string) error {
	if below, err := filepath.Rel(config.UsualData, dir); err == nil && below != ".." &&
		!strings.HasPrefix(below, ".."+string(filepath.Separator)) {
		return nil
	}
	return cli.WithExit(cli.ExitUnavailable, cli.MissingAbove(dir))
}

// checkFolder refuses the embedded store's folder, if it has no store and may not get one. A node
// of a cluster has its store there, too.
func (k *knownData) checkFolder() error {
	dir := k.cfg.PebbleFolder()
	if dir == "" {
		return nil
	}
	has, err := k.has(k.store)
	if err != nil {
		return cli.WithExit(cli.SystemCode(err), err)
	}
	if !has {
		return k.mayMake(dir)
	}
	absent, err := pebble.Absent(dir)
	if absent && err == nil {
		return failf(cli.ExitUnavailable,
			"%s: %w, and the data folder %s expects a store there: "+
				"mount its disk, or bring its files back; serve --new begins a new exchange", dir,
			persistence.ErrAbsent, k.cfg.Data)
	}
	return cli.WithExit(cli.SystemCode(err), err)
}

// checkArchive refuses the archive's folder, if it has no archive and may not get one.
func (k *knownData) checkArchive() error {
	dir := k.cfg.Archive
	if dir == "" {
		return nil
	}
	has, err := k.has(k.archive)
	if err != nil {
		return cli.WithExit(cli.SystemCode(err), err)
	}
	if !has {
		return k.mayMake(dir)
	}
	if _, err := archive.OpenExisting(dir); errors.Is(err, persistence.ErrAbsent) {
		return archiveFailed(err)
	}
	return nil // its use finds its other faults
}

// openArchive opens the archive of the configuration.
func (k *knownData) openArchive() (*archive.Archive, error) {
	dir := k.cfg.Archive
	has, err := k.has(k.archive)
	if err != nil {
		return nil, cli.WithExit(cli.SystemCode(err), err)
	}
	if has {
		a, err := archive.OpenExisting(dir)
		if err != nil {
			return nil, archiveFailed(err)
		}
		return a, nil
	}
	a, err := archive.Open(dir)
	if err != nil {
		return nil, archiveFailed(err)
	}
	end, err := a.End()
	if err != nil {
		return nil, archiveFailed(err)
	}
	if end == 0 {
		k.log.Warn("the archive is empty: a new one begins", "folder", dir)
		err = k.archive.Forget()
	}
	return a, cli.WithExit(cli.SystemCode(err), err)
}

// fits records an archive that was found to belong to the store.
func (k *knownData) fits(a *archive.Archive) error {
	history, begun, err := a.Newest()
	if err != nil || !begun {
		return err
	}
	return k.archive.Remember(history)
}

// save is the Save of an archive that is recorded from its first part on.
func (k *knownData) save(a *archive.Archive) func(context.Context, persistence.Store,
	persistence.Authority, persistence.HistoryID, uint64) (uint64, error) {
	return func(ctx context.Context, store persistence.Store, by persistence.Authority,
		history persistence.HistoryID, upTo uint64) (uint64, error) {
		trim, err := a.Save(ctx, store, by, history, upTo)
		if err != nil {
			return trim, err
		}
		if _, begun, err := a.Newest(); err != nil || !begun {
			return 0, err
		}
		return trim, k.archive.Remember(history)
	}
}
