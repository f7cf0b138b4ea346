package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/packed"
)

// The batches of any part with a right checksum follow each other from its first record to its
// last, or the part is damaged. Written again, they are the same part.
func FuzzPart(f *testing.F) {
	batch := func(b []byte, prev, next uint64, data string) []byte {
		b = binary.AppendUvarint(b, uint64(len(data)))
		b = binary.AppendUvarint(binary.AppendUvarint(b, prev), next)
		return append(b, data...)
	}
	two := batch(batch([]byte{0}, 0, 2, "first"), 2, 3, "second")
	piece := append(binary.AppendUvarint(nil, 5), "state"...)
	for _, b := range [][]byte{nil, {0}, {0, 0}, append(bytes.Clone(two), 0),
		append(bytes.Clone(two), 0, 3), append(bytes.Clone(two), 0, 2), two,
		append(batch([]byte{0}, 0, 2, "first"), 0),
		append(append(bytes.Clone(piece), two...), 0), {0, 0xff, 0xff, 0xff, 0xff, 0x03, 0, 3},
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}} {
		f.Add(b, uint64(1), uint64(3), false)
		f.Add(b, uint64(1), uint64(3), true)
	}
	f.Fuzz(func(t *testing.T, content []byte, first, last uint64, based bool) {
		if first == 0 || last < first {
			return // not the name of a part
		}
		pack := func(content []byte) *file {
			var stream bytes.Buffer
			w, err := packed.NewWriter(&stream, magic, testKey)
			h, err1 := json.Marshal(head{Engine: "main", First: first})
			if err = errors.Join(err, err1); err == nil {
				_, err = w.Write(append(binary.AppendUvarint(nil, uint64(len(h))), h...))
			}
			if err == nil {
				_, err = w.Write(content)
			}
			succeeds(t, err, w.Close())
			name := filepath.Join(t.TempDir(), "part")
			succeeds(t, os.WriteFile(name, stream.Bytes(), 0o600))
			return &file{fs: vfs.Default, name: name, first: first, last: last, based: based}
		}
		read := func(f *file) (again []byte, batches int, err error) {
			var body []byte
			at := first - 1
			_, _, err = f.read(context.Background(), testKey, func(piece []byte) {
				again = append(binary.AppendUvarint(again, uint64(len(piece))), piece...)
			}, func(prev, next uint64, data []byte) error {
				if prev != at || next <= prev {
					t.Fatalf("a batch (%d, %d] after record %d", prev, next, at)
				}
				at = next
				batches++
				body = batch(body, prev, next, string(data))
				return nil
			})
			if err == nil && at != last {
				t.Fatalf("it ends at %d", at)
			}
			again = append(append(append(again, 0), body...), 0)
			return binary.AppendUvarint(again, at), batches, err
		}
		again, batches, err := read(pack(content))
		if err != nil {
			if !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		same, count, err := read(pack(again))
		if err != nil || count != batches || !bytes.Equal(same, again) {
			t.Fatalf("%x came back as %x with %d instead of %d batches, %v", again, same, count,
				batches, err)
		}
	})
}
