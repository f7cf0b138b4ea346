package state

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

func TestAfterEachRecordTheInvariantsHoldAndTheBooksAreTheDecidersBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seq := uint64(len(founding()) + 9)
		depth := map[uint16]string{}
		updates := map[uint16]uint64{}
		drawHistory(t, 80, func(s *State, d *decider, r *event.Record, e *Effects) {
			if err := s.Check(); err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if seq++; s.Seq() != seq || s.TimeUs() != r.TimeUs {
				t.Fatalf("sequence %d at %d, want %d at %d", s.Seq(), s.TimeUs(), seq, r.TimeUs)
			}
			if order, trade, _ := s.LastIDs(); order != d.ids || trade != d.trades {
				t.Fatalf("last ids %d and %d, given were %d and %d", order, trade, d.ids, d.trades)
			}
			if what := d.world.differs(s); what != "" {
				t.Fatalf("after %+v: %s", r, what)
			}
			if ended := d.world.ended; (e.Withdrawal == nil) != (ended == nil) ||
				ended != nil && *e.Withdrawal != *ended {
				t.Fatalf("ended is %+v, want %+v", e.Withdrawal, ended)
			}
			if what := d.differs(s); what != "" {
				t.Fatalf("after %+v: %s", r, what)
			}
			checkClosed(t, s, d, r, e)
			for i, book := range d.books {
				p := s.pairs[i]
				now := displays(book)
				if r.Pair == p.Number && (now != depth[p.Number] || trades(r)) {
					updates[p.Number]++
				}
				if depth[p.Number] = now; p.Market.UpdateID != updates[p.Number] {
					t.Fatalf("after %+v: update id %d of %s, want %d", r, p.Market.UpdateID, p.Name,
						updates[p.Number])
				}
			}
		})
	})
}

// differs returns the first difference between the state's books and the decider's, "" if there is
// none.
func (d *decider) differs(s *State) string {
	for i, book := range d.books {
		p := s.pairs[i]
		has, open := slices.Collect(p.Book.Open(nil)), slices.Collect(book.Open(nil))
		if !slices.Equal(has, open) {
			return fmt.Sprintf("orders are %v, want %v", has, open)
		}
		got, want := slices.Collect(p.Stops.All(nil)), slices.Collect(d.stops[i].All(nil))
		if !slices.Equal(got, want) {
			return fmt.Sprintf("stops are %+v, want %+v", got, want)
		}
		if n := book.Len() + len(slices.DeleteFunc(want, func(s matching.Stop) bool {
			return s.Rests
		})); n != p.OpenOrders() {
			return fmt.Sprintf("%d open orders, want %d", p.OpenOrders(), n)
		}
	}
	says := 0
	for id, t := range d.told {
		x := s.Pair(t.pair).Instructed(id)
		if says++; x == nil || x.Pack() != t.Pack() {
			return fmt.Sprintf("order %d says %+v, want %+v", id, x, t.Instructed)
		}
	}
	for _, p := range s.pairs {
		says -= len(p.instructed)
	}
	if says != 0 {
		return fmt.Sprintf("%d orders more say something", -says)
	}
	return ""
}

// displays returns what a book displays, order by order.
func displays(b *matching.Book) (text string) {
	for _, side := range []trading.Side{trading.Buy, trading.Sell} {
		for o := range b.Orders(side) {
			text += fmt.Sprint(side, o.ID, o.Price, o.Remaining, ";")
		}
	}
	return text
}

// trades reports whether a record has trades.
func trades(r *event.Record) bool {
	switch r.Kind {
	case event.KindOrder, event.KindInstructed, event.KindTriggered, event.KindAmended:
		return len(r.Order.Trades) > 0
	}
	return false
}

