package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

func (w *world) wantWatermark(want uint64) {
	w.Helper()
	got, err := w.s.Watermark(w.ctx)
	w.must(err)
	if got != want {
		w.Fatalf("the watermark is %d, want %d", got, want)
	}
}

func (w *world) watermark() {
	w.open(persistence.Retention{})
	first := &persistence.Writes{Trades: []persistence.Trade{trade(1, 1, 1, 2)}}
	w.must(w.s.Apply(w.ctx, w.tok, 0, 5, first))
	w.wantWatermark(5)
	w.must(w.s.Apply(w.ctx, w.tok, 0, 5, first)) // a retry
	other := &persistence.Writes{Trades: []persistence.Trade{trade(2, 1, 1, 2)},
		Nonces: []persistence.Nonce{{Key: "k", Nonce: 1}}}
	w.must(w.s.Apply(w.ctx, w.tok, 3, 5, other)) // 5 is reached: nothing is written
	w.is(w.s.Apply(w.ctx, w.tok, 0, 6, other), persistence.ErrGap)
	w.is(w.s.Apply(w.ctx, w.tok, 4, 6, other), persistence.ErrGap)
	w.is(w.s.Apply(w.ctx, w.tok, 6, 7, other), persistence.ErrGap)
	nonces := &persistence.Writes{Nonces: []persistence.Nonce{{Key: "k", Nonce: 7}}}
	w.is(w.s.Apply(w.ctx, w.tok, 4, 4, nonces), persistence.ErrGap)
	w.is(w.s.Apply(w.ctx, w.tok, 6, 6, nonces), persistence.ErrGap)
	w.wantNonces(map[string]uint64{})
	w.must(w.s.Apply(w.ctx, w.tok, 5, 5, nonces))
	w.wantNonces(map[string]uint64{"k": 7})
	w.wantWatermark(5)
	w.wantTrades(persistence.TradeQuery{}, first.Trades)
	w.again(persistence.Retention{})
	w.wantWatermark(5)
}

// meaningless checks that the store refuses batches, rows and queries that are invalid. The
// watermark stays.
func (w *world) meaningless() {
	w.open(persistence.Retention{})
	w.invalid("an empty batch", w.s.Append(w.ctx, w.tok, 0, 1, nil))
	w.invalid("a batch of no records", w.s.Append(w.ctx, w.tok, 0, 0, []byte("x")))
	w.invalid("a batch that goes back", w.s.Append(w.ctx, w.tok, 2, 1, []byte("x")))
	w.invalid("a sequence of 2^53", w.s.Append(w.ctx, w.tok, 0, 1<<53, []byte("x")))
	w.invalid("an apply that goes back", w.s.Apply(w.ctx, w.tok, 2, 1, &persistence.Writes{}))
	w.meaninglessRows()
	w.meaninglessWithdrawals()
	w.meaninglessActions()
	w.rowsWithoutMove()
	w.invalid("a negative offset of withdrawals",
		w.s.Withdrawals(w.ctx, persistence.WithdrawalQuery{Offset: -1},
			func(*persistence.Withdrawal) bool { return true }))
	w.invalid("a negative offset", w.s.Trades(w.ctx,
		persistence.TradeQuery{Offset: -1}, func(*persistence.Trade) bool { return true }))
	w.wantWatermark(0)
	w.must(w.s.Apply(w.ctx, w.tok, 0, 1, nil)) // nothing to write is fine
	w.wantWatermark(1)
	w.asManyAsAllowed()
}

// invalid checks that the store refuses meaningless input, and not for its sequence or its owner.
func (w *world) invalid(name string, err error) {
	w.Helper()
	if err == nil {
		w.Errorf("%s: no error", name)
	} else if errors.Is(err, persistence.ErrGap) || errors.Is(err, persistence.ErrFenced) {
		w.Errorf("%s: %v is another refusal", name, err)
	}
}

// invalidRows checks that the store refuses rows, though they come at the right place.
func (w *world) invalidRows(name string, writes persistence.Writes) {
	w.Helper()
	w.invalid(name, w.s.Apply(w.ctx, w.tok, 0, 1, &writes))
}

