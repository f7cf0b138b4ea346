package conformance

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

func (w *world) fields() {
	w.open(persistence.Retention{})
	widest := persistence.Trade{
		ID: codec.MaxID, Pair: math.MaxUint16, TakerSide: trading.Sell, Price: money.MaxPrice,
		Amount: money.MaxAmount, TimeUs: math.MaxInt64, Taker: math.MaxUint32,
		Maker: math.MaxUint32 - 1, TakerOrder: codec.MaxID, MakerOrder: codec.MaxID - 1,
		TakerFee: money.BalanceFromBits(math.MaxUint64, math.MaxUint64),
		MakerFee: money.BalanceFromBits(1, 0),
	}
	narrow := persistence.Trade{ID: 1, Pair: 0, TakerSide: trading.Buy, Price: 1, Amount: 1}
	wideOrder := persistence.Order{
		ID: codec.MaxID, Account: math.MaxUint32, Pair: math.MaxUint16, Side: trading.Sell,
		Status: trading.StatusCancelled, Price: money.MaxPrice, Amount: money.MaxAmount,
		Remaining: money.MaxAmount, TimeUs: math.MaxInt64, ClosedUs: 1,
		ClosedSeq: codec.MaxID, ClientID: "abcdefghijklmnopqrstuvwxyz_0123456-A",
	}
	narrowOrder := persistence.Order{ID: 1, Account: math.MaxUint32, Side: trading.Buy,
		Status: trading.StatusDone}
	wideDeposit := persistence.Deposit{
		ID: codec.MaxID, Account: math.MaxUint32, Currency: math.MaxUint16, Amount: money.MaxAmount,
		TimeUs: math.MaxInt64, Reference: "a\x00 reference\n",
	}
	narrowDeposit := persistence.Deposit{ID: 1, Account: math.MaxUint32}
	wideWithdrawal := persistence.Withdrawal{
		ID: codec.MaxID, Account: math.MaxUint32, Currency: math.MaxUint16, Amount: money.MaxAmount,
		Status: persistence.WithdrawalRefused, TimeUs: math.MaxInt64, ClosedUs: 1,
		ClosedSeq: codec.MaxID, ClientID: strings.Repeat("c", codec.MaxClientID),
		Address: strings.Repeat("a\x00", 128), Details: strings.Repeat("ü", 512),
	}
	narrowWithdrawal := persistence.Withdrawal{ID: 1, Account: 1,
		Status: persistence.WithdrawalCancelled}
	wideCandle := persistence.Candle{
		Pair: math.MaxUint16, Frame: math.MaxUint8, Time: codec.MaxID, Open: 0,
		High: money.MaxPrice, Low: 0, Close: money.MaxPrice,
		Volume: money.TotalFromBits(math.MaxUint64, math.MaxUint64),
	}
	narrowCandle := persistence.Candle{Pair: math.MaxUint16, Frame: math.MaxUint8, Time: 1,
		Open: money.MaxPrice, High: 0, Low: 1}
	wideAction := persistence.Action{Seq: codec.MaxID, TimeUs: math.MaxInt64,
		Operator: strings.Repeat("w", 256), What: strings.Repeat("\n", 4096)}
	narrowAction := persistence.Action{Seq: 1}
	w.apply(1, &persistence.Writes{
		Trades:   []persistence.Trade{narrow, widest},
		Orders:   []persistence.Order{narrowOrder, wideOrder},
		Deposits: []persistence.Deposit{narrowDeposit, wideDeposit},

		Withdrawals: []persistence.Withdrawal{narrowWithdrawal, wideWithdrawal},
		Candles:     []persistence.Candle{narrowCandle, wideCandle},
		Actions:     []persistence.Action{narrowAction, wideAction},
	})
	w.wantWithdrawals(persistence.WithdrawalQuery{},
		[]persistence.Withdrawal{wideWithdrawal, narrowWithdrawal})
	w.wantWithdrawals(persistence.WithdrawalQuery{Account: math.MaxUint32,
		Currency: math.MaxUint16},
		[]persistence.Withdrawal{wideWithdrawal})
	w.wantCandles(persistence.CandleQuery{Pair: math.MaxUint16, Frame: math.MaxUint8},
		&model{candles: []persistence.Candle{narrowCandle, wideCandle}})
	w.wantActions(persistence.ActionQuery{}, []persistence.Action{wideAction, narrowAction})
	w.wantTrades(persistence.TradeQuery{}, []persistence.Trade{widest, narrow})
	w.wantTrades(persistence.TradeQuery{Account: math.MaxUint32}, []persistence.Trade{widest})
	w.wantTrades(persistence.TradeQuery{Account: math.MaxUint32, Pair: math.MaxUint16},
		[]persistence.Trade{widest})
	w.wantTrades(persistence.TradeQuery{Pair: math.MaxUint16, Before: codec.MaxID}, nil)
	w.wantOrders(persistence.OrderQuery{Account: math.MaxUint32},
		[]persistence.Order{wideOrder, narrowOrder})
	w.wantOrders(persistence.OrderQuery{Account: math.MaxUint32, ClientID: wideOrder.ClientID},
		[]persistence.Order{wideOrder})
	w.wantDeposits(persistence.DepositQuery{Account: math.MaxUint32},
		[]persistence.Deposit{wideDeposit, narrowDeposit})
}

