package head

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"exchange/persistence"
)

func mustOpen(t testing.TB, files vfs.FS, name string) *File {
	t.Helper()
	f, err := Open(files, name)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// wantRefused opens a file in both ways, and wants an error with its name, the reason, and a
// remedy.
func wantRefused(t testing.TB, files vfs.FS, name, reason string) {
	t.Helper()
	for _, open := range []func(vfs.FS, string) (*File, error){Open, OpenOld} {
		f, err := open(files, name)
		if f != nil || !errors.Is(err, persistence.ErrCorrupt) {
			t.Fatalf("error is %v, want ErrCorrupt (%s)", err, reason)
		}
		wanted := []string{name, reason, "up to where the journal was acknowledged", "from a copy",
			"remove it"}
		if errors.Is(err, persistence.ErrVersion) {
			wanted = []string{name, reason, "program that wrote it"}
		}
		for _, want := range wanted {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not have %q", err, want)
			}
		}
	}
}

// A whole file survives reading and writing; any other is refused, and stays as it is.
func FuzzHead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "HEAD")
	for _, m := range []Mark{{}, {1, 2}, {5000, 0}, {1<<64 - 1, 1<<64 - 1}} {
		h := mustOpen(f, vfs.Default, path)
		must(f, h.Reset(0), h.Advance(m), h.Close())
		written, err := os.ReadFile(path)
		must(f, err)
		f.Add(written, m.Seq, m.Digest)
		f.Add(written[:size-1], m.Seq, m.Digest)
		f.Add(append(bytes.Clone(written), "more"...), m.Seq+1, m.Digest)
		written[0] ^= 1
		f.Add(written, m.Seq, m.Digest)
	}
	f.Add([]byte{}, uint64(7), uint64(7))
	f.Add(make([]byte, size), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, content []byte, seq, digest uint64) {
		must(t, os.WriteFile(path, content, 0o600))
		h, err := Open(vfs.Default, path)
		if err != nil {
			wantRefused(t, vfs.Default, path, "")
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
				t.Fatalf("%x was refused and is %x now (%v)", content, now, err)
			}
			return
		}
		stored, end := h.Acknowledged(), Mark{seq, digest}
		if !bytes.Equal(encode(stored), content) {
			t.Fatalf("%x has %+v", content, stored)
		}
		if fits := stored.Fits(end); fits && seq < stored.Seq || !fits && seq > stored.Seq {
			t.Fatalf("%+v is acknowledged, the journal ends at %+v: %v", stored, end, fits)
		}
		must(t, h.Reset(0), h.Advance(end), h.Close())
		if got := mustOpen(t, vfs.Default, path).Acknowledged(); got != end {
			t.Fatalf("%+v was written over %x, and %+v is read", end, content, got)
		}
	})
}

func TestMarkNeverGoesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "HEAD")
	h := mustOpen(t, vfs.Default, path)
	want := func(m Mark) {
		t.Helper()
		if got := h.Acknowledged(); got != m {
			t.Fatalf("it has %+v, want %+v", got, m)
		}
		if got := mustOpen(t, vfs.Default, path).Acknowledged(); got != m {
			t.Fatalf("the file has %+v, want %+v", got, m)
		}
	}
	want(Mark{})
	must(t, h.Advance(Mark{10, 77}))
	want(Mark{10, 77})
	must(t, h.Advance(Mark{9, 66})) // of a call that was overtaken
	want(Mark{10, 77})
	must(t, h.Advance(Mark{10, 0})) // by a caller without the digest
	want(Mark{10, 77})
	must(t, h.Advance(Mark{11, 88}))
	want(Mark{11, 88})
	must(t, h.Reset(5))
	want(Mark{5, 0})
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatal(fi, err)
	}
	for _, c := range []struct {
		end  Mark
		fits bool
	}{{Mark{4, 0}, false}, {Mark{5, 0}, true}, {Mark{5, 9}, true}, {Mark{6, 9}, true}} {
		if fits := h.Acknowledged().Fits(c.end); fits != c.fits {
			t.Errorf("%+v: %v", c.end, fits)
		}
	}
	if (Mark{5, 8}).Fits(Mark{5, 9}) {
		t.Error("another batch fits")
	}
}

