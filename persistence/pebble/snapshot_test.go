package pebble

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
)

// A dirtyFS counts the bytes of Pebble's log that are written and not synced.
type dirtyFS struct {
	vfs.FS
	mu          sync.Mutex
	dirty, most int // guarded by mu
}

func (fs *dirtyFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return fs.opened(name, f), err
}

func (fs *dirtyFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(old, name, c)
	return fs.opened(name, f), err
}

func (fs *dirtyFS) opened(name string, f vfs.File) vfs.File {
	if !strings.HasSuffix(name, ".log") {
		return f
	}
	return &dirtyFile{f, fs}
}

func (fs *dirtyFS) note(written int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.dirty += written; written == 0 {
		fs.dirty = 0
	}
	fs.most = max(fs.most, fs.dirty)
}

type dirtyFile struct {
	vfs.File
	fs *dirtyFS
}

func (f *dirtyFile) Write(p []byte) (int, error) {
	f.fs.note(len(p))
	return f.File.Write(p)
}

func (f *dirtyFile) Sync() error {
	f.fs.note(0)
	return f.File.Sync()
}

func (f *dirtyFile) SyncData() error {
	f.fs.note(0)
	return f.File.SyncData()
}

// A disk that has much to write holds up the sync of an append.
func TestImageIsSyncedInPieces(t *testing.T) {
	fs := &dirtyFS{FS: vfs.NewMem()}
	s, tok, seq := mustOpen(t, "data", Options{files: fs})
	seq = oneMore(t, s, tok, seq)
	chunks := 0
	ctx := persistence.WithPace(t.Context(), func() error { chunks++; return nil })
	const size = 8 << 20
	succeeds(t, s.SaveSnapshot(ctx, tok, seq, bytes.NewReader(make([]byte, size))))
	fs.mu.Lock()
	defer fs.mu.Unlock()
	// Rows that were written before may wait for the first sync.
	if most := 2 * syncChunks * size / chunks; fs.most > most {
		t.Errorf("%d bytes of Pebble's log were not synced, want at most %d", fs.most, most)
	}
}
