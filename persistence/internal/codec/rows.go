package codec

import (
	"encoding/binary"
	"fmt"

	"exchange/core/matching"
	"exchange/core/money"
	"exchange/persistence"
)

// version is the first byte of every row written by this code.
const version = 1

// IDSize is the length of the big-endian id in front of a row.
const IDSize = 8

// Flags of a trade: bits 0 and 1 are the taker's side.
const (
	sideMask     = 3
	tradeHasFees = 1 << 2
)

// Flags of an order: bits 0 and 1 are its side, bits 2 and 3 its status.
const (
	statusShift    = 2
	orderHasClient = 1 << 4
)

// AppendTrade writes everything of t but its id.
func AppendTrade(dst []byte, t *persistence.Trade) []byte {
	flags := byte(t.TakerSide) & sideMask
	fees := !t.TakerFee.IsZero() || !t.MakerFee.IsZero()
	if fees {
		flags |= tradeHasFees
	}
	dst = append(dst, version, flags)
	dst = binary.AppendUvarint(dst, uint64(t.Pair))
	dst = binary.AppendUvarint(dst, uint64(t.Price))
	dst = binary.AppendUvarint(dst, uint64(t.Amount))
	dst = binary.AppendUvarint(dst, uint64(t.TimeUs))
	dst = binary.AppendUvarint(dst, uint64(t.Taker))
	dst = binary.AppendUvarint(dst, uint64(t.Maker))
	dst = binary.AppendUvarint(dst, t.TakerOrder)
	dst = binary.AppendUvarint(dst, t.MakerOrder)
	if fees {
		dst = appendBalance(dst, t.TakerFee)
		dst = appendBalance(dst, t.MakerFee)
	}
	return dst
}

// TradeSide is the taker's side of an encoded trade, without decoding the rest; 0 if it is damaged.
func TradeSide(row []byte) matching.Side {
	if len(row) < 2 || row[0] != version {
		return 0
	}
	return matching.Side(row[1] & sideMask)
}

// DecodeTrade is the inverse of AppendTrade.
func DecodeTrade(row []byte, id uint64, t *persistence.Trade) error {
	d := open(row)
	flags := d.byte()
	*t = persistence.Trade{
		ID:         id,
		TakerSide:  matching.Side(flags & sideMask),
		Pair:       uint16(d.upTo(1<<16 - 1)),
		Price:      money.Price(d.upTo(1<<63 - 1)),
		Amount:     money.Amount(d.upTo(1<<63 - 1)),
		TimeUs:     int64(d.uvarint()),
		Taker:      uint32(d.upTo(1<<32 - 1)),
		Maker:      uint32(d.upTo(1<<32 - 1)),
		TakerOrder: d.uvarint(),
		MakerOrder: d.uvarint(),
	}
	if flags&tradeHasFees != 0 {
		t.TakerFee = d.balance()
		t.MakerFee = d.balance()
	}
	return d.close("trade", id)
}

// AppendOrder writes everything of o but its id and its account, which its list knows.
func AppendOrder(dst []byte, o *persistence.Order) []byte {
	flags := byte(o.Side)&sideMask | o.Status&3<<statusShift
	if o.ClientID != "" {
		flags |= orderHasClient
	}
	dst = append(dst, version, flags)
	dst = binary.AppendUvarint(dst, o.ClosedSeq)
	dst = binary.AppendUvarint(dst, uint64(o.Pair))
	dst = binary.AppendUvarint(dst, uint64(o.Price))
	dst = binary.AppendUvarint(dst, uint64(o.Amount))
	dst = binary.AppendUvarint(dst, uint64(o.Remaining))
	dst = binary.AppendUvarint(dst, uint64(o.TimeUs))
	dst = binary.AppendVarint(dst, o.ClosedUs-o.TimeUs)
	if o.ClientID != "" {
		dst = appendText(dst, o.ClientID)
	}
	return dst
}

// OrderIndex is the part of an encoded order that filters need: side, status and closing sequence.
// It is itself a prefix of the row, so that an index entry is a row cut short.
func OrderIndex(row []byte) []byte {
	_, n := binary.Uvarint(row[2:])
	return row[:2+max(n, 0)]
}

