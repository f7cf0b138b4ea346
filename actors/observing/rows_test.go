package observing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/line"
	"exchange/persistence/memory"
)

// fill fills a store with rows of sequences 1 to n.
func fill(t *testing.T, s persistence.Store, r *rand.Rand, n int) {
	t.Helper()
	tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	w := new(persistence.Writes)
	side := func() trading.Side { return []trading.Side{trading.Buy, trading.Sell}[r.IntN(2)] }
	amount := func() money.Amount { return money.Amount(1 + r.Int64N(1<<40)) }
	for seq := uint64(1); seq <= uint64(n); seq++ {
		w.Trades = append(w.Trades, persistence.Trade{ID: 8 + seq ^ 1, Pair: uint16(1 + seq%2),
			TakerSide: side(), Price: money.Price(amount()), Amount: amount(),
			TimeUs: int64(seq / 3), Taker: 1 + r.Uint32N(3), Maker: 1 + r.Uint32N(3),
			TakerOrder: 1 + r.Uint64N(1<<40), MakerOrder: 1 + r.Uint64N(1<<40),
			TakerFee: money.BalanceFromBits(r.Uint64N(9), r.Uint64())})
		w.Orders = append(w.Orders, persistence.Order{ID: 8 + seq ^ 5, Account: 1 + r.Uint32N(3),
			Pair: uint16(1 + r.UintN(2)), Side: side(),
			Status: []uint8{trading.StatusDone, trading.StatusCancelled}[r.IntN(2)],
			Price:  money.Price(amount()), Amount: amount(), TimeUs: int64(seq), ClosedUs: 9,
			ClosedSeq: seq, ClientID: fmt.Sprint("c", r.IntN(5))})
		w.Deposits = append(w.Deposits, persistence.Deposit{ID: seq, Account: 1 + r.Uint32N(3),
			Currency: uint16(1 + r.UintN(2)), Amount: amount(), Reference: fmt.Sprint("wire", seq)})
		w.Withdrawals = append(w.Withdrawals, persistence.Withdrawal{ID: 8 + seq ^ 3,
			Account: 1 + r.Uint32N(3), Currency: uint16(1 + r.UintN(2)), Amount: amount(),
			Status: persistence.WithdrawalApproved, ClosedSeq: seq, Address: "there",
			Details: "why"})
		w.Candles = append(w.Candles, persistence.Candle{Pair: 1, Frame: 2, Time: int64(60 * seq),
			Open: 1, High: 2, Low: 1, Close: 1, Volume: amount().Total()})
	}
	if err := s.Apply(t.Context(), tok, 0, uint64(n), w); err != nil {
		t.Fatal(err)
	}
}

// collected returns the rows of a list, at most that many.
func collected[Q, T any](t *testing.T, ask func(context.Context, Q, func(*T) bool) error, q Q,
	most int) (rows []T) {
	t.Helper()
	err := ask(t.Context(), q, func(row *T) bool {
		if len(rows) < most {
			rows = append(rows, *row)
		}
		return len(rows) < most
	})
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return rows
}

// same expects rows over the wire to be the store's filtered rows.
func same[Q, T any](t *testing.T, got, stored func(context.Context, Q, func(*T) bool) error, q Q,
	has func(*T) bool, most int) {
	t.Helper()
	rows := collected(t, got, q, most)
	var want []T
	for _, row := range collected(t, stored, q, 1<<30) {
		if has(&row) && len(want) < most {
			want = append(want, row)
		}
	}
	if !reflect.DeepEqual(rows, want) {
		t.Fatalf("%+v: %d rows received, want %d\n%+v\n%+v", q, len(rows), len(want), rows, want)
	}
}

// An observer's lists equal the store's up to the reader's horizon: no row is missing, duplicate,
// or later, at any offset.
func TestRemoteListsMatchStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		r := rand.New(rand.NewPCG(1, 2))
		v := newRealm(t)
		m, _ := v.add("a", nil)
		fill(t, m.Store, r, n)
		s := v.open("a")
		for i := range 300 {
			h := everything
			if i%3 > 0 {
				at := r.Uint64N(n + 1)
				h = &persistence.Horizon{Seq: at, Trades: []uint64{r.Uint64N(n), r.Uint64N(n)}}
			}
			whole := h == everything
			got, stored, most := s.At(h), m.Store, 1+r.IntN(3*pageRows)
			account, pair, before := r.Uint32N(4), uint16(r.UintN(3)), r.Uint64N(n+2)*r.Uint64N(2)
			trades := persistence.TradeQuery{Account: account, Pair: pair, Before: before,
				Offset: r.IntN(4) * 9, Ascending: r.IntN(2) == 0}
			if pair != 0 {
				trades.SinceUs = r.Int64N(n / 3)
			}
			sameTrades(t, got, stored, trades, h, most)
			orders := persistence.OrderQuery{Account: 1 + account%3, Pair: pair, Before: before,
				MaxSeq: r.Uint64N(n)}
			same(t, got.Orders, stored.Orders, orders, func(o *persistence.Order) bool {
				return whole || o.ClosedSeq <= h.Seq
			}, most)
			candles := persistence.CandleQuery{Pair: 1, Frame: 2, Since: r.Int64N(60 * n)}
			same(t, got.Candles, stored.Candles, candles,
				func(*persistence.Candle) bool { return true }, most)
		}
	})
}

