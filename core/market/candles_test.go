package market

import (
	"math"
	"math/rand/v2"
	"testing"

	"exchange/core/money"
)

func TestFramesAreNamedAndLong(t *testing.T) {
	f := func(name string, want Frame, seconds int64) {
		t.Helper()
		got, ok := ParseFrame(name)
		if !ok || got != want || got.String() != name || got.Seconds() != seconds {
			t.Errorf("ParseFrame(%q) = %v, %v of %d s", name, got, ok, got.Seconds())
		}
	}
	f("1", Minute, 60)
	f("5", Minutes5, 5*60)
	f("15", Minutes15, 15*60)
	f("30", Minutes30, 30*60)
	f("60", Hour, 3600)
	f("240", Hours4, 4*3600)
	f("D", Day, 86400)
	for _, name := range []string{"", "0", "d", "1D", "01", "1440", "2", " 1", "60m"} {
		if _, ok := ParseFrame(name); ok {
			t.Errorf("%q is a timeframe", name)
		}
	}
}

func TestAFrameDividesTheNext(t *testing.T) {
	for f := range Frame(FrameCount - 1) {
		if (f+1).Seconds()%f.Seconds() != 0 {
			t.Errorf("%v does not divide %v", f, f+1)
		}
	}
	if Day.Seconds() != windowMinutes*60 {
		t.Error("a day's candle cannot be made of a window's minutes")
	}
}

func TestPeriodsBeginAtUTCBoundaries(t *testing.T) {
	f := func(frame Frame, us, want int64) {
		t.Helper()
		if got := frame.Start(us); got != want {
			t.Errorf("%d us is in the period of %v from %d, want %d", us, frame, got, want)
		}
	}
	const day = 19_675 * 86_400 // 2023-11-14
	f(Minute, 0, 0)
	f(Minute, 59_999_999, 0)
	f(Minute, 60_000_000, 60)
	f(Minute, -1, -60)
	f(Day, -86_400_000_000, -86_400)
	f(Day, day*1e6-1, day-86_400)
	f(Day, day*1e6, day)
	f(Day, (day+86_400)*1e6-1, day)
	f(Hours4, (day+4*3600)*1e6-1, day)
	f(Hours4, (day+4*3600)*1e6, day+4*3600)
	f(Minutes5, (day+299)*1e6, day)
	f(Minutes15, (day+900)*1e6, day+900)
	f(Minute, math.MaxInt64, math.MaxInt64/60_000_000*60)
	f(Day, math.MinInt64, (math.MinInt64/86_400_000_000-1)*86_400)
}

func TestAnImpossibleTradePanics(t *testing.T) {
	m := marketOf(trade{10, 1, 1})
	f := func(name string, call func()) {
		t.Helper()
		before := string(m.AppendTo(nil))
		defer func() {
			t.Helper()
			if recover() == nil || string(m.AppendTo(nil)) != before {
				t.Errorf("%s: no panic, or one after a change", name)
			}
		}()
		call()
	}
	f("time falls", func() { m.Trade(9, 1, 1) })
	f("no price", func() { m.Trade(10, 0, 1) })
	f("no amount", func() { m.Trade(10, 1, 0) })
	f("negative amount", func() { m.Trade(10, 1, -1) })
	f("crossed", func() { m.Best(10, 5, 5) })
	f("negative price", func() { m.Best(10, -5, 5) })
	m.Best(10, 5, 6)
	f("time of best prices falls", func() { m.Best(9, 5, 7) })
}

// Days of trades in every minute, so that the ring of minutes fills and wraps; then with gaps and
// restarts.
func TestAFullWindowTurns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := newPairing(1_700_000_000_000_000)
	most := 0
	for i := range 6000 {
		p.now += minuteUs
		if i > 3000 {
			switch r.IntN(100) {
			case 0:
				p.now += r.Int64N(700 * minuteUs)
			case 1:
				p.restart(t)
			}
		}
		p.trade(money.Price(1+r.IntN(1000)), money.Amount(1+r.IntN(1000)))
		most = max(most, p.market.past.n)
		if room := len(p.market.past.minutes); room >= windowMinutes || room > max(ringMin, 2*i) {
			t.Fatalf("room for %d minutes before minute %d", room, i)
		}
		if i%97 == 0 {
			p.checkTicker(t, p.now)
			p.checkTicker(t, p.now+r.Int64N(1500*minuteUs))
		}
	}
	p.checkCandles(t)
	if most != windowMinutes-1 {
		t.Errorf("at most %d minutes were kept: the ring was never full", most)
	}
}

func TestTradeAllocatesNothingOnceTheWindowIsFull(t *testing.T) {
	m, now := fullWindow(), fullWindow().tradeUs
	n := testing.AllocsPerRun(2*windowMinutes, func() {
		now += minuteUs
		m.Trade(now, 5, 5)
		m.Trade(now, 6, 5)
		m.Best(now, 5, 6)
		m.Ticker(now)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type trade struct {
	us     int64
	price  money.Price
	amount money.Amount
}

func marketOf(trades ...trade) *Market {
	var m Market
	for _, t := range trades {
		m.Trade(t.us, t.price, t.amount)
	}
	return &m
}

// fullWindow traded in every minute for more than a day.
func fullWindow() *Market {
	m := &Market{UpdateID: 1_000_000, TimeUs: 1_700_000_000_000_000}
	for i := range int64(windowMinutes + 100) {
		m.Trade(m.TimeUs+i*minuteUs, money.Price(5_000_000_000_000+i%7*1_000_000), 123_000_000)
	}
	m.TimeUs = m.tradeUs
	m.Best(m.TimeUs, 4_999_900_000_000, 5_000_100_000_000)
	return m
}
