package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"exchange/actors/committed"
	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/persistence/replicated"
)

// Whatever another program version has left, a start names both versions and the program to run,
// ends with 70, and changes nothing. It calls nothing damaged, and does not ask for a restore.
func TestAnOlderProgramNamesBothVersions(t *testing.T) {
	for _, x := range []struct {
		what         string
		older, newer int // beside this program's version; -1: none
		start        func(t *testing.T, found int) error
	}{
		{"Pebble's format, 21", -1, 99, pebbleWith(func(t *testing.T, dir string, found int) {
			old := must(filepath.Glob(filepath.Join(dir, "marker.format-version.*")))[0]
			worked(t, os.Rename(old, fmt.Sprintf("%s.%03d",
				strings.TrimSuffix(old, filepath.Ext(old)), found)))
		})},
		{"a Pebble folder, 5", 4, 6, pebbleWith(func(t *testing.T, dir string, found int) {
			worked(t, os.WriteFile(filepath.Join(dir, "VERSION"), fmt.Appendln(nil, found), 0o600))
		})},
		{"a Pebble folder without VERSION, 5", 4, -1, pebbleWith(
			func(t *testing.T, dir string, _ int) {
				worked(t, os.Remove(filepath.Join(dir, "VERSION")))
			})},
		{"HEAD, 3", 2, 4, pebbleWith(patched("HEAD.main", 7))},
		{"a segment, 1", 0, 2, pebbleWith(patched("journal.main/00000001.journal", 15))},
		{"HEAD of a Redis, 3", 2, 4, redisWith},
		{"a batch, 4", 3, 5, journalWith(0)},
		{"a batch's flags, 0", -1, 1, journalWith(1)},
		{"a kind of record", 4, 99, journalWith(18)},
		{"an image", 14, 99, imageWith},
		{"a part of an archive, 4", 3, 9, archiveWith},
		{"a backup, 3", 2, 9, backupWith},
		{"a node's state, 3", 2, 4, nodeWith(stateOf(`"version":%d`))},
		{"a node's state in another form, 3", -1, 4, nodeWith(stateOf(`"version":%d,"term":"1"`))},
		{"a node's checkpoint, 1", 0, 2, nodeWith(
			func(t *testing.T, dir string, found int) {
				patched("raft/CHECKPOINT", 7)(t, dir, '0'+found)
			})},
		{"the state in a checkpoint, 5", 4, 6, nodeWith(checkpointWith(32))},
		{"the format of a state in a checkpoint, 11", 10, -1, nodeWith(checkpointWith(33))},
		{"a node's HEAD, 3", 2, 4, nodeWith(patched("raft/HEAD", 7))},
		{"a node's log, 1", 0, 2, nodeWith(func(t *testing.T, dir string, found int) {
			folder := filepath.Join(dir, "raft", "log")
			worked(t, os.MkdirAll(folder, 0o700))
			worked(t, os.WriteFile(filepath.Join(folder, "00000001.journal"),
				append([]byte("exchange\x00\x00\x00\x00\x00\x00\x00"+string(rune(found))),
					make([]byte, 1<<16)...), 0o600))
		})},
	} {
		// kinds of records and images belong to core, whose tests have the numbers that it reads
		what, reads, named := strings.Cut(x.what, ", ")
		if named {
			reads = " " + reads + "; "
		}
		for _, found := range []int{x.older, x.newer} {
			if found < 0 {
				continue
			}
			run := "run the program that wrote it"
			if found == x.newer {
				run = "run the newer program that wrote it"
			}
			err := x.start(t, found)
			refusesVersion(t, what, err, fmt.Sprintf(" %d and this program reads ", found),
				reads, run)
		}
	}
	refusesVersion(t, "a cluster's format", startFailed(t.Context(), fmt.Errorf("%w: format 99 is "+
		"applied, and this program reads formats up to 11", persistence.ErrFormat)),
		"this program is too old")
}

