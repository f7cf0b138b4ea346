// Package durable writes files that survive a power cut.
package durable

import (
	"errors"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Write creates or replaces a file: after a power cut it has the old content or the whole new one.
// Only the user may read it.
func Write(fs vfs.FS, name string, content []byte) error {
	temporary := name + ".new" // a crash's leftover is overwritten
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

// SyncFolder makes a folder's list of files durable: earlier creations, renames and removals.
func SyncFolder(fs vfs.FS, folder string) error {
	f, err := fs.OpenDir(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
