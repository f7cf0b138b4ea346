package state

import (
	"slices"
	"testing"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

func halt(pair uint16, halted bool) event.Record {
	return event.Record{Kind: event.KindHalt, Pair: pair, TimeUs: 40, Operator: "olga",
		Halt: event.Halt{Halted: halted}}
}

func freeze(account uint32, frozen bool) event.Record {
	return event.Record{Kind: event.KindFreeze, TimeUs: 40, Operator: "olga",
		Freeze: event.Freeze{Account: account, Frozen: frozen}}
}

func maintenance(on bool, message string) event.Record {
	return event.Record{Kind: event.KindMaintenance, TimeUs: 40, Operator: "olga",
		Maintenance: event.Maintenance{On: on, Message: message}}
}

func ownFees(pair uint16, account uint32, maker, taker money.Rate) event.Record {
	return event.Record{Kind: event.KindFees, Pair: pair, TimeUs: 40, Operator: "olga",
		Fees: event.Fees{Account: account, Own: true, Maker: maker, Taker: taker}}
}

func usualFees(pair uint16, account uint32) event.Record {
	return event.Record{Kind: event.KindFees, Pair: pair, TimeUs: 40, Operator: "olga",
		Fees: event.Fees{Account: account}}
}

func mailed(id uint64) event.Record {
	return event.Record{Kind: event.KindMailed, TimeUs: 40, Mailed: event.Mailed{ID: id}}
}

func TestApplyRefusesImpossibleOperatorDecisions(t *testing.T) {
	f := func(what string, r event.Record, text string, before ...event.Record) {
		t.Helper()
		s := asked()
		apply(t, s, before...)
		refusedBy(t, s, what, r, text)
	}
	f("a halt of no pair", halt(0, true), "pair 0 does not exist")
	f("a halt of an unknown pair", halt(3, true), "pair 3 does not exist")
	f("a halt twice", halt(1, true), "or its halt already is true", halt(1, true))
	f("a pair resumed that is not halted", halt(1, false), "or its halt already is false")
	f("a pair resumed twice", halt(1, false), "or its halt already is false", halt(1, true),
		halt(1, false))
	early := halt(1, true)
	early.TimeUs = 32
	f("a halt before the pair's last record", early,
		"time 32 us is before 33 us, the last of BTC_USD")

	f("an order on a halted pair", buy(), "trading on BTC_USD was halted", halt(1, true))
	f("a cancel before the halt", later(cancelOf1(), 39),
		"time 39 us is before 40 us, the last of BTC_USD", halt(1, true))

	f("a freeze of no account", freeze(0, true), "account 0 does not exist")
	f("a freeze of an unknown account", freeze(4, true), "account 4 does not exist")
	f("a freeze twice", freeze(2, true), "or its freeze already is true", freeze(2, true))
	f("the end of no freeze", freeze(2, false), "or its freeze already is false")
	f("the end of a freeze twice", freeze(2, false), "or its freeze already is false",
		freeze(2, true), freeze(2, false))

	f("fees of no account", ownFees(1, 0, 1, 1), "account 0 or pair 1 does not exist")
	f("fees of an unknown account", ownFees(1, 4, 1, 1), "account 4 or pair 1 does not exist")
	f("fees in no pair", ownFees(0, 1, 1, 1), "account 1 or pair 0 does not exist")
	f("fees in an unknown pair", ownFees(3, 1, 1, 1), "account 1 or pair 3 does not exist")
	f("usual fees of an unknown account", usualFees(1, 4), "account 4 or pair 1 does not exist")
	f("usual fees in an unknown pair", usualFees(3, 1), "account 1 or pair 3 does not exist")
	f("a maker's rate above 1", ownFees(1, 1, money.MaxRate+1, 0),
		"fees of 1.00000001 (maker) and 0")
	f("a taker's rate above 1", ownFees(1, 1, 0, money.MaxRate+1),
		"fees of 0 (maker) and 1.00000001")
}

func TestRemovedFeesLeaveNoTrace(t *testing.T) {
	s, other := small(), small()
	apply(t, s, ownFees(1, 1, 0, 0), ownFees(2, 1, 5, 6), usualFees(2, 1), usualFees(1, 1))
	apply(t, other, usualFees(1, 3), usualFees(1, 3), usualFees(1, 3), usualFees(1, 3))
	if s.Hash() != other.Hash() {
		t.Error("the images differ")
	}
}

// withCancels returns the record of a maintenance that allows cancels.
func withCancels(message string) event.Record {
	r := maintenance(true, message)
	r.Maintenance.Cancels = true
	return r
}

// cancelling returns instructed in a maintenance that allows cancels.
func cancelling() *State { return after(withCancels("cancel what you like"))() }

// Values of an earlier record in e must not show.
func TestOperatorsDecisionsMoveNoMoneyAndNoOrder(t *testing.T) {
	s := asked()
	var e Effects
	take := buy()
	if err := s.Apply(&take, &e); err != nil || len(e.Settlements) == 0 || len(e.Closed) == 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	depth := s.Pair(1).Book.AppendOrders(nil, trading.Buy, -1)
	approve := approve2()
	if err := s.Apply(&approve, &e); err != nil || e.Withdrawal == nil {
		t.Fatalf("%+v, %v", e, err)
	}
	for _, r := range []event.Record{halt(1, true), ownFees(1, 1, 1, 1),
		maintenance(true, "m"), mailed(1), {Kind: event.KindNote, Note: "removed node d"}} {
		if err := s.Apply(&r, &e); err != nil || len(e.Settlements) != 0 || len(e.Closed) != 0 ||
			e.Withdrawal != nil {
			t.Errorf("%v: %+v, %v", r.Kind, e, err)
		}
	}
	if !slices.Equal(depth, s.Pair(1).Book.AppendOrders(nil, trading.Buy, -1)) {
		t.Error("the book has changed")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
