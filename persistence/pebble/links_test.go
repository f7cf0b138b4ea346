package pebble

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/persistence"
)

const tradesOfOne = 500 // of each Apply here

// Tests try one of this many damages; with the tag prove, all.
var oneOf = 4

// lossy returns a folder with several files of Pebble's log, and the number of its acknowledged
// batches.
func lossy(t *testing.T) (dir string, last uint64) {
	t.Helper()
	dir = t.TempDir() + "/data"
	s, tok, seq := mustOpen(t, dir, Options{})
	for range 70 {
		seq = oneMore(t, s, tok, seq)
		if seq == 10 || seq == 20 || seq == 30 {
			succeeds(t, s.SaveSnapshot(t.Context(), tok, seq, strings.NewReader("an image")))
			succeeds(t, s.Trim(t.Context(), tok, seq-10))
		}
	}
	s.sync()
	succeeds(t, s.Close())
	return dir, seq
}

func oneMore(t *testing.T, s *Store, tok persistence.Token, seq uint64) uint64 {
	t.Helper()
	succeeds(t, s.Append(t.Context(), tok, seq, seq+1, make([]byte, 20_000)))
	succeeds(t, s.Apply(t.Context(), tok, seq, seq+1, trades(seq, tradesOfOne)))
	return seq + 1
}

