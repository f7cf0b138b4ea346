package market

import (
	"fmt"

	"exchange/core/money"
)

// A Frame is a timeframe of candles.
type Frame uint8

// All frames, shorter ones first. Each is a divisor of the next: a minute lies within one period of
// every frame.
const (
	//tidy:keep other rooms name few of them
	Minute, Minutes5, Minutes15, Minutes30, Hour, Hours4, Day Frame = 0, 1, 2, 3, 4, 5, 6

	FrameCount = 7 // number of frames; an untyped constant
)

// usPerSecond is the unit of record times in those of candle times.
const usPerSecond = 1_000_000

// frames holds the names in the chart API's path, and the lengths.
var frames = [FrameCount]struct {
	name    string
	seconds int64
}{{"1", 60}, {"5", 300}, {"15", 900}, {"30", 1800}, {"60", 3600}, {"240", 14_400}, {"D", 86_400}}

// ParseFrame parses a frame's name: the length in minutes, or D for a day.
func ParseFrame(s string) (Frame, bool) {
	for f := range frames {
		if frames[f].name == s {
			return Frame(f), true
		}
	}
	return 0, false
}

// String returns the frame's name, as ParseFrame accepts it.
func (f Frame) String() string { return frames[f].name }

// Seconds returns the length of a period.
func (f Frame) Seconds() int64 { return frames[f].seconds }

// Start returns the start of the period that contains a moment, in seconds since the epoch. timeUs
// is microseconds since the epoch; it may be before it.
func (f Frame) Start(timeUs int64) int64 {
	unit := f.Seconds() * usPerSecond
	n := timeUs / unit
	if timeUs%unit < 0 {
		n--
	}
	return n * f.Seconds()
}

// A Candle sums up the trades of one period. It has at least one; only the zero Candle has none.
type Candle struct {
	Time                   int64 // start of the period, seconds since the epoch
	Open, High, Low, Close money.Price
	Volume                 money.Total // in the base currency
}

// Candle returns a frame's candle of the newest trade. Its period may be over; ok is false before
// the first trade.
func (m *Market) Candle(f Frame) (c Candle, ok bool) { return m.candles[f], m.traded() }

// traded reports whether there ever was a trade.
func (m *Market) traded() bool { return m.candles[Minute].Close != 0 }

// Trade notes one trade of the pair: its record's time in microseconds since the epoch, its price
// in quote and its amount in base currency. The caller checks the record against the book first,
// because an impossible trade panics.
func (m *Market) Trade(timeUs int64, price money.Price, amount money.Amount) {
	if timeUs < m.tradeUs || price < 1 || amount < 1 {
		panic(fmt.Sprintf("BUG: a trade of %d units at %d units, at %d us after one at %d us",
			int64(amount), int64(price), timeUs, m.tradeUs))
	}
	m.tradeUs = timeUs
	m.add(Candle{Time: Minute.Start(timeUs), Open: price, High: price, Low: price, Close: price,
		Volume: amount.Total()})
}

// add notes trades of the newest minute or of a later one: one live trade, or a whole minute of an
// image.
func (m *Market) add(c Candle) {
	if c.Time != m.candles[Minute].Time || !m.traded() {
		m.begin(c.Time, c.Open)
	}
	for f := range m.candles {
		k := &m.candles[f]
		k.High, k.Low = max(k.High, c.High), min(k.Low, c.Low)
		k.Close = c.Close
		k.Volume = k.Volume.Plus(c.Volume)
	}
}

// begin opens the candles that start with a new minute and its first price.
func (m *Market) begin(minute int64, open money.Price) {
	if m.traded() {
		m.keep(minute - (windowMinutes-1)*60)
	}
	for f := range m.candles {
		k := &m.candles[f]
		if start := minute - minute%Frame(f).Seconds(); start != k.Time || k.Close == 0 {
			*k = Candle{Time: start, Open: open, High: open, Low: open}
		}
	}
}

// keep moves a finished minute to the past ones. It drops minutes that begin before from, in
// seconds since the epoch.
func (m *Market) keep(from int64) {
	for m.past.n > 0 && m.past.oldest().Time < from {
		m.before = m.past.oldest().Close
		m.past.drop()
	}
	if over := &m.candles[Minute]; over.Time < from {
		m.before = over.Close
	} else {
		m.past.push(over)
	}
}
