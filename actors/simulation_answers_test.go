package actors

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/prove/spec"
)

// answered checks an answer: its record must be durable, and in no other answer.
func (s *sim) answered(q *played, c *Command, err error) {
	s.swapSending(nil)
	if q.unfit && !turnedAwayBy(err) {
		s.violate("%s: engine %d accepts it, and the store may lose it: %v", q.what,
			q.l.number, err)
	}
	if err != nil {
		s.notAnswered(q, err)
		return
	}
	q.l.open[q.account]--
	q.checked = true
	if q.all && c.Outcome() == Accepted {
		s.say("  %s: %v", q.what, c.CancelledOrders())
		s.outcomes["cancel all"+kindOf(q.filter)+", accepted"]++
		s.cancelledAll(q.l, s.model.Accounts[q.account-1], q.filter, q.seq, c.CancelledOrders())
		s.mayBeAccepted(q)
		s.checkNonceTaken(q)
		c.Free()
		return
	}
	r := c.Record()
	record := string(r.Append(nil))
	seq := s.claim(q, record)
	if seq == 0 {
		return
	}
	s.say("  %s: record %d", q.what, seq)
	if reason := r.Refusal.Reason; q.key != nil &&
		(r.Kind != event.KindRefusal ||
			reason != event.RefusedNonce && reason != event.RefusedKey) {
		s.checkNonceTaken(q)
	}
	if c.Outcome() == Accepted {
		s.outcomes[r.Kind.String()+", accepted"]++
		if r.Kind == event.KindWithdrawal && !r.Withdrawal.ClientID.IsZero() {
			s.outcomes["withdraw with a client id, accepted"]++
		}
		s.mayBeAccepted(q)
		s.accepted(q, seq, r)
	} else {
		if r.Kind == event.KindRefusal && r.Refusal.Reason == event.RefusedNonce {
			if q.gate != nil {
				s.violate("%s: a command over a socket is refused for its nonce", q.what)
			}
			s.checkLastNonce(q.key, q.nonce, q.taken, c.LastNonce())
		}
		if r.Kind == event.KindRefusal {
			s.outcomes["refused for "+event.RefusalName(r.Refusal.Reason)]++
		} else {
			s.outcomes[r.Kind.String()]++
		}
		equal := []uint64{seq}
		if len(q.batch) > 1 {
			equal = slices.DeleteFunc(slices.Clone(s.equal[record]),
				func(at uint64) bool { return at <= q.seq })
		}
		s.refused(q, equal, c)
	}
	c.Free()
}

// notAnswered records a command whose outcome stays unknown, or that was refused at admission.
func (s *sim) notAnswered(q *played, err error) {
	switch {
	case errors.Is(err, committed.ErrTimeout):
		s.outcomes["unknown"]++
		if !q.withdrawalID.IsZero() {
			s.unknownIDs[namedWithdrawal{q.account, q.withdrawalID}] = true
		}
	case turnedAwayBy(err):
		var history *committed.HistoryError
		if errors.As(err, &history) {
			s.outcomes["orders, turned away because the store did not answer"]++
		}
		s.outcomes["turned away: "+err.Error()]++
		q.l.open[q.account]--
		if q.key != nil {
			at := spec.KeyNonce{Key: q.key.Number, Nonce: q.nonce}
			s.sent[at]--
			s.checkSent(at)
		}
	default:
		s.violate("%s: %w", q.what, err)
	}
	s.say("  %s: %v", q.what, err)
}

// claim returns the sequence of an answer's record. Each record is answered once.
func (s *sim) claim(q *played, record string) uint64 {
	list := s.records[record]
	if len(list) == 0 {
		s.violate("engine %d answers %s with a record that is not durable, or was answered before",
			q.l.number, q.what)
		return 0
	}
	s.records[record] = list[1:]
	q.l.answered = max(q.l.answered, list[0])
	s.highestAnswered = max(s.highestAnswered, q.l.answered)
	return list[0]
}

