package archive

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"exchange/persistence"
	"exchange/persistence/memory"
)

// fresh makes an empty store, which is closed when its scope ends.
func fresh(s scope) persistence.Store {
	store := memory.Open(memory.NewDisk(), persistence.Retention{})
	s.Cleanup(func() { store.Close() })
	return store
}

// A scope is a test, or one run of a property.
type scope interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

func tempDir(s scope) string {
	dir, err := os.MkdirTemp("", "exchange-archive-")
	succeeds(s, err)
	s.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A batch is one of a journal.
type batch struct {
	prev, next uint64
	data       string
}

// A world is a journal with its archive, and the expected content of both.
type world struct {
	scope
	ctx     context.Context
	journal persistence.Store
	token   persistence.Token
	archive *Archive
	all     []batch
}

func newWorld(s scope, journal persistence.Store) *world {
	s.Helper()
	w := &world{scope: s, ctx: context.Background(), journal: journal}
	var err error
	w.token, _, err = journal.Acquire(w.ctx, persistence.Claim{Owner: "test"})
	w.must(err)
	w.archive, err = Open(filepath.Join(tempDir(s), "archive"))
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	succeeds(w.scope, err)
}

// fails wants an error of one kind whose text has all words.
func (w *world) fails(err, want error, words ...string) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("error is %v, want %v", err, want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.Fatalf("%q does not say %q", err, word)
		}
	}
}

func (w *world) end() uint64 {
	if n := len(w.all); n > 0 {
		return w.all[n-1].next
	}
	return 0
}

func (w *world) append(records uint64, data string) {
	w.Helper()
	prev := w.end()
	w.must(w.journal.Append(w.ctx, w.token, prev, prev+records, []byte(data)))
	w.all = append(w.all, batch{prev, prev + records, data})
}

// save wants the start of the archive's last batch, or upTo, as the answer.
func (w *world) save(upTo uint64) {
	w.Helper()
	trim, err := w.archive.Save(w.ctx, w.journal, testKey, testHistory, upTo)
	w.must(err)
	_, last, err := bounds(w.archive)
	w.must(err)
	if want := min(upTo, w.startOf(last)); trim != want {
		w.Fatalf("the journal may be trimmed to %d, want %d", trim, want)
	}
}

// saveFails wants Save to fail, and to change nothing.
func (w *world) saveFails(upTo uint64, want error, words ...string) {
	w.Helper()
	before := w.names()
	trim, err := w.archive.Save(w.ctx, w.journal, testKey, testHistory, upTo)
	w.fails(err, want, words...)
	if after := w.names(); trim != 0 || !slices.Equal(before, after) {
		w.Fatalf("the journal may be trimmed to %d; there were %v and are %v", trim, before, after)
	}
}

// startOf returns the sequence before the batch that ends at a sequence.
func (w *world) startOf(next uint64) uint64 {
	for _, b := range w.all {
		if b.next == next {
			return b.prev
		}
	}
	return 0
}

func (w *world) read(after uint64) (all []batch, err error) {
	err = w.archive.Under(testKey).Read(w.ctx, after, func(prev, next uint64, data []byte) error {
		all = append(all, batch{prev, next, string(data)})
		return nil
	})
	return all, err
}

// wantUpTo wants all batches that end up to a sequence in the archive, and no others.
func (w *world) wantUpTo(upTo uint64) {
	w.Helper()
	var want []batch
	for _, b := range w.all {
		if b.next <= upTo {
			want = append(want, b)
		}
	}
	got, err := w.read(0)
	w.must(err)
	if !slices.Equal(got, want) {
		w.Fatalf("the archive has %d batches, %v, want %d up to record %d", len(got), short(got),
			len(want), upTo)
	}
	var first, last uint64
	if len(want) > 0 {
		first, last = 1, want[len(want)-1].next
	}
	if f, l, err := bounds(w.archive); err != nil || f != first || l != last {
		w.Fatalf("its bounds are %d and %d (%v), want %d and %d", f, l, err, first, last)
	}
}

func short(list []batch) (text []string) {
	for _, b := range list[max(0, len(list)-5):] {
		text = append(text, fmt.Sprintf("(%d, %d] %d bytes", b.prev, b.next, len(b.data)))
	}
	return text
}

func (w *world) reopen() {
	w.Helper()
	a, err := Open(w.archive.Dir())
	w.must(err)
	a.part = w.archive.part
	w.archive = a
}

