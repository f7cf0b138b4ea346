package actors

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"

	"exchange/actors/rows"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/gateway/sign"
	"exchange/persistence"
)

// A journalWriter writes a journal without an engine: valid records, in batches of 100.
type journalWriter struct {
	b       testing.TB
	store   persistence.Store
	token   persistence.Token
	sealer  *seal.Sealer
	state   *state.State
	effects state.Effects
	rows    persistence.Writes // of the deposits, which a start counts
	data    []byte
	count   uint32
	last    uint64
	saved   uint64 // the store's watermark
	orders  uint64
	trades  uint64
}

// stepRows is the number of rows per projection of a journalWriter.
const stepRows = 20_000

func newScribe(b testing.TB, store persistence.Store) *journalWriter {
	token, _, err := store.Acquire(context.Background(), persistence.Claim{Owner: "scribe"})
	succeeds(b, err)
	sealer := must[*seal.Sealer](b)(seal.New(make([]byte, seal.KeyBytes)))
	s := &journalWriter{b: b, store: store, token: token, sealer: sealer, state: state.New(),
		data: event.BeginBatch(nil)}
	for i, code := range []string{"BTC", "USD", "EUR"} {
		s.add(event.Record{Kind: event.KindCurrency,
			Currency: event.Currency{Number: uint16(i + 1), Code: code}})
	}
	for i, quote := range []string{"USD", "EUR"} {
		s.add(event.Record{Kind: event.KindPair,
			NewPair: event.Pair{Number: uint16(i + 1), Name: "BTC_" + quote, Base: 1,
				Quote: uint16(i + 2)}})
	}
	return s
}

func (s *journalWriter) add(r event.Record) {
	if r.TimeUs == 0 {
		r.TimeUs = int64(s.last + uint64(s.count))
	}
	succeeds(s.b, s.state.Apply(&r, &s.effects))
	if r.Kind == event.KindDeposit {
		rows.Append(&s.rows, s.state, &r, &s.effects)
		if rows.Count(&s.rows) == stepRows {
			defer s.project()
		}
	}
	s.data = r.Append(s.data)
	if s.count++; s.count == 100 {
		s.flush()
	}
}

func (s *journalWriter) flush() {
	if s.count == 0 {
		return
	}
	next := s.last + uint64(s.count)
	s.data = event.EndBatch(s.data, s.token.Epoch(), s.last, s.count)
	succeeds(s.b, s.store.Append(context.Background(), s.token, s.last, next, s.data))
	s.last, s.count, s.data = next, 0, event.BeginBatch(s.data)
}

// accounts opens n accounts with a key and three balances each.
func (s *journalWriter) accounts(n int) {
	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("account-%d", i)
		s.add(event.Record{Kind: event.KindAccount,
			Account: event.Account{ID: uint32(i), Name: name}})
		key := fmt.Sprintf("%032x", i) // as long as the operator's command makes
		k := event.Key{Number: uint32(i), Account: uint32(i), Key: key,
			Permissions: event.AllPermissions, SealedBy: s.sealer.ID()}
		k.Sealed = s.sealer.Seal([]byte(key+key), k.Bound())
		s.add(event.Record{Kind: event.KindKey, Key: k})
		for c := uint16(1); c <= 3; c++ {
			_, _, d := s.state.LastIDs()
			s.add(event.Record{Kind: event.KindDeposit,
				Deposit: event.Deposit{ID: d + 1, Account: uint32(i), Currency: c,
					Amount: 1e6 * coin, Reference: fmt.Sprint(name, c)}})
		}
	}
}

// order writes an order that rests, or takes the whole of the maker.
func (s *journalWriter) order(account int, side trading.Side, price money.Price,
	maker *event.Trade) uint64 {
	s.orders++
	o := event.Order{ID: s.orders, Account: uint32(account), Key: uint32(account), Nonce: s.orders,
		Side: side, Price: price, Amount: coin, Remaining: coin}
	if maker != nil {
		o.Remaining, o.Trades = 0, []event.Trade{*maker}
	}
	s.add(event.Record{Kind: event.KindOrder, Pair: 1, Order: o})
	return s.orders
}

