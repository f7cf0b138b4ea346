package market

import (
	"testing"

	"exchange/core/money"
)

func BenchmarkTrade(b *testing.B) {
	run := func(name string, stepUs int64) {
		b.Run(name, func(b *testing.B) {
			m := fullWindow()
			now, i := m.tradeUs, int64(0)
			b.ReportAllocs()
			for b.Loop() {
				now += stepUs
				i++
				m.Trade(now, money.Price(5_000_000_000_000+i%8*1_000_000), 123_000_000)
			}
		})
	}
	run("each in a new minute", minuteUs)
	run("each a day later", 86_400e6)
	run("1000 a second", 1000)
	run("all at one time", 0)
}

func BenchmarkTicker(b *testing.B) {
	run := func(name string, m *Market, aheadUs int64) {
		b.Run(name, func(b *testing.B) {
			now := m.tradeUs + aheadUs
			b.ReportAllocs()
			for b.Loop() {
				m.Ticker(now)
			}
		})
	}
	run("trades in every minute", fullWindow(), 0)
	run("half a day later", fullWindow(), 720*minuteUs)
	run("one trade", marketOf(trade{0, 5, 1}), 0)
}

func BenchmarkImage(b *testing.B) {
	m := fullWindow()
	image := m.AppendTo(nil)
	b.Run("AppendTo", func(b *testing.B) {
		b.SetBytes(int64(len(image)))
		b.ReportAllocs()
		for b.Loop() {
			image = m.AppendTo(image[:0])
		}
	})
	b.Run("Decode", func(b *testing.B) {
		b.SetBytes(int64(len(image)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := new(Market).Decode(image); err != nil {
				b.Fatal(err)
			}
		}
	})
}
