package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/prove/spec"
)

// operator sends a random operator's command.
func (s *sim) operator(r *rand.Rand, l *life) {
	e, name, on := l.engine, pick(r, s.names), r.IntN(2) == 0
	pair := pick(r, e.Pairs())
	if e.maintenance.Load() != nil && !l.changing && r.IntN(3) == 0 {
		s.maintain(l, event.Maintenance{}) // otherwise most later commands are refused
		return
	}
	switch n := r.IntN(30); {
	case n < 4:
		s.deposit(r, l, name)
	case n < 6:
		s.createAccount(l, name)
	case n < 8:
		s.createKey(l, name, fmt.Sprintf("key-%s-%d", name, r.IntN(2)))
	case n < 9:
		s.revokeKey(l, fmt.Sprintf("key-%s-1", name)) // each account keeps one
	case n < 11:
		s.halt(l, pair, r.IntN(3) == 0)
	case n < 13:
		s.freeze(l, name, r.IntN(4) == 0)
	case n < 15:
		rates := &state.FeeRates{Maker: money.Rate(r.Uint32N(3e6)),
			Taker: money.Rate(r.Uint32N(3e6))}
		if !on {
			rates = nil
		}
		s.setFees(l, name, pair, rates)
	case n < 16:
		if !l.changing {
			n := r.IntN(4)
			s.maintain(l, event.Maintenance{On: n%2 == 0, Cancels: n == 0})
		}
	case n < 20:
		s.decideWithdrawal(r, l)
	case n < 23:
		id := newest(r, s.orders)
		q := &played{l: l, what: fmt.Sprintf("cancel %d", id)}
		s.asOperator(q, func() (*Command, error) { return e.OperatorCancel("op", id) })
	case n < 25:
		s.adjust(r, l, name)
	case n < 27:
		s.tend(r, l, name)
	default:
		if a := s.model.Account(name); a != nil && a.ID <= e.dir.Count() {
			s.cancelAllOf(l, a)
		}
	}
}

// administer runs an operator's command, which returns its outcome.
func (s *sim) administer(l *life, command string, do func() string) {
	s.spawn(l, fmt.Sprintf("%d.operator: %s", l.number, command), func() {
		l.open[0]++
		outcome := do()
		s.say("  %s: %s", command, outcome)
		if outcome != unknownOutcome {
			l.open[0]--
		}
	})
}

func (s *sim) createAccount(l *life, name string) {
	s.administer(l, "account "+name, func() string {
		a, err := l.engine.CreateAccount("op", name, name+"@example.org")
		known := s.model.Account(name)
		return s.administered(err, known != nil && (err != nil || known.ID == a.AccountID),
			known != nil || len(s.model.Accounts) >= l.engine.opts.Limits.Accounts)
	})
}

func (s *sim) createKey(l *life, account, key string) {
	s.administer(l, "key "+key, func() string {
		err := makeKey(l.engine, account, key)
		return s.administered(err, s.model.Key(key) != nil, true)
	})
}

func (s *sim) revokeKey(l *life, key string) {
	s.administer(l, "revoke "+key, func() string {
		missing := s.model.Key(key) == nil
		_, err := l.engine.RevokeKey("op", key)
		known := s.model.Key(key)
		if err == nil {
			s.bar(key).since = s.steps
		}
		return s.administered(err, known != nil && known.Revoked, missing || known.Revoked)
	})
}

func (s *sim) halt(l *life, pair *directory.Pair, on bool) {
	s.administer(l, fmt.Sprintf("halt %s %v", pair.Name, on), func() string {
		_, err := l.engine.Halt("op", pair.Name, on)
		was := slices.ContainsFunc(s.model.Pairs[pair.Number-1].Halts,
			func(h spec.Halt) bool { return h.On == on })
		return s.administered(err, was || !on, false)
	})
}

func (s *sim) setFees(l *life, name string, pair *directory.Pair, rates *state.FeeRates) {
	s.administer(l, fmt.Sprintf("fees of %s in %s: %v", name, pair.Name, rates), func() string {
		missing := s.model.Account(name) == nil
		_, err := l.engine.SetFees("op", name, pair.Name, rates)
		return s.administered(err, s.model.Account(name) != nil, missing || s.isClosed(name))
	})
}

func (s *sim) isClosed(name string) bool {
	a := s.model.Account(name)
	return a != nil && a.ClosedUs != 0
}

