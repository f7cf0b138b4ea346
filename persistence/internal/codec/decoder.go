package codec

import (
	"encoding/binary"
	"fmt"

	"exchange/core/money"
	"exchange/persistence"
)

func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendBalance(dst []byte, b money.Balance) []byte {
	hi, lo := b.Bits()
	dst = binary.AppendUvarint(dst, hi)
	return binary.AppendUvarint(dst, lo)
}

// decoder reads a row; after the first fault it yields zeros and close reports it.
type decoder struct {
	rest    []byte
	bad     bool
	version byte
	more    bool // it has more at its end: one of versionMore
}

func open(row []byte) decoder {
	d := decoder{rest: row}
	if d.version = d.byte(); d.version != Version {
		d.bad = true
	}
	return d
}

// openMore is open for a row that may have more at its end.
func openMore(row []byte) decoder {
	if len(row) == 0 || row[0] != versionMore {
		return open(row)
	}
	return decoder{rest: row[1:], version: Version, more: true}
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.bad = true
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) upTo(limit uint64) uint64 {
	v := d.uvarint()
	if v > limit {
		d.bad = true
		return 0
	}
	return v
}

func (d *decoder) balance() money.Balance {
	hi := d.uvarint()
	return money.BalanceFromBits(hi, d.uvarint())
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

// close reports whether the row was read to its end without a fault.
func (d *decoder) close(kind string, id uint64) error {
	switch {
	case d.version != Version:
		return fmt.Errorf("the row of %s %d: %w", kind, id,
			persistence.OtherVersion(uint64(d.version), Version))
	case d.bad || len(d.rest) != 0:
		return fmt.Errorf("%w: the row of %s %d has a wrong length; restore a backup",
			persistence.ErrCorrupt, kind, id)
	}
	return nil
}