// names returns the names of the files in the archive's folder.
func (w *world) names() (names []string) {
	w.Helper()
	entries, err := os.ReadDir(w.archive.Dir())
	w.must(err)
	for _, e := range entries {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestArchiveContinuesAfterReopening(t *testing.T) {
	w := newWorld(t, fresh(t))
	w.wantUpTo(0)
	w.save(0)
	for _, n := range []uint64{1, 3, 2} {
		w.append(n, fmt.Sprint("batch of ", n))
	}
	w.save(4)
	w.wantUpTo(4)
	w.save(4) // again
	w.save(1) // and records that are archived already
	w.wantUpTo(4)
	if got := w.names(); !slices.Equal(got,
		[]string{"journal-00000000000000000001-00000000000000000004.zst"}) {
		t.Fatalf("there are %v", got)
	}
	if info, err := os.Stat(filepath.Join(w.archive.Dir(), w.names()[0])); err != nil ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("a part: %v, %v", info, err)
	}
	w.must(w.journal.Trim(w.ctx, w.token, 1))
	w.reopen()
	w.must(w.archive.Fits(w.ctx, w.journal))
	w.append(10, "more")
	w.save(5) // no batch ends there
	w.wantUpTo(4)
	w.save(16)
	w.wantUpTo(16)
	if got := w.names(); len(got) != 2 ||
		got[1] != "journal-00000000000000000005-00000000000000000016.zst" {
		t.Fatalf("there are %v", got)
	}
	for after, want := range map[uint64]int{1: 3, 2: 3, 4: 2, 6: 1, 15: 1, 16: 0, 20: 0} {
		if got, err := w.read(after); err != nil || len(got) != want {
			t.Errorf("after %d there are %v (%v), want %d", after, short(got), err, want)
		}
	}
	enough := errors.New("enough")
	err := w.archive.Read(w.ctx, 0, func(uint64, uint64, []byte) error { return enough })
	if err != enough { //nolint:errorlint // the very error, not one that wraps it
		t.Errorf("a reader that has enough gets %v", err)
	}
	ended, cancel := context.WithCancel(w.ctx)
	cancel()
	err = w.archive.Read(ended, 0, func(uint64, uint64, []byte) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a reader whose time is up gets %v", err)
	}
}

// The archive equals the journal, for any batches, and any order of saving, trimming and opening.
func TestArchiveEqualsJournal(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		defer f.Value.Set(f.DefValue) //nolint:errcheck // it is its own default
		succeeds(t, f.Value.Set("15"))
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, fresh(rt))
		w.archive.part = rapid.SampledFrom([]int{1, 500, 5000, fileBytes}).Draw(rt, "part")
		saved := uint64(0)
		trim := func() uint64 { return w.startOf(saved) }
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				if len(w.all) > 0 {
					upTo := rapid.SampledFrom(w.all).Draw(rt, "up to").next
					w.save(upTo)
					saved = max(saved, upTo)
					w.wantUpTo(saved)
				}
			case 1:
				w.must(w.journal.Trim(w.ctx, w.token, trim()))
			case 2:
				w.reopen()
				w.must(w.archive.Fits(w.ctx, w.journal))
			default:
				text := make([]byte, rapid.IntRange(1, 2000).Draw(rt, "size"))
				if rapid.Bool().Draw(rt, "random") { // else it is compressed well
					seed := rapid.Uint64().Draw(rt, "seed")
					random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
					random.Read(text)
				}
				w.append(rapid.Uint64Range(1, 20).Draw(rt, "records"), string(text))
			}
		}
		w.wantUpTo(saved)
		w.save(w.end())
		w.wantUpTo(w.end())
	})
}

