package codec

import (
	"encoding/binary"

	"exchange/core/money"
	"exchange/core/wire"
	"exchange/persistence"
)

// AppendCandle writes everything of c but its pair, frame and time, which its place holds. Prices
// are written as small differences to the first: a candle is about 25 bytes.
func AppendCandle(dst []byte, c *persistence.Candle) []byte {
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, uint64(c.Open))
	dst = binary.AppendVarint(dst, int64(c.High-c.Open))
	dst = binary.AppendVarint(dst, int64(c.Low-c.Open))
	dst = binary.AppendVarint(dst, int64(c.Close-c.Open))
	hi, lo := c.Volume.Bits()
	return wire.AppendUints(dst, hi, lo)
}

// DecodeCandle decodes a row of AppendCandle.
func DecodeCandle(row []byte, pair uint16, frame uint8, time uint64, c *persistence.Candle) error {
	d := open(row)
	first := d.UpTo(1<<63 - 1)
	price := func() money.Price {
		p := int64(first) + d.Int()
		if p < 0 {
			d.Fail("a price below 0")
		}
		return money.Price(p)
	}
	*c = persistence.Candle{Pair: pair, Frame: frame, Time: int64(time), Open: money.Price(first),
		High: price(), Low: price(), Close: price()}
	hi := d.Uint()
	c.Volume = money.TotalFromBits(hi, d.Uint())
	return d.close("candle", time)
}

// CandleTimes returns a query's range of times: since and later, below before (0: no bound). If any
// is false, the range is empty.
func CandleTimes(q *persistence.CandleQuery) (since, before uint64, any bool) {
	since = uint64(max(q.Since, 0))
	switch {
	case q.Until < 0 || q.Until != 0 && q.Until < q.Since:
		return 0, 0, false
	case q.Until == 0 || q.Until >= MaxID:
		return since, 0, true
	}
	return since, uint64(q.Until) + 1, true
}