func (w *world) meaninglessRows() {
	w.invalidRows("an id of 0", persistence.Writes{Trades: []persistence.Trade{trade(0, 1, 1, 2)}})
	w.invalidRows("an id of 2^53",
		persistence.Writes{Orders: []persistence.Order{order(1<<53, 1, 1)}})
	open := order(1, 1, 1)
	open.Status = trading.StatusActive
	w.invalidRows("an open order", persistence.Writes{Orders: []persistence.Order{open}})
	long := order(1, 1, 1)
	long.ClientID = strings.Repeat("x", 37)
	w.invalidRows("a client id of 37 bytes", persistence.Writes{Orders: []persistence.Order{long}})
	w.invalidRows("a candle before 1970",
		persistence.Writes{Candles: []persistence.Candle{candle(1, 1, -1)}})
	w.invalidRows("a candle below 0",
		persistence.Writes{Candles: []persistence.Candle{{Pair: 1, Low: -1}}})
	w.invalidRows("a nonce without a key", persistence.Writes{Nonces: []persistence.Nonce{{}}})
	w.invalidRows("a wallet without a name",
		persistence.Writes{Wallets: []persistence.Wallet{{Account: 1}}})
	const tooMany = persistence.MaxRows + 1
	w.invalidRows("too many nonces", persistence.Writes{Nonces: make([]persistence.Nonce, tooMany)})
	w.invalidRows("too many withdrawals",
		persistence.Writes{Withdrawals: make([]persistence.Withdrawal, tooMany)})
	w.invalidRows("too many candles",
		persistence.Writes{Candles: make([]persistence.Candle, tooMany)})
	w.invalidRows("too many actions",
		persistence.Writes{Actions: make([]persistence.Action, tooMany)})
}

func (w *world) meaninglessWithdrawals() {
	invalid := func(name string, change func(*persistence.Withdrawal)) {
		w.Helper()
		d := withdrawal(1, 1)
		change(&d)
		w.invalidRows(name, persistence.Writes{Withdrawals: []persistence.Withdrawal{d}})
	}
	invalid("an open withdrawal", func(d *persistence.Withdrawal) {
		d.Status = persistence.WithdrawalVerified
	})
	invalid("a withdrawal without an id", func(d *persistence.Withdrawal) { d.ID = 0 })
	invalid("a client id of 37 bytes", func(d *persistence.Withdrawal) {
		d.ClientID = strings.Repeat("c", 37)
	})
	invalid("an address of 257 bytes", func(d *persistence.Withdrawal) {
		d.Address = strings.Repeat("x", 257)
	})
	invalid("details of 1025 bytes", func(d *persistence.Withdrawal) {
		d.Details = strings.Repeat("x", 1025)
	})
}

func (w *world) meaninglessActions() {
	invalid := func(name string, a persistence.Action) {
		w.Helper()
		w.invalidRows(name, persistence.Writes{Actions: []persistence.Action{a}})
	}
	invalid("an action without a sequence", persistence.Action{Operator: "x"})
	invalid("an action by an operator of 257 bytes",
		persistence.Action{Seq: 1, Operator: strings.Repeat("x", 257)})
	invalid("an action of 4097 bytes", persistence.Action{Seq: 1, What: strings.Repeat("x", 4097)})
}

// rowsWithoutMove checks that rows of the history come only with a watermark that moves.
func (w *world) rowsWithoutMove() {
	invalid := func(name string, writes persistence.Writes) {
		w.Helper()
		w.invalid(name, w.s.Apply(w.ctx, w.tok, 0, 0, &writes))
	}
	invalid("a trade without a move",
		persistence.Writes{Trades: []persistence.Trade{trade(1, 1, 1, 2)}})
	invalid("a withdrawal without a move",
		persistence.Writes{Withdrawals: []persistence.Withdrawal{withdrawal(1, 1)}})
	invalid("a candle without a move",
		persistence.Writes{Candles: []persistence.Candle{candle(1, 1, 1)}})
	invalid("an action without a move",
		persistence.Writes{Actions: []persistence.Action{action(1)}})
}

func (w *world) asManyAsAllowed() {
	most := make([]persistence.Nonce, persistence.MaxRows)
	for i := range most {
		most[i] = persistence.Nonce{Key: "key", Nonce: uint64(i + 1)}
	}
	w.must(w.s.Apply(w.ctx, w.tok, 1, 2, &persistence.Writes{Nonces: most}))
	w.wantNonces(map[string]uint64{"key": persistence.MaxRows})
}

