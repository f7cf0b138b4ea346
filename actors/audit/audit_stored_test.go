package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"exchange/actors/rows"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/pebble"
)

const coin = 1e8

// someRecords returns the records of two accounts that trade twice, and of a cancelled order.
func someRecords(sealer *seal.Sealer) (list []event.Record) {
	deposits, orders, trades := uint64(0), uint64(0), uint64(0)
	account := func(id uint32, name string) {
		k := event.Key{Number: id, Account: id, Key: "key-of-" + name,
			Permissions: event.AllPermissions, SealedBy: sealer.ID()}
		k.Sealed = sealer.Seal([]byte("secret"), k.Bound())
		list = append(list,
			event.Record{Kind: event.KindAccount, Account: event.Account{ID: id, Name: name}},
			event.Record{Kind: event.KindKey, Key: k})
	}
	deposit := func(account uint32, currency uint16) {
		deposits++
		list = append(list, event.Record{Kind: event.KindDeposit, Deposit: event.Deposit{
			ID: deposits, Account: account, Currency: currency, Amount: 1000 * coin,
			Reference: fmt.Sprint("reference ", deposits)}})
	}
	order := func(account uint32, side trading.Side, maker uint64) {
		orders++
		o := event.Order{ID: orders, Account: account, Key: account, Nonce: orders, Side: side,
			Price: 100e8, Amount: coin, Remaining: coin}
		if maker != 0 {
			trades++
			o.Remaining, o.Trades = 0, []event.Trade{{ID: trades, Maker: maker, MakerAccount: 1,
				Price: 100e8, Amount: coin}}
		}
		list = append(list, event.Record{Kind: event.KindOrder, Pair: 1, Order: o})
	}
	for i, code := range []string{"BTC", "USD"} {
		list = append(list, event.Record{Kind: event.KindCurrency,
			Currency: event.Currency{Number: uint16(i + 1), Code: code}})
	}
	list = append(list, event.Record{Kind: event.KindPair,
		NewPair: event.Pair{Number: 1, Name: "BTC_USD", Base: 1, Quote: 2}})
	account(1, "ann")
	account(2, "ben")
	deposit(1, 1)
	deposit(2, 2)
	for range 2 {
		order(1, trading.Sell, 0)
		order(2, trading.Buy, orders)
	}
	deposit(1, 1)
	order(1, trading.Sell, 0)
	list = append(list, event.Record{Kind: event.KindCancel, Pair: 1, Cancel: event.Cancel{
		ID: orders + 1, Order: orders, Account: 1, Key: 1, Nonce: orders + 1,
		Side: trading.Sell, Price: 100e8, Remaining: coin}})
	return list
}

// inBatch is the number of records in a batch of the made stores.
const inBatch = 4

// An aftermath is a store as an exchange leaves it, made without one.
type aftermath struct {
	records   []event.Record
	watermark uint64
	snapshots []uint64                            // sequences, of batches' ends
	image     func(seq uint64) []event.Record     // source of snapshots; nil: records
	rows      func(w *persistence.Writes)         // changes the projections; optional
	batch     func(prev uint64, r []event.Record) // changes a batch; optional
}

// fold applies records to an empty state, and adds their rows to w.
func fold(t *testing.T, records []event.Record, w *persistence.Writes) *state.State {
	t.Helper()
	s := state.New()
	var effects state.Effects
	for i := range records {
		r := records[i]
		r.TimeUs = int64(i + 1)
		if err := s.Apply(&r, &effects); err != nil {
			t.Fatal(err)
		}
		rows.Append(w, s, &r, &effects)
	}
	return s
}

// derived returns the wallets, nonces and candles of a state.
func derived(s *state.State, w *persistence.Writes) {
	for _, a := range s.Accounts() {
		row := persistence.Wallet{Account: a.ID, Name: a.Name, Seq: s.Seq()}
		for _, h := range a.Wallet.Holdings() {
			row.Holdings = append(row.Holdings, persistence.Holding{
				Currency: s.Currencies()[h.Currency-1].Code, Balance: h.Balance,
				Reserve: h.Reserve})
		}
		w.Wallets = append(w.Wallets, row)
	}
	for _, k := range s.Keys() {
		w.Nonces = append(w.Nonces, persistence.Nonce{Key: k.Key.Key, Nonce: k.Nonce})
	}
	for _, p := range s.Pairs() {
		for f := range market.Frame(market.FrameCount) {
			if c, ok := p.Market.Candle(f); ok {
				w.Candles = append(w.Candles, rows.Candle(p.Number, f, &c))
			}
		}
	}
}

