package state

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

func TestAfterEachRecordTheInvariantsHoldAndTheBooksAreTheDecidersBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seq := uint64(len(founding()) + 9)
		drawHistory(t, 80, func(s *State, d *decider, r *event.Record, e *Effects) {
			if err := s.Check(); err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if seq++; s.Seq() != seq || s.TimeUs() != r.TimeUs {
				t.Fatalf("sequence %d at %d, want %d at %d", s.Seq(), s.TimeUs(), seq, r.TimeUs)
			}
			if what := differs(s, d.x); what != "" {
				t.Fatalf("after %+v: %s", r, what)
			}
			for _, w := range d.x.Withdrawals {
				if ended := w.Moved == seq && !w.Pending(); ended && (e.Withdrawal == nil ||
					*e.Withdrawal != withdrawalOf(w)) {
					t.Fatalf("ended is %+v, want %+v", e.Withdrawal, w)
				}
			}
			if w := e.Withdrawal; w != nil && d.x.Withdrawals[w.ID].Moved != seq {
				t.Fatalf("ended is %+v by %+v", w, r)
			}
			checkClosed(t, s, d, r, e)
		})
	})
}

// checkClosed compares the orders that a record closed with the expected ones.
func checkClosed(t *rapid.T, s *State, d *decider, r *event.Record, e *Effects) {
	closed := slices.DeleteFunc(slices.Clone(d.x.ClosedOrders),
		func(c spec.Closed) bool { return c.Seq != s.Seq() })
	if len(e.Closed) != len(closed) {
		t.Fatalf("%+v: closed are %+v, want %+v", r, e.Closed, closed)
	}
	settled := map[uint64]uint32{} // accounts by the order that was open before
	for i := range e.Settlements {
		for _, id := range e.Settlements[i].Closed {
			settled[id] = e.Settlements[i].Account
		}
	}
	isNew := r.Kind == event.KindOrder || r.Kind == event.KindInstructed ||
		r.Kind == event.KindStop
	for i, c := range e.Closed {
		w := closed[i]
		if account := settled[c.ID]; (account != c.Account) != (isNew && c.ID == r.Order.ID) {
			t.Fatalf("order %d closed, and settled is that of account %d", c.ID, account)
		}
		delete(settled, c.ID)
		if c.Order != orderOf(&w.Order) || c.Cancelled != (w.Status == trading.StatusCancelled) ||
			c.Pair != w.Pair || c.ClosedUs != w.ClosedUs || c.ClientID != w.ClientID {
			t.Fatalf("closed is %+v, want %+v", c, w)
		}
		says := trading.Packed("")
		if c.Instructed != nil {
			says = c.Instructed.Pack()
		}
		if want := w.Packed(); says != want {
			t.Fatalf("order %d closed and says %+v (%x), want %x", c.ID, c.Instructed,
				string(says), string(want))
		}
		if s.accounts[c.Account-1].Open.Pair(c.ID) != 0 {
			t.Fatalf("order %d closed and is open", c.ID)
		}
		if id := s.accounts[c.Account-1].ClientIDs.Of(c.ID); !id.IsZero() {
			t.Fatalf("order %d closed and holds %v", c.ID, id)
		}
	}
	if len(settled) > 0 {
		t.Fatalf("%+v closes also %v", r, settled)
	}
}

