package actors

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// open is nil while new commands may come in.
func (e *Engine) open(now int64) error {
	if e.stopping.Load() {
		return ErrStopping
	}
	return e.going(now)
}

// going is nil while commands come to their end: also during an orderly stop.
func (e *Engine) going(now int64) error {
	switch {
	case e.Err() != nil:
		return ErrStopping
	case e.journal.stalledFor(now) > e.opts.Timing.Stall, e.own.unfit.Load():
		return ErrStalled
	case e.released.Load() > e.committed.folded.Load()+uint64(e.opts.Limits.FoldLag),
		e.committed.unsaved.Load() > int64(e.opts.Limits.ProjectionLag):
		return ErrBehind
	case e.paused.Load():
		return ErrPaused
	}
	return nil
}

// confirmed is nil while the store has lately confirmed that this process owns it, and nothing has
// said otherwise since.
func (e *Engine) confirmed(now int64) error {
	if e.Err() != nil || e.own.released.Load() {
		return ErrStopping
	}
	if now-e.own.checked.Load() > int64(e.opts.Timing.OwnerStale) {
		return ErrNotConfirmed
	}
	return nil
}

// Writable is nil while the exchange takes clients' commands at all: the check before the fields of
// a request are looked at. Admission itself comes after them.
func (e *Engine) Writable() error { return e.turnAway(e.writable(metrics.Now())) }

func (e *Engine) writable(now int64) error {
	if e.maintenance.Load() != nil {
		return ErrMaintenance
	}
	return e.open(now)
}

// Mails is nil while codes can be mailed: the check before a withdraw's fields are looked at.
func (e *Engine) Mails() error {
	if e.mailer == nil {
		return e.turnAway(ErrNoMail)
	}
	return nil
}

// MaintenanceMessage is what clients are told while there is maintenance; it may be empty.
func (e *Engine) MaintenanceMessage() string {
	if m := e.maintenance.Load(); m != nil {
		return m.Message
	}
	return ""
}

// Confirmed is nil while the store has lately confirmed that this process owns it. Private reads
// are refused otherwise: another process may have taken over, and know more.
func (e *Engine) Confirmed() error { return e.turnAway(e.confirmed(metrics.Now())) }

// admit takes a place in the limits for a command; giveBack returns it. This is the only place
// where a command of an account is turned away for load, and no actor has seen it yet.
func (e *Engine) admit(c *Command) error {
	most, mostOfAccount := int64(e.opts.Limits.InFlight), int32(e.opts.Limits.InFlightPerAccount)
	if c.kind != event.KindCancel && c.kind != kindCancelAll {
		most -= int64(e.opts.Limits.InFlightCancels)
		mostOfAccount -= mostOfAccount / 8
	}
	if e.inFlight.Add(1)+e.operating.Load() > most {
		e.inFlight.Add(-1)
		return ErrBusy
	}
	if c.account.InFlight.Add(1) > mostOfAccount {
		c.account.InFlight.Add(-1)
		e.inFlight.Add(-1)
		return ErrAccountBusy
	}
	// after the count: a drain sees it, or it sees the drain
	if err := e.writable(c.made); err != nil {
		c.account.InFlight.Add(-1)
		e.inFlight.Add(-1)
		return err
	}
	c.admitted = true
	return nil
}

func (e *Engine) giveBack(c *Command) {
	if c.admitted {
		c.admitted = false
		if c.key == nil {
			e.operating.Add(-1)
			if c.kind == event.KindMaintenance {
				e.changing.Add(-1)
			}
			return
		}
		c.account.InFlight.Add(-1)
		e.inFlight.Add(-1)
	}
}

// An OrderWish is what a client asks for, with its fields checked against the pair's rules.
type OrderWish struct {
	Pair     *directory.Pair
	Side     trading.Side
	Price    money.Price
	Amount   money.Amount
	ClientID event.ClientID
}

// Place sends an order through its wallet and book into the journal, and waits for its release. The
// command in the answer is the caller's to Free. Errors: the ones of admission, and ErrTimeout,
// after which the order may or may not be in.
func (e *Engine) Place(key *directory.Key, nonce uint64, w *OrderWish) (*Command, error) {
	c := newCommand(event.KindOrder)
	c.key, c.account, c.pair = key, key.Account, w.Pair
	c.order.nonce, c.order.side, c.order.price, c.order.amount, c.order.clientID = nonce, w.Side,
		w.Price, w.Amount, w.ClientID
	c.record.Pair = w.Pair.Number
	return e.do(c)
}

// Cancel takes an open order back; as Place.
func (e *Engine) Cancel(key *directory.Key, nonce, order uint64) (*Command, error) {
	c := newCommand(event.KindCancel)
	c.key, c.account = key, key.Account
	c.order.nonce, c.order.id = nonce, order
	return e.do(c)
}

// CancelAll takes all open orders of the key's account back, or those of one pair; as Place.
// Command.Cancelled has them. It is refused for RefusedNoOrders when there are none.
func (e *Engine) CancelAll(key *directory.Key, nonce uint64, pair *directory.Pair) (*Command,
	error) {
	c := newCommand(kindCancelAll)
	c.key, c.account, c.pair = key, key.Account, pair
	c.order.nonce = nonce
	return e.do(c)
}

// Withdraw asks for money to leave; as Place. The record is a KindWithdraw. ErrNoMail, if its code
// could not be mailed.
func (e *Engine) Withdraw(key *directory.Key, nonce uint64, currency uint16, amount money.Amount,
	address string) (*Command, error) {
	if err := e.Mails(); err != nil {
		return nil, err
	}
	c := newCommand(event.KindWithdraw)
	c.key, c.account = key, key.Account
	c.order.nonce = nonce
	c.withdraw = withdrawRequest{currency: currency, amount: amount, address: address}
	return e.do(c)
}

