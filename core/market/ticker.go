package market

import (
	"fmt"

	"exchange/core/money"
)

// windowMinutes is the length of the ticker's window: a day, the current minute included.
const windowMinutes = 1440

// A Ticker is the public summary of a pair at one moment. Prices are 0 where there is none.
type Ticker struct {
	// TimeUs is the newest of the last trade, the last best-price change, and the start of the
	// minute.
	TimeUs int64
	Last   money.Price // of the last trade ever
	// Diff is Last minus the last price before the window, otherwise minus the first price in it;
	// signed, in units of 1e-8.
	Diff      int64
	Volume    money.Total // of the window, in the base currency
	High, Low money.Price // of the window
	Buy, Sell money.Price // the best in the book
}

// Best notes the best prices after a record of the pair, 0 where the book has no such side, and
// when they last changed. timeUs is the record's time in microseconds since the epoch.
func (m *Market) Best(timeUs int64, buy, sell money.Price) {
	if buy == m.buy && sell == m.sell {
		return
	}
	if timeUs < m.bestUs || buy < 0 || sell < 0 || crossed(buy, sell) {
		panic(fmt.Sprintf("BUG: best prices of %d and %d units at %d us, changed before at %d us",
			int64(buy), int64(sell), timeUs, m.bestUs))
	}
	m.buy, m.sell, m.bestUs = buy, sell, timeUs
}

// crossed reports best prices that would have traded with each other.
func crossed(buy, sell money.Price) bool { return sell != 0 && buy >= sell }

// Last returns the price of the last trade ever, 0 before the first.
func (m *Market) Last() money.Price { return m.candles[Minute].Close }

// Ticker returns the public summary at a moment, in microseconds since the epoch. A moment before
// the newest trade or best-price change counts as the time of that trade or change.
func (m *Market) Ticker(nowUs int64) Ticker {
	happened := max(m.tradeUs, m.bestUs)
	minute := Minute.Start(max(nowUs, happened))
	t := Ticker{TimeUs: max(happened, minute*usPerSecond), Last: m.Last(),
		Buy: m.buy, Sell: m.sell}
	if !m.traded() {
		return t
	}
	w := window{from: minute - (windowMinutes-1)*60, before: m.before}
	older, newer := m.past.parts()
	w.add(older)
	w.add(newer)
	w.add(m.candles[Minute : Minute+1])
	t.Volume, t.High, t.Low = w.volume, w.high, w.low
	if w.before != 0 {
		t.Diff = int64(t.Last - w.before)
	} else {
		t.Diff = int64(t.Last - w.first)
	}
	return t
}

// A window sums up minutes in order, oldest first.
type window struct {
	from             int64       // start of the window, seconds since the epoch
	before           money.Price // last price before the window; 0: none
	first, high, low money.Price // prices in the window; 0: none
	volume           money.Total
}

func (w *window) add(minutes []Candle) {
	for i := range minutes {
		c := &minutes[i]
		if c.Time < w.from {
			w.before = c.Close
			continue
		}
		if w.first == 0 {
			w.first, w.low = c.Open, c.Low
		}
		w.high, w.low = max(w.high, c.High), min(w.low, c.Low)
		w.volume = w.volume.Plus(c.Volume)
	}
}
