package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/internal/packed"
	"exchange/persistence/internal/packed/packedtest"
)

// mostAllocated bounds the memory for reading a hostile backup: three times the size to which a
// stream may unpack, because an image grows while it is read.
const mostAllocated = 128 << 20

// Files of a few kB with right checksums need gigabytes. Each is refused before it allocates a
// fraction of that.
func TestHostileBackupAllocatesWithinItsSize(t *testing.T) {
	h := newHistory(t, inPebble(t, persistence.Retention{}), 9)
	h.play(50)
	h.flush()
	image := h.s.AppendTo(nil)
	describing := func(imageBytes int64) []byte {
		info := describe(h.s, h.store, image)
		info.ImageBytes = imageBytes
		b, err := json.Marshal(info)
		h.must(err)
		return b
	}
	begun := func(s *sink) {
		s.part(partInfo, describing(int64(len(image))))
		s.part(partImage, image)
	}
	const many = 160 // MB
	piece, long := make([]byte, imagePiece),
		append(make([]byte, 8), bytes.Repeat([]byte("x"), 200)...)
	for what, fill := range map[string]func(s *sink){
		"a long image": func(s *sink) {
			s.part(partInfo, describing(many<<20))
			for range many {
				s.part(partImage, piece)
			}
		},
		"a longer image than it says": func(s *sink) {
			s.part(partInfo, describing(1000))
			for range many {
				s.part(partImage, piece)
			}
		},
		"an image beyond all bounds": func(s *sink) {
			s.part(partInfo, describing(packed.MaxImage+1))
		},
		"an image of no bytes": func(s *sink) {
			s.part(partInfo, describing(0))
			s.part(partImage, nil)
		},
		"an image of nothing": func(s *sink) {
			s.part(partInfo, describing(1))
			for range 1_000_000 {
				s.part(partImage, nil)
			}
		},
		"very many rows": func(s *sink) {
			begun(s)
			for range many << 20 / len(long) {
				s.part(partNonce, long)
			}
		},
		"very many tiny rows": func(s *sink) {
			begun(s)
			for range 8_000_000 {
				s.part(partNonce, []byte{1, 'k'})
			}
		},
		"a row beyond all bounds": func(s *sink) {
			begun(s)
			s.part(partNonce, make([]byte, 64<<20))
		},
		"a row that says it is long": func(s *sink) {
			begun(s)
			s.write([]byte{partTrade, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
		},
		"a key's name that no store takes": func(s *sink) {
			begun(s)
			s.part(partNonce, make([]byte, 1000))
		},
		"a long description": func(s *sink) { s.part(partInfo, bytes.Repeat([]byte(" "), 64<<20)) },
	} {
		// without the part that makes it long
		var packed bytes.Buffer
		in, err := zstd.NewReader(bytes.NewReader(crafted(t, fill)))
		h.must(err)
		out, err := zstd.NewWriter(&packed)
		h.must(err)
		_, err = io.Copy(out, in)
		h.must(errors.Join(err, out.Close()))
		in.Close()
		b := proven(t, packed.Bytes(), testKey)
		if len(b) > 1<<20 {
			t.Fatalf("%s has %d bytes: the test needs another size", what, len(b))
		}
		n := packedtest.Allocated(func() { _, err = Verify(bytes.NewReader(b), testKey) })
		fails(t, what, err, ErrDamaged)
		if n > mostAllocated {
			t.Errorf("%s: %d bytes allocate %d MB when verified", what, len(b), n>>20)
		}
		if n = packedtest.Allocated(func() {
			_, err = load(t.Context(), &discards{}, bytes.NewReader(b), nothing, loadRows)
		}); n > mostAllocated {
			t.Errorf("%s: %d bytes allocate %d MB when loaded", what, len(b), n>>20)
		}
		fails(t, what, err, ErrDamaged)
	}
}

// An image with counts and lengths beyond its end, or with the same entry very many times.
func TestHostileImageAllocatesWithinItsSize(t *testing.T) {
	image := state.New().AppendTo(nil)
	info, err := json.Marshal(Info{ImageBytes: 64 << 10, Taken: time.Now()})
	succeeds(t, err)
	for at := range image {
		bad := bytes.Clone(image[:at])
		for len(bad) < 64<<10 {
			// a number of 2^28-1, at any place of the image
			bad = append(bad, 0xff, 0xff, 0xff, 0x7f)
		}
		b := crafted(t, func(s *sink) { s.part(partInfo, info); s.part(partImage, bad[:64<<10]) })
		n := packedtest.Allocated(func() { _, err = Open(bytes.NewReader(b), testKey) })
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, persistence.ErrVersion) {
			t.Errorf("an image of large numbers: %v", err)
		}
		if n > mostAllocated {
			t.Errorf("from byte %d on: %d bytes allocate %d MB", at, len(b), n>>20)
		}
	}
}

// A discards is an empty store that accepts all rows and stores none.
type discards struct{ persistence.Store }

func (*discards) Watermark(context.Context) (uint64, error) { return 0, nil }
func (*discards) LoadSnapshot(context.Context, int) (uint64, io.ReadCloser, error) {
	return 0, nil, persistence.ErrNoSnapshot
}
func (*discards) Read(context.Context, uint64, func(uint64, uint64, []byte) error) error {
	return nil
}
func (*discards) Beat(context.Context) (persistence.Beat, error) { return persistence.Beat{}, nil }
func (*discards) Acquire(context.Context, persistence.Claim) (persistence.Token, uint64, error) {
	return "1:x", 0, nil
}
func (*discards) Engine() string                                         { return "main" }
func (*discards) Begin(context.Context, persistence.Token, uint64) error { return nil }
func (*discards) Apply(context.Context, persistence.Token, uint64, uint64,
	*persistence.Writes) error {
	return nil
}
