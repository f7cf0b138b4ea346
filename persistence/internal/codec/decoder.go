package codec

import (
	"fmt"

	"exchange/core/money"
	"exchange/core/wire"
	"exchange/persistence"
)

// decoder reads a row; close reports the first fault.
type decoder struct {
	wire.Reader
	version byte
}

func open(row []byte) decoder {
	d := decoder{Reader: wire.Read(row)}
	if d.version = d.Byte(); d.version != Version {
		d.Fail("another version")
	}
	return d
}

func (d *decoder) text() string { return d.Text(d.Len()) }

func (d *decoder) balance() money.Balance {
	hi, lo := d.Uint(), d.Uint()
	return money.BalanceFromBits(hi, lo)
}

// appendBalance writes a balance in the form of rows: the high 64 bits first.
func appendBalance(dst []byte, b money.Balance) []byte {
	hi, lo := b.Bits()
	return wire.AppendUints(dst, hi, lo)
}

// close reports whether the row was read to its end without a fault.
func (d *decoder) close(kind string, id uint64) error {
	switch {
	case d.version != Version:
		return fmt.Errorf("the row of %s %d: %w", kind, id,
			persistence.OtherVersion(uint64(d.version), Version))
	case !d.End():
		return fmt.Errorf("%w: the row of %s %d: %s; restore a backup", persistence.ErrCorrupt,
			kind, id, d.Fault())
	}
	return nil
}
