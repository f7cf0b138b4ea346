package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/durable"
	"exchange/persistence/internal/head"
	"exchange/persistence/internal/wal"
)

// The version of a folder covers all its parts: raising one of theirs raises it. The folder has a
// file for it: Pebble rewrites its files as it opens, so another version must be refused before
// that.
const (
	versionFile = "VERSION"
	version     = 5
	// unnamed is the newest version of folders without the file.
	unnamed = 4

	formatMarker = "marker.format-version." // and a counter, a dot, and Pebble's format
)

// Readable returns the ErrVersion of a folder that another version of the program has written. It
// changes nothing.
func Readable(dir string) error {
	return readable(vfs.Default, dir, "main")
}

func readable(files vfs.FS, dir, engine string) error {
	found, err := versionIn(files, dir)
	if err == nil && found == 0 {
		var old bool
		if old, err = hasStore(files, dir, engine); old {
			err = fmt.Errorf("the folder has no file %s (bring it back, if it is lost): %w",
				versionFile, persistence.OtherVersion(unnamed, version))
		}
	} else if err == nil && found != version {
		err = persistence.OtherVersion(found, version)
	}
	if err == nil {
		err = readableParts(files, dir, engine)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("pebble:%s: %w", dir, err)
}

// versionIn returns the version in the file; 0: there is none.
func versionIn(files vfs.FS, dir string) (uint64, error) {
	name := files.PathJoin(dir, versionFile)
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0, err
	}
	found, err := strconv.ParseUint(strings.TrimSuffix(string(b), "\n"), 10, 32)
	if err != nil || found == 0 {
		return 0, fmt.Errorf("%w: the file %s has no version of the folder: bring it back, or "+
			"restore a backup", persistence.ErrCorrupt, name)
	}
	return found, nil
}

// readableParts checks the parts that have versions of their own: Pebble's format, HEAD, and the
// journal's segments.
func readableParts(files vfs.FS, dir, engine string) error {
	names, err := files.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, formatMarker)
		_, digits, dot := strings.Cut(rest, ".")
		if v, err := strconv.ParseUint(digits, 10, 32); ok && dot && err == nil &&
			v > uint64(format) {
			return persistence.OtherVersion(v, uint64(format))
		}
	}
	if err := head.Readable(files, files.PathJoin(dir, headFile+engine)); err != nil {
		return err
	}
	return wal.Readable(files, files.PathJoin(dir, journalFolder+engine))
}

// writeVersion writes the file into a new folder, before any other file of the store.
func (s *Store) writeVersion(path string) error {
	if found, err := versionIn(s.fs, path); found != 0 || err != nil {
		return err
	}
	return durable.Write(s.fs, s.fs.PathJoin(path, versionFile), fmt.Appendln(nil, version))
}
