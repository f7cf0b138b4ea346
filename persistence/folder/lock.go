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

// errHeld is the answer of a system whose lock another process has.
var errHeld = errors.New("held")

// A Lock is a data folder that one process has to itself.
type Lock struct{ file *os.File }

// Hold takes the folder for this process until Release or the process's end. ErrLocked names the
// process that has it.
func Hold(dir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the data folder %s cannot be locked: %w", dir, err)
	}
	if err := lock(f); err != nil {
		holder := holderOf(f)
		f.Close() //nolint:errcheck // nothing was written
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
			f.Close())
	}
	return &Lock{f}, nil
}

// holderOf reads who has the folder. The holder may not have said so yet.
func holderOf(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, holderMaxBytes))
	if text := strings.TrimSpace(string(b)); err == nil && text != "" {
		return text
	}
	return "another process"
}

// Release lets the next process have the folder. The file stays: removing it would let two
// processes each lock a file of that name.
func (l *Lock) Release() error { return l.file.Close() }
