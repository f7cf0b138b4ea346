package state

import (
	"maps"
	"math"
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

func TestApplyRefusesWhatOperatorsCannotDecide(t *testing.T) {
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
	f("a halt before what the pair did last", early,
		"time 32 us is before 33 us, the last of BTC_USD")

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

func TestOnAHaltedPairOrdersAreCancelledAndNoneIsAccepted(t *testing.T) {
	s := small()
	apply(t, s, halt(1, true))
	if !s.Pair(1).Halted || s.Pair(2).Halted {
		t.Error("another pair is halted")
	}
	refusedBy(t, s, "an order", buy(), "trading on BTC_USD was halted")

	s = small()
	apply(t, s, halt(1, true), cancelOf1(), halt(1, false))
	r := buy() // rests now, and would otherwise take: cancelled
	r.Order.ID, r.Order.Trades, r.Order.Remaining = 6, nil, r.Order.Amount
	apply(t, s, r)
	if s.Pair(1).Halted || s.Pair(1).Book.Len() != 3 {
		t.Errorf("halted %v, with %d orders", s.Pair(1).Halted, s.Pair(1).Book.Len())
	}
	s = small()
	apply(t, s, halt(2, true), buy())
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestAHaltIsAMomentOfItsPair(t *testing.T) {
	s := small()
	updates := s.Pair(1).Market.UpdateID
	apply(t, s, halt(1, true))
	if p := s.Pair(1); p.LastTimeUs() != 40 || p.Market.UpdateID != updates {
		t.Errorf("time %d, update id %d", p.LastTimeUs(), p.Market.UpdateID)
	}
	r := cancelOf1()
	r.TimeUs = 39
	refusedBy(t, s, "a cancel before the halt", r,
		"time 39 us is before 40 us, the last of BTC_USD")
}

func TestRecordsOnTheirWayAtAFreezeStillFit(t *testing.T) {
	for _, r := range []event.Record{ask(), confirm1(), wrongCode1(), buy(), cancelOf1()} {
		s := asked()
		apply(t, s, freeze(1, true), freeze(2, true))
		if !s.Account(1).Frozen || !s.Account(2).Frozen || s.Account(3).Frozen {
			t.Fatal("another account is frozen")
		}
		apply(t, s, r)
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		apply(t, s, freeze(1, false))
		if s.Account(1).Frozen || !s.Account(2).Frozen {
			t.Error("the freeze of another account ends")
		}
	}
}

func TestFeesOfOnesOwnAreOfOnePairUntilTheUsualOnesCountAgain(t *testing.T) {
	s := small()
	f := func(r event.Record, want map[uint16]FeeRates) {
		t.Helper()
		apply(t, s, r)
		if got := s.Account(1).Fees(); !maps.Equal(got, want) || len(s.Account(2).Fees()) != 0 {
			t.Errorf("%v, want %v; bob's are %v", got, want, s.Account(2).Fees())
		}
	}
	f(usualFees(1, 1), nil) // it had none
	f(ownFees(1, 1, 0, 0), map[uint16]FeeRates{1: {}})
	f(ownFees(2, 1, 5, money.MaxRate),
		map[uint16]FeeRates{1: {}, 2: {Maker: 5, Taker: money.MaxRate}})
	f(ownFees(1, 1, money.MaxRate, 7),
		map[uint16]FeeRates{1: {Maker: money.MaxRate, Taker: 7},
			2: {Maker: 5, Taker: money.MaxRate}})
	f(usualFees(2, 1), map[uint16]FeeRates{1: {Maker: money.MaxRate, Taker: 7}})
	f(usualFees(1, 1), nil)
	other := small()
	for range 6 {
		apply(t, other, usualFees(1, 3))
	}
	if s.Hash() != other.Hash() {
		t.Error("fees that are no more leave a trace")
	}
}

// withCancels returns the record of a maintenance in which clients may cancel.
func withCancels(message string) event.Record {
	r := maintenance(true, message)
	r.Maintenance.Cancels = true
	return r
}

// cancelling returns instructed in a maintenance in which clients may cancel.
func cancelling() *State { return after(withCancels("cancel what you like"))() }

func TestTheNewestRecordSetsMaintenance(t *testing.T) {
	s := small()
	for _, m := range []event.Maintenance{{On: true, Message: "back at noon"},
		{On: true, Message: "back at one", Cancels: true}, {On: true}, {}, {}} {
		r := maintenance(m.On, m.Message)
		r.Maintenance.Cancels = m.Cancels
		apply(t, s, r)
		if s.Maintenance() != m {
			t.Errorf("%+v, want %+v", s.Maintenance(), m)
		}
	}
}

func TestMailsLeaveTheOutboxInAnyOrderAndTheirIDsAreNotGivenAgain(t *testing.T) {
	s := asked()
	apply(t, s, ask())
	ids := func() (list []uint64) {
		for _, m := range mailsOf(s) {
			list = append(list, m.ID)
		}
		return list
	}
	gaveUp := mailed(3)
	gaveUp.Mailed.Error = "no such mailbox"
	f := func(r event.Record, want ...uint64) {
		t.Helper()
		e := apply(t, s, r)
		if got := ids(); !slices.Equal(got, want) || e.Settlements != nil {
			t.Errorf("the outbox has %v, want %v; effects %+v", got, want, e)
		}
	}
	f(gaveUp, 1)
	// it was sent, is of no use any more, or never was
	for _, gone := range []uint64{0, 2, 3, 4, math.MaxUint64} {
		f(mailed(gone), 1)
	}
	f(mailed(1))
	r := wrongCode1()
	r.CodeRefused.Expired, r.CodeRefused.Tries = true, 0
	apply(t, s, r)
	if got := ids(); !slices.Equal(got, []uint64{4}) {
		t.Errorf("the outbox has %v", got)
	}
}

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
	for _, r := range []event.Record{halt(1, true), freeze(1, true), ownFees(1, 1, 1, 1),
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
