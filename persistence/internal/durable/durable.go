// Package durable has what makes files survive a power cut.
package durable

import (
	"errors"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Write makes a file, or puts another in its place: after a power cut there is the one before, or a
// whole one. Only the user may read it.
func Write(fs vfs.FS, name string, content []byte) error {
	temporary := name + ".new" // one that a crash left is written over
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if fs == vfs.Default {
		err = os.Chmod(temporary, 0o600)
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temporary, name); err != nil {
		return err
	}
	return SyncFolder(fs, fs.PathDir(name))
}

// SyncFolder makes durable which files a folder has: those that were made, renamed and removed
// before.
func SyncFolder(fs vfs.FS, folder string) error {
	f, err := fs.OpenDir(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
