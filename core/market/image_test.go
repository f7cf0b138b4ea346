package market

import (
	"errors"
	"math"
	"slices"
	"testing"

	"exchange/core/money"
	"exchange/core/wire"
)

// decode reads a market from the start of b.
func decode(m *Market, b []byte) (rest []byte, err error) {
	r := wire.Read(b)
	if m.Read(&r); r.Bad() {
		return nil, errors.New(r.Fault())
	}
	return r.Rest(), nil
}

func someMarkets() []*Market {
	gap := marketOf(trade{0, 5, 1}, trade{minuteUs, 7, 2}, trade{1441 * minuteUs, 6, 3})
	gap.UpdateID, gap.TimeUs = 9, 1441*minuteUs
	gap.Best(gap.TimeUs, 5, 0)
	dear := marketOf(trade{1_700_000_000_000_000, money.MaxPrice, money.MaxAmount},
		trade{1_700_000_000_000_000, 1, money.MaxAmount})
	dear.Trade(1_700_000_000_000_000, money.MaxPrice, money.MaxAmount)
	quiet := marketOf(trade{5, 6, 7})
	quiet.Best(2000*minuteUs, 5, 6)
	return []*Market{{}, {UpdateID: 1, TimeUs: 2}, quiet, marketOf(trade{0, 1, 1}),
		marketOf(trade{1_700_000_000_000_000, 5, 6}), gap, dear,
		marketOf(trade{math.MaxInt64, 5, 6})}
}

func TestAnImageRestoresTheMarket(t *testing.T) {
	for _, m := range append(someMarkets(), fullWindow()) {
		p := pairing{market: *m}
		p.restart(t)
		for f := range Frame(FrameCount) {
			was, ok := m.Candle(f)
			if is, still := p.market.Candle(f); is != was || ok != still {
				t.Errorf("%v was %+v, %v and is %+v, %v", f, was, ok, is, still)
			}
		}
		for _, now := range []int64{0, m.tradeUs + 1e6, m.tradeUs + 1000*minuteUs} {
			if m.Ticker(now) != p.market.Ticker(now) {
				t.Errorf("ticker was %+v and is %+v", m.Ticker(now), p.market.Ticker(now))
			}
		}
	}
}

func TestDecodeReplacesAll(t *testing.T) {
	m, image := fullWindow(), marketOf(trade{7, 8, 9}).AppendTo(nil)
	if _, err := decode(m, image); err != nil || !slices.Equal(m.AppendTo(nil), image) {
		t.Errorf("%v", err)
	}
}

func TestATruncatedImageIsRefused(t *testing.T) {
	for _, m := range someMarkets() {
		image := m.AppendTo(nil)
		for n := range image {
			var back Market
			if rest, err := decode(&back, image[:n]); err == nil {
				t.Errorf("%d bytes of %x are read, %x left over", n, image, rest)
			}
		}
	}
}

func TestImagesThatNoTradesCanMakeAreRefused(t *testing.T) {
	const us, window = 2000 * minuteUs, windowMinutes
	head := []uint64{1, us, 4, 6, us} // update id, its time, buy, sell, their time
	minute := func(age, open, high, low, last uint64) []uint64 {
		return []uint64{age, open, high, low, last, 1, 0}
	}
	f := func(want string, parts ...[]uint64) {
		t.Helper()
		var b []byte
		for _, p := range parts {
			b = wire.AppendUints(b, p...)
		}
		m := *marketOf(trade{1, 2, 3})
		before := string(m.AppendTo(nil))
		rest, err := decode(&m, b)
		switch {
		case want == "" && (err != nil || len(rest) != 0 || string(m.AppendTo(nil)) != string(b)):
			t.Errorf("%v: %v", parts, err)
		case want != "" && (err == nil || err.Error() != want || string(m.AppendTo(nil)) != before):
			t.Errorf("%v: %v, want %q", parts, err, want)
		}
	}
	const cut, large, order, impossible = "a number is cut off, or too large",
		"a number is too large", "minutes of trades that do not follow each other",
		"a minute with an impossible price or without volume"

	f("", head, []uint64{0})
	f("", []uint64{math.MaxUint64, math.MaxInt64, math.MaxInt64, 0, math.MaxInt64, 0})
	f(cut, head)
	f(large, []uint64{1, math.MaxInt64 + 1, 0, 0, 0, 0})
	f(large, []uint64{1, 1, math.MaxInt64 + 1, 0, 0, 0})
	f("best prices that would have traded with each other", []uint64{1, 1, 6, 6, 1, 0})

	f("", head, []uint64{1, us, 0}, minute(0, 5, 6, 4, 5))
	f("", head, []uint64{2, us, 3}, minute(window-1, 5, 6, 4, 5), minute(0, 5, 5, 5, 5))
	f(cut, head, []uint64{2, us, 3}, minute(0, 5, 5, 5, 5))
	f(large, head, []uint64{window + 1, us, 3}, minute(0, 5, 5, 5, 5))
	f(large, head, []uint64{2, us, 3}, minute(window, 5, 6, 4, 5), minute(0, 5, 5, 5, 5))
	f(order, head, []uint64{2, us, 3}, minute(1, 5, 6, 4, 5), minute(1, 5, 5, 5, 5))
	f(order, head, []uint64{2, us, 3}, minute(0, 5, 6, 4, 5), minute(1, 5, 5, 5, 5))
	f(order, head, []uint64{1, minuteUs, 0}, minute(2, 5, 6, 4, 5))
	f("the newest trade is not in the newest minute", head, []uint64{1, us, 0},
		minute(1, 5, 6, 4, 5))

	f(impossible, head, []uint64{1, us, 0}, minute(0, 5, 4, 5, 5))
	f(impossible, head, []uint64{1, us, 0}, minute(0, 5, 5, 4, 6))
	f(impossible, head, []uint64{1, us, 0}, minute(0, 5, 6, 6, 6))
	f(impossible, head, []uint64{1, us, 0}, minute(0, 6, 6, 6, 5))
	f(impossible, head, []uint64{1, us, 0}, minute(0, 0, 5, 0, 5))
	f(large, head, []uint64{1, us, 0}, minute(0, 5, math.MaxInt64+1, 5, 5))
	f(impossible, head, []uint64{1, us, 0}, []uint64{0, 5, 5, 5, 5, 0, 0})
	f("", head, []uint64{1, us, 0}, []uint64{0, 5, 5, 5, 5, math.MaxUint64, maxVolumeHi - 1})
	f(large, head, []uint64{1, us, 0}, []uint64{0, 5, 5, 5, 5, 0, maxVolumeHi})
}

