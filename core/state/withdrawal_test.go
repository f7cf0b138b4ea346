package state

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/money"
)

// asked returns small with two pending withdrawals: 1 of 2 BTC of alice's is new, 2 of 30 USD of
// bob's is verified.
func asked() *State {
	s := small()
	apply(must{}, s,
		event.Record{Kind: event.KindWithdrawal, TimeUs: 35,
			Withdrawal: event.Withdrawal{ID: 1, Account: 1, Key: 1, Nonce: 7, Currency: 1,
				Amount: 2 * coin, Address: "to alice"}},
		event.Record{Kind: event.KindWithdrawal, TimeUs: 36,
			Withdrawal: event.Withdrawal{ID: 2, Account: 2, Currency: 2, Amount: 30 * coin,
				Address: "to bob"}},
		event.Record{Kind: event.KindWithdrawalMoved, TimeUs: 37,
			WithdrawalMoved: event.WithdrawalMoved{ID: 2, Account: 2, Currency: 2,
				Amount: 30 * coin,
				To:     event.WithdrawalVerified}})
	return s
}

// ask returns a third withdrawal that fits asked, of all that alice has left.
func ask() event.Record {
	return event.Record{Kind: event.KindWithdrawal, TimeUs: 40,
		Withdrawal: event.Withdrawal{ID: 3, Account: 1, Key: 1, Nonce: 9, Currency: 1,
			Amount:  6 * coin,
			Address: "to alice"}}
}

// confirm1 verifies the first withdrawal of asked, approve2 approves the second.
func confirm1() event.Record {
	return event.Record{Kind: event.KindWithdrawalMoved, TimeUs: 40,
		WithdrawalMoved: event.WithdrawalMoved{ID: 1, Account: 1, Key: 1, Nonce: 9, Currency: 1,
			Amount: 2 * coin, To: event.WithdrawalVerified}}
}

func approve2() event.Record {
	return event.Record{Kind: event.KindWithdrawalMoved, TimeUs: 40, Operator: "olga",
		WithdrawalMoved: event.WithdrawalMoved{ID: 2, Account: 2, Currency: 2, Amount: 30 * coin,
			To: event.WithdrawalApproved}}
}

func wrongCode1() event.Record {
	return event.Record{Kind: event.KindCodeRefused, TimeUs: 40,
		CodeRefused: event.CodeRefused{Withdrawal: 1, Account: 1, Key: 1, Nonce: 9, Tries: 1}}
}

