package state

import (
	"fmt"
	"testing"

	"exchange/core/event"
)

func addressed(account uint32, address string, timeUs, holdEndsUs int64) event.Record {
	return event.Record{Kind: event.KindEmail, TimeUs: timeUs, Operator: "jane",
		Email: event.Email{Account: account, Address: address, HoldEndsUs: holdEndsUs}}
}

// held returns a state with pending withdrawals of an account that is held until 1,000 us.
func held() *State {
	s := namedOnes()
	apply(must{}, s, addressed(1, "new@home.example", 50, 1000))
	return s
}

func TestARecordAgainstAHoldIsRefused(t *testing.T) {
	id := uint64(0)
	for _, w := range held().Account(1).Withdrawals() {
		if w.Status == event.WithdrawalNew {
			id = w.ID
		}
	}
	w := held().Withdrawal(id)
	moved := func(to uint8, timeUs int64) event.Record {
		return event.Record{Kind: event.KindWithdrawalStatus, TimeUs: timeUs, Operator: "jane",
			WithdrawalStatus: event.WithdrawalStatus{ID: id, Account: 1, Currency: w.Currency,
				Amount: w.Amount, To: to}}
	}
	ask := func(timeUs int64) event.Record {
		return event.Record{Kind: event.KindWithdrawal, TimeUs: timeUs,
			Withdrawal: event.Withdrawal{ID: 50, Account: 1, Currency: w.Currency, Amount: 1,
				Address: "there"}}
	}
	for _, x := range []struct {
		name   string
		record event.Record
		want   string
	}{
		{"of no account", addressed(99, "a@b.example", 50, 2000), "no account 99"},
		{"no address", addressed(1, "", 50, 2000), "none, or the one that it has"},
		{"the same address", addressed(1, "new@home.example", 50, 2000), "the one that it has"},
		{"no hold", addressed(1, "a@b.example", 50, 0), "before the end that it had"},
		{"a shorter hold", addressed(1, "a@b.example", 50, 999), "before the end that it had"},
		{"a withdrawal", ask(999), "held until 1000 us"},
		{"a confirmation", moved(event.WithdrawalVerified, 999), "its code"},
	} {
		refusedBy(t, held(), x.name, x.record, x.want)
	}
	s := held()
	s.Withdrawal(id).Status, s.Withdrawal(id).Stale = event.WithdrawalVerified, false
	refusedBy(t, s, "an approval", moved(event.WithdrawalApproved, 999), "held until 1000 us")
	for _, r := range []event.Record{ask(1000), moved(event.WithdrawalRefused, 999),
		moved(event.WithdrawalCancelled, 999)} {
		s := held()
		if err := s.Apply(&r, new(Effects)); err != nil {
			t.Errorf("%v to %d at %d us: %v", r.Kind, r.WithdrawalStatus.To, r.TimeUs, err)
		}
	}
}

func TestAnImpossibleImageOfAHoldIsRefused(t *testing.T) {
	s := held()
	s.Account(1).Email = ""
	if _, err := Decode(s.AppendTo(nil)); err == nil {
		t.Error("an account without an address is held")
	}
	for name, spoil := range map[string]func(c *AccountChange){
		"of no account":    func(c *AccountChange) { c.Account = 99 },
		"to nobody":        func(c *AccountChange) { c.To = "" },
		"without a hold":   func(c *AccountChange) { c.HoldEndsUs = 0 },
		"of keys and hold": func(c *AccountChange) { c.Kind = KeysLost },
		"of unknown kind":  func(c *AccountChange) { c.Kind = KeysLost + 1 },
		"of another hold":  func(c *AccountChange) { c.HoldEndsUs++ },
		"of other account": func(c *AccountChange) { c.Account = 2 },
	} {
		impossible(t, name, held(), func(s *State) {
			for m := range s.MailsAfter(0) {
				if m.Change.Kind == NewAddress {
					spoil(&m.Change)
				}
			}
		}, "an impossible change of an account")
	}
}

// Refusals are many: they replace each other, and no mail about an address.
func TestRefusalsCrowdOutNoMailAboutAnAddress(t *testing.T) {
	s := small()
	apply(t, s, addressed(2, "bob@new.example", 49, 50))
	for id := uint64(1); id <= maxNotices+5; id++ {
		cycle(t, s, id, event.WithdrawalVerified, event.WithdrawalRefused)
	}
	count := func() (changes, refusals int) {
		for m := range s.MailsAfter(0) {
			if m.Change.Account != 0 {
				changes++
			} else {
				refusals++
			}
		}
		return changes, refusals
	}
	first, _ := count()
	if changes, refusals := count(); changes == 0 || refusals != maxNotices {
		t.Errorf("%d mails about addresses and %d refusals wait", changes, refusals)
	}
	for n := range int64(maxChanges) {
		apply(t, s, addressed(2, fmt.Sprintf("bob-%d@new.example", n), 60, 50))
	}
	if changes, refusals := count(); changes != maxChanges || refusals != maxNotices {
		t.Errorf("at first %d, then %d mails about addresses and %d refusals wait", first, changes,
			refusals)
	}
	sameImage(t, s)
}

// All keys lost together are reported in one mail, to an owner with an address.
func TestLostKeysAreReportedInOneMail(t *testing.T) {
	s := small()
	owner, keys := uint32(len(s.Accounts())+1), uint32(len(s.Keys()))
	apply(t, s, event.Record{Kind: event.KindAccount, TimeUs: 60,
		Account: event.Account{ID: owner, Name: "owner", Email: "owner@home.example"}},
		event.Record{Kind: event.KindAccount, TimeUs: 60,
			Account: event.Account{ID: owner + 1, Name: "mute"}})
	before := s.Mails()
	for i, account := range []uint32{owner, owner, owner + 1} {
		n := keys + 1 + uint32(i)
		apply(t, s, event.Record{Kind: event.KindKey, TimeUs: 60, Key: event.Key{Number: n,
			Account: account, Key: fmt.Sprint("key-", n), SealedBy: 1, Sealed: []byte("x")}},
			event.Record{Kind: event.KindKeyRevoked, TimeUs: 60,
				KeyRevoked: event.KeyRevoked{Number: n, Lost: true}})
	}
	want := AccountChange{Account: owner, To: "owner@home.example", Kind: KeysLost}
	if m := s.Mail(s.lastMail); s.Mails() != before+1 || m == nil || m.Change != want {
		t.Errorf("%+v is the last of %d mails, want %+v", m, s.Mails(), want)
	}
	sameImage(t, s)
}