func (s *sim) cancelAllOf(l *life, a *spec.Account) {
	s.administer(l, "cancel all of "+a.Name, func() string {
		since := s.model.Seq
		orders, err := l.engine.cancelAllOfAccount(context.Background(), "op", a.ID, nil)
		if err == nil {
			s.cancelledAll(l, a, CancelFilter{}, since, orders)
		}
		return s.administered(err, true, false)
	})
}

// decideWithdrawal approves or refuses one, sometimes during a freeze of its account.
func (s *sim) decideWithdrawal(r *rand.Rand, l *life) {
	q := &played{l: l, to: event.WithdrawalApproved}
	switch r.IntN(8) {
	case 0:
		q.to, q.id = event.WithdrawalRefused, s.withdrawalOf(r, 0, event.WithdrawalNew)
	case 1, 2:
		q.despite = true
	}
	if q.id == 0 {
		q.id = s.withdrawalOf(r, 0, event.WithdrawalVerified)
	}
	if w := s.model.Withdrawals[q.id]; w != nil && w.Status == event.WithdrawalVerified &&
		r.IntN(3) > 0 {
		s.freeze(l, s.model.Accounts[w.Account-1].Name, true)
	}
	q.what = fmt.Sprintf("withdraw %d to %d, despite a freeze: %v", q.id, q.to, q.despite)
	s.asOperator(q, func() (*Command, error) {
		switch {
		case q.despite:
			return l.engine.ApproveDespiteFreeze("op", q.id, "")
		case q.to == event.WithdrawalRefused:
			return l.engine.SetWithdrawalStatus("op", q.id, q.to, "no")
		}
		return l.engine.SetWithdrawalStatus("op", q.id, q.to, "")
	})
}

// adjust takes money out of an account, sometimes more than available, or with a used reference.
func (s *sim) adjust(r *rand.Rand, l *life, name string) {
	a := s.model.Account(name)
	if a == nil || a.ID > l.engine.dir.Count() {
		return
	}
	reference := s.drawWithdrawalID(r, a.ID)
	if reference.IsZero() {
		return
	}
	q := &played{l: l, adjusts: a.ID, number: pick(r, l.engine.Currencies()).Number,
		amount: amountOf(r), withdrawalID: reference}
	if r.IntN(3) == 0 {
		q.amount = money.Amount(1+r.Int64N(100)) * 1e8
	}
	q.what = fmt.Sprintf("adjustment %v of %s by %v of currency %d", reference, name, q.amount,
		q.number)
	s.asOperator(q, func() (*Command, error) {
		return l.engine.Adjust("op", a.ID, q.number, q.amount, "credited twice", reference)
	})
}

// A credit is a requested deposit.
type credit struct {
	name, currency, reference string
	amount                    money.Amount
}

// deposit credits an account, often with a used reference: unchanged, or with another content.
func (s *sim) deposit(r *rand.Rand, l *life, name string) {
	currency, amount := pick(r, l.engine.Currencies()).Code, money.Amount(1+r.Int64N(50))*1e8
	if r.IntN(6) == 0 {
		amount = amountOf(r)
	}
	reference := fmt.Sprint("reference ", r.IntN(60))
	if n := len(s.credits); n > 0 && r.IntN(2) == 0 {
		again := s.credits[r.IntN(n)]
		if r.IntN(2) == 0 { // one that may be in flight, or not projected yet
			again = s.credits[n-1-r.IntN(min(n, 3))]
		}
		name, currency, amount, reference = again.name, again.currency, again.amount,
			again.reference
	}
	s.credits = append(s.credits, credit{name, currency, reference, amount})
	what := fmt.Sprintf("deposit of %v %s to %s, %s", amount, currency, name, reference)
	s.spawn(l, fmt.Sprintf("%d.operator: %s", l.number, what), func() {
		s.deposits[reference]++
		l.open[0]++
		missing := s.model.Account(name) == nil
		a, err := l.engine.Deposit("op", name, currency, amount, reference)
		d, known := s.model.Deposits[reference]
		account := s.model.Account(name)
		same := known && account != nil && d.Account == account.ID && d.Amount == amount &&
			s.model.Currencies[d.Currency-1] == currency
		outcome := s.administered(err, same && d.ID == a.Deposit,
			missing || known && !same || !known)
		if outcome != unknownOutcome {
			l.open[0]--
		}
		if s.says(err) || turnedAwayBy(err) {
			s.deposits[reference]--
			s.checkDeposit(reference)
		}
		s.say("  %s: %s", what, outcome)
	})
}

