package lineartest

import (
	"math"
	"slices"
)

// A part is what the checker puts in order. Most operations are one part of the market, and one of
// their account's keys if they are signed: a key is looked at before what it asks for is done, and
// a client cannot tell when. A read's account is looked at apart from its key. A freeze is one part
// for the wallet, and one for gateways, which turn reads away and learn of it later. A cancel of
// all is one part for each order, because each is cancelled by itself, and one for those that it
// had to cancel.
type part struct {
	o     *Operation
	r     *Result
	fate  fate
	order int // of a cancel of all: the one that is cancelled, or 0

	number, epoch int
	id            uint64 // of the order, if anybody was told
	rank          int    // of the id that was told, among all of its pair; 0: none was
	unfrozen      bool   // only this is looked at
	door          bool   // of a freeze: that gateways know of it
	closed        []int  // of a cancel of all: orders that are not open when it is done
	overlap       map[int]struct{}
	besideRefusal bool // it overlaps with a refusal for funds
}

// A fate says what became of an operation.
type fate uint8

const (
	told     fate = iota // its result says it
	happened             // it has no outcome, and its effects were seen
	open                 // it has no outcome
)

// A span is a part with its time, for one object: the market, or an account's keys.
type span struct {
	part
	client    int
	call, end int64
}

// parts gives those that are about books and wallets, and those of each account's keys.
func (h *History) parts() (market []span, byAccount [Accounts][]span) {
	all := h.answered()
	besides := overlaps(all)
	for i := range all {
		r := &all[i]
		o, b := &r.Operation, besides[r.number]
		s := span{part{o: o, r: &r.Result, number: r.number, epoch: r.epoch, overlap: b.with,
			besideRefusal: b.refusal}, r.Client, r.call, r.end}
		if r.Result.Outcome == Unknown {
			s.fate = open
		}
		for account := range byAccount {
			if o.Kind == Restart || o.Account == account {
				byAccount[account] = append(byAccount[account], s.ofKeys()...)
			}
		}
		switch {
		case r.Result.Outcome.byKey() || o.Kind >= CreateKey || s.fate == open && o.Kind.reads():
		case o.Kind == CancelAll:
			market = append(market, h.ofCancelAll(s)...)
		case s.fate == open:
			s.learnPlace(h)
			market = append(market, s)
		default:
			if r.Result.Outcome == Done {
				s.id = r.Result.ID
			}
			market = append(market, s)
		}
	}
	market = h.decided(market)
	rank(market)
	return market, byAccount
}

// answered are copies of the operations that count, each with an end. A read without an answer says
// nothing of the market, and may have used its nonce.
func (h *History) answered() (all []Recorded) {
	for _, r := range h.events {
		c := *r
		if c.end == 0 {
			c.Result = Result{}
			if c.end = c.settled; c.end == 0 {
				c.end = math.MaxInt64
			}
		}
		if !c.forgotten {
			all = append(all, c)
		}
	}
	return all
}

// ofKeys are the parts of an operation that are about keys.
func (s span) ofKeys() []span {
	o := s.o
	switch {
	case o.Kind == ApproveWithdraw && s.r.Outcome == Done:
		s.unfrozen = true
		return []span{s}
	case o.Kind == Freeze:
		atDoor := s
		atDoor.door = true
		return []span{atDoor, s}
	case o.Kind == ApproveWithdraw && s.r.Outcome == RefusedFrozen:
		return []span{s}
	case o.Kind.Needs() == 0 && o.Kind < CreateKey:
		return nil
	case o.Kind.reads() && s.r.Outcome == Done && o.Kind != ReadKeys:
		frozen := s
		frozen.unfrozen, frozen.door = true, true
		return []span{frozen, s}
	}
	return []span{s}
}

// learnPlace takes from reads what became of an order without an outcome. Then it is told that it
// never happened.
func (s *span) learnPlace(h *History) {
	if s.o.Kind != Place {
		return
	}
	for _, r := range h.events {
		switch row, seen, all := r.sees(s.o.Order); {
		case !seen && all && r.call > s.end:
			s.fate = told
		case seen && h.isAlone(s.o.Order):
			s.fate, s.id, s.end = happened, row.ID, min(s.end, r.end)
		}
	}
}

