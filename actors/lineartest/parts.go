package lineartest

import (
	"math"
	"slices"
)

// A part is the unit that the checker orders. Most operations have one part for the market, and a
// signed one has another for the keys of its account: the exchange checks the key first, and a
// client cannot observe when. Three kinds of operations have more parts:
// - a read of an account has one for the account, which must not be frozen, and one for its key,
// and so has an operation refused as frozen: the key may be revoked between the two checks;
// - a freeze has one for the wallet, and one for the gateways, which receive it later and then
// refuse reads, and one for the market, where the account's subscriber is notified;
// - a cancel of all orders has one for each order, because each is cancelled separately, and one
// for the orders that it had to cancel.
//
// A batch has one part for the keys: its operations share one nonce, which the exchange uses once.
type part struct {
	o    *Operation
	r    *Result
	fate fate

	number, epoch int    // of the operation, in the history
	id            uint64 // of the placed or cancelled order's record; 0: no client received it
	rank          int    // of the id, among all received ones of its pair, from 1; 0: none

	order         int           // of a cancel of all: the order that this part cancels, or 0
	closed        []int         // of a cancel of all: orders that must be closed after it
	unfrozen      bool          // this part only requires that the account is not frozen
	froze         bool          // this part only requires that it is
	atGateway     bool          // this part is a freeze at the gateways
	overlaps      map[int]bool  // of a refusal for funds: the overlapping operations
	besideRefusal bool          // it overlaps with a refusal for funds
	place         place         // of an operation of a batch
	mixed         bool          // of a batch: only some were refused for the key
	noticesAtCall [Accounts]int // items received by each subscriber when it was sent
}

// A fate is whether an operation happened.
type fate uint8

const (
	answered fate = iota // its result decides
	happened             // it has no outcome, and a read showed its effect
	never                // it has no outcome, and a read showed no effect
	unknown              // it has no outcome, and no read decides
)

// A span is a part of an operation with its duration.
type span struct {
	part
	client    int
	call, end int64
}

// parts returns the parts of all operations: those of the market, and those of each account's keys.
func (h *History) parts() (market []span, byAccount [Accounts][]span) {
	all := h.counted()
	overlaps, besideRefusal := overlapping(all)
	requests := batchesOf(all)
	for i := range all {
		r := &all[i]
		o := &r.Operation
		s := span{part{o: o, r: &r.Result, number: r.number, epoch: r.epoch,
			overlaps: overlaps[r.number], besideRefusal: besideRefusal[r.number],
			noticesAtCall: h.noticesBefore(r.call)}, r.client, r.call, r.end}
		if r.Result.Outcome == Unknown {
			s.fate = unknown
		}
		sent := requests[r.batch]
		s.mixed = sent != nil && sent.mixed
		for account := range byAccount {
			if sent != nil && sent.answer != r {
				continue // another one of the batch stands for all
			}
			if o.Kind == Restart || o.Account == account {
				byAccount[account] = append(byAccount[account], s.ofKeys()...)
			}
		}
		switch {
		case r.Result.Outcome.byKey() || o.Kind >= CreateKey && !h.isNotified(o) ||
			s.fate == unknown && o.Kind.reads(),
			sent != nil && sent.answer.Result.Outcome.byKey():
		case o.Kind == CancelAll:
			market = append(market, h.ofCancelAll(s)...)
		case s.fate == unknown:
			h.decidePlace(&s)
			market = append(market, s)
		default:
			if r.Result.Outcome == Done {
				s.id = r.Result.ID
			}
			market = append(market, s)
		}
	}
	market = h.decideEffects(market)
	rank(market)
	placeInBatches(market, all)
	return market, byAccount
}

// isNotified reports whether an operation is a freeze that a subscriber receives.
func (h *History) isNotified(o *Operation) bool {
	return o.Kind == Freeze && len(h.notices[o.Account]) > 0
}

