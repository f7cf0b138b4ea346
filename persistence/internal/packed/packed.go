// Package packed is the form of the files that are kept apart from a store: backups and parts of an
// archive. A file is a compressed stream (zstd) that begins with a line of text. The proof follows
// in a frame that zstd skips. It holds the SHA-256 of all bytes before it, the id of a server's
// key, and an HMAC under that key over both. So a file is proven whole and authentic before a byte
// of it is unpacked.
//
//	packed.go  writing and reading a stream, and its bounds
//	proof.go   the proof
package packed

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"exchange/persistence"
)

// window is the compression's window in bytes. A stream that requires more memory is refused as
// damaged.
const window = 8 << 20

// Bounds of the size to which a stream may unpack: slack bytes, and ratio more for each byte read.
// So the size of a hostile file bounds the memory, disk and time that it can cost. A Writer keeps
// to half of both, and pads a stream that packs better than that.
const (
	slack = 8 << 20
	ratio = 32
)

// MaxImage bounds the image of a state in a backup or an archive, in bytes.
const MaxImage = 4 << 30

// A Writer writes one stream. After an error it only repeats the error.
type Writer struct {
	out    io.Writer
	packed *zstd.Encoder // writes to a counter
	sum    hash.Hash     // of all that was written to out
	by     persistence.Authority
	mac    []byte // once it is closed
	in     int64  // bytes of content
	size   int64  // bytes of the stream so far
	err    error
}

// NewWriter begins a stream that by authenticates. magic is its first line, with the line's end.
func NewWriter(w io.Writer, magic string, by persistence.Authority) (*Writer, error) {
	// One encoder: a second one would write in the background, perhaps after the caller is done
	// with w.
	s := &Writer{out: w, sum: sha256.New(), by: by}
	var err error
	s.packed, err = zstd.NewWriter(counter{s}, zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window))
	if err != nil {
		return nil, err
	}
	_, err = s.Write([]byte(magic))
	return s, err
}

// A counter writes to the stream itself.
type counter struct{ w *Writer }

func (c counter) Write(b []byte) (int, error) {
	n, err := c.w.out.Write(b)
	c.w.sum.Write(b[:n])
	c.w.size += int64(n)
	return n, err
}

func (w *Writer) Write(b []byte) (n int, err error) {
	for chunk := range slices.Chunk(b, slack/8) {
		if w.err != nil {
			break
		}
		var wrote int
		wrote, w.err = w.packed.Write(chunk)
		n += wrote
		w.in += int64(wrote)
		w.pad()
	}
	return n, w.err
}

// pad makes the stream longer where it packs so well that a reader would refuse it as hostile. It
// ends the compressed frame, and appends a frame that readers skip.
func (w *Writer) pad() {
	missing := (w.in-slack/2)/(ratio/2) - w.size
	if missing <= 0 || w.err != nil {
		return
	}
	if w.err = w.packed.Close(); w.err == nil {
		_, w.err = counter{w}.Write(skipped(make([]byte, missing+slack/ratio)))
		w.packed.Reset(counter{w})
	}
}

// skipped returns a frame of the kind that the compression's readers skip.
func skipped(b []byte) []byte {
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 8+len(b)), 0x184D2A50)
	return append(binary.LittleEndian.AppendUint32(frame, uint32(len(b))), b...)
}

// Close writes the proof. A stream that was not closed is never taken for a whole one.
func (w *Writer) Close() error {
	if w.err == nil {
		w.err = w.packed.Close()
	}
	if w.err == nil {
		var proof []byte
		if proof, w.err = Prove(w.sum.Sum(nil), w.by); w.err == nil {
			w.mac = proof[len(proof)-macSize:]
			_, w.err = w.out.Write(proof)
		}
	}
	return w.err
}

// MAC returns the HMAC of a stream that was closed without an error.
func (w *Writer) MAC() []byte { return w.mac }

// Faults of a stream, for people.
var (
	errCut    = errors.New("it is cut off")
	errPacked = errors.New("its compressed data is damaged")
	errSum    = errors.New("its checksum is wrong")
	errMore   = errors.New("there is more after its end")
	errBomb   = fmt.Errorf("it unpacks to more than %d MB and %d times its own size",
		slack>>20, ratio)
)

