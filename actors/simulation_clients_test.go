package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/simulation"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// clients are all who send commands and read, and what they know from answers.
type clients struct {
	names     []string          // of accounts that may be there
	nonces    map[string]uint64 // the highest that was sent, by key
	orders    []uint64          // that were accepted
	withdraws []uint64
	codes     map[uint64][]mailedCode // that were mailed, by withdraw, the newest last
	messages  map[string]Mail         // that were sent, by Message-ID
	sent      map[simulation.KeyNonce]int
	reads     map[uint32][]uint64 // nonces of signed reads, by key
	deposits  map[string]int      // that were sent and not turned away, by reference
	credits   []credit            // that were sent
	barred    map[string]*bar     // accounts that are frozen and keys that are revoked, by name
	restedBy  map[uint64]int      // order -> step in which it was answered that it rests
	sending   *played             // is about to be admitted, or not

	told     uint64 // highest sequence that any engine has answered with
	outcomes map[string]int
}

// A bar is what keeps commands from coming to anything: those that begin after it was acknowledged.
type bar struct {
	since   int // step; 0: it is not known to be there
	lifting int // commands that may lift it, and have no answer
}

func newClients() clients {
	return clients{nonces: map[string]uint64{}, codes: map[uint64][]mailedCode{},
		messages: map[string]Mail{}, sent: map[simulation.KeyNonce]int{},
		reads:    map[uint32][]uint64{},
		deposits: map[string]int{}, barred: map[string]*bar{}, restedBy: map[uint64]int{},
		outcomes: map[string]int{}}
}

func (s *sim) bar(name string) *bar {
	b := s.barred[name]
	if b == nil {
		b = &bar{}
		s.barred[name] = b
	}
	return b
}

func pick[T any](r *rand.Rand, list []T) (one T) {
	if len(list) > 0 {
		one = list[r.IntN(len(list))]
	}
	return one
}

// newest is mostly one of the last, so that it is still of interest.
func newest(r *rand.Rand, list []uint64) uint64 {
	if len(list) == 0 || r.IntN(20) == 0 {
		return 1 + r.Uint64N(60)
	}
	if r.IntN(4) == 0 {
		return pick(r, list)
	}
	return pick(r, list[max(0, len(list)-8):])
}

// orderOf is mostly an open order of the account, now and then anybody's, closed or open.
func (s *sim) orderOf(r *rand.Rand, account uint32) uint64 {
	if own := slices.Sorted(maps.Keys(
		s.model.Accounts[account-1].OpenAt(s.model.Seq))); len(own) > 0 && r.IntN(3) > 0 {
		return pick(r, own)
	}
	return newest(r, s.orders)
}

// withdrawOf is mostly a pending withdraw of the account, or of any (0), and if it can be one of a
// status.
func (s *sim) withdrawOf(r *rand.Rand, account uint32, status uint8) uint64 {
	var pending, ripe []uint64
	for _, id := range slices.Sorted(maps.Keys(s.model.Withdrawals)) {
		w := s.model.Withdrawals[id]
		if !w.Pending() || account != 0 && w.Account != account {
			continue
		}
		pending = append(pending, id)
		if w.Status == status {
			ripe = append(ripe, id)
		}
	}
	if len(ripe) > 0 && r.IntN(4) > 0 {
		return pick(r, ripe)
	}
	if len(pending) > 0 && r.IntN(4) > 0 {
		return pick(r, pending)
	}
	return newest(r, s.withdraws)
}

// A played command is one on its way.
type played struct {
	unfit   bool // when it was sent, its engine had heard that the store may lose what is appended
	l       *life
	what    string
	key     *directory.Key // nil: an operator's
	nonce   uint64
	account uint32
	begun   int    // step
	seq     uint64 // what was durable then
	taken   uint64 // the highest nonce of its key that was answered before
	// quiet says that nothing of the account was on its way when it began, and its wallet knew all
	// of the account up to the record touched: then the model knows whether it has the money.
	quiet   bool
	touched uint64
	wish    OrderRequest
	order   uint64 // to cancel
	amount  money.Amount
	number  uint16 // of a currency
	all     bool
	pair    *directory.Pair // of a cancel-all; nil: all
	id      uint64          // of a withdraw that is to be moved
	to      uint8
	despite bool // an approval of a frozen account, too
	code    mailedCode

	reply <-chan struct{} // where its answer comes, once it is admitted
	told  bool            // its answer came, and was looked at
}

