package state

import (
	"testing"

	"exchange/core/event"
)

func closes(account uint32) event.Record {
	return event.Record{Kind: event.KindAccountClosed, TimeUs: 2000, Operator: "jane",
		AccountClosed: event.AccountClosed{Account: account}}
}

// emptied returns everything with one more account, which has two keys and no money.
func emptied() *State {
	s := everything()
	n := uint32(len(s.Keys()))
	key := func(number uint32, name string) event.Record {
		return event.Record{Kind: event.KindKey, TimeUs: 1015, Key: event.Key{Number: number,
			Account: 4, Key: name, Permissions: 3, SealedBy: 5, Sealed: []byte("sealed")}}
	}
	apply(must{}, s, event.Record{Kind: event.KindAccount, TimeUs: 1015,
		Account: event.Account{ID: 4, Name: "dave", Email: "dave@home.example"}},
		key(n+1, "dave-1"), key(n+2, "dave-2"),
		event.Record{Kind: event.KindKeyRevoked, TimeUs: 1016,
			KeyRevoked: event.KeyRevoked{Number: n + 1}})
	return s
}

// closedOne returns emptied, whose last account is closed.
func closedOne() *State {
	s := emptied()
	apply(must{}, s, closes(4))
	return s
}

func TestARecordThatChangesAClosedAccountIsRefused(t *testing.T) {
	in := deposit()
	in.Deposit.Account = 4
	for name, r := range map[string]event.Record{
		"closed twice":         closes(4),
		"a deposit":            in,
		"an end of its freeze": freeze(4, false),
		"own fees":             ownFees(1, 4, 100, 200),
		"an address":           addressed(4, "new@home.example", 2000, 3000),
		"another key": {Kind: event.KindKey, Key: event.Key{Number: 99, Account: 4,
			Key: "dave-3", Permissions: 1}},
	} {
		refusedBy(t, closedOne(), name, r, "was closed at 2000 us")
	}
	refusedBy(t, closedOne(), "its name for another", event.Record{Kind: event.KindAccount,
		Account: event.Account{ID: 5, Name: "dave"}}, "exists already")
}

func TestAnAccountInUseIsNotClosed(t *testing.T) {
	refusedBy(t, emptied(), "no account", closes(9), "there is no account 9")
	refusedBy(t, emptied(), "with money", closes(1), "with a balance of")
	at0 := closes(4)
	at0.TimeUs = 0
	refusedBy(t, emptied(), "at no time", at0, "closed at 0 us")
	s := emptied()
	s.Account(4).own().switches = []event.Switch{{Account: 4, Key: 1, Armed: true}}
	refusedBy(t, s, "with a switch", closes(4), "with 1 armed switches")
	s = emptied()
	s.Account(4).own().withdrawals = []*Withdrawal{{ID: 1, Account: 4}}
	refusedBy(t, s, "with a withdrawal", closes(4), "with 1 pending withdrawals")
	s = emptied()
	s.Account(4).Open.Add(1, 1, 1)
	refusedBy(t, s, "with an order", closes(4), "with 1 open orders")
}

func TestAnImpossibleImageOfAClosedAccountIsRefused(t *testing.T) {
	f := func(name string, spoil func(s *State), text string) {
		t.Helper()
		impossible(t, name, closedOne(), spoil, text)
		s := closedOne()
		spoil(s)
		if s.Check() == nil {
			t.Errorf("%s: the check finds nothing", name)
		}
	}
	f("not frozen", func(s *State) { s.Account(4).Frozen = false }, "and not frozen")
	f("with a live key", func(s *State) {
		for _, k := range s.keys {
			if k.Key.Key == "dave-2" {
				k.Revoked, k.Permissions = false, 3
			}
		}
	}, "its key dave-2 is live")
	f("with money", func(s *State) { s.Account(4).Wallet = s.Account(1).Wallet }, "has a balance")
}
