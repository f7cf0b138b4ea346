package state

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/money"
)

// A decider is the obvious deciding side: it has books of its own, looks at the state for what is
// available, and makes the records of a valid history one by one.
type decider struct {
	s      *State
	books  []*matching.Book
	pick   func(n int) int // 0 ... n-1
	timeUs int64
	ids    uint64
	trades uint64
	names  int
}

func newDecider(s *State, pick func(n int) int) *decider {
	return &decider{s: s, pick: pick, timeUs: 1000}
}

// founding are the records that every history begins with: three currencies, two pairs, three accounts.
func founding() []event.Record {
	return []event.Record{
		{Kind: event.KindCurrency, TimeUs: 1, Currency: event.Currency{Number: 1, Code: "BTC"}},
		{Kind: event.KindCurrency, TimeUs: 2, Currency: event.Currency{Number: 2, Code: "USD"}},
		{Kind: event.KindCurrency, TimeUs: 3, Currency: event.Currency{Number: 3, Code: "ETH"}},
		{Kind: event.KindPair, TimeUs: 4, NewPair: event.Pair{Number: 1, Name: "BTC_USD", Base: 1, Quote: 2}},
		{Kind: event.KindPair, TimeUs: 5, NewPair: event.Pair{Number: 2, Name: "ETH_USD", Base: 3, Quote: 2}},
		{Kind: event.KindAccount, TimeUs: 6, Account: event.Account{ID: 1, Name: "alice", Email: "alice@example.org"}},
		{Kind: event.KindAccount, TimeUs: 7, Account: event.Account{ID: 2, Name: "bob"}},
		{Kind: event.KindAccount, TimeUs: 8, Account: event.Account{ID: 3, Name: "house"}},
		{Kind: event.KindKey, TimeUs: 9, Key: event.Key{Number: 1, Account: 1, Key: "alice-1", Permissions: event.AllPermissions, Allow: []string{"10.0.0.0/8"},
			SealedBy: 5, Sealed: []byte("sealed")}},
	}
}

func (d *decider) next() event.Record {
	d.timeUs += int64(d.pick(3))
	for len(d.books) < len(d.s.pairs) {
		d.books = append(d.books, matching.New())
	}
	r := event.Record{TimeUs: d.timeUs}
	switch d.pick(20) {
	case 0, 1:
		r.Kind = event.KindDeposit
		d.names++
		r.Deposit = event.Deposit{ID: d.s.lastDeposit + 1, Account: d.account(), Currency: uint16(1 + d.pick(len(d.s.currencies))),
			Amount: money.Amount(1 + d.pick(100)*100_000_000), Reference: fmt.Sprint("reference ", d.names)}
	case 2:
		r.Kind = event.KindKey
		n := uint32(len(d.s.keys) + 1)
		r.Key = event.Key{Number: n, Account: d.account(), Key: fmt.Sprint("key-", n), Permissions: event.PermissionTrade}
	case 3:
		k := d.s.keys[d.pick(len(d.s.keys))]
		if k.Revoked {
			return d.refusal(r)
		}
		r.Kind, r.KeyRevoked = event.KindKeyRevoked, event.KeyRevoked{Number: k.Number}
	case 4:
		return d.refusal(r)
	case 5, 6, 7, 8:
		return d.cancel(r)
	default:
		return d.order(r)
	}
	return r
}

func (d *decider) account() uint32 { return uint32(1 + d.pick(len(d.s.accounts))) }

// key is one of the account's keys, 0 if it has none, and a nonce that need not be above its last.
func (d *decider) key(account uint32) (key uint32, nonce uint64) {
	if keys := d.s.Account(account).Keys; len(keys) > 0 {
		return keys[d.pick(len(keys))], uint64(d.pick(1000))
	}
	return 0, 0
}

func (d *decider) refusal(r event.Record) event.Record {
	r.Kind, r.Refusal = event.KindRefusal, event.Refusal{Account: d.account(), Reason: event.RefusedFunds}
	r.Refusal.Key, r.Refusal.Nonce = d.key(r.Refusal.Account)
	return r
}

