package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"exchange/actors/committed"
	"exchange/config"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/persistence/replicated"
)

// Whatever another program has left, a start by this one names both versions and the program to
// run, and ends with 70. Nothing of it is called damaged, and nobody is told to restore or replace
// what is whole.
func TestAnOlderProgramNamesBothVersions(t *testing.T) {
	for _, x := range []struct {
		what, versions string
		start          func(t *testing.T) error
	}{
		{"Pebble's format", "of version 99 and this program reads version 21", pebbleWith(
			func(t *testing.T, dir string) {
				old := must(filepath.Glob(filepath.Join(dir, "marker.format-version.*")))[0]
				worked(t, os.Rename(old, strings.TrimSuffix(old, filepath.Ext(old))+".099"))
			})},
		{"HEAD", "of version 3 and this program reads version 2",
			pebbleWith(patched("HEAD.main", 7, 3))},
		{"a segment", "of version 2 and this program reads version 1",
			pebbleWith(patched("journal.main/00000001.journal", 15, 2))},
		{"a batch", "of version 4 and this program reads version 3", journalWith(0, 4)},
		{"an older batch", "of version 2 and this program reads version 3", journalWith(0, 2)},
		{"a batch's flags", "of flags 1 and this program reads flags 0", journalWith(1, 1)},
		{"a kind of record", "of kind 99 and this program reads kinds 1 to 33",
			journalWith(18, 99)},
		{"an image", "of version 99 and this program reads version 14", imageOf(99)},
		{"an older image", "of version 13 and this program reads version 14", imageOf(13)},
		{"a part of an archive", "of version 9 and this program reads version 3", archiveOf9},
		{"a backup", "of version 9 and this program reads version 2", backupOf9},
		{"a node's state", "of version 3 and this program reads version 2",
			nodeWith(stateOf(`"version":3`))},
		{"a node's state in another form", "of version 3 and this program reads version 2",
			nodeWith(stateOf(`"version":3,"term":"1"`))},
		{"a node's checkpoint", "of version 2 and this program reads version 1",
			nodeWith(patched("raft/CHECKPOINT", 7, '2'))},
		{"the state in a checkpoint", "of version 5 and this program reads version 4",
			nodeWith(func(t *testing.T, dir string) {
				patched("raft/CHECKPOINT", 32, 5)(t, dir)
				name := filepath.Join(dir, "raft/CHECKPOINT")
				b := must(os.ReadFile(name))
				binary.BigEndian.PutUint64(b[8:], xxhash.Sum64(b[16:]))
				worked(t, os.WriteFile(name, b, 0o600))
			})},
		{"a node's HEAD", "of version 3 and this program reads version 2",
			nodeWith(patched("raft/HEAD", 7, 3))},
		{"a node's log", "of version 2 and this program reads version 1",
			nodeWith(func(t *testing.T, dir string) {
				folder := filepath.Join(dir, "raft", "log")
				worked(t, os.MkdirAll(folder, 0o700))
				worked(t, os.WriteFile(filepath.Join(folder, "00000001.journal"),
					append([]byte("exchange\x00\x00\x00\x00\x00\x00\x00\x02"),
						make([]byte, 1<<16)...), 0o600))
			})},
		{"a cluster's format", "format 99 is applied, and this program reads formats up to 10",
			func(t *testing.T) error {
				return startFailed(t.Context(), fmt.Errorf("%w: format 99 is applied, and this "+
					"program reads formats up to 10", persistence.ErrFormat))
			}},
	} {
		err := x.start(t)
		if exitCode(err) != exitBroken {
			t.Errorf("%s: code %d: %v", x.what, exitCode(err), err)
			continue
		}
		said := err.Error()
		if !strings.Contains(said, x.versions) ||
			!strings.Contains(said, "run the newer program that wrote it") &&
				!strings.Contains(said, "this program is too old") &&
				!(strings.HasPrefix(x.what, "an older ") &&
					strings.Contains(said, "run the program that wrote it")) {
			t.Errorf("%s: %s", x.what, said)
		}
		for _, wrong := range []string{"corrupt", "amaged", "BUG", "estore a backup", "eplace this",
			"from a copy", "remove it", "unknown"} {
			if strings.Contains(said, wrong) {
				t.Errorf("%s is called %q: %s", x.what, wrong, said)
			}
		}
	}
}

// patched returns what changes one byte of a file.
func patched(name string, at int, to byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		name := filepath.Join(dir, filepath.FromSlash(name))
		b := must(os.ReadFile(name))
		b[at] = to
		worked(t, os.WriteFile(name, b, 0o600))
	}
}

