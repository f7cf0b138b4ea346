package state

import (
	"strings"
	"testing"

	"exchange/core/event"
)

// twin returns an independent state equal to s.
func twin(t *testing.T, s *State) *State {
	t.Helper()
	other, err := Decode(s.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// compared compares two states, and calls between after each chunk.
func compared(one, other *State, between func()) (err error) {
	var c Comparison
	for done := false; !done; {
		if done, err = c.Next(one, other); !done {
			between()
		}
	}
	return err
}

// findsIn returns a function that checks that a comparison finds a change of one of two equal
// states.
func findsIn(t *testing.T, made func() *State) func(name string, change func(s *State),
	want string) {
	return func(name string, change func(s *State), want string) {
		t.Helper()
		one := made()
		other := twin(t, one)
		if err := compared(one, other, func() {}); err != nil {
			t.Fatalf("equal states: %v", err)
		}
		change(other)
		err := compared(one, other, func() {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestAComparisonFindsEachChangedPart(t *testing.T) {
	f := findsIn(t, func() *State {
		s := everything()
		apply(t, s, addressed(2, "bob@new.example", 2000, 3000))
		return s
	})
	f("a sequence", func(s *State) { s.seq++ }, "at sequences")
	f("an id", func(s *State) { s.lastTrade++ }, "differ in counters")
	f("a sum", func(s *State) { s.currencies[1].Deposited = s.currencies[0].Deposited },
		"differ in counters")
	f("a withdrawal", func(s *State) {
		for _, w := range s.withdrawals {
			w.Tries++
		}
	}, "in account")
	f("a withdrawal too many", func(s *State) { s.withdrawals[1<<40] = new(Withdrawal) },
		"differ in counters")
	f("a mail", func(s *State) {
		for _, m := range s.outbox.mails {
			m.TimeUs++
			break
		}
	}, "in account")
	f("a mail about an address", func(s *State) {
		for m := range s.MailsAfter(0) {
			m.Change.HoldEndsUs++
		}
	}, "in account bob")
	f("a mail too many", func(s *State) { s.outbox.mails[1<<40] = new(Mail) },
		"differ in counters")
	f("an open order", func(s *State) {
		for o := range s.accounts[1].Open.Newest() {
			s.accounts[1].Open.Remove(o.ID)
			break
		}
	}, "in the open orders of account bob")
	f("an open order's side", func(s *State) {
		for o := range s.accounts[1].Open.Newest() {
			s.accounts[1].Open.Remove(o.ID)
			s.accounts[1].Open.Add(o.ID, o.Pair, o.Side.Opposite())
			break
		}
	}, "in the open orders of account bob")
	f("maintenance", func(s *State) { s.maintenance.Message += "!" }, "maintenance")
	f("an account", func(s *State) { s.accounts[1].Email += "x" }, "in account bob")
	f("a count of trades", func(s *State) { s.tradeCounts[2]++ }, "in account bob")
	f("an account too many", func(s *State) { s.accounts = append(s.accounts, s.accounts[0]) },
		"accounts")
	f("a key", func(s *State) { s.keys[1].Nonce++ }, "in key number 2")
	f("a halt", func(s *State) { s.pairs[0].Halted = !s.pairs[0].Halted }, "in the market of")
	f("a market", func(s *State) { s.pairs[0].Market.UpdateID++ }, "in the market of")
	f("an order", func(s *State) {
		for o := range s.pairs[0].Book.Orders(2) {
			s.pairs[0].Book.Cancel(o.ID)
			o.TimeUs++
			s.pairs[0].Book.Add(o)
			break
		}
	}, "in the book of")
}

func TestAComparisonFindsInstructionsThatDiffer(t *testing.T) {
	f := findsIn(t, speaking)
	f("a client id of a withdrawal", func(s *State) {
		s.accounts[1].own().withdrawalIDs.Add(9, clientID("x"), nil)
	}, "in account bob")
	f("settings", func(s *State) { s.accounts[0].own().selfTrade++ }, "in account alice")
	f("a switch", func(s *State) { s.accounts[0].rare.switches[1].DueUs++ }, "in account alice")
	f("the end of a maintenance", func(s *State) { s.maintainedUs++ }, "maintenance")
	f("the end of an order", func(s *State) { s.pairs[0].instructed[3].ExpireUs++ },
		"in the open orders of account alice")
	f("the value of an order", func(s *State) {
		s.pairs[0].instructed[12].Value = s.currencies[0].Deposited
	}, "in the open orders of account alice")
	f("an order without instructions", func(s *State) { delete(s.pairs[0].instructed, 3) },
		"in the open orders of account alice")
	f("a stop that is gone", func(s *State) { s.pairs[0].Stops.Remove(6) },
		"in the stops of BTC_USD")
	f("another trigger", func(s *State) {
		stop, _ := s.pairs[0].Stops.Remove(6)
		stop.Trigger.Price++
		s.pairs[0].Stops.Add(stop)
	}, "in the stops of BTC_USD")
	f("another queue", func(s *State) {
		stop, _ := s.pairs[0].Stops.Remove(7)
		s.pairs[0].Stops.Add(stop)
	}, "in the stops of BTC_USD")
	f("a hidden part", func(s *State) { s.pairs[0].Book.Amend(2, 2*coin, 1) },
		"in the book of BTC_USD")
}

func TestAComparisonContinuesWhileBothStatesAdvance(t *testing.T) {
	one := small()
	other := twin(t, one)
	parts, ids := 0, one.lastOrder
	err := compared(one, other, func() {
		parts++
		for range 700 { // more than fit into one chunk
			ids++
			o := event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 60,
				Order: event.Order{ID: ids, Account: 2, Side: 1, Price: 1, Amount: coin,
					Remaining: coin}}
			if parts > 8 {
				return
			}
			apply(t, one, o)
			apply(t, other, o)
		}
	})
	if err != nil {
		t.Error(err)
	}
	if parts < 6 {
		t.Errorf("%d parts: the orders were not compared in pieces", parts)
	}
}