// refusesVersion wants an error of another version, with some texts.
func refusesVersion(t *testing.T, what string, err error, texts ...string) {
	t.Helper()
	if cli.ExitCode(err) != cli.ExitBroken {
		t.Errorf("%s: code %d: %v", what, cli.ExitCode(err), err)
		return
	}
	message := err.Error()
	for _, text := range texts {
		if !strings.Contains(message, text) {
			t.Errorf("%s: %s; want %q", what, message, text)
		}
	}
	for _, wrong := range []string{"corrupt", "amaged", "BUG", "estore a backup", "eplace this",
		"from a copy", "remove it", "unknown"} {
		if strings.Contains(message, wrong) {
			t.Errorf("%s is called %q: %s", what, wrong, message)
		}
	}
}

// unchanged returns how a start ends that must leave a folder as it is.
func unchanged(t *testing.T, dir string, start func() error) error {
	t.Helper()
	before := everythingIn(t, dir)
	err := start()
	if !maps.Equal(before, everythingIn(t, dir)) {
		t.Errorf("a start that ends with %v has changed %s", err, dir)
	}
	return err
}

// everythingIn returns the content of each file in a folder.
func everythingIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	worked(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[path] = ""
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = "file " + string(b)
		return err
	}))
	return all
}

// serves returns how `exchange serve` ends in a data folder.
func serves(t *testing.T, dir, store string) error {
	t.Helper()
	return unchanged(t, dir, func() error {
		r := runLine([]string{"EXCHANGE_DEMO=1", "EXCHANGE_LISTEN=127.0.0.1:0",
			"EXCHANGE_DATA=" + dir, "EXCHANGE_STORE=" + store}, "serve", "--log-level", "error")
		return failf(r.Code, "%s", r.ErrOut)
	})
}

// patched returns a function that changes one byte of a file.
func patched(name string, at int) func(*testing.T, string, int) {
	return func(t *testing.T, dir string, to int) {
		t.Helper()
		name := filepath.Join(dir, filepath.FromSlash(name))
		b := must(os.ReadFile(name))
		b[at] = byte(to)
		worked(t, os.WriteFile(name, b, 0o600))
	}
}

// pebbleWith starts on an embedded store that was changed.
func pebbleWith(change func(t *testing.T, dir string, to int)) func(*testing.T, int) error {
	return func(t *testing.T, to int) error {
		cfg := &config.Config{Data: t.TempDir()}
		cfg.Store = "pebble:" + cfg.Data
		k := newKnown(cfg, false, slog.New(slog.DiscardHandler))
		s := must(k.openStore(t.Context()))
		tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
		worked(t, err)
		worked(t, s.Append(t.Context(), tok, 0, 1, oneRefusal(0)))
		worked(t, s.Close())
		change(t, cfg.Data, to)
		worked(t, unchanged(t, cfg.Data, func() error {
			if _, err := k.openStore(t.Context()); !errors.Is(err, persistence.ErrVersion) {
				return fmt.Errorf("the store is opened: %w", err)
			}
			return nil
		}))
		return serves(t, cfg.Data, cfg.Store)
	}
}

// redisWith starts with a data folder that has a Redis's HEAD of another version.
func redisWith(t *testing.T, to int) error {
	dir := t.TempDir()
	worked(t, os.WriteFile(filepath.Join(dir, "HEAD.redis"), append([]byte("exHEAD\x00"+
		string(rune(to))), make([]byte, 24)...), 0o600))
	return serves(t, dir, "redis://127.0.0.1:1/0")
}

// oneRefusal returns a batch of one record.
func oneRefusal(prev uint64) []byte {
	r := event.Record{Kind: event.KindRefusal}
	return event.EndBatch(r.Append(event.BeginBatch(nil)), 1, prev, 1)
}

// journalWith opens a journal whose first batch has another byte, and a checksum that fits.
func journalWith(at int) func(*testing.T, int) error {
	return func(t *testing.T, to int) error {
		b := oneRefusal(0)
		b[at] = byte(to)
		body := len(b) - crc32.Size
		binary.LittleEndian.PutUint32(b[body:],
			crc32.Checksum(b[:body], crc32.MakeTable(crc32.Castagnoli)))
		return opened(t, func(ctx context.Context, s persistence.Store,
			tok persistence.Token) error {
			return s.Append(ctx, tok, 0, 1, b)
		})
	}
}