// checkNonceTaken checks that a nonce is above all that were answered as taken before its command,
// or read, began; for a parallel key, that it was not taken before.
func (s *sim) checkNonceTaken(q *played) {
	if q.gate != nil {
		s.outcomes["commands of sockets, decided"]++
		return
	}
	s.checkReadNonceTaken(q.l, q.key, q.nonce, q.taken, q.batch != nil && !q.isFirst())
}

// checkReadNonceTaken is checkNonceTaken for a read. again: a command of the same batch has taken
// it.
func (s *sim) checkReadNonceTaken(l *life, key *directory.Key, nonce, before uint64, again bool) {
	if key.NonceWindow > 0 {
		at := spec.KeyNonce{Key: key.Number, Nonce: nonce}
		if l.tookOnce[at] && !again {
			s.violate("engine %d takes nonce %d of %s twice", l.number, nonce, key.Public)
		}
		l.tookOnce[at] = true
	} else if nonce <= before {
		s.violate("engine %d takes nonce %d of %s, and it had taken %d before that was sent",
			l.number, nonce, key.Public, before)
	}
	l.taken[key.Number] = max(l.taken[key.Number], nonce)
}

// checkLastNonce checks the last nonce in a refusal. It is not below the refused nonce, nor below
// one answered as taken before. A client may have sent it: nextNonce goes one above the highest.
func (s *sim) checkLastNonce(key *directory.Key, nonce, before, last uint64) {
	if last < nonce || last < before || last > s.nonces[key.Public]+1 {
		s.violate(
			"nonce %d of %s is refused because %d was the last; %d was taken before, and %d is "+
				"the highest that was sent",
			nonce, key.Public, last, before, s.nonces[key.Public])
	}
}

// mayBeAccepted checks that neither a freeze of its account nor the revocation of its key was
// acknowledged before a command began.
func (s *sim) mayBeAccepted(q *played) {
	if q.key == nil {
		return
	}
	for _, name := range []string{q.key.Account.Name, q.key.Public} {
		if s.isBarred(name, q.begun) {
			s.violate("%s: it is accepted, and %s was barred before it began", q.what, name)
		}
	}
}

// isBarred reports whether an account or a key was barred when something began.
func (s *sim) isBarred(name string, begun int) bool {
	b := s.barred[name]
	return b != nil && b.since > 0 && b.since < begun
}

// accepted checks that the record matches the request.
func (s *sim) accepted(q *played, seq uint64, r *event.Record) {
	asked := true
	switch r.Kind {
	case event.KindOrder, event.KindInstructed, event.KindStop:
		asked = s.isOrdered(q, seq, r)
	case event.KindAmended:
		asked = s.isAmended(q, r)
	case event.KindSettings:
		asked = r.Settings.Account == q.account && r.Settings.Nonce == q.nonce &&
			r.Settings.SelfTrade == q.setting
	case event.KindSwitch:
		asked = q.isSwitch(&r.Switch)
	case event.KindCancel:
		asked = q.key == nil || r.Cancel.Account == q.account && r.Cancel.Nonce == q.nonce &&
			s.isNamedOrder(q, r.Cancel.Order)
	case event.KindWithdrawal:
		w := &r.Withdrawal
		asked = w.Account == q.account && w.Nonce == q.nonce && w.Currency == q.number &&
			w.Amount == q.amount && w.ClientID == q.withdrawalID
		s.withdrawals = append(s.withdrawals, w.ID)
	case event.KindAdjusted:
		j := &r.Adjusted
		asked = j.Account == q.adjusts && j.Currency == q.number && j.Amount == q.amount &&
			j.ClientID == q.withdrawalID && r.Operator == "op"
	case event.KindWithdrawalStatus:
		m := &r.WithdrawalStatus
		asked = m.ID == q.id && m.To == q.to && (q.key == nil || m.Account == q.account)
		s.movedAsOperator(q, m)
		if m.To == event.WithdrawalVerified {
			s.checkCode(q, seq)
		}
	}
	if !asked {
		s.violate("%s: it is answered with record %d, which is another: %+v", q.what, seq, r)
	}
}