// copied returns a copy of a folder. An open store may remove files meanwhile: then the folder is
// copied again.
func copied(t *testing.T, dir string) string {
	t.Helper()
	for {
		to := t.TempDir() + "/data"
		err := os.CopyFS(to, os.DirFS(dir))
		if err == nil {
			return to
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// judge opens a folder in which a file is missing. The folder is refused as damaged, or its data is
// whole up to the watermark, with the journal after that. judge reports whether the folder was
// refused.
func judge(t *testing.T, what, dir string, last uint64) (refused bool) {
	t.Helper()
	s, err := Open(dir, Options{Logger: quiet})
	if err != nil {
		unnamed := strings.Contains(what, "without "+versionFile) &&
			errors.Is(err, persistence.ErrVersion)
		if !unnamed && (!errors.Is(err, persistence.ErrCorrupt) ||
			!strings.Contains(err.Error(), "restore a backup")) {
			t.Errorf("%s: refused with %v", what, err)
		}
		return true
	}
	defer s.Close()
	watermark, err := s.Watermark(t.Context())
	succeeds(t, err)
	rows := uint64(0)
	err = s.Trades(t.Context(), persistence.TradeQuery{Ascending: true},
		func(r *persistence.Trade) bool {
			rows++
			return r.ID == rows
		})
	if err != nil || rows != watermark*tradesOfOne {
		t.Errorf("%s: %d trades are listed, the watermark is %d: %v", what, rows, watermark, err)
	}
	newest := uint64(0)
	if at, r, err := s.LoadSnapshot(t.Context(), 0); err == nil {
		newest = at
		r.Close()
	}
	from := newest
	err = s.Read(t.Context(), newest,
		func(_, next uint64, _ []byte) error { from = next; return nil })
	if errors.Is(err, persistence.ErrCorrupt) {
		return true // a start of the exchange reads it
	}
	if err != nil || from != last {
		t.Errorf("%s: the journal leads from %d to %d, want %d: %v", what, newest, from, last, err)
	}
	return false
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	succeeds(t, err)
	return names
}

func TestFolderWithMissingFileIsRefusedOrWhole(t *testing.T) {
	dir, last := lossy(t)
	refused := map[string]int{}
	for _, name := range filesOf(t, dir) {
		c := copied(t, dir)
		succeeds(t, os.Remove(filepath.Join(c, name)))
		if judge(t, "without "+name, c, last) {
			refused[strings.Trim(filepath.Ext(name), ".0123456789")]++
		}
	}
	if refused["log"] < 1 || refused["sst"] < 1 || refused["MANIFEST-"]+refused[""] < 1 ||
		refused["journal"] < 2 {
		t.Errorf("refused files: %v", refused)
	}
}

// A start continues from the newest image, and would not read the files that the older one needs.
func TestMissingSegmentOfOlderImageIsDetected(t *testing.T) {
	dir, _ := lossy(t)
	files, err := filepath.Glob(filepath.Join(dir, journalFolder+"main", "*.journal"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	succeeds(t, os.Remove(files[0]))
	if _, err := Open(dir, Options{Logger: quiet}); !errors.Is(err, persistence.ErrCorrupt) ||
		!strings.Contains(err.Error(), "the part before") {
		t.Fatalf("error is %v, want ErrCorrupt", err)
	}
}

// The file that names the list of tables in use is missing: Pebble would create a new store, with
// the first epoch and without projections.
func TestFolderWithoutTableListMarkerIsRefused(t *testing.T) {
	dir := t.TempDir() + "/data"
	s, tok, seq := mustOpen(t, dir, Options{})
	oneMore(t, s, tok, seq)
	succeeds(t, s.Close())
	files, err := filepath.Glob(dir + "/marker.manifest.*")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	succeeds(t, os.Remove(files[0]))
	if _, err := Open(dir, Options{Logger: quiet}); !errors.Is(err, persistence.ErrCorrupt) {
		t.Fatalf("error is %v, want ErrCorrupt", err)
	}
}

// Two files at once, and files that are cut off, mostly within one write.
func TestFolderWithTruncatedFilesIsRefusedOrWhole(t *testing.T) {
	dir, last := lossy(t)
	names := filesOf(t, dir)
	random := rand.New(rand.NewPCG(7, 9))
	refused, tries := 0, 40/oneOf
	for range tries {
		c := copied(t, dir)
		var what []string
		for range 1 + random.IntN(2) {
			name := names[random.IntN(len(names))]
			info, err := os.Stat(filepath.Join(c, name))
			if err != nil {
				continue // removed already
			}
			if strings.HasPrefix(name, headFile) {
				continue // without it nothing reveals that the end of the journal is missing
			}
			if random.IntN(3) == 0 {
				err = os.Remove(filepath.Join(c, name))
				what = append(what, "without "+name)
			} else {
				to := random.Int64N(info.Size() + 1)
				err = os.Truncate(filepath.Join(c, name), to)
				what = append(what, fmt.Sprintf("%s cut off at %d of %d", name, to, info.Size()))
			}
			succeeds(t, err)
		}
		if judge(t, strings.Join(what, ", "), c, last) {
			refused++
		}
	}
	if refused < tries/8 {
		t.Errorf("%d were refused", refused)
	}
}

// The list of tables, cut off at any place.
func TestFolderWithTruncatedTableListIsRefusedOrWhole(t *testing.T) {
	dir, last := lossy(t)
	files, err := filepath.Glob(dir + "/MANIFEST-*")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	succeeds(t, err)
	for n := 0; n < len(whole); n += 11 * oneOf {
		c := copied(t, dir)
		succeeds(t, os.WriteFile(filepath.Join(c, filepath.Base(files[0])), whole[:n], 0o600))
		judge(t, fmt.Sprintf("the list of tables cut off at %d of %d", n, len(whole)), c, last)
	}
}

// An older version of a file is put back.
func TestFolderWithOlderFileIsRefusedOrWhole(t *testing.T) {
	dir := t.TempDir() + "/data"
	s, tok, seq := mustOpen(t, dir, Options{})
	var older []string
	for range 60 {
		seq = oneMore(t, s, tok, seq)
		if seq%15 == 0 {
			succeeds(t, s.SaveSnapshot(t.Context(), tok, seq, strings.NewReader("an image")))
			older = append(older, copied(t, dir))
		}
	}
	s.sync()
	succeeds(t, s.Close())
	refused := 0
	for _, from := range older[:len(older)-1] {
		for _, name := range filesOf(t, from) {
			if strings.HasPrefix(name, headFile) {
				continue
			}
			b, err := os.ReadFile(filepath.Join(from, name))
			succeeds(t, err)
			c := copied(t, dir)
			succeeds(t, os.WriteFile(filepath.Join(c, name), b, 0o600))
			if judge(t, "an older "+name, c, seq) {
				refused++
			}
		}
	}
	if refused < 3 {
		t.Errorf("%d were refused", refused)
	}
}

// The data folder of an exchange on Redis may become that of a Pebble store, as after restoring a
// backup into the other kind of store.
func TestStoreIsCreatedBesideRedisFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HEAD.redis", "exchange.key", "owner.id", "serve.lock",
		"operator.token"} {
		succeeds(t, os.WriteFile(filepath.Join(dir, name),
			[]byte("a file of an exchange on Redis"), 0o600))
	}
	s, tok, seq := mustOpen(t, dir, Options{})
	oneMore(t, s, tok, seq)
	succeeds(t, s.Close())
	mustOpen(t, dir, Options{})
}
