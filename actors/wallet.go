package actors

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// A wallet is the deciding side of one account: it takes nonces, reserves money, and keeps the
// account's commands in order. One actor owns it.
//
// It has a committed part: balances, reserves and open orders, which settlements alone change. And
// it has a part in flight: reserved amounts, nonces and client order ids of commands that it has
// sent on and not yet seen released. It decides on both, and shows neither.
//
// A refusal may depend on the part in flight: on reserved funds, or on a nonce or a client order id
// that is taken. Such a refusal must not become known before the commands that it depends on. So it
// is held back until all that this wallet had in flight at that moment has been released. So is a
// question for an order by its client order id. A client that lost its answer asks this way, so "no
// such order" must stay true.
//
// Some commands cannot be decided yet: a cancel-all, while any command is on its way, and an order
// or a cancel with the client order id of an order on its way, which may still be refused. Such a
// command waits, and all later ones wait behind it: the account's commands keep their order.
type wallet struct {
	account *directory.Account
	out     walletOut

	applied   uint64 // sequence of the last settlement
	frozen    bool   // also while the record that says so is on its way
	committed ledger.Wallet
	open      ledger.OpenTerms
	inBook    map[uint16]ordersInBook // by pair, also those on their way; no entry is zero
	clientIDs ledger.ClientIDs        // of open orders
	closed    *closedIDs              // nil while there are none
	forgotten uint64                  // up to there it has forgotten closed orders
	nonces    []keyNonce
	pending   map[uint64]*state.Withdrawal // withdrawals, also those on their way; nil while unused
	*rare                                  // nil until the account uses one: few accounts do
	*flight                                // nil until the first command: most accounts are idle
}

// newWallet makes the wallet of an account as the committed side has it.
func newWallet(a *state.Account, committed *committed.Side) *wallet {
	w := &wallet{applied: committed.State().Seq(), frozen: a.Frozen, committed: a.Wallet.Clone(),
		clientIDs: a.ClientIDs.Clone()}
	w.recoverOrders(a, committed.State())
	w.recoverRare(a)
	for _, n := range a.Keys {
		if nonce := committed.Nonce(n); nonce > 0 {
			w.nonces = append(w.nonces, keyNonce{n, nonce})
		}
	}
	for _, d := range a.Withdrawals() {
		if w.pending == nil {
			w.pending = make(map[uint64]*state.Withdrawal)
		}
		copied := *d
		w.pending[d.ID] = &copied
	}
	return w
}

// A flight has what a wallet has sent on and not yet seen released, and what waits for that.
type flight struct {
	reserved      []reservation    // by currency
	placing       int              // orders
	placingIDs    ledger.ClientIDs // their client order ids, by ticket
	amending      []uint64         // open orders with an amend on its way
	tickets       tickets
	held          mailbox.FIFO[heldBack] // refusals, and reads by client order id
	queue         mailbox.FIFO[waiting]  // the first cannot be decided yet
	cancellingAll *cancelAll             // under way, nil if none is
}

// walletOut is where a wallet's decisions go.
type walletOut interface {
	limits() *Limits
	withdrawalPolicy() *WithdrawalPolicy
	Numbered(pair uint16) *directory.Pair
	nextWithdrawal() uint64
	// takes a slot for one more cancel of a cancel-all, beside its first; false: none is free
	widenCancelAll() bool
	narrowCancelAll() // gives it back
	codeFits(w *state.Withdrawal, code string) bool
	insisted(c *Command) // logs an approval despite a freeze
	// has the account's wallet forget closed orders once each look knows the records up to there
	remembers(a *directory.Account, upTo uint64)
	// notes when a switch of the account is due; 0: never
	switchDue(a *directory.Account, id switchID, dueUs int64)
	toBook(c *Command) // c.record.Pair says which
	toJournal(n *entry)
	toCommitted(r *committed.Read) // a read whose nonce is taken; it is answered from r.after on
	finish(c *Command, o Outcome)
}

type keyNonce struct {
	key   uint32
	taken uint64
}

// keyEnded tells a wallet that a key was revoked. From now on the wallet refuses the key's
// commands, and they take no nonce.
type keyEnded struct{ key uint32 }