// OrderMatches reports whether an encoded order, or its OrderIndex, passes the filters on side,
// status and sequence. A damaged one passes, so that decoding it reports the damage.
func OrderMatches(row []byte, q *persistence.OrderQuery) bool {
	if len(row) < 3 || row[0] != version {
		return true
	}
	flags := row[1]
	if q.Side != 0 && matching.Side(flags&sideMask) != q.Side {
		return false
	}
	if q.Status != 0 && flags>>statusShift&3 != q.Status {
		return false
	}
	if q.MaxSeq != 0 {
		if seq, n := binary.Uvarint(row[2:]); n > 0 && seq > q.MaxSeq {
			return false
		}
	}
	return true
}

// DecodeOrder is the inverse of AppendOrder.
func DecodeOrder(row []byte, account uint32, id uint64, o *persistence.Order) error {
	d := open(row)
	flags := d.byte()
	*o = persistence.Order{
		ID:        id,
		Account:   account,
		Side:      matching.Side(flags & sideMask),
		Status:    flags >> statusShift & 3,
		ClosedSeq: d.uvarint(),
		Pair:      uint16(d.upTo(1<<16 - 1)),
		Price:     money.Price(d.upTo(1<<63 - 1)),
		Amount:    money.Amount(d.upTo(1<<63 - 1)),
		Remaining: money.Amount(d.upTo(1<<63 - 1)),
		TimeUs:    int64(d.uvarint()),
	}
	o.ClosedUs = o.TimeUs + d.varint()
	if flags&orderHasClient != 0 {
		o.ClientID = d.text()
	}
	return d.close("order", id)
}

// AppendDeposit writes everything of p but its id and its account, which its list knows.
func AppendDeposit(dst []byte, p *persistence.Deposit) []byte {
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, uint64(p.Currency))
	dst = binary.AppendUvarint(dst, uint64(p.Amount))
	dst = binary.AppendUvarint(dst, uint64(p.TimeUs))
	return appendText(dst, p.Reference)
}

// DecodeDeposit is the inverse of AppendDeposit.
func DecodeDeposit(row []byte, account uint32, id uint64, p *persistence.Deposit) error {
	d := open(row)
	*p = persistence.Deposit{
		ID:        id,
		Account:   account,
		Currency:  uint16(d.upTo(1<<16 - 1)),
		Amount:    money.Amount(d.upTo(1<<63 - 1)),
		TimeUs:    int64(d.uvarint()),
		Reference: d.text(),
	}
	return d.close("deposit", id)
}

// AppendWallet writes everything of w but its account.
func AppendWallet(dst []byte, w *persistence.Wallet) []byte {
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, w.Seq)
	dst = appendText(dst, w.Name)
	dst = binary.AppendUvarint(dst, uint64(len(w.Holdings)))
	for i := range w.Holdings {
		h := &w.Holdings[i]
		dst = appendText(dst, h.Currency)
		dst = appendBalance(dst, h.Balance)
		dst = appendBalance(dst, h.Reserve)
	}
	return dst
}

// DecodeWallet is the inverse of AppendWallet.
func DecodeWallet(row []byte, account uint32, w *persistence.Wallet) error {
	d := open(row)
	*w = persistence.Wallet{Account: account, Seq: d.uvarint(), Name: d.text()}
	for n := d.upTo(uint64(len(row))); n > 0 && !d.bad; n-- {
		w.Holdings = append(w.Holdings, persistence.Holding{Currency: d.text(), Balance: d.balance(), Reserve: d.balance()})
	}
	return d.close("wallet", uint64(account))
}

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
	rest []byte
	bad  bool
}

func open(row []byte) decoder {
	d := decoder{rest: row}
	if d.byte() != version {
		d.bad = true
	}
	return d
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
	if d.bad || len(d.rest) != 0 {
		return fmt.Errorf("%w: the row of %s %d has an unknown version or a wrong length; restore the store from a backup or run the version that wrote it",
			persistence.ErrCorrupt, kind, id)
	}
	return nil
}
