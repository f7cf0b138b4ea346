package codec

import (
	"encoding/binary"
	"fmt"

	"exchange/core/trading"
	"exchange/core/wire"
	"exchange/persistence"
)

// Version is the first byte of every row, and of every other value that a store keeps beside its
// journal and its images.
const Version = 5

// IDSize is the length of the big-endian id in front of a row.
const IDSize = 8

// Flags of a trade: bits 0 and 1 are the taker's side.
const (
	sideMask     = 3
	tradeHasFees = 1 << 2
)

// Flags of an order: bits 0 and 1 are its side, bits 2 and 3 its status.
const (
	statusShift     = 2
	orderHasClient  = 1 << 4
	orderInstructed = 1 << 5
)

// AppendTrade writes everything of t but its id.
func AppendTrade(dst []byte, t *persistence.Trade) []byte {
	flags := byte(t.TakerSide) & sideMask
	fees := !t.TakerFee.IsZero() || !t.MakerFee.IsZero()
	if fees {
		flags |= tradeHasFees
	}
	dst = append(dst, Version, flags)
	dst = wire.AppendUints(dst, uint64(t.Pair), uint64(t.Price), uint64(t.Amount), uint64(t.TimeUs),
		uint64(t.Taker), uint64(t.Maker), t.TakerOrder, t.MakerOrder)
	if fees {
		dst = appendBalance(dst, t.TakerFee)
		dst = appendBalance(dst, t.MakerFee)
	}
	return dst
}

// TradeSide returns the taker's side of an encoded trade, without decoding the rest; 0 if it is
// damaged.
func TradeSide(row []byte) trading.Side {
	if len(row) < 2 || row[0] != Version {
		return 0
	}
	return trading.Side(row[1] & sideMask)
}

// TradeMatches reports whether an encoded trade of the query's list (of its account, or its pair)
// passes the other filters, ids and Offset left aside. It reads no more of the row than it must,
// because a long offset passes many rows. A damaged row passes the filters, so decoding it reports
// the damage.
func TradeMatches(row []byte, q *persistence.TradeQuery) bool {
	if len(row) < 2 || row[0] != Version {
		return true
	}
	side := trading.Side(row[1] & sideMask)
	if q.TakerSide != 0 && side != q.TakerSide {
		return false
	}
	if q.Pair == 0 && q.MySide == 0 {
		return true
	}
	d := wire.Read(row[2:])
	if pair := d.Uint(); q.Pair != 0 && pair != uint64(q.Pair) && !d.Bad() {
		return false
	}
	if q.MySide == 0 && q.SinceUs == 0 && q.UntilUs == 0 {
		return true
	}
	d.Uint() // price
	d.Uint() // amount
	time := int64(d.Uint())
	if !d.Bad() && (q.SinceUs != 0 && time < q.SinceUs || q.UntilUs != 0 && time > q.UntilUs) {
		return false
	}
	if q.MySide == 0 {
		return true
	}
	if taker := d.Uint(); taker != uint64(q.Account) {
		side = side.Opposite()
	}
	return d.Bad() || side == q.MySide
}

// TradeTime returns the time of an encoded trade, without decoding the rest. A row is damaged if ok
// is false.
func TradeTime(row []byte) (us int64, ok bool) {
	if len(row) < 2 || row[0] != Version {
		return 0, false
	}
	d := wire.Read(row[2:])
	d.Uint() // pair
	d.Uint() // price
	d.Uint() // amount
	us = int64(d.Uint())
	return us, !d.Bad()
}

// MarkSize is the length of a mark with its checksum.
const MarkSize = 3 + SumSize

// AppendMark writes the parts of a trade that filters need in the list of an account: the two sides
// and the pair. An account that met itself has the taker's side. A mark's checksum covers the place
// of its string of marks, but not the trade's id, because the reader of a mark does not have it.
func AppendMark(dst []byte, marks Place, t *persistence.Trade, account uint32) []byte {
	mine := t.TakerSide
	if t.Taker != account {
		mine = mine.Opposite()
	}
	mark := [...]byte{byte(t.TakerSide) | byte(mine)<<2, byte(t.Pair >> 8), byte(t.Pair)}
	return marks.Seal(dst, mark[:])
}