// movedAsOperator checks that no money has left an account whose freeze was acknowledged before,
// unless the operator allowed that.
func (s *sim) movedAsOperator(q *played, m *event.WithdrawalStatus) {
	name := s.model.Accounts[m.Account-1].Name
	switch {
	case q.key != nil:
	case m.To == event.WithdrawalApproved && !q.despite &&
		(m.DespiteFreeze || s.isBarred(name, q.begun)):
		s.violate("%s: it is approved, and %s is frozen", q.what, name)
	case m.DespiteFreeze:
		s.outcomes["withdraws, approved despite a freeze"]++
	case m.To == event.WithdrawalRefused && s.model.Withdrawals[m.ID].Was == event.WithdrawalNew:
		s.outcomes["withdraws, refused while new"]++
	}
}

// kindOf names the filter of a cancel of all, beside the pair.
func kindOf(f CancelFilter) string {
	switch {
	case f.Side != 0:
		return " of a side"
	case !f.Prefix.IsZero():
		return " of a prefix"
	}
	return ""
}

// passes reports whether a cancel of all concerns an order.
func passes(o *spec.Order, f CancelFilter) bool {
	return (f.Pair == nil || f.Pair.Number == o.Pair) && (f.Side == 0 || f.Side == o.Side) &&
		strings.HasPrefix(o.ClientID.String(), f.Prefix.String())
}

// cancelledAll checks a cancel of all orders: its orders no longer rest, and pass its filter. No
// order that rested when it began and passes the filter still rests.
func (s *sim) cancelledAll(l *life, a *spec.Account, f CancelFilter, since uint64,
	orders []uint64) {
	for _, id := range orders {
		if o, _ := s.model.Open(id); o != nil {
			s.violate("engine %d says that order %d is cancelled, and it rests", l.number, id)
		}
		if c, done := s.model.Closed(id); done && (c.Account != a.ID || !passes(&c.Order, f)) {
			s.violate("engine %d cancels %+v, and was asked for %+v", l.number, c, f)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.OpenAt(since))) {
		if o, _ := s.model.Open(id); o != nil && passes(o, f) {
			s.violate(
				"engine %d says that all orders of %s are cancelled, and order %d rests as it "+
					"did before", l.number, a.Name, id)
		}
	}
}

// refused checks that the reason of a refusal holds. Commands of one batch may have equal refusals
// that cannot be attributed: the reason must hold at one of them.
func (s *sim) refused(q *played, equal []uint64, c *Command) {
	r := c.Record()
	if r.Kind != event.KindRefusal {
		if h := q.code.history; r.CodeRefused.Expired && !h.IsZero() && h != s.model.History {
			s.outcomes["codes of an earlier history"]++
		}
		return
	}
	if !slices.ContainsFunc(equal, func(seq uint64) bool {
		return !s.isUnfounded(q, seq, c) && !s.isWithinLimit(q, seq, r.Refusal)
	}) {
		s.violate("%s: it is refused for %s, by record %v, and that is not so", q.what,
			event.RefusalName(r.Refusal.Reason), equal)
	}
}

// isUnfounded reports whether a refusal's reason does not hold. Limits are isWithinLimit's.
func (s *sim) isUnfounded(q *played, seq uint64, c *Command) bool {
	f := &c.Record().Refusal
	a := s.model.Accounts[f.Account-1]
	quiet := s.isKnown(q, a, seq)
	switch f.Reason {
	case event.RefusedFunds:
		return s.hasFunds(q, a, seq, c)
	case event.RefusedClientID:
		return !s.model.MayRefuseID(a, q.req.ClientID, c.TakenBy(), q.released,
			c.Record().TimeUs)
	case event.RefusedWithdrawalID:
		// "Already used" is only answered for a durable withdrawal.
		w := s.model.Withdrawals[c.TakenBy()]
		return w == nil || w.Seq >= seq || w.Account != a.ID || w.ClientID != q.withdrawalID ||
			s.model.WithdrawalNamed(a, q.withdrawalID) != w.ID
	case event.RefusedNotOpen:
		return q.key != nil && s.wasOpen(q, seq)
	case event.RefusedNoOrders:
		rested := a.OpenAt(q.seq)
		for _, o := range a.OpenAt(seq) {
			_, before := rested[o.ID]
			if (quiet || before) && passes(&o, q.filter) {
				return true
			}
		}
	case event.RefusedWithdrawal:
		w := s.model.Withdrawals[q.id]
		return quiet && w != nil && max(w.Seq, w.Moved) < seq && w.Account == f.Account &&
			w.MayMove(q.to)
	case event.RefusedTries:
		w := s.model.Withdrawals[q.id]
		return w == nil || w.Tries < s.options.Withdrawal.CodeTries
	case event.RefusedHeld:
		return c.Record().TimeUs >= a.HoldEndsUs || q.to == event.WithdrawalRefused ||
			q.to == event.WithdrawalCancelled
	case event.RefusedKey:
		return !s.model.Keys[f.Key-1].Revoked
	case event.RefusedFrozen:
		if q.key == nil {
			s.outcomes["withdraws, not approved for a freeze"]++
		}
		return a.Freezes == 0 || q.key == nil && (q.despite || q.to != event.WithdrawalApproved)
	}
	return s.isUnfoundedByMarket(q, seq, c)
}