func TestTheWithdrawalRecordsThatTheOtherTestsSpoilFit(t *testing.T) {
	for _, r := range []event.Record{ask(), confirm1(), approve2(), wrongCode1()} {
		s := asked()
		apply(t, s, r)
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestApplyRefusesWithdrawalsThatDoNotFit(t *testing.T) {
	f := func(what string, change func(w *event.Withdrawal), text string) {
		t.Helper()
		r := ask()
		change(&r.Withdrawal)
		refusedBy(t, asked(), what, r, text)
	}
	type W = *event.Withdrawal
	f("account 0", func(w W) { w.Account = 0 }, "no account 0")
	f("an unknown account", func(w W) { w.Account = 4 }, "no account 4")
	f("no currency", func(w W) { w.Currency = 0 }, "no currency 0")
	f("an unknown currency", func(w W) { w.Currency = 4 }, "no currency 4")
	f("an amount of nothing", func(w W) { w.Amount = 0 }, "withdrawal 3 is of 0 units")
	f("a negative amount", func(w W) { w.Amount = -1 }, "withdrawal 3 is of -1 units")
	f("the most negative amount", func(w W) { w.Amount = math.MinInt64 },
		"withdrawal 3 is of -9223372036854775808 units")
	f("id 0", func(w W) { w.ID = 0 },
		"withdrawal 0 is pending already, or is not above the last pending id of account alice")
	f("id 0 of an account that has none", func(w W) { w.ID, w.Account, w.Key = 0, 3, 0 },
		"withdrawal 0 is pending already")
	f("an id twice", func(w W) { w.ID = 1 }, "withdrawal 1 is pending already")
	f("an id that another account's pending one has", func(w W) { w.ID = 2 },
		"withdrawal 2 is pending already")
	f("an unknown key", func(w W) { w.Key = 2 }, "key number 2 does not belong to account 1")
	f("another account's key", func(w W) { w.Account, w.Currency, w.Amount = 2, 2, coin },
		"key number 1 does not belong to account 2")
	f("a unit above what is available", func(w W) { w.Amount++ }, "account alice: ")
	f("the largest amount", func(w W) { w.Amount = money.MaxAmount }, "account alice: ")
	f("a currency that the account never had", func(w W) { w.Currency = 3 }, "account alice: ")
}

// Wallets draw ids at once: the records of two accounts may come in another order, never those of
// one.
func TestIDsOfWithdrawalsGrowWithinAnAccount(t *testing.T) {
	s := asked()
	later, earlier := ask(), ask()
	later.Withdrawal.ID, later.Withdrawal.Amount = 9, coin
	w := &earlier.Withdrawal
	w.ID, w.Account, w.Key, w.Currency, w.Amount = 8, 2, 0, 2, coin
	apply(t, s, later, earlier)
	if s.LastWithdrawal() != 9 || s.Withdrawal(8) == nil || s.Withdrawal(9) == nil {
		t.Errorf("%+v up to %d", s.Withdrawals(), s.LastWithdrawal())
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if back, err := Decode(s.AppendTo(nil)); err != nil || back.Hash() != s.Hash() {
		t.Errorf("its image: %v", err)
	}
	r := ask()
	r.Withdrawal.ID = 7
	refusedBy(t, s, "an id below the account's newest", r,
		"withdrawal 7 is pending already, or is not above the last pending id of account alice")
}

// A code of an earlier history confirms nothing and costs no try; the next one counts.
func TestANewHistoryEndsTheCodesOfTheOneBefore(t *testing.T) {
	begins := func(id event.HistoryID) event.Record {
		return event.Record{Kind: event.KindHistory, TimeUs: 39, History: id}
	}
	s := asked()
	apply(t, s, mailed(1), begins(event.HistoryID{1}))
	for _, id := range []event.HistoryID{{}, {1}} {
		refusedBy(t, s, "the id "+id.String(), begins(id),
			"no id, or the id of the current one")
	}
	if !s.Withdrawal(1).Stale || s.Withdrawal(1).Renewed || s.Withdrawal(2).Stale ||
		s.History() != (event.HistoryID{1}) {
		t.Errorf("the withdrawals are %+v and %+v", s.Withdrawal(1), s.Withdrawal(2))
	}
	image := s.AppendTo(nil)
	for what, r := range map[string]event.Record{"a code of before": confirm1(),
		"a try of it": wrongCode1()} {
		back, err := Decode(image)
		if err != nil {
			t.Fatal(err)
		}
		refusedBy(t, back, what, r, "of an earlier history")
	}
	expired := wrongCode1()
	expired.CodeRefused.Expired, expired.CodeRefused.Tries = true, 0
	apply(t, s, approve2(), expired, confirm1())
	if w := s.Withdrawal(1); w.Status != event.WithdrawalVerified || w.Tries != 0 || w.Issue != 2 {
		t.Errorf("the withdrawal is %+v", w)
	}
	s.ForgetHistory()
	if back, err := Decode(s.AppendTo(nil)); err != nil || !back.History().IsZero() {
		t.Errorf("a restored state is of history %v: %v", back.History(), err)
	}
}

// A code whose mail still waits is mailed as a code of the new history, and confirms. The mail of
// before may have been sent all the same. Its code counts as expired, and costs no try.
func TestANewHistoryMakesTheCodesAnewThatAreStillToBeMailed(t *testing.T) {
	begun := func() *State {
		s := asked()
		apply(t, s, event.Record{Kind: event.KindHistory, TimeUs: 39, History: event.HistoryID{1}})
		return s
	}
	s, before := begun(), asked()
	want := *before.Withdrawal(1)
	want.Issue, want.IssuedUs, want.Renewed = 2, 39, true
	if w := s.Withdrawal(1); *w != want {
		t.Errorf("the withdrawal is %+v, want %+v", *w, want)
	}
	if out := mailsOf(s); !slices.Equal(out, []Mail{{ID: 3, TimeUs: 39, Withdrawal: want}}) {
		t.Errorf("the outbox is %+v", out)
	}
	if back, err := Decode(s.AppendTo(nil)); err != nil || back.Hash() != s.Hash() {
		t.Errorf("its image: %v", err)
	}
	refusedBy(t, begun(), "a try of the code before", wrongCode1(), "of an earlier history")
	apply(t, s, confirm1())
	if w := s.Withdrawal(1); w.Status != event.WithdrawalVerified || w.Renewed || s.Mails() != 0 {
		t.Errorf("the withdrawal is %+v, with %d mails", w, s.Mails())
	}

	s = begun()
	expired, wrong := wrongCode1(), wrongCode1()
	expired.CodeRefused.Expired, expired.CodeRefused.Tries = true, 0
	apply(t, s, mailed(1), expired, wrong) // the mail of before is told of late
	if w := s.Withdrawal(1); w.Issue != 3 || w.Tries != 1 || w.Renewed || s.Mails() != 1 {
		t.Errorf("the withdrawal is %+v, with %d mails", w, s.Mails())
	}
}

func TestAnApprovalOfAFrozenAccountSaysSo(t *testing.T) {
	despite := approve2()
	despite.WithdrawalMoved.DespiteFreeze = true
	frozen := asked()
	apply(t, frozen, freeze(2, true))
	refusedBy(t, asked(), "a freeze that is not there", despite,
		"its account is frozen: false")
	refusedBy(t, frozen, "an approval of a frozen account", approve2(),
		"its account is frozen: true")
	for _, to := range []uint8{event.WithdrawalRefused, event.WithdrawalCancelled} {
		frozen := asked()
		apply(t, frozen, freeze(2, true))
		r := despite
		r.WithdrawalMoved.To = to
		refusedBy(t, frozen, "another status", r, "its account is frozen: true")
	}
	frozen = asked()
	apply(t, frozen, freeze(2, true), despite)
	if h := frozen.Account(2).Wallet.Get(2); h.Balance != money.Amount(65*coin).Balance() {
		t.Errorf("the account has %v", h.Balance)
	}
}

func TestApplyRefusesMovesOfWithdrawalsThatDoNotFit(t *testing.T) {
	f := func(what string, change func(m *event.WithdrawalMoved), text string) {
		t.Helper()
		r := approve2()
		change(&r.WithdrawalMoved)
		refusedBy(t, asked(), what, r, text)
	}
	type M = *event.WithdrawalMoved
	f("id 0", func(m M) { m.ID = 0 }, "withdrawal 0 of account 2")
	f("one that there never was", func(m M) { m.ID = 3 }, "withdrawal 3 of account 2")
	f("another account's", func(m M) { m.Account = 1 },
		"withdrawal 2 of account 1 (3000000000 units of currency 2) is not pending")
	f("no account", func(m M) { m.Account = 0 }, "withdrawal 2 of account 0")
	f("an unknown account", func(m M) { m.Account = 4 }, "withdrawal 2 of account 4")
	f("another currency", func(m M) { m.Currency = 1 }, "units of currency 1) is not pending")
	f("an unknown currency", func(m M) { m.Currency = 4 }, "units of currency 4) is not pending")
	f("a unit more", func(m M) { m.Amount++ }, "(3000000001 units")
	f("a unit less", func(m M) { m.Amount-- }, "(2999999999 units")
	f("nothing", func(m M) { m.Amount = 0 }, "(0 units")
	f("a negative amount", func(m M) { m.Amount = -1 }, "(-1 units")
	f("an unknown key", func(m M) { m.Key = 2 }, "key number 2 does not belong to account 2")
	f("another account's key", func(m M) { m.Key = 1 }, "key number 1 does not belong to account 2")
}

func TestApplyRefusesCodesThatDoNotFit(t *testing.T) {
	f := func(what string, change func(c *event.CodeRefused), text string) {
		t.Helper()
		for _, expired := range []bool{false, true} {
			r := wrongCode1()
			if r.CodeRefused.Expired = expired; expired {
				r.CodeRefused.Tries = 0
			}
			change(&r.CodeRefused)
			refusedBy(t, asked(), what, r, text)
		}
	}
	type C = *event.CodeRefused
	f("no withdrawal", func(c C) { c.Withdrawal = 0 }, "a code for withdrawal 0")
	f("a withdrawal that there never was", func(c C) { c.Withdrawal = 3 },
		"a code for withdrawal 3")
	f("another account's withdrawal", func(c C) { c.Account, c.Key = 2, 0 },
		"a code for withdrawal 1 of account 2, which waits for none")
	f("an unknown account", func(c C) { c.Account = 4 }, "a code for withdrawal 1 of account 4")
	f("a withdrawal that is verified", func(c C) { c.Withdrawal, c.Account, c.Key = 2, 2, 0 },
		"a code for withdrawal 2 of account 2, which waits for none")
	f("an unknown key", func(c C) { c.Key = 2 }, "key number 2 does not belong to account 1")

	for tries, expired := range map[uint32]bool{0: false, 2: false, 1: true} {
		r := wrongCode1()
		r.CodeRefused.Expired, r.CodeRefused.Tries = expired, tries
		refusedBy(t, asked(), fmt.Sprint(tries, " tries, expired: ", expired), r,
			fmt.Sprintf("but the record counts %d", tries))
	}
	s := asked()
	apply(t, s, confirm1())
	refusedBy(t, s, "a withdrawal that was verified since", wrongCode1(),
		"which waits for none")
	s = asked()
	r := confirm1()
	r.WithdrawalMoved.To = event.WithdrawalCancelled
	apply(t, s, r)
	refusedBy(t, s, "a withdrawal that was cancelled since", wrongCode1(),
		"which waits for none")
}

// movedTo gives bob's withdrawal 2 its next status.
func movedTo(t *testing.T, s *State, status uint8) error {
	t.Helper()
	r := approve2()
	r.WithdrawalMoved.To = status
	return s.Apply(&r, new(Effects))
}

// TestAWithdrawalHasThisLifeAndNoOther tries every status after every other.
func TestAWithdrawalHasThisLifeAndNoOther(t *testing.T) {
	const (
		fresh, verified              = event.WithdrawalNew, event.WithdrawalVerified
		approved, refused, cancelled = event.WithdrawalApproved, event.WithdrawalRefused,
			event.WithdrawalCancelled
	)
	allowed := map[[2]uint8]bool{{fresh, verified}: true, {fresh, refused}: true,
		{fresh, cancelled}:   true,
		{verified, approved}: true, {verified, refused}: true, {verified, cancelled}: true}
	for _, from := range []uint8{fresh, verified, approved, refused, cancelled} {
		for to := range 256 {
			s := small()
			apply(t, s, event.Record{Kind: event.KindWithdrawal,
				Withdrawal: event.Withdrawal{ID: 2, Account: 2, Currency: 2, Amount: 30 * coin}})
			if from != fresh && movedTo(t, s, verified) != nil {
				t.Fatal("a new one cannot be verified")
			}
			if from != fresh && from != verified && movedTo(t, s, from) != nil {
				t.Fatalf("a verified one cannot go to %d", from)
			}
			err := movedTo(t, s, uint8(to))
			if fits := allowed[[2]uint8{from, uint8(to)}]; (err == nil) != fits {
				t.Errorf("from %d to %d: %v", from, to, err)
			} else if fits != Follows(from, uint8(to)) {
				t.Errorf("Follows(%d, %d) is %v", from, to, !fits)
			}
			if err != nil && !strings.Contains(err.Error(),
				fmt.Sprintf("from status %d to %d", from, to)) &&
				!strings.Contains(err.Error(), "is not pending") {
				t.Errorf("from %d to %d: %v", from, to, err)
			}
		}
	}
}

func TestTheEffectOfEachMoveOfAWithdrawal(t *testing.T) {
	const details = "the address is not known"
	f := func(r event.Record, balance, reserve, withdrawn money.Amount, mails ...uint64) {
		t.Helper()
		s := asked()
		m := &r.WithdrawalMoved
		m.Details = details
		before := *s.Withdrawal(m.ID)
		e := apply(t, s, r)
		h := s.Account(m.Account).Wallet.Get(m.Currency)
		if h.Balance != balance.Balance() || h.Reserve != reserve.Balance() {
			t.Errorf("to %d: %v, reserved %v", m.To, h.Balance, h.Reserve)
		}
		if got := s.Currencies()[m.Currency-1].Withdrawn; got != withdrawn.Balance() {
			t.Errorf("to %d: %v withdrawn", m.To, got)
		}
		after := before
		after.Status, after.Details = m.To, details
		if ends := m.To != event.WithdrawalVerified; ends {
			if s.Withdrawal(m.ID) != nil || len(s.Account(m.Account).Withdrawals()) != 0 ||
				e.Withdrawal == nil || *e.Withdrawal != after || e.Withdrawal.Pending() {
				t.Errorf("to %d: pending %+v, ended %+v", m.To, s.Withdrawal(m.ID), e.Withdrawal)
			}
		} else if w := s.Withdrawal(m.ID); w == nil || *w != after || !w.Pending() ||
			e.Withdrawal != nil || !slices.Equal(s.Account(m.Account).Withdrawals(),
			[]*Withdrawal{w}) {
			t.Errorf("to %d: pending %+v, ended %+v", m.To, w, e.Withdrawal)
		}
		if s.Mails() != len(mails) || slices.ContainsFunc(mails, func(id uint64) bool {
			return s.Mail(id) == nil
		}) {
			t.Errorf("to %d: the outbox is %+v", m.To, mailsOf(s))
		}
		if notice := s.Mail(3); notice != nil &&
			*notice != (Mail{ID: 3, TimeUs: r.TimeUs, Withdrawal: after}) {
			t.Errorf("to %d: the mail is %+v", m.To, notice)
		}
		if len(e.Settlements) != 1 || e.Settlements[0].Account != m.Account || len(e.Closed) != 0 {
			t.Errorf("to %d: %+v", m.To, e)
		}
		if err := s.Check(); err != nil {
			t.Errorf("to %d: %v", m.To, err)
		}
	}
	to := func(r event.Record, status uint8) event.Record {
		r.WithdrawalMoved.To = status
		return r
	}
	// alice has 9.5 BTC, of which 1.5 are in orders; bob has 95 USD, of which 18 are in an order.
	// Mail 1 has the code of alice's, which is of use until it is confirmed or cancelled.
	f(confirm1(), 9.5*coin, 3.5*coin, 0)
	f(to(confirm1(), event.WithdrawalCancelled), 9.5*coin, 1.5*coin, 0)
	f(to(confirm1(), event.WithdrawalRefused), 9.5*coin, 1.5*coin, 0, 3)
	f(approve2(), 65*coin, 18*coin, 30*coin, 1)
	f(to(approve2(), event.WithdrawalRefused), 95*coin, 18*coin, 0, 1, 3)
	f(to(approve2(), event.WithdrawalCancelled), 95*coin, 18*coin, 0, 1)
}

func TestAWithdrawalIsReservedAndItsCodeIsMailed(t *testing.T) {
	s := asked()
	e := apply(t, s, ask())
	w := s.Withdrawal(3)
	want := Withdrawal{ID: 3, Account: 1, Currency: 1, Amount: 6 * coin,
		Status: event.WithdrawalNew,
		TimeUs: 40, Address: "to alice", Issue: 1, IssuedUs: 40}
	if w == nil || *w != want || !w.Pending() || s.LastWithdrawal() != 3 {
		t.Errorf("%+v, want %+v", w, want)
	}
	if h := s.Account(1).Wallet.Get(1); h.Balance != h.Reserve || !h.Available().IsZero() {
		t.Errorf("alice has %+v", h)
	}
	if list := s.Account(1).Withdrawals(); len(list) != 2 || list[0].ID != 1 || list[1] != w {
		t.Errorf("alice has %+v pending", list)
	}
	if out := mailsOf(s); len(out) != 2 || out[1] != (Mail{ID: 3, TimeUs: 40, Withdrawal: want}) {
		t.Errorf("the outbox is %+v", out)
	}
	if e.Withdrawal != nil || len(e.Settlements) != 1 || e.Settlements[0].Account != 1 {
		t.Errorf("%+v", e)
	}
}

func TestAWrongCodeIsCountedAndForAnOldOneANewOneIsMailed(t *testing.T) {
	s := asked()
	want := *s.Withdrawal(1)
	code := func(timeUs int64, expired bool) {
		t.Helper()
		r := wrongCode1()
		r.TimeUs, r.CodeRefused.Expired, r.CodeRefused.Tries = timeUs, expired, want.Tries
		before := mailsOf(s)
		e := apply(t, s, r)
		if w := s.Withdrawal(1); *w != want {
			t.Errorf("%+v, want %+v", *w, want)
		}
		if expired { // the mail with the old code is of no use
			before = []Mail{{ID: 3, TimeUs: timeUs, Withdrawal: want}}
		}
		if out := mailsOf(s); !slices.Equal(out, before) {
			t.Errorf("the outbox is %+v, want %+v", out, before)
		}
		if len(e.Settlements) != 1 || e.Settlements[0].Account != 1 ||
			len(e.Settlements[0].Changes()) != 0 || e.Withdrawal != nil {
			t.Errorf("%+v", e)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	want.Tries = 1
	code(40, false)
	want.Tries = 2
	code(41, false)
	want.Issue, want.IssuedUs = 2, 42 // tries count over all issues
	code(42, true)
	want.Tries = 3
	code(43, false)
	if m := s.Mail(3); m.Withdrawal.Issue != 2 || m.Withdrawal.Tries != 2 {
		t.Errorf("the mail is %+v now", m)
	}
}

func TestWithdrawalCommandsUseTheirNoncesWhichNeverFall(t *testing.T) {
	for _, nonce := range []struct{ used, want uint64 }{{9, 9}, {7, 7}, {3, 7}} { // it was 7
		a, c, w := ask(), confirm1(), wrongCode1()
		a.Withdrawal.Nonce, c.WithdrawalMoved.Nonce, w.CodeRefused.Nonce = nonce.used, nonce.used,
			nonce.used
		for _, r := range []event.Record{a, c, w} {
			s := asked()
			apply(t, s, r)
			if k := s.KeyByName("alice-1"); k.Nonce != nonce.want {
				t.Errorf("%v: nonce %d after %d, want %d", r.Kind, k.Nonce, nonce.used, nonce.want)
			}
		}
	}
}

func TestAnOperatorMovesAWithdrawalWithoutAKey(t *testing.T) {
	s := asked()
	apply(t, s, approve2())
	if k := s.KeyByName("alice-1"); k.Nonce != 7 {
		t.Errorf("nonce %d", k.Nonce)
	}
}

func TestOnlyPendingWithdrawalsAreFound(t *testing.T) {
	s := asked()
	if s.Withdrawal(0) != nil || s.Withdrawal(3) != nil || len(s.Account(3).Withdrawals()) != 0 ||
		s.Account(3).Fees() != nil {
		t.Error("something unknown is known")
	}
	apply(t, s, approve2())
	if s.Withdrawal(2) != nil || len(s.Withdrawals()) != 1 || s.LastWithdrawal() != 2 {
		t.Errorf("%+v up to %d", s.Withdrawals(), s.LastWithdrawal())
	}
}
