package state

import (
	"fmt"
	"math"
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
		event.Record{Kind: event.KindWithdrawalStatus, TimeUs: 37,
			WithdrawalStatus: event.WithdrawalStatus{ID: 2, Account: 2, Currency: 2,
				Amount: 30 * coin,
				To:     event.WithdrawalVerified}})
	return s
}

// ask returns a third withdrawal that fits asked, of all the money left to alice.
func ask() event.Record {
	return event.Record{Kind: event.KindWithdrawal, TimeUs: 40,
		Withdrawal: event.Withdrawal{ID: 3, Account: 1, Key: 1, Nonce: 9, Currency: 1,
			Amount:  6 * coin,
			Address: "to alice"}}
}

// confirm1 verifies the first withdrawal of asked, approve2 approves the second.
func confirm1() event.Record {
	return event.Record{Kind: event.KindWithdrawalStatus, TimeUs: 40,
		WithdrawalStatus: event.WithdrawalStatus{ID: 1, Account: 1, Key: 1, Nonce: 9, Currency: 1,
			Amount: 2 * coin, To: event.WithdrawalVerified}}
}

func approve2() event.Record {
	return event.Record{Kind: event.KindWithdrawalStatus, TimeUs: 40, Operator: "olga",
		WithdrawalStatus: event.WithdrawalStatus{ID: 2, Account: 2, Currency: 2, Amount: 30 * coin,
			To: event.WithdrawalApproved}}
}

func wrongCode1() event.Record {
	return event.Record{Kind: event.KindCodeRefused, TimeUs: 40,
		CodeRefused: event.CodeRefused{Withdrawal: 1, Account: 1, Key: 1, Nonce: 9, Tries: 1}}
}

func TestApplyRefusesWithdrawalsThatDoNotFit(t *testing.T) {
	refuses := refusesOf(t, asked, ask)
	f := func(what string, change func(w *event.Withdrawal), text string) {
		t.Helper()
		refuses(what, func(r *event.Record) { change(&r.Withdrawal) }, text)
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
	f("a unit above the available money", func(w W) { w.Amount++ }, "account alice: ")
	f("the largest amount", func(w W) { w.Amount = money.MaxAmount }, "account alice: ")
	f("a currency that the account never had", func(w W) { w.Currency = 3 }, "account alice: ")

	s, later, r := asked(), ask(), ask() // the records of two accounts may be swapped, not of one
	later.Withdrawal.ID, later.Withdrawal.Amount, r.Withdrawal.ID = 9, coin, 7
	apply(t, s, later)
	refusedBy(t, s, "an id below the account's newest", r,
		"withdrawal 7 is pending already, or is not above the last pending id of account alice")
}

// A code of an earlier history confirms nothing and costs no try. One whose mail is still pending
// is replaced, and confirms: the earlier mail may have been sent all the same.
func TestCodesOfAnEarlierHistoryAreRefused(t *testing.T) {
	begins := func(id event.HistoryID) event.Record {
		return event.Record{Kind: event.KindHistory, TimeUs: 39, History: id}
	}
	begun := func(before ...event.Record) *State {
		s := asked()
		apply(t, s, append(before, begins(event.HistoryID{1}))...)
		return s
	}
	for _, id := range []event.HistoryID{{}, {1}} {
		refusedBy(t, begun(), "the id "+id.String(), begins(id),
			"no id, or the id of the current one")
	}
	refusedBy(t, begun(mailed(1)), "a code of before", confirm1(), "of an earlier history")
	refusedBy(t, begun(mailed(1)), "a try of it", wrongCode1(), "of an earlier history")
	refusedBy(t, begun(), "a try of the code before", wrongCode1(), "of an earlier history")
	s := begun()
	s.ForgetHistory()
	if back, err := Decode(s.AppendTo(nil)); err != nil || !back.History().IsZero() {
		t.Errorf("a restored state is of history %v: %v", back.History(), err)
	}
}

func TestAnApprovalOfAFrozenAccountIsMarked(t *testing.T) {
	despite := approve2()
	despite.WithdrawalStatus.DespiteFreeze = true
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
		r.WithdrawalStatus.To = to
		refusedBy(t, frozen, "another status", r, "its account is frozen: true")
	}
	frozen = asked()
	apply(t, frozen, freeze(2, true), despite)
	if h := frozen.Account(2).Wallet.Get(2); h.Balance != money.Amount(65*coin).Balance() {
		t.Errorf("the account has %v", h.Balance)
	}
}

func TestApplyRefusesMovesOfWithdrawalsThatDoNotFit(t *testing.T) {
	refuses := refusesOf(t, asked, approve2)
	f := func(what string, change func(m *event.WithdrawalStatus), text string) {
		t.Helper()
		refuses(what, func(r *event.Record) { change(&r.WithdrawalStatus) }, text)
	}
	type M = *event.WithdrawalStatus
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
	r.WithdrawalStatus.To = event.WithdrawalCancelled
	apply(t, s, r)
	refusedBy(t, s, "a withdrawal that was cancelled since", wrongCode1(),
		"which waits for none")
}

// movedTo gives bob's withdrawal 2 its next status.
func movedTo(t *testing.T, s *State, status uint8) error {
	t.Helper()
	r := approve2()
	r.WithdrawalStatus.To = status
	return s.Apply(&r, new(Effects))
}

// TestWithdrawalStatusTransitions tries every status after every other.
func TestWithdrawalStatusTransitions(t *testing.T) {
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
			} else if fits != ValidTransition(from, uint8(to)) {
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
