package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"exchange/web"
)

// pagesOf returns the packed files of a program that has an icon alone, and their hash.
func pagesOf(version string) (hash string, pack func() []byte) {
	text := fmt.Appendf(nil, "icon.svg %d\n%s", len(version), version)
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	b := bytes.NewBufferString("exchange pages 1 " + sum + "\n")
	w := gzip.NewWriter(b)
	w.Write(text) //nolint:errcheck // a buffer takes everything
	w.Close()     //nolint:errcheck // likewise
	return sum[:16], b.Bytes
}

// icons gives a folder to programs of versions one after the other, and returns the icon that each
// serves of the program before it, "" of none, and what the logs say.
func icons(t *testing.T, dir string, versions ...string) (list []string, said string) {
	t.Helper()
	var log bytes.Buffer
	for _, version := range versions {
		hash, pack := pagesOf(version)
		older := keepPages(dir, hash, pack, slog.New(slog.NewTextHandler(&log, nil)))
		icon := ""
		if older != nil {
			icon = string(older.Asset(web.Folder + older.Hash() + "/icon.svg").Plain)
		}
		list = append(list, icon)
		for _, name := range []string{pagesName, olderPagesName} {
			info, err := os.Lstat(filepath.Join(dir, name))
			if err == nil && info.Mode().IsRegular() && info.Mode() != 0o600 {
				t.Errorf("%s has the mode %v", name, info.Mode())
			}
		}
	}
	return list, log.String()
}

func TestAProgramServesTheFilesOfTheOneBefore(t *testing.T) {
	for _, c := range []struct{ versions, want string }{
		{"one", ""}, {"one one", " "}, {"one two", " one"},
		{"one two two two", " one one one"},
		{"one two three three", " one two two"}, // and those of the first are gone
		{"one two one two", " one two one"},     // it was taken back
		{"one one two one one", "  one two two"},
	} {
		list, said := icons(t, t.TempDir(), strings.Fields(c.versions)...)
		if got := strings.Join(list, " "); got != c.want || said != "" {
			t.Errorf("%s: each serves %q, want %q; the log says %s", c.versions, got, c.want, said)
		}
	}
	dir := t.TempDir()
	icons(t, dir, "one", "two", "three")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// What cannot be used is told once for each file, is never served, and is replaced.
func TestDamagedFilesOfPagesAreNotServed(t *testing.T) {
	whole := func() []byte { _, pack := pagesOf("one"); return pack() }()
	for what, damage := range map[string]func(name string) error{
		"empty":     func(name string) error { return os.WriteFile(name, nil, 0o600) },
		"truncated": func(name string) error { return os.Truncate(name, int64(len(whole)/2)) },
		"huge":      func(name string) error { return os.Truncate(name, 1<<40) },
		"changed": func(name string) error {
			whole := bytes.Clone(whole)
			whole[len(whole)/2] ^= 1
			return os.WriteFile(name, whole, 0o600)
		},
		"a pipe, which has no end": func(name string) error {
			if err := os.Remove(name); err != nil {
				return err
			}
			return syscall.Mkfifo(name, 0o600)
		},
		"a link": func(name string) error {
			if err := os.Rename(name, name+".away"); err != nil {
				return err
			}
			return os.Symlink(name+".away", name)
		},
	} {
		for _, name := range []string{pagesName, olderPagesName} {
			dir := t.TempDir()
			// The damaged file is that of version two, or of one.
			icons(t, dir, "one", "two")
			worked(t, damage(filepath.Join(dir, name)))
			next, want := "three", " one"
			if name == olderPagesName {
				next, want = "two", ""
			}
			list, said := icons(t, dir, next)
			if list[0] != strings.TrimSpace(want) || strings.Count(said, "\n") != 1 ||
				!strings.Contains(said, filepath.Join(dir, name)) {
				t.Errorf("%s, %s: version %s serves %q; the log says %s", name, what, next, list,
					said)
			}
			if list, _ = icons(t, dir, "three", "four", "five"); list[1] != "three" ||
				list[2] != "four" {
				t.Errorf("%s, %s: later versions serve %q", name, what, list)
			}
		}
	}
}

// A folder that takes no file does not keep the exchange from serving.
func TestPagesThatCannotBeKeptAreToldOnce(t *testing.T) {
	dir := t.TempDir()
	worked(t, os.MkdirAll(filepath.Join(dir, pagesName, "x"), 0o700))
	list, said := icons(t, dir, "one")
	if list[0] != "" || strings.Count(said, "\n") != 2 ||
		!strings.Contains(said, "cannot be kept") {
		t.Errorf("it serves %q, and the log says %s", list, said)
	}
}
