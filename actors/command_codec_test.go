package actors

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// forwardCatalogue has two pairs and three currencies.
func forwardCatalogue(t testing.TB) *directory.Catalogue {
	t.Helper()
	e := start(t, testOptions(memory.Open(memory.NewDisk(), persistence.Retention{})))
	stop(t, e)
	return e.Catalogue
}

func drawClient(t *rapid.T) (id event.ClientID) {
	if s := rapid.StringMatching(`[A-Za-z0-9_-]{0,36}`).Draw(t, "client order id"); s != "" {
		id, _ = event.NewClientID(s)
	}
	return id
}

func drawPrice(t *rapid.T, least money.Price) money.Price {
	const cent = 1_000_000
	return cent * money.Price(rapid.Int64Range(int64(least), int64(money.MaxPrice)/cent).Draw(t,
		"price"))
}

func drawAmount(t *rapid.T, least money.Amount) money.Amount {
	return money.Amount(rapid.Int64Range(int64(least), int64(money.MaxAmount)).Draw(t, "amount"))
}

// drawForwarded draws a command of a client.
func drawForwarded(t *rapid.T, of *directory.Catalogue, key *directory.Key) *Command {
	number := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
	flag := func() bool { return rapid.Bool().Draw(t, "flag") }
	pair := of.Pairs()[rapid.IntRange(0, len(of.Pairs())-1).Draw(t, "pair")]
	side := trading.Side(rapid.Uint8Range(1, 2).Draw(t, "side"))
	us := func() int64 { return rapid.Int64Min(0).Draw(t, "time") }
	filter := CancelFilter{Prefix: drawClient(t)}
	if flag() {
		filter.Pair, filter.Side = pair, side
	}
	nonce := number("nonce")
	mode := trading.SelfTrade(rapid.Uint8Range(0, 3).Draw(t, "self-trade"))
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return NewOrder(key, nonce, &OrderRequest{Pair: pair, Side: side, Price: drawPrice(t, 1),
			Amount: drawAmount(t, 1), ClientID: drawClient(t)})
	case 1:
		s := &SpecialRequest{SelfTradeGiven: flag()}
		s.Derived = flag()
		s.Market, s.IOC, s.FOK, s.PostOnly = flag(), flag(), flag(), flag()
		s.ExpireUs, s.Asked, s.Display, s.Quote = us(), drawPrice(t, 0), drawAmount(t, 0),
			drawAmount(t, 0)
		s.SelfTrade = mode
		s.OCO = trading.OCO{Trigger: drawPrice(t, 0), Price: drawPrice(t, 0)}
		s.Trigger = trading.Trigger{Price: drawPrice(t, 0),
			When: trading.Direction(rapid.Uint8Range(0, 2).Draw(t, "when"))}
		return NewOrder(key, nonce, &OrderRequest{Pair: pair, Side: side, Price: drawPrice(t, 0),
			Amount: drawAmount(t, 0), ClientID: drawClient(t), Special: s})
	case 2:
		return NewCancel(key, nonce, number("order"), drawClient(t))
	case 3:
		return NewCancelAll(key, nonce, filter)
	case 4:
		a := &AmendRequest{Amount: drawAmount(t, 0), Price: drawPrice(t, 0),
			Display: drawAmount(t, 0), Trigger: drawPrice(t, 0), ExpireUs: us(),
			PostOnly: flag(), Slide: flag()}
		if a.ClientID = drawClient(t); a.ClientID.IsZero() {
			a.Order = number("order")
		}
		return NewAmend(key, nonce, a)
	case 5:
		return NewSettings(key, nonce, mode)
	case 6:
		seconds := rapid.Uint32Range(0, event.MaxSwitchSeconds).Draw(t, "seconds")
		c := NewSwitch(key, nonce, seconds, filter)
		c.switchRequest.session, c.switchRequest.instead = number("session"), number("instead")
		c.switchRequest.change = SessionChange(rapid.Uint8Range(0, 2).Draw(t, "change"))
		return c
	case 7:
		return NewWithdrawal(key, nonce, of.Currencies()[0].Number, drawAmount(t, 1),
			rapid.StringN(0, 100, 400).Draw(t, "address")).WithClientID(drawClient(t))
	case 8:
		return NewConfirmation(key, nonce, number("withdrawal"), rapid.String().Draw(t, "code"))
	}
	return NewWithdrawalCancel(key, nonce, number("withdrawal"))
}

