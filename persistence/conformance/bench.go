package conformance

import (
	"context"
	"fmt"
	"testing"

	"exchange/core/matching"
	"exchange/persistence"
)

// Bench measures a new, empty store: appends of several sizes with a projection behind each, and
// pages of a long history. The store runs in its durable setting.
func Bench(b *testing.B, s persistence.Store) {
	ctx := context.Background()
	tok, seq, err := s.Acquire(ctx, "benchmark")
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{100, 10_000, 100_000} {
		batch := make([]byte, size)
		b.Run(fmt.Sprintf("append %d bytes", size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				if err := s.Append(ctx, tok, seq, seq+100, batch); err != nil {
					b.Fatal(err)
				}
				seq += 100
			}
		})
	}
	const each, all = 1000, 1_000_000
	var id, watermark uint64
	fill := func(b *testing.B) {
		w := &persistence.Writes{}
		for range each {
			id++
			w.Trades = append(w.Trades, trade(id, uint16(1+id%2), uint32(1+id%100), uint32(1+id%99)))
			w.Orders = append(w.Orders, order(id, uint32(1+id%100), uint16(1+id%2)))
		}
		if err := s.Apply(ctx, tok, watermark, watermark+1, w); err != nil {
			b.Fatal(err)
		}
		watermark++
	}
	b.Run("apply 1000 trades and 1000 orders", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fill(b)
		}
	})
	for id < all {
		fill(b)
	}
	for _, q := range []struct {
		name string
		persistence.TradeQuery
	}{
		{"newest 1000 of all", persistence.TradeQuery{}},
		{"1000 of all behind 100000", persistence.TradeQuery{Offset: 100_000}},
		{"1000 of all behind 100000 from the oldest", persistence.TradeQuery{Offset: 100_000, Ascending: true}},
		{"1000 of a pair and side behind 100000", persistence.TradeQuery{Pair: 1, Offset: 100_000, TakerSide: matching.Buy}},
		{"newest 1000 of an account", persistence.TradeQuery{Account: 1}},
		{"1000 of an account and pair behind 5000", persistence.TradeQuery{Account: 1, Pair: 1, Offset: 5000}},
	} {
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				n := 0
				if err := s.Trades(ctx, q.TradeQuery, func(*persistence.Trade) bool { n++; return n < 1000 }); err != nil || n != 1000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