// isNamedOrder reports whether an order is the one that a cancel names, by its id or by its client
// order id.
func (s *sim) isNamedOrder(q *played, order uint64) bool {
	if q.named.IsZero() {
		return order == q.order
	}
	s.outcomes["cancel by client order id, accepted"]++
	return s.model.Accounts[q.account-1].HasTaken(q.named, order)
}

// wasOpen reports whether the order that a cancel names is open, and was answered to rest before
// the cancel began. A cancel by a client order id waits for an order that its key has sent before.
// If it finds none, no such order can still come to rest under that id, unless the key is for
// parallel use.
func (s *sim) wasOpen(q *played, seq uint64) bool {
	if !q.named.IsZero() {
		s.outcomes["cancel by client order id, refused for not_open"]++
		for _, order := range q.l.named[:q.namedBefore] {
			if order.account == q.account && order.id == q.named &&
				order.at.Key == q.key.Number && order.at.Nonce < q.nonce && order.at.Nonce > 0 &&
				q.key.NonceWindow == 0 {
				s.missing[order] = true
			}
		}
	}
	for _, o := range s.model.Accounts[q.account-1].OpenAt(seq) {
		if !q.named.IsZero() && o.ClientID == q.named && o.By.Key == q.key.Number &&
			o.By.Nonce < q.nonce && o.By.Nonce > 0 && q.key.NonceWindow == 0 {
			return true
		}
	}
	for id, o := range s.model.Accounts[q.account-1].OpenAt(s.model.Seq) {
		rested := s.restedBy[id]
		if rested > 0 && rested < q.begun && (id == q.order ||
			!q.named.IsZero() && o.ClientID == q.named) {
			return true
		}
	}
	return false
}

// isKnown reports whether the model has the state behind a refusal: the account's wallet had
// everything of the account when the command began, and no record of the account came since.
func (s *sim) isKnown(q *played, a *spec.Account, seq uint64) bool {
	return q.quiet && a.Touched(seq-1) == q.touched
}

// isWithinLimit reports whether a refusal names a limit that was not reached.
func (s *sim) isWithinLimit(q *played, seq uint64, f event.Refusal) bool {
	a, limits := s.model.Accounts[f.Account-1], &s.options.Limits
	open := a.OpenAt(seq)
	switch f.Reason {
	case event.RefusedAccountLimit:
		return s.isKnown(q, a, seq) && len(open) < limits.OpenOrdersPerAccount
	case event.RefusedAccountBookLimit:
		n, _, _ := inBook(open, q.req.Pair.Number)
		return s.isKnown(q, a, seq) && n < limits.OpenOrdersPerAccountAndBook
	case event.RefusedBookLimit:
		// The book decides in the order of its records, so the model has its state there.
		return !s.isFull(&q.req, seq)
	case event.RefusedWithdrawalLimit:
		// The wallet had everything durable when the command began, and maybe more.
		return a.MostPending(q.seq, seq-1) < limits.PendingWithdrawals
	}
	return false
}

