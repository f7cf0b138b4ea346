package market

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/prove/spec"
)

const minuteUs = 60_000_000

// A naive keeps all events, and computes every answer from all of them.
type naive struct {
	trades    []spec.Trade
	buy, sell money.Price
	bestUs    int64
}

// start returns the start of the period of d around a moment, by the calendar of package time.
func start(us int64, d time.Duration) time.Time { return time.UnixMicro(us).UTC().Truncate(d) }

var lengths = [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 4 * time.Hour, 24 * time.Hour}

// candles returns all of one frame, by their times.
func (n *naive) candles(length time.Duration) map[int64]Candle {
	all := map[int64]Candle{}
	for _, c := range spec.Candles(n.trades, int64(length/time.Second)) {
		all[c.Time] = Candle(c)
	}
	return all
}

func (n *naive) ticker(now int64) Ticker {
	t := Ticker{Buy: n.buy, Sell: n.sell, TimeUs: n.bestUs}
	if len(n.trades) > 0 {
		t.TimeUs = max(t.TimeUs, n.trades[len(n.trades)-1].TimeUs)
		t.Last = n.trades[len(n.trades)-1].Price
	}
	minute := start(max(now, t.TimeUs), time.Minute)
	t.TimeUs = max(t.TimeUs, minute.UnixMicro())
	from, end := minute.Add(-1439*time.Minute).UnixMicro(), minute.Add(time.Minute).UnixMicro()
	var in []spec.Trade
	before := money.Price(0)
	for _, x := range n.trades {
		switch {
		case x.TimeUs >= end:
			panic("a trade after the window")
		case x.TimeUs >= from:
			in = append(in, x)
		default:
			before = x.Price
		}
	}
	for i, x := range in {
		if i == 0 && before == 0 {
			before = x.Price
		}
		if i == 0 || x.Price < t.Low {
			t.Low = x.Price
		}
		t.High = max(t.High, x.Price)
		t.Volume = t.Volume.Add(x.Amount)
	}
	t.Diff = int64(t.Last) - int64(before)
	return t
}

// A pairing is a market and a naive with the same events.
type pairing struct {
	market Market
	naive  naive
	now    int64
	seen   [FrameCount]map[int64]Candle // Candle's last answers, by time
}

func newPairing(now int64) *pairing {
	p := &pairing{now: now}
	for f := range p.seen {
		p.seen[f] = map[int64]Candle{}
	}
	return p
}

func (p *pairing) trade(price money.Price, amount money.Amount) {
	p.market.Trade(p.now, price, amount)
	p.naive.trades = append(p.naive.trades,
		spec.Trade{TimeUs: p.now, Trade: event.Trade{Price: price, Amount: amount}})
	for f := range p.seen {
		c, _ := p.market.Candle(Frame(f))
		p.seen[f][c.Time] = c
	}
}

func (p *pairing) best(buy, sell money.Price) {
	if p.naive.buy != buy || p.naive.sell != sell {
		p.naive.buy, p.naive.sell, p.naive.bestUs = buy, sell, p.now
	}
	p.market.Best(p.now, buy, sell)
}

// restart continues with the market of an image.
func (p *pairing) restart(t rapid.TB) {
	image := p.market.AppendTo([]byte("before"))[len("before"):]
	var back Market
	rest, err := decode(&back, append(slices.Clip(image), "rest"...))
	if err != nil || string(rest) != "rest" {
		t.Fatalf("decoded with %q left over, %v", rest, err)
	}
	if again := back.AppendTo(nil); !slices.Equal(again, image) {
		t.Fatalf("the image of an image is another:\n%x\n%x", image, again)
	}
	p.market = back
}

func (p *pairing) checkTicker(t rapid.TB, now int64) {
	if got, want := p.market.Ticker(now), p.naive.ticker(now); got != want {
		t.Fatalf("ticker at %d us is\n%+v, want\n%+v", now, got, want)
	}
}