func (d *decider) cancel(r event.Record) event.Record {
	a := d.s.Account(d.account())
	open := slices.Collect(a.Open.Newest())
	if len(open) == 0 {
		return d.refusal(r)
	}
	which := open[d.pick(len(open))]
	o, _ := d.books[which.Pair-1].Cancel(which.ID)
	d.ids++
	r.Kind, r.Pair = event.KindCancel, which.Pair
	r.Cancel = event.Cancel{ID: d.ids, Order: o.ID, Account: a.ID, Side: o.Side, Price: o.Price, Remaining: o.Remaining}
	r.Cancel.Key, r.Cancel.Nonce = d.key(a.ID)
	return r
}

func (d *decider) order(r event.Record) event.Record {
	a := d.s.Account(d.account())
	p := d.s.pairs[d.pick(len(d.s.pairs))]
	side := matching.Side(1 + d.pick(2))
	price, amount := money.Price((1+int64(d.pick(8)))*50_000_000), money.Amount((1+int64(d.pick(20)))*12_345_678)
	currency, need := ledger.Need(side, price, amount, p.Base, p.Quote)
	if a.Wallet.Get(currency).Available().Cmp(need) < 0 {
		return d.refusal(r)
	}
	d.ids++
	book := d.books[p.Number-1]
	fills, rest, cut := book.Match(side, price, amount, 1+d.pick(4), nil)
	o := event.Order{ID: d.ids, Account: a.ID, Side: side, Cut: cut, Price: price, Amount: amount, Remaining: rest}
	o.Key, o.Nonce = d.key(a.ID)
	if d.pick(2) == 0 {
		o.ClientID, _ = event.NewClientID(fmt.Sprint("order-", d.ids))
	}
	if len(fills) > 0 && d.pick(2) == 0 {
		o.FeeAccount = 3
	}
	for _, f := range fills {
		d.trades++
		t := event.Trade{ID: d.trades, Maker: f.Maker, MakerAccount: f.MakerAccount, Price: f.Price, Amount: f.Amount, MakerRemaining: f.MakerRemaining}
		if o.FeeAccount != 0 {
			t.TakerFee, t.MakerFee = money.BalanceFromBits(0, uint64(d.pick(1000))), money.BalanceFromBits(0, uint64(d.pick(1000)))
		}
		o.Trades = append(o.Trades, t)
	}
	if o.Rests() {
		book.Add(matching.Order{ID: o.ID, Account: a.ID, Side: side, Price: price, Amount: amount, Remaining: rest, TimeUs: r.TimeUs})
	}
	r.Kind, r.Pair, r.Order = event.KindOrder, p.Number, o
	return r
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// apply takes records through their encoding, as the journal does.
func apply(t tester, s *State, records ...event.Record) (e Effects) {
	t.Helper()
	for i := range records {
		var r event.Record
		if _, err := r.Decode(records[i].Append(nil)); err != nil {
			t.Fatalf("%v", err)
		}
		if err := s.Apply(&r, &e); err != nil {
			t.Fatalf("%+v: %v", records[i], err)
		}
	}
	return e
}

// drawHistory is a valid history of n records behind the founding ones.
func drawHistory(t *rapid.T, n int, each func(s *State, d *decider, r *event.Record, e *Effects)) []event.Record {
	s := New()
	records := founding()
	apply(t, s, records...)
	d := newDecider(s, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
	for a := range uint32(3) { // something to begin with
		for c := range uint16(3) {
			d.names++
			r := event.Record{Kind: event.KindDeposit, TimeUs: 20, Deposit: event.Deposit{ID: s.lastDeposit + 1, Account: a + 1, Currency: c + 1, Amount: 20 * 100_000_000, Reference: fmt.Sprint("reference ", d.names)}}
			apply(t, s, r)
			records = append(records, r)
		}
	}
	for range n {
		r := d.next()
		e := apply(t, s, r)
		records = append(records, r)
		if each != nil {
			each(s, d, &r, &e)
		}
	}
	return records
}

func TestAfterEachRecordTheInvariantsHoldAndTheBooksAreTheDecidersBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seq := uint64(len(founding()) + 9)
		updates := map[uint16]uint64{}
		drawHistory(t, 60, func(s *State, d *decider, r *event.Record, e *Effects) {
			if err := s.Check(); err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if seq++; s.Seq() != seq || s.TimeUs() != r.TimeUs {
				t.Fatalf("sequence %d at %d, want %d at %d", s.Seq(), s.TimeUs(), seq, r.TimeUs)
			}
			if order, trade, _ := s.LastIDs(); order != d.ids || trade != d.trades {
				t.Fatalf("last ids %d and %d, given were %d and %d", order, trade, d.ids, d.trades)
			}
			for i, book := range d.books {
				for _, side := range []matching.Side{matching.Buy, matching.Sell} {
					if got, want := s.pairs[i].Book.AppendOrders(nil, side, -1), book.AppendOrders(nil, side, -1); !slices.Equal(got, want) {
						t.Fatalf("%v orders are %+v, want %+v", side, got, want)
					}
				}
			}
			var closed []ClosedOrder
			switch r.Kind {
			case event.KindOrder:
				updates[r.Pair]++
				for _, tr := range r.Order.Trades {
					if tr.MakerRemaining == 0 {
						closed = append(closed, ClosedOrder{Order: matching.Order{ID: tr.Maker}})
					}
				}
				if !r.Order.Rests() {
					closed = append(closed, ClosedOrder{Order: matching.Order{ID: r.Order.ID, Remaining: r.Order.Remaining}, Cancelled: r.Order.Cut, ClientID: r.Order.ClientID})
				}
			case event.KindCancel:
				updates[r.Pair]++
				closed = append(closed, ClosedOrder{Order: matching.Order{ID: r.Cancel.Order, Remaining: r.Cancel.Remaining}, Cancelled: true})
			}
			if len(e.Closed) != len(closed) {
				t.Fatalf("closed are %+v, want %+v", e.Closed, closed)
			}
			for i, c := range e.Closed {
				w := closed[i]
				if c.ID != w.ID || c.Remaining != w.Remaining || c.Cancelled != w.Cancelled || c.Pair != r.Pair || c.ClosedUs != r.TimeUs || !w.ClientID.IsZero() && c.ClientID != w.ClientID {
					t.Fatalf("closed is %+v, want %+v", c, w)
				}
				if s.accounts[c.Account-1].Open.Pair(c.ID) != 0 {
					t.Fatalf("order %d closed and is open", c.ID)
				}
				if id := s.accounts[c.Account-1].ClientIDs.Of(c.ID); !id.IsZero() {
					t.Fatalf("order %d closed and holds %v", c.ID, id)
				}
			}
			for _, p := range s.Pairs() {
				if p.Market.UpdateID != updates[p.Number] {
					t.Fatalf("update id %d of %s, want %d", p.Market.UpdateID, p.Name, updates[p.Number])
				}
			}
		})
	})
}