// hasFunds reports whether an account that was refused for funds had enough. It also checks the
// answer's shortfall.
func (s *sim) hasFunds(q *played, a *spec.Account, seq uint64, c *Command) bool {
	currency, need := q.number, spec.Units(q.amount.Balance())
	switch x := q.req.Special; {
	case q.amend != nil:
		// Its need depends on fills meanwhile, but its faults come first.
		return s.breaksRules(q, seq)
	case x != nil && x.Quote != 0:
		currency, _ = s.model.Need(q.req.Pair.Number, q.req.Side, 1, 1)
		need = spec.Units(x.Quote.Balance())
	case q.req.Pair != nil:
		currency, need = s.model.Need(q.req.Pair.Number, q.req.Side, q.req.Price, q.req.Amount)
	}
	funds := a.At(seq)
	if int(currency) > len(funds) {
		return false
	}
	f := &funds[currency-1]
	lacks := new(big.Int).Sub(need, new(big.Int).Sub(f.Balance, f.Reserve))
	known := s.isKnown(q, a, seq)
	s.checkShortfall(q, c, currency, need, lacks, known)
	return known && lacks.Sign() <= 0
}

// checkShortfall compares an answer's shortfall with the model's: exactly, if the model has the
// state behind the refusal.
func (s *sim) checkShortfall(q *played, c *Command, currency uint16, need, lacks *big.Int,
	exact bool) {
	of, missing := c.Shortfall()
	said := spec.Units(missing)
	if of != currency || said.Sign() <= 0 || said.Cmp(need) > 0 || exact && said.Cmp(lacks) != 0 {
		s.violate(
			"%s: it answers that %v of currency %d are missing, and %v of %v of currency %d are",
			q.what, said, of, lacks, need, currency)
	}
}

// isFull reports whether a book is at its limit of orders after a record, and an order would trade
// with none of them.
func (s *sim) isFull(w *OrderRequest, seq uint64) bool {
	at := s.model.Pairs[w.Pair.Number-1].At(seq)
	return at.Open >= s.options.Limits.OpenOrdersPerBook &&
		(w.Special != nil && (w.Special.Trigger.When != 0 || w.Special.PostOnly) ||
			!at.Meets(w.Side, w.Price))
}

// inBook returns the number of open orders in a pair, of those that wait for a trigger, and of
// those that expire.
func inBook(open map[uint64]spec.Order, pair uint16) (n, stops, gtd int) {
	for _, o := range open {
		if o.Pair != pair {
			continue
		}
		n++
		if o.IsStop() {
			stops++
		}
		if o.Says.ExpireUs != 0 {
			gtd++
		}
	}
	return n, stops, gtd
}

// withinLimits checks the open orders after a record.
func (s *sim) withinLimits() {
	limits := &s.options.Limits
	for _, p := range s.model.Pairs {
		if at := p.At(s.model.Seq); at.Open > limits.OpenOrdersPerBook ||
			at.Stops > limits.StopsPerBook || at.GTD > limits.GTDPerBook {
			s.violate("record %d: %s has %d open orders, %d stops and %d that expire, and %d, %d "+
				"and %d are allowed", s.model.Seq, p.Name, at.Open, at.Stops, at.GTD,
				limits.OpenOrdersPerBook, limits.StopsPerBook, limits.GTDPerBook)
		}
	}
	for _, a := range s.model.Accounts {
		for _, p := range s.model.Pairs {
			n, stops, gtd := inBook(a.OpenAt(s.model.Seq), p.Number)
			if n > limits.OpenOrdersPerAccountAndBook || stops > limits.StopsPerAccountAndBook ||
				gtd > limits.GTDPerAccountAndBook {
				s.violate("record %d: %s has %d open orders in %s, %d stops and %d that expire, "+
					"and %d, %d and %d are allowed", s.model.Seq, a.Name, n, p.Name, stops, gtd,
					limits.OpenOrdersPerAccountAndBook, limits.StopsPerAccountAndBook,
					limits.GTDPerAccountAndBook)
			}
		}
		if n := len(a.OpenAt(s.model.Seq)); n > limits.OpenOrdersPerAccount {
			s.violate("record %d: %s has %d open orders, and %d are allowed", s.model.Seq, a.Name,
				n, limits.OpenOrdersPerAccount)
		}
		if n := a.MostPending(s.model.Seq, s.model.Seq); n > limits.PendingWithdrawals {
			s.violate("record %d: %s has %d pending withdrawals, and %d are allowed", s.model.Seq,
				a.Name, n, limits.PendingWithdrawals)
		}
	}
}

