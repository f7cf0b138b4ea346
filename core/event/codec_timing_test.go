package event

import (
	"fmt"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
)

func orderOf(trades int) *Record {
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
	return r
}

type shape struct {
	name   string
	record *Record
}

func shapes() (list []shape) {
	for _, trades := range []int{100, 1, 0} {
		list = append(list, shape{fmt.Sprintf("order of %d trades", trades), orderOf(trades)})
	}
	ioc := orderOf(1)
	ioc.Kind, ioc.Order.Remaining, ioc.Order.RestCancelled = KindInstructed, 5, true
	ioc.Instructions = trading.Instructions{IOC: true, Cancelled: trading.CancelledIOC}
	return append(list,
		shape{"ioc of 1 trade", ioc},
		shape{"cancel", &Record{Kind: KindCancel, Pair: 1, TimeUs: 1_700_000_000_000_000,
			Cancel: Cancel{ID: 1_000_000, Order: 900_000, Account: 1000, Key: 1000,
				Nonce: 1_700_000_000_000, Side: trading.Buy, Price: 5_000_000_000_000,
				Remaining: 100_000_000}}},
		shape{"refusal", &Record{Kind: KindRefusal, TimeUs: 1_700_000_000_000_000,
			Refusal: Refusal{Account: 1000, Key: 1000, Nonce: 1_700_000_000_000,
				Reason: RefusedFunds}}})
}

func BenchmarkAppend(b *testing.B) {
	for _, s := range shapes() {
		r := s.record
		b.Run(s.name, func(b *testing.B) {
			buf := r.Append(nil)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				buf = r.Append(buf[:0])
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, s := range shapes() {
		r := s.record
		b.Run(s.name, func(b *testing.B) {
			buf := r.Append(nil)
			var back Record
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := back.Decode(buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpenBatch(b *testing.B) {
	buf := BeginBatch(nil)
	r := orderOf(1)
	for range 1000 {
		buf = r.Append(buf)
	}
	buf = EndBatch(buf, 1, 1, 1000)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := OpenBatch(buf); err != nil {
			b.Fatal(err)
		}
	}
}
