// Package head keeps the small file with the mark up to which appends to a journal were
// acknowledged. A store writes the file after each append, before the append is acknowledged. None
// of these writes is synced: after a power cut the file may lag behind the journal, but is never
// ahead.
//
// A journal by itself does not reveal a missing end. Damage in the last record of a log looks like
// its end. A Redis restored from a replica or an older copy is whole, but shorter. A store that
// keeps the file refuses such a journal.
//
// The file is 32 bytes long and is overwritten in place. It lies in one sector of the disk, so a
// crash leaves either its old bytes or its new ones. It is made under a temporary name, synced, and
// then renamed, so a crash leaves no file or a whole one. Anything else is damage, and is refused.
// If a damaged file counted as 0, a journal that has lost its end would pass.
package head

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/durable"
)

// A Mark is the end of a journal.
type Mark persistence.Mark

// Fits returns false if a journal with that end has lost acknowledged records.
func (m Mark) Fits(end Mark) bool { return persistence.Mark(m).Fits(persistence.Mark(end)) }

// The file consists of the magic, the version, the sequence, the digest, and the hash of all before
// it.
const (
	magic   = "exHEAD"
	version = 3
	size    = 32
)

// A File is an open file. A nil File stores nothing. Its methods may be called from any goroutine.
type File struct {
	files   vfs.FS
	name    string
	mu      sync.Mutex
	file    vfs.File // nil: there is none yet; guarded by mu, like all that follows
	last    Mark
	held    bool // last is the content of the file
	missing bool
	closed  bool
}

// Open opens a file. The first write creates a missing file: until then each Open finds it missing,
// also after a crash. Processes that may create the same file exclude each other.
func Open(files vfs.FS, name string) (*File, error) {
	f, err := OpenOld(files, name)
	if f == nil && err == nil {
		f = &File{files: files, name: name, missing: true}
	}
	return f, err
}

// OpenOld opens a file if there is one; otherwise it returns nil. ErrCorrupt: the file exists but
// cannot be read.
func OpenOld(files vfs.FS, name string) (*File, error) {
	info, err := files.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, failed(name, err)
	case !info.Mode().IsRegular():
		return nil, refused(name, errors.New("it is not a file"))
	}
	file, err := files.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, failed(name, err)
	}
	f := &File{files: files, name: name, file: file, held: true}
	var b [size + 1]byte
	n, err := file.ReadAt(b[:], 0)
	if err == nil || errors.Is(err, io.EOF) {
		f.last, err = decode(b[:n])
	}
	if err != nil {
		return nil, errors.Join(refused(name, err), file.Close())
	}
	return f, nil
}

// Readable returns the ErrVersion of a file of another version. It changes nothing.
func Readable(files vfs.FS, name string) error {
	f, err := OpenOld(files, name)
	if err = errors.Join(err, f.Close()); errors.Is(err, persistence.ErrVersion) {
		return err
	}
	return nil
}

// failed returns the error of a file that cannot be opened.
func failed(name string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return refused(name, err)
	}
	return fmt.Errorf("open %s: %w", name, err)
}

// refused returns the error of an existing file that cannot be read.
func refused(name string, err error) error {
	if errors.Is(err, persistence.ErrVersion) {
		return fmt.Errorf("the file %s: %w", name, err)
	}
	return fmt.Errorf(
		"%w: the file %s, which says up to where the journal was acknowledged, cannot be "+
			"read: %w; bring it back from a copy, or remove it to accept that a loss of the last "+
			"acknowledged records is not noticed", persistence.ErrCorrupt, name, err)
}

// create makes the file with the mark m and opens it. The caller holds mu.
func (f *File) create(m Mark) error {
	err := durable.Write(f.files, f.name, encode(m))
	if err != nil {
		return err
	}
	f.file, err = f.files.OpenReadWrite(f.name, vfs.WriteCategoryUnspecified)
	return err
}

func encode(m Mark) []byte {
	b := append(make([]byte, 0, size), magic...)
	b = binary.BigEndian.AppendUint16(b, version)
	b = binary.BigEndian.AppendUint64(b, m.Seq)
	b = binary.BigEndian.AppendUint64(b, m.Digest)
	return binary.BigEndian.AppendUint64(b, xxhash.Sum64(b))
}

func decode(b []byte) (Mark, error) {
	if !bytes.HasPrefix(b, []byte(magic)) || len(b) < len(magic)+2 {
		return Mark{}, errors.New("it does not begin like such a file")
	}
	if v := binary.BigEndian.Uint16(b[len(magic):]); v != version {
		return Mark{}, persistence.OtherVersion(uint64(v), version)
	}
	if len(b) != size {
		return Mark{}, fmt.Errorf("it is not %d bytes long", size)
	}
	if binary.BigEndian.Uint64(b[24:]) != xxhash.Sum64(b[:24]) {
		return Mark{}, errors.New("its checksum does not fit")
	}
	return Mark{Seq: binary.BigEndian.Uint64(b[8:]), Digest: binary.BigEndian.Uint64(b[16:])}, nil
}

// Acknowledged returns the mark in the file.
func (f *File) Acknowledged() Mark {
	if f == nil {
		return Mark{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Missing reports whether there was no file, and none was written since.
func (f *File) Missing() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.missing
}

// Advance records that a journal is acknowledged up to m. A later mark stays.
func (f *File) Advance(m Mark) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held && (m.Seq < f.last.Seq ||
		m.Seq == f.last.Seq && (m.Digest == 0 || m.Digest == f.last.Digest)) {
		return nil
	}
	return f.write(m)
}

// Reset records that another journal begins after a sequence. It syncs the file: if a power cut
// restored the previous journal's mark, the new journal would be refused.
func (f *File) Reset(seq uint64) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.write(Mark{Seq: seq}); err != nil {
		return err
	}
	return f.file.Sync()
}

// write writes the file. The caller holds mu.
func (f *File) write(m Mark) error {
	if f.closed {
		return fs.ErrClosed
	}
	f.held = false
	var err error
	if f.file == nil {
		err = f.create(m)
	} else {
		_, err = f.file.WriteAt(encode(m), 0)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	f.last, f.held, f.missing = m, true, false
	return nil
}

// Name returns the file's path.
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
	if f.closed || f.file == nil {
		f.closed = true
		return nil
	}
	f.closed = true
	return f.file.Close()
}