func TestADecodedImageEvolvesLikeItsState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records, d := drawDecider(t, 60, nil)
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
			if back.Hash() != s.Hash() || inText(a) != inText(b) {
				t.Fatalf("they differ after record %d, %d records after the image", cut+i+1, i+1)
			}
		}
		for _, a := range s.accounts {
			b := back.AccountByName(a.Name)
			if !slices.Equal(slices.Collect(a.Open.Newest()), slices.Collect(b.Open.Newest())) ||
				!slices.Equal(a.Keys, b.Keys) || a.ID != b.ID {
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
			if b := back.KeyByName(k.Key.Key); b == nil || b.Nonce != k.Nonce ||
				b.Revoked != k.Revoked || b.Number != k.Number {
				t.Fatalf("key %+v is %+v", k, b)
			}
		}
		if what := differs(back, d.x); what != "" {
			t.Fatal(what)
		}
		if err := back.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// inText has all effects as text, without addresses.
func inText(e Effects) string {
	var w Withdrawal
	if e.Withdrawal != nil {
		w, e.Withdrawal = *e.Withdrawal, nil
	}
	text := fmt.Sprintf("%+v %+v %+v", e.Settlements, e.Left, w)
	for _, c := range e.Closed {
		if c.Instructed != nil {
			text += fmt.Sprintf("%x", string(c.Instructed.Pack()))
		}
		c.Instructed = nil
		text += fmt.Sprintf("%+v", c)
	}
	return text
}

func TestEqualHistoriesHaveEqualImagesAndEveryRecordChangesThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records, d := drawDecider(t, 30, nil)
		a, b := New(), New()
		last := a.Hash()
		x := specification(d.x.MaxFills)
		x.FeeAccount = d.x.FeeAccount
		for _, r := range records {
			if err := x.Apply(&r); err != nil {
				t.Fatalf("the specification refuses its own decision: %v", err)
			}
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

// A corrupted record either does not fit, or is a possible one.
func TestARecordWithAChangedByteIsRefusedOrKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, d := drawDecider(t, 40, nil)
		image := d.s.AppendTo(nil)
		next := d.next()
		b := next.Append(nil)
		for range 10 {
			changed := slices.Clone(b)
			changed[rapid.IntRange(0, len(b)-1).Draw(t, "place")] = rapid.Byte().Draw(t, "byte")
			var r event.Record
			if _, err := r.Decode(changed); err != nil {
				continue
			}
			s, err := Decode(image)
			if err != nil {
				t.Fatal(err)
			}
			if s.Apply(&r, new(Effects)) != nil {
				continue
			}
			if err := s.Check(); err != nil {
				t.Fatalf("%+v is accepted: %v", r, err)
			}
			if back, err := Decode(s.AppendTo(nil)); err != nil || back.Hash() != s.Hash() {
				t.Fatalf("%+v makes a state whose image is not read: %v", r, err)
			}
		}
	})
}

// The properties above cover a kind of record only if it is drawn.
func TestDrawnHistoriesHaveRecordsOfEveryKindAndEveryMoveOfAWithdrawal(t *testing.T) {
	seen := map[string]int{}
	for seed := range 40 {
		rapid.Custom(func(t *rapid.T) int {
			drawHistory(t, 80, func(s *State, d *decider, r *event.Record, e *Effects) {
				seen[r.Kind.String()]++
				if r.Kind == event.KindWithdrawalStatus {
					seen[fmt.Sprint("to ", r.WithdrawalStatus.To)]++
				}
				for i := range r.Order.Trades {
					if tr := &r.Order.Trades[i]; tr.TakerFee.Cmp(tr.MakerFee) != 0 {
						seen["two fees"]++
					}
				}
				if r.Kind == event.KindWithdrawal && r.Withdrawal.ID < s.LastWithdrawal() {
					seen["an id after a higher one"]++
				}
				if len(s.Withdrawals()) > 2 && s.Mails() > 2 {
					seen["several pending"]++
				}
			})
			return 0
		}).Example(seed)
	}
	want := []string{"two fees", "several pending", "an id after a higher one", "to 20", "to 30",
		"to 40", "to 50"}
	for k := event.KindKeyRevoked; k <= event.KindInstructed; k++ {
		if k != 10 && k != 15 { // of earlier forms
			want = append(want, k.String())
		}
	}
	for _, what := range want {
		if seen[what] == 0 {
			t.Errorf("%s: none in %v", what, seen)
		}
	}
	t.Log(seen)
}

func BenchmarkApply(b *testing.B) {
	for _, shape := range []string{"rest and cancel", "rest and fill", "sweep of 100"} {
		b.Run(shape, func(b *testing.B) {
			s := New()
			apply(b, s, founding()...)
			deposit := event.Record{Kind: event.KindDeposit, TimeUs: 20}
			for a := range uint32(2) {
				for c := range uint16(2) {
					deposit.Deposit = event.Deposit{ID: s.depositCount + 1, Account: a + 1,
						Currency: c + 1, Amount: money.MaxAmount, Reference: fmt.Sprint(a, c)}
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
			sell := event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 30,
				Order: event.Order{Account: 1, Key: 1, Side: trading.Sell, Price: 100_000_000,
					Amount: 1000, Remaining: 1000}}
			cancel := event.Record{Kind: event.KindCancel, Pair: 1, TimeUs: 30,
				Cancel: event.Cancel{Account: 1, Key: 1, Side: trading.Sell, Price: 100_000_000,
					Remaining: 1000}}
			buy := event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 30,
				Order: event.Order{Account: 2, Side: trading.Buy, Price: 100_000_000}}
			rest := func() {
				id++
				sell.Order.ID, sell.Order.Nonce = id, id
				do(&sell)
			}
			take := func(n int) {
				buy.Order.Trades = buy.Order.Trades[:0]
				for i := range n {
					trade++
					buy.Order.Trades = append(buy.Order.Trades,
						event.Trade{ID: trade, Maker: id - uint64(n-1-i), MakerAccount: 1,
							Price: 100_000_000, Amount: 1000})
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
