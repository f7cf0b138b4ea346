// Package packed is the form of the files that are kept apart from a store, backups and parts of an archive: one
// compressed stream (zstd) that begins with a line of text, and ends with the SHA-256 of all before it.
package packed

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// window is how far back the compression looks. Damage that asks the reader for more memory is refused.
const window = 8 << 20

// A Writer writes one stream. After an error it only repeats the error.
type Writer struct {
	packed *zstd.Encoder
	sum    hash.Hash
	err    error
}

// NewWriter begins a stream. magic is its first line, with the line's end.
func NewWriter(w io.Writer, magic string) (*Writer, error) {
	// Nothing is written in the background, where w might be gone already.
	packed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return nil, err
	}
	s := &Writer{packed: packed, sum: sha256.New()}
	_, err = s.Write([]byte(magic))
	return s, err
}

func (w *Writer) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.sum.Write(b)
	var n int
	n, w.err = w.packed.Write(b)
	return n, w.err
}

// Close writes the checksum. A stream that was not closed is never taken for a whole one.
func (w *Writer) Close() error {
	if w.err == nil {
		_, w.err = w.packed.Write(w.sum.Sum(nil))
	}
	if w.err == nil {
		w.err = w.packed.Close()
	}
	return w.err
}

// Faults of a stream, in words for people.
var (
	errCut    = errors.New("it is cut off")
	errPacked = errors.New("its compressed data is damaged")
	errSum    = errors.New("its checksum is wrong")
	errMore   = errors.New("there is more behind its end")
)

// A Reader reads one stream. Its errors say what is wrong with the stream, or wrap that of the reader below; there
// is no io.EOF, for the stream says itself where it ends.
type Reader struct {
	below  *below
	packed *zstd.Decoder
	in     *bufio.Reader
	sum    hash.Hash
	one    [1]byte
}

// NewReader reads a stream's first line, which must be magic. Close frees it.
func NewReader(r io.Reader, magic string) (*Reader, error) {
	s := &Reader{below: &below{in: r}, sum: sha256.New()}
	var err error
	if s.packed, err = zstd.NewReader(s.below, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window)); err != nil {
		return nil, s.fault(err)
	}
	s.in = bufio.NewReaderSize(s.packed, 1<<16)
	head := make([]byte, len(magic))
	if _, err = io.ReadFull(s, head); err == nil && string(head) != magic {
		err = fmt.Errorf("it does not begin with %q, which this program reads, but with %q", strings.TrimSpace(magic), head)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.sum.Write(p[:n])
	return n, r.fault(err)
}

func (r *Reader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.one[0] = b
		r.sum.Write(r.one[:])
	}
	return b, r.fault(err)
}

// Done reads the checksum, which must be right and the last of the stream.
func (r *Reader) Done() error {
	want := r.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errSum
	}
	switch _, err := r.in.ReadByte(); err {
	case nil:
		return errMore
	case io.EOF: //nolint:errorlint // as io.ByteReader demands
		return nil
	default:
		return r.fault(err)
	}
}

// Close frees what the reader holds.
func (r *Reader) Close() { r.packed.Close() }

// fault says what an error means. Data is unpacked ahead of what is read, so damage may lie far behind.
func (r *Reader) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case r.below.err != nil:
		return fmt.Errorf("it cannot be read: %w", r.below.err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errCut
	}
	return errPacked
}

// below keeps the error of the reader below, to be told from damage.
type below struct {
	in  io.Reader
	err error
}

func (b *below) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // as io.Reader demands
		b.err = err
	}
	return n, err
}
