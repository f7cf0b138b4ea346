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
// The stream is of the form of package packed: compressed, a line of text and then parts: a letter, a length as
// uvarint, and so many bytes. The last letter stands alone, before the checksum.
package backup

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"exchange/core/state"
	"exchange/persistence/internal/packed"
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
	partEnd      = 'e' // no part: the checksum follows
)

// Bounds of parts, in bytes.
const (
	imagePiece = 1 << 20
	maxPart    = 4 << 20
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
	into *packed.Writer
	head []byte
	err  error
}

func newSink(w io.Writer) (*sink, error) {
	into, err := packed.NewWriter(w, magic)
	return &sink{into: into}, err
}

func (s *sink) write(b []byte) {
	if s.err == nil {
		_, s.err = s.into.Write(b)
	}
}

func (s *sink) part(kind byte, b []byte) {
	s.head = binary.AppendUvarint(append(s.head[:0], kind), uint64(len(b)))
	s.write(s.head)
	s.write(b)
}

func (s *sink) close() error {
	s.write([]byte{partEnd})
	return s.into.Close()
}

// parts reads all parts, and checks the stream's end.
func parts(r io.Reader, fn func(kind byte, b []byte) error) error {
	damaged := func(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }
	in, err := packed.NewReader(r, magic)
	if err != nil {
		return damaged(err)
	}
	defer in.Close()
	var b []byte
	for {
		kind, err := in.ReadByte()
		if err != nil {
			return damaged(err)
		}
		if kind == partEnd {
			if err := in.Done(); err != nil {
				return damaged(err)
			}
			return nil
		}
		n, err := binary.ReadUvarint(in)
		if err != nil {
			return damaged(err)
		}
		if n > maxPart {
			return fmt.Errorf("%w: it has a part of %d bytes", ErrDamaged, n)
		}
		if uint64(cap(b)) < n {
			b = make([]byte, n)
		}
		b = b[:n]
		if _, err := io.ReadFull(in, b); err != nil {
			return damaged(err)
		}
		if err := fn(kind, b); err != nil {
			return err
		}
	}
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