// An archive is continued from the journal that it was made from, and from no other journal, even
// at equal sequences.
func TestOtherJournalDoesNotContinueArchive(t *testing.T) {
	f := func(w *world, words ...string) {
		t.Helper()
		w.fails(w.archive.Fits(w.ctx, w.journal), ErrOther, append(words, w.archive.Dir())...)
		// batches that the archive has already, too
		for _, upTo := range []uint64{0, 5, w.end(), 1 << 40} {
			w.saveFails(upTo, ErrOther, words...)
		}
	}
	w := newWorld(t, fresh(t)) // it was not there for some time
	w.append(5, "first")
	w.append(5, "second")
	w.save(5)
	old := w.archive
	w.must(w.archive.Fits(w.ctx, w.journal))
	w.append(5, "third")
	w.must(w.journal.Trim(w.ctx, w.token, 10))
	f(w, "ends at record 5", "starts at 10")

	w = newWorld(t, fresh(t)) // an older state
	w.archive = old
	w.append(2, "first")
	f(w, "ends at record 5", "other records there")

	w = newWorld(t, fresh(t)) // another exchange, which is longer
	w.archive = old
	w.append(5, "FIRST")
	for range 5 {
		w.append(5, "more")
	}
	f(w, "ends at record 5", "other records there")

	w = newWorld(t, fresh(t)) // and one whose batches end elsewhere
	w.archive = old
	for range 10 {
		w.append(3, "first")
	}
	f(w, "ends at record 5", "other records there")

	w = newWorld(t, fresh(t)) // nothing
	w.archive = old
	f(w, "ends at record 5", "no record after 0")

	// A store that was restored, and one that continued for a while without the archive.
	for _, at := range []uint64{0, 3, 5, 8} {
		w = newWorld(t, fresh(t))
		if at > 0 {
			w.must(w.journal.Begin(w.ctx, w.token, at))
		}
		w.all = []batch{{0, at, ""}}
		w.archive = old
		f(w, "ends at record 5")
		for range 4 {
			w.append(5, "since the restore")
		}
		f(w, "ends at record 5")
		w.must(w.journal.Trim(w.ctx, w.token, at+10))
		f(w, "ends at record 5")
	}
	w.reopen()
	w.all = []batch{{0, 5, "first"}}
	w.wantUpTo(5)
}

// A store without its first records is archived from its older snapshot on.
func TestLateArchiveBeginsWithState(t *testing.T) {
	ways := map[string]func(w *world){
		"trimmed": func(w *world) {
			w.append(5, "forgotten")
			w.append(5, "forgotten too")
			w.snapshot("the state at 10")
			w.append(5, "third")
			w.snapshot("the state at 15")
			w.must(w.journal.Trim(w.ctx, w.token, 10))
		},
		"restored": func(w *world) {
			w.must(w.journal.Begin(w.ctx, w.token, 10))
			w.all = []batch{{0, 10, ""}}
			w.snapshot("the state at 10")
			w.must(w.archive.Fits(w.ctx, w.journal))
			// no record yet identifies the journal
			w.saveNothing(10)
			w.append(5, "third")
		},
	}
	for what, begin := range ways {
		w := newWorld(t, fresh(t))
		begin(w)
		w.must(w.archive.Fits(w.ctx, w.journal))
		w.saveNothing(0)
		trim, err := w.archive.Save(w.ctx, w.journal, testKey, testHistory, 10)
		w.must(err)
		if got := w.names(); trim != 10 || !slices.Equal(got, []string{partName(11, 15)}) {
			t.Fatalf("%s: there are %v, and the journal may be trimmed to %d", what, got, trim)
		}
		w.must(w.journal.Trim(w.ctx, w.token, trim))
		w.reopen()
		w.must(w.archive.Fits(w.ctx, w.journal))
		w.append(1, "fourth")
		w.append(1, "fifth")
		w.save(16)
		if seq, image, err := w.archive.Base(w.ctx); err != nil || seq != 10 ||
			string(image) != "the state at 10" {
			t.Fatalf("%s: it begins with %q at %d, %v", what, image, seq, err)
		}
		got, err := w.read(10)
		if want := []batch{{10, 15, "third"}, {15, 16, "fourth"}}; err != nil ||
			!slices.Equal(got, want) {
			t.Fatalf("%s: it has %v, %v, want %v", what, got, err, want)
		}
		_, err = w.read(9)
		w.fails(err, persistence.ErrCorrupt, "begins at record 11")
	}

	w := newWorld(t, fresh(t)) // half a restore
	w.must(w.journal.Begin(w.ctx, w.token, 10))
	w.saveFails(10, persistence.ErrNoSnapshot, "nor with a snapshot")
}