// cancels says whether it is one of those that a share of the limits is kept for.
func (q *played) cancels() bool { return q.all || q.order != 0 }

// amountOf is one of all kinds.
func amountOf(r *rand.Rand) money.Amount {
	switch r.IntN(12) {
	case 0:
		return 1
	case 1:
		return money.Amount(1 + r.Int64N(1e8))
	case 2:
		return money.Amount(1 + r.Int64N(math.MaxInt64-1))
	case 3:
		return money.MaxAmount
	}
	return money.Amount(1+r.Int64N(20)) * 1e7
}

// priceOf is mostly one that trades now and then, or one that waits for others.
func priceOf(r *rand.Rand, side trading.Side) money.Price {
	switch n := r.IntN(32); {
	case n == 0:
		return 1
	case n == 1:
		return money.MaxPrice
	case n == 2:
		return money.Price(1 + r.Int64N(math.MaxInt64-1))
	case n < 6:
		return money.Price(9e8 + r.Int64N(2e8)) // of all digits
	case n < 15 && side == trading.Buy:
		return money.Price(90+r.Int64N(8)) * 1e7
	case n < 15:
		return money.Price(103+r.Int64N(8)) * 1e7
	}
	return money.Price(97+r.Int64N(7)) * 1e7
}

// nextNonce is mostly a new one, now and then an equal or an older one.
func (s *sim) nextNonce(r *rand.Rand, key string) uint64 {
	n := s.nonces[key]
	switch r.IntN(14) {
	case 0:
		return max(1, n)
	case 1:
		return 1 + r.Uint64N(n+1)
	case 2:
		n += r.Uint64N(1000)
	}
	s.nonces[key] = n + 1
	return n + 1
}

// key is what a handler has looked up: now and then one that was revoked since.
func (l *life) key(r *rand.Rand, name string) *directory.Key {
	key := l.engine.Key([]byte(name))
	if key != nil {
		l.keys[name] = key
	} else if r.IntN(2) == 0 {
		key = l.keys[name]
	}
	return key
}

// command sends one at random to an engine that has started.
func (s *sim) command(r *rand.Rand, l *life) {
	e := l.engine
	keyName := fmt.Sprintf("key-%s-%d", pick(r, s.names), r.IntN(2))
	key := l.key(r, keyName)
	if r.IntN(6) == 0 || key == nil {
		s.operator(r, l)
		return
	}
	q := &played{l: l, key: key, account: key.Account.ID, nonce: s.nextNonce(r, keyName)}
	var run func() (*Command, error)
	switch n := r.IntN(44); {
	case n < 26:
		side := trading.Side(1 + r.IntN(2))
		q.wish = OrderRequest{Pair: pick(r, e.Pairs()), Side: side, Price: priceOf(r, side),
			Amount: amountOf(r)}
		if r.IntN(3) == 0 {
			q.wish.ClientID, _ = event.NewClientID(fmt.Sprint("c", r.IntN(25)))
		}
		q.what = fmt.Sprintf("%v %v at %v in %s, %v", q.wish.Side, q.wish.Amount, q.wish.Price,
			q.wish.Pair.Name, q.wish.ClientID)
		run = func() (*Command, error) { return e.Place(key, q.nonce, &q.wish) }
	case n < 32:
		q.order = s.orderOf(r, q.account)
		q.what = fmt.Sprintf("cancel %d", q.order)
		run = func() (*Command, error) { return e.Cancel(key, q.nonce, q.order) }
	case n < 33:
		pair := pick(r, append(slices.Clone(e.Pairs()), nil)) // nil: all
		q.what, q.all, q.pair = "cancel all", true, pair
		run = func() (*Command, error) { return e.CancelAll(key, q.nonce, pair) }
	case n < 36:
		q.number, q.amount = uint16(1+r.IntN(3)), amountOf(r)
		q.what = fmt.Sprintf("withdraw %v of currency %d", q.amount, q.number)
		run = func() (*Command, error) {
			return e.Withdraw(key, q.nonce, q.number, q.amount, "somewhere")
		}
	case n < 43:
		id := s.withdrawOf(r, q.account, event.WithdrawNew)
		q.id, q.to = id, event.WithdrawVerified
		q.code = s.codeFor(r, id)
		q.what = fmt.Sprintf("confirm withdraw %d with %q", id, q.code.text)
		run = func() (*Command, error) { return e.ConfirmWithdraw(key, q.nonce, id, q.code.text) }
	default:
		id := s.withdrawOf(r, q.account, event.WithdrawVerified)
		q.id, q.to = id, event.WithdrawCancelled
		q.what = fmt.Sprintf("cancel withdraw %d", id)
		run = func() (*Command, error) { return e.CancelWithdraw(key, q.nonce, id) }
	}
	s.spawn(l, fmt.Sprintf("%d.client %s %d: %s", l.number, key.Public, q.nonce, q.what), func() {
		s.begin(q)
		c, err := run()
		s.answered(q, c, err)
	})
}