// An effect is what one operation at most can do: cancel an order, make a withdrawal, confirm it or
// end it.
type effect struct {
	kind   Kind // Cancel, Withdraw, ConfirmWithdraw, or CancelWithdraw for each end
	number int
}

func (s *span) effect() (e effect, ok bool) {
	switch kind := s.o.Kind; kind {
	case Cancel:
		return effect{Cancel, s.o.Order}, true
	case CancelAll:
		return effect{Cancel, s.order}, s.order != 0
	case Withdraw, ConfirmWithdraw, CancelWithdraw:
		return effect{kind, s.o.Withdrawal}, true
	case ApproveWithdraw, RefuseWithdraw:
		return effect{CancelWithdraw, s.o.Withdrawal}, true
	}
	return e, false
}

// decided leaves out what cannot have happened of what has no outcome: another one was told to have
// done the same, or a later read does not show it. If a read does, and one alone can have done it,
// that has happened. It keeps a check short: the checker would try both for each of them, whatever
// the others do.
func (h *History) decided(market []span) (left []span) {
	done, candidates := map[effect]bool{}, map[effect]int{}
	for i := range market {
		if s := &market[i]; s.fate == told && s.r.Outcome == Done {
			if e, ok := s.effect(); ok {
				done[e] = true
			}
		}
	}
	never := func(s *span) bool {
		e, ok := s.effect()
		return s.fate == told && s.r.Outcome == Unknown ||
			s.fate == open && ok && (done[e] || h.seen(e, s) == denied)
	}
	for i := range market {
		if s := &market[i]; s.fate == open && !never(s) {
			if e, ok := s.effect(); ok {
				candidates[e]++
			}
		}
	}
	for i := range market {
		s := market[i]
		if never(&s) {
			continue
		}
		if e, ok := s.effect(); ok && s.fate == open && candidates[e] == 1 &&
			h.seen(e, &s) == shown {
			s.fate = happened
		}
		left = append(left, s)
	}
	return left
}

// A sight is what reads that came after an operation say of its effect.
type sight uint8

const (
	unseen sight = iota
	denied       // it was not there
	shown
)

func (h *History) seen(e effect, s *span) (what sight) {
	for _, r := range h.events {
		if r.call <= s.end || r.forgotten || r.Result.Outcome != Done {
			continue
		}
		if e.kind == Cancel {
			if row, seen, _ := r.sees(e.number); seen && row.Status == Cancelled {
				what = shown
			} else if seen {
				return denied
			}
			continue
		}
		if r.Operation.Kind != ReadPending || r.Operation.Account != s.o.Account {
			continue
		}
		at := slices.IndexFunc(r.Result.Pending,
			func(p Pending) bool { return p.Withdrawal == e.number })
		switch {
		case e.kind == Withdraw && at < 0:
			if h.isMoved(e.number) { // and may be at its end
				return what
			}
			return denied
		case e.kind == CancelWithdraw && at >= 0,
			e.kind == ConfirmWithdraw && at >= 0 && !r.Result.Pending[at].Confirmed:
			return denied
		case e.kind != ConfirmWithdraw || at >= 0:
			what = shown
		}
	}
	return what
}

// isMoved reports whether anybody sent more about a withdrawal.
func (h *History) isMoved(number int) bool {
	return slices.ContainsFunc(h.events, func(r *Recorded) bool {
		return r.Operation.Withdrawal == number && r.Operation.Kind != Withdraw
	})
}

// isAlone reports whether one operation alone placed an order of that number.
func (h *History) isAlone(number int) bool {
	n := 0
	for _, r := range h.events {
		if r.Operation.Kind == Place && r.Operation.Order == number {
			n++
		}
	}
	return n == 1
}

// sees is what an answered read says of an order. all: it would have the order, if it were there.
func (r *Recorded) sees(number int) (row OrderRow, seen, all bool) {
	kind := r.Operation.Kind
	if r.forgotten || r.Result.Outcome != Done || kind != ReadOrder && kind != ReadOpen {
		return row, false, false
	}
	for _, row := range r.Result.Orders {
		if row.Order == number {
			return row, true, true
		}
	}
	return row, false, kind == ReadOrder && r.Operation.Order == number
}