// CheckMark refuses a mark with a wrong checksum.
func CheckMark(marks Place, mark string) error {
	if b := []byte(mark); Sum(b) != uint32(marks.And(b[:MarkSize-SumSize])) {
		return fmt.Errorf("%w: %w", persistence.ErrCorrupt, errSum)
	}
	return nil
}

// MarkMatches is TradeMatches for a mark.
func MarkMatches(mark string, q *persistence.TradeQuery) bool {
	return (q.TakerSide == 0 || trading.Side(mark[0]&sideMask) == q.TakerSide) &&
		(q.MySide == 0 || trading.Side(mark[0]>>2&sideMask) == q.MySide) &&
		(q.Pair == 0 || uint16(mark[1])<<8|uint16(mark[2]) == q.Pair)
}

// DecodeTrade decodes a row of AppendTrade.
func DecodeTrade(row []byte, id uint64, t *persistence.Trade) error {
	d := open(row)
	flags := d.Byte()
	*t = persistence.Trade{
		ID:         id,
		TakerSide:  trading.Side(flags & sideMask),
		Pair:       d.U16(),
		Price:      d.Price(),
		Amount:     d.Amount(),
		TimeUs:     int64(d.Uint()),
		Taker:      d.U32(),
		Maker:      d.U32(),
		TakerOrder: d.Uint(),
		MakerOrder: d.Uint(),
	}
	if flags&tradeHasFees != 0 {
		t.TakerFee = d.balance()
		t.MakerFee = d.balance()
	}
	return d.close("trade", id)
}

// AppendOrder writes everything of o but its id and its account, which its list holds.
func AppendOrder(dst []byte, o *persistence.Order) []byte {
	flags := byte(o.Side)&sideMask | o.Status&3<<statusShift
	if o.ClientID != "" {
		flags |= orderHasClient
	}
	if o.Instructed != "" {
		flags |= orderInstructed
	}
	dst = append(dst, Version, flags)
	dst = wire.AppendUints(dst, o.ClosedSeq, uint64(o.Pair), uint64(o.Price), uint64(o.Amount),
		uint64(o.Remaining), uint64(o.TimeUs))
	dst = binary.AppendVarint(dst, o.ClosedUs-o.TimeUs)
	if o.ClientID != "" {
		dst = wire.AppendText(dst, o.ClientID)
	}
	if o.Instructed != "" {
		dst = wire.AppendText(dst, string(o.Instructed))
	}
	return dst
}

// OrderMatches reports whether an encoded order passes the filters on side, status and sequence. A
// damaged order passes the filters, so decoding it reports the damage.
func OrderMatches(row []byte, q *persistence.OrderQuery) bool {
	if len(row) < 3 || row[0] != Version {
		return true
	}
	flags := row[1]
	if q.Side != 0 && trading.Side(flags&sideMask) != q.Side {
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

// ClientOrderMatches reports whether an order that has the query's client id passes its other
// filters (not Before).
func ClientOrderMatches(o *persistence.Order, q *persistence.OrderQuery) bool {
	return (q.Pair == 0 || o.Pair == q.Pair) && (q.Side == 0 || o.Side == q.Side) &&
		(q.Status == 0 || o.Status == q.Status) && (q.MaxSeq == 0 || o.ClosedSeq <= q.MaxSeq)
}

// DecodeOrder decodes a row of AppendOrder.
func DecodeOrder(row []byte, account uint32, id uint64, o *persistence.Order) error {
	d := open(row)
	flags := d.Byte()
	*o = persistence.Order{
		ID:        id,
		Account:   account,
		Side:      trading.Side(flags & sideMask),
		Status:    flags >> statusShift & 3,
		ClosedSeq: d.Uint(),
		Pair:      d.U16(),
		Price:     d.Price(),
		Amount:    d.Amount(),
		Remaining: d.Amount(),
		TimeUs:    int64(d.Uint()),
	}
	o.ClosedUs = o.TimeUs + d.Int()
	if flags&orderHasClient != 0 {
		o.ClientID = d.text()
	}
	if flags&orderInstructed != 0 {
		o.Instructed = trading.Packed(d.text())
		if _, ok := o.Instructed.Open(); !ok || o.Instructed == "" {
			d.Fail("impossible instructions")
		}
	}
	return d.close("order", id)
}
