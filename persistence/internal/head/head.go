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
	mu   sync.Mutex
	file *os.File
	last Mark // guarded by mu, like held
	held bool // last is what is in the file
}

// Open opens a file, or makes it.
func Open(name string, log *slog.Logger) (*File, error) {
	return open(name, os.O_RDWR|os.O_CREATE, log)
}

// OpenOld opens a file if there is one; else it is nil.
func OpenOld(name string, log *slog.Logger) (*File, error) {
	f, err := open(name, os.O_RDWR, log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func open(name string, flags int, log *slog.Logger) (*File, error) {
	file, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	f := &File{file: file}
	var b [size]byte
	n, err := file.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, file.Close())
	}
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
	if _, err := f.file.WriteAt(b[:], 0); err != nil {
		return err
	}
	f.last, f.held = m, true
	return nil
}

// Name is the file's path.
func (f *File) Name() string {
	if f == nil {
		return ""
	}
	return f.file.Name()
}

// Close may be called again.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	if err := f.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}
