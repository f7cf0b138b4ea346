package pebble

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// version1 makes a folder as version 1 left it: batches of three records each, from behind a sequence on.
func version1(t *testing.T, fs vfs.FS, dir string, begin uint64, batches int) (want []string) {
	t.Helper()
	o := Options{fs: fs}
	if fs == vfs.Default {
		o.fs = nil
	}
	s, tok, _ := mustOpen(t, dir, o)
	folder := fs.PathJoin(dir, journalFolder+s.engine())
	var digest uint64
	seq := begin
	for i := range batches {
		batch := fmt.Sprintf("batch %d", i)
		digest = codec.Digest([]byte(batch))
		value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, seq), digest)
		want = append(want, fmt.Sprint(seq, seq+3, batch))
		seq += 3
		if err := s.db.Set(u64(s.key(kindJournal), seq), append(value, batch...), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	head, err := json.Marshal(map[string]any{"version": 1, "epoch": tok.Epoch(), "token": tok, "owner": "version 1", "seq": seq, "digest": fmt.Sprint(digest), "snapshots": [2]string{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.db.Set(s.key(kindMeta), head, pebble.Sync), s.Close(), fs.RemoveAll(folder)); err != nil {
		t.Fatal(err)
	}
	return want
}

func readAll(t *testing.T, s *Store, after uint64) (all []string) {
	t.Helper()
	if err := s.Read(t.Context(), after, func(prev, next uint64, batch []byte) error {
		all = append(all, fmt.Sprint(prev, next, string(batch)))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAJournalOfVersion1IsMovedOver(t *testing.T) {
	for _, begin := range []uint64{0, 100} {
		for _, batches := range []int{0, 1, 5000} {
			t.Run(fmt.Sprintf("%d batches from %d", batches, begin), func(t *testing.T) {
				fs := vfs.NewMem()
				want := version1(t, fs, "data", begin, batches)
				end := begin + 3*uint64(batches)
				for range 2 {
					s, tok, last := mustOpen(t, "data", Options{fs: fs})
					if last != end || tok.Epoch() < 2 {
						t.Fatalf("the journal ends at %d, want %d; epoch %d", last, end, tok.Epoch())
					}
					if all := readAll(t, s, begin); !slices.Equal(all, want) {
						t.Fatalf("%d batches are read, want %d", len(all), len(want))
					}
					if err := s.Append(t.Context(), tok, end, end+1, []byte("goes on")); err != nil {
						t.Fatal(err)
					}
					want, end = append(want, fmt.Sprint(end, end+1, "goes on")), end+1
					if v, err := s.get(s.db, u64(s.key(kindJournal), begin+3)); v != nil || err != nil {
						t.Fatalf("a batch is still among the keys (%v)", err)
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// The power fails at every step of the way: the next start moves the journal over, from the beginning.
func TestACrashWhileAJournalIsMovedOver(t *testing.T) {
	base := vfs.NewCrashableMem()
	want := version1(t, base, "data", 0, 200)
	base = base.CrashClone(vfs.CrashCloneCfg{})
	for stop := 1; ; stop++ {
		fs := base.CrashClone(vfs.CrashCloneCfg{})
		crashed := &crashing{FS: fs, mem: fs, left: stop}
		if s, err := Open("data", Options{fs: crashed, Logger: quiet}); err == nil {
			s.Close()
		}
		done := crashed.clone == nil
		if !done {
			fs = crashed.clone
		}
		s, _, last := mustOpen(t, "data", Options{fs: fs})
		if all := readAll(t, s, 0); last != 600 || !slices.Equal(all, want) {
			t.Fatalf("crashed at step %d: the journal ends at %d and has %d batches", stop, last, len(all))
		}
		s.Close()
		if done {
			if stop < 5 {
				t.Fatalf("only %d steps", stop)
			}
			return
		}
	}
}

// crashing takes a copy of a file system, as a crash would leave it, at one of the times that a file or folder is opened to be written.
type crashing struct {
	vfs.FS
	mem *vfs.MemFS

	mu    sync.Mutex
	left  int        // guarded by mu, like clone
	clone *vfs.MemFS // nil: it was not reached
}

func (c *crashing) step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		c.clone = c.mem.CrashClone(vfs.CrashCloneCfg{})
	}
}

func (c *crashing) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	c.step()
	return c.FS.OpenReadWrite(name, category, opts...)
}

func (c *crashing) OpenDir(name string) (vfs.File, error) {
	c.step()
	return c.FS.OpenDir(name)
}

func (c *crashing) RemoveAll(name string) error {
	c.step()
	return c.FS.RemoveAll(name)
}

// A log that cannot be closed is written all the same: when the folder is of version 2, it is the only copy.
func TestAJournalThatWasMovedOverIsKeptWhateverFailsThen(t *testing.T) {
	mem := vfs.NewMem()
	want := version1(t, mem, "data", 0, 800) // more than half of a segment: the next one is made, and removed by the close
	broken, left := errors.New("input/output error"), 1
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRemove && strings.HasSuffix(op.Path, ".journal") && left > 0 {
			left--
			return broken
		}
		return nil
	}))
	if _, err := Open("data", Options{fs: fs, Logger: quiet}); !errors.Is(err, broken) || left != 0 {
		t.Fatalf("error is %v, want that of the close; %d were to fail", err, left)
	}
	s, _, last := mustOpen(t, "data", Options{fs: mem})
	if all := readAll(t, s, 0); last != 2400 || !slices.Equal(all, want) {
		t.Fatalf("the journal ends at %d and has %d batches", last, len(all))
	}
}

func TestADamagedJournalOfVersion1IsNotMovedOver(t *testing.T) {
	fs := vfs.NewMem()
	version1(t, fs, "data", 0, 50)
	s := &Store{prefix: []byte("main\x00")}
	db, err := pebble.Open("data", &pebble.Options{FS: fs, FormatMajorVersion: format, Logger: logger{log: quiet}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set(u64(s.key(kindJournal), 30), append(make([]byte, version1Head), "other"...), pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it stays as it is
		if _, err := Open("data", Options{fs: fs, Logger: quiet}); !errors.Is(err, persistence.ErrCorrupt) {
			t.Fatalf("error is %v, want ErrCorrupt", err)
		}
	}
}