// checkInFlight counts the admitted commands without an answer: each holds a slot of the limits.
func (l *life) checkInFlight(s *sim) {
	l.admitted = slices.DeleteFunc(l.admitted, func(q *played) bool {
		return q.checked || len(q.reply) > 0
	})
	// by account; 0: of all
	limits, all, others := &s.options.Limits, map[uint32]int{}, map[uint32]int{}
	for _, q := range l.admitted {
		for _, of := range []uint32{0, q.account} {
			all[of]++
			if !q.cancels() {
				others[of]++
			}
		}
	}
	for _, of := range slices.Sorted(maps.Keys(all)) {
		n, most, kept := all[of], limits.InFlightPerAccount, limits.InFlightPerAccount/8
		if of == 0 {
			most, kept = limits.InFlight, limits.InFlightCancels
		}
		if n > most || others[of] > most-kept {
			s.violate(
				"engine %d has %d commands in flight, and %d but for cancels; %d are allowed, "+
					"and %d kept for cancels", l.number, n, others[of], most, kept)
		}
	}
}

// recorded counts a durable record for its nonce: a nonce has no more records than commands sent
// with it.
func (s *sim) recorded(r *event.Record) {
	s.noteSpecial(r)
	var at spec.KeyNonce
	switch r.Kind {
	case event.KindOrder, event.KindInstructed, event.KindStop:
		at = spec.KeyNonce{Key: r.Order.Key, Nonce: r.Order.Nonce}
		if s.missing[namedOrder{r.Order.Account, r.Order.ClientID, at}] {
			s.violate(
				"order %d (%v) is in, and after it was sent its client was answered that there is "+
					"none of its client order id", r.Order.ID, r.Order.ClientID)
		}
	case event.KindAmended:
		at = spec.KeyNonce{Key: r.Order.Key, Nonce: r.Order.Nonce}
	case event.KindSettings:
		at = spec.KeyNonce{Key: r.Settings.Key, Nonce: r.Settings.Nonce}
	case event.KindSwitch:
		if r.Switch.Nonce != 0 { // it has not fired, and is of no session
			at = spec.KeyNonce{Key: r.Switch.Key, Nonce: r.Switch.Nonce}
		}
	case event.KindCancel:
		at = spec.KeyNonce{Key: r.Cancel.Key, Nonce: r.Cancel.Nonce}
	case event.KindRefusal:
		if r.Refusal.Nonce != 0 { // it refuses no session
			at = spec.KeyNonce{Key: r.Refusal.Key, Nonce: r.Refusal.Nonce}
		}
	case event.KindWithdrawal:
		at = spec.KeyNonce{Key: r.Withdrawal.Key, Nonce: r.Withdrawal.Nonce}
	case event.KindWithdrawalStatus:
		at = spec.KeyNonce{Key: r.WithdrawalStatus.Key, Nonce: r.WithdrawalStatus.Nonce}
	case event.KindCodeRefused:
		at = spec.KeyNonce{Key: r.CodeRefused.Key, Nonce: r.CodeRefused.Nonce}
	case event.KindDeposit:
		s.checkDeposit(r.Deposit.Reference)
	case event.KindHistory:
		s.outcomes["codes renewed by a history"] += s.model.Renewed
	}
	if at.Key != 0 {
		s.byNonce[at]++
		s.checkSent(at)
	}
}

func (s *sim) checkSent(at spec.KeyNonce) {
	if s.byNonce[at] > s.sent[at] && !s.model.CancelAlls[at] {
		s.violate(
			"%d records have nonce %d of key number %d, and %d commands with it were not "+
				"turned away", s.byNonce[at], at.Nonce, at.Key, s.sent[at])
	}
}