// ofCancelAll are the parts of a cancel of all orders. When it has an outcome, what it has not
// cancelled of the orders that were acknowledged before is closed. Without an outcome each may be
// cancelled, but those that were seen otherwise later.
func (h *History) ofCancelAll(s span) (parts []span) {
	one := func(number int) {
		c := s
		c.order = number
		parts = append(parts, c)
	}
	numbers := h.numbers()
	var cancelled, candidates []int
	for _, id := range s.r.Cancelled {
		number, known := numbers[id]
		if !known {
			number = -1 // nobody placed it, and nobody can cancel it
		}
		cancelled = append(cancelled, number)
		one(number)
	}
	for _, r := range h.events {
		if o := &r.Operation; !r.forgotten && o.Kind == Place && o.Account == s.o.Account &&
			s.o.concerns(o.Pair) &&
			!slices.Contains(candidates, o.Order) && r.call < s.end {
			candidates = append(candidates, o.Order)
			if r.Result.Outcome == Done && r.Result.Remains > 0 && r.end < s.call &&
				!slices.Contains(cancelled, o.Order) {
				s.closed = append(s.closed, o.Order)
			}
		}
	}
	if s.fate != open {
		return append(parts, s)
	}
	for _, number := range candidates {
		if h.mayBeCancelled(number, &s) {
			one(number)
		}
	}
	return parts
}

// numbers gives the orders by the ids that somebody was told.
func (h *History) numbers() map[uint64]int {
	by := map[uint64]int{}
	for _, r := range h.events {
		if r.Operation.Kind == Place && r.Result.Outcome == Done {
			by[r.Result.ID] = r.Operation.Order
		}
		for _, row := range r.Result.Orders {
			by[row.ID] = row.Order
		}
	}
	return by
}

// mayBeCancelled reports whether an order may have been open when a cancel was sent.
func (h *History) mayBeCancelled(number int, s *span) bool {
	placed := false
	for _, r := range h.events {
		if o := &r.Operation; o.Kind == Place && o.Order == number {
			placed = placed || r.Result.Outcome == Unknown ||
				r.Result.Outcome == Done && r.Result.Remains > 0
		}
		if row, seen, _ := r.sees(number); seen && r.end < s.call && row.Status != Open {
			return false
		}
	}
	return placed
}

// concerns reports whether a cancel of all is about a pair.
func (o *Operation) concerns(pair int) bool { return o.Pair == AllPairs || o.Pair == pair }

// A beside says which operations overlap with one that was refused for funds, and whether one
// overlaps with any such.
type beside struct {
	with    map[int]struct{}
	refusal bool
}

func overlaps(all []Recorded) map[int]beside {
	by := map[int]beside{}
	for i := range all {
		r := &all[i]
		if r.Result.Outcome != RefusedFunds {
			continue
		}
		own := by[r.number]
		own.with = map[int]struct{}{}
		for j := range all {
			if other := &all[j]; other.call < r.end && r.call < other.end {
				own.with[other.number] = struct{}{}
				b := by[other.number]
				b.refusal = true
				by[other.number] = b
			}
		}
		own.refusal = by[r.number].refusal
		by[r.number] = own
	}
	return by
}

// rank says of each id of an order or a cancel that somebody was told which one it is among those
// of its pair: one counter gives them all, so the operations must have happened in that order. An
// id that is there twice has no place in it.
func rank(market []span) {
	var ids [Pairs][]uint64
	times := map[uint64]int{}
	for i := range market {
		if s := &market[i]; s.id != 0 {
			ids[s.o.Pair] = append(ids[s.o.Pair], s.id)
			times[s.id]++
		}
	}
	for pair := range ids {
		slices.Sort(ids[pair])
	}
	for i := range market {
		switch s := &market[i]; {
		case s.id == 0:
		case times[s.id] > 1:
			s.rank = -1
		default:
			at, _ := slices.BinarySearch(ids[s.o.Pair], s.id)
			s.rank = at + 1
		}
	}
}
