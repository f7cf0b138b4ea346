package event

import (
	"fmt"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
)

// timed runs a benchmark with orders of a few and of many trades.
func timed(b *testing.B, run func(b *testing.B, r *Record, buf []byte)) {
	for _, trades := range []int{100, 1} {
		r := &Record{Kind: KindOrder, Pair: 1, TimeUs: 1_700_000_000_000_000,
			Order: Order{ID: 1_000_000, Account: 1000, Key: 1000, Nonce: 1_700_000_000_000,
				Side: trading.Buy, Price: 5_000_000_000_000, Amount: 100_000_000,
				ClientID: clientID("0123456789abcdef")}}
		for i := range trades {
			r.Order.Trades = append(r.Order.Trades,
				Trade{ID: uint64(1_000_000 + i), Maker: uint64(900_000 + i),
					MakerAccount: uint32(500 + i),
					Price:        5_000_000_000_000, Amount: money.Amount(1_000_000)})
		}
		b.Run(fmt.Sprintf("order of %d trades", trades), func(b *testing.B) {
			buf := r.Append(nil)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			run(b, r, buf)
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	timed(b, func(b *testing.B, r *Record, buf []byte) {
		for b.Loop() {
			buf = r.Append(buf[:0])
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	timed(b, func(b *testing.B, _ *Record, buf []byte) {
		var back Record
		for b.Loop() {
			if _, err := back.Decode(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}
