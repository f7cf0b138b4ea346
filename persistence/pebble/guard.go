package pebble

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A guard is the file system that Pebble gets. On a failed write of its log, MANIFEST, a marker or
// the folder, Pebble panics with locks held. That unlocks mutexes that are not locked, which no
// recover catches. So the guard ends the process before Pebble receives the error.
//
// Tables are left to Pebble, which rewrites a table from its memory: see background. So are
// removals, which Pebble repeats at its next start, and reads.
type guard struct {
	vfs.FS
	end func(error) // ends the process: it does not return
}

// failed ends the process if a call on a file failed.
func (g *guard) failed(call, name string, err error) {
	if err != nil {
		g.end(fmt.Errorf("%s %s: %w", call, filepath.Base(name), err))
	}
}

// isRewritten reports whether Pebble rewrites that file after a failed write.
func isRewritten(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// opened guards the writes and syncs of an open file.
func (g *guard) opened(call, name string, f vfs.File, err error) (vfs.File, error) {
	if isRewritten(name) {
		return f, err
	}
	g.failed(call, name, err)
	return &guardedFile{f, g, name}, nil
}

func (g *guard) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.Create(name, c)
	return g.opened("create", name, f, err)
}

func (g *guard) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.ReuseForWrite(old, name, c)
	return g.opened("take over", name, f, err)
}

func (g *guard) OpenReadWrite(name string, c vfs.DiskWriteCategory,
	o ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.OpenReadWrite(name, c, o...)
	return g.opened("open", name, f, err)
}

func (g *guard) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	return g.opened("open", name, f, err)
}

func (g *guard) Rename(old, name string) error {
	err := g.FS.Rename(old, name)
	g.failed("rename", name, err)
	return err
}

func (g *guard) Link(old, name string) error {
	err := g.FS.Link(old, name)
	g.failed("link", name, err)
	return err
}

// Unwrap is part of vfs.FS.
func (g *guard) Unwrap() vfs.FS { return g.FS }

// A guardedFile is a file that Pebble writes, or a folder that it syncs.
type guardedFile struct {
	vfs.File
	guard *guard
	name  string
}

func (f *guardedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.guard.failed("write", f.name, err)
	return n, err
}

func (f *guardedFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	f.guard.failed("write", f.name, err)
	return n, err
}

func (f *guardedFile) Sync() error {
	err := f.File.Sync()
	f.guard.failed("sync", f.name, err)
	return err
}

func (f *guardedFile) SyncData() error {
	err := f.File.SyncData()
	f.guard.failed("sync", f.name, err)
	return err
}

func (f *guardedFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	f.guard.failed("sync", f.name, err)
	return full, err
}

func (f *guardedFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	f.guard.failed("stat", f.name, err)
	return info, err
}

func (f *guardedFile) Close() error {
	err := f.File.Close()
	f.guard.failed("close", f.name, err)
	return err
}
