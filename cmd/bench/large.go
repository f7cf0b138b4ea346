package main

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"exchange/actors/rows"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
)

// A largeExchange is the data of an exchange that has run for long. They are made without it: the
// records go into a state, their rows into the store, and an image of the state is the snapshot
// after which the journal is empty.
type largeExchange struct {
	pairs    int // synthetic ones
	accounts int
	open     int // orders; those of every second account have a client_order_id
	closed   int // orders; of twenty, two have traded, and the others were cancelled
	sealer   *seal.Sealer

	r     event.Record
	order uint64 // the newest id
	trade uint64
}

const (
	// applyRows is how many rows the store is given at once, as the exchange does.
	applyRows = 20_000
	// sideLevels is how many prices each side of a book has.
	sideLevels = 500
	cent       = money.Price(1e6)
	middle     = 10_000 * cent // price between the two sides
)

// fill writes the exchange into an empty store, and gives the store back.
func (l *largeExchange) fill(ctx context.Context, store persistence.Store) error {
	token, _, err := store.Acquire(ctx, persistence.Claim{Owner: "bench"})
	if err != nil {
		return err
	}
	last := uint64(0)
	for range l.records() {
		last++
	}
	if err := store.Begin(ctx, token, last); err != nil {
		return err
	}
	s, w := state.New(), new(persistence.Writes)
	var effects state.Effects
	watermark := uint64(0)
	for r := range l.records() {
		r.TimeUs = 1e15 + int64(s.Seq())
		if err := s.Apply(r, &effects); err != nil {
			return err
		}
		rows.Append(w, s, r, &effects)
		if rows.Count(w) < applyRows && s.Seq() < last {
			continue
		}
		if err := store.Apply(ctx, token, watermark, s.Seq(), w); err != nil {
			return err
		}
		watermark = s.Seq()
		w.Reset()
	}
	err = store.SaveSnapshot(ctx, token, last, bytes.NewReader(s.AppendTo(nil)))
	if err != nil {
		return err
	}
	return store.Release(ctx, token)
}

// records yields the records of the whole exchange, in order. Each is valid until the next.
func (l *largeExchange) records() iter.Seq[*event.Record] {
	return func(yield func(*event.Record) bool) {
		l.order, l.trade = 0, 0
		_ = l.market(yield) && l.customers(yield) && l.past(yield) && l.book(yield)
	}
}

// market yields the currencies and the pairs.
func (l *largeExchange) market(yield func(*event.Record) bool) bool {
	l.r = event.Record{Kind: event.KindHistory, History: event.HistoryID{1}}
	more := yield(&l.r)
	for i := 0; i <= l.pairs && more; i++ {
		code := "USDT"
		if i > 0 {
			code = fmt.Sprintf("SYN%04d", i)
		}
		l.r = event.Record{Kind: event.KindCurrency,
			Currency: event.Currency{Number: uint16(i + 1), Code: code}}
		more = yield(&l.r)
	}
	for i := 1; i <= l.pairs && more; i++ {
		l.r = event.Record{Kind: event.KindPair, NewPair: event.Pair{Number: uint16(i),
			Name: fmt.Sprintf("SYN%04d_USDT", i), Base: uint16(i + 1), Quote: 1}}
		more = yield(&l.r)
	}
	return more
}

// pairsOf returns the numbers of the two pairs that an account trades.
func (l *largeExchange) pairsOf(account int) [2]uint16 {
	return [2]uint16{uint16(account%l.pairs + 1), uint16((account+1)%l.pairs + 1)}
}

// customers yields the accounts, each with a key and three balances.
func (l *largeExchange) customers(yield func(*event.Record) bool) bool {
	deposit, more := uint64(0), true
	for i := 1; i <= l.accounts && more; i++ {
		name := fmt.Sprintf("account-%d", i)
		l.r = event.Record{Kind: event.KindAccount,
			Account: event.Account{ID: uint32(i), Name: name}}
		more = yield(&l.r)
		public := fmt.Sprintf("%032x", i) // as long as those of the operator's command
		k := event.Key{Number: uint32(i), Account: uint32(i), Key: public,
			Permissions: event.AllPermissions, SealedBy: l.sealer.ID()}
		k.Sealed = l.sealer.Seal([]byte(public+public), k.Bound())
		l.r = event.Record{Kind: event.KindKey, Key: k}
		more = more && yield(&l.r)
		pairs := l.pairsOf(i)
		for _, currency := range [...]uint16{1, pairs[0] + 1, pairs[1] + 1} {
			deposit++
			l.r = event.Record{Kind: event.KindDeposit, Deposit: event.Deposit{ID: deposit,
				Account: uint32(i), Currency: currency, Amount: 1e6 * coin,
				Reference: fmt.Sprint(name, "-", currency)}}
			more = more && yield(&l.r)
		}
	}
	return more
}

// past yields the orders that have closed.
func (l *largeExchange) past(yield func(*event.Record) bool) bool {
	more := true
	for i := 0; i < l.closed && more; i++ {
		account := i%l.accounts + 1
		pair := l.pairsOf(account)[i/l.accounts%2]
		maker := l.place(account, pair, trading.Sell, middle)
		if more = yield(&l.r); i%20 != 0 {
			l.order++
			l.r = event.Record{Kind: event.KindCancel, Pair: pair, Cancel: event.Cancel{
				ID: l.order, Order: maker, Account: uint32(account), Key: uint32(account),
				Nonce: l.order, Side: trading.Sell, Price: middle, Remaining: coin}}
			more = more && yield(&l.r)
			continue
		}
		l.place(account, pair, trading.Buy, middle)
		l.trade++
		l.r.Order.Remaining = 0
		l.r.Order.Trades = []event.Trade{{ID: l.trade, Maker: maker,
			MakerAccount: uint32(account), Price: middle, Amount: coin}}
		more = more && yield(&l.r)
		i++ // it has closed, too
	}
	return more
}

// book yields the orders that are open.
func (l *largeExchange) book(yield func(*event.Record) bool) bool {
	more := true
	for i := 0; i < l.open && more; i++ {
		account, nth := i%l.accounts+1, i/l.pairs
		distance := cent * money.Price(1+nth/2%sideLevels)
		side, price := trading.Buy, middle-distance
		if (nth+i/l.accounts/2)%2 == 0 {
			side, price = trading.Sell, middle+distance
		}
		l.place(account, l.pairsOf(account)[i/l.accounts%2], side, price)
		if i%2 == 0 {
			id, err := event.NewClientID(fmt.Sprintf("%08x-0000-4000-8000-%012x", account, i))
			if err != nil {
				panic(fmt.Sprintf("BUG: %v", err))
			}
			l.r.Order.ClientID = id
		}
		more = yield(&l.r)
	}
	return more
}

// place makes the record of an order of one coin that rests, and returns its id.
func (l *largeExchange) place(account int, pair uint16, side trading.Side,
	price money.Price) uint64 {
	l.order++
	l.r = event.Record{Kind: event.KindOrder, Pair: pair, Order: event.Order{ID: l.order,
		Account: uint32(account), Key: uint32(account), Nonce: l.order, Side: side, Price: price,
		Amount: coin, Remaining: coin}}
	return l.order
}
