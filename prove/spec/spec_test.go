package spec

import (
	"fmt"
	"testing"
	"time"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

const coin = money.Amount(1e8)

// begun returns an exchange of two accounts, each with a key, 10 BTC and 1,000 USD, and one pair,
// in which a taker pays 1 %.
func begun(t *testing.T) *Exchange {
	t.Helper()
	m := New(10, map[string]Rules{"BTC_USD": {Usual: Rates{Taker: 1e6}, StopCollar: 1e7}})
	list := []event.Record{
		{Kind: event.KindCurrency, Currency: event.Currency{Number: 1, Code: "BTC"}},
		{Kind: event.KindCurrency, Currency: event.Currency{Number: 2, Code: "USD"}},
		{Kind: event.KindPair, NewPair: event.Pair{Number: 1, Name: "BTC_USD", Base: 1, Quote: 2}},
		{Kind: event.KindAccount, Account: event.Account{ID: 1, Name: "ann"}},
		{Kind: event.KindAccount, Account: event.Account{ID: 2, Name: "ben"}},
		{Kind: event.KindAccount, Account: event.Account{ID: 3, Name: "fees"}},
	}
	for id := range uint32(2) {
		list = append(list, event.Record{Kind: event.KindKey,
			Key: event.Key{Number: id + 1, Account: id + 1, Key: fmt.Sprint("key ", id+1)}})
		for i, amount := range []money.Amount{10 * coin, 1000 * coin} {
			list = append(list, event.Record{Kind: event.KindDeposit,
				Deposit: event.Deposit{Account: id + 1, Currency: uint16(i + 1), Amount: amount,
					Reference: fmt.Sprint(id, i)}})
		}
	}
	for _, r := range list {
		decide(t, m, r)
	}
	return m
}

func decide(t *testing.T, m *Exchange, r event.Record) event.Record {
	t.Helper()
	if err := m.Decide(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// order returns an account's request, in whole coins and dollars.
func order(account uint32, side trading.Side, price, amount int64,
	says trading.Instructions) event.Record {
	r := event.Record{Kind: event.KindInstructed, Pair: 1, Instructions: says,
		Order: event.Order{Account: account, Side: side, Price: money.Price(price) * 1e8,
			Amount: money.Amount(amount) * coin}}
	if says.IsZero() {
		r.Kind = event.KindOrder
	}
	return r
}

// met returns the trades of a record: order, amount and price of each.
func met(r event.Record) (text string) {
	for _, t := range r.Order.Trades {
		text += fmt.Sprintf("%d: %v at %v; ", t.Maker, t.Amount, t.Price)
	}
	return text
}

func want(t *testing.T, what string, got any, want string) {
	t.Helper()
	if fmt.Sprint(got) != want {
		t.Errorf("%s: %v, want %s", what, got, want)
	}
}

func TestTheBestPriceTradesFirstAndThenTheOldestOrder(t *testing.T) {
	m := begun(t)
	decide(t, m, order(1, trading.Sell, 11, 1, trading.Instructions{}))
	decide(t, m, order(1, trading.Sell, 10, 1, trading.Instructions{}))
	decide(t, m, order(1, trading.Sell, 10, 2, trading.Instructions{}))
	r := decide(t, m, order(2, trading.Buy, 10, 2, trading.Instructions{}))
	want(t, "it meets", met(r), "2: 1 at 10; 3: 1 at 10; ")
	want(t, "a fee", r.Order.Trades[0].TakerFee, "0.01")
	want(t, "of ann", m.Accounts[0].At(m.Seq), "1: 80000000000000000/20000000000000000 "+
		"2: 10200000000000000000/0 ")
	want(t, "of the fees", m.Accounts[2].At(m.Seq), "1: 200000000000000/0 2: 0/0 ")
	r = decide(t, m, order(2, trading.Buy, 12, 3, trading.Instructions{IOC: true}))
	want(t, "it meets", met(r), "3: 1 at 10; 1: 1 at 11; ")
	want(t, "its rest", fmt.Sprint(r.Order.Remaining, r.Instructions.Cancelled), "1 ioc")
}

func TestTheNextPartOfAnIcebergGoesBehindTheOrdersOfItsPrice(t *testing.T) {
	m := begun(t)
	decide(t, m, order(1, trading.Sell, 10, 3, trading.Instructions{Display: coin}))
	decide(t, m, order(1, trading.Sell, 10, 1, trading.Instructions{}))
	want(t, "the book shows", m.Pairs[0].Levels(trading.Sell, -1), "[{10 2 2}]")
	r := decide(t, m, order(2, trading.Buy, 10, 3, trading.Instructions{}))
	want(t, "it meets", met(r), "1: 1 at 10; 2: 1 at 10; 1: 1 at 10; ")
	if r := order(2, trading.Buy, 10, 2, trading.Instructions{FOK: true}); m.Decide(&r) != nil ||
		r.Instructions.Cancelled != trading.CancelledFOK {
		t.Errorf("a fill-or-kill order of two, of which one can be filled, becomes %+v", r.Order)
	}
}

func TestTheOtherHalfOfAnOrderEntersOnceTheLastPriceHasFallenToIt(t *testing.T) {
	m := begun(t)
	decide(t, m, order(1, trading.Sell, 12, 2,
		trading.Instructions{OCO: trading.OCO{Trigger: 10 * 1e8}}))
	decide(t, m, order(2, trading.Buy, 10, 1, trading.Instructions{}))
	decide(t, m, order(2, trading.Buy, 9, 1, trading.Instructions{}))
	decide(t, m, order(2, trading.Buy, 8, 1, trading.Instructions{}))
	next := event.Record{Kind: event.KindTriggered, Pair: 1, Order: event.Order{ID: 1}}
	if m.Decide(&next) == nil {
		t.Error("it enters before a trade")
	}
	decide(t, m, order(1, trading.Sell, 10, 1, trading.Instructions{}))
	r := decide(t, m, next)
	want(t, "at most 10 % below its trigger it meets", met(r), "3: 1 at 9; ")
	want(t, "its rest", fmt.Sprint(r.Order.Remaining, r.Instructions.Cancelled), "1 ioc")
}

// A record that differs from the exchange's decision must not follow.
func TestARecordThatSaysOtherwiseIsRefused(t *testing.T) {
	type R = *event.Record
	for what, spoil := range map[string]func(R){
		"":                    func(R) {},
		"another maker":       func(r R) { r.Order.Trades[0].Maker = 2 },
		"another price":       func(r R) { r.Order.Trades[0].Price++ },
		"no fee":              func(r R) { r.Order.Trades[0].TakerFee = money.Balance{} },
		"more than remains":   func(r R) { r.Order.Remaining++ },
		"no trades":           func(r R) { r.Order.Trades = nil },
		"an id twice":         func(r R) { r.Order.ID = 2 },
		"another one's key":   func(r R) { r.Order.Key = 1 },
		"a nonce twice":       func(r R) { r.Order.Nonce = 7 },
		"more than it has":    func(r R) { r.Order.Amount, r.Order.Remaining = 999*coin, 997*coin },
		"a time that is over": func(r R) { r.TimeUs = -1 },
	} {
		m := begun(t)
		for range 2 {
			decide(t, m, order(1, trading.Sell, 10, 1, trading.Instructions{}))
		}
		r := order(2, trading.Buy, 9, 1, trading.Instructions{})
		r.Order.Key, r.Order.Nonce = 2, 7
		decide(t, m, r)
		seq, twin := m.Seq, m.clone()
		r = order(2, trading.Buy, 10, 3, trading.Instructions{})
		r.Order.Key, r.Order.Nonce = 2, 8
		r = decide(t, m, r)
		spoil(&r)
		if err := twin.Apply(&r); (err == nil) != (what == "") || twin.Seq != seq+1 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestACodeIsGoodUpToItsLastMomentOnly(t *testing.T) {
	const issued, last = 10, 10 + 1_000_000 // us
	verified := func(timeUs int64) event.Record {
		return event.Record{Kind: event.KindWithdrawalStatus, TimeUs: timeUs,
			WithdrawalStatus: event.WithdrawalStatus{ID: 1, Account: 1, Key: 1, Nonce: 5,
				Currency: 1, Amount: coin, To: event.WithdrawalVerified}}
	}
	refused := func(timeUs int64, expired bool) event.Record {
		c := event.CodeRefused{Withdrawal: 1, Account: 1, Key: 1, Nonce: 4,
			Expired: expired, Tries: 1}
		if expired {
			c.Tries = 0
		}
		return event.Record{Kind: event.KindCodeRefused, TimeUs: timeUs, CodeRefused: c}
	}
	miscounted := refused(last, false)
	miscounted.CodeRefused.Tries = 2
	for _, one := range []struct {
		history string
		records []event.Record
		right   bool
	}{
		{"the last moment of a code", []event.Record{verified(last)}, true},
		{"a code that has expired", []event.Record{verified(last + 1)}, false},
		{"a wrong code at its last moment", []event.Record{refused(last, false)}, true},
		{"a wrong code that is counted twice", []event.Record{miscounted}, false},
		{"a wrong code that counts after its last moment", []event.Record{refused(last+1, false)},
			false},
		{"a code that expires at its last moment", []event.Record{refused(last, true)}, false},
		{"the last moment of the next code",
			[]event.Record{refused(last+1, true), verified(2*last + 1 - issued)}, true},
		{"a next code that has expired",
			[]event.Record{refused(last+1, true), verified(2*last + 2 - issued)}, false},
	} {
		m := begun(t)
		m.CodeValid = time.Second
		asked := event.Record{Kind: event.KindWithdrawal, TimeUs: issued,
			Withdrawal: event.Withdrawal{ID: 1, Account: 1, Key: 1, Nonce: 3, Currency: 1,
				Amount: coin}}
		err := m.Apply(&asked)
		for i := range one.records {
			if err != nil {
				t.Fatal(err)
			}
			err = m.Apply(&one.records[i])
		}
		if (err == nil) != one.right {
			t.Errorf("%s: %v", one.history, err)
		}
	}
}
