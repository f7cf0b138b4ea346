package actors

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/mailbox"
	"exchange/core/event"
	"exchange/core/state"
)

// newWallet makes a wallet from its account's committed state.
func newWallet(a *state.Account, side *committed.Side) *wallet {
	seq := side.State().Seq()
	w := &wallet{applied: seq, frozen: a.Frozen, balances: a.Wallet.Clone(),
		clientIDs: a.ClientIDs.Clone()}
	w.recoverOrders(a, side.State())
	w.recoverRare(a)
	for _, n := range a.Keys {
		if nonce := side.Nonce(n); nonce > 0 {
			w.nonces = append(w.nonces, keyNonce{n, nonce, side.Nonces(n)})
		}
	}
	for _, d := range a.Withdrawals() {
		if w.pendingWithdrawals == nil {
			w.pendingWithdrawals = make(map[uint64]*state.Withdrawal)
		}
		copied := *d
		w.pendingWithdrawals[d.ID] = &copied
	}
	return w
}

// Receive implements actor.Actor.
func (w *wallet) Receive(ctx actor.Context) {
	if message := ctx.Message(); w.early != nil {
		w.receiveEarly(message)
	} else {
		w.receive(message)
	}
}

func (w *wallet) receive(message any) {
	switch m := message.(type) {
	case *Command:
		switch m.kind {
		case event.KindFreeze:
			w.freeze(m)
		case event.KindEmail:
			w.changeEmail(m)
		case event.KindAccountClosed:
			w.close(m)
		default:
			w.decide(m)
		}
	case *commandBatch:
		w.decideAll(m)
	case *settled:
		w.settle(m)
		settlements.Put(m)
	case *releasedCancel:
		w.cancelReleased(m.command)
	case *committed.Read:
		w.read(m)
	case *keyRevoked:
		w.nonces = slices.DeleteFunc(w.nonces, func(n keyNonce) bool { return n.key == m.key })
	case *mailbox.Probe:
		m.Run(w)
	}
}

func (w *wallet) decide(c *Command) {
	w.refuseFor(c, w.authorize(c))
	w.actOrWait(c)
}

// authorize takes the nonce of a command, and returns 0, or why the key may not send it. A command
// through a gate has no nonce: its login, which cannot be replayed, replaces it. An operator has no
// key, and may act for a frozen account. An internal command needs no authorization.
func (w *wallet) authorize(c *Command) (reason uint8) {
	switch {
	case c.key == nil, c.internal:
	case c.key.Revoked():
		return event.RefusedKey // its nonce no longer counts, on both sides
	case c.gate == nil && !w.takeNonce(c.key, c.order.nonce):
		return event.RefusedNonce
	case w.frozen:
		return event.RefusedFrozen
	}
	return 0
}

// refuseFor refuses a command for a reason from authorize; 0: it does nothing.
func (w *wallet) refuseFor(c *Command, reason uint8) {
	if reason == event.RefusedNonce {
		c.lastNonce = w.lastNonce(c.key.Number)
	}
	if reason != 0 {
		c.refuse(reason)
	}
}

// actOrWait acts on a command, or queues it after those that already wait.
func (w *wallet) actOrWait(c *Command) {
	if w.flight == nil {
		w.flight = new(flight)
	}
	if w.queue.Len() > 0 || !w.act(c) {
		w.queue.Push(waiting{command: c})
	}
}

// act decides a command, and sends on it or its refusal. It returns false if it must still wait.
func (w *wallet) act(c *Command) bool {
	if c.outcome == Refused {
		w.sendRefusal(c)
		return true
	}
	switch c.kind {
	case event.KindCancel:
		if w.orderInFlight(c.order.clientID) {
			return false
		}
		w.cancel(c)
	case kindCancelAll:
		if w.cancellingAll != nil || w.tickets.out() > 0 {
			return false
		}
		w.beginCancelAll(c)
	case event.KindWithdrawal:
		w.withdrawal(c)
	case event.KindWithdrawalStatus:
		w.setWithdrawalStatus(c)
	case event.KindAdjusted:
		w.adjust(c)
	case event.KindAmended:
		if w.orderInFlight(c.order.clientID) {
			return false
		}
		return w.amend(c)
	case event.KindSettings:
		w.changeSettings(c)
	case event.KindSwitch:
		return w.changeSwitch(c)
	default:
		if w.orderInFlight(c.order.clientID) {
			return false
		}
		w.place(c)
	}
	return true
}

// actOnWaiting decides waiting commands and reads, up to the first that must still wait.
func (w *wallet) actOnWaiting() {
	for w.queue.Len() > 0 {
		if next := w.queue.First(); next.read != nil {
			w.releaseOrHold(next.read)
		} else if !w.act(next.command) {
			return
		}
		w.queue.Pop()
	}
}

// cancelReleased counts a released cancel of a cancel-all, and ends the cancel-all after the last.
func (w *wallet) cancelReleased(c *Command) {
	ended := w.countReleased(c)
	if ended == nil {
		return
	}
	if ended.kind == event.KindSwitch {
		w.endSwitch(ended)
	} else {
		slices.Sort(ended.cancelledOrders)
		w.out.finish(ended, Accepted)
	}
	w.actOnWaiting()
}

