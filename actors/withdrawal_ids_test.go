package actors

import (
	"testing"

	"exchange/core/event"
	"exchange/core/money"
)

func wantID(t testing.TB, id string) event.ClientID {
	t.Helper()
	c := must[event.ClientID](t)(event.NewClientID(id))
	return c
}

func (b *teller) askAs(id string, amount money.Amount) string {
	return outcomeOf(b.e.Do(NewWithdrawal(b.key, b.next(), 1, amount,
		"bc1q-somewhere").WithClientID(wantID(b.t, id))))
}

func (b *teller) cancel(id uint64) string {
	return outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), id)))
}

// A wallet forgets with the state: both keep the newest ids, and the pending ones.
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