func (s *sim) says(err error) bool {
	var refused *RequestError
	return errors.As(err, &refused)
}

func (s *sim) checkDeposit(reference string) {
	if _, there := s.model.Deposits[reference]; there && s.deposits[reference] == 0 {
		s.violate("deposit %q is durable, and every try of it was refused", reference)
	}
}

// freeze blocks an account's keys: commands that begin later have no effect.
func (s *sim) freeze(l *life, name string, on bool) {
	what := fmt.Sprintf("freeze %s %v", name, on)
	s.spawn(l, fmt.Sprintf("%d.operator: %s", l.number, what), func() {
		b := s.bar(name)
		if !on {
			b.since = 0
			b.lifting++
		}
		l.open[0]++
		missing := s.model.Account(name) == nil
		_, err := l.engine.Freeze("op", name, on)
		a := s.model.Account(name)
		outcome := s.administered(err, a != nil && (!on || a.Freezes > 0),
			missing || s.isClosed(name))
		if outcome == unknownOutcome {
			s.say("  %s: %s", what, outcome)
			return
		}
		l.open[0]--
		if !on {
			b.lifting--
		} else if err == nil && b.lifting == 0 && a != nil {
			// A lift later in the records may have been answered first.
			if b.since = s.steps; !a.Frozen {
				b.since = 0
				s.outcomes["freezes, answered after they were undone"]++
			}
		}
		s.say("  %s: %s", what, outcome)
	})
}

func (s *sim) maintain(l *life, m event.Maintenance) {
	l.changing, m.Message = true, "back soon"
	s.spawn(l, fmt.Sprintf("%d.operator: maintenance %+v", l.number, m), func() {
		defer func() { l.changing = false }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := l.engine.SetMaintenance(ctx, "op", m)
		outcome := s.administered(err, s.model.Maintenance == m || l.overtaken, false)
		s.say("  maintenance %+v: %s", m, outcome)
		if err == nil && m.Cancels {
			s.outcomes["maintenance with cancels"]++
		}
	})
}

const unknownOutcome = "unknown"

// simulatedSecret is the secret of every API key.
const simulatedSecret = "secret"

// administered checks an operator's answer and returns its outcome. done: the change is durable, or
// it was so before. refusable: the reason of a refusal holds.
func (s *sim) administered(err error, done, refusable bool) string {
	switch {
	case err == nil:
		if !done {
			s.violate("an operator is answered that it is done, and it is not durable")
		}
		s.outcomes["operator, done"]++
		return "done"
	case errors.Is(err, committed.ErrTimeout):
		s.outcomes["operator, unknown"]++
		return unknownOutcome
	case s.says(err):
		if !refusable {
			s.violate("an operator is refused for what is not so: %w", err)
		}
		s.outcomes["operator, refused"]++
		return err.Error()
	}
	if !turnedAwayBy(err) {
		s.violate("an operator's command: %w", err)
	}
	s.outcomes["operator, turned away"]++
	if errors.Is(err, committed.ErrUnanswered) {
		s.outcomes["deposits, turned away because the store did not answer"]++
	}
	return "turned away: " + err.Error()
}

// turnedAwayBy reports whether nothing was done: mostly no actor has received the command.
func turnedAwayBy(err error) bool {
	var history *committed.HistoryError // of a lookup of a client order id
	return errors.As(err, &history) || slices.ContainsFunc([]error{ErrStopping, ErrStalled, ErrBusy,
		ErrAccountBusy, ErrBehind, ErrNotQuiet,
		ErrPaused, ErrMaintenance, ErrNotConfirmed, committed.ErrUnanswered},
		func(known error) bool { return errors.Is(err, known) })
}

// asOperator sends a command of an operator's through a wallet.
func (s *sim) asOperator(q *played, run func() (*Command, error)) {
	l := q.l
	s.spawn(l, fmt.Sprintf("%d.operator: %s", l.number, q.what), func() {
		q.begun = s.steps
		if w := s.model.Withdrawals[q.id]; w != nil && w.Account <= l.engine.dir.Count() {
			s.noteKnowledge(q, w.Account)
		}
		if q.adjusts != 0 {
			s.noteKnowledge(q, q.adjusts)
		}
		l.open[0]++
		c, err := run()
		if s.says(err) {
			s.say("  %s: %v", q.what, err)
			l.open[0]--
			return
		}
		s.answered(q, c, err)
	})
}