func (w *wallet) place(c *Command) {
	o := &c.order
	if c.takenBy = w.clientIDs.TakenBy(o.clientID, c.timeUs); c.takenBy != 0 {
		w.refuse(c, event.RefusedClientID)
		return
	}
	if w.open.Len()+w.newOrders >= w.out.limits().OpenOrdersPerAccount {
		w.refuse(c, event.RefusedAccountLimit)
		return
	}
	if int(w.inBook[c.pair.Number].orders) >= w.out.limits().OpenOrdersPerAccountAndBook {
		w.refuse(c, event.RefusedAccountBookLimit)
		return
	}
	if w.rare != nil || c.special != nil {
		w.applySettings(c)
	}
	var m orderFlags
	if s := c.special; s != nil {
		m = flagsFor(&s.Instructions, s.Trigger)
		if reason := w.checkFlagLimits(c.pair.Number, m); reason != 0 {
			w.refuse(c, reason)
			return
		}
	}
	currency, need := c.need()
	if !w.reserve(c, currency, need) {
		w.refuse(c, event.RefusedFunds)
		return
	}
	w.newOrders++
	w.countInBook(c.pair.Number)
	c.countedFlags = m
	w.countFlags(c.pair.Number, m, 1)
	c.ticket = w.tickets.draw()
	w.newOrderIDs.Open(c.ticket, o.clientID)
	w.out.toBook(c)
}

// read takes the nonce of a read, and passes the read on.
func (w *wallet) read(r *committed.Read) {
	key, nonce := r.Key()
	switch {
	case key.Revoked():
		r.Err = committed.ErrKeyRevoked
	case nonce != 0 && !w.takeNonce(key, nonce): // 0: its login replaces it
		r.Err = &committed.NonceError{Last: w.lastNonce(key.Number)}
	default:
		if !r.ByClientID() {
			w.out.toCommitted(r)
			return
		}
	}
	if w.flight != nil && w.queue.Len() > 0 {
		r.Park()
		w.queue.Push(waiting{read: r})
		return
	}
	w.releaseOrHold(r)
}

// releaseOrHold releases a read, or holds it back until the commands now in flight are released.
func (w *wallet) releaseOrHold(r *committed.Read) {
	if w.flight == nil || w.tickets.out() == 0 {
		w.releaseRead(r)
		return
	}
	r.Park()
	w.heldBack.Push(heldBack{upTo: w.tickets.last(), read: r})
}

// releaseRead answers a refused read. It passes another read on, to be answered from a state that
// includes everything this wallet has seen.
func (w *wallet) releaseRead(r *committed.Read) {
	if r.Err != nil {
		r.Answer()
		return
	}
	r.Unpark(w.applied)
	w.out.toCommitted(r)
}

// settle applies all effects of one released entry on this account, in one turn.
func (w *wallet) settle(m *settled) {
	if m.seq <= w.applied {
		panic(fmt.Sprintf("BUG: wallet %s has applied sequence %d and gets %d", w.account.Name,
			w.applied, m.seq))
	}
	w.applied = m.seq
	command := &m.command
	if command.ticket != 0 {
		w.returnReservations(m)
	}
	changes := m.settlement.Changes()
	for i := range changes {
		if err := w.balances.Apply(&changes[i]); err != nil {
			panic(fmt.Sprintf("BUG: wallet %s at sequence %d: %v", w.account.Name, m.seq, err))
		}
	}
	for _, id := range m.settlement.Closed {
		w.uncountInBook(w.open.Pair(id))
		w.setFlags(id, 0)
		w.open.Remove(id)
		w.clientIDs.Close(id, m.timeUs)
	}
	if m.accepted.id != 0 {
		w.applyOrder(&m.accepted, command.countedOrder, m.timeUs)
	}
	if command.ticket != 0 {
		w.tickets.giveBack(command.ticket)
		w.releaseHeldBack()
		w.actOnWaiting()
	}
	if w.flight != nil {
		w.check()
	}
}

// returnReservations takes back what the wallet has reserved and counted for a command.
func (w *wallet) returnReservations(m *settled) {
	command := &m.command
	if !command.reserved.amount.IsZero() {
		r := w.reservedOf(command.reserved.currency)
		r.amount = r.amount.Sub(command.reserved.amount)
	}
	if command.countedOrder {
		w.newOrders--
		w.newOrderIDs.Drop(command.ticket)
		if !m.accepted.rests {
			w.uncountInBook(command.pair)
		}
	}
	w.countFlags(command.pair, command.countedFlags, -1)
	if command.amendedOrder != 0 {
		w.amendedOrders = slices.DeleteFunc(w.amendedOrders, func(id uint64) bool {
			return id == command.amendedOrder
		})
	}
}

// applyOrder applies an order that a record accepts or changes at timeUs. An order placed by this
// wallet's command (placed) is already counted in its book.
func (w *wallet) applyOrder(o *acceptedOrder, placed bool, timeUs int64) {
	if o.wasOpen {
		if o.rests {
			w.open.Change(o.id, o.terms)
			w.setFlags(o.id, o.flags&(w.flagsOf(o.id)|^flagStop)) // a change makes no stop
		}
		return // otherwise the settlement has closed it
	}
	w.clientIDs.Open(o.id, o.clientID)
	if !o.rests {
		w.clientIDs.Close(o.id, timeUs)
		return
	}
	w.open.Add(o.id, o.pair, o.side, o.terms)
	w.setFlags(o.id, o.flags)
	if !placed {
		w.countInBook(o.pair)
	}
}

// releaseHeldBack sends refusals and reads that are no longer held back.
func (w *wallet) releaseHeldBack() {
	for w.heldBack.Len() > 0 && w.tickets.allBack(w.heldBack.First().upTo) {
		if h := w.heldBack.Pop(); h.read != nil {
			w.releaseRead(h.read)
		} else {
			w.out.toJournal(h.entry)
		}
	}
}