func TestADecodedImageContinuesAsTheStateItIsOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawHistory(t, 60, nil)
		cut := rapid.IntRange(0, len(records)).Draw(t, "cut")
		s := New()
		apply(t, s, records[:cut]...)
		image := s.AppendTo([]byte("x"))[1:]
		back, err := Decode(image)
		if err != nil {
			t.Fatal(err)
		}
		if back.Hash() != s.Hash() || back.Seq() != s.Seq() || back.TimeUs() != s.TimeUs() {
			t.Fatal("a decoded image is another state")
		}
		for i := range records[cut:] {
			a, b := apply(t, s, records[cut+i]), apply(t, back, records[cut+i])
			if back.Hash() != s.Hash() || fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("they differ after record %d, %d records behind the image", cut+i+1, i+1)
			}
		}
		for _, a := range s.accounts {
			b := back.AccountByName(a.Name)
			if !slices.Equal(slices.Collect(a.Open.Newest()), slices.Collect(b.Open.Newest())) || !slices.Equal(a.Keys, b.Keys) || a.ID != b.ID {
				t.Fatalf("account %s is %+v and %+v", a.Name, a, b)
			}
			for o := range a.Open.Newest() {
				x, _, okX := s.OpenOrder(a, o.ID)
				y, pair, okY := back.OpenOrder(b, o.ID)
				if x != y || !okX || !okY || pair.Number != o.Pair {
					t.Fatalf("order %d is %+v and %+v", o.ID, x, y)
				}
			}
		}
		for _, k := range s.keys {
			if b := back.KeyByName(k.Key.Key); b == nil || b.Nonce != k.Nonce || b.Revoked != k.Revoked || b.Number != k.Number {
				t.Fatalf("key %+v is %+v", k, b)
			}
		}
		if err := back.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEqualHistoriesHaveEqualImagesAndEveryRecordChangesThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawHistory(t, 30, nil)
		a, b := New(), New()
		last := a.Hash()
		for _, r := range records {
			apply(t, a, r)
			if a.Hash() == last {
				t.Fatalf("%+v leaves no trace", r)
			}
			last = a.Hash()
			apply(t, b, r)
		}
		if string(a.AppendTo(nil)) != string(b.AppendTo(nil)) {
			t.Fatal("two images of one history differ")
		}
	})
}

