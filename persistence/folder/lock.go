package folder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"exchange/persistence"
)

const (
	lockName       = "serve.lock"
	holderMaxBytes = 4096
)

// errHeld is returned where another process has the lock.
var errHeld = errors.New("held")

// A Lock is one process's exclusive use of a data folder. It is on the file, which names the
// holder, and on the folder, which stays when a person or a script removes the file.
type Lock struct{ file, folder *os.File }

// Hold takes the folder for this process until Release or the process's end. ErrLocked names the
// process that has it.
func Hold(dir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the data folder %s cannot be locked: %w", dir, err)
	}
	whole, err := os.Open(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the data folder %s cannot be locked: %w", dir, err),
			f.Close())
	}
	if err := lockBoth(f, whole); err != nil {
		holder := holderOf(f)
		f.Close()     //nolint:errcheck // nothing was written
		whole.Close() //nolint:errcheck // nor here
		if errors.Is(err, errHeld) {
			return nil,
				fmt.Errorf(
					"%w: the data folder %s is held by %s (%s); stop that process, or give this "+
						"one a folder of its own with --data",
					persistence.ErrLocked, dir, holder, lockName)
		}
		return nil, fmt.Errorf("the data folder %s cannot be locked: %w", dir, err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	text := fmt.Sprintf("pid %d on %s, started %s\n", os.Getpid(), host,
		time.Now().UTC().Format(time.RFC3339))
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(text), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the data folder %s cannot be written: %w", dir, err),
			f.Close(), whole.Close())
	}
	return &Lock{f, whole}, nil
}

// lockBoth locks the file, and the folder where its file system can lock folders: NFS cannot.
func lockBoth(f, folder *os.File) error {
	if err := lock(f); err != nil {
		return err
	}
	if err := lock(folder); errors.Is(err, errHeld) {
		return err
	}
	return nil
}

// holderOf reads the name of the folder's holder. The holder may not have written it yet.
func holderOf(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, holderMaxBytes))
	if text := strings.TrimSpace(string(b)); err == nil && text != "" {
		return text
	}
	return "another process"
}

// Release gives up the folder. The file stays: it shows the next process that the claims in
// owner.id were made in this folder.
func (l *Lock) Release() error { return errors.Join(l.file.Close(), l.folder.Close()) }