// A Reader reads one stream. Its errors name the fault of the stream, or wrap the error of the
// reader below. It never returns io.EOF, because the stream itself marks its end.
type Reader struct {
	below  *below
	packed *zstd.Decoder
	in     *bufio.Reader
	by     persistence.Authority
	mac    []byte // once it was read to its end
	out    int64  // bytes that were unpacked and read
}

// NewReader reads a stream's first line, which must be magic. Close frees it. Done checks with by,
// if it is not nil, that the stream is authentic.
func NewReader(r io.Reader, magic string, by persistence.Authority) (*Reader, error) {
	s := &Reader{below: newBelow(r), by: by}
	var err error
	if s.packed, err = zstd.NewReader(s.below, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(window)); err != nil {
		return nil, s.fault(err)
	}
	s.in = bufio.NewReaderSize(s.packed, 1<<16)
	head := make([]byte, len(magic))
	if _, err = io.ReadFull(s, head); err == nil && string(head) != magic {
		err = otherMagic(magic, string(head))
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// otherMagic returns the error of a stream that begins with another line than magic. The version is
// the last word of the line.
func otherMagic(magic, head string) error {
	ours := strings.TrimSpace(magic)
	kind, version, _ := strings.Cut(head, ours[:strings.LastIndexByte(ours, ' ')+1])
	version, _, _ = strings.Cut(version, "\n")
	reads, _ := strconv.ParseUint(ours[strings.LastIndexByte(ours, ' ')+1:], 10, 32)
	if found, err := strconv.ParseUint(version, 10, 32); kind == "" && err == nil {
		return persistence.OtherVersion(found, reads)
	}
	return fmt.Errorf("it does not begin with %q, which this program reads, but with %q", ours,
		head)
}

func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if r.out += int64(n); r.tooMuch() {
		return 0, errBomb
	}
	return n, r.fault(err)
}

func (r *Reader) tooMuch() bool { return r.out > slack && (r.out-slack)/ratio > r.below.n }

func (r *Reader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if r.out++; err == nil && r.tooMuch() {
		err = errBomb
	}
	return b, r.fault(err)
}

// Done wants the stream to end here, and its proof to be right.
func (r *Reader) Done() error {
	switch _, err := r.in.ReadByte(); err {
	case nil:
		return errMore
	case io.EOF: //nolint:errorlint // as io.ByteReader demands
	default:
		return r.fault(err)
	}
	mac, err := r.below.proven(r.by)
	r.mac = mac
	return err
}

// MAC returns the HMAC of a stream for which Done returned nil.
func (r *Reader) MAC() []byte { return r.mac }

// Close frees the reader's memory.
func (r *Reader) Close() { r.packed.Close() }

// fault turns an error of the decoder into damage if it is damage. Data is unpacked ahead of the
// reads, so damage may lie far after them.
func (r *Reader) fault(err error) error {
	switch {
	case err == nil, errors.Is(err, errBomb):
		return err
	case r.below.err != nil:
		return fmt.Errorf("it cannot be read: %w", r.below.err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errCut
	}
	return errPacked
}

// below is the reader of the file itself. It keeps its own error, which is no damage of the stream,
// and the sum of the bytes.
type below struct {
	in   io.Reader
	n    int64 // bytes read
	err  error
	sum  hash.Hash // of all bytes but the tail
	tail []byte    // the newest ones, at the end the proof
}

func newBelow(r io.Reader) *below { return &below{in: r, sum: sha256.New()} }

func (b *below) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	b.n += int64(n)
	b.tail = append(b.tail, p[:n]...)
	if k := len(b.tail) - proofSize; k > 0 {
		b.sum.Write(b.tail[:k])
		b.tail = b.tail[:copy(b.tail, b.tail[k:])]
	}
	if err != nil && err != io.EOF { //nolint:errorlint // as io.Reader demands
		b.err = err
	}
	return n, err
}
