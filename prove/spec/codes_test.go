package spec

import (
	"testing"
	"time"

	"exchange/core/event"
	"exchange/core/money"
)

const coin = money.Amount(1e8)

// begun returns an exchange of one account, which has a key and 10 BTC.
func begun(t *testing.T) *Exchange {
	t.Helper()
	m := New(10, nil)
	for _, r := range []event.Record{
		{Kind: event.KindCurrency, Currency: event.Currency{Number: 1, Code: "BTC"}},
		{Kind: event.KindAccount, Account: event.Account{ID: 1, Name: "ann"}},
		{Kind: event.KindKey, Key: event.Key{Number: 1, Account: 1, Key: "key of ann"}},
		{Kind: event.KindDeposit, Deposit: event.Deposit{ID: 1, Account: 1, Currency: 1,
			Amount: 10 * coin, Reference: "ann BTC"}},
	} {
		if err := m.Apply(&r); err != nil {
			t.Fatal(err)
		}
	}
	return m
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