// checkClosed compares the orders that a record has closed with those that it should have.
func checkClosed(t *rapid.T, s *State, d *decider, r *event.Record, e *Effects) {
	closed := closedBy(r)
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
		if c.ID != w.ID || c.Remaining != w.Remaining || c.Cancelled != w.Cancelled ||
			c.Pair != r.Pair || c.ClosedUs != r.TimeUs ||
			!w.ClientID.IsZero() && c.ClientID != w.ClientID {
			t.Fatalf("closed is %+v, want %+v", c, w)
		}
		says := trading.Packed("")
		if c.Instructed != nil {
			says = c.Instructed.Pack()
		}
		if says != d.ended[c.ID] {
			t.Fatalf("order %d closed and says %+v (%x), want %x", c.ID, c.Instructed,
				string(says), string(d.ended[c.ID]))
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

// closedBy returns the orders that a record closes.
func closedBy(r *event.Record) (closed []ClosedOrder) {
	ends := func(id uint64, remaining money.Amount, cancelled bool) {
		closed = append(closed, ClosedOrder{
			Order: trading.Order{ID: id, Remaining: remaining}, Cancelled: cancelled})
	}
	switch r.Kind {
	case event.KindOrder, event.KindInstructed, event.KindTriggered, event.KindAmended,
		event.KindStop:
		prevented := r.Instructions.Prevented
		for k := 0; ; k++ {
			for ; len(prevented) > 0 && int(prevented[0].Before) == k; prevented = prevented[1:] {
				ends(prevented[0].Order, prevented[0].Amount, true)
			}
			if k == len(r.Order.Trades) {
				break
			}
			if tr := r.Order.Trades[k]; tr.MakerRemaining == 0 {
				ends(tr.Maker, 0, false)
			}
		}
		if !r.Order.Rests() {
			ends(r.Order.ID, r.Order.Remaining, r.Order.RestCancelled)
			closed[len(closed)-1].ClientID = r.Order.ClientID
		}
	case event.KindCancel, event.KindSwept:
		ends(r.Cancel.Order, r.Cancel.Remaining, true)
	case event.KindExpired:
		for _, x := range r.Expired {
			ends(x.Order, x.Open, true)
		}
	}
	return closed
}

// reasoned returns what an order said with another reason of its end.
func reasoned(says trading.Packed, why trading.Reason) trading.Packed {
	x, _ := says.Open()
	x.Cancelled = why
	return x.Pack()
}

func TestADecodedImageContinuesAsTheStateItIsOf(t *testing.T) {
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
				t.Fatalf("they differ after record %d, %d records behind the image", cut+i+1, i+1)
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
		if what := d.world.differs(back); what != "" {
			t.Fatal(what)
		}
		if err := back.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// inText has all that effects say, and no addresses.
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

// A record that was changed on its way either does not fit, or is one that might have been.
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

// The properties above say something about a kind of record only if it is drawn.
func TestDrawnHistoriesHaveRecordsOfEveryKindAndEveryMoveOfAWithdrawal(t *testing.T) {
	seen := map[string]int{}
	for seed := range 20 {
		rapid.Custom(func(t *rapid.T) int {
			drawHistory(t, 80, func(s *State, d *decider, r *event.Record, e *Effects) {
				seen[r.Kind.String()]++
				if r.Kind == event.KindWithdrawalMoved {
					seen[fmt.Sprint("to ", r.WithdrawalMoved.To)]++
				}
				for i := range r.Order.Trades {
					if tr := &r.Order.Trades[i]; tr.TakerFee.Cmp(tr.MakerFee) != 0 {
						seen["two fees"]++
					}
				}
				if r.Kind == event.KindWithdrawal && r.Withdrawal.ID < s.LastWithdrawal() {
					seen["an id behind a higher one"]++
				}
				if len(s.Withdrawals()) > 2 && s.Mails() > 2 {
					seen["several pending"]++
				}
			})
			return 0
		}).Example(seed)
	}
	want := []string{"two fees", "several pending", "an id behind a higher one", "to 20", "to 30",
		"to 40", "to 50"}
	for k := event.KindKey; k <= event.KindInstructed; k++ {
		if k != 25 { // kept for another kind
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
					deposit.Deposit = event.Deposit{ID: s.deposits + 1, Account: a + 1,
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