// A namedOrder is an order that was sent with a client order id.
type namedOrder struct {
	account uint32
	id      event.ClientID
	at      simulation.KeyNonce
}

// begin notes a command just before it is sent.
func (s *sim) begin(q *played) {
	q.begun, q.seq, q.unfit, s.sending = s.steps, s.model.Seq, q.l.unfit, q
	s.look(q, q.account)
	q.l.open[q.account]++
	if q.key != nil {
		at := simulation.KeyNonce{Key: q.key.Number, Nonce: q.nonce}
		s.sent[at]++
		q.taken = q.l.taken[q.key.Number]
		if id := q.wish.ClientID; !id.IsZero() {
			order := namedOrder{q.account, id, at}
			delete(s.missing, order) // it is sent again
			q.l.named = append(q.l.named, order)
		}
		if q.all {
			s.model.CancelAlls[at] = true
		}
	}
}

// look notes whether the model knows all that an account's wallet knows.
func (s *sim) look(q *played, account uint32) {
	w := q.l.wallets[account]
	q.touched = s.model.Accounts[account-1].Touched(s.model.Seq)
	q.quiet = q.l.open[account] == 0 && q.l.open[0] == 0 && w.applied >= q.touched && !q.l.wakes(w)
}

// wakes says whether a wallet has messages.
func (l *life) wakes(w *wallet) bool {
	name := fmt.Sprintf("%d.wallet/%d", l.number, w.account.ID)
	return slices.ContainsFunc(l.mailboxes, func(o *woken) bool { return o.name == name })
}

// operator sends what operators do.
func (s *sim) operator(r *rand.Rand, l *life) {
	e, name, on := l.engine, pick(r, s.names), r.IntN(2) == 0
	pair := pick(r, e.Pairs())
	if e.maintenance.Load() != nil && !l.changing && r.IntN(3) == 0 {
		s.maintain(l, false) // else most of what follows is turned away
		return
	}
	run := func(what string, do func() string) {
		s.spawn(l, fmt.Sprintf("%d.operator: %s", l.number, what), func() {
			l.open[0]++
			outcome := do()
			s.say("  %s: %s", what, outcome)
			if outcome != unknownOutcome {
				l.open[0]--
			}
		})
	}
	switch n := r.IntN(26); {
	case n < 4:
		s.deposit(r, l, name)
	case n < 6:
		run("account "+name, func() string {
			a, err := e.CreateAccount("op", name, name+"@example.org")
			known := s.model.Account(name)
			return s.administered(err, known != nil && (err != nil || known.ID == a.AccountID),
				known != nil || len(s.model.Accounts) >= e.opts.Limits.Accounts)
		})
	case n < 8:
		key := fmt.Sprintf("key-%s-%d", name, r.IntN(2))
		run("key "+key, func() string {
			_, err := e.CreateKey("op", name, key, simulatedSecret, event.AllPermissions, nil)
			return s.administered(err, s.model.Key(key) != nil, true)
		})
	case n < 9:
		key := fmt.Sprintf("key-%s-1", name) // each account keeps one
		run("revoke "+key, func() string {
			missing := s.model.Key(key) == nil
			_, err := e.RevokeKey("op", key)
			known := s.model.Key(key)
			if err == nil {
				s.bar(key).since = s.steps
			}
			return s.administered(err, known != nil && known.Revoked, missing || known.Revoked)
		})
	case n < 11:
		on := r.IntN(3) == 0
		run(fmt.Sprintf("halt %s %v", pair.Name, on), func() string {
			_, err := e.Halt("op", pair.Name, on)
			was := slices.ContainsFunc(s.model.Pairs[pair.Number-1].Halts,
				func(h simulation.Halt) bool { return h.On == on })
			return s.administered(err, was || !on, false)
		})
	case n < 13:
		s.freeze(l, name, r.IntN(4) == 0)
	case n < 15:
		rates := &state.FeeRates{Maker: money.Rate(r.Uint32N(3e6)),
			Taker: money.Rate(r.Uint32N(3e6))}
		if !on {
			rates = nil
		}
		run(fmt.Sprintf("fees of %s in %s: %v", name, pair.Name, rates), func() string {
			missing := s.model.Account(name) == nil
			_, err := e.SetFees("op", name, pair.Name, rates)
			return s.administered(err, s.model.Account(name) != nil, missing)
		})
	case n < 16:
		if !l.changing {
			s.maintain(l, r.IntN(2) == 0)
		}
	case n < 20:
		s.decideWithdraw(r, l)
	case n < 23:
		id := newest(r, s.orders)
		q := &played{l: l, what: fmt.Sprintf("cancel %d", id)}
		s.asOperator(q, func() (*Command, error) { return e.OperatorCancel("op", id) })
	default:
		if a := s.model.Account(name); a != nil && a.ID <= e.dir.Count() {
			run("cancel all of "+name, func() string {
				since := s.model.Seq
				orders, err := e.cancelAllOfAccount(context.Background(), "op", a.ID, nil)
				if err == nil {
					s.cancelledAll(l, a, nil, since, orders)
				}
				return s.administered(err, true, false)
			})
		}
	}
}

