package state

import (
	"fmt"
	"testing"

	"exchange/core/event"
)

// named returns a record that requests a unit of alice's BTC under a client id.
func named(number uint64, id string) event.Record {
	return event.Record{Kind: event.KindWithdrawal, TimeUs: 40,
		Withdrawal: event.Withdrawal{ID: number, Account: 1, Currency: 1, Amount: 1,
			Address: "to alice", ClientID: clientID(id)}}
}

func cancelled(number uint64) event.Record {
	return event.Record{Kind: event.KindWithdrawalStatus, TimeUs: 41,
		WithdrawalStatus: event.WithdrawalStatus{ID: number, Account: 1, Currency: 1, Amount: 1,
			To: event.WithdrawalCancelled}}
}

// namedOnes is asked with three withdrawals that have client ids, the second of which is finished.
func namedOnes() *State {
	s := asked()
	apply(must{}, s, named(3, "first"), named(5, "second"), named(6, "third"), cancelled(5))
	return s
}

func TestAClientIDIsOfOneWithdrawalOfAnAccount(t *testing.T) {
	s := namedOnes()
	if w := s.Withdrawal(6); w == nil || w.ClientID != clientID("third") {
		t.Errorf("the third is %+v", w)
	}
	bobs := named(7, "third")
	bobs.Withdrawal.Account, bobs.Withdrawal.Currency = 2, 2
	apply(t, s, bobs, named(8, "fourth"))
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	for number, id := range map[uint64]string{3: "first", 5: "second", 6: "third", 8: "fourth"} {
		refusedBy(t, twin(t, s), id, named(9, id),
			fmt.Sprintf("withdrawal %d of account alice has the client id %s already", number, id))
	}
	refusedBy(t, s, "a number below", named(7, "fifth"), "withdrawal 7 is pending already")
}

func TestNumbersOfWithdrawalsWithClientIDsGrow(t *testing.T) {
	s := asked()
	apply(t, s, named(5, "first"), cancelled(5))
	refusedBy(t, s, "a number below", named(4, "second"),
		"withdrawal 4 of account alice is not above the last one with a client id")
}

// The newest withdrawals with an id keep it, and older ones while they are pending: the memory is
// bounded, and a repeat is refused as long. An image preserves this.
func TestAnOldClientIDOfAWithdrawalIsFreeOnceItIsNotPending(t *testing.T) {
	s := asked()
	for n := range uint64(event.KeptWithdrawalIDs + 2) {
		apply(t, s, named(10+n, fmt.Sprint("n-", n)))
		if n > 1 {
			apply(t, s, cancelled(10+n))
		}
	}
	f := func(what, id string, by, kept uint64) {
		t.Helper()
		s = twin(t, s)
		ids := s.Account(1).WithdrawalIDs()
		if got := ids.Withdrawal(clientID(id)); got != by || ids.Len() != int(kept) {
			t.Errorf("%s: %s is of withdrawal %d, want %d; %d are kept, want %d", what, id, got, by,
				ids.Len(), kept)
		}
	}
	f("the oldest is pending", "n-0", 10, event.KeptWithdrawalIDs+2)
	apply(t, s, cancelled(10))
	f("the oldest has ended", "n-0", 0, event.KeptWithdrawalIDs+1)
	f("the next is pending", "n-1", 11, event.KeptWithdrawalIDs+1)
	apply(t, s, named(2000, "n-0"), cancelled(2000))
	f("one more", "n-2", 0, event.KeptWithdrawalIDs+1)
	f("one more", "n-3", 13, event.KeptWithdrawalIDs+1)
	apply(t, s, cancelled(11))
	f("the next has ended", "n-1", 0, event.KeptWithdrawalIDs)
	f("the newest", "n-0", 2000, event.KeptWithdrawalIDs)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestImpossibleClientIDsOfWithdrawalsAreRefused(t *testing.T) {
	f := func(name string, spoil func(w *WithdrawalIDs), text string) {
		t.Helper()
		impossible(t, name, namedOnes(), func(s *State) {
			spoil(&s.accounts[0].rare.withdrawalIDs)
		}, text)
	}
	type W = *WithdrawalIDs
	f("twice", func(w W) { w.list[1].id = w.list[0].id }, "that of another one")
	f("none", func(w W) { w.list[1].id = event.ClientID{} }, "has no client id")
	f("no number", func(w W) { w.list[0].number = 0 }, "not in order at 0")
	f("a number that was not given", func(w W) { w.list[2].number = 7 }, "not in order at 7")
	f("a number twice", func(w W) { w.list[1].number = 3 }, "not in order at 3")
	f("too many", func(w W) {
		w.list = append(w.list[:0:0], namedWithdrawal{4, clientID("old")})
		for n := range uint64(event.KeptWithdrawalIDs) {
			w.list = append(w.list, namedWithdrawal{5 + n, clientID(fmt.Sprint("n-", n))})
		}
	}, "keeps its client id for too long")
}
