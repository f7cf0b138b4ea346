package lineartest

import (
	"slices"
	"testing"
)

// subscribed is a right history of two accounts with one subscriber each. It has two orders, a
// trade, a cancel of all, a confirmed withdrawal, and an order without an outcome.
func subscribed() *script {
	s := newScript()
	s.did("", Operation{Kind: Deposit, Account: 0, Amount: 10}, Result{})
	for account := range 2 {
		s.subscribe(account, uint64(1-account), Wallet{{int64(1-account) * 100_000, 0}})
	}
	s.did("", Operation{Kind: Deposit, Account: 1, Currency: 1, Amount: 1000}, Result{})
	s.Notify(1, Event{Account: 1, Sequence: 2, Money: []Money{{1, Funds{10_000_000, 0}}}})
	s.did("", Operation{Kind: Place, Account: 0, Order: 1, Price: 100, Amount: 2},
		Result{ID: 1, Remains: 2})
	s.Notify(0, Event{Account: 0, Sequence: 3, Prev: 1, Orders: []OrderRow{{1, 1, Open, 2}},
		Money: []Money{{0, Funds{100_000, 20_000}}}})
	buy := s.begin("", Operation{Kind: Place, Account: 1, Order: 2, Buy: true, Price: 100,
		Amount: 1})
	s.Notify(0, Event{Account: 0, Sequence: 4, Prev: 3, Orders: []OrderRow{{1, 1, Open, 1}},
		Trades: []OwnTrade{{1, 1, true, 100, 1}},
		Money:  []Money{{0, Funds{90_000, 10_000}}, {1, Funds{999_000, 0}}}})
	s.did("seller", Operation{Kind: ReadWallet, Account: 0},
		Result{Funds: Wallet{{90_000, 10_000}, {999_000, 0}}})
	buy.End(Result{Outcome: Done, ID: 2, Trades: []Trade{{1, 1, 100, 1}}})
	s.Notify(1, Event{Account: 1, Sequence: 4, Prev: 2, Orders: []OrderRow{{2, 2, Filled, 0}},
		Trades: []OwnTrade{{1, 2, false, 100, 1}},
		Money:  []Money{{0, Funds{9_980, 0}}, {1, Funds{9_000_000, 0}}}})
	s.did("cancel", Operation{Kind: CancelAll, Account: 0, Pair: AllPairs},
		Result{Cancelled: []uint64{1}})
	s.Notify(0, Event{Account: 0, Sequence: 5, Prev: 4, Orders: []OrderRow{{1, 1, Cancelled, 1}},
		Money: []Money{{0, Funds{90_000, 0}}}})
	s.payOutTo()
	s.Settle()
	return s
}

// payOutTo ends the history with events that arrive after the answers of their operations.
func (s *script) payOutTo() {
	s.did("", Operation{Kind: Withdrawal, Account: 1, Withdrawal: 1, Currency: 1, Amount: 300},
		Result{})
	s.did("", Operation{Kind: ConfirmWithdrawal, Account: 1, Withdrawal: 1}, Result{})
	s.begin("lost", Operation{Kind: Place, Account: 1, Order: 3, Buy: true, Price: 50, Amount: 1})
	s.Notify(1, Event{Account: 1, Sequence: 6, Prev: 4,
		Money: []Money{{1, Funds{9_000_000, 3_000_000}}}})
	s.Notify(1, Event{Account: 1, Sequence: 7, Prev: 6})
	s.Notify(1, Event{Account: 1, Sequence: 8, Prev: 7, Orders: []OrderRow{{3, 3, Open, 1}},
		Money: []Money{{1, Funds{9_000_000, 3_500_000}}}})
	s.did("buyer", Operation{Kind: ReadWallet, Account: 1},
		Result{Funds: Wallet{{9_980, 0}, {9_000_000, 3_500_000}}})
	s.subscribe(1, 8, Wallet{{9_980, 0}, {9_000_000, 3_500_000}}, OrderRow{3, 3, Open, 1})
}

func (s *script) subscribe(account int, sequence uint64, w Wallet, open ...OrderRow) {
	s.did("", Operation{Kind: Subscribe, Account: account},
		Result{Sequence: sequence, Funds: w, Orders: open})
}

// event returns a subscriber's event with a sequence.
func (s *script) event(account int, sequence uint64) *Event {
	for i := range s.notices[account] {
		if t := &s.notices[account][i]; t.subscription == nil && t.event.Sequence == sequence {
			return &t.event
		}
	}
	panic("BUG: there is no such event")
}

