// Package backup writes all that an exchange remembers at one sequence into one stream, and fills an empty
// store from it: of the same kind or of another.
//
//	err := backup.Write(ctx, w, store, image, progress) // while the exchange runs; the history must have reached the image
//	info, err := backup.Verify(r)                       // reads all of it, changes nothing
//	info, err = backup.Load(ctx, store, r, progress)    // into an empty store
//
// A backup has the state's image and the history up to its sequence, but no journal: an exchange that starts on
// the restored store continues from the image. It does not have the server's secret key, with which the API
// secrets in it are sealed: that is kept apart.
//
// The stream is compressed (zstd). Decompressed it is a line of text and then parts: a letter, a length as
// uvarint, and so many bytes; the last part is the SHA-256 of all before it.
package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"exchange/core/state"
)

const magic = "exchange backup 1\n"

// Letters of the parts.
const (
	partInfo     = 'i' // JSON
	partImage    = 'm' // a piece of the state's image
	partTrade    = 't'
	partOrder    = 'o'
	partDeposit  = 'd'
	partWithdraw = 'w'
	partCandle   = 'c'
	partAction   = 'a'
	partNonce    = 'n'
	partEnd      = 'e' // SHA-256 of all before
)

// Bounds of parts, in bytes.
const (
	imagePiece = 1 << 20
	maxPart    = 4 << 20
	// window is how far back the compression looks. Damage that asks the reader for more memory is refused.
	window = 8 << 20
)

// Info says what a backup is of.
type Info struct {
	Sequence uint64    `json:"sequence"`
	Taken    time.Time `json:"taken"`
	Store    string    `json:"store"`
	Accounts int       `json:"accounts"`
	Keys     int       `json:"keys"`
	// SealedBy are the ids of the secret keys that the API secrets are sealed with.
	SealedBy []string `json:"sealed_by"`

	Rows map[string]int `json:"-"` // read so far, by kind
}

// ErrDamaged is wrapped by every error of a stream that is not whole.
var ErrDamaged = errors.New("the backup is damaged")

// A sink writes parts.
type sink struct {
	packed *zstd.Encoder
	sum    hash.Hash
	head   []byte
	err    error
}

func newSink(w io.Writer) (*sink, error) {
	// Nothing is written in the background, where w might be gone already.
	packed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return nil, err
	}
	s := &sink{packed: packed, sum: sha256.New()}
	s.write([]byte(magic))
	return s, nil
}

func (s *sink) write(b []byte) {
	if s.err == nil {
		s.sum.Write(b)
		_, s.err = s.packed.Write(b)
	}
}

func (s *sink) part(kind byte, b []byte) {
	s.head = binary.AppendUvarint(append(s.head[:0], kind), uint64(len(b)))
	s.write(s.head)
	s.write(b)
}

func (s *sink) close() error {
	sum := s.sum.Sum(nil)
	s.part(partEnd, sum)
	return errors.Join(s.err, s.packed.Close())
}

// parts reads all parts but the last, and checks the stream's end.
func parts(r io.Reader, fn func(kind byte, b []byte) error) error {
	packed, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer packed.Close()
	sum := sha256.New()
	in := bufio.NewReaderSize(packed, 1<<16)
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(in, head); err != nil {
		return fmt.Errorf("%w: its beginning cannot be read: %w", ErrDamaged, err)
	}
	if string(head) != magic {
		return fmt.Errorf("%w: it does not begin as a backup of version 1", ErrDamaged)
	}
	sum.Write(head)
	var b []byte
	for {
		kind, err := in.ReadByte()
		if err != nil {
			return fmt.Errorf("%w: it is cut off: %w", ErrDamaged, err)
		}
		n, err := binary.ReadUvarint(in)
		if err != nil {
			return fmt.Errorf("%w: it is cut off: %w", ErrDamaged, err)
		}
		if n > maxPart {
			return fmt.Errorf("%w: it has a part of %d bytes", ErrDamaged, n)
		}
		if uint64(cap(b)) < n {
			b = make([]byte, n)
		}
		b = b[:n]
		if _, err := io.ReadFull(in, b); err != nil {
			return fmt.Errorf("%w: a part is cut off: %w", ErrDamaged, err)
		}
		if kind == partEnd {
			return atEnd(in, b, sum.Sum(nil))
		}
		sum.Write(binary.AppendUvarint([]byte{kind}, n))
		sum.Write(b)
		if err := fn(kind, b); err != nil {
			return err
		}
	}
}

func atEnd(in *bufio.Reader, got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%w: the checksum is wrong", ErrDamaged)
	}
	switch _, err := in.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%w: there is more behind its end", ErrDamaged)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("%w: its end is cut off: %w", ErrDamaged, err)
	}
	return nil
}

// A reader takes a backup apart.
type reader struct {
	info  Info
	image []byte
	state *state.State
	row   rows
}

// next takes one part; rows go to add, nil if nobody wants them.
func (r *reader) next(kind byte, b []byte, add func(*rows) error) error {
	switch {
	case kind == partInfo && r.info.Rows == nil:
		r.info.Rows = map[string]int{}
		if err := json.Unmarshal(b, &r.info); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return nil
	case r.info.Rows == nil:
		return fmt.Errorf("%w: it does not say first what it is of", ErrDamaged)
	case kind == partImage && r.state == nil:
		r.image = append(r.image, b...)
		return nil
	}
	if err := r.imageEnds(); err != nil {
		return err
	}
	if err := r.row.decode(kind, b); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r.info.Rows[kindNames[kind]]++
	if add != nil {
		return add(&r.row)
	}
	return nil
}

// imageEnds makes the state of the image, which has all its pieces now.
func (r *reader) imageEnds() (err error) {
	if r.state != nil {
		return nil
	}
	s, err := state.Decode(r.image)
	if err == nil && s.Seq() != r.info.Sequence {
		err = fmt.Errorf("it is of sequence %d, its state of %d", r.info.Sequence, s.Seq())
	}
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r.state = s
	return nil
}

var kindNames = map[byte]string{partTrade: "trades", partOrder: "closed orders", partDeposit: "deposits", partWithdraw: "withdraws",
	partCandle: "candles", partAction: "actions", partNonce: "nonces"}

// Verify reads a whole backup and says what it is of. An error wraps ErrDamaged.
func Verify(r io.Reader) (*Info, error) {
	var b reader
	if err := parts(r, func(kind byte, part []byte) error { return b.next(kind, part, nil) }); err != nil {
		return nil, err
	}
	if err := b.imageEnds(); err != nil { // there was no row at all
		return nil, err
	}
	return &b.info, nil
}

var errEnough = errors.New("enough")

// Describe reads only what a backup says of itself. The rest may be damaged.
func Describe(r io.Reader) (*Info, error) {
	var b reader
	err := parts(r, func(kind byte, part []byte) error {
		if err := b.next(kind, part, nil); err != nil {
			return err
		}
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if b.info.Rows == nil {
		return nil, fmt.Errorf("%w: it does not say what it is of", ErrDamaged)
	}
	return &b.info, nil
}