func (w *world) wantNonces(want map[string]uint64) {
	w.Helper()
	got := map[string]uint64{}
	w.must(w.s.Nonces(w.ctx, func(key string, nonce uint64) { got[key] = nonce }))
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Fatalf("nonces are %v, want %v", got, want)
	}
}

func (w *world) nonces() {
	w.open(persistence.Retention{})
	want := map[string]uint64{}
	put := func(list ...persistence.Nonce) {
		w.must(w.s.Apply(w.ctx, w.tok, 0, 0, &persistence.Writes{Nonces: list}))
		for _, n := range list {
			want[n.Key] = max(want[n.Key], n.Nonce)
		}
		w.wantNonces(want)
	}
	const top = ^uint64(0)
	put(persistence.Nonce{Key: "a", Nonce: 9}, persistence.Nonce{Key: "b", Nonce: 1<<53 + 1})
	put(persistence.Nonce{Key: "a", Nonce: 10}, persistence.Nonce{Key: "b", Nonce: 1 << 53})
	put(persistence.Nonce{Key: "a", Nonce: 9}, persistence.Nonce{Key: "b", Nonce: 1<<53 + 2})
	put(persistence.Nonce{Key: "c", Nonce: top - 1}, persistence.Nonce{Key: "c", Nonce: top},
		persistence.Nonce{Key: "c", Nonce: 5})
	put(persistence.Nonce{Key: "c", Nonce: top - 10}, persistence.Nonce{Key: "d", Nonce: 0})
	put(persistence.Nonce{Key: "e", Nonce: 1234567890123},
		persistence.Nonce{Key: "e", Nonce: 1234567890999})
	put(persistence.Nonce{Key: "e", Nonce: 1234567890998})
	var many []persistence.Nonce
	for i := range uint64(3000) {
		many = append(many, persistence.Nonce{Key: fmt.Sprintf("key-%d", i), Nonce: i * i})
	}
	put(many...)
	w.again(persistence.Retention{})
	w.wantNonces(want)
}

func (w *world) allWallets() {
	w.open(persistence.Retention{})
	if got := w.projectedWallets(); len(got) != 0 {
		w.Fatalf("an empty store has wallets: %v", got)
	}
	want := map[string]persistence.Wallet{}
	put := func(accounts uint32, seq uint64) {
		var writes persistence.Writes
		for a := range accounts {
			p := persistence.Wallet{Account: 1 + a, Name: fmt.Sprintf("alice.b-c_%d", a), Seq: seq}
			switch { // the later wallets have fewer holdings, or none
			case seq == 1:
				p.Holdings = []persistence.Holding{
					{Currency: "BTC", Balance: money.BalanceFromBits(1<<56-1, ^uint64(a)),
						Reserve: money.BalanceFromBits(0, 1)},
					{Currency: "USD", Reserve: money.Amount(a).Balance()},
				}
			case a > 0:
				p.Holdings = []persistence.Holding{{Currency: "USD",
					Balance: money.Price(123456789).Times(987654321).Balance()}}
			}
			want[p.Name] = p
			writes.Wallets = append(writes.Wallets, p)
			// other keys between them
			writes.Trades = append(writes.Trades, trade(1000*seq*seq+uint64(a), 1, a, a+1))
		}
		w.apply(1, &writes)
	}
	put(2500, 1)
	put(100, 2)
	for range 2 {
		if got := w.projectedWallets(); !reflect.DeepEqual(got, want) {
			w.Fatalf("%d wallets, want the %d written ones", len(got), len(want))
		}
		w.again(persistence.Retention{})
	}
	n := 0
	w.must(w.s.Wallets(w.ctx, func(*persistence.Wallet) bool { n++; return n < 7 }))
	if n != 7 {
		w.Fatalf("fn was called %d times after it had stopped at 7", n)
	}
}

// projectedWallets returns all wallets of the store, by name.
func (w *world) projectedWallets() map[string]persistence.Wallet {
	w.Helper()
	got := map[string]persistence.Wallet{}
	w.must(w.s.Wallets(w.ctx, func(p *persistence.Wallet) bool {
		if _, twice := got[p.Name]; twice {
			w.Fatalf("the wallet of %s comes twice", p.Name)
		}
		copied := *p
		copied.Holdings = append([]persistence.Holding(nil), p.Holdings...)
		got[p.Name] = copied
		return true
	}))
	return got
}
