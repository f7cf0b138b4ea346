package archive

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"exchange/persistence"
	"exchange/persistence/internal/packed/packedtest"
)

// Parts of a few kB with right checksums need gigabytes. Each is refused before it allocates a
// fraction of that.
func TestHostilePartAllocatesWithinItsSize(t *testing.T) {
	const many, most = 160 << 20, 128 << 20 // bytes
	zeros := make([]byte, maxPiece)
	pieces := func(b []byte, n, each int) []byte {
		for range n / each {
			b = append(binary.AppendUvarint(b, uint64(each)), zeros[:each]...)
		}
		return b
	}
	batches := func(b []byte, n, each int) []byte {
		for i := range n / each {
			b = binary.AppendUvarint(b, uint64(each))
			b = append(binary.AppendUvarint(binary.AppendUvarint(b, uint64(10+i)), uint64(11+i)),
				zeros[:each]...)
		}
		return b
	}
	based := func(b []byte) []byte {
		return append(append(binary.AppendUvarint(b, 5), "state"...), 0)
	}
	room := make([]byte, 0, 2*many)
	for what, add := range map[string]func(b []byte) []byte{
		"a long state":           func(b []byte) []byte { return pieces(b, many, maxPiece) },
		"a state in tiny pieces": func(b []byte) []byte { return pieces(b, many/8, 1) },
		"a piece beyond all":     func(b []byte) []byte { return binary.AppendUvarint(b, 1<<40) },
		"many batches": func(b []byte) []byte {
			return batches(based(b), many, maxPiece)
		},
		"many tiny batches": func(b []byte) []byte { return batches(based(b), 100_000, 1) },
		"a batch beyond all": func(b []byte) []byte {
			return append(based(b), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 10, 11)
		},
		"a batch that is not there": func(b []byte) []byte {
			return append(based(b), 0x80, 0x80, 0x80, 0x20, 10, 11)
		},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, partName(11, 1<<30))
		w, err := zstd.NewWriter(nil)
		succeeds(t, err)
		h, err := json.Marshal(head{Engine: "main", First: 11})
		succeeds(t, err)
		whole := append(binary.AppendUvarint(append(room, magic...), uint64(len(h))), h...)
		part := proven(t, w.EncodeAll(add(whole), nil), testKey)
		succeeds(t, os.WriteFile(name, part, 0o600))
		if info, err := os.Stat(name); err != nil || info.Size() > 1<<20 {
			t.Fatalf("%s has %d bytes (%v): the test needs another size", what,
				info.Size(), err)
		}
		a, err := Open(dir)
		succeeds(t, err)
		for does, f := range map[string]func() error{
			"its state is read": func() error { _, _, err := a.Base(t.Context()); return err },
			"its batches are read": func() error {
				return a.Read(t.Context(), 10, func(uint64, uint64, []byte) error { return nil })
			},
			"it is continued": func() error { return a.Fits(t.Context(), &list{}) },
		} {
			var err error
			n := packedtest.Allocated(func() { err = f() })
			(&world{scope: t}).fails(err, persistence.ErrCorrupt, name)
			if n > most {
				t.Errorf("%s: it allocates %d MB when %s", what, n>>20, does)
			}
		}
	}
}
