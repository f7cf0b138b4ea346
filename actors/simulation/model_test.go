package simulation

import (
	"testing"
	"time"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

const coin = money.Amount(1e8)

// begun returns an exchange of one pair, BTC_USD. Accounts 1 and 2 have keys 1 and 2, and 10 BTC
// and 1,000 USD each. Order 1 of account 1 sells 2 BTC at 100, and order 2 sells 2 more behind it.
func begun(t *testing.T) *Model {
	t.Helper()
	m := NewModel(10, nil)
	add := func(r event.Record) {
		t.Helper()
		if err := m.Apply(&r); err != nil {
			t.Fatal(err)
		}
	}
	for i, code := range []string{"BTC", "USD"} {
		add(event.Record{Kind: event.KindCurrency,
			Currency: event.Currency{Number: uint16(i + 1), Code: code}})
	}
	add(event.Record{Kind: event.KindPair,
		NewPair: event.Pair{Number: 1, Name: "BTC_USD", Base: 1, Quote: 2}})
	for i, name := range []string{"ann", "ben"} {
		id := uint32(i + 1)
		add(event.Record{Kind: event.KindAccount, Account: event.Account{ID: id, Name: name}})
		add(event.Record{Kind: event.KindKey,
			Key: event.Key{Number: id, Account: id, Key: "key of " + name}})
		add(event.Record{Kind: event.KindDeposit,
			Deposit: event.Deposit{ID: uint64(2*i + 1), Account: id, Currency: 1, Amount: 10 * coin,
				Reference: name + " BTC"}})
		add(event.Record{Kind: event.KindDeposit,
			Deposit: event.Deposit{ID: uint64(2*i + 2), Account: id, Currency: 2,
				Amount: 1000 * coin, Reference: name + " USD"}})
	}
	for id := uint64(1); id <= 2; id++ {
		add(orderOf(event.Order{ID: id, Account: 1, Key: 1, Nonce: id, Side: trading.Sell,
			Price: 100e8, Amount: 2 * coin, Remaining: 2 * coin}))
	}
	return m
}

func orderOf(o event.Order) event.Record {
	return event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: int64(o.ID), Order: o}
}

// taken returns an order of account 2 that takes 3 BTC: all of order 1, and half of order 2.
func taken() event.Order {
	return event.Order{ID: 3, Account: 2, Key: 2, Nonce: 1, Side: trading.Buy, Price: 101e8,
		Amount: 3 * coin, Trades: []event.Trade{
			{ID: 1, Maker: 1, MakerAccount: 1, Price: 100e8, Amount: 2 * coin},
			{ID: 2, Maker: 2, MakerAccount: 1, Price: 100e8, Amount: coin, MakerRemaining: coin},
		}}
}

func TestTheModelTakesARightRecord(t *testing.T) {
	m := begun(t)
	r := orderOf(taken())
	if err := m.Apply(&r); err != nil {
		t.Fatal(err)
	}
	units := func(n int64) string { return ofAmount(money.Amount(n) * coin).String() }
	for account, want := range map[int][4]int64{0: {7, 1, 1300, 0}, 1: {13, 0, 700, 0}} {
		f := m.Accounts[account].At(m.Seq)
		if got := [4]string{f[0].Balance.String(), f[0].Reserve.String(), f[1].Balance.String(),
			f[1].Reserve.String()}; got !=
			[4]string{units(want[0]), units(want[1]), units(want[2]), units(want[3])} {
			t.Errorf("account %d has %v", account+1, f)
		}
	}
	p := m.Pairs[0]
	if p.updateID != 3 || len(m.Rows.Trades) != 2 || len(m.Rows.Orders) != 2 || p.Book.len() != 1 {
		t.Errorf("%d updates, %d trades, %d closed and %d open orders", p.updateID,
			len(m.Rows.Trades), len(m.Rows.Orders), p.Book.len())
	}
}

