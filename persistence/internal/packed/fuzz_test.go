package packed

import (
	"bytes"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A stream that reads as whole was written by a Writer of the same content. Any other stream is
// refused without allocating much memory.
func FuzzReader(f *testing.F) {
	encoder, err := zstd.NewWriter(nil, zstd.WithWindowSize(window))
	succeeds(f, err)
	write := func(t testing.TB, content []byte) []byte {
		var b bytes.Buffer
		w, err := NewWriter(&b, magic, testKey)
		if err == nil {
			_, err = w.Write(content)
		}
		if err == nil {
			err = w.Close()
		}
		succeeds(t, err)
		return b.Bytes()
	}
	whole := write(f, []byte("the content"))
	f.Add(whole, false)
	f.Add(whole[:len(whole)-1], false)
	f.Add(write(f, nil), false)
	f.Add([]byte(magic), true)
	f.Add([]byte("another magic\n"), true)
	// a window that is far too long
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 0xff, 0xff}, false)
	f.Add(encoder.EncodeAll(bytes.Repeat([]byte{0}, 1<<20), nil), false)
	f.Fuzz(func(t *testing.T, data []byte, compress bool) {
		stream := data
		if compress { // so that the bytes get past the compression
			stream = proven(t, encoder.EncodeAll(data, nil), testKey)
		}
		r, err := NewReader(bytes.NewReader(stream), magic, testKey)
		if err != nil {
			return
		}
		defer r.Close()
		const most = 1 << 20
		all, err := io.ReadAll(io.LimitReader(r, most))
		if err == nil && len(all) < most {
			t.Fatal("a stream has an end of its own")
		}
		content := all
		in, err := NewReader(bytes.NewReader(stream), magic, testKey)
		succeeds(t, err)
		defer in.Close()
		if _, err := io.ReadFull(in, make([]byte, len(content))); err != nil {
			t.Fatal(err)
		}
		if in.Done() != nil {
			return
		}
		if err := Authenticate(bytes.NewReader(stream), testKey); err != nil {
			t.Fatalf("the read part is authentic, and the whole is not: %v", err)
		}
		got, err := read(bytes.NewReader(write(t, content)), len(content))
		if err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%x came back as %x, %v", content, got, err)
		}
	})
}
