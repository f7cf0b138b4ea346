package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/durable"
)

const (
	checkpointFile  = "CHECKPOINT"
	checkpointMagic = "exPOINT1"
	checkpointHead  = 8 + 8 + 8 + 8 // magic, checksum of the rest, index, term
	maxCheckpoint   = 1 << 30
)

// A Base is the beginning of a log: after an entry, which need not exist.
type Base struct {
	Index, Term uint64 // of the entry
	Machine     []byte // the state after it, membership included
}

// readCheckpoint returns the last written base.
func readCheckpoint(files vfs.FS, dir string) (b Base, err error) {
	name := files.PathJoin(dir, checkpointFile)
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Base{}, fmt.Errorf("%w: %s is missing; replace this node", persistence.ErrCorrupt,
			name)
	} else if err != nil {
		return Base{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCheckpoint+1))
	if err != nil {
		return Base{}, err
	}
	if found, ok := otherCheckpoint(text); ok {
		return Base{}, fmt.Errorf("%s: %w", name,
			persistence.OtherVersion(found, uint64(checkpointMagic[7]-'0')))
	}
	if len(text) < checkpointHead || len(text) > maxCheckpoint ||
		string(text[:8]) != checkpointMagic ||
		binary.BigEndian.Uint64(text[8:]) != xxhash.Sum64(text[16:]) {
		return Base{}, fmt.Errorf("%w: %s cannot be read; replace this node",
			persistence.ErrCorrupt, name)
	}
	return Base{Index: binary.BigEndian.Uint64(text[16:]),
		Term: binary.BigEndian.Uint64(text[24:]), Machine: text[checkpointHead:]}, nil
}

// otherCheckpoint reports whether a file begins like one of another version: the magic ends with
// its digit.
func otherCheckpoint(text []byte) (version uint64, ok bool) {
	if len(text) < 8 || string(text[:7]) != checkpointMagic[:7] || text[7] == checkpointMagic[7] ||
		text[7] < '0' || text[7] > '9' {
		return 0, false
	}
	return uint64(text[7] - '0'), true
}

func writeCheckpoint(files vfs.FS, dir string, b Base) error {
	text := append([]byte(checkpointMagic), make([]byte, 8)...)
	text = binary.BigEndian.AppendUint64(text, b.Index)
	text = binary.BigEndian.AppendUint64(text, b.Term)
	text = append(text, b.Machine...)
	if len(text) > maxCheckpoint {
		return fmt.Errorf("%w: a state of %d bytes", persistence.ErrInvalid, len(text))
	}
	binary.BigEndian.PutUint64(text[8:], xxhash.Sum64(text[16:]))
	return durable.Write(files, files.PathJoin(dir, checkpointFile), text)
}

// Truncate drops the entries up to an index; machine is the state after it. The caller has applied
// them, and every member has them.
func (l *Log) Truncate(index uint64, machine []byte) error {
	if index <= l.base.Index {
		return nil
	}
	term, err := l.Term(index)
	if err != nil {
		return err
	}
	b := Base{index, term, machine}
	if err := writeCheckpoint(l.files, l.dir, b); err != nil {
		return err
	}
	l.base = Base{Index: index, Term: term}
	l.forget(index)
	return l.wal.Trim(index)
}
