package demomarket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/seal"
	"exchange/config"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// The market fills its books before the first visitor, trades as ordinary accounts do, and resumes
// after a restart with its open orders. The exchange's own audit finds nothing.
func TestMarketTradesAndResumes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x := newExchange(t)
		e := x.start()
		m := must(Open(e))
		if got := open(t, m); got != len(m.pairs)*2*levels {
			t.Errorf("%d quotes are open at first, want %d", got, len(m.pairs)*2*levels)
		}
		for range 400 {
			worked(t, m.once())
		}
		before := open(t, m)
		if before == 0 || before > len(m.pairs)*2*levels {
			t.Errorf("%d quotes are open", before)
		}
		fair := m.fair["BTC"]
		for _, p := range m.pairs {
			q := committed.NewestTrades{TradeQuery: committed.TradeQuery{
				Pair: p.Number, Limit: 1}}
			if err := e.Ask(&q, nil, 0); err != nil || len(q.Trades) == 0 {
				t.Errorf("%s has no trades: %v", p.Name, err)
			}
		}
		x.stop(e)

		e = x.start()
		ahead := m.trader(take) // as if by another clock
		ahead.nonce = uint64(time.Now().Add(time.Hour).UnixMicro())
		w := must(e.Wallet(committed.Client{Key: e.Key([]byte("demo-market-2")),
			Nonce: ahead.nonce}))
		w.Free()
		m = must(Open(e))
		if m.trader(take).nonce <= ahead.nonce {
			t.Error("the taker's nonces do not continue")
		}
		if got := open(t, m); got != before {
			t.Errorf("%d quotes are open after a restart, and %d were before", got, before)
		}
		if got := m.fair["BTC"]; got < fair*0.99 || got > fair*1.01 {
			t.Errorf("resumed at %v, and was at %v", got, fair)
		}
		if _, err := e.Halt("test", "BTC_USDT", true); err != nil {
			t.Fatal(err)
		}
		if _, err := e.RevokeKey("test", "demo-market-2"); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(e); err == nil {
			t.Error("a market without a key opens")
		}
		report, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
		if err != nil || len(report.Differences) > 0 {
			t.Errorf("the audit: %+v, %v", report, err)
		}
		x.stop(e)
	})
}

// Without money a trader gets a deposit of the next number, once.
func TestATraderWithoutMoneyGetsADeposit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x := newExchange(t)
		e := x.start()
		m := must(Open(e))
		taker := m.trader(take)
		for range 2 {
			has := must(m.available(taker))
			m.made["demo-market-2-ETH"] = 0                 // as after a restart
			if err := m.deposit(taker, "ETH"); err != nil { // it was made before
				t.Fatal(err)
			}
			for {
				worked(t, m.deposit(taker, "ETH"))
				now := must(m.available(taker))
				if now, has := now["ETH"], has["ETH"]; now != has {
					if now != has+1000 {
						t.Errorf("it has %v ETH after a deposit, and had %v", now, has)
					}
					break
				}
			}
		}
		x.stop(e)
	})
}

// Run ends with its context, and with the engine.
func TestTheMarketEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x := newExchange(t)
		e := x.start()
		m := must(Open(e))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		m.Run(ctx)
		e.Abandon()
		m.Run(t.Context())
		if err := x.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// open returns the number of open orders of the market's accounts.
func open(t *testing.T, m *Market) (n int) {
	t.Helper()
	for i := range m.traders {
		q := committed.OpenOrders{Limit: 1000}
		worked(t, m.engine.Ask(&q, m.traders[i].key, m.traders[i].next()))
		n += len(q.Orders)
		for _, o := range q.Orders {
			if o.Side != trading.Buy && o.Side != trading.Sell {
				t.Errorf("order %d has the side %v", o.ID, o.Side)
			}
		}
	}
	return n
}

// inBubble runs a test with a clock of its own.
func inBubble(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, test)
	runtime.GC() // pooled objects have timers and channels of this bubble, and a second
	runtime.GC() // collection frees those that the first one found
}

// goroutines is a Scheduler whose goroutines end: no mailbox of another bubble gets one.
type goroutines struct{ mailbox.Runners }

func (goroutines) Schedule(m *mailbox.Mailbox) { go m.Run() }

// An exchange is one with the demo's pairs, in memory.
type exchange struct {
	t     *testing.T
	disk  *memory.Disk
	store persistence.Store
	clock Clock
	demo  bool // it gets a past
	over  bool // that is over
	due   bool // the engine of the newest start is to play it
}

func newExchange(t *testing.T) *exchange { return &exchange{t: t, disk: memory.NewDisk()} }

func (x *exchange) start() *actors.Engine {
	x.t.Helper()
	x.store = memory.Open(x.disk, persistence.Retention{})
	sealer := must(seal.New(make([]byte, seal.KeyBytes)))
	o := actors.Options{Store: x.store, Owner: "test", Limits: actors.DefaultLimits,
		Scheduler: goroutines{}, Timing: actors.DefaultTiming, Snapshot: actors.DefaultSnapshot,
		Withdrawal:  actors.DefaultWithdrawal,
		Sealer:      func(bool) (*seal.Sealer, error) { return sealer, nil },
		OnStart:     func(s *state.State) { x.due = x.clock.SetFor(s, !x.demo || x.over) },
		ClockError:  x.clock.Error,
		KeyMaterial: func([]byte) any { return nil }, Log: slog.New(slog.DiscardHandler),
		Exit: func(code int) { panic(fmt.Sprint("exit ", code)) }}
	o.Timing.Request, o.Timing.Stall, o.Timing.OwnerStale = time.Minute, time.Minute, time.Minute
	for _, c := range config.Demo().Currencies {
		o.Currencies = append(o.Currencies, directory.Currency{Code: c.Code, Sign: c.Sign})
	}
	for _, p := range config.Demo().Pairs {
		base, quoted, _ := strings.Cut(p.Name, "_")
		o.Pairs = append(o.Pairs, directory.PairRules{Name: p.Name, Base: base, Quote: quoted,
			PricePrecision: p.PricePrecision, AmountPrecision: p.AmountPrecision,
			MinimumOrderSize: p.MinimumOrderSize, MaximumOrderSize: p.MaximumOrderSize,
			MinimumOrderValue: p.MinimumOrderValue})
	}
	return must(actors.Start(x.t.Context(), o))
}

// stop ends the exchange in order, unless it has ended.
func (x *exchange) stop(e *actors.Engine) {
	x.t.Helper()
	if err := errors.Join(e.Stop(x.t.Context()), x.store.Close()); err != nil {
		x.t.Error(err)
	}
}

// must returns v, or panics at an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// worked ends the test at an error.
func worked(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
