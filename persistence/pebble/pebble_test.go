package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/conformance"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Backend {
		return backend{t.TempDir() + "/data"}
	})
}

// backend is a folder.
type backend struct{ dir string }

func (b backend) Open(t *testing.T, r persistence.Retention) persistence.Store {
	t.Helper()
	s, err := Open(b.dir, Options{Retention: r, Logger: quiet})
	succeeds(t, err)
	return s
}

func (backend) DamageBatch(t *testing.T, s persistence.Store, next uint64) {
	changeRecord(t, s.(*Store), next, func(head, batch []byte) { batch[len(batch)-1] ^= 0x40 })
}

func (backend) LoseBatch(t *testing.T, s persistence.Store, next uint64) {
	changeRecord(t, s.(*Store), next, func(head, batch []byte) { clear(head) })
}

// changeRecord changes the record of the batch that ends at next in place; see
// persistence/internal/wal.
func changeRecord(t *testing.T, s *Store, next uint64, change func(head, batch []byte)) {
	t.Helper()
	const head = 40
	files, err := filepath.Glob(filepath.Join(s.dir, journalFolder+s.Engine(), "*.journal"))
	succeeds(t, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		succeeds(t, err)
		for at := 4096; at+head <= len(b); at += 8 {
			record, length := b[at:], int(binary.BigEndian.Uint32(b[at+8:]))
			if binary.BigEndian.Uint64(record[24:]) != next ||
				binary.BigEndian.Uint64(record[16:]) >= next || length == 0 ||
				at+head+length > len(b) {
				continue
			}
			change(record[:head], record[head:head+length])
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			succeeds(t, err)
			if _, err = f.WriteAt(record[:head+length], int64(at)); err != nil {
				t.Fatal(err)
			}
			succeeds(t, f.Close())
			return
		}
	}
	t.Fatalf("no batch ends at %d", next)
}

func (backend) DamageSnapshot(t *testing.T, s persistence.Store) {
	t.Helper()
	st := s.(*Store)
	img, err := st.image(*st.meta.Load(), 0)
	succeeds(t, err)
	flip(t, st, u32(st.chunks(img), img.Chunks-1), -1)
}

// flip changes one byte of a value; -1 is the last.
func flip(t *testing.T, s *Store, key []byte, at int) {
	t.Helper()
	v, err := s.get(s.db, key)
	if err != nil || len(v) == 0 {
		t.Fatalf("no value to damage: %v", err)
	}
	if at < 0 {
		at = len(v) - 1
	}
	v[at] ^= 0x40
	succeeds(t, s.db.Set(key, v, pebble.Sync))
}

func mustOpen(t *testing.T, dir string, opts Options) (*Store, persistence.Token, uint64) {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	s, err := Open(dir, opts)
	succeeds(t, err)
	t.Cleanup(func() { s.Close() })
	tok, last, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	succeeds(t, err)
	return s, tok, last
}

func TestSecondOpenInProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := mustOpen(t, dir, Options{})
	link := t.TempDir() + "/link"
	succeeds(t, os.Symlink(dir, link))
	for _, same := range []string{dir, dir + "/.", link} {
		_, err := Open(same, Options{Logger: quiet})
		if !errors.Is(err, persistence.ErrLocked) ||
			!strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
			t.Fatalf("%s: error is %v, want ErrLocked with our process id", same, err)
		}
	}
	succeeds(t, s.Close())
	mustOpen(t, dir, Options{})
}

func TestFolderIsPrivate(t *testing.T) {
	dir := t.TempDir() + "/a/b"
	s, _, _ := mustOpen(t, dir, Options{})
	fi, err := os.Stat(dir)
	succeeds(t, err)
	if fi.Mode().Perm() != 0o700 {
		t.Fatalf("permissions are %v", fi.Mode())
	}
	if s.String() != "pebble:"+dir {
		t.Fatalf("its name is %q", s)
	}
	var log bytes.Buffer
	wide := t.TempDir()
	succeeds(t, os.Chmod(wide, 0o755))
	mustOpen(t, wide, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), "0700") {
		t.Fatalf("no warning of a folder that others can read: %q", log.String())
	}
}

func TestTwoEnginesShareFolderInTurn(t *testing.T) {
	dir := t.TempDir()
	s, tok, _ := mustOpen(t, dir, Options{engine: "a"})
	succeeds(t, s.Append(t.Context(), tok, 0, 1, []byte("of a")))
	s.Close()
	s, _, last := mustOpen(t, dir, Options{engine: "b"})
	if last != 0 {
		t.Fatalf("engine b ends at %d", last)
	}
	s.Close()
	if _, err := Open(dir, Options{engine: "a{b}", Logger: quiet}); err == nil {
		t.Fatal("an engine id with braces was accepted")
	}
}