// checkCandles compares the newest candle of each frame, and all earlier candles seen.
func (p *pairing) checkCandles(t rapid.TB) {
	for f, length := range lengths {
		all := p.naive.candles(length)
		c, ok := p.market.Candle(Frame(f))
		if ok != (len(p.naive.trades) > 0) || ok && all[c.Time] != c ||
			ok && c.Time != start(p.naive.trades[len(p.naive.trades)-1].TimeUs, length).Unix() {
			t.Fatalf("newest candle of %v is %+v %v, want %+v", length, c, ok, all[c.Time])
		}
		if len(p.seen[f]) != len(all) {
			t.Fatalf("%d candles of %v were seen, want %d", len(p.seen[f]), length, len(all))
		}
		for at, want := range all {
			if p.seen[f][at] != want {
				t.Fatalf("candle of %v at %d was last seen as %+v, want %+v", length, at,
					p.seen[f][at], want)
			}
		}
	}
}

// drawTime draws a moment at or after p.now. It is often the same moment, or near the end of a
// period, or near the moment at which a trade leaves the window.
func (p *pairing) drawTime(t *rapid.T) int64 {
	edge := int64(rapid.IntRange(-1, 1).Draw(t, "edge"))
	at := p.now
	switch rapid.IntRange(0, 6).Draw(t, "step") {
	case 0:
		at += rapid.Int64Range(0, 1).Draw(t, "us")
	case 1:
		at += rapid.Int64Range(0, 10*60*1e6).Draw(t, "us")
	case 2, 3:
		length := rapid.SampledFrom(lengths[:]).Draw(t, "frame")
		at = start(p.now, length).Add(length).UnixMicro() + edge
	case 4, 5:
		if len(p.naive.trades) > 0 {
			leaves := rapid.SampledFrom(p.naive.trades).Draw(t, "leaves").TimeUs
			at = start(leaves, time.Minute).Add(1440*time.Minute).UnixMicro() + edge
		}
	case 6:
		at += rapid.Int64Range(0, 5*86_400*1e6).Draw(t, "gap")
	}
	return max(at, p.now)
}

func drawPrice(t *rapid.T) money.Price {
	return money.Price(rapid.OneOf(rapid.Int64Range(1, 9),
		rapid.Int64Range(1, int64(money.MaxPrice))).Draw(t, "price"))
}

func drawAmount(t *rapid.T) money.Amount {
	return money.Amount(rapid.OneOf(rapid.Int64Range(1, 9),
		rapid.Int64Range(1, int64(money.MaxAmount))).Draw(t, "amount"))
}

func TestCandlesAndTickersAreThoseOfAllTrades(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPairing(rapid.SampledFrom(
			[]int64{0, 1_699_999_999_999_999, 1_700_000_000_000_000, 1_700_006_399_999_999}).Draw(t,
			"begin"))
		t.Repeat(map[string]func(*rapid.T){
			"trade": func(t *rapid.T) {
				p.now = p.drawTime(t)
				p.trade(drawPrice(t), drawAmount(t))
			},
			"same time": func(t *rapid.T) { p.trade(drawPrice(t), drawAmount(t)) },
			"minutes": func(t *rapid.T) {
				step := rapid.Int64Range(30, 240).Draw(t, "step")
				for range rapid.IntRange(1, 60).Draw(t, "n") {
					p.now += step * 1e6
					p.trade(drawPrice(t), 1)
				}
			},
			"best": func(t *rapid.T) {
				p.now = p.drawTime(t)
				buy := rapid.Int64Range(0, 3).Draw(t, "buy")
				p.best(money.Price(buy), money.Price(
					rapid.SampledFrom([]int64{0, buy + 1, 9}).Draw(t, "sell")))
			},
			"restart": func(t *rapid.T) { p.restart(t) },
			"": func(t *rapid.T) {
				p.checkTicker(t, p.drawTime(t))
				p.checkTicker(t, rapid.Int64Range(-1, p.now).Draw(t, "earlier"))
			},
		})
		p.checkCandles(t)
		p.restart(t)
		p.checkCandles(t)
	})
}
