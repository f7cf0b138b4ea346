package lineartest

import (
	"fmt"
	"slices"
	"sort"
)

// A subscriber of an account receives one event for each record that changes the account. In the
// search, each step that changes the account takes the account's next event, which must match the
// step's effect. So the events have the order of the operations, and none is missing or extra.

// An Event is one record as sent to a subscriber: the changed orders, trades and money of the
// account, as they are after it.
type Event struct {
	Account        int
	Sequence, Prev uint64
	Orders         []OrderRow
	Trades         []OwnTrade
	Money          []Money
	Freezes        bool // it reports a freeze, or the end of one
	Frozen         bool // which of these
}

// An OwnTrade is one execution of an account's order. A trade of the account with itself is sent
// once, as the taker's.
type OwnTrade struct {
	ID     uint64
	Order  int
	Maker  bool
	Price  int64
	Amount int64
}

// Money is an account's funds in one currency.
type Money struct {
	Currency int
	Funds    Funds
}

// A notice is an item sent to a subscriber: an event, or the account's state at its subscription.
type notice struct {
	event        Event
	subscription *Recorded // nil: it is an event
	at           int64
	epoch        int
	gap          bool // of a subscription: no subscriber received the events before it
}

// Notify notes an event received by the subscriber of an account.
func (h *History) Notify(account int, e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	h.notices[account] = append(h.notices[account], notice{event: e, at: h.clock, epoch: h.epoch})
}

// checkSequences returns an error if an event does not follow the one before, or is of another
// account. Only the first subscription, and the first after a restart, may have missed events.
func (h *History) checkSequences() error {
	for account := range h.notices {
		last, sure := uint64(0), int64(0)
		for i := range h.notices[account] {
			t, e := &h.notices[account][i], &h.notices[account][i].event
			wrong, before := "", last
			switch {
			case t.subscription != nil:
				began := t.subscription.Result.Sequence
				t.gap = began > last
				if began < last || t.gap && sure > 0 && !h.restarted(sure, t.subscription.call) {
					wrong = fmt.Sprintf("a subscription begins after event %d", began)
				}
				last, sure = began, t.at
			case sure == 0:
				wrong = "there is an event before the first subscription"
			case e.Account != account:
				wrong = fmt.Sprintf("event %d is of account %d", e.Sequence, e.Account)
			case e.Prev != last || e.Sequence <= last:
				wrong = fmt.Sprintf("event %d follows on %d", e.Sequence, e.Prev)
			default:
				last = e.Sequence
			}
			if wrong != "" {
				return fmt.Errorf("%w: account %d, whose newest event is %d: %s",
					ErrNotLinearizable, account, before, wrong)
			}
		}
	}
	return nil
}

// restarted reports whether the exchange went down between two times.
func (h *History) restarted(from, to int64) bool {
	return slices.ContainsFunc(h.events, func(r *Recorded) bool {
		return r.Operation.Kind == Restart && from < r.call && r.call < to
	})
}

// noticesBefore returns the number of items that each subscriber received before a time.
func (h *History) noticesBefore(call int64) (n [Accounts]int) {
	for account, list := range h.notices {
		n[account] = sort.Search(len(list), func(i int) bool { return list[i].at >= call })
	}
	return n
}

// A change is a step's effect on accounts.
type change struct {
	of     [Accounts]bool // those notified of it
	orders []int          // by number
	trades []trade
	// freezes: it froze or unfroze the account
	freezes bool
}

type trade struct {
	taker, maker           int // accounts
	takerOrder, makerOrder int // orders
	price, amount          int64
}

// isAfterNotices reports whether everything has happened that subscribers had received when a part
// was sent.
func (s *market) isAfterNotices(p *part) bool {
	for account, n := range p.noticesAtCall {
		if s.delivered[account] < n {
			return false
		}
	}
	return true
}

// matchesNotices reports whether the subscribers of all accounts changed by the last step received
// its events, before its epoch ended. None received them before the step was sent: see
// isAfterNotices. A step that subscribes is an item of its subscriber itself.
func (s *market) matchesNotices(p *part, before *market) bool {
	if p.o.Kind == Subscribe {
		s.delivered[p.o.Account]++
		return true
	}
	for account, is := range s.last.of {
		list, at := s.notices[account], s.delivered[account]
		if !is || len(list) == 0 {
			continue
		}
		if at == len(list) {
			return false
		}
		switch t := &list[at]; {
		case t.subscription != nil && !t.gap,
			t.subscription == nil && (t.epoch != p.epoch ||
				!s.fits(&t.event, p.r, before.wallets[account])):
			return false
		case t.subscription == nil:
			s.delivered[account]++
		}
	}
	return true
}

// fits reports whether an event matches the last step's effect on the event's account.
func (s *market) fits(e *Event, r *Result, had Wallet) bool {
	if e.Freezes != s.last.freezes || e.Freezes && e.Frozen != s.frozen[e.Account] {
		return false
	}
	for _, number := range s.last.orders {
		if s.order(number).account == e.Account && !slices.ContainsFunc(e.Orders,
			func(row OrderRow) bool { return row.Order == number }) {
			return false
		}
	}
	for _, row := range e.Orders {
		if o := s.order(row.Order); o == nil || o.account != e.Account || !o.is(row) {
			return false
		}
	}
	for _, m := range e.Money {
		if s.wallets[e.Account][m.Currency] != m.Funds {
			return false
		}
		had[m.Currency] = m.Funds
	}
	return had == s.wallets[e.Account] && slices.EqualFunc(s.last.tradesOf(e.Account, r), e.Trades,
		func(want, received OwnTrade) bool {
			if want.ID == 0 {
				want.ID = received.ID
			}
			return want == received
		})
}

// tradesOf returns an account's trades of a step. Their ids are those of the step's result, if it
// has any.
func (c *change) tradesOf(account int, r *Result) (trades []OwnTrade) {
	for i, t := range c.trades {
		own := OwnTrade{Order: t.takerOrder, Price: t.price, Amount: t.amount}
		if i < len(r.Trades) {
			own.ID = r.Trades[i].ID
		}
		if t.taker != account {
			own.Order, own.Maker = t.makerOrder, true
		}
		if t.taker == account || t.maker == account {
			trades = append(trades, own)
		}
	}
	return trades
}