// write makes the store.
func (m *aftermath) write(t *testing.T) persistence.Store {
	t.Helper()
	store, err := pebble.Open(t.TempDir(), pebble.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	ctx := t.Context()
	token, _, err := store.Acquire(ctx, persistence.Claim{Owner: "a test"})
	for prev := 0; err == nil && prev < len(m.records); prev += inBatch {
		list := append([]event.Record(nil), m.records[prev:min(prev+inBatch, len(m.records))]...)
		if m.batch != nil {
			m.batch(uint64(prev), list)
		}
		data := event.BeginBatch(nil)
		for i := range list {
			list[i].TimeUs = int64(prev + i + 1)
			data = list[i].Append(data)
		}
		data = event.EndBatch(data, token.Epoch(), uint64(prev), uint32(len(list)))
		err = store.Append(ctx, token, uint64(prev), uint64(prev+len(list)), data)
	}
	var w persistence.Writes
	derived(fold(t, m.records[:m.watermark], &w), &w)
	if m.rows != nil {
		m.rows(&w)
	}
	if err == nil {
		err = store.Apply(ctx, token, 0, m.watermark, &w)
	}
	for _, seq := range m.snapshots {
		list := m.records[:seq]
		if m.image != nil {
			list = m.image(seq)
		}
		image := fold(t, list, new(persistence.Writes)).AppendTo(nil)
		if err == nil {
			err = store.SaveSnapshot(ctx, token, seq, bytes.NewReader(image))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// finds audits the store of an aftermath, and expects a text among the differences; "": there are
// none.
func (m aftermath) finds(t *testing.T, sealer *seal.Sealer, name, want string) {
	t.Helper()
	target, err := stored(t.Context(), m.write(t), persistence.Retention{}, sealer)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	report, err := Run(t.Context(), target, nil, func(uint64, uint64) {})
	text := fmt.Sprint(err)
	if err == nil {
		text = strings.Join(report.Differences, "\n")
	}
	if want == "" && (text != "" || report.Sequence != m.watermark) ||
		!strings.Contains(text, want) {
		t.Errorf("%s: at %d, %q is found, not %q", name, m.watermark, text, want)
	}
}

// TestAnAuditNeedsNoExchange compares stores that no engine has opened: the audited state is folded
// from the store alone.
func TestAnAuditNeedsNoExchange(t *testing.T) {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	records := someRecords(sealer)
	all := uint64(len(records))
	deposited := func(id uint64, list []event.Record) {
		for i := range list {
			if d := &list[i].Deposit; list[i].Kind == event.KindDeposit && d.ID == id {
				d.Amount++
			}
		}
	}
	f := func(name, want string, m aftermath) {
		t.Helper()
		m.records = records
		if m.watermark == 0 {
			m.watermark = all
		}
		m.finds(t, sealer, name, want)
	}
	for watermark := uint64(1); watermark <= all; watermark++ { // also in the middle of batches
		f("no difference", "", aftermath{watermark: watermark})
	}
	f("no difference after snapshots", "", aftermath{snapshots: []uint64{8, 12}})
	f("a trade", "trades: 1 is stored as ", aftermath{
		rows: func(w *persistence.Writes) { w.Trades[0].Amount++ }})
	f("the newest order", "closed orders of account ann: ", aftermath{
		rows: func(w *persistence.Writes) { w.Orders = w.Orders[:len(w.Orders)-1] }})
	f("a deposit", "2 is missing", aftermath{snapshots: []uint64{8, 12},
		rows: func(w *persistence.Writes) {
			w.Deposits = append(w.Deposits[:1:1], w.Deposits[2:]...)
		}})
	f("a candle", "candles of pair BTC_USD, timeframe 1: ", aftermath{
		rows: func(w *persistence.Writes) { w.Candles[0].High++ }})
	f("a balance", "account ben, USD: projected are 800.00000001 with 0 reserved, committed 800",
		aftermath{rows: func(w *persistence.Writes) {
			h := &w.Wallets[1].Holdings[1]
			h.Balance = h.Balance.Add(money.Amount(1).Balance())
		}})
	f("a nonce", "key key-of-ben of account ben: projected is nonce 1, committed 4",
		aftermath{rows: func(w *persistence.Writes) { w.Nonces[1].Nonce = 1 }})
	f("a snapshot", "account ann, BTC: committed are 1998.00000001 with ", aftermath{
		snapshots: []uint64{4, 12},
		image: func(seq uint64) []event.Record {
			list := append([]event.Record(nil), records[:seq]...)
			deposited(1, list)
			return list
		}})
	f("a key's record", "key key-of-ann of account ann: ", aftermath{
		batch: func(prev uint64, list []event.Record) {
			for i := range list {
				if list[i].Kind == event.KindKey && list[i].Key.Account == 1 {
					list[i].Key.Permissions ^= 1
				}
			}
		}})
}

// A store whose journal ends below its projections has lost records: there is no state to audit.
func TestAJournalShorterThanItsProjectionsIsDamaged(t *testing.T) {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	store := (&aftermath{records: someRecords(sealer), watermark: 4}).write(t)
	_, err = stored(t.Context(), ahead{store}, persistence.Retention{}, sealer)
	if !errors.Is(err, persistence.ErrCorrupt) {
		t.Errorf("a watermark above the journal's end: %v", err)
	}
}

// An ahead is a store whose projections claim to be far ahead.
type ahead struct{ persistence.Store }

func (ahead) Watermark(context.Context) (uint64, error) { return 1000, nil }
