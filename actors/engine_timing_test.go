package actors

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// timedOptions returns testOptions with the ordinary Scheduler.
func timedOptions(store persistence.Store) Options {
	o := testOptions(store)
	o.Scheduler = nil
	return o
}

// forgetful is a store that accepts every append and projection at once, to measure only the
// engine.
type forgetful struct{ persistence.Store }

func (forgetful) Append(context.Context, persistence.Token, uint64, uint64, []byte) error {
	return nil
}
func (forgetful) Apply(context.Context, persistence.Token, uint64, uint64,
	*persistence.Writes) error {
	return nil
}
func (forgetful) SaveSnapshot(context.Context, persistence.Token, uint64, io.Reader) error {
	return nil
}

// BenchmarkOrders sends orders (60 %) and cancels (40 %) of many accounts into the engine, without
// the gateway. Its name contains the number of clients with a command in flight.
func BenchmarkOrders(b *testing.B) {
	for _, store := range []string{"none", "pebble"} {
		for _, clients := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("store=%s/clients=%d", store, clients), func(b *testing.B) {
				s := openPebble(b, b.TempDir())
				defer s.Close()
				if store == "none" {
					s = forgetful{s}
				}
				e := start(b, timedOptions(s))
				benchmarkOrders(b, e, clients)
				stop(b, e)
			})
		}
	}
}

func benchmarkOrders(b *testing.B, e *Engine, clients int) {
	var sent, refused atomic.Int64
	done := make(chan struct{}, clients)
	keys := make([]*directory.Key, clients)
	for i := range keys {
		keys[i] = fund(b, e, fmt.Sprint("account-", i),
			map[string]money.Amount{"BTC": 1_000_000 * coin, "USD": 1_000_000_000 * coin})
	}
	pair := e.Pair([]byte("BTC_USD"))
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	for i := range clients {
		go func() {
			defer func() { done <- struct{}{} }()
			random := rand.New(rand.NewPCG(uint64(i), 7))
			var open []uint64
			for nonce := uint64(1); sent.Add(1) <= int64(b.N); nonce++ {
				var c *Command
				var err error
				if len(open) > 0 && random.IntN(10) < 4 {
					c, err = e.Cancel(keys[i], nonce, open[0])
					open = open[:copy(open, open[1:])]
				} else {
					w := OrderRequest{Pair: pair, Side: trading.Side(1 + random.IntN(2)),
						Price:  money.Price(9_990+random.IntN(20)) * 1e6,
						Amount: money.Amount(1+random.IntN(100)) * 1e6}
					c, err = e.Place(keys[i], nonce, &w)
				}
				if err != nil {
					b.Error(err)
					return
				}
				if c.Outcome() == Refused {
					refused.Add(1)
				} else if r := c.Record(); r.Kind == event.KindOrder && r.Order.Rests() {
					open = append(open, r.Order.ID)
				}
				c.Free()
			}
		}()
	}
	for range clients {
		<-done
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "orders/s")
	b.ReportMetric(float64(refused.Load())/float64(b.N), "refused/op")
}
