// Package durable has what makes files survive a power cut.
package durable

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// SyncFolder makes durable which files a folder has: those that were made, renamed and removed
// before.
func SyncFolder(fs vfs.FS, folder string) error {
	f, err := fs.OpenDir(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
