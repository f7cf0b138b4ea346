package actors

import (
	"time"

	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/core/event"
)

// Package node's access to commands that go to another node, or come from one.

// NewQuestion makes a command that only carries the answer to another node's question.
func NewQuestion() *Command { return newCommand(event.KindSwitch) }

// Await reports whether the command is answered within the time of a request. Otherwise it belongs
// to the owner that has yet to answer.
func (c *Command) Await(life *mailbox.Life) bool { return life.Await(c.reply, c.timer) }

// AwaitSince is Await for a request that began at a given time.
func (c *Command) AwaitSince(began time.Time, life *mailbox.Life) bool {
	return life.AwaitSince(began, c.reply, c.timer)
}

// Answer gives the handler the outcome that Parser.Outcome has read, or the error why there is
// none; notAdmitted: the leader did not admit the command.
func (c *Command) Answer(err error, notAdmitted bool) {
	outcome := c.outcome
	if c.remoteErr, c.notAdmitted = err, notAdmitted; err != nil {
		outcome = undecided
	}
	c.answer(outcome)
}

// Failed returns why the command has no outcome, as given to Answer.
func (c *Command) Failed() (err error, notAdmitted bool) { return c.remoteErr, c.notAdmitted }

// Kind returns the requested kind.
func (c *Command) Kind() event.Kind { return c.kind }

// Key returns the key that signed the command.
func (c *Command) Key() *directory.Key { return c.key }

// Nonce returns the command's nonce; 0: it came through a gate.
func (c *Command) Nonce() uint64 { return c.order.nonce }

// Gate returns the gate before the command's wallet; nil: none.
func (c *Command) Gate() Gate { return c.gate }

// ReplyTo sends the outcome to an Answerer instead of a handler.
func (c *Command) ReplyTo(to Answerer) { c.answerTo = to }

// Session returns the session that the command begins or ends; 0: none.
func (c *Command) Session() (number uint64, change SessionChange) {
	if c.kind != event.KindSwitch {
		return 0, 0
	}
	return c.switchRequest.session, c.switchRequest.change
}

// Renumber maps the session of another node's command, and the session that it replaces, to this
// node's numbers.
func (c *Command) Renumber(here func(number uint64) uint64) {
	s := &c.switchRequest
	if c.kind != event.KindSwitch || s.session == 0 {
		return
	}
	if s.session = here(s.session); s.instead != 0 {
		s.instead = here(s.instead)
	}
}

// Permission returns the permission that the command needs.
func (c *Command) Permission() uint8 {
	switch c.kind {
	case event.KindWithdrawal, event.KindWithdrawalStatus:
		return event.PermissionWithdraw
	}
	return event.PermissionTrade
}

// IsBelowMinimum reports whether an order, or the sum that it spends, is below the pair's minimum
// value. The book checks an amend against it.
func (c *Command) IsBelowMinimum() bool {
	switch {
	case c.kind != event.KindOrder:
		return false
	case c.special != nil && c.special.Quote != 0:
		return c.special.Quote.Balance().Cmp(c.pair.Rules().MinimumOrderValue) < 0
	}
	return c.pair.ValueFault(c.order.price, c.order.amount) != ""
}

// Send sends admitted commands to their wallet. A dropped command's error is at its index of errs;
// it has been freed, and is nil in the list. A list of several is Sent once it has its outcomes.
// Others may not touch list before Send returns.
func (e *Engine) Send(list []*Command, errs []error) {
	if len(list) > 1 {
		e.journal.lists.Add(1)
	}
	if c := list[0]; len(list) == 1 {
		e.toWallet(c.account, c)
		return
	}
	e.sendAll(list, errs)
}

// Sent notes that a whole list has its outcomes.
func (e *Engine) Sent(list []*Command) {
	if len(list) > 1 {
		e.journal.lists.Add(-1)
	}
}

// StartPoint returns the last sequence before the engine's start, and its epoch of ownership.
func (e *Engine) StartPoint() (seq uint64, epoch uint32) { return e.own.Last, e.own.Token.Epoch() }

// Stopping reports whether new commands and reads are refused.
func (e *Engine) Stopping() bool { return e.stopping.Load() }

// Released returns the newest sequence whose effects are visible.
func (e *Engine) Released() uint64 { return e.committed.Released() }
