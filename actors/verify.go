package actors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
)

func (e *Engine) probeActor(pid *actor.PID, look func(actor.Actor)) {
	p, root := &probe{look, make(chan struct{})}, e.root
	if pid == e.fold || pid == e.imager {
		root = e.at
	}
	root.Send(pid, p)
	<-p.done
}

func (e *Engine) probe(pid *actor.PID, look func()) {
	e.probeActor(pid, func(actor.Actor) { look() })
}

func (e *Engine) probeWallet(a *directory.Account, look func(*wallet)) {
	if a.Wallet() == nil {
		e.openWallet(a)
	}
	e.probeActor(a.Wallet(), func(w actor.Actor) { look(w.(*wallet)) })
}

// Urgent implements mailbox.Urgent.
func (*urgentProbe) Urgent() bool { return true }

// probeFold runs a function in the next turn of the committed side.
func (e *Engine) probeFold(look func()) {
	p := &urgentProbe{probe{func(actor.Actor) { look() }, make(chan struct{})}}
	e.committed.Send(p)
	<-p.done
}

// VerifyAtRest compares the deciding side with the committed side, wallet by wallet and book by
// book, and checks the committed side's invariants. Its answer is right only while nothing is in
// flight. It stops the committed side meanwhile, and is for tests.
func (e *Engine) VerifyAtRest() (err error) {
	e.probe(e.fold, func() { err = e.verify(e.committed.State()) })
	return err
}

// verify compares the deciding side with the state s of the committed side.
func (e *Engine) verify(s *state.State) error {
	errs := []error{s.Check()}
	for _, p := range e.Pairs() {
		e.probe(p.Book, func() { errs = append(errs, e.verifyBook(p, s)) })
	}
	for _, a := range s.Accounts() {
		entry := e.dir.Account(a.ID)
		if entry.WalletBegan() == 0 {
			continue
		}
		e.probeWallet(entry, func(w *wallet) {
			errs = append(errs, verifyWallet(w, a, e.committed, false))
		})
	}
	return errors.Join(errs...)
}

// verifyBook compares a whole book at rest.
func (e *Engine) verifyBook(p *directory.Pair, s *state.State) error {
	part, n := &bookPart{pair: p}, s.Pair(p.Number).OpenOrders()+1
	for {
		part.take(e.books[p.Number-1], n)
		if done, err := part.with(s); done || err != nil {
			return err
		}
	}
}

// verifyWallet compares a wallet that has nothing in flight. With reading it allows for reads in
// flight: the wallet has then taken nonces that the committed side has yet to hear of.
func verifyWallet(w *wallet, a *state.Account, committed *committed.Side, reading bool) error {
	if _, err := verifySettled(w, a, committed.State(), new(ledger.Comparison),
		a.Open.Len()+1); err != nil {
		return err
	}
	return verifyWorking(w, a, committed, reading)
}

// verifySettled compares what settlements change in a wallet, of the open orders the next n. It
// reports whether these were the last.
func verifySettled(w *wallet, a *state.Account, s *state.State, orders *ledger.Comparison,
	n int) (done bool, err error) {
	if got, want := w.committed.Holdings(), a.Wallet.Holdings(); !slices.Equal(got, want) {
		return true, fmt.Errorf("account %s: its wallet has %+v, committed is %+v", a.Name, got,
			want)
	}
	before := orders.Last()
	left, differ := orders.Next(ledger.Orders{Open: w.open.Orders(), IDs: &w.clientIDs},
		ledger.Orders{Open: &a.Open, IDs: &a.ClientIDs}, n)
	if differ != nil {
		working, committed := differ.Texts()
		return true, fmt.Errorf(
			"account %s: of its open orders its wallet has %s where committed is %s", a.Name,
			working, committed)
	}
	if err := verifyTerms(w, a, s, before, orders.Last()); err != nil {
		return true, err
	}
	if done = left > 0; done && w.clientIDs.Len() != a.ClientIDs.Len() {
		return true, fmt.Errorf(
			"account %s: its wallet knows %d client order ids, committed are %d", a.Name,
			w.clientIDs.Len(), a.ClientIDs.Len())
	}
	return done, nil
}

// verifyTerms compares what a wallet knows of its open orders above an id, up to another one.
func verifyTerms(w *wallet, a *state.Account, s *state.State, above, upTo uint64) error {
	for order := range w.open.Orders().NewestOf(ledger.OpenFilter{Before: upTo + 1}) {
		if order.ID <= above {
			break
		}
		_, got, _ := w.open.Find(order.ID)
		o, p, _ := s.OpenOrder(a, order.ID)
		want := ledger.Terms{Price: o.Price, Amount: o.Amount}
		marked := marksIn(p.Instructed(order.ID))
		if got != want || w.marksOf(order.ID) != marked {
			return fmt.Errorf("account %s: order %d has in its wallet the terms %+v and the "+
				"marks %b, committed are %+v and %b", a.Name, order.ID, got, w.marksOf(order.ID),
				want, marked)
		}
	}
	return nil
}