// trading writes n records, in turns of four: an order that rests, one that takes it, another that
// rests, and its cancel.
func (s *journalWriter) trading(n, accounts int) {
	for i := 0; i < n; i += 4 {
		a, b := 1+i/4%accounts, 1+(i/4+1)%accounts
		maker := s.order(a, trading.Sell, 100e8, nil)
		s.trades++
		s.order(b, trading.Buy, 100e8,
			&event.Trade{ID: s.trades, Maker: maker, MakerAccount: uint32(a), Price: 100e8,
				Amount: coin})
		price := money.Price(200e8 + int64(i%1000)*1e6)
		open := s.order(a, trading.Sell, price, nil)
		s.orders++
		s.add(event.Record{Kind: event.KindCancel, Pair: 1,
			Cancel: event.Cancel{ID: s.orders, Order: open, Account: uint32(a), Key: uint32(a),
				Nonce: s.orders,
				Side:  trading.Sell, Price: price, Remaining: coin}})
	}
	s.flush()
}

// project gives the store the rows of the deposits so far.
func (s *journalWriter) project() {
	s.flush()
	err := s.store.Apply(context.Background(), s.token, s.saved, s.last, &s.rows)
	succeeds(s.b, err)
	s.rows, s.saved = persistence.Writes{}, s.last
}

// snapshot publishes an image of the state as it is, with the rows of the deposits in it.
func (s *journalWriter) snapshot() {
	s.project()
	succeeds(s.b, s.store.SaveSnapshot(context.Background(), s.token, s.last,
		bytes.NewReader(s.state.AppendTo(nil))))
}

// An engine accepts the store of a journalWriter as its own, with a snapshot and without. Without
// this test a check of the start could break the benchmarks, which run only on request.
func TestAnEngineStartsOnTheStoreOfAScribe(t *testing.T) {
	for name, end := range map[string]func(*journalWriter){
		"journal": (*journalWriter).flush, "snapshot": (*journalWriter).snapshot,
	} {
		t.Run(name, func(t *testing.T) {
			store := openPebble(t, t.TempDir())
			defer store.Close()
			s := newScribe(t, store)
			s.accounts(3)
			s.trading(100, 3)
			end(s)
			s.trading(100, 3)
			e := start(t, timedOptions(store))
			defer e.Abandon()
			if seq := e.committed.State().Seq(); seq < s.last {
				t.Errorf("the engine is at sequence %d, and the scribe wrote %d", seq, s.last)
			}
		})
	}
}

// BenchmarkRecovery starts an engine on an open store: reading, folding, checking, and starting the
// actors. The projections lack the whole journal, which is the worst case.
func BenchmarkRecovery(b *testing.B) {
	for name, fill := range map[string]func(*journalWriter){
		"journal=1000000": func(s *journalWriter) {
			s.accounts(100)
			s.trading(1_000_000, 100)
		},
		"snapshot=10000accounts,10000orders/journal=100000": func(s *journalWriter) {
			s.accounts(10_000)
			for i := range 10_000 {
				s.order(1+i, trading.Sell, money.Price(300e8+int64(i%500)*1e6), nil)
			}
			s.snapshot()
			s.trading(100_000, 10_000)
		},
	} {
		b.Run(name, func(b *testing.B) {
			store := openPebble(b, b.TempDir())
			defer store.Close()
			fill(newScribe(b, store))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				e := start(b, timedOptions(store))
				b.StopTimer()
				e.Abandon()
				b.StartTimer()
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/start")
		})
	}
}

// BenchmarkAccounts reports the live heap of an account with a key and three balances, in the whole
// engine: state, wallet actor, directory and registry.
func BenchmarkAccounts(b *testing.B) {
	const n = 100_000
	store := openPebble(b, b.TempDir())
	defer store.Close()
	s := newScribe(b, store)
	s.accounts(n)
	s.snapshot()
	s.state = nil
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range b.N {
		before := live()
		o := timedOptions(store)
		o.KeyMaterial = func(secret []byte) any { return sign.New(secret) } // as the gateway's
		e := start(b, o)
		b.ReportMetric(float64(live()-before)/n, "B/account")
		e.Abandon()
	}
	b.ReportMetric(0, "ns/op")
}
