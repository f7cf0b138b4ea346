package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

const (
	magic = "exchange journal 4\n"
	// maxHead bounds the head of a part, in bytes.
	maxHead = 1 << 10
	// fileBytes is the size at which the next batch starts another part, in bytes before
	// compression.
	fileBytes = 64 << 20
	// maxBatch bounds one batch while reading, and maxPiece one piece of a base. Anything longer is
	// damage.
	maxBatch, maxPiece = codec.MaxBatch, 1 << 20

	partPrefix, partSuffix = "journal-", ".zst"
	unfinished             = "unfinished-" // begins the name of a part that is being written
	lockName               = "LOCK"
)

// ErrOther: the archive in the folder does not belong to the journal, or cannot be continued from
// it.
var ErrOther = errors.New("the archive does not fit the journal")

var errLocked = errors.New("another process is writing this archive")

// An Archive is one folder. Its methods may be called from any goroutine; of two Saves at once,
// also of two processes, one fails.
type Archive struct {
	fs   vfs.FS // for all reads and writes
	dir  string
	part int                   // bytes of a part at which another begins
	by   persistence.Authority // proves each part that is read; nil: no proof is required

	failures *atomic.Uint64 // of Save
	hasParts *atomic.Bool   // parts exist, or existed
}

// Under returns the archive for a reader that requires each part to be authentic.
func (a *Archive) Under(by persistence.Authority) *Archive {
	under := *a
	under.by = by
	return &under
}

// A file is one part.
type file struct {
	fs          vfs.FS
	name        string
	first, last uint64
	// it must begin with a state: there is no part before it, and it does not begin at record 1
	based  bool
	before string // name of the part before it, "" if there is none
}

func partName(first, last uint64) string {
	return fmt.Sprintf("%s%020d-%020d%s", partPrefix, first, last, partSuffix)
}

// Open opens the archive in a folder. It makes a missing folder.
func Open(dir string) (*Archive, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("the archive's folder: %w", err)
	}
	return open(vfs.Default, dir)
}

func open(files vfs.FS, dir string) (*Archive, error) {
	err := makeFolder(files, dir)
	if err != nil {
		return nil, fmt.Errorf("the archive's folder: %w", err)
	}
	return in(files, dir, false)
}

// OpenExisting opens an archive that must have parts. It creates nothing. ErrAbsent: there is no
// part, or no folder.
func OpenExisting(dir string) (*Archive, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("the archive's folder: %w", err)
	}
	return in(vfs.Default, dir, true)
}

// in returns the archive in a folder.
func in(files vfs.FS, dir string, hasParts bool) (*Archive, error) {
	a := &Archive{fs: files, dir: dir, part: fileBytes, failures: new(atomic.Uint64),
		hasParts: new(atomic.Bool)}
	a.hasParts.Store(hasParts)
	_, err := a.files()
	return a, err
}

// Dir returns the folder's absolute path.
//
//tidy:keep the operator's Archive asks for it, through a type that embeds this one
func (a *Archive) Dir() string { return a.dir }

// Failures returns how many calls of Save have failed. Any goroutine may call it.
//
//tidy:keep the operator's Archive asks for it, too
func (a *Archive) Failures() uint64 { return a.failures.Load() }

// files returns the parts in order. They must follow each other without a gap. An archive that lost
// all its parts does not count as empty: its disk may not be mounted.
func (a *Archive) files() (list []file, err error) {
	list, err = a.parts()
	switch {
	case err == nil && len(list) > 0:
		a.hasParts.Store(true)
	case (err == nil || errors.Is(err, fs.ErrNotExist)) && a.hasParts.Load():
		return nil, fmt.Errorf("%w: the archive in %s is known to have parts: mount its disk, or "+
			"bring its files back; serve --new begins a new archive", persistence.ErrAbsent, a.dir)
	}
	return list, err
}

func (a *Archive) parts() ([]file, error) {
	names, err := a.fs.List(a.dir)
	if err != nil {
		return nil, fmt.Errorf("the archive's folder: %w", err)
	}
	slices.Sort(names) // in the order of the records
	var list []file
	for _, name := range names {
		if !strings.HasPrefix(name, partPrefix) || !strings.HasSuffix(name, partSuffix) {
			continue
		}
		f := file{fs: a.fs, name: a.fs.PathJoin(a.dir, name)}
		if n, err := fmt.Sscanf(name, partPrefix+"%d-%d"+partSuffix, &f.first, &f.last); n != 2 ||
			err != nil || name != partName(f.first, f.last) || f.first < 1 || f.first > f.last {
			return nil, fmt.Errorf("%w: %s is not named as a part of a journal",
				persistence.ErrCorrupt, f.name)
		}
		if n := len(list); n > 0 && f.first != list[n-1].last+1 {
			return nil, fmt.Errorf("%w: in %s a part ends at record %d, and the next begins at %d",
				persistence.ErrCorrupt, a.dir, list[n-1].last, f.first)
		}
		f.based = len(list) == 0 && f.first > 1
		if n := len(list); n > 0 {
			f.before = list[n-1].name
		}
		list = append(list, f)
	}
	return list, nil
}

// Fits returns nil if the journal has the archive's last batch, or the archive is empty: then Save
// can add to it. Otherwise it returns ErrOther, or ErrCorrupt if the archive's last part is
// damaged.
func (a *Archive) Fits(ctx context.Context, journal persistence.Journal) error {
	last, err := a.tail(ctx, nil)
	if err != nil || last == nil {
		return err
	}
	return a.continues(ctx, journal, last)
}

// End returns the last record; 0: the archive is empty.
func (a *Archive) End() (uint64, error) {
	list, err := a.files()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[len(list)-1].last, nil
}

