package pebble

import (
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// A value is a reader that returns the same value for each key.
type value struct {
	pebble.Reader
	bytes []byte
}

func (v value) Get([]byte) ([]byte, io.Closer, error) { return v.bytes, io.NopCloser(nil), nil }

// Any bytes as an engine's head are damage, or a head that survives writing and reading. The
// snapshots in it are damage, or have one spelling.
func FuzzMeta(f *testing.F) {
	s := &Store{dir: "data", prefix: []byte("main\x00"), logger: quiet}
	image := codec.Snapshot{Seq: 5, Epoch: 2, Unique: "0a1b", Chunks: 3, Size: 700_000,
		CRC: 0xfe}.String()
	for _, m := range []meta{{}, {Epoch: 7, Token: "7:x", Owner: "me", Begin: 3, Trimmed: 9,
		Snapshots: [2]string{image, ""}}, {Snapshots: [2]string{"x", image}}} {
		text, err := json.Marshal(m)
		succeeds(f, err)
		f.Add(text)
		f.Add(text[:len(text)-1])
	}
	for _, text := range []string{"", "null", "{}", "[]",
		`{"epoch":4294967296}`, `{"snapshots":["a","b","c"]}`, `{"snapshots":["a"]}`,
		`{"token":"\ud800","owner":"\u0000"}`,
		`{"EPOCH":2,"epoch":1}`, "{\"owner\":\"\xff\"}", `{"begin":1e400}`} {
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
		succeeds(t, err)
		again, err := s.readMeta(value{bytes: written})
		if err != nil || again != m {
			t.Fatalf("%+v is written as %s and read as %+v, %v", m, written, again, err)
		}
		for back := range m.Snapshots {
			img, err := s.image(m, back)
			switch {
			case err != nil && !errors.Is(err, persistence.ErrCorrupt) &&
				!errors.Is(err, persistence.ErrNoSnapshot):
				t.Fatal(err)
			case err == nil && img.String() != m.Snapshots[back]:
				t.Fatalf("%q is %q", m.Snapshots[back], img)
			}
		}
	})
}
