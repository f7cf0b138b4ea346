package actors

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/state"
	"exchange/core/trading"
)

// A probe runs a function in an actor's own turn, where the function may read the actor's state.
type probe struct {
	look func(actor.Actor)
	done chan struct{}
}

// Run looks.
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

// VerifyAtRest compares the deciding side with the committed side, wallet by wallet and book by
// book, and checks the committed side's invariants. Its answer is right only while nothing is in
// flight. It is for tests, and stops the committed side meanwhile.
func (e *Engine) VerifyAtRest() (err error) {
	e.probe(e.fold, func() { err = e.verify(e.committed.State(), false) })
	return err
}

// verify compares the deciding side with the state s of the committed side. With reading it allows
// for reads in flight: wallets have then taken nonces that the committed side has yet to hear of.
func (e *Engine) verify(s *state.State, reading bool) error {
	errs := []error{s.Check()}
	for _, p := range e.Pairs() {
		e.probe(p.Book, func() { errs = append(errs, e.verifyBook(p, s.Pair(p.Number))) })
	}
	for _, a := range s.Accounts() {
		e.probeWallet(e.dir.Account(a.ID), func(w *wallet) {
			errs = append(errs, verifyWallet(w, a, e.committed, reading))
		})
	}
	return errors.Join(errs...)
}

func (e *Engine) verifyBook(p *directory.Pair, market *state.Pair) error {
	book, committed := e.books[p.Number-1], market.Book
	if book.halted != market.Halted {
		return fmt.Errorf("%s: the working book is halted: %v, the committed one: %v", p.Name,
			book.halted, market.Halted)
	}
	working := book.orders
	for _, side := range [...]trading.Side{trading.Buy, trading.Sell} {
		a, b := working.AppendOrders(nil, side, -1), committed.AppendOrders(nil, side, -1)
		if len(a) != len(b) {
			return fmt.Errorf("%s: the working book has %d %v orders, the committed one %d", p.Name,
				len(a), side, len(b))
		}
		for i := range a {
			if a[i] != b[i] {
				return fmt.Errorf("%s: the working book has %+v where the committed one has %+v",
					p.Name, a[i], b[i])
			}
		}
	}
	return nil
}

func verifyWallet(w *wallet, a *state.Account, committed *committed.Side, reading bool) error {
	if got, want := w.committed.Holdings(), a.Wallet.Holdings(); !slices.Equal(got, want) {
		return fmt.Errorf("account %s: its wallet has %+v, committed is %+v", a.Name, got, want)
	}
	if w.frozen != a.Frozen {
		return fmt.Errorf("account %s: its wallet takes it for frozen: %v, committed is %v", a.Name,
			w.frozen, a.Frozen)
	}
	if !w.clientIDs.Equal(&a.ClientIDs) {
		return fmt.Errorf("account %s: its wallet knows other client order ids than are committed",
			a.Name)
	}
	for _, n := range w.nonces {
		if want := committed.Nonce(n.key); n.taken != want && !(reading && n.taken > want) {
			return fmt.Errorf(
				"account %s: its wallet has taken nonce %d of key number %d, committed is %d",
				a.Name, n.taken, n.key, want)
		}
	}
	if pending := a.Withdraws(); len(pending) != len(w.pending) ||
		slices.ContainsFunc(pending, func(d *state.Withdraw) bool {
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
	if working, committed := slices.Collect(w.open.Newest()),
		slices.Collect(a.Open.Newest()); !slices.Equal(working, committed) {
		return fmt.Errorf("account %s: its wallet has open orders %v, committed are %v", a.Name,
			working, committed)
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

func verifyFlight(w *wallet) error {
	name := w.account.Name
	for _, r := range w.reserved {
		if !r.amount.IsZero() {
			return fmt.Errorf("account %s: its wallet has %v of currency %d in flight, at rest",
				name, r.amount, r.currency)
		}
	}
	if w.placing != 0 || w.tickets.out() != 0 || w.held.Len() != 0 || w.queue.Len() != 0 ||
		w.cancellingAll != nil || len(w.placingIDs) != 0 {
		return fmt.Errorf(
			"account %s: its wallet has %d orders, %d tickets, %d held, %d waiting, a cancel-all: %v, "+
				"and %d client ids in flight, at rest",
			name, w.placing, w.tickets.out(), w.held.Len(), w.queue.Len(), w.cancellingAll != nil,
			len(w.placingIDs))
	}
	return nil
}
