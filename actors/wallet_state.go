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

	early     *mailbox.FIFO[any] // messages before it has begun; nil: it has
	applied   uint64             // sequence of the last settlement
	frozen    bool               // also while the record that says so is on its way
	committed ledger.Wallet
	open      ledger.OpenTerms
	inBook    map[uint16]ordersInBook // by pair, also those on their way; no entry is zero
	clientIDs ledger.ClientIDs
	nonces    []keyNonce
	pending   map[uint64]*state.Withdrawal // withdrawals, also those on their way; nil while unused
	*rare                                  // nil until the account uses one: few accounts do
	*flight                                // nil until the first command: most accounts are idle
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
	// notes when a switch of the account is due; 0: never
	switchDue(a *directory.Account, id switchID, dueUs int64)
	toBook(c *Command) // c.record.Pair says which
	toJournal(n *entry)
	refuseEnd(c *Command) // does not let the account be closed, for its adminErr
	CurrencyCode(number uint16) string
	toCommitted(r *committed.Read) // a read whose nonce is taken; it is answered from r.after on
	finish(c *Command, o Outcome)
}

// keyNonce is what a key has used.
type keyNonce struct {
	key   uint32
	taken uint64        // the greatest
	used  *state.Nonces // of a key for parallel use; nil: its nonces grow
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

// rare has the parts of a wallet that few accounts have. A wallet gets them with the first use.
type rare struct {
	selfTrade trading.SelfTrade // mode of an order that names none
	marks     map[uint64]marks  // open orders with any; nil while unused
	switches  []event.Switch    // armed ones, those that fire included
	sessions  []liveSession
	// client ids of withdrawals, also of those on their way
	withdrawalIDs state.WithdrawalIDs
	heldUs        int64 // until when no money is withdrawn, also while the record is on its way
}

// rareParts returns the rare parts, made when there are none yet.
func (w *wallet) rareParts() *rare {
	if w.rare == nil {
		w.rare = new(rare)
	}
	return w.rare
}

// placesUnder reports whether an order with a client order id is on its way.
func (w *wallet) placesUnder(id event.ClientID) bool {
	return w.placingIDs.TakenBy(id, 0) != 0
}

// find finds the order that a command names by its client order id; 0: there is none.
func (w *wallet) find(c *Command) {
	if !c.order.clientID.IsZero() {
		c.order.id, _ = w.clientIDs.Order(c.order.clientID)
	}
}

// takeNonce takes a nonce of a key, if it is above the last one, or, for parallel use, not used.
func (w *wallet) takeNonce(key *directory.Key, nonce uint64) bool {
	at := slices.IndexFunc(w.nonces, func(n keyNonce) bool { return n.key == key.Number })
	if at < 0 {
		at = len(w.nonces)
		w.nonces = append(w.nonces, keyNonce{key: key.Number})
		if key.Parallel > 0 {
			w.nonces[at].used = state.NewNonces(key.Parallel)
		}
	}
	return w.nonces[at].take(nonce)
}

func (n *keyNonce) take(nonce uint64) bool {
	if n.used != nil && !n.used.Take(nonce) || n.used == nil && nonce <= n.taken {
		return false
	}
	n.taken = max(n.taken, nonce)
	return true
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

// reserve sets money aside for a command. It returns false if there is not enough, and notes in the
// command how much is missing.
func (w *wallet) reserve(c *Command, currency uint16, need money.Balance) bool {
	r := w.reservedOf(currency)
	available := w.committed.Get(currency).Available().Sub(r.amount)
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

// accept sends a command that was granted to the journal.
func (w *wallet) accept(c *Command) {
	c.outcome = Accepted
	w.send(c)
}

// inFlight returns an upper bound of the commands in flight, which is 0 exactly if there is none.
func (w *wallet) inFlight() int {
	if w.flight == nil {
		return 0
	}
	return w.tickets.out() + w.queue.Len()
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

// entersBook counts an order on its way to a book, or one that a start finds there.
func (w *wallet) entersBook(pair uint16) {
	if w.inBook == nil {
		w.inBook = make(map[uint16]ordersInBook)
	}
	n := w.inBook[pair]
	n.orders++
	w.inBook[pair] = n
}

// leavesBook takes an order off the count of entersBook: it did not come to rest, or rests no more.
func (w *wallet) leavesBook(pair uint16) {
	n := w.inBook[pair]
	n.orders--
	w.keepCount(pair, n)
}

func (w *wallet) keepCount(pair uint16, n ordersInBook) {
	if n == (ordersInBook{}) {
		delete(w.inBook, pair)
		return
	}
	w.inBook[pair] = n
}

// count counts an order of a pair by its marks, or ends that.
func (w *wallet) count(pair uint16, m marks, by int32) {
	if m&(marksStop|marksGTD) == 0 {
		return
	}
	n := w.inBook[pair]
	n.add(m, by)
	w.keepCount(pair, n)
}

// mark gives an open order its marks, and counts it by them.
func (w *wallet) mark(id uint64, m marks) {
	if w.rare == nil && m == 0 {
		return
	}
	r := w.rareParts()
	before := r.marks[id]
	if before == m {
		return
	}
	pair := w.open.Pair(id)
	w.count(pair, before, -1)
	w.count(pair, m, 1)
	if m == 0 {
		delete(r.marks, id)
		return
	}
	if r.marks == nil {
		r.marks = make(map[uint64]marks)
	}
	r.marks[id] = m
}

// marksOf returns the marks of an open order.
func (w *wallet) marksOf(id uint64) marks {
	if w.rare == nil {
		return 0
	}
	return w.rare.marks[id]
}

// roomFor returns why an order with these marks may not come to those of a pair, 0 if it may.
func (w *wallet) roomFor(pair uint16, m marks) (refusal uint8) {
	n, limits := w.inBook[pair], w.out.limits()
	switch {
	case m&marksStop != 0 && int(n.stops) >= limits.StopsPerAccountAndBook:
		return event.RefusedStopLimit
	case m&marksGTD != 0 && int(n.gtd) >= limits.GTDPerAccountAndBook:
		return event.RefusedGTDLimit
	}
	return 0
}

// send puts a decided command straight into the journal.
func (w *wallet) send(c *Command) {
	c.encode()
	c.ticket = w.tickets.draw()
	w.out.toJournal(&c.entry)
}