// counted returns copies of the operations that count, each with an end. An operation without an
// outcome ends when the history was settled, or never.
func (h *History) counted() (all []Recorded) {
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

// overlapping returns, by number, the operations that overlap with each refusal for funds, the
// refused one included, and all operations that overlap with any of these refusals.
func overlapping(all []Recorded) (of map[int]map[int]bool, besideRefusal map[int]bool) {
	of, besideRefusal = map[int]map[int]bool{}, map[int]bool{}
	for i := range all {
		r := &all[i]
		if r.Result.Outcome != RefusedFunds {
			continue
		}
		of[r.number] = map[int]bool{}
		for j := range all {
			if other := &all[j]; other.call < r.end && r.call < other.end {
				of[r.number][other.number] = true
				besideRefusal[other.number] = true
			}
		}
	}
	return of, besideRefusal
}

// ofKeys returns the parts of an operation about keys and freezes.
func (s span) ofKeys() []span {
	o := s.o
	switch {
	case o.Kind == ApproveWithdrawal && s.r.Outcome == Done:
		s.unfrozen = true
		return []span{s}
	case o.Kind == Freeze:
		atDoor := s
		atDoor.atGateway = true
		return []span{atDoor, s}
	case o.Kind == ApproveWithdrawal && s.r.Outcome == RefusedFrozen:
		return []span{s}
	case o.Kind.Needs() == 0 && o.Kind < CreateKey:
		return nil
	case o.Kind.reads() && s.r.Outcome == Done && o.Kind != ReadKeys:
		frozen := s
		frozen.unfrozen, frozen.atGateway = true, true
		return []span{frozen, s}
	case s.r.Outcome == RefusedFrozen:
		frozen := s
		frozen.froze = true
		return []span{frozen, s}
	}
	return []span{s}
}

// ofCancelAll returns the parts of a cancel of all orders. If it has an outcome, then each order
// that rested before it was sent, and that it did not cancel, must be closed after it. If it has
// none, it may have cancelled each order that may have been open.
func (h *History) ofCancelAll(s span) (parts []span) {
	one := func(number int) {
		c := s
		c.order = number
		parts = append(parts, c)
	}
	numbers := h.numbersByID()
	var cancelled, candidates []int
	for _, id := range s.r.Cancelled {
		number, known := numbers[id]
		if !known {
			number = -1 // no client placed it, so no part can cancel it
		}
		cancelled = append(cancelled, number)
		one(number)
	}
	for _, r := range h.events {
		if o := &r.Operation; !r.forgotten && o.Kind == Place && o.Force == Rests &&
			o.Account == s.o.Account && s.o.concerns(o.Pair) &&
			!slices.Contains(candidates, o.Order) && r.call < s.end {
			candidates = append(candidates, o.Order)
			if r.Result.Outcome == Done && r.Result.Remains > 0 && r.end < s.call &&
				!slices.Contains(cancelled, o.Order) {
				s.closed = append(s.closed, o.Order)
			}
		}
	}
	if s.fate != unknown {
		return append(parts, s)
	}
	for _, number := range candidates {
		if h.mayBeOpen(number, &s) {
			one(number)
		}
	}
	return parts
}

// numbersByID returns the orders' numbers by the ids that clients received.
func (h *History) numbersByID() map[uint64]int {
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

// mayBeOpen reports whether an order may have been open when a cancel of all was sent.
func (h *History) mayBeOpen(number int, cancel *span) bool {
	placed := false
	for _, r := range h.events {
		if o := &r.Operation; o.Kind == Place && o.Order == number {
			placed = placed || r.Result.Outcome == Unknown ||
				r.Result.Outcome == Done && r.Result.Remains > 0
		}
		if row, seen, _ := r.sees(number); seen && r.end < cancel.call && row.Status != Open {
			return false
		}
	}
	return placed
}

// concerns reports whether a cancel of all orders covers a pair.
func (o *Operation) concerns(pair int) bool { return o.Pair == AllPairs || o.Pair == pair }

// rank numbers the ids of orders and cancels that clients received, for each pair from 1. One
// sequence gives a pair's ids, so its operations must have happened in that order. An id received
// twice gets a rank that no operation can have.
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