// verifyRare compares an account's settings and switches, and how many of its orders its wallet
// counts as stops and as orders that expire.
func verifyRare(w *wallet, a *state.Account) error {
	var none rare
	r := w.rare
	if r == nil {
		r = &none
	}
	if r.selfTrade != a.SelfTrade() {
		return fmt.Errorf("account %s: its wallet has the self-trade mode %d, committed is %d",
			a.Name, r.selfTrade, a.SelfTrade())
	}
	if !r.withdrawalIDs.Equal(a.WithdrawalIDs()) {
		return fmt.Errorf("account %s: its wallet has other client ids of withdraws than are "+
			"committed", a.Name)
	}
	if r.heldUs != a.HeldUs() {
		return fmt.Errorf("account %s: its wallet holds its money until %d us, committed is %d",
			a.Name, r.heldUs, a.HeldUs())
	}
	armed := a.Switches()
	if len(r.switches) != len(armed) ||
		slices.ContainsFunc(armed, func(s event.Switch) bool {
			return !slices.Contains(r.switches, s)
		}) {
		return fmt.Errorf("account %s: its wallet has the switches %+v, committed are %+v", a.Name,
			r.switches, armed)
	}
	for _, s := range r.switches {
		waits := s.Session && s.DueUs == 0
		if lives := slices.ContainsFunc(r.sessions, func(x liveSession) bool {
			return x.key == s.Key
		}); s.Session && waits != lives {
			return fmt.Errorf("account %s: its wallet has the sessions %+v, armed is %+v", a.Name,
				r.sessions, s)
		}
	}
	counted := make(map[uint16]ordersInBook)
	for id, m := range r.marks {
		n := counted[w.open.Pair(id)]
		n.add(m, 1)
		counted[w.open.Pair(id)] = n
	}
	for pair, n := range w.inBook {
		want := counted[pair]
		if n.stops != want.stops || n.gtd != want.gtd {
			return fmt.Errorf("account %s: its wallet counts %d stops and %d orders that expire "+
				"in pair %d, but has %d and %d", a.Name, n.stops, n.gtd, pair, want.stops,
				want.gtd)
		}
	}
	return nil
}

// verifyNonces compares the nonces of a key for parallel use. A wallet has those of reads, too, of
// which the committed side knows the greatest, and those in flight; no other.
func verifyNonces(n *keyNonce, committed *committed.Side) error {
	known := committed.Nonces(n.key)
	if (known == nil) != (n.used == nil) {
		return fmt.Errorf("key number %d is for parallel use on one side only", n.key)
	}
	if known == nil {
		return nil
	}
	for nonce := range known.All() {
		if !n.used.Used(nonce) {
			return fmt.Errorf("its wallet does not know that key number %d has used nonce %d",
				n.key, nonce)
		}
	}
	return nil
}

// verifyWorking compares what decisions change in a wallet, ahead of what is committed.
func verifyWorking(w *wallet, a *state.Account, committed *committed.Side, reading bool) error {
	if w.frozen != a.Frozen {
		return fmt.Errorf("account %s: its wallet takes it for frozen: %v, committed is %v", a.Name,
			w.frozen, a.Frozen)
	}
	for _, n := range w.nonces {
		if reading && int(n.key) > len(committed.State().Keys()) {
			continue // a new key that has read already; the fold has yet to come so far
		}
		if want := committed.Nonce(n.key); n.taken != want && !(reading && n.taken > want) {
			return fmt.Errorf(
				"account %s: its wallet has taken nonce %d of key number %d, committed is %d",
				a.Name, n.taken, n.key, want)
		}
		if err := verifyNonces(&n, committed); err != nil {
			return fmt.Errorf("account %s: %w", a.Name, err)
		}
	}
	if pending := a.Withdrawals(); len(pending) != len(w.pending) ||
		slices.ContainsFunc(pending, func(d *state.Withdrawal) bool {
			return w.pending[d.ID] == nil || *w.pending[d.ID] != *d
		}) {
		return fmt.Errorf("account %s: its wallet has other pending withdraws than are committed",
			a.Name)
	}
	if w.flight != nil {
		if err := verifyFlight(w); err != nil {
			return err
		}
	}
	if err := verifyRare(w, a); err != nil {
		return err
	}
	if a.Open.Len() == 0 && len(w.inBook) == 0 {
		return nil
	}
	pairs, books := 0, make([]int, len(committed.State().Pairs()))
	a.Open.CountByPair(books)
	for i, n := range books {
		if got := int(w.inBook[uint16(i+1)].orders); got != n {
			return fmt.Errorf(
				"account %s: its wallet counts %d open orders of pair %d, committed are %d",
				a.Name, got, i+1, n)
		}
		pairs += min(n, 1)
	}
	if pairs != len(w.inBook) {
		return fmt.Errorf("account %s: its wallet counts open orders of %d pairs, committed are %d",
			a.Name, len(w.inBook), pairs)
	}
	return nil
}

// busy reports whether a wallet has sent anything on that it has not seen released, or keeps
// anything until then.
func (f *flight) busy() bool {
	return f != nil && (f.placing != 0 || f.tickets.out() != 0 || f.held.Len() != 0 ||
		f.queue.Len() != 0 || f.cancellingAll != nil || f.placingIDs.Len() != 0 ||
		len(f.amending) != 0)
}

func verifyFlight(w *wallet) error {
	name := w.account.Name
	for _, r := range w.reserved {
		if !r.amount.IsZero() {
			return fmt.Errorf("account %s: its wallet has %v of currency %d in flight, at rest",
				name, r.amount, r.currency)
		}
	}
	if w.busy() {
		return fmt.Errorf(
			"account %s: its wallet has %d orders, %d tickets, %d held, %d waiting, "+
				"a cancel-all: %v, %d client ids and %d amends in flight, at rest",
			name, w.placing, w.tickets.out(), w.held.Len(), w.queue.Len(), w.cancellingAll != nil,
			w.placingIDs.Len(), len(w.amending))
	}
	return nil
}