// Each truncation or changed bit is detected: none counts as 0.
func TestDamagedFileIsRefused(t *testing.T) {
	files := vfs.NewMem()
	whole := encode(Mark{Seq: 5000, Digest: 1<<63 | 77})
	put := func(b []byte) {
		t.Helper()
		f, err := files.Create("HEAD", vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write(bytes.Clone(b)) // the file system may change the bytes
		must(t, err, f.Close())
	}
	put(whole)
	if got := mustOpen(t, files, "HEAD").Acknowledged(); got.Seq != 5000 {
		t.Fatalf("it has %+v", got)
	}
	for n := range size {
		put(whole[:n])
		wantRefused(t, files, "HEAD", "it ")
	}
	put(append(bytes.Clone(whole), 0))
	wantRefused(t, files, "HEAD", "it is not 32 bytes long")
	put(make([]byte, size))
	wantRefused(t, files, "HEAD", "it does not begin like such a file")
	for bit := range 8 * size {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		put(b)
		wantRefused(t, files, "HEAD", "it")
	}
	later := bytes.Clone(whole)
	later[len(magic)+1]++
	put(later)
	wantRefused(t, files, "HEAD", fmt.Sprintf(
		"it is of version %d and this program reads version %d", version+1, version))
}

func TestUnreadableFileIsRefused(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "HEAD")
	must(t, os.Mkdir(folder, 0o700))
	wantRefused(t, vfs.Default, folder, "it is not a file")
	if fi, err := os.Stat(folder); err != nil || !fi.IsDir() {
		t.Fatal(fi, err)
	}
	damaged := errors.New("input/output error")
	for _, c := range []struct {
		kind errorfs.OpKind
		err  error
	}{{errorfs.OpStat, fs.ErrPermission}, {errorfs.OpOpen, fs.ErrPermission},
		{errorfs.OpFileReadAt, damaged}} {
		memory := vfs.NewMem()
		must(t, mustOpen(t, memory, "HEAD").Advance(Mark{5, 5}))
		files := errorfs.Wrap(memory, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == c.kind {
				return c.err
			}
			return nil
		}))
		wantRefused(t, files, "HEAD", c.err.Error())
	}
	// With too many files open nothing is damaged.
	many := errors.New("too many open files")
	files := errorfs.Wrap(vfs.NewMem(),
		errorfs.InjectorFunc(func(op errorfs.Op) error { return many }))
	if _, err := Open(files, "HEAD"); !errors.Is(err, many) ||
		errors.Is(err, persistence.ErrCorrupt) {
		t.Fatalf("error is %v", err)
	}
}

// The power fails before each call that makes a file, writes it or resets it. The file is then
// missing, or has the mark of the last sync or a later one. After the first finished write the file
// exists.
func TestPowerCutLeavesAcceptedFile(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	cuts := 0
	for _, percent := range []int{0, 50, 100} {
		made := false
		memory := vfs.NewCrashableMem()
		reopen := func(most uint64) {
			cuts++
			left := memory.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: random})
			old, err := OpenOld(left, "HEAD")
			if err != nil {
				t.Fatalf("%d %% of the unsynced data is left: %v", percent, err)
			}
			if old == nil && made {
				t.Fatalf("%d %% of the unsynced data is left, and no file", percent)
			}
			if got := old.Acknowledged().Seq; got > most {
				t.Fatalf("it has %d, and %d was the highest mark", got, most)
			}
			must(t, old.Close())
			again := mustOpen(t, left, "HEAD") // over the remains of the first try
			must(t, again.Advance(Mark{9, 9}), again.Close())
		}
		var most uint64
		files := errorfs.Wrap(memory, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				reopen(most)
			}
			return nil
		}))
		h, err := Open(files, "HEAD")
		must(t, err)
		for seq := range uint64(5) {
			most = seq
			must(t, h.Advance(Mark{seq, 1}))
			made = true
			reopen(most)
		}
		disk, err := memory.OpenReadWrite("HEAD", vfs.WriteCategoryUnspecified)
		must(t, err)
		must(t, disk.Sync(), disk.Close()) // by the system, some time
		must(t, h.Reset(2))
		most = 2 // permanently: the sync has replaced the later mark
		reopen(most)
		must(t, h.Close())
	}
	if cuts < 30 {
		t.Fatalf("the power failed %d times", cuts)
	}
}

func TestNilFileStoresNothing(t *testing.T) {
	h, err := OpenOld(vfs.Default, filepath.Join(t.TempDir(), "HEAD"))
	if h != nil || err != nil {
		t.Fatal(h, err)
	}
	must(t, h.Advance(Mark{1, 1}), h.Reset(1), h.Close())
	if h.Acknowledged() != (Mark{}) || h.Name() != "" {
		t.Fatal(h.Name())
	}
}

// A file that is missing stays so until something is acknowledged: a start after a crash finds it
// missing, too. A crash leaves no empty file, so that is refused.
func TestMissingFileIsCreatedByFirstWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "HEAD")
	for range 2 {
		h := mustOpen(t, vfs.Default, path)
		if !h.Missing() || h.Acknowledged() != (Mark{}) {
			t.Fatalf("it has %+v, missing: %v", h.Acknowledged(), h.Missing())
		}
		must(t, h.Close())
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("a file was made: %v", err)
		}
	}
	h := mustOpen(t, vfs.Default, path)
	must(t, h.Advance(Mark{3, 9}))
	again := mustOpen(t, vfs.Default, path)
	if h.Missing() || again.Missing() || again.Acknowledged() != (Mark{3, 9}) {
		t.Fatalf("it has %+v, missing: %v", again.Acknowledged(), again.Missing())
	}
	var none *File
	if none.Missing() {
		t.Error("a file that is not kept is missing")
	}
}
