package backup

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/internal/packed"
)

const magic = "exchange backup 3\n"

// Letters of the parts.
const (
	partInfo       = 'i' // JSON
	partImage      = 'm' // a piece of the state's image
	partTrade      = 't'
	partOrder      = 'o'
	partDeposit    = 'd'
	partWithdrawal = 'w'
	partCandle     = 'c'
	partAction     = 'a'
	partNonce      = 'n'
	partEnd        = 'e' // no part: the checksum follows
)

// Bounds of parts, in bytes.
const (
	imagePiece = 1 << 20
	maxInfo    = 64 << 10
	// The longest row is an operator's action: 4,096 bytes of text, and the operator's name.
	maxRow = 8 << 10
)

// FileName returns the name of a backup's file: exchange-SEQUENCE.backup.
func FileName(sequence uint64) string { return fmt.Sprintf("exchange-%d.backup", sequence) }

// IsFileName reports whether a backup's file has that name.
func IsFileName(name string) bool {
	var sequence uint64
	_, err := fmt.Sscanf(name, "exchange-%d.backup", &sequence)
	return err == nil && name == FileName(sequence)
}

// Info describes a backup: its engine, sequence, time and counts.
type Info struct {
	Engine   string    `json:"engine"`
	History  string    `json:"history"` // id of the exchange's history, in hex
	Sequence uint64    `json:"sequence"`
	Taken    time.Time `json:"taken"`
	Store    string    `json:"store"`
	Accounts int       `json:"accounts"`
	Keys     int       `json:"keys"`
	// ImageBytes is the length of the state's image.
	ImageBytes int64 `json:"image_bytes"`
	// SealedBy are the ids of the secret keys that the API secrets are sealed with.
	SealedBy []string `json:"sealed_by"`

	Rows map[string]int `json:"-"` // read so far, by kind
}

// ErrDamaged is wrapped by every error of a stream that is not whole. One that another version of
// the program wrote is not damaged: its error wraps persistence.ErrVersion instead.
var ErrDamaged = errors.New("the backup is damaged")

// A sink writes parts.
type sink struct {
	into *packed.Writer
	head []byte
	err  error
}

func newSink(w io.Writer, by persistence.Authority) (*sink, error) {
	into, err := packed.NewWriter(w, magic, by)
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

// A reader takes a backup apart: its description, the image, and then rows.
type reader struct {
	in   *packed.Reader
	info Info

	kind  byte
	part  []byte // until the next one is read
	ahead bool   // the part was read by image, for next
	ended bool   // there is no part: the stream ended there, whole
	row   rows
}

// open reads the description of a backup. close frees the reader.
func open(r io.Reader, by persistence.Authority) (*reader, error) {
	in, err := packed.NewReader(r, magic, by)
	if err != nil {
		return nil, damaged(err)
	}
	s := &reader{in: in}
	if err := s.describe(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (r *reader) close() { r.in.Close() }

func damaged(err error) error {
	if err == nil || errors.Is(err, persistence.ErrNoKey) ||
		errors.Is(err, persistence.ErrVersion) { // the backup may be good
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// advance reads a part, or the stream's end, which it checks.
func (r *reader) advance() (err error) {
	if r.kind, err = r.in.ReadByte(); err != nil {
		return damaged(err)
	}
	if r.ended = r.kind == partEnd; r.ended {
		return damaged(r.in.Done())
	}
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return damaged(err)
	}
	if most := longest(r.kind); n > most {
		return fmt.Errorf("%w: it has a part of %d bytes, and one of kind %q has at most %d",
			ErrDamaged, n, r.kind, most)
	}
	r.part = slices.Grow(r.part[:0], int(n))[:n]
	_, err = io.ReadFull(r.in, r.part)
	return damaged(err)
}

// longest bounds a part of a kind, in bytes.
func longest(kind byte) uint64 {
	switch kind {
	case partInfo:
		return maxInfo
	case partImage:
		return imagePiece
	default:
		return maxRow
	}
}

func (r *reader) describe() error {
	if err := r.advance(); err != nil {
		return err
	}
	if r.kind != partInfo {
		return fmt.Errorf("%w: it does not begin with its description", ErrDamaged)
	}
	if err := json.Unmarshal(r.part, &r.info); err != nil {
		return damaged(err)
	}
	if n := r.info.ImageBytes; n < 1 || n > packed.MaxImage {
		return fmt.Errorf("%w: it says that its image has %d bytes, 1 to %d are possible",
			ErrDamaged, n, int64(packed.MaxImage))
	}
	r.info.Rows = map[string]int{}
	return nil
}

// image passes on the state's image in pieces, of the described length in all. An image of a
// version that this program does not read is refused before the rows, which may be newer, too.
func (r *reader) image(piece func(b []byte)) error {
	for n := int64(0); ; piece(r.part) {
		if err := r.advance(); err != nil {
			return err
		}
		if r.kind != partImage {
			r.ahead = true
			if n != r.info.ImageBytes {
				return fmt.Errorf("%w: its image ends after %d bytes of %d", ErrDamaged, n,
					r.info.ImageBytes)
			}
			return nil
		}
		if n += int64(len(r.part)); len(r.part) == 0 || n > r.info.ImageBytes {
			return fmt.Errorf("%w: a piece of %d bytes does not belong to an image of %d",
				ErrDamaged, len(r.part), r.info.ImageBytes)
		}
		if n == int64(len(r.part)) {
			if err := state.Readable(r.part); err != nil {
				return persistence.Unreadable(fmt.Errorf("its state: %w", err))
			}
		}
	}
}

// next reads a row; false after the last one, when the stream has ended whole.
func (r *reader) next() (bool, error) {
	if !r.ahead {
		if err := r.advance(); err != nil {
			return false, err
		}
	}
	r.ahead = false
	if r.ended {
		return false, nil
	}
	if err := r.row.decode(r.kind, r.part); err != nil {
		return false, damaged(err)
	}
	r.info.Rows[kindNames[r.kind]]++
	return true, nil
}

var kindNames = map[byte]string{partTrade: "trades", partOrder: "closed orders",
	partDeposit: "deposits", partWithdrawal: "withdraws",
	partCandle: "candles", partAction: "actions", partNonce: "nonces"}

// Verify reads a whole backup and returns its description. It holds at most a piece of it in
// memory, and does not decode the state's image, as Open does. by must find the backup authentic;
// nil: no proof is required. An error wraps ErrDamaged, or persistence.ErrNoKey.
func Verify(r io.Reader, by persistence.Authority) (*Info, error) {
	b, err := open(r, by)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := b.image(func([]byte) {}); err != nil {
		return nil, err
	}
	for more := true; more; {
		if more, err = b.next(); err != nil {
			return nil, err
		}
	}
	return &b.info, nil
}

// Authenticate reads all of a backup and unpacks nothing. It returns nil if the backup was written
// under one of by's keys, and not changed since. An error wraps ErrDamaged, or
// persistence.ErrNoKey.
func Authenticate(r io.Reader, by persistence.Authority) error {
	return damaged(packed.Authenticate(r, by))
}

// Describe reads the description of a backup alone. The rest may be damaged.
func Describe(r io.Reader) (*Info, error) {
	b, err := open(r, nil)
	if err != nil {
		return nil, err
	}
	defer b.close()
	return &b.info, nil
}
