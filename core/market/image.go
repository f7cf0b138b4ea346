package market

import (
	"exchange/core/money"
	"exchange/core/wire"
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
// The newest minute is that of the newest trade, so the last one begins with 0.

// maxVolumeHi bounds the high 64 bits of a minute's volume in an image: 2^112 units in all, or 2^49
// trades of the largest amount. Below it no sum over a window can overflow, even with later trades.
const maxVolumeHi = 1 << 48

// AppendTo appends the whole market to b, for an image of the state. Two markets have equal images
// if and only if they are equal.
func (m *Market) AppendTo(b []byte) []byte {
	b = wire.AppendUints(b, m.UpdateID, uint64(m.TimeUs), uint64(m.buy), uint64(m.sell),
		uint64(m.bestUs))
	if !m.traded() {
		return append(b, 0)
	}
	b = wire.AppendUints(b, uint64(m.past.n+1), uint64(m.tradeUs), uint64(m.before))
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
		b = wire.AppendUints(b, uint64(newest-c.Time)/60, uint64(c.Open), uint64(c.High),
			uint64(c.Low), uint64(c.Close), lo, hi)
	}
	return b
}

// Read sets m to the market that AppendTo wrote. It refuses an impossible market: the reader turns
// bad, and m is unchanged.
func (m *Market) Read(from *wire.Reader) {
	r := reader{from}
	var d Market
	d.UpdateID, d.TimeUs = r.Uint(), r.Int63()
	d.buy, d.sell, d.bestUs = r.Price(), r.Price(), r.Int63()
	if crossed(d.buy, d.sell) {
		r.Fail("best prices that would have traded with each other")
	}
	if n := r.UpTo(windowMinutes); n > 0 {
		r.minutes(&d, n)
	}
	if !r.Bad() {
		*m = d
	}
}

// A reader reads an image.
type reader struct{ *wire.Reader }

// minutes reads the trades of the window, n minutes of them, into a market that has none.
func (r *reader) minutes(m *Market, n uint64) {
	m.tradeUs, m.before = r.Int63(), r.Price()
	newest := Minute.Start(m.tradeUs)
	age := int64(windowMinutes)
	for ; n > 0; n-- {
		last := age
		age = int64(r.UpTo(windowMinutes - 1))
		c := r.candle(newest - age*60)
		if age >= last || c.Time < 0 {
			r.Fail("minutes of trades that do not follow each other")
		}
		if r.Bad() {
			return
		}
		m.add(c)
	}
	if age != 0 {
		r.Fail("the newest trade is not in the newest minute")
	}
}

func (r *reader) candle(time int64) Candle {
	c := Candle{Time: time, Open: r.Price(), High: r.Price(), Low: r.Price(), Close: r.Price()}
	lo, hi := r.Uint(), r.UpTo(maxVolumeHi-1)
	c.Volume = money.TotalFromBits(hi, lo)
	if c.Low < 1 || c.Low > min(c.Open, c.Close) || c.High < max(c.Open, c.Close) ||
		c.Volume.IsZero() {
		r.Fail("a minute with an impossible price or without volume")
	}
	return c
}
