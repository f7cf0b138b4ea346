package state

import (
	"testing"

	"exchange/core/event"
	"exchange/core/money"
)

func adjustment(id uint64, amount money.Amount, reference string) event.Record {
	return event.Record{Kind: event.KindAdjusted, TimeUs: 50, Operator: "jane",
		Adjusted: event.Adjusted{ID: id, Account: 1, Currency: 1, Amount: amount,
			Reason: "credited twice", ClientID: clientID(reference)}}
}

// adjusted returns a state with an adjustment and withdrawals with client ids.
func adjusted() *State {
	s := namedOnes()
	apply(must{}, s, adjustment(7, coin/2, "wire-7"))
	return s
}

func TestAnAdjustmentThatDoesNotFitIsRefused(t *testing.T) {
	with := func(change func(j *event.Adjusted)) event.Record {
		r := adjustment(8, 1, "wire-8")
		change(&r.Adjusted)
		return r
	}
	for _, x := range []struct {
		name   string
		record event.Record
		want   string
	}{
		{"of no account", with(func(j *event.Adjusted) { j.Account = 99 }), "no account 99"},
		{"of no currency", with(func(j *event.Adjusted) { j.Currency = 99 }), "no currency 99"},
		{"of nothing", with(func(j *event.Adjusted) { j.Amount = 0 }), "at least 1"},
		{"the id of a pending withdrawal", with(func(j *event.Adjusted) { j.ID = 6 }),
			"the id of a pending withdrawal"},
		{"without a reason", with(func(j *event.Adjusted) { j.Reason = "" }), "reason"},
		{"without a reference", with(func(j *event.Adjusted) { j.ClientID = event.ClientID{} }),
			"no reference"},
		{"the reference of another", adjustment(8, 1, "wire-7"),
			"withdrawal 7 of account alice has the client id wire-7 already"},
		{"more than is available", with(func(j *event.Adjusted) { j.Amount = 1e17 }), "alice"},
	} {
		refusedBy(t, adjusted(), x.name, x.record, x.want)
	}
	// money reserved by pending withdrawals stays
	s := adjusted()
	all, err := money.AmountFromDecimal(s.Account(1).Wallet.Get(1).Balance.Decimal())
	if err != nil {
		t.Fatal(err)
	}
	refusedBy(t, s, "a reserved amount",
		with(func(j *event.Adjusted) { j.Amount = all }), "alice")
}