func sameTrades(t *testing.T, got, stored persistence.History, q persistence.TradeQuery,
	h *persistence.Horizon, most int) {
	t.Helper()
	rows := collected(t, got.Trades, q, most)
	skip := q.Offset
	q.Offset = 0
	var want []persistence.Trade
	for _, row := range collected(t, stored.Trades, q, 1<<30) {
		switch {
		case h != everything && !h.HasTrade(&row):
		case skip > 0:
			skip--
		case len(want) < most:
			want = append(want, row)
		}
	}
	if !reflect.DeepEqual(rows, want) {
		t.Fatalf("%+v at %+v: %d rows received, want %d", q, h, len(rows), len(want))
	}
}

// A row is not found by id if it is after the reader's horizon. By client order id the newest order
// within the horizon is found.
func TestRemoteRowsRespectHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		v := newRealm(t)
		m, _ := v.add("a", nil)
		fill(t, m.Store, rand.New(rand.NewPCG(3, 4)), n)
		s := v.open("a")
		orders := collected(t, m.Store.Orders, persistence.OrderQuery{Account: 1}, n)
		for _, o := range orders {
			for _, at := range []uint64{o.ClosedSeq - 1, o.ClosedSeq, n} {
				remote := s.At(&persistence.Horizon{Seq: at})
				got, err := remote.Order(t.Context(), 1, o.ID)
				if known := at >= o.ClosedSeq; known != (err == nil) || known && got != o ||
					!known && !errors.Is(err, persistence.ErrNotFound) {
					t.Fatalf("order %d of %d at %d: %+v, %v", o.ID, o.ClosedSeq, at, got, err)
				}
				if at == 0 {
					continue
				}
				var newest persistence.Order
				for _, x := range orders {
					if x.ClientID == o.ClientID && x.ClosedSeq <= at && x.ID > newest.ID {
						newest = x
					}
				}
				got = persistence.Order{}
				err = remote.Orders(t.Context(), persistence.OrderQuery{Account: 1,
					ClientID: o.ClientID}, func(o *persistence.Order) bool {
					got = *o
					return false
				})
				if err != nil || got != newest {
					t.Fatalf("%q at %d: %+v, %v, want %+v", o.ClientID, at, got, err, newest)
				}
			}
		}
		for _, w := range collected(t, m.Store.Withdrawals, persistence.WithdrawalQuery{}, n) {
			if _, err := s.At(&persistence.Horizon{Seq: w.ClosedSeq - 1}).Withdrawal(t.Context(),
				w.ID); !errors.Is(err, persistence.ErrNotFound) {
				t.Fatalf("a withdrawal from later: %v", err)
			}
			if got, err := s.Withdrawal(t.Context(), w.ID); err != nil || got != w {
				t.Fatalf("withdrawal %d: %+v, %v", w.ID, got, err)
			}
		}
		for what, err := range map[string]error{
			"actions":     s.Actions(t.Context(), persistence.ActionQuery{}, nil),
			"deposits":    s.Deposits(t.Context(), persistence.DepositQuery{}, nil),
			"withdrawals": s.Withdrawals(t.Context(), persistence.WithdrawalQuery{}, nil),
			"orders":      s.OrdersByID(t.Context(), 1, nil, nil),
			"references":  s.References(t.Context(), nil)} {
			if !errors.Is(err, persistence.ErrInvalid) {
				t.Errorf("an observer may ask for %s: %v", what, err)
			}
		}
	})
}

