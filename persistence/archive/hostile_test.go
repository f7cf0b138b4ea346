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

// Parts of a few kB with right checksums ask for gigabytes. Each is refused before it gets a
// fraction of that.
func TestAHostilePartGetsNoMoreMemoryThanItsSizeAllows(t *testing.T) {
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
	piece := append(binary.AppendUvarint(nil, 5), "state"...)
	based := append(piece, 0)
	for what, content := range map[string][]byte{
		"a long state":           pieces(nil, many, maxPiece),
		"a state in tiny pieces": pieces(nil, many/8, 1),
		"a piece beyond all":     binary.AppendUvarint(nil, 1<<40),
		"many batches":           batches(based, many, maxPiece),
		"many tiny batches":      batches(based, 100_000, 1),
		"a batch beyond all": append(based, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 0x7f, 10, 11),
		"a batch that is not there": append(based, 0x80, 0x80, 0x80, 0x20, 10, 11),
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, partName(11, 1<<30))
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := json.Marshal(head{Engine: "main", First: 11})
		if err != nil {
			t.Fatal(err)
		}
		whole := append(binary.AppendUvarint([]byte(magic), uint64(len(h))), h...)
		part := proven(t, w.EncodeAll(append(whole, content...), nil), testKey)
		if err := os.WriteFile(name, part, 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(name); err != nil || info.Size() > 1<<20 {
			t.Fatalf("%s has %d bytes (%v): that is not what this test is about", what,
				info.Size(), err)
		}
		a, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
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
				t.Errorf("%s: it asks for %d MB when %s", what, n>>20, does)
			}
		}
	}
}
