package actors

import (
	"testing"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/persistence"
)

func wantID(t testing.TB, id string) event.ClientID {
	t.Helper()
	c := must[event.ClientID](t)(event.NewClientID(id))
	return c
}

func (b *teller) askAs(id string, amount money.Amount) string {
	return outcomeOf(b.e.Do(NewWithdrawal(b.key, b.next(), 1, amount,
		"bc1q-somewhere").Named(wantID(b.t, id))))
}

func (b *teller) cancel(id uint64) string {
	return outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), id)))
}

// A wallet forgets with the state: as many of the newest are kept, and those that are pending.
func TestAWalletForgetsOldClientIDsOfWithdrawals(t *testing.T) {
	b := newTeller(t, memoryPlaces(t), nil)
	b.expect(b.askAs("old", 1), "withdraw 1 old")
	b.expect(b.askAs("older", 1), "withdraw 2 older")
	b.expect(b.cancel(2), "status 50")
	id := []byte("n-0000")
	for n := range uint64(event.KeptWithdrawalIDs) {
		for i, digit := 5, n; i > 1; i, digit = i-1, digit/10 {
			id[i] = byte('0' + digit%10)
		}
		b.askAs(string(id), 1)
		b.expect(b.cancel(n+3), "status 50")
	}
	b.expect(b.askAs("old", 1), "already used by withdraw 1")
	b.expect(b.askAs("n-0000", 1), "already used by withdraw 3")
	b.expect(b.askAs("older", 1), "withdraw 1003 older")
	b.expect(b.cancel(1), "status 50")
	b.expect(b.askAs("old", 1), "withdraw 1004 old")
	if err := b.e.VerifyAtRest(); err != nil {
		t.Error(err)
	}
	b.end()
}

// While a member does not read the records of withdrawals with client ids, none is written: at the
// node that leads, and at one that follows. Nothing is lost by asking.
func TestWithdrawalsHaveClientIDsOnceAllMembersReadThem(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, r, older := withOlder(t, persistence.FormatWithdrawalIDs)
		b := c.branch((r.at + 1) % len(c.nodes))
		ask := func(at Commands, id string) string {
			c := NewWithdrawal(at.Key([]byte("key-of-ann")), b.next(), 1, coin, "x")
			if id != "" {
				c.Named(wantID(t, id))
			}
			return outcomeOf(at.Do(c))
		}
		want := func(got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		want(ask(b.Commands, "one"), ErrNotRead.Error())
		want(ask(r.Engine, "one"), ErrNotRead.Error())
		want(ask(b.Commands, ""), "withdraw 1")
		older.Store(false)
		want(ask(b.Commands, "one"), "withdraw 2 one")
		want(ask(b.Commands, "one"), "already used by withdraw 2")
		want(ask(r.Engine, "one"), "already used by withdraw 2")
		cancelled := b.does(NewWithdrawalCancel(b.key, b.next(), 2))
		if w := cancelled.Withdrawal(); w.ClientID != wantID(t, "one") {
			t.Errorf("cancelled is %+v", w)
		}
		cancelled.Free()
	})
}
