package rows

import (
	"testing"

	"exchange/core/event"
	"exchange/core/state"
)

// The input is the texts of real records: a text that changes its form fails here.
func TestEachActionIsPhrasedForPeople(t *testing.T) {
	s := state.New()
	var effects state.Effects
	apply := func(r event.Record) {
		t.Helper()
		if err := s.Apply(&r, &effects); err != nil {
			t.Fatal(err)
		}
	}
	apply(event.Record{Kind: event.KindCurrency, Currency: event.Currency{Number: 1, Code: "BTC"}})
	apply(event.Record{Kind: event.KindCurrency, Currency: event.Currency{Number: 2, Code: "USDT"}})
	apply(event.Record{Kind: event.KindPair, Pair: 1,
		NewPair: event.Pair{Number: 1, Name: "BTC_USDT", Base: 1, Quote: 2}})
	apply(event.Record{Kind: event.KindAccount, Account: event.Account{ID: 1, Name: "alice"}})
	key := event.Key{Number: 1, Account: 1, Key: "k1", SealedBy: 1, Sealed: []byte("sealed"),
		Permissions: event.PermissionRead | event.PermissionTrade}
	apply(event.Record{Kind: event.KindKey, Key: key})
	from := key
	from.Allow = []string{"10.0.0.0/8", "::1/128"}
	parallel := from
	parallel.NonceWindow, parallel.Permissions = 8, event.AllPermissions
	wire, err := event.NewClientID("wire-7")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		record event.Record
		want   string
	}{
		{event.Record{Kind: event.KindAccount, Account: event.Account{Name: "bob"}},
			"opened the account bob"},
		{event.Record{Kind: event.KindAccount, Account: event.Account{Name: "bob", Email: "b@c.d"}},
			"opened the account bob, whose mails go to b@c.d"},
		{event.Record{Kind: event.KindKey, Key: key},
			"gave alice the key k1 with the permissions read, trade"},
		{event.Record{Kind: event.KindKey, Key: from},
			"gave alice the key k1 with the permissions read, trade, from 10.0.0.0/8, ::1/128 " +
				"alone"},
		{event.Record{Kind: event.KindKey, Key: parallel},
			"gave alice the key k1 with the permissions read, trade, withdraw, from 10.0.0.0/8, " +
				"::1/128 alone, for parallel use with 8 nonces"},
		{event.Record{Kind: event.KindKeyRevoked, KeyRevoked: event.KeyRevoked{Number: 1}},
			"revoked the key k1"},
		{event.Record{Kind: event.KindDeposit, Deposit: event.Deposit{ID: 3, Account: 1,
			Currency: 1, Amount: 500000001, Reference: "wire 7"}},
			"credited alice 5.00000001 BTC, reference wire 7 (deposit 3)"},
		{event.Record{Kind: event.KindDeposit, Deposit: event.Deposit{ID: 4, Account: 1,
			Currency: 2, Amount: 1, Reference: "a\nb\"c"}},
			`credited alice 0.00000001 USDT, reference "a\nb\"c" (deposit 4)`},
		{event.Record{Kind: event.KindCancel, Pair: 1, Cancel: event.Cancel{Account: 1, Order: 9}},
			"cancelled alice's order 9 in BTC_USDT"},
		{event.Record{Kind: event.KindWithdrawalStatus, WithdrawalStatus: event.WithdrawalStatus{
			ID: 7, Account: 1, Currency: 1, Amount: 1e8, To: event.WithdrawalApproved,
			DespiteFreeze: true}},
			"approved alice's withdraw 7 of 1 BTC, though the account is frozen"},
		{event.Record{Kind: event.KindWithdrawalStatus, WithdrawalStatus: event.WithdrawalStatus{
			ID: 7, Account: 1, Currency: 1, Amount: 1e8, To: event.WithdrawalRefused,
			Details: "Who is that?"}},
			"refused alice's withdraw 7 of 1 BTC: Who is that?"},
		{event.Record{Kind: event.KindAdjusted, Adjusted: event.Adjusted{ID: 8, Account: 1,
			Currency: 1, Amount: 150000000, Reason: "credited twice", ClientID: wire}},
			"took 1.5 BTC from alice: credited twice, reference wire-7 (adjustment 8)"},
		{event.Record{Kind: event.KindRefusal, Refusal: event.Refusal{Account: 1,
			Reason: event.RefusedNotOpen}}, "was refused a change of alice's: not open"},
		{event.Record{Kind: event.KindHalt, Pair: 1, Halt: event.Halt{Halted: true}},
			"halted BTC_USDT"},
		{event.Record{Kind: event.KindHalt, Pair: 1}, "resumed BTC_USDT"},
		{event.Record{Kind: event.KindFreeze, Freeze: event.Freeze{Account: 1, Frozen: true}},
			"froze alice"},
		{event.Record{Kind: event.KindFreeze, Freeze: event.Freeze{Account: 1}},
			"unfroze alice"},
		{event.Record{Kind: event.KindEmail, Email: event.Email{Account: 1,
			Address: "a@new.example", HoldEndsUs: 1_700_000_000_000_000}},
			"gave alice the e-mail address a@new.example, and held its withdraws until " +
				"2023-11-14T22:13:20Z"},
		{event.Record{Kind: event.KindAccountClosed,
			AccountClosed: event.AccountClosed{Account: 1}},
			"closed the account alice, and ended its keys"},
		{event.Record{Kind: event.KindMaintenance, Maintenance: event.Maintenance{On: true,
			Message: "Back at 9."}}, "began maintenance, with the message to clients: Back at 9."},
		{event.Record{Kind: event.KindMaintenance, Maintenance: event.Maintenance{On: true}},
			"began maintenance"},
		{event.Record{Kind: event.KindMaintenance, Maintenance: event.Maintenance{On: true,
			Message: "Back at 9.", Cancels: true}},
			"began maintenance with cancels, with the message to clients: Back at 9."},
		{event.Record{Kind: event.KindMaintenance}, "ended maintenance"},
		{event.Record{Kind: event.KindFees, Pair: 1, Fees: event.Fees{Account: 1, Own: true,
			Taker: 150000}},
			"gave alice fees of its own in BTC_USDT: maker 0, taker 0.0015"},
		{event.Record{Kind: event.KindFees, Pair: 1, Fees: event.Fees{Account: 1}},
			"gave alice the usual fees of BTC_USDT again"},
		{event.Record{Kind: event.KindNote, Note: "added node d"}, "added node d"},
	} {
		if got := Say(inWords(s, &x.record)); got != x.want {
			t.Errorf("%s is said as %q, want %q", x.record.Kind, got, x.want)
		}
	}
	on := inWords(s, &event.Record{Kind: event.KindHalt, Pair: 1, Halt: event.Halt{Halted: true}})
	if pair, on, ok := Closes(on); pair != "BTC_USDT" || !on || !ok {
		t.Errorf("%s: %v, %v", pair, on, ok)
	}
	off := inWords(s, &event.Record{Kind: event.KindMaintenance})
	if pair, on, ok := Closes(off); pair != "" || on || !ok {
		t.Errorf("%s: %v, %v", pair, on, ok)
	}
	if _, _, ok := Closes("added node d"); ok {
		t.Error("a note closes something")
	}
}