// heldBack is a refusal or a read that waits for everything in flight up to a ticket.
type heldBack struct {
	upTo  uint64
	entry *entry          // of a refusal; nil: it is a read
	read  *committed.Read // nil: it is a refusal
}

// waiting is a command whose nonce is taken, or a read that is to be held back, until its turn to
// be decided.
type waiting struct {
	command *Command        // nil: it is a read
	read    *committed.Read // nil: it is a command
}

// settled tells a wallet the effects of one released entry.
type settled struct {
	seq        uint64
	settlement ledger.Settlement
	accepted   acceptedOrder
	command    ownCommand
}

// An acceptedOrder is an order of the account that a record accepts, changes or triggers, also
// without a client's command.
type acceptedOrder struct {
	id       uint64 // 0: the record is about no such order
	pair     uint16
	side     trading.Side
	marks    marks
	rests    bool // it is open after the record
	again    bool // it was open before
	clientID event.ClientID
	placedUs int64
	terms    ledger.Terms
}

// Receive implements actor.Actor.
func (w *wallet) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Command:
		if m.kind == event.KindFreeze {
			w.freeze(m)
			return
		}
		w.decide(m)
	case *settled:
		w.settle(m)
		settlements.Put(m)
	case *releasedCancel:
		w.cancelReleased(m.command)
	case *committed.Read:
		w.read(m)
	case forgetClosed:
		w.forget(m.known)
	case *keyEnded:
		w.nonces = slices.DeleteFunc(w.nonces, func(n keyNonce) bool { return n.key == m.key })
	case *probe:
		m.Run(w)
	}
}

func (w *wallet) decide(c *Command) {
	if w.flight == nil {
		w.flight = new(flight)
	}
	if c.key != nil { // an operator has none, and may act for a frozen account
		switch {
		case c.key.Revoked():
			c.refuse(event.RefusedKey) // its nonce counts no more, on both sides
		case !w.takeNonce(c.key.Number, c.order.nonce):
			c.lastNonce = w.lastNonce(c.key.Number)
			c.refuse(event.RefusedNonce)
		case w.frozen:
			c.refuse(event.RefusedFrozen)
		}
	}
	if w.queue.Len() > 0 || !w.act(c) {
		w.queue.Push(waiting{command: c})
	}
}