// ConfirmWithdraw confirms a withdraw with the code that was mailed; as Place. It is refused for
// RefusedWithdraw, RefusedTries, or with a record of KindCodeRefused.
func (e *Engine) ConfirmWithdraw(key *directory.Key, nonce, withdraw uint64, code string) (*Command,
	error) {
	return e.moveWithdraw(key, nonce,
		withdrawRequest{id: withdraw, to: event.WithdrawVerified, code: code})
}

// CancelWithdraw takes a withdraw back; as Place. It is refused for RefusedWithdraw.
func (e *Engine) CancelWithdraw(key *directory.Key, nonce, withdraw uint64) (*Command, error) {
	return e.moveWithdraw(key, nonce, withdrawRequest{id: withdraw, to: event.WithdrawCancelled})
}

func (e *Engine) moveWithdraw(key *directory.Key, nonce uint64, w withdrawRequest) (*Command, error) {
	c := newCommand(event.KindWithdrawMoved)
	c.key, c.account = key, key.Account
	c.order.nonce, c.withdraw = nonce, w
	return e.do(c)
}

func (e *Engine) do(c *Command) (*Command, error) {
	if err := e.admit(c); err != nil {
		c.Free()
		return nil, e.turnAway(err)
	}
	e.root.Send(c.account.Wallet, c)
	return e.outcome(c)
}

// outcome waits for a command that was sent.
func (e *Engine) outcome(c *Command) (*Command, error) {
	if !e.await(c.reply, c.timer) {
		e.meter.UnknownOutcomes.Add(1)
		return nil, ErrTimeout
	}
	if c.trace.Sent != 0 {
		e.meter.Stages[metrics.StageAnswer].Observe(metrics.Now() - c.trace.Answered)
	}
	return c, nil
}

// await waits for a reply as long as a request may last. False: there is none, and what was sent
// belongs to others.
func (e *Engine) await(reply <-chan struct{}, timer *time.Timer) bool {
	return e.opts.scheduler.Await(reply, e.dead, timer, e.opts.Timing.Request)
}

// BeginRead takes a place among the reads in flight, which EndRead gives back. Who goes on to the
// history holds one from the question until the store has answered: a slow store has no more
// queries at once than there are places. A read that its handler has left in a mailbox goes on to
// hold one. What completes the answer to a command is a followUp: it has as many places of its own,
// and is taken while the engine stops, too, which waits for it. Errors are those of admission; then
// there is nothing to give back.
func (e *Engine) BeginRead(followUp bool) error {
	err := ErrBusy
	if e.readers(followUp).Add(1) <= int64(e.opts.Limits.Reads) {
		// after the count: a drain sees it, or it sees the drain
		if followUp || !e.stopping.Load() {
			return nil
		}
		err = ErrStopping
	}
	e.EndRead(followUp)
	return e.turnAway(err)
}

// EndRead ends what BeginRead has begun.
func (e *Engine) EndRead(followUp bool) { e.readers(followUp).Add(-1) }

func (e *Engine) readers(followUp bool) *atomic.Int64 {
	if followUp {
		return &e.completing
	}
	return &e.reading
}

func (e *Engine) readsInFlight() int64 { return e.reading.Load() + e.completing.Load() }

// accountReads counts the private reads in flight, by account. Few accounts have any at a time.
type accountReads struct {
	mu sync.Mutex
	of map[uint32]int
}

// begin takes a place; false: the account has as many as it may.
func (a *accountReads) begin(account uint32, most int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[account] >= most {
		return false
	}
	if a.of == nil {
		a.of = make(map[uint32]int)
	}
	a.of[account]++
	return true
}

func (a *accountReads) end(account uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[account]--; a.of[account] == 0 {
		delete(a.of, account)
	}
}

// Ask sends a read and waits for its answer, which is in r. With a key it is private: its nonce is
// taken by the account's wallet first, and Account is set. Errors: ErrNonce, ErrTimeout (r is not
// the caller's any more: no Free), and the ones of admission.
func (e *Engine) Ask(r *Read, key *directory.Key, nonce uint64) error {
	if err := e.BeginRead(r.FollowUp); err != nil {
		return err
	}
	defer e.EndRead(r.FollowUp)
	err := e.AskWithin(r, key, nonce)
	if !errors.Is(err, ErrTimeout) {
		r.leavePlace()
	}
	return err
}

// AskWithin is Ask for who is between BeginRead and EndRead. A private read takes a place among its
// account's, too, and holds it until Free: who goes on to the history frees it after that.
func (e *Engine) AskWithin(r *Read, key *directory.Key, nonce uint64) error {
	to := e.fold
	if key != nil {
		if err := e.confirmed(metrics.Now()); err != nil {
			return e.turnAway(err)
		}
		if most := e.opts.Limits.ReadsPerAccount; most > 0 {
			if !e.committed.private.begin(key.Account.ID, most) {
				return e.turnAway(ErrAccountBusy)
			}
			r.place = true
		}
		r.key, r.nonce, r.Account = key, nonce, key.Account.ID
		to = key.Account.Wallet
	}
	r.engine = e
	r.stage.Store(readSent)
	e.root.Send(to, r)
	if !e.await(r.reply, r.timer) {
		if r.leave() {
			e.meter.UnansweredReads.Add(1)
			return ErrTimeout
		}
		<-r.reply // it came at the last moment
	}
	return r.Err
}