// The followed member's answer to a read arrives whole, or not at all.
func TestMemberAnswersReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		v.add("a", nil)
		s := v.open("a")
		got, err := s.Ask(t.Context(), []byte("read"))
		if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("read"), 3*pageBytes)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if _, err := s.Ask(t.Context(), make([]byte, longestRead+1)); !errors.Is(err,
			errLongRead) {
			t.Errorf("a long read: %v", err)
		}
		for range maxReads {
			s.reads <- struct{}{}
		}
		if _, err := s.Ask(t.Context(), nil); !errors.Is(err, ErrBusy) {
			t.Errorf("a read too many: %v", err)
		}
		for range maxReads {
			<-s.reads
		}
		v.remove("a")
		ctx, cancel := context.WithTimeout(t.Context(), silence)
		defer cancel()
		if got, err := s.Ask(ctx, []byte("read")); err == nil {
			t.Errorf("a lost member answers %d bytes", len(got))
		}
	})
}

// A list that has returned a row fails when its member is lost. A member that lags behind the
// dropped rows is not queried.
func TestListContinuesAtAnotherMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		v := newRealm(t)
		rows := func() persistence.Store {
			s := memory.Open(memory.NewDisk(), persistence.Retention{})
			t.Cleanup(func() { s.Close() })
			fill(t, s, rand.New(rand.NewPCG(5, 6)), n)
			return s
		}
		v.add("a", rows())
		s := v.open("a", "b")
		err := s.Orders(t.Context(), persistence.OrderQuery{Account: 1},
			func(*persistence.Order) bool {
				v.remove("a")
				return true
			})
		if !errors.Is(err, line.ErrLost) {
			t.Errorf("a list interrupted in the middle returns %v", err)
		}
		s.dropped.Store(n) // as after Apply
		_, h := v.add("b", rows())
		lagging := uint64(n - 1)
		h.mu.Lock()
		h.watermark = &lagging
		h.mu.Unlock()
		if err := s.until(t.Context(), func() (bool, error) { // its status has arrived
			return s.link != nil && s.link.watermark == lagging, nil
		}); err != nil {
			t.Fatal(err)
		}
		got, ctx := make(chan error, 1), waited{t.Context(), make(chan struct{}, 100)}
		go func() {
			_, err := s.Order(ctx, 1, 1<<40)
			got <- err
		}()
		<-ctx.waits // for such a member, or for a row
		synctest.Wait()
		if len(got) > 0 {
			t.Error("a member that lacks dropped rows is queried")
		}
		h.mu.Lock()
		h.watermark = nil
		h.mu.Unlock()
		if err := <-got; !errors.Is(err, persistence.ErrNotFound) {
			t.Error(err)
		}
	})
}

// waited signals a wait for the context.
type waited struct {
	context.Context
	waits chan struct{}
}

func (w waited) Done() <-chan struct{} {
	w.waits <- struct{}{}
	return w.Context.Done()
}

// A countedScan records the use of its turns.
type countedScan struct {
	context.Context
	went, rested, ended chan struct{} // capacity enough
}

func (c countedScan) TakeTurn() error {
	c.went <- struct{}{}
	return c.Err()
}
func (c countedScan) ReleaseTurn() { c.rested <- struct{}{} }
func (c countedScan) End()         { c.ended <- struct{}{} }

// A paced store takes a turn after each trade.
type paced struct{ persistence.Store }

func (p paced) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	return errors.Join(p.Store.Trades(ctx, q, func(t *persistence.Trade) bool {
		return fn(t) && persistence.Pace(ctx) == nil
	}), ctx.Err())
}

// A long query of an observer takes turns, and holds none while the observer does not request the
// next page.
func TestLongObserverQueryTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		store := memory.Open(memory.NewDisk(), persistence.Retention{})
		t.Cleanup(func() { store.Close() })
		const rows = 5000
		fill(t, store, rand.New(rand.NewPCG(1, 2)), rows)
		_, h := v.add("a", paced{store})
		c := countedScan{t.Context(), make(chan struct{}, rows), make(chan struct{}, rows),
			make(chan struct{}, rows)}
		h.scan = func(context.Context) Scan { return c }
		s := v.open("a")
		pages := 0
		q := persistence.TradeQuery{Pair: 1}
		err := s.Trades(t.Context(), q, func(*persistence.Trade) bool {
			if pages++; pages == pageRows+1 && len(c.rested) == 0 {
				t.Error("it holds its turn while a page is read")
			}
			return true
		})
		if err != nil || pages != rows/2 {
			t.Fatal(pages, err)
		}
		<-c.ended
		paces := pages / 1024 // of the store by itself
		if len(c.went) != pages+paces || len(c.rested) != pages/pageRows || len(c.ended) > 0 {
			t.Errorf("%d turns, and %d rests for %d rows", len(c.went), len(c.rested), pages)
		}
	})
}
