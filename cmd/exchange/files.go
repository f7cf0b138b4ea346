package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// writeBeside writes a file in a folder. It gets the name that write gives it when it is whole and durable, and
// not before; a file of that name is replaced. Only its owner can read it.
func writeBeside(folder string, write func(*os.File) (name string, err error)) error {
	f, err := os.CreateTemp(folder, ".unfinished-*") // with mode 0600
	if err != nil {
		return withExit(exitUsage, fmt.Errorf("nothing can be written in %s: %w", filepath.Clean(folder), err))
	}
	defer os.Remove(f.Name()) //nolint:errcheck // its other name, if it got one, stays
	name, err := write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return withExit(exitUnavailable, err) // such as a full disk
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return withExit(exitUsage, fmt.Errorf("the file cannot get its name: %w", err))
	}
	dir, err := os.Open(folder)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	return withExit(exitUnavailable, err)
}
