package archive

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence/internal/durable"
)

// makeFolder makes a folder, and syncs each folder that contains a new one. Otherwise a power cut
// could undo the archive with all its parts, after the store has trimmed their records.
func makeFolder(files vfs.FS, dir string) error {
	var parents []string
	for at := dir; ; at = files.PathDir(at) {
		parent := files.PathDir(at)
		parents = append(parents, parent)
		if _, err := files.Stat(parent); !errors.Is(err, fs.ErrNotExist) || parent == at {
			break
		}
	}
	_, err := files.Stat(dir)
	there := err == nil
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, parent := range parents {
		err := durable.SyncFolder(files, parent)
		// then another user made the folder
		if err != nil && !(there && errors.Is(err, fs.ErrPermission)) {
			return err
		}
	}
	return nil
}

// create makes a file that only this user reads.
func create(files vfs.FS, name string) (vfs.File, error) {
	f, err := files.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil || files != vfs.Default {
		return f, err
	}
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// A cloningFile passes copies to a file that may change the written bytes, as files of vfs may. Its
// caller reuses those bytes.
type cloningFile struct{ vfs.File }

func (k cloningFile) Write(b []byte) (int, error) { return k.File.Write(bytes.Clone(b)) }

// lock keeps other writers out of the folder. A test's file system has no other writers.
func (a *Archive) lock() (unlock func(), err error) {
	if a.fs != vfs.Default {
		return func() {}, nil
	}
	return lock(a.dir)
}
