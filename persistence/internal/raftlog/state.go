package raftlog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/durable"
	"exchange/persistence/internal/head"
	"exchange/persistence/internal/wal"
)

// An Identity is the node and cluster that a folder belongs to. It never changes.
type Identity struct {
	Cluster string `json:"cluster"` // the same on all nodes
	Node    uint64 `json:"node"`    // its id, which the membership has given to it
	Name    string `json:"name"`
}

// A Start names one start of a node.
type Start struct {
	Boot  uint64 `json:"boot"`  // counts the starts, from 1
	Nonce string `json:"nonce"` // random: two copies of a folder do not make the same start
}

// state is the content of STATE.
type state struct {
	Version int `json:"version"`
	Identity
	Count uint64           `json:"count"` // of the writes
	Term  uint64           `json:"term"`
	Vote  uint64           `json:"vote"`
	Own   Start            `json:"own"`
	Seen  map[uint64]Start `json:"seen"` // the newest start of each peer
	// Committed is the index of a committed entry; others may be, too.
	Committed uint64 `json:"committed,omitempty"`
	// Starts are the nonces of the newest starts, Own's the last one.
	Starts []string `json:"starts"`
	// Refused: the folder is an older copy, or has lost acknowledged entries.
	Refused bool `json:"refused,omitempty"`
	// Removed: the node is a member no more.
	Removed bool `json:"removed,omitempty"`
}

const (
	stateFile    = "STATE"
	stateVersion = 3
	copyBytes    = 8 << 10 // of each copy: length, checksum, text, zeros
	maxName      = 64
	keepStarts   = 64 // number of nonces in STATE
)

// ErrNotFormed: the folder has no STATE, as on a new disk.
var ErrNotFormed = errors.New("the folder has no log: a node takes part from the forming of its " +
	"cluster on, or after it was replaced")

// check refuses an impossible identity.
func (d *Identity) check() error {
	for _, name := range []string{d.Cluster, d.Name} {
		if name == "" || len(name) > maxName {
			return fmt.Errorf("%w: the name %.100q of a node or a cluster", persistence.ErrInvalid,
				name)
		}
	}
	if d.Node == 0 {
		return fmt.Errorf("%w: node %q with id 0", persistence.ErrInvalid, d.Name)
	}
	return nil
}

// Form makes the folder of a new node, whose log begins after a base. ErrInvalid: the folder has a
// log already.
func Form(files vfs.FS, dir string, d Identity, b Base) error {
	if err := d.check(); err != nil {
		return err
	}
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := files.PathJoin(dir, stateFile)
	if _, err := files.Stat(name); err == nil {
		return fmt.Errorf("%w: %s has a node's log already", persistence.ErrInvalid, dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	h, err := head.Open(files, files.PathJoin(dir, headFile))
	if err != nil {
		return err
	}
	if err := errors.Join(h.Reset(b.Index), h.Close()); err != nil {
		return err
	}
	if err := writeCheckpoint(files, dir, b); err != nil {
		return err
	}
	f := stateIn{files: files, name: name + ".new",
		state: state{Version: stateVersion, Identity: d, Term: b.Term}}
	if err := errors.Join(f.write(), f.close()); err != nil {
		return err
	}
	if err := files.Rename(f.name, name); err != nil {
		return err
	}
	return errors.Join(durable.SyncFolder(files, dir),
		durable.SyncFolder(files, files.PathDir(dir)))
}

// Formed reports whether the folder of a node has a log.
func Formed(files vfs.FS, dir string) (bool, error) {
	_, err := files.Stat(files.PathJoin(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Readable returns the ErrVersion of a node's folder that another version of the program has
// written, and the state after which the log begins; nil: the folder has no log, or one with faults
// that Open reports. It changes nothing.
func Readable(files vfs.FS, dir string) (machine []byte, err error) {
	f, err := openState(files, dir, true)
	var b Base
	if err == nil {
		if err = f.close(); err == nil {
			b, err = readCheckpoint(files, dir)
		}
	}
	if err == nil {
		err = errors.Join(head.Readable(files, files.PathJoin(dir, headFile)),
			wal.Readable(files, files.PathJoin(dir, logFolder)))
	}
	if errors.Is(err, persistence.ErrVersion) {
		return nil, err
	}
	return b.Machine, nil
}

// stateIn is the open file STATE, and its content.
type stateIn struct {
	files vfs.FS
	name  string
	file  vfs.File
	state
}

// openState opens the file, and reads the last written copy.
func openState(files vfs.FS, dir string, anyway bool) (*stateIn, error) {
	name := files.PathJoin(dir, stateFile)
	if _, err := files.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFormed
	}
	file, err := files.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	f := &stateIn{files: files, name: name, file: file}
	b := make([]byte, 2*copyBytes)
	if _, err := file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, file.Close())
	}
	found := false
	for _, c := range [][]byte{b[:copyBytes], b[copyBytes:]} {
		if s, ok := decodeState(c); ok && (!found || s.Count > f.Count) {
			f.state, found = s, true
		}
	}
	switch {
	case !found:
		err = fmt.Errorf("%w: %s cannot be read; replace this node", persistence.ErrCorrupt, name)
	case f.Version != stateVersion:
		err = fmt.Errorf("%s: %w", name,
			persistence.OtherVersion(uint64(max(f.Version, 0)), stateVersion))
	case f.Removed && !anyway:
		err = persistence.ErrRemoved
	case f.Refused && !anyway:
		err = fmt.Errorf("%w: the folder is an older copy, or is used twice, or has lost what "+
			"this node has acknowledged, as its peers have found at an earlier start; replace "+
			"this node", persistence.ErrCorrupt)
	default:
		err = f.check()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

func decodeState(b []byte) (s state, ok bool) {
	n := int(binary.BigEndian.Uint32(b))
	if n > len(b)-12 || binary.BigEndian.Uint64(b[4:]) != xxhash.Sum64(b[12:12+n]) {
		return s, false
	}
	err := json.Unmarshal(b[12:12+n], &s)
	_, form := errors.AsType[*json.UnmarshalTypeError](err)
	return s, err == nil || form && s.Version > stateVersion // a newer one may have others
}

// write makes the content durable, one copy after the other.
func (f *stateIn) write() (err error) {
	f.Count++
	text, err := json.Marshal(f.state)
	if err != nil {
		return err
	}
	if len(text) > copyBytes-12 {
		return fmt.Errorf("%w: %s would have %d bytes", persistence.ErrInvalid, f.name, len(text))
	}
	b := make([]byte, copyBytes)
	binary.BigEndian.PutUint32(b, uint32(len(text)))
	binary.BigEndian.PutUint64(b[4:], xxhash.Sum64(text))
	copy(b[12:], text)
	if f.file == nil {
		if f.file, err = f.files.Create(f.name, vfs.WriteCategoryUnspecified); err != nil {
			return err
		}
		if _, err = f.file.Write(make([]byte, 2*copyBytes)); err != nil {
			return err
		}
	}
	for _, at := range []int64{0, copyBytes} {
		if _, err := f.file.WriteAt(b, at); err != nil {
			return err
		}
		if err := f.file.Sync(); err != nil {
			return err
		}
	}
	return nil
}

func (f *stateIn) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
