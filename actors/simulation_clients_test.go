package actors

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// clients are all senders of commands and reads, with their knowledge from answers.
type clients struct {
	names       []string          // of accounts that may exist
	nonces      map[string]uint64 // the highest sent ones, by key
	orders      []uint64          // accepted ones
	withdrawals []uint64
	// client ids of sent withdrawals, by account, and those whose outcome is unknown
	withdrawalIDs map[uint32][]event.ClientID
	unknownIDs    map[namedWithdrawal]bool
	codes         map[uint64][]mailedCode // mailed ones, by withdrawal, the newest last
	messages      map[string]Mail         // sent ones, by Message-ID
	sent          map[spec.KeyNonce]int
	deposits      map[string]int  // sent and not refused at admission, by reference
	credits       []credit        // sent ones
	barred        map[string]*bar // accounts that are frozen and keys that are revoked, by name
	restedBy      map[uint64]int  // order -> step of the answer that it rests

	highestAnswered uint64 // highest sequence in any engine's answer
	outcomes        map[string]int
}

// A bar is a freeze or a revocation: commands that begin after its acknowledgement must be refused.
type bar struct {
	since   int // step of the acknowledgement; 0: there may be no bar
	lifting int // unanswered commands that may lift it
}

func newClients() clients {
	return clients{nonces: map[string]uint64{}, codes: map[uint64][]mailedCode{},
		messages: map[string]Mail{}, sent: map[spec.KeyNonce]int{},
		withdrawalIDs: map[uint32][]event.ClientID{}, unknownIDs: map[namedWithdrawal]bool{},
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

// newest returns mostly one of the last ids, because later commands still concern them.
func newest(r *rand.Rand, list []uint64) uint64 {
	if len(list) == 0 || r.IntN(20) == 0 {
		return 1 + r.Uint64N(60)
	}
	if r.IntN(4) == 0 {
		return pick(r, list)
	}
	return pick(r, list[max(0, len(list)-8):])
}

// orderOf returns mostly an open order of the account, and sometimes an open or closed one of any
// account.
func (s *sim) orderOf(r *rand.Rand, account uint32) uint64 {
	if own := slices.Sorted(maps.Keys(
		s.model.Accounts[account-1].OpenAt(s.model.Seq))); len(own) > 0 && r.IntN(3) > 0 {
		return pick(r, own)
	}
	return newest(r, s.orders)
}

// withdrawalOf returns mostly a pending withdrawal of the account, or of any account (0), if
// possible in that status.
func (s *sim) withdrawalOf(r *rand.Rand, account uint32, status uint8) uint64 {
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
	return newest(r, s.withdrawals)
}

// A played command is one in flight.
type played struct {
	l       *life
	what    string
	key     *directory.Key // nil: an operator's
	nonce   uint64
	gate    Gate // of a command over a socket, which has nonce 0; nil: a request
	account uint32

	begun int    // step
	seq   uint64 // durable sequence when it began
	// its engine's release when it began: no wallet and no client had received later expiries of an
	// order
	released uint64
	taken    uint64 // highest nonce of its key answered before it began
	unfit    bool   // its engine was notified before it began that the store may lose appends
	// quiet: when it began, nothing of the account was in flight, and the account's wallet had
	// everything up to the record touched. So the model has the wallet's money.
	quiet   bool
	touched uint64

	req   OrderRequest
	order uint64         // to cancel
	named event.ClientID // of the order to cancel, instead of order
	// orders with client order ids sent to its engine before it began
	namedBefore int
	amount      money.Amount
	number      uint16 // of a currency
	// of a requested withdrawal
	withdrawalID event.ClientID
	all          bool         // a cancel of all orders
	filter       CancelFilter // of a cancel of all, or of a switch
	amend        *AmendRequest
	setting      trading.SelfTrade
	arms         bool   // it sets a switch
	seconds      uint32 // of a switch
	id           uint64 // of a withdrawal to move
	to           uint8  // the withdrawal's next status
	despite      bool   // an approval despite a freeze
	adjusts      uint32 // account of an operator's correction
	code         mailedCode

	batch   []*played       // all commands sent with it, if more than one
	reply   <-chan struct{} // for its answer, once it is admitted
	checked bool            // its answer was checked
}

// cancels reports whether slots are reserved for the command. A change of an amount may be one that
// only lowers it.
func (q *played) cancels() bool {
	if q.amend != nil && q.amend.changesAmountAlone() {
		return true
	}
	return q.amend == nil && (q.all || q.order != 0 || !q.named.IsZero()) || q.arms
}

// amountOf returns an amount: small, usual or at the limit.
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

// priceOf returns mostly a price that sometimes trades, or one that waits for others.
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

// parallelNonces is the number of nonces kept by a parallel key.
const parallelNonces = 8

// isParallel reports whether a key is for parallel use: the second of each account is.
func isParallel(key string) bool { return strings.HasSuffix(key, "-1") }

// makeKey makes an API key.
func makeKey(e *Engine, account, key string) error {
	var err error
	if isParallel(key) {
		_, err = e.CreateParallelKey("op", account, key, simulatedSecret, event.AllPermissions, nil,
			parallelNonces)
	} else {
		_, err = e.CreateKey("op", account, key, simulatedSecret, event.AllPermissions, nil)
	}
	return err
}

// nextNonce returns mostly a new nonce, sometimes an equal or an older one. Those of a parallel key
// overtake each other.
func (s *sim) nextNonce(r *rand.Rand, key string) uint64 {
	n := s.nonces[key]
	if isParallel(key) {
		if r.IntN(3) == 0 {
			return 1 + n - min(n, r.Uint64N(2*parallelNonces))
		}
		s.nonces[key] = n + 1 + r.Uint64N(3)
		return s.nonces[key]
	}
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

// key returns a key that a handler has looked up, sometimes one that was revoked since.
func (l *life) key(r *rand.Rand, name string) *directory.Key {
	key := l.engine.Key([]byte(name))
	if key != nil {
		l.keys[name] = key
	} else if r.IntN(2) == 0 {
		key = l.keys[name]
	}
	return key
}

// command sends a random one to a started engine.
func (s *sim) command(r *rand.Rand, l *life) {
	e := l.engine
	keyName := fmt.Sprintf("key-%s-%d", pick(r, s.names), r.IntN(2))
	key := l.key(r, keyName)
	if r.IntN(6) == 0 || key == nil {
		s.operator(r, l)
		return
	}
	if r.IntN(8) == 0 {
		s.sendBatch(r, l, key, s.nextNonce(r, keyName))
		return
	}
	q := &played{l: l, key: key, account: key.Account.ID, nonce: s.nextNonce(r, keyName)}
	var run func() (*Command, error)
	n := r.IntN(61)
	if n < 43 || n >= 53 && n < 60 {
		q.mayBeOfSocket(r)
	}
	switch {
	case n < 34:
		q.req = s.drawOrder(r, e, q.account)
		q.what = fmt.Sprintf("%v %v at %v in %s, %v", q.req.Side, q.req.Amount, q.req.Price,
			q.req.Pair.Name, q.req.ClientID)
		if q.req.Special != nil {
			q.what += fmt.Sprintf(", %+v", *q.req.Special)
		}
		run = func() (*Command, error) { return q.send(NewOrder(key, q.nonce, &q.req)) }
	case n < 39:
		q.order = s.orderOf(r, q.account)
		q.what = fmt.Sprintf("cancel %d", q.order)
		run = func() (*Command, error) {
			return q.send(NewCancel(key, q.nonce, q.order, event.ClientID{}))
		}
	case n < 41:
		q.named = s.nameOf(r, l, q.account)
		q.what = fmt.Sprintf("cancel %v", q.named)
		run = func() (*Command, error) { return q.send(NewCancel(key, q.nonce, 0, q.named)) }
	case n < 43:
		q.all, q.filter = true, drawFilter(r, e)
		q.what = "cancel all" + filterText(q.filter)
		run = func() (*Command, error) { return q.send(NewCancelAll(key, q.nonce, q.filter)) }
	case n < 46:
		q.number, q.amount = uint16(1+r.IntN(3)), amountOf(r)
		q.withdrawalID = s.drawWithdrawalID(r, q.account)
		q.what = fmt.Sprintf("withdraw %v of currency %d, %q", q.amount, q.number, q.withdrawalID)
		run = func() (*Command, error) { return e.Do(q.withdrawal()) }
	case n < 53:
		id := s.withdrawalOf(r, q.account, event.WithdrawalNew)
		q.id, q.to = id, event.WithdrawalVerified
		q.code = s.codeFor(r, id)
		q.what = fmt.Sprintf("confirm withdrawal %d with %q", id, q.code.text)
		run = func() (*Command, error) {
			return e.Do(NewConfirmation(key, q.nonce, id, q.code.text))
		}
	case n < 60:
		run = s.drawChange(r, l, q)
	default:
		id := s.withdrawalOf(r, q.account, event.WithdrawalVerified)
		q.id, q.to = id, event.WithdrawalCancelled
		q.what = fmt.Sprintf("cancel withdraw %d", id)
		run = func() (*Command, error) { return e.Do(NewWithdrawalCancel(key, q.nonce, id)) }
	}
	s.spawn(l, fmt.Sprintf("%d.client %s %d: %s", l.number, key.Public, q.nonce, q.what), func() {
		s.begin(q)
		c, err := run()
		s.answered(q, c, err)
	})
}

// drawChange draws an amend, a setting or a switch, and returns its call.
func (s *sim) drawChange(r *rand.Rand, l *life, q *played) func() (*Command, error) {
	e := l.engine
	switch n := r.IntN(8); {
	case n < 5:
		a := s.drawAmend(r, l, q.account)
		q.amend, q.order, q.named = &a, a.Order, a.ClientID
		q.what = fmt.Sprintf("amend %+v", a)
		return func() (*Command, error) {
			c := NewAmend(q.key, q.nonce, &a)
			q.reply = c.reply
			return q.send(c)
		}
	case n < 6 && q.gate == nil:
		q.setting = trading.SelfTrade(r.IntN(4))
		q.what = fmt.Sprintf("set the self-trade mode %d", q.setting)
		return func() (*Command, error) { return e.Do(NewSettings(q.key, q.nonce, q.setting)) }
	}
	q.arms, q.filter = true, drawFilter(r, e)
	q.seconds = pick(r, []uint32{0, 5, 5, 5, 6, 60, 86400})
	q.what = fmt.Sprintf("a switch in %d s%s", q.seconds, filterText(q.filter))
	return func() (*Command, error) {
		return q.send(NewSwitch(q.key, q.nonce, q.seconds, q.filter))
	}
}

// mayBeOfSocket sometimes sends a command over a socket.
func (q *played) mayBeOfSocket(r *rand.Rand) {
	if r.IntN(5) == 0 {
		q.nonce, q.gate = 0, openGate{}
	}
}

// send sends a command, and waits for its outcome.
func (q *played) send(c *Command) (*Command, error) { return q.l.engine.Do(c.Through(q.gate)) }

// drawOrder returns an order, often with instructions. Sometimes it has a client order id: one of
// few, or one that a closed order keeps, with a price and an amount that others do not refuse.
func (s *sim) drawOrder(r *rand.Rand, e *Engine, account uint32) OrderRequest {
	side := trading.Side(1 + r.IntN(2))
	w := OrderRequest{Pair: pick(r, e.Pairs()), Side: side, Price: priceOf(r, side),
		Amount: amountOf(r)}
	if r.IntN(2) == 0 {
		w.Pair = e.Pairs()[0] // so that many orders meet
	}
	switch r.IntN(6) {
	case 0:
		w.ClientID = fewIDs(r)
	case 1:
		if w.ClientID = pick(r, s.keptIDs(account)); w.ClientID.IsZero() {
			w.ClientID = fewIDs(r)
			break
		}
		s.outcomes["client order ids of closed orders, sent again"]++
		w.Price, w.Amount = money.Price(97+r.Int64N(7))*1e7, 1e7
	}
	w.Price, w.Amount = onTick(w.Pair, w.Price), onStep(w.Pair, w.Amount)
	if r.IntN(2) == 0 {
		s.drawSpecial(r, &w)
	}
	return w
}

func fewIDs(r *rand.Rand) event.ClientID {
	id, _ := event.NewClientID(fmt.Sprint("cd"[r.IntN(2):][:1], r.IntN(4)))
	return id
}

// keptIDs returns the client order ids of an account that closed orders keep.
func (s *sim) keptIDs(account uint32) []event.ClientID {
	return s.model.KeptBy(s.model.Accounts[account-1], time.Now().Add(s.skew).UnixMicro())
}

// nameOf returns mostly the client order id of an order that is open, or may be in flight.
func (s *sim) nameOf(r *rand.Rand, l *life, account uint32) event.ClientID {
	open := s.model.Accounts[account-1].OpenAt(s.model.Seq)
	for _, id := range slices.Sorted(maps.Keys(open)) {
		if o := open[id]; !o.ClientID.IsZero() && r.IntN(2) == 0 {
			return o.ClientID
		}
	}
	for i := len(l.named) - 1; i >= max(0, len(l.named)-6) && r.IntN(4) > 0; i-- {
		if l.named[i].account == account {
			return l.named[i].id
		}
	}
	return fewIDs(r)
}

// drawFilter returns the filter of a cancel of all.
func drawFilter(r *rand.Rand, e *Engine) (f CancelFilter) {
	f.Pair = pick(r, append(slices.Clone(e.Pairs()), nil)) // nil: all
	switch r.IntN(4) {
	case 0:
		f.Side = trading.Side(1 + r.IntN(2))
	case 1:
		f.Prefix, _ = event.NewClientID(pick(r, []string{"c", "d", "c", "d", "d1", "e"}))
	}
	return f
}

// filterText returns a filter as text, which is the same in each run.
func filterText(f CancelFilter) (text string) {
	if f.Pair != nil {
		text = " in " + f.Pair.Name
	}
	return fmt.Sprintf("%s, side %d, prefix %q", text, f.Side, f.Prefix)
}

// withdrawal returns the command for a withdrawal.
func (q *played) withdrawal() *Command {
	return NewWithdrawal(q.key, q.nonce, q.number, q.amount, "somewhere").
		WithClientID(q.withdrawalID)
}

// A namedWithdrawal was sent with a client id.
type namedWithdrawal struct {
	account uint32
	id      event.ClientID
}

// drawWithdrawalID returns the client id of a withdrawal, or none. It is often one that was sent
// before: mostly the newest. Its outcome may be unknown, or still pending.
func (s *sim) drawWithdrawalID(r *rand.Rand, account uint32) (id event.ClientID) {
	sent := s.withdrawalIDs[account]
	switch n := r.IntN(6); {
	case n == 0:
		return id
	case n < 3 && len(sent) > 0:
		if id = sent[len(sent)-1]; r.IntN(4) == 0 {
			id = pick(r, sent)
		}
		if s.unknownIDs[namedWithdrawal{account, id}] {
			s.outcomes["withdraws of an unknown outcome, asked for again"]++
		}
	default:
		id, _ = event.NewClientID(fmt.Sprint("w-", len(sent)))
		s.withdrawalIDs[account] = append(sent, id)
	}
	return id
}

// A namedOrder was sent with a client order id.
type namedOrder struct {
	account uint32
	id      event.ClientID
	at      spec.KeyNonce
}

// begin records a command just before it is sent.
func (s *sim) begin(q *played) {
	s.swapSending(q)
	q.begun, q.seq, q.unfit = s.steps, s.model.Seq, q.l.unfit
	q.released = max(q.l.engine.opener.settlingSeq.Load(), q.l.engine.committed.Folded())
	q.namedBefore = len(q.l.named)
	s.noteKnowledge(q, q.account)
	q.l.open[q.account]++
	if q.key != nil {
		at := spec.KeyNonce{Key: q.key.Number, Nonce: q.nonce}
		s.sent[at]++
		q.taken = q.l.taken[q.key.Number]
		if id := q.req.ClientID; !id.IsZero() {
			order := namedOrder{q.account, id, at}
			delete(s.missing, order) // it is sent again
			q.l.named = append(q.l.named, order)
		}
		if q.all {
			s.model.CancelAlls[at] = true
		}
	}
}

// noteKnowledge records whether the model has everything that an account's wallet has.
func (s *sim) noteKnowledge(q *played, account uint32) {
	w := q.l.wallets[account]
	q.touched = s.model.Accounts[account-1].Touched(s.model.Seq)
	if w == nil || w.early != nil { // its first state may be older
		q.quiet = false
		return
	}
	q.quiet = q.l.open[account] == 0 && q.l.open[0] == 0 && w.applied >= q.touched && !q.l.wakes(w)
}

// wakes reports whether a wallet has messages.
func (l *life) wakes(w *wallet) bool {
	name := fmt.Sprintf("%d.wallet/%d", l.number, w.account.ID)
	return slices.ContainsFunc(l.mailboxes, func(o *woken) bool { return o.name == name })
}

// forget drops an engine's commands in flight: their outcomes stay unknown.
func (s *sim) forget(l *life) { clear(l.open) }

// mail returns the mail server of an engine.
func (s *sim) mail(l *life) func(context.Context, *Mail) error {
	return func(_ context.Context, m *Mail) error {
		s.park(l, fmt.Sprintf("%d.mail %d", l.number, m.id), nil)
		w := s.model.Withdrawals[m.Withdrawal.ID]
		if change := &m.Change; change.Account != 0 {
			a := s.model.Accounts[change.Account-1]
			if !a.HeldOnce(change.HoldEndsUs) || m.Account != a.Name || m.To != change.To {
				s.violate("engine %d mails %+v, which is not durable so", l.number, m)
				return nil
			}
			s.outcomes["mails about addresses"]++
		} else if w == nil || w.Account != m.Withdrawal.Account ||
			int(m.Withdrawal.Issue) > w.Issue {
			s.violate("engine %d mails of withdraw %d, which is not durable so", l.number,
				m.Withdrawal.ID)
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
			return fmt.Errorf("no such mailbox: %w", ErrNeverMailed)
		}
		s.outcomes["mails, sent"]++
		s.mailed(l, m)
		return nil
	}
}
