package backup

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/internal/packed"
)

// A stream with a right checksum is a backup whose content is valid, or it is damaged.
func FuzzVerify(f *testing.F) {
	s := state.New()
	info, err := json.Marshal(Info{Sequence: s.Seq(), ImageBytes: int64(len(s.AppendTo(nil)))})
	succeeds(f, err)
	part := func(b []byte, kind byte, content []byte) []byte {
		return append(binary.AppendUvarint(append(b, kind), uint64(len(content))), content...)
	}
	whole := part(part(nil, partInfo, info), partImage, s.AppendTo(nil))
	nonce := append(make([]byte, 8), "key"...)
	for _, b := range [][]byte{nil, {partEnd}, append(bytes.Clone(whole), partEnd),
		append(part(bytes.Clone(whole), partNonce, nonce), partEnd),
		append(part(whole[:len(whole):len(whole)], partTrade, make([]byte, 20)), partEnd),
		{partInfo, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		append(part(nil, partInfo, []byte(`{"rows":null}`)), partEnd),
		append(part(nil, partInfo, []byte(`{"image_bytes":9000000000}`)), partEnd),
		append(part(part(nil, partInfo, []byte(`{"image_bytes":3}`)), partImage, nil), partEnd),
		append(part(bytes.Clone(whole), partNonce, make([]byte, 300)), partEnd),
		append(part(bytes.Clone(whole), partImage, []byte("more")), partEnd)} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var stream bytes.Buffer
		w, err := packed.NewWriter(&stream, magic, testKey)
		if err == nil {
			_, err = w.Write(content)
		}
		succeeds(t, err, w.Close())
		read, err := Verify(bytes.NewReader(stream.Bytes()), testKey)
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, persistence.ErrVersion) {
			t.Fatal(err)
		}
		if opened, err := Open(bytes.NewReader(stream.Bytes()), testKey); err == nil {
			opened.Close()
		} else if !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		described, errOfHead := Describe(bytes.NewReader(stream.Bytes()))
		if err == nil && (errOfHead != nil || described.Sequence != read.Sequence) {
			t.Fatalf("it is of %+v, and its description is %+v, %v", read, described, errOfHead)
		}
		if _, err := Verify(io.LimitReader(bytes.NewReader(stream.Bytes()), int64(stream.Len()-1)),
			testKey); !errors.Is(err, ErrDamaged) && !errors.Is(err, persistence.ErrVersion) {
			t.Fatalf("without its last byte it is whole: %v", err)
		}
	})
}
