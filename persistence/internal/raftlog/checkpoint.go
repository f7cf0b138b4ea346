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
)

const (
	checkpointFile  = "CHECKPOINT"
	checkpointMagic = "exPOINT1"
	checkpointHead  = 8 + 8 + 8 + 8 // magic, checksum of all behind it, index, term
	maxCheckpoint   = 1 << 30
)

// base is where the log begins: behind an index.
type base struct {
	index, term uint64
	machine     []byte // the state at index; nil: that of an empty log
}

// readCheckpoint returns the base that was written last; the zero base: none was.
func readCheckpoint(files vfs.FS, dir string) (b base, err error) {
	name := files.PathJoin(dir, checkpointFile)
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return base{}, nil
	} else if err != nil {
		return base{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCheckpoint+1))
	if err != nil {
		return base{}, err
	}
	if len(text) < checkpointHead || len(text) > maxCheckpoint ||
		string(text[:8]) != checkpointMagic ||
		binary.BigEndian.Uint64(text[8:]) != xxhash.Sum64(text[16:]) {
		return base{}, fmt.Errorf("%w: %s cannot be read; replace this node",
			persistence.ErrCorrupt, name)
	}
	return base{index: binary.BigEndian.Uint64(text[16:]), term: binary.BigEndian.Uint64(text[24:]),
		machine: text[checkpointHead:]}, nil
}

func writeCheckpoint(files vfs.FS, dir string, b base) error {
	text := append([]byte(checkpointMagic), make([]byte, 8)...)
	text = binary.BigEndian.AppendUint64(text, b.index)
	text = binary.BigEndian.AppendUint64(text, b.term)
	text = append(text, b.machine...)
	if len(text) > maxCheckpoint {
		return fmt.Errorf("%w: a state of %d bytes", persistence.ErrInvalid, len(text))
	}
	binary.BigEndian.PutUint64(text[8:], xxhash.Sum64(text[16:]))
	name := files.PathJoin(dir, checkpointFile)
	f, err := files.Create(name+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := files.Rename(name+".new", name); err != nil {
		return err
	}
	return syncFolder(files, dir)
}

// Truncate forgets the entries up to an index, behind which the machine has a state. The caller has
// applied them, and every member has them.
func (l *Log) Truncate(index uint64, machine []byte) error {
	if index <= l.base.index {
		return nil
	}
	term, err := l.Term(index)
	if err != nil {
		return err
	}
	b := base{index, term, machine}
	if err := writeCheckpoint(l.files, l.dir, b); err != nil {
		return err
	}
	l.base = base{index: index, term: term}
	l.forget(index)
	return l.wal.Trim(index)
}
