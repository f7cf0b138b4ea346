package head

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func mustOpen(t testing.TB, name string) *File {
	t.Helper()
	f, err := Open(name, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() }) //nolint:errcheck // of a file that was closed before there is none
	return f
}

// Whatever is in a file, it says an end or nothing; what it says is written as bytes that say the same, and what is written
// is read again.
func FuzzHead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "HEAD")
	for _, m := range []Mark{{}, {1, 2}, {5000, 0}, {1<<64 - 1, 1<<64 - 1}} {
		h := mustOpen(f, path)
		if err := errors.Join(h.Reset(0), h.Advance(m), h.Close()); err != nil {
			f.Fatal(err)
		}
		written, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(written, m.Seq, m.Digest)
		f.Add(written[:size-1], m.Seq, m.Digest)
		f.Add(written[:sizeSeq], m.Seq, m.Digest)
		f.Add(append(bytes.Clone(written), "more"...), m.Seq+1, m.Digest)
		written[0] ^= 1
		f.Add(written, m.Seq, m.Digest)
	}
	f.Add([]byte{}, uint64(7), uint64(7))
	f.Add(make([]byte, size), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, content []byte, seq, digest uint64) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		h := mustOpen(t, path)
		said, end := h.Acknowledged(), Mark{seq, digest}
		if fits := said.Fits(end); fits && seq < said.Seq || !fits && seq > said.Seq {
			t.Fatalf("%+v is acknowledged, the journal ends at %+v: %v", said, end, fits)
		}
		if err := errors.Join(h.Advance(said), h.Close()); err != nil {
			t.Fatal(err)
		}
		if got := mustOpen(t, path).Acknowledged(); got != said {
			t.Fatalf("%x says %+v, which is written as %+v", content, said, got)
		}
		h = mustOpen(t, path)
		if err := errors.Join(h.Reset(0), h.Advance(end), h.Close()); err != nil {
			t.Fatal(err)
		}
		if got := mustOpen(t, path).Acknowledged(); got != end {
			t.Fatalf("%+v was written over %x, and %+v is read", end, content, got)
		}
	})
}

func TestAFileNeverGoesBackByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "HEAD")
	h := mustOpen(t, path)
	want := func(m Mark) {
		t.Helper()
		if got := h.Acknowledged(); got != m {
			t.Fatalf("it says %+v, want %+v", got, m)
		}
		if got := mustOpen(t, path).Acknowledged(); got != m {
			t.Fatalf("the file says %+v, want %+v", got, m)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(h.Advance(Mark{10, 77}))
	want(Mark{10, 77})
	must(h.Advance(Mark{9, 66})) // of a call that was overtaken
	want(Mark{10, 77})
	must(h.Advance(Mark{10, 0})) // by who does not know the digest
	want(Mark{10, 77})
	must(h.Advance(Mark{11, 88}))
	want(Mark{11, 88})
	must(h.Reset(5))
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

// A version that knows nothing of digests has gone on with the file: what is behind the sequence is of another one.
func TestADigestOfAnotherSequenceIsNotTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "HEAD")
	h := mustOpen(t, path)
	if err := h.Advance(Mark{20, 0}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Advance(Mark{30, 5}); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(b[:sizeSeq], 0); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if got := mustOpen(t, path).Acknowledged(); got != (Mark{20, 0}) {
		t.Fatalf("it says %+v", got)
	}
}

func TestAFileThatIsNotKept(t *testing.T) {
	h, err := OpenOld(filepath.Join(t.TempDir(), "HEAD"), quiet)
	if h != nil || err != nil {
		t.Fatal(h, err)
	}
	if err := errors.Join(h.Advance(Mark{1, 1}), h.Reset(1), h.Close()); err != nil || h.Acknowledged() != (Mark{}) || h.Name() != "" {
		t.Fatal(err)
	}
}

// A file that is missing stays so until something is acknowledged: whoever looks after a crash finds it missing, too.
func TestAMissingFileIsMadeByItsFirstWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "HEAD")
	for _, empty := range []bool{false, true} {
		if empty {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			h := mustOpen(t, path)
			if !h.Missing() || h.Acknowledged() != (Mark{}) {
				t.Fatalf("empty: %v: it says %+v, missing: %v", empty, h.Acknowledged(), h.Missing())
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); !empty && !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("a file was made: %v", err)
			}
		}
		h := mustOpen(t, path)
		if err := h.Advance(Mark{3, 9}); err != nil || h.Missing() {
			t.Fatal(err, h.Missing())
		}
		if again := mustOpen(t, path); again.Missing() || again.Acknowledged() != (Mark{3, 9}) {
			t.Fatalf("it says %+v, missing: %v", again.Acknowledged(), again.Missing())
		}
		if err := errors.Join(h.Close(), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
	}
	var none *File
	if none.Missing() {
		t.Error("a file that is not kept is missing")
	}
}