func TestClosedStoreReturnsErrors(t *testing.T) {
	s, tok, _ := mustOpen(t, t.TempDir(), Options{})
	succeeds(t, s.Close())
	succeeds(t, s.Close())
	for _, err := range []error{
		s.Append(t.Context(), tok, 0, 1, []byte("x")),
		s.Check(t.Context(), tok),
		s.Apply(t.Context(), tok, 0, 1, nil),
		s.Trades(t.Context(), persistence.TradeQuery{}, nil),
		s.SaveSnapshot(t.Context(), tok, 0, strings.NewReader("")),
	} {
		if !errors.Is(err, errClosed) {
			t.Fatalf("error is %v", err)
		}
	}
}

// All unsynced data is lost, as when the power fails. Acknowledged batches stay, and the watermark
// is never ahead of the journal.
func TestPowerLossKeepsAcknowledgedAppends(t *testing.T) {
	fs := vfs.NewCrashableMem()
	for round := range uint64(20) {
		s, tok, seq := mustOpen(t, "data", Options{files: fs})
		if seq != 7*round {
			t.Fatalf("round %d: the journal ends at %d, %d were acknowledged", round, seq, 7*round)
		}
		watermark, err := s.Watermark(t.Context())
		if err != nil || watermark > seq || watermark+8 < seq {
			t.Fatalf("round %d: the watermark is %d, the journal ends at %d (%v)", round, watermark,
				seq, err)
		}
		rows := 0
		if err := s.Trades(t.Context(),
			persistence.TradeQuery{}, func(*persistence.Trade) bool {
				rows++
				return true
			}); err != nil || uint64(rows) != watermark {
			t.Fatalf("round %d: %d trades at watermark %d (%v)", round, rows, watermark, err)
		}
		for range 7 {
			succeeds(t, s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")))
			seq++
			for ; watermark < seq; watermark++ {
				w := &persistence.Writes{Trades: []persistence.Trade{
					{ID: watermark + 1, Pair: 1, TakerSide: 1, Taker: 1, Maker: 2}}}
				succeeds(t, s.Apply(t.Context(), tok, watermark, watermark+1, w))
			}
			if seq%7 == 4 {
				succeeds(t, s.SaveSnapshot(t.Context(), tok, seq,
					bytes.NewReader(make([]byte, 300_000))))
			}
		}
		fs = fs.CrashClone(vfs.CrashCloneCfg{})
		s.Close()
	}
}

func TestDamagedHeadIsNamed(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := mustOpen(t, dir, Options{})
	flip(t, s, s.key(kindMeta), 0)
	s.Close()
	if _, err := Open(dir, Options{Logger: quiet}); !errors.Is(err, persistence.ErrCorrupt) {
		t.Fatalf("error is %v, want ErrCorrupt", err)
	}
}

func TestFolderOfOtherVersionIsNamed(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := mustOpen(t, dir, Options{})
	s.Close()
	name := filepath.Join(dir, versionFile)
	f := func(want string, kind error) {
		t.Helper()
		before := textsOf(t, dir)
		_, err := Open(dir, Options{Logger: quiet})
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if !maps.Equal(before, textsOf(t, dir)) {
			t.Errorf("%s: the folder was changed", want)
		}
	}
	for _, found := range []int{1, unnamed, version + 1} {
		succeeds(t, os.WriteFile(name, fmt.Appendln(nil, found), 0o600))
		f(fmt.Sprintf("it is of version %d and this program reads version %d", found, version),
			persistence.ErrVersion)
	}
	for _, text := range []string{"", "x", "0", "5 5"} {
		succeeds(t, os.WriteFile(name, []byte(text), 0o600))
		f("has no version of the folder", persistence.ErrCorrupt)
	}
	succeeds(t, os.Remove(name))
	f("it is of version 4 and this program reads version 5", persistence.ErrVersion)
}

// textsOf returns the files of a folder and their content.
func textsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	succeeds(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}))
	return all
}

// The file beside the journal stores the beginning of a restored journal.
func TestLostRestoredJournalIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, tok, _ := mustOpen(t, dir, Options{})
	empty := *s.meta.Load()
	succeeds(t, s.Begin(t.Context(), tok, 100))
	s.Close()
	s, _, last := mustOpen(t, dir, Options{})
	if last != 100 {
		t.Fatalf("the journal ends at %d, want 100", last)
	}
	s.changes.Lock()
	b := s.db.NewBatch()
	err := s.commit(b, empty, pebble.Sync) // the store as it was before
	s.changes.Unlock()
	succeeds(t, err, b.Close(), s.Close())
	if _, err := Open(dir, Options{Logger: quiet}); !errors.Is(err, persistence.ErrCorrupt) ||
		!strings.Contains(err.Error(), "100") {
		t.Fatalf("error is %v, want ErrCorrupt with 100", err)
	}
}

// A disk that is not mounted has no store, and a check creates none.
func TestAbsentReportsFolderWithoutStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	absent := func(want bool) {
		t.Helper()
		if got, err := Absent(dir); err != nil || got != want {
			t.Errorf("absent is %v, %v; want %v", got, err, want)
		}
	}
	absent(true)
	if err := os.Mkdir(dir, 0o700); err != nil { // fails if the check has made it
		t.Fatal(err)
	}
	absent(true)
	s, err := Open(dir, Options{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	absent(false)
}

// succeeds wants no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
