package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// Bench measures a new, empty store: appends of several sizes, projections of several shapes, and
// pages of a long history. The store runs in its durable setting.
func Bench(b *testing.B, s persistence.Store) {
	ctx := context.Background()
	tok, seq, err := s.Acquire(ctx, persistence.Claim{Owner: "benchmark"})
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
	f := &filler{ctx: ctx, s: s, tok: tok}
	f.candles(b)
	f.clientOrders(b)
	// The trades of this are the long history below: to the lists, each shape looks the same.
	f.trades(b)
	queries(b, ctx, s)
}

// filler applies rows, one Apply after the other.
type filler struct {
	ctx       context.Context
	s         persistence.Store
	tok       persistence.Token
	watermark uint64
	id        uint64
	w         persistence.Writes
}

// apply writes the gathered rows.
func (f *filler) apply(b *testing.B) {
	if err := f.s.Apply(f.ctx, f.tok, f.watermark, f.watermark+1, &f.w); err != nil {
		b.Fatal(err)
	}
	f.watermark++
	f.w.Reset()
}

const (
	// benchTrades is how long the history is that the queries read.
	benchTrades = 1_000_000
	// busiest is the account that is the maker in nearly all of it.
	busiest = 12345
)

func (f *filler) trades(b *testing.B) {
	const each = 1000
	fill := func(accounts uint64) {
		for range each {
			f.id++
			f.w.Trades = append(f.w.Trades,
				trade(f.id, uint16(1+f.id/2%2), uint32(1+f.id%accounts),
					uint32(1+f.id%(accounts-1))))
			f.w.Orders = append(f.w.Orders, order(f.id, uint32(1+f.id%accounts), uint16(1+f.id%2)))
		}
	}
	b.Run("apply 1000 trades and 1000 orders", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fill(100)
			f.apply(b)
		}
	})
	b.Run("apply 1000 trades and 1000 orders of 1000 accounts with their wallets and nonces",
		func(b *testing.B) {
			b.ReportAllocs()
			holdings := []persistence.Holding{
				{Currency: "BTC", Balance: money.Amount(1e8).Balance()},
				{Currency: "USD", Reserve: money.Amount(1e13).Balance()}}
			for b.Loop() {
				fill(1000)
				for a := range uint32(1000) {
					f.w.Wallets = append(f.w.Wallets,
						persistence.Wallet{Account: a, Name: fmt.Sprintf("account-%d", a),
							Seq: f.id, Holdings: holdings})
					f.w.Nonces = append(f.w.Nonces,
						persistence.Nonce{Key: fmt.Sprintf("0123456789abcdef-%d", a), Nonce: f.id})
				}
				f.apply(b)
			}
		})
	for f.id < benchTrades {
		fill(100)
		for i := range f.w.Trades {
			f.w.Trades[i].Maker = busiest
		}
		f.apply(b)
	}
}

// candles measures the candles of a busy exchange with 200 pairs and 7 frames. About five times a
// second it writes the newest candle of each again. One list is as long as retention mostly lets it
// be.
func (f *filler) candles(b *testing.B) {
	const frames, pairs, long = 7, 200, 50_000
	one := func(pair, frame int, time int64) {
		c := candle(uint16(pair), uint8(frame), time)
		c.Volume = money.Amount(f.watermark).Total()
		f.w.Candles = append(f.w.Candles, c)
	}
	for t := range int64(long) {
		if one(1, 1, t); len(f.w.Candles) == 10_000 {
			f.apply(b)
		}
	}
	b.Run("apply the newest candle of 50000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			one(1, 1, long-1)
			f.apply(b)
		}
	})
	b.Run("apply the newest candles of 200 pairs and 7 frames", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for pair := range pairs {
				for frame := range frames {
					one(pair+1, frame+1, long-1)
				}
			}
			f.apply(b)
		}
	})
	b.Run("newest 1000 of 50000 candles", func(b *testing.B) {
		for b.Loop() {
			n := 0
			if err := f.s.Candles(f.ctx, persistence.CandleQuery{Pair: 1, Frame: 1},
				func(*persistence.Candle) bool { n++; return n < 1000 }); err != nil || n != 1000 {
				b.Fatal(n, err)
			}
		}
	})
}

