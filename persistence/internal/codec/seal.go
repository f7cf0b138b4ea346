package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"exchange/persistence"
)

// A Place identifies where a value is stored: the checksum of its key, or of its list and its id. A
// value's checksum continues from its place's, so a value in another place fails the check.
type Place uint32

// At returns the place of a key.
func At[T string | []byte](key T) Place { return Place(0).And([]byte(key)) }

// And returns a place within another.
func (p Place) And(b []byte) Place { return Place(crc32.Update(uint32(p), castagnoli, b)) }

// SumSize is the length of the checksum after a value.
const SumSize = 4

// Seal appends a value and its checksum to dst. The value must begin with Version, because Open
// checks that.
func (p Place) Seal(dst, value []byte) []byte {
	at := len(dst)
	dst = append(dst, value...)
	return binary.BigEndian.AppendUint32(dst, uint32(p.And(dst[at:])))
}

var errSum = errors.New("its checksum is wrong")

// Open returns the value that Seal wrote in that place. ErrCorrupt names the fault; the caller adds
// the place.
func (p Place) Open(sealed []byte) ([]byte, error) {
	if len(sealed) < 1+SumSize {
		return nil, fmt.Errorf("%w: it has %d bytes", persistence.ErrCorrupt, len(sealed))
	}
	value := sealed[:len(sealed)-SumSize]
	if Sum(sealed) != uint32(p.And(value)) {
		return nil, fmt.Errorf("%w: %w", persistence.ErrCorrupt, errSum)
	}
	// the checksum covers the version: it is as written, not damaged
	if v := value[0]; v != Version {
		return nil, persistence.OtherVersion(uint64(v), Version)
	}
	return value, nil
}

// Sum returns the checksum at the end of bytes that Seal wrote.
func Sum(sealed []byte) uint32 { return binary.BigEndian.Uint32(sealed[len(sealed)-SumSize:]) }

// Text returns the checksum of a version and a text in that place, as text:
// "<version>.<8 hexadecimal digits>".
func (p Place) Text(text string) string { return p.textOf(Version, text) }

func (p Place) textOf(version byte, text string) string {
	return fmt.Sprintf("%d.%08x", version, uint32(p.And([]byte{version}).And([]byte(text))))
}

// CheckText refuses a text with another checksum.
func (p Place) CheckText(text, sum string) error {
	if sum == p.Text(text) {
		return nil
	}
	var v byte
	if n, _ := fmt.Sscanf(sum, "%d.", &v); n == 1 && sum == p.textOf(v, text) {
		return persistence.OtherVersion(uint64(v), Version)
	}
	return fmt.Errorf("%w: %w", persistence.ErrCorrupt, errSum)
}