// A state may be longer than a piece, and than a part.
func TestStateLongerThanPartIsArchivedWhole(t *testing.T) {
	l := &list{image: make([]byte, 3*maxPiece+17), at: 10}
	rand.NewChaCha8([32]byte{7}).Read(l.image)
	w := newWorld(t, l)
	w.archive.part = maxPiece
	w.all = []batch{{0, 10, ""}}
	for range 3 {
		w.append(5, "batch")
	}
	w.save(20)
	if got, want := w.names(), []string{partName(11, 15), partName(16, 20)}; !slices.Equal(got,
		want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	if seq, image, err := w.archive.Base(w.ctx); err != nil || seq != 10 ||
		!bytes.Equal(image, l.image) {
		t.Errorf("it begins with %d bytes at %d, %v", len(image), seq, err)
	}
	l.imageFails = errors.New("the store is gone")
	w.must(os.RemoveAll(w.archive.Dir()))
	w.reopen()
	w.saveFails(20, l.imageFails, "snapshot")
}

// snapshot publishes an image at the journal's end.
func (w *world) snapshot(image string) {
	w.Helper()
	at, err := w.journal.Watermark(w.ctx)
	w.must(err)
	w.must(w.journal.Apply(w.ctx, w.token, at, w.end(), &persistence.Writes{}))
	w.must(w.journal.SaveSnapshot(w.ctx, w.token, w.end(), strings.NewReader(image)))
}

// saveNothing wants Save to write nothing, and to allow no trimming.
func (w *world) saveNothing(upTo uint64) {
	w.Helper()
	trim, err := w.archive.Save(w.ctx, w.journal, testKey, testHistory, upTo)
	w.must(err)
	if got := w.names(); trim != 0 || len(got) > 0 {
		w.Fatalf("there are %v, and the journal may be trimmed to %d", got, trim)
	}
}

func TestArchiveHasOneWriter(t *testing.T) {
	w := newWorld(t, &list{})
	w.append(5, "batch")
	unlock, err := lock(w.archive.Dir())
	w.must(err)
	left := filepath.Join(w.archive.Dir(), unfinished+"of-the-other")
	w.must(os.WriteFile(left, []byte("half of it"), 0o600))
	w.saveFails(5, errLocked, w.archive.Dir())
	if _, err := os.Stat(left); err != nil {
		t.Errorf("another process's unfinished part was removed: %v", err)
	}
	w.must(w.archive.Fits(w.ctx, w.journal)) // readers are not locked out
	unlock()
	w.save(5)
	w.wantUpTo(5)
}

func TestLateArchiveWithoutStateIsRefused(t *testing.T) {
	w := newWorld(t, &list{})
	w.archive.part = 1
	for range 3 {
		w.append(5, "batch")
	}
	w.save(15)
	w.must(os.Remove(filepath.Join(w.archive.Dir(), w.names()[0])))
	_, err := w.read(0)
	w.fails(err, persistence.ErrCorrupt, "begins at record 6")
	_, err = w.read(4)
	w.fails(err, persistence.ErrCorrupt, "begins at record 6")
	_, err = w.read(5)
	w.fails(err, persistence.ErrCorrupt, "the parts before record 6 are missing")
	_, _, err = w.archive.Base(w.ctx)
	w.fails(err, persistence.ErrCorrupt, "the parts before record 6 are missing")
	_, err = w.read(10)
	w.must(err)
}

// A list is a journal in memory, for tests that do not depend on the store. It fails at a given
// place.
type list struct {
	persistence.Store
	all        []batch
	breaks     int // Read fails after that many batches, if it is not 0
	failure    error
	image      []byte // a snapshot at a sequence, where the journal begins
	at         uint64
	imageFails error
}

func (l *list) LoadSnapshot(context.Context, int) (uint64, io.ReadCloser, error) {
	if l.imageFails != nil {
		return l.at, io.NopCloser(io.MultiReader(bytes.NewReader(l.image[:len(l.image)/2]),
			iotest.ErrReader(l.imageFails))), nil
	}
	return l.at, io.NopCloser(bytes.NewReader(l.image)), nil
}

func (l *list) Engine() string { return "main" }

func (l *list) Acquire(context.Context, persistence.Claim) (persistence.Token, uint64, error) {
	return "1:x", 0, nil
}

func (l *list) Append(_ context.Context, _ persistence.Token, prev, next uint64,
	data []byte) error {
	l.all = append(l.all, batch{prev, next, string(data)})
	return nil
}

func (l *list) Read(_ context.Context, after uint64, fn func(prev, next uint64,
	data []byte) error) error {
	n := 0
	if after < l.at {
		return fmt.Errorf("%w: it starts at %d", persistence.ErrCorrupt, l.at)
	}
	for _, b := range l.all {
		if b.next <= after {
			continue
		}
		if n++; l.breaks > 0 && n > l.breaks {
			return l.failure
		}
		if err := fn(b.prev, b.next, []byte(b.data)); err != nil {
			return err
		}
	}
	return nil
}

func TestInterruptedWriteLeavesNoPart(t *testing.T) {
	l := &list{}
	w := newWorld(t, l)
	for i := range 10 {
		w.append(1, fmt.Sprint("batch ", i))
	}
	l.breaks, l.failure = 5, errors.New("the store is gone")
	w.saveFails(10, l.failure)
	// A crash's leftovers do not count as parts, and the next Save removes them.
	left := filepath.Join(w.archive.Dir(), unfinished+"123")
	w.must(os.WriteFile(left, []byte("half of it"), 0o600))
	w.reopen()
	w.wantUpTo(0)
	l.breaks = 0
	w.save(5)
	w.wantUpTo(5)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the rest of a crash is still there: %v", err)
	}
	// Parts that were whole before the journal failed stay.
	l.breaks, w.archive.part = 3, 1
	_, err := w.archive.Save(w.ctx, w.journal, testKey, testHistory, 10)
	w.fails(err, l.failure)
	w.wantUpTo(7)
	// A folder that takes no files.
	l.breaks = 0
	w.must(os.RemoveAll(w.archive.Dir()))
	if _, err := w.archive.Save(w.ctx, w.journal, testKey, testHistory, 10); err == nil ||
		!strings.Contains(err.Error(), w.archive.Dir()) {
		t.Errorf("without a folder: %v", err)
	}
	if n := w.archive.Failures(); n != 2 { // since it was opened again
		t.Errorf("%d calls of Save have failed, want 2", n)
	}
}