// stable reads while rows are written: exact order, and all rows that existed at the start.
func (w *world) stable() {
	w.open(persistence.Retention{})
	r := newRand(w.T, 7)
	m := &model{}
	w.fill(r, m, 10, 400)
	from, err := w.s.Watermark(w.ctx)
	w.must(err)
	id := m.orders[len(m.orders)-1].ID + 100
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var late []persistence.Trade
		for seq := from; ; seq++ {
			select {
			case <-stop:
				return
			default:
			}
			var writes persistence.Writes
			writes, late = flush(r, &id, seq+1, 100, late)
			if err := w.s.Apply(w.ctx, w.tok, seq, seq+1, &writes); err != nil {
				w.Error(err)
				return
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	for i := range 20 {
		q := persistence.TradeQuery{Account: uint32(i % 3), Pair: uint16(i % 2), Ascending: i%4 < 2}
		before := w.trades(q)
		during := w.trades(q)
		if !slices.IsSortedFunc(during, func(a, b persistence.Trade) int {
			if (a.ID < b.ID) == q.Ascending {
				return -1
			}
			return 1
		}) {
			w.Fatalf("%+v: the list is not in order", q)
		}
		missing(w, before, during, tradeID)
		orders := persistence.OrderQuery{Account: uint32(1 + i%accounts),
			Side: trading.Side(i % 3)}
		beforeOrders := w.orders(orders)
		missing(w, beforeOrders, w.orders(orders), orderID)
		withdrawals := persistence.WithdrawalQuery{Account: uint32(i % accounts),
			Currency: uint16(i % currencies)}
		beforeWithdrawals := w.withdrawals(withdrawals)
		missing(w, beforeWithdrawals, w.withdrawals(withdrawals), withdrawalID)
		candles := persistence.CandleQuery{Pair: 1}
		beforeCandles := w.candles(candles)
		missing(w, beforeCandles, w.candles(candles), candleID)
	}
}

// missing fails if a row of before is not in during, or one of during comes twice.
func missing[T any](w *world, before, during []T, id func(T) uint64) {
	w.Helper()
	have := map[uint64]bool{}
	for _, r := range during {
		if have[id(r)] {
			w.Fatalf("row %d comes twice", id(r))
		}
		have[id(r)] = true
	}
	for _, r := range before {
		if !have[id(r)] {
			w.Fatalf("row %d is left out", id(r))
		}
	}
}

// concurrent uses all methods concurrently; the race detector and the final state show faults.
func (w *world) concurrent() {
	w.open(persistence.Retention{Trades: 500, Orders: 300})
	const rounds = 60
	var wg sync.WaitGroup
	check := func(err error) {
		if err != nil {
			w.Error(err)
		}
	}
	wg.Go(func() { // the journal's writer
		for i := range uint64(rounds) {
			check(w.s.Append(w.ctx, w.tok, i, i+1, []byte{byte(i)}))
		}
	})
	wg.Go(func() { // the projector
		r := rand.New(rand.NewPCG(8, 8))
		var id uint64
		var late []persistence.Trade
		for i := range uint64(rounds) {
			var writes persistence.Writes
			writes, late = flush(r, &id, i+1, 50, late)
			check(w.s.Apply(w.ctx, w.tok, i, i+1, &writes))
			if i%20 == 10 {
				check(w.s.SaveSnapshot(w.ctx, w.tok, i, readerOf(300_000)))
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			for range rounds / 3 {
				check(w.s.Check(w.ctx, w.tok))
				_, err := w.s.Watermark(w.ctx)
				check(err)
				check(w.s.Read(w.ctx, 0, func(_, _ uint64, _ []byte) error { return nil }))
				check(w.s.Trades(w.ctx, persistence.TradeQuery{Account: 1, Pair: 1},
					func(*persistence.Trade) bool { return true }))
				check(w.s.Trades(w.ctx, persistence.TradeQuery{Ascending: true},
					func(*persistence.Trade) bool { return true }))
				check(w.s.Orders(w.ctx, persistence.OrderQuery{Account: 1, ClientID: "client-1"},
					func(*persistence.Order) bool { return true }))
				check(w.s.Deposits(w.ctx, persistence.DepositQuery{Account: 1},
					func(*persistence.Deposit) bool { return true }))
				check(w.s.Withdrawals(w.ctx, persistence.WithdrawalQuery{Currency: 1},
					func(*persistence.Withdrawal) bool { return true }))
				check(w.s.Candles(w.ctx, persistence.CandleQuery{Pair: 1},
					func(*persistence.Candle) bool { return true }))
				check(w.s.Actions(w.ctx, persistence.ActionQuery{}, func(*persistence.Action) bool {
					return true
				}))
				check(w.s.Wallets(w.ctx, func(*persistence.Wallet) bool { return true }))
				check(w.s.Nonces(w.ctx, func(string, uint64) {}))
			}
		})
	}
	wg.Wait()
	w.wantWatermark(rounds)
	all, err := w.read(0)
	w.must(err)
	if len(all) != rounds {
		w.Fatalf("%d batches, want %d", len(all), rounds)
	}
	if got := w.trades(persistence.TradeQuery{}); len(got) != 500 {
		w.Fatalf("%d trades are kept, want 500", len(got))
	}
}
