package wire

import (
	"encoding/binary"
	"math"

	"exchange/core/money"
)

// A Reader reads bytes, which must not change meanwhile. At the first fault it turns bad: it keeps
// the reason, and reads zeros from then on. No result is longer than the bytes.
type Reader struct {
	b     []byte
	fault string
}

// Read returns a reader of b.
func Read(b []byte) Reader { return Reader{b: b} }

// Fail turns the reader bad, with a reason.
func (r *Reader) Fail(why string) {
	if r.fault == "" {
		r.fault = why
	}
	r.b = nil
}

// Check turns the reader bad unless a value that it read is valid.
func (r *Reader) Check(can bool) {
	if !can {
		r.Fail("a value that none can have")
	}
}

// Bad reports whether there was a fault.
func (r *Reader) Bad() bool { return r.fault != "" }

// Fault returns the reason of the first fault, "" if there was none.
func (r *Reader) Fault() string { return r.fault }

// Len returns the number of unread bytes.
func (r *Reader) Len() int { return len(r.b) }

// Rest reads all remaining bytes.
func (r *Reader) Rest() []byte {
	rest := r.b
	r.b = nil
	return rest
}

// End reports whether all bytes were read without a fault: trailing bytes are a fault.
func (r *Reader) End() bool {
	if len(r.b) > 0 {
		r.Fail("bytes are left over at the end")
	}
	return !r.Bad()
}

// Uint reads what binary.AppendUvarint wrote.
func (r *Reader) Uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if !r.skip(n) {
		return 0
	}
	return v
}

// Int reads what binary.AppendVarint wrote.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.b)
	if !r.skip(n) {
		return 0
	}
	return v
}

// skip skips a number of n bytes; a truncated number or one above 64 bits is a fault.
func (r *Reader) skip(n int) bool {
	switch {
	case n <= 0:
		r.Fail("a number is cut off, or too large")
	case n > 1 && r.b[n-1] == 0:
		r.Fail("a number is longer than it must be")
	default:
		r.b = r.b[n:]
		return true
	}
	return false
}

// Skip skips numbers.
func (r *Reader) Skip(numbers int) {
	i := 0
	for range numbers {
		for i < len(r.b) && r.b[i] >= 0x80 {
			i++
		}
		i++
	}
	r.Take(i)
}

// Fixed16, Fixed32 and Fixed64 read a big-endian number of that many bits, not a varint.
func (r *Reader) Fixed16() uint16 { return uint16(r.fixed(2)) }
func (r *Reader) Fixed32() uint32 { return uint32(r.fixed(4)) }
func (r *Reader) Fixed64() uint64 { return r.fixed(8) }

func (r *Reader) fixed(n int) (v uint64) {
	for _, b := range r.Take(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

// UpTo reads a number that is at most a bound.
func (r *Reader) UpTo(most uint64) uint64 {
	v := r.Uint()
	if v > most {
		r.Fail("a number is too large")
		return 0
	}
	return v
}

// U8, U16, U32 and Int63 read a varint that fits that many bits.
func (r *Reader) U8() uint8    { return uint8(r.UpTo(math.MaxUint8)) }
func (r *Reader) U16() uint16  { return uint16(r.UpTo(math.MaxUint16)) }
func (r *Reader) U32() uint32  { return uint32(r.UpTo(math.MaxUint32)) }
func (r *Reader) Int63() int64 { return int64(r.UpTo(math.MaxInt64)) }

// Amount reads an amount.
func (r *Reader) Amount() money.Amount { return money.Amount(r.Int63()) }

// Price reads a price.
func (r *Reader) Price() money.Price { return money.Price(r.Int63()) }

// Rate reads a rate, which is at most money.MaxRate.
func (r *Reader) Rate() money.Rate { return money.Rate(r.UpTo(uint64(money.MaxRate))) }

// Balance reads what AppendBalance wrote.
func (r *Reader) Balance() money.Balance {
	lo, hi := r.Uint(), r.Uint()
	return money.BalanceFromBits(hi, lo)
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if len(r.b) == 0 {
		r.Fail("the end is missing")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// Flag reads a byte that is 0 or 1.
func (r *Reader) Flag() bool {
	v := r.Byte()
	if v > 1 {
		r.Fail("a flag is neither 0 nor 1")
	}
	return v == 1
}

// Take reads n bytes, nil if there are fewer.
func (r *Reader) Take(n int) []byte {
	if n > len(r.b) {
		r.Fail("the end is missing")
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// Bytes reads a length up to most, then that many bytes.
func (r *Reader) Bytes(most int) []byte { return r.Take(int(r.UpTo(uint64(most)))) }

// Text reads a text of at most that many bytes, written by AppendText.
func (r *Reader) Text(most int) string { return string(r.Bytes(most)) }

// AppendText writes a text with a length prefix.
func AppendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendFlag writes a byte that is 0 or 1.
func AppendFlag(b []byte, flag bool) []byte {
	if flag {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendBalance writes a balance: the low 64 bits of its units, then the high ones.
func AppendBalance(b []byte, x money.Balance) []byte {
	hi, lo := x.Bits()
	return AppendUints(b, lo, hi)
}

// AppendUints writes numbers, one after the other.
func AppendUints(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}
