// Package head keeps the small file that says up to where appends to a journal were acknowledged. It is written after
// each append, before anybody is told of it, and never synced: after a power cut it may be behind, but it is never ahead.
//
// It is there because a journal cannot tell by itself that its end is missing: damage in the last record of a log looks
// as its end does, and a Redis that comes back from a replica or an older copy is whole, and shorter. Who keeps the file
// refuses such a journal.
package head

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// A Mark is the end of a journal: its last sequence, and the digest of its last batch, 0 where nobody knows it.
type Mark struct{ Seq, Digest uint64 }

// size of a file: the sequence and its hash, which is all that the first versions wrote; the digest, and the hash of all before it.
const (
	sizeSeq = 16
	size    = 32
)

// A File is open; nil is one that is not kept, and remembers nothing. Its methods may be called from any goroutine.
type File struct {
	name    string
	mu      sync.Mutex
	file    *os.File // nil: there is none yet; guarded by mu, like all that follows
	last    Mark
	held    bool // last is what is in the file
	missing bool
}

// Open opens a file. One that is not there is made by the first write: until then each Open finds that
// it is missing, also after a crash.
func Open(name string, log *slog.Logger) (*File, error) {
	f, err := open(name, log)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{name: name, missing: true}, nil
	}
	return f, err
}

// OpenOld opens a file if there is one; else it is nil.
func OpenOld(name string, log *slog.Logger) (*File, error) {
	f, err := open(name, log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func open(name string, log *slog.Logger) (*File, error) {
	file, err := os.OpenFile(name, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	f := &File{name: name, file: file}
	var b [size]byte
	n, err := file.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, file.Close())
	}
	f.missing = n == 0 // its first write came to nothing
	if f.last, f.held = decode(b[:n]); !f.held && n > 0 {
		log.Warn("the file that says up to where the journal was acknowledged is not readable, and is written anew", "file", filepath.Base(name), "error", err)
	}
	return f, nil
}

func decode(b []byte) (m Mark, ok bool) {
	if len(b) < sizeSeq || binary.BigEndian.Uint64(b[8:]) != xxhash.Sum64(b[:8]) {
		return Mark{}, false
	}
	m.Seq = binary.BigEndian.Uint64(b)
	if len(b) >= size && binary.BigEndian.Uint64(b[24:]) == xxhash.Sum64(b[:24]) {
		m.Digest = binary.BigEndian.Uint64(b[16:])
	}
	return m, true
}

// Acknowledged is what the file says.
func (f *File) Acknowledged() Mark {
	if f == nil {
		return Mark{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Missing reports whether there was no file, or an empty one, and nothing was written to it since.
func (f *File) Missing() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.missing
}

// Fits is false if a journal with that end has lost what was acknowledged: it ends before, or there with another batch.
func (m Mark) Fits(end Mark) bool {
	return end.Seq > m.Seq || end.Seq == m.Seq && (end.Digest == m.Digest || end.Digest == 0 || m.Digest == 0)
}

// Advance notes that a journal is acknowledged up to m. What was noted before and is further stays.
func (f *File) Advance(m Mark) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held && (m.Seq < f.last.Seq || m.Seq == f.last.Seq && (m.Digest == 0 || m.Digest == f.last.Digest)) {
		return nil
	}
	return f.write(m)
}

// Reset notes that another journal begins behind a sequence.
func (f *File) Reset(seq uint64) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write(Mark{Seq: seq})
}

// write writes the file; mu is held.
func (f *File) write(m Mark) error {
	var b [size]byte
	binary.BigEndian.PutUint64(b[:], m.Seq)
	binary.BigEndian.PutUint64(b[8:], xxhash.Sum64(b[:8]))
	binary.BigEndian.PutUint64(b[16:], m.Digest)
	binary.BigEndian.PutUint64(b[24:], xxhash.Sum64(b[:24]))
	f.held = false
	if f.file == nil {
		var err error
		if f.file, err = os.OpenFile(f.name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
	}
	if _, err := f.file.WriteAt(b[:], 0); err != nil {
		return err
	}
	f.last, f.held, f.missing = m, true, false
	return nil
}

// Name is the file's path.
func (f *File) Name() string {
	if f == nil {
		return ""
	}
	return f.name
}

// Close may be called again.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	if err := f.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}
