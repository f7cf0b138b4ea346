package actors

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/matching"
	"exchange/core/state"
)

// A probe runs a function in an actor's own turn, where the function may read the actor's state.
type probe struct {
	look func(actor.Actor)
	done chan struct{}
}

// Run looks, in the actor's turn.
func (p *probe) Run(a actor.Actor) {
	p.look(a)
	close(p.done)
}

func (e *Engine) probeActor(pid *actor.PID, look func(actor.Actor)) {
	p := &probe{look, make(chan struct{})}
	e.root.Send(pid, p)
	<-p.done
}

func (e *Engine) probe(pid *actor.PID, look func()) {
	e.probeActor(pid, func(actor.Actor) { look() })
}

func (e *Engine) probeWallet(a *directory.Account, look func(*wallet)) {
	e.probeActor(a.Wallet, func(w actor.Actor) { look(w.(*wallet)) })
}

// An urgentProbe overtakes the reads that wait for the committed side: the look of an actor that
// stands still meanwhile.
type urgentProbe struct{ probe }

// Urgent implements mailbox.Urgent.
func (*urgentProbe) Urgent() bool { return true }

// probeFold runs a function in the next turn of the committed side.
func (e *Engine) probeFold(look func()) {
	p := &urgentProbe{probe{func(actor.Actor) { look() }, make(chan struct{})}}
	e.root.Send(e.fold, p)
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
		e.probe(p.Book, func() { errs = append(errs, e.verifyBook(p, s.Pair(p.Number))) })
	}
	for _, a := range s.Accounts() {
		e.probeWallet(e.dir.Account(a.ID), func(w *wallet) {
			errs = append(errs, verifyWallet(w, a, e.committed, false))
		})
	}
	return errors.Join(errs...)
}

// verifyBook compares a whole book at rest.
func (e *Engine) verifyBook(p *directory.Pair, market *state.Pair) error {
	_, err := e.verifyOrders(p, market, new(matching.Comparison), market.Book.Len()+1)
	return err
}

// verifyOrders compares the next n orders of a book at rest, and whether the pair is halted.
func (e *Engine) verifyOrders(p *directory.Pair, market *state.Pair, c *matching.Comparison,
	n int) (done bool, err error) {
	book := e.books[p.Number-1]
	if book.halted != market.Halted {
		return true, fmt.Errorf("%s: the working book is halted: %v, the committed one: %v",
			p.Name, book.halted, market.Halted)
	}
	for range 2 { // a step ends with the side
		done, differ := c.Next(book.orders, market.Book, n)
		switch {
		case differ != nil:
			working, committed := differ.Texts()
			return true, fmt.Errorf("%s: the working book has %s where the committed one has %s",
				p.Name, working, committed)
		case done:
			return true, nil
		}
	}
	return false, nil
}

// verifyWallet compares a wallet that has nothing in flight. With reading it allows for reads in
// flight: the wallet has then taken nonces that the committed side has yet to hear of.
func verifyWallet(w *wallet, a *state.Account, committed *committed.Side, reading bool) error {
	if err := verifySettled(w, a); err != nil {
		return err
	}
	return verifyWorking(w, a, committed, reading)
}

// verifySettled compares what settlements change in a wallet.
func verifySettled(w *wallet, a *state.Account) error {
	if got, want := w.committed.Holdings(), a.Wallet.Holdings(); !slices.Equal(got, want) {
		return fmt.Errorf("account %s: its wallet has %+v, committed is %+v", a.Name, got, want)
	}
	if !w.clientIDs.Equal(&a.ClientIDs) {
		return fmt.Errorf("account %s: its wallet knows other client order ids than are committed",
			a.Name)
	}
	if working, committed := slices.Collect(w.open.Newest()),
		slices.Collect(a.Open.Newest()); !slices.Equal(working, committed) {
		return fmt.Errorf("account %s: its wallet has open orders %v, committed are %v", a.Name,
			working, committed)
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
	books := make(map[uint16]int)
	for o := range a.Open.Newest() {
		books[o.Pair]++
	}
	if !maps.Equal(w.inBook, books) {
		return fmt.Errorf("account %s: its wallet counts open orders %v by pair, committed are %v",
			a.Name, w.inBook, books)
	}
	return nil
}

// busy reports whether a wallet has sent anything on that it has not seen released, or keeps
// anything until then.
func (f *flight) busy() bool {
	return f != nil && (f.placing != 0 || f.tickets.out() != 0 || f.held.Len() != 0 ||
		f.queue.Len() != 0 || f.cancellingAll != nil || len(f.placingIDs) != 0)
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
				"a cancel-all: %v, and %d client ids in flight, at rest",
			name, w.placing, w.tickets.out(), w.held.Len(), w.queue.Len(), w.cancellingAll != nil,
			len(w.placingIDs))
	}
	return nil
}