// A command is decoded as it was encoded.
func TestACommandIsEncodedCompletely(t *testing.T) {
	of := forwardCatalogue(t)
	key := &directory.Key{Number: 3, Public: "key-of-ann", Account: &directory.Account{ID: 7}}
	rapid.Check(t, func(t *rapid.T) {
		c := drawForwarded(t, of, key)
		p := Parse(AppendCommand(nil, c))
		got := p.Command(of, key, c.order.nonce)
		possible := c.kind != event.KindOrder || isPossible(&OrderRequest{Pair: c.pair,
			Side: c.order.side, Price: c.order.price, Amount: c.order.amount, Special: c.special})
		if err := p.Done(); (err == nil) != possible {
			t.Fatalf("%v: %+v", err, c.request)
		} else if !possible {
			return
		}
		got.timeUs, got.createdAt = c.timeUs, c.createdAt
		if !reflect.DeepEqual(got.request, c.request) || got.record.Pair != c.record.Pair {
			t.Errorf("sent %+v\ncame %+v", c.request, got.request)
		}
	})
}

// An outcome is decoded as it was encoded.
func TestAnOutcomeIsEncodedCompletely(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
		text := func() string { return rapid.StringN(0, 30, 100).Draw(t, "text") }
		c := newCommand(event.KindOrder)
		c.outcome = Outcome(rapid.Uint8Range(uint8(Accepted), uint8(Refused)).Draw(t, "outcome"))
		if rapid.Bool().Draw(t, "record") {
			r := c.begin(event.KindRefusal, 0)
			r.Refusal = event.Refusal{Account: 7, Key: 3, Nonce: number("nonce") | 1,
				Reason: rapid.SampledFrom([]uint8{event.RefusedFunds,
					event.RefusedHeld}).Draw(t, "reason")}
			c.encode()
		}
		if rapid.Bool().Draw(t, "more") {
			c.shortfall = reservation{3, money.BalanceFromBits(number("hi"), number("lo"))}
			c.bound, c.lastNonce, c.takenBy = drawPrice(t, 0), number("last"), number("by")
			if c.record.Refusal.Reason == event.RefusedHeld {
				c.takenBy, c.holdEndsUs = 0, int64(c.takenBy>>1)
			}
			c.faults = []Fault{{text(), text()}, {text(), text()}}
			c.cancelledOrders = []uint64{number("order"), number("order"), number("order")}
			c.changedWithdrawal = state.Withdrawal{ID: number("withdrawal"), Account: 7,
				Currency: 3, Amount: drawAmount(t, 0), Status: event.WithdrawalVerified, TimeUs: 5,
				Address: text(), Details: text(), ClientID: drawClient(t), Issue: 2, IssuedUs: 9,
				Tries: 4, Stale: rapid.Bool().Draw(t, "stale"),
				Renewed: rapid.Bool().Draw(t, "renewed")}
			if c.changedWithdrawal.ID == 0 {
				c.changedWithdrawal = state.Withdrawal{}
			}
		}
		got := newCommand(event.KindOrder)
		p := Parse(AppendOutcome(nil, c))
		p.Outcome(got)
		succeeds(t, p.Done())
		if !reflect.DeepEqual(got.decision, c.decision) {
			t.Errorf("sent %+v\ncame %+v", c.decision, got.decision)
		}
		if len(c.encoded) > 0 && got.record.Refusal != c.record.Refusal {
			t.Errorf("sent %+v\ncame %+v", c.record.Refusal, got.record.Refusal)
		}
	})
}

// The reason for no outcome is decoded as it was encoded.
func TestAnErrorIsEncoded(t *testing.T) {
	for _, want := range append(knownErrors[:placeNonce:placeNonce], ErrNotLoggedIn,
		&committed.NonceError{Last: 77}, committed.NoHistory(errors.New("the disk is gone"))) {
		p := Parse(AppendError(nil, want))
		got := p.Error()
		if err := p.Done(); err != nil {
			t.Fatal(want, err)
		}
		var nonce *committed.NonceError
		var history *committed.HistoryError
		switch {
		case errors.As(want, &nonce):
			var came *committed.NonceError
			if !errors.As(got, &came) || *came != *nonce {
				t.Errorf("%v came as %v", want, got)
			}
		case errors.As(want, &history):
			if !errors.As(got, &history) || got.Error() != want.Error() {
				t.Errorf("%v came as %v", want, got)
			}
		case got != want:
			t.Errorf("%v came as %v", want, got)
		}
	}
}