func TestTheModelRefusesWrongRecords(t *testing.T) {
	for mistake, plant := range map[string]func(*event.Order){
		"an id that was used": func(o *event.Order) { o.ID = 2 },
		"a nonce that was used": func(o *event.Order) {
			o.Account, o.Key, o.Nonce = 1, 1, 2
		},
		"a key of another":             func(o *event.Order) { o.Key = 1 },
		"a trade at the taker's price": func(o *event.Order) { o.Trades[0].Price = 101e8 },
		"trades in the wrong order": func(o *event.Order) {
			o.Trades[0], o.Trades[1] = o.Trades[1], o.Trades[0]
		},
		"a trade that is left out": func(o *event.Order) {
			o.Trades, o.Remaining = o.Trades[:1], coin
		},
		"a trade's id that was used":    func(o *event.Order) { o.Trades[1].ID = 1 },
		"a trade of more than there is": func(o *event.Order) { o.Trades[0].Amount = 3 * coin },
		"something that remains":        func(o *event.Order) { o.Remaining = coin },
		"a cut where nothing is cut":    func(o *event.Order) { o.RestCancelled = true },
		"a fee that no rate asks for": func(o *event.Order) {
			o.FeeAccount, o.Trades[0].TakerFee = 1, coin.Balance()
		},
		"an order of more than is there": func(o *event.Order) {
			o.Price, o.Amount, o.Remaining, o.Trades = 99e8, 11*coin, 11*coin, nil
		},
		"an order that crosses, and rests": func(o *event.Order) {
			o.Trades, o.Remaining = nil, o.Amount
		},
	} {
		m := begun(t)
		o := taken()
		plant(&o)
		if r := orderOf(o); m.Apply(&r) == nil {
			t.Errorf("%s is taken", mistake)
		}
	}
	for mistake, r := range map[string]event.Record{
		"a cancel of another's order": {Kind: event.KindCancel, Pair: 1, TimeUs: 9,
			Cancel: event.Cancel{ID: 3, Order: 1, Account: 2, Key: 2, Nonce: 1,
				Side: trading.Sell, Price: 100e8, Remaining: 2 * coin}},
		"a cancel of another amount": {Kind: event.KindCancel, Pair: 1, TimeUs: 9,
			Cancel: event.Cancel{ID: 3, Order: 1, Account: 1, Key: 1, Nonce: 3,
				Side: trading.Sell, Price: 100e8, Remaining: coin}},
		"a cancel that goes back in time": {Kind: event.KindCancel, Pair: 1, TimeUs: 1,
			Cancel: event.Cancel{ID: 3, Order: 1, Account: 1, Key: 1, Nonce: 3,
				Side: trading.Sell, Price: 100e8, Remaining: 2 * coin}},
		"a reference that was used": {Kind: event.KindDeposit,
			Deposit: event.Deposit{ID: 5, Account: 1, Currency: 1, Amount: coin,
				Reference: "ann BTC"}},
		"a withdrawal of more than is available": {Kind: event.KindWithdrawal,
			Withdrawal: event.Withdrawal{ID: 1, Account: 1, Key: 1, Nonce: 3, Currency: 1,
				Amount: 7 * coin}},
		"a status of a withdrawal that is not there": {Kind: event.KindWithdrawalMoved,
			WithdrawalMoved: event.WithdrawalMoved{ID: 1, Account: 1, Currency: 1,
				Amount: coin, To: event.WithdrawalCancelled}},
		"a nonce that is refused and was not used": {Kind: event.KindRefusal,
			Refusal: event.Refusal{Account: 1, Key: 1, Nonce: 3, Reason: event.RefusedNonce}},
		"a nonce from before the start": {Kind: event.KindRefusal,
			Refusal: event.Refusal{Account: 2, Key: 2, Nonce: 1, Reason: event.RefusedFunds}},
	} {
		m := begun(t)
		m.Keys[1].Nonce = 1
		m.Restarted()
		if m.Apply(&r) == nil {
			t.Errorf("%s is taken", mistake)
		}
	}
}

// cancelOf returns a cancel by a key; 0: by an operator.
func cancelOf(key uint32) event.Record {
	r := event.Record{Kind: event.KindCancel, Pair: 1, TimeUs: 2,
		Cancel: event.Cancel{ID: 3, Order: 2, Account: 1, Key: key, Side: trading.Sell,
			Price: 100e8, Remaining: 2 * coin}}
	if key == 0 {
		r.Operator = "op"
	} else {
		r.Cancel.Nonce = 3
	}
	return r
}

func TestTheModelTakesCancelsAloneWhileClientsMayCancel(t *testing.T) {
	on := event.Record{Kind: event.KindMaintenance,
		Maintenance: event.Maintenance{On: true, Cancels: true}}
	refused := func(reason uint8) event.Record {
		return event.Record{Kind: event.KindRefusal,
			Refusal: event.Refusal{Account: 1, Key: 1, Nonce: 3, Reason: reason}}
	}
	for _, x := range []struct {
		what  string
		r     event.Record
		takes bool
	}{
		{"an order", orderOf(taken()), false},
		{"a cancel", cancelOf(1), true},
		{"a cancel of what is not open", refused(event.RefusedNotOpen), true},
		{"an order without funds", refused(event.RefusedFunds), false},
	} {
		m, begins := begun(t), on
		if err := m.Apply(&begins); err != nil {
			t.Fatal(err)
		}
		if err := m.Apply(&x.r); (err == nil) != x.takes {
			t.Errorf("%s: %v", x.what, err)
		}
	}
}

func TestTheModelRefusesClientsCommandsDuringMaintenance(t *testing.T) {
	maintenance := func(on bool) event.Record {
		return event.Record{Kind: event.KindMaintenance, Maintenance: event.Maintenance{On: on}}
	}
	for mistake, r := range map[string]event.Record{
		"an order": orderOf(taken()),
		"a refused nonce": {Kind: event.KindRefusal,
			Refusal: event.Refusal{Account: 1, Key: 1, Nonce: 2, Reason: event.RefusedNonce}},
		"maintenance that has begun already": maintenance(true),
		"a cancel":                           cancelOf(1),
	} {
		m, on := begun(t), maintenance(true)
		if err := m.Apply(&on); err != nil {
			t.Fatal(err)
		}
		if m.Apply(&r) == nil {
			t.Errorf("%s is taken", mistake)
		}
	}
	m, order, cancel := begun(t), orderOf(taken()), cancelOf(0)
	order.TimeUs, order.Order.ID, order.Order.Amount, order.Order.Trades = 4, 4, 2*coin,
		order.Order.Trades[:1]
	on, off := maintenance(true), maintenance(false)
	for _, r := range []*event.Record{&on, &cancel, &off, &order} {
		if err := m.Apply(r); err != nil {
			t.Error(err)
		}
	}
}

func TestACodeIsGoodUpToItsLastMomentOnly(t *testing.T) {
	const issued, last = 10, 10 + 1_000_000 // us
	verified := func(timeUs int64) event.Record {
		return event.Record{Kind: event.KindWithdrawalMoved, TimeUs: timeUs,
			WithdrawalMoved: event.WithdrawalMoved{ID: 1, Account: 1, Key: 1, Nonce: 5, Currency: 1,
				Amount: coin, To: event.WithdrawalVerified}}
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