// decideWithdraw approves or refuses one, now and then while its account is being frozen, or is
// frozen.
func (s *sim) decideWithdraw(r *rand.Rand, l *life) {
	q := &played{l: l, to: event.WithdrawApproved}
	switch r.IntN(8) {
	case 0:
		q.to, q.id = event.WithdrawRefused, s.withdrawOf(r, 0, event.WithdrawNew)
	case 1, 2:
		q.despite = true
	}
	if q.id == 0 {
		q.id = s.withdrawOf(r, 0, event.WithdrawVerified)
	}
	if w := s.model.Withdrawals[q.id]; w != nil && w.Status == event.WithdrawVerified &&
		r.IntN(3) > 0 {
		s.freeze(l, s.model.Accounts[w.Account-1].Name, true)
	}
	q.what = fmt.Sprintf("withdraw %d to %d, despite a freeze: %v", q.id, q.to, q.despite)
	s.asOperator(q, func() (*Command, error) {
		switch {
		case q.despite:
			return l.engine.ApproveDespiteFreeze("op", q.id)
		case q.to == event.WithdrawRefused:
			return l.engine.MoveWithdraw("op", q.id, q.to, "no")
		}
		return l.engine.MoveWithdraw("op", q.id, q.to, "")
	})
}

// A credit is a deposit that was asked for.
type credit struct {
	name, currency, reference string
	amount                    money.Amount
}

// deposit credits an account, often by a reference that was used before: as it was before, or
// otherwise.
func (s *sim) deposit(r *rand.Rand, l *life, name string) {
	currency, amount := pick(r, l.engine.Currencies()).Code, money.Amount(1+r.Int64N(50))*1e8
	if r.IntN(6) == 0 {
		amount = amountOf(r)
	}
	reference := fmt.Sprint("reference ", r.IntN(60))
	if n := len(s.credits); n > 0 && r.IntN(2) == 0 {
		again := s.credits[r.IntN(n)]
		if r.IntN(2) == 0 { // one that may be on its way, or not projected yet
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

// freeze keeps an account's keys from doing anything: commands that begin later come to nothing.
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
		outcome := s.administered(err, a != nil && (!on || a.Freezes > 0), missing)
		if outcome == unknownOutcome {
			s.say("  %s: %s", what, outcome)
			return
		}
		l.open[0]--
		if !on {
			b.lifting--
		} else if err == nil && b.lifting == 0 {
			b.since = s.steps
		}
		s.say("  %s: %s", what, outcome)
	})
}

func (s *sim) maintain(l *life, on bool) {
	l.changing = true
	s.spawn(l, fmt.Sprintf("%d.operator: maintenance %v", l.number, on), func() {
		defer func() { l.changing = false }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := l.engine.SetMaintenance(ctx, "op", on, "back soon")
		s.say("  maintenance %v: %s", on,
			s.administered(err, s.model.Maintenance.On == on || l.overtaken, false))
	})
}

const unknownOutcome = "unknown"

// simulatedSecret is that of every API key.
const simulatedSecret = "secret"