// Whatever another node sends is a possible command of a client, or is refused.
func FuzzForwardedCommand(f *testing.F) {
	of := forwardCatalogue(f)
	key := &directory.Key{Number: 3, Public: "key-of-ann", Account: &directory.Account{ID: 7}}
	special := &SpecialRequest{Trigger: trading.Trigger{Price: 5, When: trading.Fall}}
	for _, c := range []*Command{
		NewOrder(key, 1, &OrderRequest{Pair: of.Pairs()[0], Side: trading.Buy, Price: 1,
			Amount: 1}),
		NewOrder(key, 1, &OrderRequest{Pair: of.Pairs()[0], Side: trading.Sell, Price: 1, Amount: 1,
			Special: special}),
		NewCancel(key, 1, 5, event.ClientID{}), NewCancelAll(key, 1, CancelFilter{}),
		NewAmend(key, 1, &AmendRequest{Order: 5, Price: 7}), NewSettings(key, 1, 2),
		NewSwitch(key, 1, 60, CancelFilter{}), NewWithdrawal(key, 1, 1, 5, "address"),
		NewWithdrawal(key, 1, 1, 5, "address").WithClientID(wantID(f, "mine")),
		NewConfirmation(key, 1, 5, "code"), NewWithdrawalCancel(key, 1, 5)} {
		f.Add(AppendCommand(nil, c))
		f.Add(AppendOutcome(nil, c))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := Parse(b)
		c := p.Command(of, key, 1)
		if p.Done() == nil {
			switch {
			case c == nil:
				t.Fatal("no command, and no error")
			case c.operator != "", c.key != key:
				t.Errorf("a client's command of another: %+v", c.request)
			case c.kind == event.KindWithdrawalStatus &&
				c.withdrawal.nextStatus != event.WithdrawalVerified &&
				c.withdrawal.nextStatus != event.WithdrawalCancelled:
				t.Errorf("a client moves a withdrawal to %d", c.withdrawal.nextStatus)
			case c.order.price < 0, c.order.amount < 0, c.withdrawal.amount < 0:
				t.Errorf("a negative number: %+v", c.request)
			}
			p = Parse(AppendCommand(nil, c))
			if again := p.Command(of, key, 1); p.Done() != nil || again.kind != c.kind {
				t.Errorf("it is not encoded again: %+v", c.request)
			}
		}
		p = Parse(b)
		p.Outcome(newCommand(event.KindOrder))
	})
}

// An order that a book could not take, or the fold would refuse, is refused from any node.
func TestAnImpossibleOrderIsNotDecoded(t *testing.T) {
	of := forwardCatalogue(t)
	pair := of.Pairs()[0]
	plain := OrderRequest{Pair: pair, Side: trading.Buy, Price: 100e8, Amount: coin}
	if !isPossible(&plain) {
		t.Fatal("a plain order is not possible")
	}
	with := func(change func(w *OrderRequest, s *SpecialRequest)) OrderRequest {
		w, s := plain, SpecialRequest{}
		w.Special = &s
		change(&w, &s)
		return w
	}
	for name, w := range map[string]OrderRequest{
		"no price":  {Pair: pair, Side: trading.Buy, Amount: coin},
		"no amount": {Pair: pair, Side: trading.Buy, Price: 100e8},
		"too many digits of a price": {Pair: pair, Side: trading.Buy, Price: 100e8 + 1,
			Amount: coin},
		"an iceberg that never rests": with(func(w *OrderRequest, s *SpecialRequest) {
			s.IOC, s.Display = true, coin/2
		}),
		"a sum that may rest": with(func(w *OrderRequest, s *SpecialRequest) {
			w.Amount, s.Quote = 0, coin
		}),
		"a sum and an amount": with(func(w *OrderRequest, s *SpecialRequest) {
			s.IOC, s.Quote = true, coin
		}),
		"a slide that takes": with(func(w *OrderRequest, s *SpecialRequest) { s.Asked = 100e8 }),
		"a trigger without a price": with(func(w *OrderRequest, s *SpecialRequest) {
			s.Trigger.When = trading.Fall
		}),
		"nothing special, and no amount": with(func(w *OrderRequest, s *SpecialRequest) {
			w.Amount = 0
		}),
		"all of it shown": with(func(w *OrderRequest, s *SpecialRequest) { s.Display = coin }),
	} {
		if isPossible(&w) {
			t.Errorf("%s: it is possible", name)
		}
	}
}
