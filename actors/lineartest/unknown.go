package lineartest

import "slices"

// An operation without an outcome makes the search try two histories: one in which it happened, and
// one in which it did not. Later reads often decide between them. The methods here check the reads
// before the search begins, which keeps a check short.

// decidePlace decides the fate of an order without an outcome, if a read or an event shows the
// order, or should and does not. An amend had no effect if no event shows its order.
func (h *History) decidePlace(s *span) {
	if s.o.Kind != Place && s.o.Kind != Amend {
		return
	}
	row, found, complete := h.lastNotice(s, s.o.Order)
	if !found && complete {
		s.fate = never
		return
	}
	if s.o.Kind == Amend {
		return
	}
	if found && h.isPlacedOnce(s.o.Order) {
		s.fate, s.id = happened, row.ID
	}
	for _, r := range h.events {
		switch row, seen, wouldShow := r.sees(s.o.Order); {
		case !seen && wouldShow && r.call > s.end:
			s.fate = never
		case seen && h.isPlacedOnce(s.o.Order):
			s.fate, s.id, s.end = happened, row.ID, min(s.end, r.end)
		}
	}
}

// lastNotice returns the newest notice about an order to the subscriber of an operation's account,
// in the operation's epoch. complete is true if the subscriber received all events of that epoch.
func (h *History) lastNotice(s *span, number int) (row OrderRow, found, complete bool) {
	list := h.notices[s.o.Account]
	complete = len(list) > 0 && list[0].at < s.call
	for i := range list {
		if list[i].epoch != s.epoch {
			continue
		}
		complete = complete && !list[i].gap
		for _, of := range list[i].event.Orders {
			if of.Order == number {
				row, found = of, true
			}
		}
	}
	return row, found, complete
}

// An effect is one that at most one operation can have: cancel an order, make a withdrawal, confirm
// a withdrawal, or end it.
type effect struct {
	kind   Kind // Cancel, Withdrawal, ConfirmWithdrawal, or CancelWithdrawal for each kind of end
	number int  // of the order or the withdrawal
}

func (s *span) effect() (e effect, ok bool) {
	switch kind := s.o.Kind; kind {
	case Cancel:
		return effect{Cancel, s.o.Order}, true
	case CancelAll:
		return effect{Cancel, s.order}, s.order != 0
	case Withdrawal, ConfirmWithdrawal, CancelWithdrawal:
		return effect{kind, s.o.Withdrawal}, true
	case ApproveWithdrawal, RefuseWithdrawal:
		return effect{CancelWithdrawal, s.o.Withdrawal}, true
	}
	return e, false
}

// decideEffects drops each operation without an outcome that cannot have happened: another one's
// answer claims the effect, or a later read does not show it. If a read shows an effect that only
// one operation can have had, that operation happened.
func (h *History) decideEffects(market []span) (left []span) {
	done, candidates := map[effect]bool{}, map[effect]int{}
	for i := range market {
		if s := &market[i]; s.fate == answered && s.r.Outcome == Done {
			if e, ok := s.effect(); ok {
				done[e] = true
			}
		}
	}
	impossible := func(s *span) bool {
		e, ok := s.effect()
		return s.fate == never ||
			s.fate == unknown && ok && (done[e] || h.seen(e, s) == denied)
	}
	for i := range market {
		if s := &market[i]; s.fate == unknown && !impossible(s) {
			if e, ok := s.effect(); ok {
				candidates[e]++
			}
		}
	}
	for i := range market {
		s := market[i]
		if impossible(&s) {
			continue
		}
		if e, ok := s.effect(); ok && s.fate == unknown && candidates[e] == 1 &&
			h.seen(e, &s) == shown {
			s.fate = happened
		}
		left = append(left, s)
	}
	return left
}

// A evidence is the evidence of later reads about an operation's effect.
type evidence uint8

const (
	unseen evidence = iota // no read would show it
	denied                 // a read would show it, and does not
	shown
)

// seen checks the events of the epoch, and the reads sent after s ended.
func (h *History) seen(e effect, s *span) (so evidence) {
	if e.kind == Cancel {
		switch row, found, complete := h.lastNotice(s, e.number); {
		case found && row.Status == Cancelled:
			so = shown
		case complete:
			return denied
		}
	}
	for _, r := range h.events {
		if r.call <= s.end || r.forgotten || r.Result.Outcome != Done {
			continue
		}
		if e.kind == Cancel {
			if row, seen, _ := r.sees(e.number); seen && row.Status == Cancelled {
				so = shown
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
		case e.kind == Withdrawal && at < 0:
			if h.isMoved(e.number) { // and may be finished
				return so
			}
			return denied
		case e.kind == CancelWithdrawal && at >= 0,
			e.kind == ConfirmWithdrawal && at >= 0 && !r.Result.Pending[at].Confirmed:
			return denied
		case e.kind != ConfirmWithdrawal || at >= 0:
			so = shown
		}
	}
	return so
}

// isMoved reports whether a client or the operator sent more about a withdrawal.
func (h *History) isMoved(number int) bool {
	return slices.ContainsFunc(h.events, func(r *Recorded) bool {
		return r.Operation.Withdrawal == number && r.Operation.Kind != Withdrawal
	})
}

// isPlacedOnce reports whether exactly one operation placed an order with that number.
func (h *History) isPlacedOnce(number int) bool {
	n := 0
	for _, r := range h.events {
		if r.Operation.Kind == Place && r.Operation.Order == number {
			n++
		}
	}
	return n == 1
}

// sees returns an answered read's row of an order. wouldShow is true if the read must show the
// order wherever there is one.
func (r *Recorded) sees(number int) (row OrderRow, seen, wouldShow bool) {
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
