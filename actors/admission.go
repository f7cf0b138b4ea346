package actors

import (
	"time"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
)

// open is nil while new commands may come in.
func (e *Engine) open(now time.Time) error {
	switch {
	case e.stopping.Load() || e.Err() != nil:
		return ErrStopping
	case e.journal.stalledFor(now) > e.opts.Timing.Stall:
		return ErrStalled
	case e.released.Load() > e.committed.folded.Load()+uint64(e.opts.Limits.FoldLag),
		e.committed.unsaved.Load() > int64(e.opts.Limits.ProjectionLag):
		return ErrBehind
	}
	return nil
}

// confirmed is nil while the store has lately confirmed that this process owns it.
func (e *Engine) confirmed(now time.Time) error {
	if now.UnixNano()-e.journal.checked.Load() > int64(e.opts.Timing.OwnerStale) {
		return ErrNotConfirmed
	}
	return nil
}

// Writable is nil while the exchange takes commands at all: the check before the fields of a request
// are looked at. Admission itself comes after them.
func (e *Engine) Writable() error { return e.open(time.Now()) }

// Confirmed is nil while the store has lately confirmed that this process owns it. Private reads are
// refused otherwise: another process may have taken over, and know more.
func (e *Engine) Confirmed() error { return e.confirmed(time.Now()) }

// admit takes a place in the limits for a command; giveBack returns it. This is the only place where a
// command of an account is turned away for load, and no actor has seen it yet.
func (e *Engine) admit(c *Command) error {
	most, mostOfAccount := int64(e.opts.Limits.InFlight), int32(e.opts.Limits.InFlightPerAccount)
	if c.kind != event.KindCancel {
		most -= int64(e.opts.Limits.InFlightCancels)
		mostOfAccount -= mostOfAccount / 8
	}
	if e.inFlight.Add(1) > most {
		e.inFlight.Add(-1)
		return ErrBusy
	}
	if c.key.Account.inFlight.Add(1) > mostOfAccount {
		c.key.Account.inFlight.Add(-1)
		e.inFlight.Add(-1)
		return ErrAccountBusy
	}
	if err := e.open(time.UnixMicro(c.timeUs)); err != nil { // after the count: a drain sees it, or it sees the drain
		c.key.Account.inFlight.Add(-1)
		e.inFlight.Add(-1)
		return err
	}
	c.admitted = true
	return nil
}

func (e *Engine) giveBack(c *Command) {
	if c.admitted {
		c.admitted = false
		e.inFlight.Add(-1)
		if c.key != nil {
			c.key.Account.inFlight.Add(-1)
		}
	}
}

// An OrderWish is what a client asks for, with its fields checked against the pair's rules.
type OrderWish struct {
	Pair     *Pair
	Side     matching.Side
	Price    money.Price
	Amount   money.Amount
	ClientID event.ClientID
}

// Place sends an order through its wallet and book into the journal, and waits for its release. The
// command in the answer is the caller's to Free. Errors: the ones of admission, and ErrTimeout, after
// which the order may or may not be in.
func (e *Engine) Place(key *Key, nonce uint64, w *OrderWish) (*Command, error) {
	c := newCommand(event.KindOrder)
	c.key, c.pair = key, w.Pair
	c.order.nonce, c.order.side, c.order.price, c.order.amount, c.order.clientID = nonce, w.Side, w.Price, w.Amount, w.ClientID
	c.record.Pair = w.Pair.Number
	return e.do(c)
}

// Cancel takes an open order back; as Place.
func (e *Engine) Cancel(key *Key, nonce, order uint64) (*Command, error) {
	c := newCommand(event.KindCancel)
	c.key = key
	c.order.nonce, c.order.id = nonce, order
	return e.do(c)
}

func (e *Engine) do(c *Command) (*Command, error) {
	if err := e.admit(c); err != nil {
		c.Free()
		return nil, err
	}
	e.root.Send(c.key.Account.pid, c)
	return e.outcome(c)
}

// outcome waits for a command that was sent.
func (e *Engine) outcome(c *Command) (*Command, error) {
	if !c.wait(e.opts.Timing.Request, e.dead) {
		return nil, ErrTimeout
	}
	return c, nil
}

// finishAdmin answers an operator's command; its place is free before whoever waits goes on.
func (e *Engine) finishAdmin(c *Command, o Outcome) {
	e.giveBack(c)
	c.answer(o)
}

// administrate sends an operator's command through the registry.
func (e *Engine) administrate(kind event.Kind, a Admin) (Admin, error) {
	c := newCommand(kind)
	c.admin = a
	if e.inFlight.Add(1) > int64(e.opts.Limits.InFlight) {
		e.inFlight.Add(-1)
		c.Free()
		return a, ErrBusy
	}
	c.admitted = true
	if err := e.open(time.UnixMicro(c.timeUs)); err != nil {
		e.giveBack(c)
		c.Free()
		return a, err
	}
	e.root.Send(e.registry, c)
	if _, err := e.outcome(c); err != nil {
		return a, err
	}
	a, err := c.admin, c.adminErr
	c.Free()
	return a, err
}

// CreateAccount opens an account. The error is a *RequestError if the name or the address is no good
// or taken, one of admission, or ErrTimeout.
func (e *Engine) CreateAccount(name, email string) (Admin, error) {
	return e.administrate(event.KindAccount, Admin{Account: name, Email: email})
}

// CreateKey makes an API key for an account, with the public part and the secret given. Errors as CreateAccount.
func (e *Engine) CreateKey(account, public, secret string, permissions uint8, allow []string) (Admin, error) {
	return e.administrate(event.KindKey, Admin{Account: account, Key: public, Secret: secret, Permissions: permissions, Allow: allow})
}

// RevokeKey ends an API key. Errors as CreateAccount.
func (e *Engine) RevokeKey(public string) (Admin, error) {
	return e.administrate(event.KindKeyRevoked, Admin{Key: public})
}

// Deposit credits an account. The same reference again, with the same content, changes nothing and
// says so. Errors as CreateAccount.
func (e *Engine) Deposit(account, currency string, amount money.Amount, reference string) (Admin, error) {
	return e.administrate(event.KindDeposit, Admin{Account: account, Currency: currency, Amount: amount, Reference: reference})
}

// Ask sends a read and waits for its answer, which is in r. With a key it is private: its nonce is
// taken by the account's wallet first, and Account is set. Errors: ErrNonce, ErrTimeout (r is not the
// caller's any more: no Free), and the ones of admission.
func (e *Engine) Ask(r *Read, key *Key, nonce uint64) error {
	defer e.reading.Add(-1)
	if e.reading.Add(1) > int64(e.opts.Limits.Reads) && !r.FollowUp {
		return ErrBusy
	}
	if e.stopping.Load() && !r.FollowUp {
		return ErrStopping
	}
	to := e.fold
	if key != nil {
		if err := e.confirmed(time.Now()); err != nil {
			return err
		}
		r.key, r.nonce, r.Account = key, nonce, key.Account.ID
		to = key.Account.pid
	}
	e.root.Send(to, r)
	if !await(r.reply, r.timer, e.opts.Timing.Request, e.dead) {
		r.abandoned.Store(true)
		return ErrTimeout
	}
	return r.Err
}
