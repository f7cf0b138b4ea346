package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
)

// A head is a small file beside the journal that says up to where appends were acknowledged. It is
// written after each append and never synced: it may be behind, after a power cut, but never ahead.
//
// It is there because a log cannot tell damage in its last record from its end: what follows the damage
// would be dropped without a word. With the head, a journal that ends too early is refused.
type head struct{ file *os.File }

const (
	headFile  = "HEAD." // and the engine's id
	headBytes = 16      // sequence, and its hash
)

// openHead opens the folder's head, and says up to where appends were acknowledged.
func (s *Store) openHead(path string) (h head, acknowledged uint64, err error) {
	if s.fs != vfs.Default {
		return head{}, 0, nil // a test's folder in memory
	}
	name := headFile + s.engine()
	f, err := os.OpenFile(filepath.Join(path, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return head{}, 0, fmt.Errorf("%s: %w", s, err)
	}
	var b [headBytes]byte
	n, err := f.ReadAt(b[:], 0)
	if n == headBytes && binary.BigEndian.Uint64(b[8:]) == xxhash.Sum64(b[:8]) {
		acknowledged = binary.BigEndian.Uint64(b[:])
	} else if n > 0 {
		s.logger.Warn("the file that says up to where the journal was acknowledged is not readable, and is written anew", "file", name, "error", err)
	}
	return head{f}, acknowledged, nil
}

// atLeast refuses a journal that ends before what was acknowledged.
func (s *Store) atLeast(seq, acknowledged uint64) error {
	if acknowledged > seq {
		return fmt.Errorf("%s: %w: the journal ends at sequence %d, and appends up to %d were acknowledged: what came behind is damaged or lost; restore a backup",
			s, persistence.ErrCorrupt, seq, acknowledged)
	}
	return nil
}

// set notes an acknowledged sequence.
func (h head) set(seq uint64) error {
	if h.file == nil {
		return nil
	}
	var b [headBytes]byte
	binary.BigEndian.PutUint64(b[:], seq)
	binary.BigEndian.PutUint64(b[8:], xxhash.Sum64(b[:8]))
	_, err := h.file.WriteAt(b[:], 0)
	return err
}

func (h head) close() error {
	if h.file == nil {
		return nil
	}
	if err := h.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}
