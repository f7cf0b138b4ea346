package market

import (
	"encoding/binary"
	"errors"
	"math"

	"exchange/core/money"
)

// The image of a market, numbers as uvarints in their shortest form:
//
//	update id | its time | best buy | best sell | their time | count of minutes
//
// and, unless the count is 0:
//
//	time of the newest trade | price before the minutes | minute...
//
// with each minute, oldest first, as
//
//	minutes before the newest | open | high | low | close | volume, low 64 bits | high 64 bits
//
// The newest minute is the newest trade's, so the last one begins with 0.

// maxVolumeHi bounds the high 64 bits of a minute's volume in an image: 2^112 units in all, or 2^49
// trades of the largest amount. Below it no sum over a window can overflow, even with later trades.
const maxVolumeHi = 1 << 48

// AppendTo writes the whole market behind b, for an image of the state. Two markets have equal
// images if and only if they are equal.
func (m *Market) AppendTo(b []byte) []byte {
	b = appendUints(b, m.UpdateID, uint64(m.TimeUs), uint64(m.buy), uint64(m.sell),
		uint64(m.bestUs))
	if !m.traded() {
		return append(b, 0)
	}
	b = appendUints(b, uint64(m.past.n+1), uint64(m.tradeUs), uint64(m.before))
	older, newer := m.past.parts()
	b = m.appendMinutes(b, older)
	b = m.appendMinutes(b, newer)
	return m.appendMinutes(b, m.candles[Minute:Minute+1])
}

func (m *Market) appendMinutes(b []byte, minutes []Candle) []byte {
	newest := m.candles[Minute].Time
	for i := range minutes {
		c := &minutes[i]
		hi, lo := c.Volume.Bits()
		b = appendUints(b, uint64(newest-c.Time)/60, uint64(c.Open), uint64(c.High), uint64(c.Low),
			uint64(c.Close), lo, hi)
	}
	return b
}

func appendUints(b []byte, vs ...uint64) []byte {
	for _, v := range vs {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

// Decode sets m to the market that AppendTo wrote, and returns the bytes of b behind it. It refuses
// an impossible market, and numbers that are longer than necessary; m is unchanged then.
func (m *Market) Decode(b []byte) (rest []byte, err error) {
	r := reader{b: b}
	var d Market
	d.UpdateID, d.TimeUs = r.upTo(math.MaxUint64), r.int()
	d.buy, d.sell, d.bestUs = r.price(), r.price(), r.int()
	if crossed(d.buy, d.sell) {
		r.fail("best prices that would have traded with each other")
	}
	if n := r.upTo(windowMinutes); n > 0 {
		r.minutes(&d, n)
	}
	if r.err != nil {
		return nil, r.err
	}
	*m = d
	return r.b, nil
}

// A reader reads an image. At the first fault it keeps the reason, and reads zeros from then on.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(why string) {
	if r.err == nil {
		r.err = errors.New(why)
	}
	r.b = nil
}

func (r *reader) upTo(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	switch {
	case n <= 0:
		r.fail("a number of a market is cut off")
		return 0
	case n > 1 && r.b[n-1] == 0:
		r.fail("a number of a market is longer than it must be")
		return 0
	case v > most:
		r.fail("a number of a market is too large")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64         { return int64(r.upTo(math.MaxInt64)) }
func (r *reader) price() money.Price { return money.Price(r.int()) }

// minutes reads the trades of the window, n minutes of them, into a market that has none.
func (r *reader) minutes(m *Market, n uint64) {
	m.tradeUs, m.before = r.int(), r.price()
	newest := Minute.Start(m.tradeUs)
	age := int64(windowMinutes)
	for ; n > 0; n-- {
		last := age
		age = int64(r.upTo(windowMinutes - 1))
		c := r.candle(newest - age*60)
		if age >= last || c.Time < 0 {
			r.fail("minutes of trades that do not follow each other")
		}
		if r.err != nil {
			return
		}
		m.add(c)
	}
	if age != 0 {
		r.fail("the newest trade is not in the newest minute")
	}
}

func (r *reader) candle(time int64) Candle {
	c := Candle{Time: time, Open: r.price(), High: r.price(), Low: r.price(), Close: r.price()}
	lo, hi := r.upTo(math.MaxUint64), r.upTo(maxVolumeHi-1)
	c.Volume = money.TotalFromBits(hi, lo)
	if c.Low < 1 || c.Low > min(c.Open, c.Close) || c.High < max(c.Open, c.Close) ||
		c.Volume.IsZero() {
		r.fail("a minute with an impossible price or without volume")
	}
	return c
}
