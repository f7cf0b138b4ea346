package pebble

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// Whatever is in the file beside the journal, it says a sequence or nothing; what it says is written as the same bytes, and
// what is written is read again.
func FuzzHead(f *testing.F) {
	dir := f.TempDir()
	s := &Store{dir: dir, prefix: []byte("main\x00"), fs: vfs.Default, logger: quiet}
	path := filepath.Join(dir, headFile+s.engine())
	open := func(t testing.TB) (head, uint64) {
		h, acknowledged, err := s.openHead(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.close() }) //nolint:errcheck // of a file that was closed before there is none
		return h, acknowledged
	}
	for _, seq := range []uint64{0, 1, 5000, 1<<64 - 1} {
		h, _ := open(f)
		if err := errors.Join(h.set(seq), h.close()); err != nil {
			f.Fatal(err)
		}
		written, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(written, seq)
		f.Add(written[:headBytes-1], seq)
		f.Add(append(bytes.Clone(written), "more"...), seq+1)
		written[0] ^= 1
		f.Add(written, seq)
	}
	f.Add([]byte{}, uint64(7))
	f.Add(make([]byte, headBytes), uint64(0))
	f.Fuzz(func(t *testing.T, content []byte, seq uint64) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		h, acknowledged := open(t)
		if err := s.atLeast(seq, acknowledged); (err != nil) != (seq < acknowledged) || err != nil && !errors.Is(err, persistence.ErrCorrupt) {
			t.Fatalf("%d is acknowledged, the journal ends at %d: %v", acknowledged, seq, err)
		}
		if err := h.set(acknowledged); err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(path)
		if err != nil || acknowledged > 0 && !bytes.Equal(again, content) {
			t.Fatalf("%x says %d, which is written as %x, %v", content, acknowledged, again, err)
		}
		if err := errors.Join(h.set(seq), h.close()); err != nil {
			t.Fatal(err)
		}
		if _, got := open(t); got != seq {
			t.Fatalf("%d was written over %x, and %d is read", seq, content, got)
		}
	})
}

// A value is a reader that has the same value for each key.
type value struct {
	pebble.Reader
	bytes []byte
}

func (v value) Get([]byte) ([]byte, io.Closer, error) { return v.bytes, io.NopCloser(nil), nil }

// Any bytes in the place of an engine's head are damage, or a head that is the same when it is written and read again; and the
// snapshots that it names are damage, or have one spelling.
func FuzzMeta(f *testing.F) {
	s := &Store{dir: "data", prefix: []byte("main\x00"), logger: quiet}
	image := codec.Snapshot{Seq: 5, Epoch: 2, Unique: "0a1b", Chunks: 3, Size: 700_000, CRC: 0xfe}.String()
	for _, m := range []meta{{Version: metaVersion}, {Version: 1, Epoch: 7, Token: "7:x", Owner: "me", Begin: 3, Trimmed: 9, Snapshots: [2]string{image, ""}}, {Version: 3}, {Version: metaVersion, Snapshots: [2]string{"x", image}}} {
		text, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)-1])
	}
	for _, text := range []string{"", "null", "{}", "[]", `{"version":2.5}`, `{"version":-1}`, `{"epoch":4294967296}`, `{"snapshots":["a","b","c"]}`, `{"snapshots":["a"]}`, `{"token":"\ud800","owner":"\u0000"}`,
		`{"VERSION":2,"version":1}`, "{\"owner\":\"\xff\"}", `{"begin":1e400}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := s.readMeta(value{bytes: text})
		if err != nil {
			if !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		written, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.readMeta(value{bytes: written})
		if err != nil || again != m {
			t.Fatalf("%+v is written as %s and read as %+v, %v", m, written, again, err)
		}
		for back := range m.Snapshots {
			img, err := s.image(m, back)
			switch {
			case err != nil && !errors.Is(err, persistence.ErrCorrupt) && !errors.Is(err, persistence.ErrNoSnapshot):
				t.Fatal(err)
			case err == nil && img.String() != m.Snapshots[back]:
				t.Fatalf("%q is %q", m.Snapshots[back], img)
			}
		}
	})
}