// lose removes an event from the history, as if it had not been sent.
func (s *script) lose(account int, sequence uint64) {
	s.notices[account] = slices.DeleteFunc(s.notices[account], func(t notice) bool {
		return t.subscription == nil && t.event.Sequence == sequence
	})
}

// relink makes each event follow the one before it.
func (s *script) relink() {
	for account := range s.notices {
		last := uint64(0)
		for i := range s.notices[account] {
			t := &s.notices[account][i]
			if t.subscription != nil {
				last = t.subscription.Result.Sequence
				continue
			}
			t.event.Prev, last = last, t.event.Sequence
		}
	}
}

func TestErrorsOfEventsAreFound(t *testing.T) {
	subscribed().try(t, "right events", true)
	lose := func(account int, sequence uint64) func(s *script) {
		return func(s *script) { s.lose(account, sequence) }
	}
	for planted, change := range map[string]func(s *script){
		"an event that is lost": lose(0, 4),
		"a lost event that the next one does not follow": func(s *script) {
			s.lose(0, 4)
			s.relink()
		},
		"an event without a change that is lost": func(s *script) {
			s.lose(1, 7)
			s.relink()
		},
		"the last event that is lost": lose(0, 5),
		"an event of another account": func(s *script) { s.event(0, 3).Account = 1 },
		"the event of another account": func(s *script) {
			*s.event(0, 4) = *s.event(1, 4)
			s.relink()
		},
		"an event that follows on another one": func(s *script) { s.event(0, 5).Prev = 3 },
		"the change of another account": func(s *script) {
			s.event(0, 4).Trades = s.event(1, 4).Trades
		},
		"two events that are swapped": func(s *script) {
			a, b := s.event(1, 6), s.event(1, 8)
			a.Sequence, b.Sequence = 8, 6
			*a, *b = *b, *a
			s.relink()
		},
		"an event sent twice": func(s *script) {
			s.Notify(0, Event{Account: 0, Sequence: 5, Prev: 4})
		},
		"an event of nothing": func(s *script) {
			s.Notify(0, Event{Account: 0, Sequence: 9, Prev: 5})
			s.did("", Operation{Kind: ReadBook}, Result{UpdateID: 3,
				Levels: [2][]Level{{{50, 1}}, nil}})
		},
		"an order that is missing in an event": func(s *script) { s.event(0, 5).Orders = nil },
		"an order that an event shows as it was": func(s *script) {
			s.event(0, 4).Orders = s.event(0, 3).Orders
		},
		"an order of another account in an event": func(s *script) {
			s.event(1, 4).Orders = append(s.event(0, 4).Orders, s.event(1, 4).Orders...)
		},
		"a trade that is missing in an event": func(s *script) { s.event(1, 4).Trades = nil },
		"a trade that an event has twice": func(s *script) {
			e := s.event(1, 4)
			e.Trades = append(e.Trades, e.Trades...)
		},
		"a trade under another id": func(s *script) { s.event(1, 4).Trades[0].ID = 2 },
		"money that is missing":    func(s *script) { s.event(0, 4).Money = nil },
		"money that was not there": func(s *script) { s.event(1, 6).Money[0].Funds.Reserve++ },
		"a read without a notified change": func(s *script) {
			s.named["buyer"].Result.Funds[1].Reserve -= 500_000
		},
		"an event that no operation has caused": func(s *script) {
			s.named["cancel"].Result = Result{Outcome: RefusedState}
		},
	} {
		s := subscribed()
		change(s)
		s.try(t, planted, false)
	}
}