// administered checks an operator's answer. done: it is durable, or it was so already; refusable:
// what a refusal says is so.
func (s *sim) administered(err error, done, refusable bool) string {
	switch {
	case err == nil:
		if !done {
			s.violate("an operator is told that it is done, and it is not durable")
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

// turnedAwayBy says that nothing was done: mostly no actor has seen the command.
func turnedAwayBy(err error) bool {
	return slices.ContainsFunc([]error{ErrStopping, ErrStalled, ErrBusy, ErrAccountBusy, ErrBehind,
		ErrNotQuiet, ErrPaused, ErrMaintenance, ErrNotConfirmed, committed.ErrUnanswered},
		func(known error) bool { return errors.Is(err, known) })
}

// asOperator sends a command of an operator's through a wallet.
func (s *sim) asOperator(q *played, run func() (*Command, error)) {
	l := q.l
	s.spawn(l, fmt.Sprintf("%d.operator: %s", l.number, q.what), func() {
		q.begun = s.steps
		if w := s.model.Withdrawals[q.id]; w != nil && w.Account <= l.engine.dir.Count() {
			s.look(q, w.Account)
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

// cancelledAll checks the orders that a command says it has cancelled. None of the orders that it was
// about, and that rested when it began, rests any more.
func (s *sim) cancelledAll(l *life, a *simulation.Account, pair *directory.Pair, since uint64,
	orders []uint64) {
	for _, id := range orders {
		if o, _ := s.model.Open(id); o != nil {
			s.violate("engine %d says that order %d is cancelled, and it rests", l.number, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.OpenAt(since))) {
		if o, p := s.model.Open(id); o != nil && (pair == nil || p.Number == pair.Number) {
			s.violate(
				"engine %d says that all orders of %s are cancelled, and order %d rests as it "+
					"did before", l.number, a.Name, id)
		}
	}
}

// answered looks at an answer: what it says must be durable, and nobody else may have been told the
// same.
func (s *sim) answered(q *played, c *Command, err error) {
	at := simulation.KeyNonce{Nonce: q.nonce}
	if q.key != nil {
		at.Key = q.key.Number
	}
	s.sending = nil
	if q.unfit && !turnedAwayBy(err) {
		s.violate("%s: engine %d takes it, and has heard that the store may lose it: %v", q.what,
			q.l.number, err)
	}
	if err != nil {
		switch {
		case errors.Is(err, committed.ErrTimeout):
			s.outcomes["unknown"]++
		case turnedAwayBy(err):
			s.outcomes["turned away: "+err.Error()]++
			q.l.open[q.account]--
			if q.key != nil {
				s.sent[at]--
				s.checkSent(at)
			}
		default:
			s.violate("%s: %w", q.what, err)
		}
		s.say("  %s: %v", q.what, err)
		return
	}
	q.l.open[q.account]--
	q.told = true
	if q.all && c.Outcome() == Accepted {
		s.say("  %s: %v", q.what, c.Cancelled())
		s.outcomes["cancel all, accepted"]++
		s.cancelledAll(q.l, s.model.Accounts[q.account-1], q.pair, q.seq, c.Cancelled())
		s.mayBeAccepted(q)
		s.tookNonce(q.l, q.key, q.nonce, q.taken)
		c.Free()
		return
	}
	r := c.Record()
	seq := s.claim(q, string(r.Append(nil)))
	if seq == 0 {
		return
	}
	s.say("  %s: record %d", q.what, seq)
	if reason := r.Refusal.Reason; q.key != nil &&
		(r.Kind != event.KindRefusal ||
			reason != event.RefusedNonce && reason != event.RefusedKey) {
		s.tookNonce(q.l, q.key, q.nonce, q.taken)
	}
	if c.Outcome() == Accepted {
		s.outcomes[r.Kind.String()+", accepted"]++
		s.mayBeAccepted(q)
		s.accepted(q, seq, r)
	} else {
		if r.Kind == event.KindRefusal && r.Refusal.Reason == event.RefusedNonce {
			s.toldLast(q.key, q.nonce, q.taken, c.LastNonce())
		}
		if r.Kind == event.KindRefusal {
			s.outcomes["refused for "+event.RefusalName(r.Refusal.Reason)]++
		} else {
			s.outcomes[r.Kind.String()]++
		}
		s.refused(q, seq, c)
	}
	c.Free()
}

// claim is the record that an answer tells of: each is told once.
func (s *sim) claim(q *played, record string) uint64 {
	list := s.records[record]
	if len(list) == 0 {
		s.violate("engine %d answers %s with a record that is not durable, or was answered before",
			q.l.number, q.what)
		return 0
	}
	s.records[record] = list[1:]
	q.l.answered = max(q.l.answered, list[0])
	s.told = max(s.told, q.l.answered)
	return list[0]
}

// tookNonce checks that a nonce is above all that were answered as taken before its command, or its
// read, began.
func (s *sim) tookNonce(l *life, key *directory.Key, nonce, before uint64) {
	if nonce <= before {
		s.violate("engine %d takes nonce %d of %s, and it had taken %d before that was sent",
			l.number, nonce, key.Public, before)
	}
	l.taken[key.Number] = max(l.taken[key.Number], nonce)
}

// toldLast checks the last nonce that the refusal of another one tells: it is not below that one,
// nor below what was answered as taken before, and a client may have sent it: nextNonce goes one
// above the highest.
func (s *sim) toldLast(key *directory.Key, nonce, before, last uint64) {
	if last < nonce || last < before || last > s.nonces[key.Public]+1 {
		s.violate(
			"nonce %d of %s is refused because %d was the last; %d was taken before, and %d is "+
				"the highest that was sent",
			nonce, key.Public, last, before, s.nonces[key.Public])
	}
}

// mayBeAccepted checks that neither its freeze nor the end of its key was acknowledged before a
// command began.
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

// isBarred says whether an account or a key was barred when something began.
func (s *sim) isBarred(name string, begun int) bool {
	b := s.barred[name]
	return b != nil && b.since > 0 && b.since < begun
}

// accepted checks that the record is what was asked for.
func (s *sim) accepted(q *played, seq uint64, r *event.Record) {
	asked := true
	switch r.Kind {
	case event.KindOrder:
		o, w := &r.Order, &q.wish
		asked = o.Account == q.account && o.Nonce == q.nonce && r.Pair == w.Pair.Number &&
			o.Side == w.Side && o.Price == w.Price && o.Amount == w.Amount &&
			o.ClientID == w.ClientID
		s.orders = append(s.orders, o.ID)
		if o.Rests() {
			s.restedBy[o.ID] = s.steps
		}
	case event.KindCancel:
		asked = q.key == nil || r.Cancel.Order == q.order && r.Cancel.Account == q.account &&
			r.Cancel.Nonce == q.nonce
	case event.KindWithdraw:
		w := &r.Withdraw
		asked = w.Account == q.account && w.Nonce == q.nonce && w.Currency == q.number &&
			w.Amount == q.amount
		s.withdraws = append(s.withdraws, w.ID)
	case event.KindWithdrawMoved:
		m := &r.WithdrawMoved
		asked = m.ID == q.id && m.To == q.to && (q.key == nil || m.Account == q.account)
		s.movedAsOperator(q, m)
		if m.To == event.WithdrawVerified {
			s.checkCode(q, seq)
		}
	}
	if !asked {
		s.violate("%s: it is answered with record %d, which is another: %+v", q.what, seq, r)
	}
}

// movedAsOperator checks that no money has left an account whose freeze was acknowledged before,
// unless the operator insisted.
func (s *sim) movedAsOperator(q *played, m *event.WithdrawMoved) {
	name := s.model.Accounts[m.Account-1].Name
	switch {
	case q.key != nil:
	case m.To == event.WithdrawApproved && !q.despite &&
		(m.DespiteFreeze || s.isBarred(name, q.begun)):
		s.violate("%s: it is approved, and %s is frozen", q.what, name)
	case m.DespiteFreeze:
		s.outcomes["withdraws, approved despite a freeze"]++
	case m.To == event.WithdrawRefused && s.model.Withdrawals[m.ID].Was == event.WithdrawNew:
		s.outcomes["withdraws, refused while new"]++
	}
}

// refused checks that the reason is so.
func (s *sim) refused(q *played, seq uint64, c *Command) {
	r := c.Record()
	if r.Kind != event.KindRefusal {
		if h := q.code.history; r.CodeRefused.Expired && !h.IsZero() && h != s.model.History {
			s.outcomes["codes of an earlier history"]++
		}
		return
	}
	a := s.model.Accounts[r.Refusal.Account-1]
	open := a.OpenAt(seq)
	quiet := q.quiet && a.Touched(seq-1) == q.touched // it was decided on what the model has now
	wrong := false
	switch r.Refusal.Reason {
	case event.RefusedFunds:
		currency, need := q.number, simulation.Units(q.amount.Balance())
		if q.wish.Pair != nil {
			currency, need = s.model.Need(q.wish.Pair.Number, q.wish.Side, q.wish.Price,
				q.wish.Amount)
		}
		if funds := a.At(seq); int(currency) <= len(funds) {
			f := &funds[currency-1]
			lacks := new(big.Int).Sub(need, new(big.Int).Sub(f.Balance, f.Reserve))
			wrong = quiet && lacks.Sign() <= 0
			s.checkShortfall(q, c, currency, need, lacks, quiet)
		}
	case event.RefusedClientID:
		wrong = !a.HasClientID(q.wish.ClientID)
	case event.RefusedNotOpen:
		o, _ := s.model.Open(q.order)
		rested := s.restedBy[q.order]
		wrong = q.key != nil && o != nil && o.Account == q.account && rested > 0 && rested < q.begun
	case event.RefusedAccountLimit:
		wrong = quiet && len(open) < s.options.Limits.OpenOrdersPerAccount
	case event.RefusedAccountBookLimit:
		wrong = quiet && inBook(open, q.wish.Pair.Number) <
			s.options.Limits.OpenOrdersPerAccountAndBook
	// its book decides in the order of its records: it had what the model has there
	case event.RefusedBookLimit:
		wrong = !s.isFull(&q.wish, seq)
	// its wallet had all that was durable when it began, and maybe more
	case event.RefusedWithdrawLimit:
		wrong = a.MostPending(q.seq, seq-1) < s.options.Limits.PendingWithdraws
	case event.RefusedNoOrders:
		rested := a.OpenAt(q.seq)
		for _, o := range open {
			_, p := s.model.Open(o.ID)
			_, before := rested[o.ID]
			wrong = wrong || (quiet || before) &&
				(q.pair == nil || p != nil && p.Number == q.pair.Number)
		}
	case event.RefusedWithdraw:
		w := s.model.Withdrawals[q.id]
		wrong = quiet && w != nil && max(w.Seq, w.Moved) < seq && w.Account == r.Refusal.Account &&
			w.MayMove(q.to)
	case event.RefusedTries:
		w := s.model.Withdrawals[q.id]
		wrong = w == nil || w.Tries < s.options.Withdraw.CodeTries
	case event.RefusedKey:
		wrong = !s.model.Keys[r.Refusal.Key-1].Revoked
	case event.RefusedFrozen:
		wrong = a.Freezes == 0 || q.key == nil && (q.despite || q.to != event.WithdrawApproved)
		if q.key == nil {
			s.outcomes["withdraws, not approved for a freeze"]++
		}
	case event.RefusedHalted:
		wrong = !s.model.Pairs[q.wish.Pair.Number-1].Halted(seq)
	}
	if wrong {
		s.violate("%s: it is refused for %s, by record %d, and that is not so", q.what,
			event.RefusalName(r.Refusal.Reason), seq)
	}
}

// checkShortfall compares what an answer says is missing with what is: exactly, if the model knows
// what it was decided on.
func (s *sim) checkShortfall(q *played, c *Command, currency uint16, need, lacks *big.Int,
	exact bool) {
	of, missing := c.Shortfall()
	said := simulation.Units(missing)
	if of != currency || said.Sign() <= 0 || said.Cmp(need) > 0 || exact && said.Cmp(lacks) != 0 {
		s.violate(
			"%s: it is told that %v of currency %d are missing, and %v of %v of currency %d are",
			q.what, said, of, lacks, need, currency)
	}
}

// isFull says whether a book has as many orders as it may after a record, and an order would trade
// with none of them.
func (s *sim) isFull(w *OrderRequest, seq uint64) bool {
	sides, orders := s.model.Pairs[w.Pair.Number-1].DepthAt(seq), 0
	for _, levels := range sides {
		for _, l := range levels {
			orders += l.Orders
		}
	}
	others := sides[w.Side.Opposite()-1]
	crosses := len(others) > 0 && (w.Side == trading.Buy && others[0].Price <= w.Price ||
		w.Side == trading.Sell && others[0].Price >= w.Price)
	return orders >= s.options.Limits.OpenOrdersPerBook && !crosses
}

// inBook is how many of the open orders are of a pair.
func inBook(open map[uint64]simulation.Order, pair uint16) (n int) {
	for _, o := range open {
		if o.Pair == pair {
			n++
		}
	}
	return n
}

// withinLimits checks what is open after a record.
func (s *sim) withinLimits() {
	limits := &s.options.Limits
	for _, p := range s.model.Pairs {
		if n := p.Book.Len(); n > limits.OpenOrdersPerBook {
			s.violate("record %d: %s has %d open orders, and %d are allowed", s.model.Seq, p.Name,
				n, limits.OpenOrdersPerBook)
		}
	}
	for _, a := range s.model.Accounts {
		for _, p := range s.model.Pairs {
			if n := inBook(a.OpenAt(s.model.Seq),
				p.Number); n > limits.OpenOrdersPerAccountAndBook {
				s.violate("record %d: %s has %d open orders in %s, and %d are allowed",
					s.model.Seq, a.Name, n, p.Name, limits.OpenOrdersPerAccountAndBook)
			}
		}
		if n := len(a.OpenAt(s.model.Seq)); n > limits.OpenOrdersPerAccount {
			s.violate("record %d: %s has %d open orders, and %d are allowed", s.model.Seq, a.Name,
				n, limits.OpenOrdersPerAccount)
		}
		if n := a.MostPending(s.model.Seq, s.model.Seq); n > limits.PendingWithdraws {
			s.violate("record %d: %s has %d pending withdraws, and %d are allowed", s.model.Seq,
				a.Name, n, limits.PendingWithdraws)
		}
	}
}

// checkInFlight counts the commands that were admitted and have no answer: each of them has its
// place in the limits.
func (l *life) checkInFlight(s *sim) {
	l.admitted = slices.DeleteFunc(l.admitted, func(q *played) bool {
		return q.told || len(q.reply) > 0
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

// recorded counts a durable record for its nonce: there are no more than commands were sent with
// it.
func (s *sim) recorded(r *event.Record) {
	var at simulation.KeyNonce
	switch r.Kind {
	case event.KindOrder:
		at = simulation.KeyNonce{Key: r.Order.Key, Nonce: r.Order.Nonce}
		if s.missing[namedOrder{r.Order.Account, r.Order.ClientID, at}] {
			s.violate(
				"order %d (%v) is in, and after it was sent its client was told that there is "+
					"none of its client order id", r.Order.ID, r.Order.ClientID)
		}
	case event.KindCancel:
		at = simulation.KeyNonce{Key: r.Cancel.Key, Nonce: r.Cancel.Nonce}
	case event.KindRefusal:
		at = simulation.KeyNonce{Key: r.Refusal.Key, Nonce: r.Refusal.Nonce}
	case event.KindWithdraw:
		at = simulation.KeyNonce{Key: r.Withdraw.Key, Nonce: r.Withdraw.Nonce}
	case event.KindWithdrawMoved:
		at = simulation.KeyNonce{Key: r.WithdrawMoved.Key, Nonce: r.WithdrawMoved.Nonce}
	case event.KindCodeRefused:
		at = simulation.KeyNonce{Key: r.CodeRefused.Key, Nonce: r.CodeRefused.Nonce}
	case event.KindDeposit:
		s.checkDeposit(r.Deposit.Reference)
	case event.KindHistory:
		s.outcomes["codes made anew by a history"] += s.model.Renewed
	}
	if at.Key != 0 {
		s.byNonce[at]++
		s.checkSent(at)
	}
}

func (s *sim) checkSent(at simulation.KeyNonce) {
	if s.byNonce[at] > s.sent[at] && !s.model.CancelAlls[at] {
		s.violate(
			"%d records have nonce %d of key number %d, and %d commands with it were not "+
				"turned away", s.byNonce[at], at.Nonce, at.Key, s.sent[at])
	}
}

// forget ends what an engine had in flight: its outcomes stay unknown.
func (s *sim) forget(l *life) { clear(l.open) }

// mail is the mail server of an engine.
func (s *sim) mail(l *life) func(context.Context, *Mail) error {
	return func(_ context.Context, m *Mail) error {
		s.park(l, fmt.Sprintf("%d.mail %d", l.number, m.id), nil)
		w := s.model.Withdrawals[m.Withdraw.ID]
		if w == nil || w.Account != m.Withdraw.Account || int(m.Withdraw.Issue) > w.Issue {
			s.violate("engine %d mails of withdraw %d, which is not durable so", l.number,
				m.Withdraw.ID)
			return nil
		}
		switch s.rng.IntN(8) {
		case 0:
			s.say("  it is not sent")
			s.outcomes["mails, not sent"]++
			return errNoAnswer
		case 1:
			s.say("  it never can be")
			s.outcomes["mails that never can be sent"]++
			return fmt.Errorf("nobody is there: %w", ErrNeverMailed)
		}
		s.outcomes["mails, sent"]++
		s.mailed(l, m)
		return nil
	}
}