// clientOrders measures closed orders with and without client ids, and looks for client ids in a
// long history.
func (f *filler) clientOrders(b *testing.B) {
	const accounts, long = 1000, 500_000
	first := f.id
	client := func(id uint64) string {
		return fmt.Sprintf("5f2b8c1e-%016x-client", id*0x9e3779b97f4a7c15) // in no order
	}
	fill := func(named bool) {
		for range 1000 {
			f.id++
			o := order(f.id, uint32(1+f.id%accounts), 1)
			if named {
				o.ClientID = client(f.id)
			}
			f.w.Orders = append(f.w.Orders, o)
		}
	}
	for _, named := range []bool{false, true} {
		b.Run(fmt.Sprintf("apply 1000 orders of 1000 accounts, with client ids: %v", named),
			func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					fill(named)
					f.apply(b)
				}
			})
	}
	named := f.id
	for f.id < first+long {
		fill(true)
		f.apply(b)
	}
	look := func(name string, of func(n uint64) uint64, want error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				id := of(n)
				_, err := f.s.ClientOrder(f.ctx, f.watermark, uint32(1+id%accounts), client(id))
				if !errors.Is(err, want) {
					b.Fatal(err)
				}
			}
		})
	}
	look("look for a new client id", func(n uint64) uint64 { return f.id + 1 + n },
		persistence.ErrNotFound)
	look("look for a client id that is there", func(n uint64) uint64 {
		return named + 1 + n*7919%(f.id-named)
	}, nil)
	var ids []uint64 // the newest ones of account 1
	for id := f.id - f.id%accounts; len(ids) < 500; id -= accounts {
		ids = append(ids, id)
	}
	f.byID(b, 1, ids)
}

// byID reads closed orders of an account one by one, and at once.
func (f *filler) byID(b *testing.B, account uint32, ids []uint64) {
	b.Run(fmt.Sprintf("%d closed orders, one by one", len(ids)), func(b *testing.B) {
		for b.Loop() {
			for _, id := range ids {
				if _, err := f.s.Order(f.ctx, account, id); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run(fmt.Sprintf("%d closed orders at once", len(ids)), func(b *testing.B) {
		for b.Loop() {
			n := 0
			if err := f.s.OrdersByID(f.ctx, account, ids, func(*persistence.Order) bool {
				n++
				return true
			}); err != nil || n != len(ids) {
				b.Fatal(n, err)
			}
		}
	})
}

func queries(b *testing.B, ctx context.Context, s persistence.Store) {
	for _, q := range []struct {
		name string
		persistence.TradeQuery
	}{
		{"newest 1000 of all", persistence.TradeQuery{}},
		{"1000 of all behind 100000", persistence.TradeQuery{Offset: 100_000}},
		{"1000 of all behind 100000 from the oldest",
			persistence.TradeQuery{Offset: 100_000, Ascending: true}},
		{"1000 of all of a side behind 100000",
			persistence.TradeQuery{Offset: 100_000, TakerSide: trading.Sell}},
		{"1000 of a pair behind 100000", persistence.TradeQuery{Pair: 1, Offset: 100_000}},
		{"1000 of a pair behind 100000 from the oldest",
			persistence.TradeQuery{Pair: 1, Offset: 100_000, Ascending: true}},
		{"1000 of a pair and side behind 100000",
			persistence.TradeQuery{Pair: 1, Offset: 100_000, TakerSide: trading.Buy}},
		{"newest 1000 of an account", persistence.TradeQuery{Account: 1}},
		{"1000 of an account and pair behind 3000",
			persistence.TradeQuery{Account: 1, Pair: 1, Offset: 3000}},
		{"1000 of the busiest account behind 100000",
			persistence.TradeQuery{Account: busiest, Offset: 100_000}},
		{"1000 of the busiest account and a pair behind 100000",
			persistence.TradeQuery{Account: busiest, Pair: 1, Offset: 100_000}},
		{"1000 of the busiest account's own side behind 100000",
			persistence.TradeQuery{Account: busiest, MySide: trading.Buy, Offset: 100_000}},
	} {
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				n := 0
				if err := s.Trades(ctx, q.TradeQuery, func(*persistence.Trade) bool {
					n++
					return n < 1000
				}); err != nil || n != 1000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