func TestAnEventComesAfterItsOperationAndBeforeTheEnd(t *testing.T) {
	deposit := Operation{Kind: Deposit, Amount: 1}
	event := Event{Sequence: 1, Money: []Money{{0, Funds{Unit, 0}}}}
	try := func(when string, right bool, history func(s *script)) {
		t.Helper()
		s := newScript()
		s.subscribe(0, 0, Wallet{})
		history(s)
		s.try(t, "an event "+when, right)
	}
	try("before its operation was sent", false, func(s *script) {
		s.Notify(0, event)
		s.did("", deposit, Result{})
	})
	try("while it is under way", true, func(s *script) {
		r := s.begin("", deposit)
		s.Notify(0, event)
		r.End(Result{Outcome: Done})
	})
	try("later", true, func(s *script) {
		s.did("", deposit, Result{})
		s.did("", Operation{Kind: ReadBook}, Result{})
		s.Notify(0, event)
	})
	try("never", false, func(s *script) { s.did("", deposit, Result{}) })
	try("when all has ended", false, func(s *script) {
		s.did("", deposit, Result{})
		s.Settle()
		s.Notify(0, event)
	})
	try("of an operation without an outcome", true, func(s *script) {
		s.begin("", deposit)
		s.Notify(0, event)
		s.did("", Operation{Kind: ReadWallet}, Result{Funds: Wallet{{Unit, 0}}})
	})
	try("that a read does not show", false, func(s *script) {
		s.begin("", deposit)
		s.Notify(0, event)
		s.did("", Operation{Kind: ReadWallet}, Result{})
	})
	try("that a read shows and no subscriber received", false, func(s *script) {
		s.begin("", deposit)
		s.did("", Operation{Kind: ReadWallet}, Result{Funds: Wallet{{Unit, 0}}})
		s.Settle()
	})
}

// A subscriber receives each freeze that changes something, and its end, once.
func TestErrorsOfEventsAboutFreezesAreFound(t *testing.T) {
	frozen := Event{Sequence: 1, Freezes: true, Frozen: true}
	ended := Event{Sequence: 2, Prev: 1, Freezes: true}
	for what, x := range map[string]struct {
		events []Event
		shows  bool // a snapshot in the end shows the account frozen
		right  bool
	}{
		"right events":            {[]Event{frozen, ended}, false, true},
		"a snapshot of before":    {[]Event{frozen, ended}, true, false},
		"an end that is missing":  {[]Event{frozen}, false, false},
		"a freeze without a word": {[]Event{{Sequence: 1}, ended}, false, false},
		"a freeze that is called its end": {[]Event{{Sequence: 1, Freezes: true}, ended}, false,
			false},
		"a freeze that changed nothing": {[]Event{frozen, {Sequence: 2, Prev: 1, Freezes: true,
			Frozen: true}, {Sequence: 3, Prev: 2, Freezes: true}}, false, false},
	} {
		s := newScript()
		s.subscribe(0, 0, Wallet{})
		for _, on := range []bool{true, true, false} {
			s.did("", Operation{Kind: Freeze, On: on}, Result{})
		}
		for _, e := range x.events {
			s.Notify(0, e)
		}
		s.did("", Operation{Kind: Subscribe}, Result{Frozen: x.shows,
			Sequence: x.events[len(x.events)-1].Sequence})
		s.try(t, what, x.right)
	}
}

// A subscriber of the exchange that went down may have missed its last events. The next one starts
// with the account's state.
func TestOnlyARestartMayLoseEvents(t *testing.T) {
	try := func(what string, right, restarts bool, sequence uint64, w Wallet) {
		t.Helper()
		s := newScript()
		s.subscribe(0, 0, Wallet{})
		s.did("", Operation{Kind: Deposit, Amount: 1}, Result{})
		s.Notify(0, Event{Sequence: 1, Money: []Money{{0, Funds{Unit, 0}}}})
		s.did("", Operation{Kind: Deposit, Amount: 1}, Result{})
		if restarts {
			s.did("", Operation{Kind: Restart}, Result{})
		}
		s.subscribe(0, sequence, w)
		s.did("", Operation{Kind: Deposit, Amount: 1}, Result{})
		s.Notify(0, Event{Sequence: sequence + 1, Prev: sequence,
			Money: []Money{{0, Funds{3 * Unit, 0}}}})
		s.try(t, what, right)
	}
	one, both := Wallet{{Unit, 0}}, Wallet{{2 * Unit, 0}}
	try("an event that a crash lost", true, true, 2, both)
	try("an event that is lost", false, false, 2, both)
	try("a subscription without the last deposit", false, true, 2, one)
	try("a subscription without the last events", false, true, 1, both)
	s := newScript()
	s.did("", Operation{Kind: Deposit, Amount: 1}, Result{})
	s.subscribe(0, 2, one)
	s.did("", Operation{Kind: Restart}, Result{})
	s.subscribe(0, 1, one)
	s.try(t, "a subscription before the last event", false)
	s = newScript()
	s.subscribe(0, 0, Wallet{})
	s.Notify(0, Event{Sequence: 1})
	s.subscribe(0, 1, Wallet{})
	s.try(t, "an event of nothing before a subscription", false)
}