// A tail is an archive's last batch.
type tail struct {
	prev, next uint64
	data       []byte
	mac        []byte // of the part
	engine     string
}

// tail returns nil if the archive is empty. by proves the last part. A part whose key by lacks,
// such as a retired key, stays unproven here: the next part names its HMAC, so a later reader
// proves both.
func (a *Archive) tail(ctx context.Context, by persistence.Authority) (*tail, error) {
	list, err := a.files()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	t := &tail{}
	read := func(by persistence.Authority) error {
		head, mac, err := list[len(list)-1].read(ctx, by,
			discard, func(prev, next uint64, data []byte) error {
				t.prev, t.next, t.data = prev, next, append(t.data[:0], data...)
				return nil
			})
		t.mac, t.engine = mac, head.Engine
		return err
	}
	if err = read(by); errors.Is(err, persistence.ErrNoKey) {
		err = read(nil)
	}
	return t, err
}

// continues returns nil if the journal has the archive's last batch, byte by byte.
func (a *Archive) continues(ctx context.Context, journal persistence.Journal, last *tail) error {
	prev, next, data, err := persistence.First(ctx, journal, last.prev)
	switch {
	case errors.Is(err, persistence.ErrCorrupt) && !errors.Is(err, persistence.ErrVersion):
		// the store itself is not damaged
		why := strings.TrimPrefix(err.Error(), persistence.ErrCorrupt.Error()+": ")
		return fmt.Errorf(
			"%w: the archive in %s ends at record %d, and the journal does not have its last "+
				"batch: %s", ErrOther, a.dir, last.next, why)
	case err != nil:
		return fmt.Errorf("reading the journal for the archive: %w", err)
	case next == 0:
		return fmt.Errorf(
			"%w: the archive in %s ends at record %d, and the journal has no record after %d",
			ErrOther, a.dir, last.next, last.prev)
	case prev != last.prev || next != last.next || !bytes.Equal(data, last.data):
		return fmt.Errorf(
			"%w: the archive in %s ends at record %d, and the journal has other records there: "+
				"it is that of another exchange, or of one that was restored",
			ErrOther, a.dir, last.next)
	}
	return nil
}

// Save adds the journal's batches up to upTo, a batch's end, that the archive lacks. The new part
// is durable when Save returns, and by has authenticated it. history is the id of the journal's
// history. The store may trim its journal up to trim, which is at most upTo and keeps the archive's
// last batch in the journal.
func (a *Archive) Save(ctx context.Context, store persistence.Store, by persistence.Authority,
	history persistence.HistoryID, upTo uint64) (trim uint64, err error) {
	defer func() {
		if err != nil {
			a.failures.Add(1)
		}
	}()
	if _, err := a.files(); err != nil {
		return 0, err // nothing may be created on a missing disk
	}
	unlock, err := a.lock()
	if err != nil {
		return 0, fmt.Errorf("writing the archive: %w", err)
	}
	defer unlock()
	if err := a.clean(); err != nil {
		return 0, fmt.Errorf("writing the archive: %w", err)
	}
	last, err := a.tail(ctx, by)
	if err != nil {
		return 0, err
	}
	w := &writer{fs: a.fs, dir: a.dir, part: a.part, by: by, engine: store.Engine(),
		history: history}
	defer w.discard()
	switch {
	case last != nil:
		if err := a.continues(ctx, store, last); err != nil {
			return 0, err
		}
		if last.engine != w.engine {
			return 0, fmt.Errorf("%w: the archive in %s is of the engine %q, the journal of %q",
				ErrOther, a.dir, last.engine, w.engine)
		}
		w.prev, w.last, w.before = last.prev, last.next, last.mac
	case upTo == 0:
		return 0, nil
	default:
		if w.base, w.last, err = findBase(ctx, store); err != nil {
			return 0, err
		}
	}
	err = store.Read(ctx, w.last, func(prev, next uint64, data []byte) error {
		// at least one batch follows a base: that batch identifies the journal later
		if next > upTo && w.base == nil {
			return errEnough
		}
		return w.add(prev, next, data)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return 0, fmt.Errorf("reading the journal for the archive: %w", err)
	}
	if err := w.finish(); err != nil {
		return 0, err
	}
	return min(upTo, w.prev), nil
}

var errEnough = errors.New("enough")

// findBase returns the beginning of an empty archive: nothing if the journal has its first record,
// otherwise the image of the oldest snapshot.
func findBase(ctx context.Context, store persistence.Store) (image io.ReadCloser, seq uint64,
	err error) {
	_, _, _, late := persistence.First(ctx, store, 0)
	if late == nil {
		return nil, 0, nil
	}
	if !errors.Is(late, persistence.ErrCorrupt) { // the error of a journal that begins late
		return nil, 0, fmt.Errorf("reading the journal for the archive: %w", late)
	}
	for back := 1; back >= 0; back-- {
		seq, image, err = store.LoadSnapshot(ctx, back)
		if !errors.Is(err, persistence.ErrNoSnapshot) {
			break
		}
	}
	if err != nil {
		//nolint:errorlint // late is no damage of the store
		return nil, 0, fmt.Errorf("an archive cannot begin with the journal's first record (%v), "+
			"nor with a snapshot: %w", late, err)
	}
	return image, seq, nil
}

// clean removes files that a crash left half written.
func (a *Archive) clean() error {
	names, err := a.fs.List(a.dir)
	for _, name := range names {
		if strings.HasPrefix(name, unfinished) {
			err = errors.Join(err, a.fs.Remove(a.fs.PathJoin(a.dir, name)))
		}
	}
	return err
}
