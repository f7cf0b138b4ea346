package actors

import (
	"fmt"
	"sync"
	"sync/atomic"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/core/event"
	"exchange/core/ledger"
)

// A client order id is taken by an open order, and by every order that was placed within
// Limits.ClientIDHold. The wallet knows the open orders. The handler looks the closed ones up at
// the committed side, before any actor sees the command, and its look knows all records up to one
// sequence. So the wallet also remembers the orders that closed above the oldest look in flight.
// Rounds tell which look that may be.

// sendNamed looks for a closed order with the client order id of a command, and sends the command
// with the answer to its wallet. After an error no actor has seen the command.
func (e *Engine) sendNamed(c *Command) (err error) {
	c.round = e.rounds.join()
	var pending *committed.PendingLook
	c.order.look, pending, err = e.LookUpClientID(c.account.ID, c.order.clientID,
		e.opts.Limits.placedAfter(c.timeUs))
	defer pending.End()
	if err == nil {
		e.root.Send(c.account.Wallet, c)
	}
	return err
}

// placedAfter returns the time after which an order was placed if its client order id is taken at a
// time although it has closed.
func (l *Limits) placedAfter(timeUs int64) int64 {
	if l.ClientIDHold == 0 {
		return committed.Always
	}
	return timeUs - l.ClientIDHold.Microseconds()
}

// rounds count the commands whose handlers have looked a client order id up, between the look and
// the release. Each belongs to the round in which its look began. All of them are of the current
// round or the one before: the next round begins only when the one before has ended. The ticker
// begins rounds; handlers and the release count.
type rounds struct {
	current atomic.Uint64    // number, from 1 on
	inside  [2]atomic.Int64  // commands, by the round's number modulo 2
	begun   [2]atomic.Uint64 // sequence that was folded when the round began, by the same
	// Up to there wallets may forget: each look in flight, and each later one, knows those records.
	known atomic.Uint64
}

// begin begins the first round.
func (r *rounds) begin(folded uint64) {
	r.begun[1].Store(folded)
	r.current.Store(1)
}

// join counts a command in, before its look begins.
func (r *rounds) join() (round uint64) {
	for {
		round = r.current.Load()
		r.inside[round%2].Add(1)
		if r.current.Load() == round { // otherwise the round may have ended before the count
			return round
		}
		r.inside[round%2].Add(-1)
	}
}

// leave counts a command out.
func (r *rounds) leave(round uint64) { r.inside[round%2].Add(-1) }

// next begins the next round, if the one before the current has ended.
func (r *rounds) next(folded uint64) {
	round := r.current.Load()
	if r.inside[(round+1)%2].Load() > 0 {
		return
	}
	r.known.Store(r.begun[round%2].Load())
	r.begun[(round+1)%2].Store(folded)
	r.current.Store(round + 1)
}

// closedIDs are the client order ids of an account's orders that closed above the oldest look in
// flight. Its wallet owns it.
type closedIDs struct {
	newest ledger.ClientIDs          // of each id the order that closed last
	line   mailbox.FIFO[closedOrder] // in the order in which they closed
}

type closedOrder struct {
	id  uint64
	seq uint64 // of the record that closed it
}

// remember notes an order with a client order id that the newest record has closed.
func (w *wallet) remember(id event.ClientID, order uint64, placedUs int64) {
	if w.closed == nil {
		w.closed = new(closedIDs)
		w.out.remembers(w.account, w.applied)
	}
	c := w.closed
	if older, there := c.newest.Order(id); there {
		c.newest.Close(older)
	}
	c.newest.Open(order, id, placedUs)
	c.line.Push(closedOrder{order, w.applied})
}

// forget drops the orders that closed up to a sequence, which each look knows.
func (w *wallet) forget(known uint64) {
	w.forgotten = known
	c := w.closed
	for c.line.Len() > 0 && c.line.First().seq <= known {
		c.newest.Close(c.line.Pop().id) // unless a later order with its id has closed
	}
	if w.closed = nil; c.line.Len() > 0 {
		w.closed = c
		w.out.remembers(w.account, c.line.Last().seq)
	}
}

// takenBy returns the order that has the client order id of a command; 0: it is free.
func (w *wallet) takenBy(c *Command) uint64 {
	id, look := c.order.clientID, &c.order.look
	if look.Seq < w.forgotten {
		panic(fmt.Sprintf("BUG: wallet %s has forgotten orders that closed up to sequence %d, and "+
			"a handler looked at %d", w.account.Name, w.forgotten, look.Seq))
	}
	if order, open := w.clientIDs.Order(id); open {
		return order
	}
	if w.closed != nil {
		if order, there := w.closed.newest.Order(id); there &&
			w.closed.newest.PlacedUs(order) > w.out.limits().placedAfter(c.timeUs) {
			return order
		}
	}
	return look.Order
}

// forgetClosed tells a wallet up to which sequence it may forget closed orders.
type forgetClosed struct{ known uint64 }

// A remembering has the wallets that remember closed orders. Wallets add themselves, and the ticker
// takes them out.
type remembering struct {
	mu   sync.Mutex
	line mailbox.FIFO[rememberingWallet] // guarded by mu
}

type rememberingWallet struct {
	account *directory.Account
	upTo    uint64 // the newest of its orders closed there, or later
}

func (e *Engine) remembers(a *directory.Account, upTo uint64) {
	e.remembering.mu.Lock()
	defer e.remembering.mu.Unlock()
	e.remembering.line.Push(rememberingWallet{a, upTo})
}

// forget begins a new round, and tells the wallets that may forget now.
func (e *Engine) forget() {
	e.rounds.next(e.committed.Folded())
	known := e.rounds.known.Load()
	r := &e.remembering
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.line.Len() > 0 && r.line.First().upTo <= known {
		e.root.Send(r.line.Pop().account.Wallet, forgetClosed{known})
	}
}