func BenchmarkApply(b *testing.B) {
	for _, shape := range []string{"rest and cancel", "rest and fill", "sweep of 100"} {
		b.Run(shape, func(b *testing.B) {
			s := New()
			apply(b, s, founding()...)
			deposit := event.Record{Kind: event.KindDeposit, TimeUs: 20}
			for a := range uint32(2) {
				for c := range uint16(2) {
					deposit.Deposit = event.Deposit{ID: s.lastDeposit + 1, Account: a + 1, Currency: c + 1, Amount: money.MaxAmount, Reference: fmt.Sprint(a, c)}
					apply(b, s, deposit)
				}
			}
			var e Effects
			var id, trade, applied uint64
			do := func(r *event.Record) {
				if err := s.Apply(r, &e); err != nil {
					b.Fatal(err)
				}
				applied++
			}
			sell := event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 30, Order: event.Order{Account: 1, Key: 1, Side: matching.Sell, Price: 100_000_000, Amount: 1000, Remaining: 1000}}
			cancel := event.Record{Kind: event.KindCancel, Pair: 1, TimeUs: 30, Cancel: event.Cancel{Account: 1, Key: 1, Side: matching.Sell, Price: 100_000_000, Remaining: 1000}}
			buy := event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 30, Order: event.Order{Account: 2, Side: matching.Buy, Price: 100_000_000}}
			rest := func() {
				id++
				sell.Order.ID, sell.Order.Nonce = id, id
				do(&sell)
			}
			take := func(n int) {
				buy.Order.Trades = buy.Order.Trades[:0]
				for i := range n {
					trade++
					buy.Order.Trades = append(buy.Order.Trades, event.Trade{ID: trade, Maker: id - uint64(n-1-i), MakerAccount: 1, Price: 100_000_000, Amount: 1000})
				}
				id++
				buy.Order.ID, buy.Order.Amount = id, money.Amount(1000*n)
				do(&buy)
			}
			b.ReportAllocs()
			for b.Loop() {
				switch shape {
				case "rest and cancel":
					rest()
					cancel.Cancel.Order = id
					id++
					cancel.Cancel.ID = id
					do(&cancel)
				case "rest and fill":
					rest()
					take(1)
				default:
					for range 100 {
						rest()
					}
					take(100)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(applied), "ns/record")
		})
	}
}