// imageWith opens a store whose newest snapshot is of another version.
func imageWith(t *testing.T, version int) error {
	image, at := state.New().AppendTo(nil), 0
	for ; state.Readable(append(bytes.Clone(image[:at]), 255)) == nil; at++ {
	}
	image[at] = byte(version)
	return opened(t, func(ctx context.Context, s persistence.Store, tok persistence.Token) error {
		return s.SaveSnapshot(ctx, tok, 0, bytes.NewReader(image))
	})
}

// opened returns how a start ends on a store with data of another version.
func opened(t *testing.T, write func(context.Context, persistence.Store,
	persistence.Token) error) error {
	t.Helper()
	s := memory.Open(memory.NewDisk(), persistence.Retention{})
	tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	worked(t, err)
	worked(t, write(t.Context(), s, tok))
	_, err = committed.NewPreview(t.Context(), s)
	return startFailed(t.Context(), err)
}

// beginning returns a compressed stream that begins with a line.
func beginning(kind string, version int) []byte {
	return must(zstd.NewWriter(nil)).EncodeAll(fmt.Appendf(nil, "exchange %s %d\n", kind, version),
		nil)
}

func archiveWith(t *testing.T, version int) error {
	dir := t.TempDir()
	worked(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("journal-%020d-%020d.zst", 1, 2)),
		beginning("journal", version), 0o600))
	cfg := &config.Config{Data: t.TempDir(), Archive: dir}
	return unchanged(t, dir, func() error {
		a, err := newKnown(cfg, false, slog.New(slog.DiscardHandler)).openArchive()
		if err != nil {
			return err
		}
		return archiveUnfit(t.Context(), a.Fits(t.Context(), memory.Open(memory.NewDisk(),
			persistence.Retention{})))
	})
}

func backupWith(t *testing.T, version int) error {
	dir := t.TempDir()
	file, data := filepath.Join(dir, "exchange-1.backup"), filepath.Join(dir, "data")
	worked(t, os.WriteFile(file, beginning("backup", version), 0o600))
	return unchanged(t, dir, func() error {
		r := runLine(nil, "restore", file, "--demo", "--data", data, "--store", "pebble:"+data,
			"--without-authentication")
		return failf(r.Code, "%s", r.ErrOut)
	})
}

// nodeWith starts on a node's data folder that was changed.
func nodeWith(change func(t *testing.T, dir string, to int)) func(*testing.T, int) error {
	return func(t *testing.T, to int) error {
		cfg := &config.Config{Data: t.TempDir()}
		cfg.Store = "pebble:" + cfg.Data
		worked(t, replicated.Found(cfg.Data, "c", "a", 0))
		change(t, cfg.Data, to)
		return unchanged(t, cfg.Data, func() error {
			held, err := holdFolder(cfg)
			if err == nil {
				worked(t, held.Release())
			}
			return err
		})
	}
}

// checkpointWith changes one byte of a checkpoint, and its checksum.
func checkpointWith(at int) func(*testing.T, string, int) {
	return func(t *testing.T, dir string, to int) {
		t.Helper()
		patched("raft/CHECKPOINT", at)(t, dir, to)
		name := filepath.Join(dir, "raft/CHECKPOINT")
		b := must(os.ReadFile(name))
		binary.BigEndian.PutUint64(b[8:], xxhash.Sum64(b[16:]))
		worked(t, os.WriteFile(name, b, 0o600))
	}
}

// stateOf gives both copies of a node's STATE another content.
func stateOf(form string) func(*testing.T, string, int) {
	return func(t *testing.T, dir string, to int) {
		t.Helper()
		name := filepath.Join(dir, "raft", "STATE")
		b := must(os.ReadFile(name))
		text := fmt.Appendf(nil, "{"+form+"}", to)
		for at := 0; at < len(b); at += len(b) / 2 {
			binary.BigEndian.PutUint32(b[at:], uint32(len(text)))
			binary.BigEndian.PutUint64(b[at+4:], xxhash.Sum64(text))
			copy(b[at+12:], text)
		}
		worked(t, os.WriteFile(name, b, 0o600))
	}
}
