package actors

import (
	"time"

	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/core/event"
)

// What package node needs of a command that goes to another node, or comes from one.

// NewQuestion makes a command that only carries the answer to a question of another node.
func NewQuestion() *Command { return newCommand(event.KindSwitch) }

// Await reports whether the command has its answer within the time of a request. Otherwise it
// belongs to the one that has yet to answer.
func (c *Command) Await(life *mailbox.Life) bool { return life.Await(c.reply, c.timer) }

// AwaitSince is Await for a request that began at a moment.
func (c *Command) AwaitSince(began time.Time, life *mailbox.Life) bool {
	return life.AwaitSince(began, c.reply, c.timer)
}

// Answer gives the handler the outcome that Parser.Outcome has read, or why there is none; unsent:
// the node that leads did not let the command in.
func (c *Command) Answer(failed error, unsent bool) {
	outcome := c.outcome
	if c.failed, c.unsent = failed, unsent; failed != nil {
		outcome = undecided
	}
	c.answer(outcome)
}

// Failed returns why the command has no outcome, as Answer was told.
func (c *Command) Failed() (err error, unsent bool) { return c.failed, c.unsent }

// Kind returns what is asked for.
func (c *Command) Kind() event.Kind { return c.kind }

// Key returns the key that has signed the command.
func (c *Command) Key() *directory.Key { return c.key }

// Nonce returns that of the command; 0: it came through a gate.
func (c *Command) Nonce() uint64 { return c.order.nonce }

// Gate returns that before the command's wallet; nil: there is none.
func (c *Command) Gate() Gate { return c.gate }

// AnsweredTo has another one get the outcome than a handler.
func (c *Command) AnsweredTo(to Answerer) { c.to = to }

// Session returns the session that the command begins or ends; 0: none.
func (c *Command) Session() (number uint64, change SessionChange) {
	if c.kind != event.KindSwitch {
		return 0, 0
	}
	return c.switching.session, c.switching.change
}

// Renumber gives the session of a command from another node, and the one that it ends, the numbers
// that they have here.
func (c *Command) Renumber(here func(number uint64) uint64) {
	s := &c.switching
	if c.kind != event.KindSwitch || s.session == 0 {
		return
	}
	if s.session = here(s.session); s.instead != 0 {
		s.instead = here(s.instead)
	}
}

// Permission is the one that the command needs.
func (c *Command) Permission() uint8 {
	switch c.kind {
	case event.KindWithdrawal, event.KindWithdrawalMoved:
		return event.PermissionWithdraw
	}
	return event.PermissionTrade
}

// IsBelowMinimum reports whether an order, or the sum that it spends, is below the pair's minimum
// value. An amend is held against it by its book.
func (c *Command) IsBelowMinimum() bool {
	switch {
	case c.kind != event.KindOrder:
		return false
	case c.special != nil && c.special.Quote != 0:
		return c.special.Quote.Balance().Cmp(c.pair.Rules().MinimumOrderValue) < 0
	}
	return c.pair.ValueFault(c.order.price, c.order.amount) != ""
}

// Send sends admitted commands to their wallet. errs gets why one was dropped, at its place: that
// command has been freed, and is nil in the list. A list of several is Sent once it has its
// outcomes. list may not be touched by others before Send returns.
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

// Sent is told that all of a list has its outcome.
func (e *Engine) Sent(list []*Command) {
	if len(list) > 1 {
		e.journal.lists.Add(-1)
	}
}

// Began returns behind which sequence the engine has begun, and in which epoch of owners.
func (e *Engine) Began() (seq uint64, epoch uint32) { return e.own.Last, e.own.Token.Epoch() }

// Stopping reports whether the engine takes no new commands and reads.
func (e *Engine) Stopping() bool { return e.stopping.Load() }

// Released returns the newest sequence whose effects are told.
func (e *Engine) Released() uint64 { return e.committed.Released() }