func TestJournalWithGapIsNotArchived(t *testing.T) {
	l := &list{}
	w := newWorld(t, l)
	w.append(5, "batch")
	w.append(5, "batch")
	l.all = append(l.all, batch{12, 15, "after a hole"})
	w.saveFails(15, persistence.ErrCorrupt, "(12, 15]")
	w.wantUpTo(0)
	l.all = slices.Delete(l.all, 0, 1) // the beginning is missing
	w.saveFails(15, persistence.ErrCorrupt, "(5, 10]")
	w.wantUpTo(0)
}

// damaged is an archive of several parts that a test damages.
type damaged struct {
	*world
	whole []batch  // the parts' content
	parts []string // their names
}

func newDamaged(t *testing.T) *damaged {
	w := newWorld(t, &list{})
	w.archive.part = 40
	for i := range 12 {
		w.append(uint64(1+i%3), strings.Repeat(fmt.Sprint("batch ", i, " "), 2))
	}
	w.save(w.end())
	d := &damaged{world: w, whole: w.all, parts: w.names()}
	if len(d.parts) < 3 {
		t.Fatalf("there are %v", d.parts)
	}
	return d
}

func (d *damaged) path(name string) string { return filepath.Join(d.archive.Dir(), name) }

// found checks that a read reports damage, and passes on only correct batches before it.
func (d *damaged) found(damage string) {
	d.Helper()
	got, err := d.read(0)
	if !errors.Is(err, persistence.ErrCorrupt) && !errors.Is(err, persistence.ErrNoKey) ||
		!strings.Contains(err.Error(), d.archive.Dir()) {
		d.Fatalf("%s: %v", damage, err)
	}
	if !slices.Equal(got, d.whole[:len(got)]) {
		d.Fatalf("%s: the batches handed out are %v", damage, short(got))
	}
}

// move checks that a part under another name is detected, and restores its name.
func (d *damaged) move(damage, from, to string) {
	d.Helper()
	d.must(os.Rename(d.path(from), d.path(to)))
	d.found(damage)
	d.must(os.Rename(d.path(to), d.path(from)))
}

func TestMissingOrRenamedPartsAreDetected(t *testing.T) {
	d := newDamaged(t)
	middle, newest := d.parts[1], d.parts[len(d.parts)-1]
	var first, last uint64
	_, err := fmt.Sscanf(middle, "journal-%d-%d.zst", &first, &last)
	d.must(err)
	d.move("a middle part is gone", middle, "away")
	d.move("the first part is gone", d.parts[0], "away")
	d.move("a part claims more", middle, partName(first, last+1))
	d.move("a part claims to begin earlier", middle, partName(first-1, last))
	_, err = fmt.Sscanf(newest, "journal-%d-%d.zst", &first, &last)
	d.must(err)
	d.move("the last part claims more", newest, partName(first, last+1))
	d.move("the last part claims less", newest, partName(first, last-1))
	for _, name := range []string{"journal-1-2.zst", "journal-x.zst",
		"journal-00000000000000000009-00000000000000000008.zst",
		"journal-00000000000000000000-00000000000000000008.zst",
		strings.Replace(middle, ".zst", ".copy.zst", 1)} {
		d.move("a part is called "+name, middle, name)
		d.must(os.WriteFile(d.path(name), nil, 0o600))
		d.found("there is also " + name)
		if _, err := Open(d.archive.Dir()); !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("it opens with %s: %v", name, err)
		}
		d.must(os.Remove(d.path(name)))
	}
	d.must(os.WriteFile(d.path("notes.txt"), []byte("not ours"), 0o600))
	d.wantUpTo(d.end())
}

