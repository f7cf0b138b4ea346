package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
)

// Each Apply leaves a link: its first sequence, under its last. Rows alone do not reveal a missing
// Apply between others, because later ones rewrite the watermark and the counts. An Apply is lost
// when a file of Pebble's log is removed or cut off: Pebble then reads only the present files.
//
// Links lead from the flushed watermark to the watermark: the rows below the flushed one lie in
// tables and need no log. Each flush writes a row, which lies in the tables of that flush. If the
// rows of the last flushes are there, so are their tables, and the list of tables is the newest.
// More of these rows are kept than Pebble keeps logs for later use, because with an older list it
// would read those logs again.

// keepFlushes is how many rows of flushes are kept.
const keepFlushes = 64

// link adds the link between two sequences to a batch.
func (s *Store) link(b *pebble.Batch, from, to uint64) error {
	if from == to {
		return nil
	}
	return b.Set(u64(s.key(kindLink), to), u64(nil, from), nil)
}

// flush writes everything so far into tables, and deletes the links below its watermark.
//
// It runs after each publication of an image, and before the journal is trimmed below the image
// before it. So neither image depends on a file of Pebble's log.
func (s *Store) flush() error {
	watermark, err := s.watermark(s.db)
	if err != nil {
		return err
	}
	number := s.meta.Load().FlushCount + 1 // snapshots are taken one at a time
	mark := s.db.NewBatch()
	defer mark.Close()
	if err := mark.Set(u64(s.key(kindFlush), number), u64(nil, watermark), nil); err != nil {
		return err
	}
	if err := s.write("record a flush", mark, pebble.NoSync); err != nil {
		return err
	}
	if err := s.db.Flush(); err != nil {
		return s.fault("flush", err)
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	m := *s.meta.Load()
	m.Flushed, m.FlushCount = watermark, number
	b := s.db.NewBatch()
	defer b.Close()
	for kind, upTo := range map[byte]uint64{kindLink: watermark + 1,
		kindFlush: number - min(number, keepFlushes) + 1} {
		if err := b.DeleteRange(s.key(kind), u64(s.key(kind), upTo), nil); err != nil {
			return err
		}
	}
	return s.commit(b, m, pebble.NoSync) // after a crash the older links still count
}

// eachNumber calls fn for each key of one kind that ends with a number, in order.
func (s *Store) eachNumber(kind byte, fn func(number uint64, value []byte) error) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: s.key(kind),
		UpperBound: after(s.key(kind))})
	if err != nil {
		return s.fault("read links", err)
	}
	defer func() { err = errors.Join(err, s.fault("read links", it.Close())) }()
	for valid := it.First(); valid; valid = it.Next() {
		v, err := it.ValueAndErr()
		if err == nil {
			err = fn(idOf(it.Key()), v)
		}
		if err != nil {
			return err
		}
	}
	return s.fault("read links", it.Error())
}

// checkLinks walks the flushes and the links. An error names the missing one.
func (s *Store) checkLinks(m *meta) error {
	watermark, err := s.watermark(s.db)
	if err != nil {
		return err
	}
	lost := func(what string, args ...any) error {
		return fmt.Errorf(
			"%s: %w: %s, as if a file of the folder was removed, cut off or put back; restore a "+
				"backup",
			s, persistence.ErrCorrupt, fmt.Sprintf(what, args...))
	}
	next := m.FlushCount - min(m.FlushCount, keepFlushes) + 1
	err = s.eachNumber(kindFlush, func(number uint64, _ []byte) error {
		if number != next {
			return lost("tables of its flush %d are lost", next)
		}
		next++
		return nil
	})
	if err != nil {
		return err
	}
	if next <= m.FlushCount {
		return lost("tables of its flush %d are lost", next)
	}
	at := m.Flushed
	err = s.eachNumber(kindLink, func(to uint64, from []byte) error {
		if len(from) != 8 || binary.BigEndian.Uint64(from) != at || to <= at {
			return lost(
				"the projections lead to sequence %d and then to %d: the rows between are lost", at,
				to)
		}
		at = to
		return nil
	})
	if err == nil && at != watermark {
		err = lost(
			"the projections lead to sequence %d and their watermark is %d: the rows between "+
				"are lost", at, watermark)
	}
	return err
}

// Absent reports whether a folder is missing or never held a store. It creates nothing.
func Absent(dir string) (bool, error) {
	there, err := hasStore(vfs.Default, dir, "main")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return !there, err
}

// hasStore reports whether the folder has held a store: then Pebble must find its files, and may
// not create new ones. These files are made after the first start of Pebble is complete.
func hasStore(files vfs.FS, path, engine string) (bool, error) {
	names, err := files.List(path)
	for _, name := range names {
		// A journal of any engine counts. A head of another does not: HEAD.redis may be in the
		// folder.
		if strings.HasPrefix(name, journalFolder) || name == headFile+engine ||
			strings.HasSuffix(name, ".sst") {
			return true, nil
		}
	}
	return false, err
}
