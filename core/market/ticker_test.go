package market

import (
	"math"
	"testing"

	"exchange/core/money"
)

const minuteUs = 60_000_000

func ticker(timeUs, last, diff, volume, high, low int64) Ticker {
	return Ticker{TimeUs: timeUs, Last: money.Price(last), Diff: diff,
		Volume: money.Amount(volume).Total(), High: money.Price(high), Low: money.Price(low)}
}

func checkTicker(t *testing.T, m *Market, now int64, want Ticker) {
	t.Helper()
	if got := m.Ticker(now); got != want {
		t.Errorf("at %d us:\n%+v, want\n%+v", now, got, want)
	}
}

func TestATickerBeforeAnythingHappened(t *testing.T) {
	var m Market
	checkTicker(t, &m, 0, Ticker{})
	checkTicker(t, &m, -5, Ticker{})
	checkTicker(t, &m, minuteUs-1, Ticker{})
	checkTicker(t, &m, minuteUs, Ticker{TimeUs: minuteUs})
	checkTicker(t, &m, 3*minuteUs-1, Ticker{TimeUs: 2 * minuteUs})
	checkTicker(t, &m, math.MaxInt64, Ticker{TimeUs: math.MaxInt64 / minuteUs * minuteUs})
}

func TestATradeLeavesTheWindowAfter1440Minutes(t *testing.T) {
	const t0 = 1000*minuteUs + minuteUs - 1 // the last microsecond of minute 1000
	m := marketOf(trade{t0, 5, 3}, trade{t0 + 1, 7, 2}, trade{t0 + 2*minuteUs, 4, 1})
	last := m.tradeUs
	f := func(now int64, want Ticker) { t.Helper(); checkTicker(t, m, now, want) }
	// No trade before the window: the difference is to the first trade in it.
	f(last, ticker(last, 4, -1, 6, 7, 4))
	f(0, ticker(last, 4, -1, 6, 7, 4))
	f(2440*minuteUs-1, ticker(2439*minuteUs, 4, -1, 6, 7, 4))
	// Each trade leaves with its minute. The difference is to the last price before the window.
	f(2440*minuteUs, ticker(2440*minuteUs, 4, -1, 3, 7, 4))
	f(2441*minuteUs-1, ticker(2440*minuteUs, 4, -1, 3, 7, 4))
	f(2441*minuteUs, ticker(2441*minuteUs, 4, -3, 1, 4, 4))
	f(2442*minuteUs-1, ticker(2441*minuteUs, 4, -3, 1, 4, 4))
	// The last trade stays the last; nothing is left to differ from but itself.
	f(2442*minuteUs, ticker(2442*minuteUs, 4, 0, 0, 0, 0))
	f(9999*minuteUs, ticker(9999*minuteUs, 4, 0, 0, 0, 0))
	// Reading later has dropped nothing.
	f(last, ticker(last, 4, -1, 6, 7, 4))
}

func TestTheDifferenceReachesAcrossAGap(t *testing.T) {
	m := marketOf(trade{0, 5, 1}, trade{1, 8, 1}, trade{5000 * minuteUs, 6, 1},
		trade{5000*minuteUs + 1, 9, 1})
	checkTicker(t, m, 0, ticker(5000*minuteUs+1, 9, 1, 2, 9, 6))
	checkTicker(t, m, 6440*minuteUs, ticker(6440*minuteUs, 9, 0, 0, 0, 0))
}

func TestTheDifferenceOfTheFarthestPrices(t *testing.T) {
	m := marketOf(trade{0, money.MaxPrice, money.MaxAmount}, trade{1, 1, money.MaxAmount},
		trade{1, 2, money.MaxAmount})
	want := ticker(1, 2, 2-math.MaxInt64, 0, math.MaxInt64, 1)
	want.Volume = money.MaxAmount.Total().Add(money.MaxAmount).Add(money.MaxAmount)
	checkTicker(t, m, 0, want)
}

func TestATickerIsMadeAnewByTradesBestPricesAndMinutes(t *testing.T) {
	var m Market
	f := func(now, want int64) {
		t.Helper()
		if got := m.Ticker(now).TimeUs; got != want {
			t.Errorf("the ticker at %d us was made at %d us, want %d", now, got, want)
		}
	}
	m.Best(10, 0, 0)
	f(20, 0) // no side then, no side now
	m.Best(30, 5, 0)
	f(40, 30)
	m.Best(50, 5, 0)
	f(60, 30)
	m.Best(70, 5, 6)
	f(80, 70)
	m.Trade(75, 6, 1)
	f(80, 75)
	m.Best(76, 0, 0)
	f(80, 76)
	f(0, 76)
	f(minuteUs-1, 76)
	f(minuteUs, minuteUs)
	f(2*minuteUs-1, minuteUs)
	m.Best(minuteUs+5, 4, 5)
	f(minuteUs+9, minuteUs+5)
	f(0, minuteUs+5)
	f(2*minuteUs, 2*minuteUs)
}

func TestATickerHasTheBestPrices(t *testing.T) {
	var m Market
	f := func(buy, sell money.Price) {
		t.Helper()
		m.Best(1, buy, sell)
		if got := m.Ticker(1); got.Buy != buy || got.Sell != sell {
			t.Errorf("%+v", got)
		}
	}
	f(5, 0)
	f(5, 6)
	f(0, 6)
	f(money.MaxPrice, 0)
	f(0, 0)
}