func TestDamagedBaseIsDetected(t *testing.T) {
	l := &list{image: []byte(strings.Repeat("the state at 10 ", 20)), at: 10}
	w := newWorld(t, l)
	w.all = []batch{{0, 10, ""}}
	w.append(5, "batch")
	w.append(5, "batch")
	w.save(15)
	part := filepath.Join(w.archive.Dir(), w.names()[0])
	good, err := os.ReadFile(part)
	w.must(err)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x41
		w.must(os.WriteFile(part, bad, 0o600))
		_, _, err := w.archive.Under(testKey).Base(w.ctx)
		if errors.Is(err, persistence.ErrNoKey) {
			continue // the key's id
		}
		w.fails(err, persistence.ErrCorrupt, part)
		w.saveFails(20, persistence.ErrCorrupt, part)
		if _, _, err := w.archive.Base(w.ctx); err != nil { // or it is the HMAC
			w.fails(w.archive.Fits(w.ctx, l), persistence.ErrCorrupt, part)
		}
	}
	w.must(os.WriteFile(part, good, 0o600))
	w.must(os.Rename(part, filepath.Join(w.archive.Dir(), partName(1, 15))))
	_, err = w.read(0)
	w.fails(err, persistence.ErrCorrupt, "it begins at record 11")
}

// The folder's name may resemble a pattern, and be relative or absolute.
func TestArchiveAcceptsAnyFolderName(t *testing.T) {
	t.Chdir(t.TempDir())
	w := newWorld(t, &list{})
	w.append(1, "batch")
	var err error
	w.archive, err = Open("a[b]*/../a[b]*/c")
	w.must(err)
	here, err := filepath.EvalSymlinks(".")
	w.must(err)
	if here, err = filepath.Abs(here); err != nil ||
		w.archive.Dir() != filepath.Join(here, "a[b]*", "c") {
		t.Errorf("the folder is %s, %v", w.archive.Dir(), err)
	}
	w.save(1)
	w.wantUpTo(1)
	if info, err := os.Stat(w.archive.Dir()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	w.must(os.WriteFile("file", nil, 0o600))
	if _, err := Open("file"); err == nil || !strings.Contains(err.Error(), "file") {
		t.Errorf("a file is taken for a folder: %v", err)
	}
}

// A disk is missing from the start, or later: no new archive begins in place of an existing one,
// and nothing may be trimmed.
func TestMissingArchiveIsNotRecreated(t *testing.T) {
	w := newWorld(t, &list{})
	w.append(1, "batch")
	w.save(1)
	w.append(2, "batch")
	dir := w.archive.Dir()
	away := dir + ".away"
	w.must(os.Rename(dir, away))
	for range 2 { // without a folder, and with an empty one
		if _, err := OpenExisting(dir); !errors.Is(err, persistence.ErrAbsent) {
			t.Errorf("it is opened with %v", err)
		}
		trim, err := w.archive.Save(w.ctx, w.journal, testKey,
			persistence.HistoryID{}, 2)
		if trim != 0 || !errors.Is(err, persistence.ErrAbsent) {
			t.Errorf("up to %d is archived, %v", trim, err)
		}
		if names, _ := os.ReadDir(dir); len(names) > 0 {
			t.Errorf("there are %v", names)
		}
		w.must(os.MkdirAll(dir, 0o700))
	}
	w.must(errors.Join(os.Remove(dir), os.Rename(away, dir)))
	if _, err := OpenExisting(dir); err != nil {
		t.Error(err)
	}
	w.save(2)
	w.wantUpTo(2)
}

// bounds returns the first and the last record in an archive; 0 and 0: it is empty.
func bounds(a *Archive) (first, last uint64, err error) {
	list, err := a.files()
	if err != nil || len(list) == 0 {
		return 0, 0, err
	}
	return list[0].first, list[len(list)-1].last, nil
}

// succeeds wants no errors.
func succeeds(s scope, errs ...error) {
	s.Helper()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
}