// pebbleWith starts on an embedded store that was changed.
func pebbleWith(change func(t *testing.T, dir string)) func(*testing.T) error {
	return func(t *testing.T) error {
		cfg := &config.Config{Data: t.TempDir()}
		cfg.Store = "pebble:" + cfg.Data
		k := newKnown(cfg, false, slog.New(slog.DiscardHandler))
		s := must(k.openStore(t.Context()))
		tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
		worked(t, err)
		worked(t, s.Append(t.Context(), tok, 0, 1, oneRefusal(0)))
		worked(t, s.Close())
		change(t, cfg.Data)
		_, err = k.openStore(t.Context())
		return startFailed(t.Context(), err)
	}
}

// oneRefusal returns a batch of one record.
func oneRefusal(prev uint64) []byte {
	r := event.Record{Kind: event.KindRefusal}
	return event.EndBatch(r.Append(event.BeginBatch(nil)), 1, prev, 1)
}

// journalWith looks at a journal whose first batch has another byte, and a checksum that fits.
func journalWith(at int, to byte) func(*testing.T) error {
	return func(t *testing.T) error {
		b := oneRefusal(0)
		b[at] = to
		body := len(b) - crc32.Size
		binary.LittleEndian.PutUint32(b[body:],
			crc32.Checksum(b[:body], crc32.MakeTable(crc32.Castagnoli)))
		return looked(t, func(ctx context.Context, s persistence.Store,
			tok persistence.Token) error {
			return s.Append(ctx, tok, 0, 1, b)
		})
	}
}

// imageOf looks at a store whose newest snapshot is of another version.
func imageOf(version byte) func(*testing.T) error {
	return func(t *testing.T) error {
		image, at := state.New().AppendTo(nil), 0
		for ; state.Readable(append(bytes.Clone(image[:at]), 255)) == nil; at++ {
		}
		image[at] = version
		return looked(t, func(ctx context.Context, s persistence.Store,
			tok persistence.Token) error {
			return s.SaveSnapshot(ctx, tok, 0, bytes.NewReader(image))
		})
	}
}

// looked returns how a start ends that looks at a store with something newer.
func looked(t *testing.T, write func(context.Context, persistence.Store,
	persistence.Token) error) error {
	t.Helper()
	s := memory.Open(memory.NewDisk(), persistence.Retention{})
	tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	worked(t, err)
	worked(t, write(t.Context(), s, tok))
	_, err = committed.Look(t.Context(), s)
	return startFailed(t.Context(), err)
}

// newerStream returns a compressed stream that begins with a line.
func newerStream(line string) []byte {
	return must(zstd.NewWriter(nil)).EncodeAll([]byte(line+"\n"), nil)
}

func archiveOf9(t *testing.T) error {
	dir := t.TempDir()
	worked(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("journal-%020d-%020d.zst", 1, 2)),
		newerStream("exchange journal 9"), 0o600))
	cfg := &config.Config{Data: t.TempDir(), Archive: dir}
	a, err := newKnown(cfg, false, slog.New(slog.DiscardHandler)).openArchive()
	if err != nil {
		return err
	}
	return archiveUnfit(t.Context(), a.Fits(t.Context(), memory.Open(memory.NewDisk(),
		persistence.Retention{})))
}

func backupOf9(t *testing.T) error {
	file := filepath.Join(t.TempDir(), "exchange-1.backup")
	worked(t, os.WriteFile(file, newerStream("exchange backup 9"), 0o600))
	data := filepath.Join(t.TempDir(), "data")
	r := runLine(nil, "restore", file, "--demo", "--data", data, "--store", "pebble:"+data,
		"--without-authentication")
	return failf(r.code, "%s", r.errOut)
}

// nodeWith opens the log of a node's data folder that was changed.
func nodeWith(change func(t *testing.T, dir string)) func(*testing.T) error {
	return func(t *testing.T) error {
		dir := t.TempDir()
		worked(t, replicated.Found(dir, "c", "a", 0))
		survive := func() error {
			_, err := replicated.Survive(&replicated.Survival{Folder: dir, Cluster: "c", Node: "a"})
			return err
		}
		_ = survive() // makes the log's files, and says that the cluster has not begun
		change(t, dir)
		return startFailed(t.Context(), survive())
	}
}

// stateOf gives both copies of a node's STATE another content.
func stateOf(text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		name := filepath.Join(dir, "raft", "STATE")
		b := must(os.ReadFile(name))
		text := []byte("{" + text + "}")
		for at := 0; at < len(b); at += len(b) / 2 {
			binary.BigEndian.PutUint32(b[at:], uint32(len(text)))
			binary.BigEndian.PutUint64(b[at+4:], xxhash.Sum64(text))
			copy(b[at+12:], text)
		}
		worked(t, os.WriteFile(name, b, 0o600))
	}
}