// act sends a command on, or its refusal. It returns false if the command cannot be decided yet.
func (w *wallet) act(c *Command) bool {
	if c.outcome == Refused {
		w.refused(c)
		return true
	}
	switch c.kind {
	case event.KindCancel:
		if w.placesUnder(c.order.clientID) {
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
	case event.KindWithdrawalMoved:
		w.moveWithdrawal(c)
	case event.KindAmended:
		if w.placesUnder(c.order.clientID) {
			return false
		}
		return w.amend(c)
	case event.KindSettings:
		w.set(c)
	case event.KindSwitch:
		return w.switched(c)
	default:
		if w.placesUnder(c.order.clientID) {
			return false
		}
		w.place(c)
	}
	return true
}

// placesUnder reports whether an order with a client order id is on its way.
func (w *wallet) placesUnder(id event.ClientID) bool {
	if id.IsZero() {
		return false
	}
	_, placing := w.placingIDs.Order(id)
	return placing
}

// actOnWaiting decides the commands and reads that wait, up to the first that still must wait.
func (w *wallet) actOnWaiting() {
	for w.queue.Len() > 0 {
		if next := w.queue.First(); next.read != nil {
			w.holdRead(next.read)
		} else if !w.act(next.command) {
			return
		}
		w.queue.Pop()
	}
}

func (w *wallet) cancel(c *Command) {
	w.find(c)
	pair := w.open.Pair(c.order.id)
	if pair == 0 {
		w.refuse(c, event.RefusedNotOpen)
		return
	}
	c.record.Pair = pair
	c.ticket = w.tickets.draw()
	w.out.toBook(c)
}

// find finds the order that a command names by its client order id; 0: there is none.
func (w *wallet) find(c *Command) {
	if !c.order.clientID.IsZero() {
		c.order.id, _ = w.clientIDs.Order(c.order.clientID)
	}
}

func (w *wallet) place(c *Command) {
	o := &c.order
	if !o.clientID.IsZero() {
		if c.takenBy = w.takenBy(c); c.takenBy != 0 {
			w.refuse(c, event.RefusedClientID)
			return
		}
	}
	if w.open.Len()+w.placing >= w.out.limits().OpenOrdersPerAccount {
		w.refuse(c, event.RefusedAccountLimit)
		return
	}
	if int(w.inBook[c.pair.Number].orders) >= w.out.limits().OpenOrdersPerAccountAndBook {
		w.refuse(c, event.RefusedAccountBookLimit)
		return
	}
	if w.rare != nil || c.special != nil {
		w.instruct(c)
	}
	var m marks
	if s := c.special; s != nil {
		if m = marksFor(&s.Instructions, s.Trigger); !w.hasRoom(c, c.pair.Number, m) {
			return
		}
	}
	currency, need := c.need()
	if !w.reserve(c, currency, need) {
		return
	}
	w.placing++
	w.entersBook(c.pair.Number)
	c.counted = m
	w.count(c.pair.Number, m, 1)
	c.ticket = w.tickets.draw()
	w.placingIDs.Open(c.ticket, o.clientID, 0)
	w.out.toBook(c)
}

// reserve sets money aside for a command. It returns false if there is not enough; the command is
// then refused.
func (w *wallet) reserve(c *Command, currency uint16, need money.Balance) bool {
	r := w.reservedOf(currency)
	available := w.committed.Get(currency).Available().Sub(r.amount)
	if available.Cmp(need) < 0 {
		c.shortfall = reservation{currency, need.Sub(available)}
		w.refuse(c, event.RefusedFunds)
		return false
	}
	r.amount = r.amount.Add(need)
	c.reserved = reservation{currency, need}
	return true
}

func (w *wallet) refuse(c *Command, reason uint8) {
	c.refuse(reason)
	w.refused(c)
}

// refused sends a refusal to the journal, behind everything that is in flight now. The refusal has
// used its nonce, so it is in flight itself until its release.
func (w *wallet) refused(c *Command) {
	before, waits := w.tickets.last(), w.tickets.out() > 0
	c.ticket = w.tickets.draw()
	if waits {
		w.held.Push(heldBack{upTo: before, entry: &c.entry})
		return
	}
	w.out.toJournal(&c.entry)
}

// read takes the nonce of a read and passes it on.
func (w *wallet) read(r *committed.Read) {
	key, nonce := r.Key()
	switch {
	case key.Revoked():
		r.Err = committed.ErrKeyRevoked
	case !w.takeNonce(key.Number, nonce):
		r.Err = &committed.NonceError{Last: w.lastNonce(key.Number)}
	default:
		if !r.IsNamed() {
			w.out.toCommitted(r)
			return
		}
	}
	if w.flight != nil && w.queue.Len() > 0 {
		r.Park()
		w.queue.Push(waiting{read: r})
		return
	}
	w.holdRead(r)
}

func (w *wallet) holdRead(r *committed.Read) {
	if w.flight == nil || w.tickets.out() == 0 {
		w.letReadGo(r)
		return
	}
	r.Park()
	w.held.Push(heldBack{upTo: w.tickets.last(), read: r})
}

// letReadGo answers a refused read. It passes another read on, to be answered from a state that has
// all that this wallet has seen.
func (w *wallet) letReadGo(r *committed.Read) {
	if r.Err != nil {
		r.Answer()
		return
	}
	r.Unpark(w.applied)
	w.out.toCommitted(r)
}

func (w *wallet) takeNonce(key uint32, nonce uint64) bool {
	for i := range w.nonces {
		if n := &w.nonces[i]; n.key == key {
			if nonce <= n.taken {
				return false
			}
			n.taken = nonce
			return true
		}
	}
	w.nonces = append(w.nonces, keyNonce{key, nonce})
	return nonce > 0
}

// lastNonce returns the highest nonce that a key has used.
func (w *wallet) lastNonce(key uint32) uint64 {
	for _, n := range w.nonces {
		if n.key == key {
			return n.taken
		}
	}
	return 0
}

func (w *wallet) reservedOf(currency uint16) *reservation {
	for i := range w.reserved {
		if w.reserved[i].currency == currency {
			return &w.reserved[i]
		}
	}
	w.reserved = append(w.reserved, reservation{currency: currency})
	return &w.reserved[len(w.reserved)-1]
}

// settle applies all effects of one released entry on this account, in one turn.
func (w *wallet) settle(m *settled) {
	if m.seq <= w.applied {
		panic(fmt.Sprintf("BUG: wallet %s has applied sequence %d and gets %d", w.account.Name,
			w.applied, m.seq))
	}
	w.applied = m.seq
	own := &m.command
	if own.ticket != 0 {
		w.giveBack(m)
	}
	changes := m.settlement.Changes()
	for i := range changes {
		if err := w.committed.Apply(&changes[i]); err != nil {
			panic(fmt.Sprintf("BUG: wallet %s at sequence %d: %v", w.account.Name, m.seq, err))
		}
	}
	for _, id := range m.settlement.Closed {
		w.leavesBook(w.open.Pair(id))
		w.mark(id, 0)
		w.open.Remove(id)
		if name, placedUs := w.clientIDs.Close(id); !name.IsZero() {
			w.remember(name, id, placedUs)
		}
	}
	if m.accepted.id != 0 {
		w.accepted(&m.accepted, own.placed)
	}
	if own.ticket != 0 {
		w.tickets.giveBack(own.ticket)
		w.letGo()
		w.actOnWaiting()
	}
	if w.flight != nil {
		w.check()
	}
}

// giveBack ends what was set aside for a command.
func (w *wallet) giveBack(m *settled) {
	own := &m.command
	if !own.reserved.amount.IsZero() {
		r := w.reservedOf(own.reserved.currency)
		r.amount = r.amount.Sub(own.reserved.amount)
	}
	if own.placed {
		w.placing--
		w.placingIDs.Close(own.ticket)
		if !m.accepted.rests {
			w.leavesBook(own.pair)
		}
	}
	w.count(own.pair, own.counted, -1)
	if own.amends != 0 {
		w.amending = slices.DeleteFunc(w.amending, func(id uint64) bool {
			return id == own.amends
		})
	}
}

// accepted takes in an order that a record accepts or changes. If this wallet placed it, its book's
// count has it already.
func (w *wallet) accepted(o *acceptedOrder, placed bool) {
	switch {
	case o.again:
		if o.rests {
			w.open.Change(o.id, o.terms)
			w.mark(o.id, o.marks&(w.marksOf(o.id)|^marksStop)) // a change makes no stop
		}
		return // otherwise it is among the closed ones
	case !o.rests:
		if !o.clientID.IsZero() {
			w.remember(o.clientID, o.id, o.placedUs)
		}
		return
	}
	w.clientIDs.Open(o.id, o.clientID, o.placedUs)
	w.open.Add(o.id, o.pair, o.side, o.terms)
	w.mark(o.id, o.marks)
	if !placed {
		w.entersBook(o.pair)
	}
}

// inFlight returns an upper bound of the commands in flight, which is 0 exactly if there is none.
func (w *wallet) inFlight() int {
	if w.flight == nil {
		return 0
	}
	return w.tickets.out() + w.queue.Len()
}

// letGo sends on the refusals and reads that have waited long enough.
func (w *wallet) letGo() {
	for w.held.Len() > 0 && w.tickets.allBack(w.held.First().upTo) {
		if h := w.held.Pop(); h.read != nil {
			w.letReadGo(h.read)
		} else {
			w.out.toJournal(h.entry)
		}
	}
}

// check checks the working invariant: the available money covers the amounts in flight.
func (w *wallet) check() {
	for _, r := range w.reserved {
		if w.committed.Get(r.currency).Available().Cmp(r.amount) < 0 {
			panic(
				fmt.Sprintf(
					"BUG: wallet %s has less of currency %d available than is in flight (%v)",
					w.account.Name, r.currency, r.amount))
		}
	}
}