func TestALongerFormOfANumberIsRefused(t *testing.T) {
	var m Market
	if _, err := decode(&m, []byte{0x81, 0x00, 0, 0, 0, 0, 0}); err == nil {
		t.Error("1 in two bytes is read: a state would have two images")
	}
}

func TestTheLargestVolumesOfAnImageDoNotOverflow(t *testing.T) {
	b := wire.AppendUints(nil, 0, 0, 0, 0, 0, windowMinutes, 5000*minuteUs, 0)
	for age := range uint64(windowMinutes) {
		b = wire.AppendUints(b, windowMinutes-1-age, 5, 5, 5, 5, math.MaxUint64, maxVolumeHi-1)
	}
	var m Market
	if _, err := decode(&m, b); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		m.Trade(m.tradeUs, 5, money.MaxAmount)
	}
	m.Ticker(0)
}

func FuzzDecode(f *testing.F) {
	for _, m := range someMarkets() {
		f.Add(m.AppendTo(nil))
	}
	f.Add([]byte{0x81, 0x00, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Market
		rest, err := decode(&m, b)
		if err != nil {
			if rest != nil || string(m.AppendTo(nil)) != string(new(Market).AppendTo(nil)) {
				t.Fatalf("after %v there is %+v", err, m)
			}
			return
		}
		if again := append(m.AppendTo(nil), rest...); string(again) != string(b) {
			t.Fatalf("%x is written again as %x", b, again)
		}
		checkShape(t, &m)
		m.Ticker(math.MaxInt64)
		m.Trade(m.tradeUs, 1, money.MaxAmount)
		m.Trade(math.MaxInt64, money.MaxPrice, 1)
		m.Ticker(0)
		checkShape(t, &m)
	})
}

// checkShape checks the rules that hold between the candles of a market.
func checkShape(t *testing.T, m *Market) {
	t.Helper()
	for f := range m.candles {
		c := &m.candles[f]
		if c.Low > min(c.Open, c.Close) || c.High < max(c.Open, c.Close) ||
			c.Time%Frame(f).Seconds() != 0 || c.Volume.IsZero() == m.traded() {
			t.Errorf("%v has %+v", Frame(f), c)
		}
		if f > 0 {
			if s := &m.candles[f-1]; s.Time < c.Time || s.High > c.High || s.Low < c.Low ||
				s.Close != c.Close || s.Volume.Cmp(c.Volume) > 0 {
				t.Errorf("%v has %+v, and %v within it has %+v", Frame(f), c, Frame(f-1), s)
			}
		}
	}
	if m.bestUs > m.tradeUs {
		return // the newest trade may have left the ticker's window
	}
	if ticker := m.Ticker(0); ticker.Last != m.candles[Day].Close ||
		ticker.High < m.candles[Day].High || ticker.Volume.Cmp(m.candles[Day].Volume) < 0 {
		t.Errorf("%+v beside the day's candle %+v", ticker, m.candles[Day])
	}
}
