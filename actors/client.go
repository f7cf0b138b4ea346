package actors

import (
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// Writable implements Commands.
func (e *Engine) Writable() error { return e.CountRefusal(e.writable(metrics.Now())) }

// Cancelling implements Commands.
func (e *Engine) Cancelling() error { return e.CountRefusal(e.cancelling(metrics.Now())) }

// Confirmed implements Commands: the store has recently confirmed this process's ownership.
func (e *Engine) Confirmed() error { return e.CountRefusal(e.confirmed(metrics.Now())) }

// MailEnabled implements Commands.
func (e *Engine) MailEnabled() error {
	if e.mailer == nil {
		return e.CountRefusal(ErrNoMail)
	}
	return nil
}

// Place sends an order through its wallet and book into the journal, and waits for its release. The
// caller must Free the command. Errors are those of Do.
func (e *Engine) Place(key *directory.Key, nonce uint64, o *OrderRequest) (*Command, error) {
	return e.Do(NewOrder(key, nonce, o))
}

// NewOrder makes the command for an order, which Do or DoAll sends.
func NewOrder(key *directory.Key, nonce uint64, o *OrderRequest) *Command {
	c := newCommand(event.KindOrder)
	c.key, c.account, c.pair = key, key.Account, o.Pair
	c.order.nonce, c.order.side, c.order.price, c.order.amount, c.order.clientID = nonce, o.Side,
		o.Price, o.Amount, o.ClientID
	if o.Special != nil {
		special := *o.Special
		c.special = &special
	}
	c.record.Pair = o.Pair.Number
	return c
}

// Amend changes an open order, and is called like Place. The record is a KindAmended.
// RefusedNotOpen: there is no such open order.
func (e *Engine) Amend(key *directory.Key, nonce uint64, a *AmendRequest) (*Command, error) {
	return e.Do(NewAmend(key, nonce, a))
}

// NewAmend makes the command for a change of an open order, which Do or DoAll sends.
func NewAmend(key *directory.Key, nonce uint64, a *AmendRequest) *Command {
	c := newCommand(event.KindAmended)
	c.key, c.account = key, key.Account
	c.order.nonce, c.order.id = nonce, a.Order
	if a.Order == 0 {
		c.order.clientID = a.ClientID
	}
	c.amend = &amendRequest{AmendRequest: *a}
	return c
}

// NewSettings makes the command that sets the default self-trade mode of the account's orders,
// which Do sends. The record is a KindSettings.
func NewSettings(key *directory.Key, nonce uint64, mode trading.SelfTrade) *Command {
	c := newCommand(event.KindSettings)
	c.key, c.account = key, key.Account
	c.order.nonce, c.setting = nonce, mode
	return c
}

// setSwitch arms the key's dead man's switch: the switch cancels the open orders that pass the
// filter, unless setSwitch is called again within the seconds. 0 seconds disarm it. It is called
// like Place. The record is a KindSwitch.
func (e *Engine) setSwitch(key *directory.Key, nonce uint64, seconds uint32,
	f CancelFilter) (*Command, error) {
	return e.Do(NewSwitch(key, nonce, seconds, f))
}

// NewSwitch makes the command that arms or disarms a dead man's switch, which Do sends.
func NewSwitch(key *directory.Key, nonce uint64, seconds uint32, f CancelFilter) *Command {
	c := newCommand(event.KindSwitch)
	c.key, c.account, c.pair = key, key.Account, f.Pair
	c.order.nonce, c.order.side, c.order.clientID = nonce, f.Side, f.Prefix
	c.switchRequest.seconds = seconds
	return c
}

// SwitchFires implements Commands.
func (e *Engine) SwitchFires(c *Command) int64 { return e.firesAt(c.record.Switch.DueUs) }

func (e *Engine) firesAt(dueUs int64) int64 { return e.switches.firesAt(dueUs, e.nowUs()) }

// Cancel cancels an open order, and is called like Place.
func (e *Engine) Cancel(key *directory.Key, nonce, order uint64) (*Command, error) {
	return e.Do(NewCancel(key, nonce, order, event.ClientID{}))
}

// NewCancel makes the command that cancels an order, which Do or DoAll sends. Order 0: the order
// with the client order id.
func NewCancel(key *directory.Key, nonce, order uint64, id event.ClientID) *Command {
	c := newCommand(event.KindCancel)
	c.key, c.account = key, key.Account
	c.order.nonce, c.order.id = nonce, order
	if order == 0 {
		c.order.clientID = id
	}
	return c
}

// CancelAll cancels all open orders of the key's account that pass a filter, and is called like
// Place. Command.CancelledOrders returns them. RefusedNoOrders: there are none.
func (e *Engine) CancelAll(key *directory.Key, nonce uint64, f CancelFilter) (*Command, error) {
	return e.Do(NewCancelAll(key, nonce, f))
}

// NewCancelAll makes the command that cancels all orders that pass a filter, which Do sends.
func NewCancelAll(key *directory.Key, nonce uint64, f CancelFilter) *Command {
	c := newCommand(kindCancelAll)
	c.key, c.account, c.pair = key, key.Account, f.Pair
	c.order.nonce, c.order.side, c.order.clientID = nonce, f.Side, f.Prefix
	return c
}

// NewWithdrawal makes the command for a withdrawal, which Do sends. The record is a KindWithdrawal.
// Do returns ErrNoMail if no code can be mailed.
func NewWithdrawal(key *directory.Key, nonce uint64, currency uint16, amount money.Amount,
	address string) *Command {
	c := newCommand(event.KindWithdrawal)
	c.key, c.account = key, key.Account
	c.order.nonce = nonce
	c.withdrawal = withdrawalRequest{currency: currency, amount: amount, address: address}
	return c
}

// WithClientID gives a NewWithdrawal the client's own id. RefusedWithdrawalID: another withdrawal,
// which TakenBy returns, has the id.
func (c *Command) WithClientID(id event.ClientID) *Command {
	c.withdrawal.clientID = id
	return c
}

// NewConfirmation makes the command that confirms a withdrawal with its mailed code, which Do
// sends. RefusedWithdrawal: no withdrawal of the account waits for a code. RefusedTries: too many
// wrong codes. A wrong or old code is refused with a record of KindCodeRefused.
func NewConfirmation(key *directory.Key, nonce, withdrawal uint64, code string) *Command {
	return newWithdrawalStatus(key, nonce,
		withdrawalRequest{id: withdrawal, nextStatus: event.WithdrawalVerified, code: code})
}

// NewWithdrawalCancel makes the command that cancels a withdrawal, which Do sends.
// RefusedWithdrawal: it is not the account's, or can no longer be cancelled.
func NewWithdrawalCancel(key *directory.Key, nonce, withdrawal uint64) *Command {
	return newWithdrawalStatus(key, nonce,
		withdrawalRequest{id: withdrawal, nextStatus: event.WithdrawalCancelled})
}

func newWithdrawalStatus(key *directory.Key, nonce uint64, w withdrawalRequest) *Command {
	c := newCommand(event.KindWithdrawalStatus)
	c.key, c.account = key, key.Account
	c.order.nonce, c.withdrawal = nonce, w
	return c
}

// DrainGates implements Commands. Gates pass straight into mailboxes: there is nothing to await.
func (e *Engine) DrainGates(*directory.Key) error { return nil }

// Do implements Commands.
func (e *Engine) Do(c *Command) (*Command, error) {
	one := [1]*Command{c}
	if err := e.Admit(one[:]); err != nil {
		c.Free()
		return nil, err
	}
	if err := e.send(c); err != nil {
		e.returnSlot(c)
		c.Free()
		return nil, err
	}
	return e.outcome(c)
}

// send delivers a command to its wallet's mailbox. After an error no actor has received it.
func (e *Engine) send(c *Command) error { return e.pass(c, c) }

// pass delivers a message to the mailbox of a command's wallet, through the command's gate.
func (e *Engine) pass(c *Command, message any) error {
	if c.gate == nil {
		e.toWallet(c.account, message)
		return nil
	}
	if !c.gate.Pass(func() { e.toWallet(c.account, message) }) {
		return ErrDropped
	}
	return nil
}

// outcome waits for the answer to a command that was sent.
func (e *Engine) outcome(c *Command) (*Command, error) {
	if !e.life.Await(c.reply, c.timer) {
		e.meter.UnknownOutcomes.Add(1)
		return nil, committed.ErrTimeout
	}
	e.measureAnswer(c)
	return c, nil
}

// measureAnswer measures the latency of an answer to its handler.
func (e *Engine) measureAnswer(c *Command) {
	if c.trace.Sent != 0 {
		e.meter.Stages[metrics.StageAnswer].Observe(metrics.Now() - c.trace.Answered)
	}
}
