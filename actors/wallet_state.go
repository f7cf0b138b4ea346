package actors

import (
	"fmt"
	"slices"

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
// Its committed part holds balances, reserves and open orders, which only settlements change. Its
// part in flight holds what commands that are sent on and not yet released have taken: amounts,
// nonces and client order ids. It decides on both, and shows neither.
//
// A refusal may depend on the part in flight: on reserved funds, or on a used nonce or client order
// id. Such a refusal must not become visible before the commands that it depends on. So the wallet
// holds it back until everything in flight at that moment is released. It holds back a query for an
// order by its client order id likewise. A client that lost its answer queries this way, so "no
// such order" must stay true.
//
// Some commands cannot be decided yet: a cancel-all, while any command is in flight, and an order
// or a cancel with the client order id of an order in flight, which may still be refused. Such a
// command waits, and all later ones queue after it: the account's commands keep their order.
type wallet struct {
	account *directory.Account
	out     walletOut

	early              *mailbox.FIFO[any] // messages before its state arrived; nil: started
	applied            uint64             // sequence of the last settlement
	frozen             bool               // also while the record of the freeze is in flight
	balances           ledger.Wallet
	open               ledger.OpenTerms
	inBook             map[uint16]ordersInBook // by pair, with those in flight; none is zero
	clientIDs          ledger.ClientIDs
	nonces             []keyNonce
	pendingWithdrawals map[uint64]*state.Withdrawal // including those in flight; nil while unused
	*rare                                           // nil until first used: few accounts do
	*flight                                         // nil until the first command
}

// A flight holds a wallet's unreleased commands, and everything that waits for their release.
type flight struct {
	reserved      []reservation    // by currency
	newOrders     int              // orders in flight
	newOrderIDs   ledger.ClientIDs // their client order ids, by ticket
	amendedOrders []uint64         // open orders with an amend in flight
	tickets       tickets
	heldBack      mailbox.FIFO[heldBack] // refusals, and reads by client order id
	queue         mailbox.FIFO[waiting]  // the first cannot be decided yet
	cancellingAll *cancelAll             // the running one; nil: none
}

// walletOut is the engine as a wallet uses it: it receives decisions and answers questions.
type walletOut interface {
	limits() *Limits
	withdrawalPolicy() *WithdrawalPolicy
	PairByNumber(pair uint16) *directory.Pair
	nextWithdrawal() uint64
	// takes a slot for one more cancel of a cancel-all, beside its first; false: none is free
	takeCancelSlot() bool
	returnCancelSlot()
	codeMatches(w *state.Withdrawal, code string) bool
	logDespiteFreeze(c *Command) // logs an approval despite a freeze
	// sets when a switch of the account fires; 0: never
	scheduleSwitch(a *directory.Account, id switchID, dueUs int64)
	toBook(c *Command) // to the book of c.record.Pair
	toJournal(n *entry)
	refuseClose(c *Command) // refuses to close the account, for its adminErr
	CurrencyCode(number uint16) string
	toCommitted(r *committed.Read) // a read whose nonce is taken, to answer from r.after on
	finish(c *Command, o Outcome)
}

// keyNonce holds a key's used nonces.
type keyNonce struct {
	key      uint32
	greatest uint64        // the greatest
	used     *state.Nonces // of a key with a nonce window; nil: nonces must increase
}

// keyRevoked notifies a wallet of a revoked key. From now on the wallet refuses the key's commands,
// and they take no nonce.
type keyRevoked struct{ key uint32 }

// heldBack is a refusal or a read that waits for everything in flight up to a ticket.
type heldBack struct {
	upTo  uint64
	entry *entry          // of a refusal; nil: a read
	read  *committed.Read // nil: a refusal
}

// waiting is a command whose nonce is taken, or a read to be held back, until its turn to be
// decided.
type waiting struct {
	command *Command        // nil: a read
	read    *committed.Read // nil: a command
}

// rare holds the parts that few accounts use. A wallet gets them with the first use.
type rare struct {
	selfTrade trading.SelfTrade     // default mode of orders
	flags     map[uint64]orderFlags // of open orders with any; nil while unused
	switches  []event.Switch        // armed ones, including those that fire
	sessions  []liveSession
	// client ids of withdrawals, including those in flight
	withdrawalIDs state.WithdrawalIDs
	holdEndsUs    int64 // end of the hold on withdrawals, also while the record is in flight
}

// rareParts returns the rare parts, creating them if needed.
func (w *wallet) rareParts() *rare {
	if w.rare == nil {
		w.rare = new(rare)
	}
	return w.rare
}

// orderInFlight reports whether a new order with that client order id is in flight.
func (w *wallet) orderInFlight(id event.ClientID) bool {
	return w.newOrderIDs.TakenBy(id, 0) != 0
}

// resolveOrderID sets the order of a command that names a client order id; 0: no such order.
func (w *wallet) resolveOrderID(c *Command) {
	if !c.order.clientID.IsZero() {
		c.order.id, _ = w.clientIDs.Order(c.order.clientID)
	}
}

// takeNonce takes a nonce of a key, if it is above the key's last one, or unused in its window.
func (w *wallet) takeNonce(key *directory.Key, nonce uint64) bool {
	at := slices.IndexFunc(w.nonces, func(n keyNonce) bool { return n.key == key.Number })
	if at < 0 {
		at = len(w.nonces)
		w.nonces = append(w.nonces, keyNonce{key: key.Number})
		if key.NonceWindow > 0 {
			w.nonces[at].used = state.NewNonces(key.NonceWindow)
		}
	}
	return w.nonces[at].take(nonce)
}

func (n *keyNonce) take(nonce uint64) bool {
	if n.used != nil && !n.used.Take(nonce) || n.used == nil && nonce <= n.greatest {
		return false
	}
	n.greatest = max(n.greatest, nonce)
	return true
}

// lastNonce returns the highest used nonce of a key.
func (w *wallet) lastNonce(key uint32) uint64 {
	for _, n := range w.nonces {
		if n.key == key {
			return n.greatest
		}
	}
	return 0
}

// reserve reserves money for a command. Without enough it returns false, and sets the command's
// shortfall.
func (w *wallet) reserve(c *Command, currency uint16, need money.Balance) bool {
	r := w.reservedOf(currency)
	available := w.balances.Get(currency).Available().Sub(r.amount)
	if available.Cmp(need) < 0 {
		c.shortfall = reservation{currency, need.Sub(available)}
		return false
	}
	r.amount = r.amount.Add(need)
	c.reserved = reservation{currency, need}
	return true
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

func (w *wallet) refuse(c *Command, reason uint8) {
	c.refuse(reason)
	w.sendRefusal(c)
}

// sendRefusal sends a refusal to the journal, after everything in flight now. A refusal takes its
// command's nonce, so it is in flight itself until its release.
func (w *wallet) sendRefusal(c *Command) {
	before, waits := w.tickets.last(), w.tickets.out() > 0
	c.ticket = w.tickets.draw()
	if waits {
		w.heldBack.Push(heldBack{upTo: before, entry: &c.entry})
		return
	}
	w.out.toJournal(&c.entry)
}

// accept sends an accepted command to the journal.
func (w *wallet) accept(c *Command) {
	c.outcome = Accepted
	w.send(c)
}

// inFlight returns an upper bound of the commands in flight, which is 0 only if there are none.
func (w *wallet) inFlight() int {
	if w.flight == nil {
		return 0
	}
	return w.tickets.out() + w.queue.Len()
}

// check checks the wallet's invariant: the available money covers the amounts in flight.
func (w *wallet) check() {
	for _, r := range w.reserved {
		if w.balances.Get(r.currency).Available().Cmp(r.amount) < 0 {
			panic(fmt.Sprintf(
				"BUG: wallet %s has less of currency %d available than is in flight (%v)",
				w.account.Name, r.currency, r.amount))
		}
	}
}

// countInBook counts an order in flight to a book, or one that a start finds there.
func (w *wallet) countInBook(pair uint16) {
	if w.inBook == nil {
		w.inBook = make(map[uint16]ordersInBook)
	}
	n := w.inBook[pair]
	n.orders++
	w.inBook[pair] = n
}

// uncountInBook removes an order from the count: it did not come to rest, or rests no more.
func (w *wallet) uncountInBook(pair uint16) {
	n := w.inBook[pair]
	n.orders--
	w.setCount(pair, n)
}

func (w *wallet) setCount(pair uint16, n ordersInBook) {
	if n == (ordersInBook{}) {
		delete(w.inBook, pair)
		return
	}
	w.inBook[pair] = n
}

// countFlags counts an order of a pair by its flags; by is 1 or -1.
func (w *wallet) countFlags(pair uint16, m orderFlags, by int32) {
	if m&(flagStop|flagGTD) == 0 {
		return
	}
	n := w.inBook[pair]
	n.add(m, by)
	w.setCount(pair, n)
}

// setFlags sets an open order's flags, and counts it by them.
func (w *wallet) setFlags(id uint64, m orderFlags) {
	if w.rare == nil && m == 0 {
		return
	}
	r := w.rareParts()
	before := r.flags[id]
	if before == m {
		return
	}
	pair := w.open.Pair(id)
	w.countFlags(pair, before, -1)
	w.countFlags(pair, m, 1)
	if m == 0 {
		delete(r.flags, id)
		return
	}
	if r.flags == nil {
		r.flags = make(map[uint64]orderFlags)
	}
	r.flags[id] = m
}

// flagsOf returns the flags of an open order.
func (w *wallet) flagsOf(id uint64) orderFlags {
	if w.rare == nil {
		return 0
	}
	return w.rare.flags[id]
}

// checkFlagLimits returns why a pair's limits allow no order with these flags; 0: they allow it.
func (w *wallet) checkFlagLimits(pair uint16, m orderFlags) (refusal uint8) {
	n, limits := w.inBook[pair], w.out.limits()
	switch {
	case m&flagStop != 0 && int(n.stopCount) >= limits.StopsPerAccountAndBook:
		return event.RefusedStopLimit
	case m&flagGTD != 0 && int(n.gtd) >= limits.GTDPerAccountAndBook:
		return event.RefusedGTDLimit
	}
	return 0
}

// send submits a decided command to the journal at once.
func (w *wallet) send(c *Command) {
	c.encode()
	c.ticket = w.tickets.draw()
	w.out.toJournal(&c.entry)
}
