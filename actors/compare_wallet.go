package actors

import (
	"fmt"
	"maps"
	"slices"

	"exchange/actors/directory"
	"exchange/core/compare"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
)

// A visit is a wallet to be compared, and its progress.
type visit struct {
	account     *directory.Account
	settledDone bool // everything that settlements change was compared
}

// progress is how far the comparison of a wallet has come.
type progress int

const (
	whole  progress = iota // it is done
	partly                 // the next part can be compared at once
	later                  // something of the wallet is in flight
)

// wallet compares a wallet as far as one turn goes.
func (c *comparison) wallet(w *wallet, v *visit, atRest bool) progress {
	s := c.committed.State()
	if int(v.account.ID) > len(s.Accounts()) || w.applied > s.Seq() {
		return later // the fold is not there yet
	}
	a := s.Account(v.account.ID)
	if !v.settledDone {
		if c.visited != v { // else it continues with the open orders
			c.visited, c.open = v, compare.Lists[ledger.OpenOrder]{}
		}
		var differ error
		v.settledDone, differ = c.walletSettled(w, a, s)
		switch {
		case differ != nil:
			c.find(differ)
			return whole
		case !v.settledDone:
			return partly
		}
	}
	if !atRest && w.flight.busy() {
		return later
	}
	differ := c.walletWorking(w, a)
	if differ != nil && !atRest {
		return later
	}
	c.find(differ)
	return whole
}

// walletSettled compares a wallet's settled part, and the next of its open orders. It reports
// whether that was the last.
func (c *comparison) walletSettled(w *wallet, a *state.Account, s *state.State) (done bool,
	err error) {
	if got, want := w.balances.Holdings(), a.Wallet.Holdings(); !slices.Equal(got, want) {
		return true, walletDiffers(a, "has %+v, committed is %+v", got, want)
	}
	left, differ := c.open.Next(w.openOrders(), openOrdersOf(a, s), min(c.orders, openCompared))
	if differ != nil {
		return true, fmt.Errorf(
			"account %s: of its open orders its wallet has %s where committed is %s", a.Name,
			differ.One, differ.Other)
	}
	if n, want := w.clientIDs.Len(), a.ClientIDs.Len(); left > 0 && n != want {
		return true, walletDiffers(a, "has %d client order ids, committed are %d", n, want)
	}
	if left > 0 && !slices.Equal(slices.Collect(w.clientIDs.Closed),
		slices.Collect(a.ClientIDs.Closed)) {
		return true, walletDiffers(a, "keeps other client order ids of closed orders")
	}
	return left > 0, nil
}

func walletDiffers(a *state.Account, format string, args ...any) error {
	return fmt.Errorf("account %s: its wallet "+format, append([]any{a.Name}, args...)...)
}

// An openDetail is a wallet's data of an open order beyond its pair and side.
type openDetail struct {
	Client ledger.Naming
	Terms  ledger.Terms
	Flags  orderFlags
}

func (w *wallet) openOrders() compare.Side[ledger.OpenOrder] {
	return compare.Side[ledger.OpenOrder]{After: w.open.Orders().Oldest,
		More: func(o ledger.OpenOrder) any {
			_, terms, _ := w.open.Find(o.ID)
			return openDetail{w.clientIDs.Naming(o.ID), terms, w.flagsOf(o.ID)}
		}}
}

func openOrdersOf(a *state.Account, s *state.State) compare.Side[ledger.OpenOrder] {
	terms := termsIn(s)
	return compare.Side[ledger.OpenOrder]{After: a.Open.Oldest,
		More: func(o ledger.OpenOrder) any {
			return openDetail{a.ClientIDs.Naming(o.ID), terms(o),
				flagsIn(s.Pair(o.Pair).Instructed(o.ID))}
		}}
}

// walletWorking compares the wallet's decisions ahead of the committed state.
func (c *comparison) walletWorking(w *wallet, a *state.Account) error {
	if err := c.nonces(w, a); err != nil {
		return err
	}
	r := w.rare
	if r == nil {
		r = new(rare)
	}
	counted := w.countOpen(a, len(c.committed.State().Pairs()))
	switch pending, armed := a.Withdrawals(), a.Switches(); {
	case w.frozen != a.Frozen:
		return walletDiffers(a, "is frozen: %v, committed is %v", w.frozen, a.Frozen)
	case len(pending) != len(w.pendingWithdrawals) ||
		slices.ContainsFunc(pending, func(d *state.Withdrawal) bool {
			return w.pendingWithdrawals[d.ID] == nil || *w.pendingWithdrawals[d.ID] != *d
		}):
		return walletDiffers(a, "has other pending withdrawals than are committed")
	case w.flight != nil && slices.ContainsFunc(w.reserved, func(r reservation) bool {
		return !r.amount.IsZero()
	}):
		return walletDiffers(a, "has %v in flight, at rest", w.reserved)
	case w.flight.busy():
		return walletDiffers(a, "has %d orders, %d tickets, %d held, %d waiting, a cancel-all: "+
			"%v, %d client ids and %d amends in flight, at rest", w.newOrders, w.tickets.out(),
			w.heldBack.Len(), w.queue.Len(), w.cancellingAll != nil, w.newOrderIDs.Len(),
			len(w.amendedOrders))
	case r.selfTrade != a.SelfTrade():
		return walletDiffers(a, "has the self-trade mode %d, committed is %d", r.selfTrade,
			a.SelfTrade())
	case !r.withdrawalIDs.Equal(a.WithdrawalIDs()):
		return walletDiffers(a, "has other client ids of withdrawals than are committed")
	case r.holdEndsUs != a.Operated().HoldEndsUs:
		return walletDiffers(a, "holds its money until %d us, committed is %d", r.holdEndsUs,
			a.Operated().HoldEndsUs)
	case len(r.switches) != len(armed) || slices.ContainsFunc(armed, func(s event.Switch) bool {
		return !slices.Contains(r.switches, s)
	}):
		return walletDiffers(a, "has the switches %+v, committed are %+v", r.switches, armed)
	case slices.ContainsFunc(armed, func(s event.Switch) bool {
		lives := slices.ContainsFunc(r.sessions, func(x liveSession) bool { return x.key == s.Key })
		return s.Session && lives != (s.DueUs == 0)
	}):
		return walletDiffers(a, "has the sessions %+v, armed are %+v", r.sessions, armed)
	case !maps.Equal(w.inBook, counted):
		return walletDiffers(a, "counts the open orders %+v by pair, it has %+v", w.inBook, counted)
	}
	return nil
}

// countOpen counts the committed open orders, by the wallet's flags.
func (w *wallet) countOpen(a *state.Account, pairs int) map[uint16]ordersInBook {
	if a.Open.Len() == 0 {
		return nil
	}
	orders := make([]int32, pairs+1)
	for o := range a.Open.Oldest(nil) {
		orders[o.Pair]++
	}
	counted := make(map[uint16]ordersInBook)
	for pair, n := range orders {
		if n > 0 {
			counted[uint16(pair)] = ordersInBook{orders: n}
		}
	}
	if w.rare != nil {
		for id, m := range w.flags {
			n := counted[w.open.Pair(id)]
			n.add(m, 1)
			counted[w.open.Pair(id)] = n
		}
	}
	return counted
}

// nonces compares the used nonces of the account's keys. While reads run, a wallet may be ahead of
// the committed side.
func (c *comparison) nonces(w *wallet, a *state.Account) error {
	for _, n := range w.nonces {
		if want := c.committed.Nonce(n.key); n.greatest != want && (c.still || n.greatest < want) {
			return walletDiffers(a, "has taken nonce %d of key number %d, committed is %d",
				n.greatest, n.key, want)
		}
		// A wallet's nonces include those of reads, of which the committed side has the greatest.
		known := c.committed.Nonces(n.key)
		if (known == nil) != (n.used == nil) {
			return fmt.Errorf("account %s: key number %d is for parallel use on one side only",
				a.Name, n.key)
		}
		if known == nil {
			continue
		}
		for nonce := range known.All() {
			if !n.used.Used(nonce) {
				return walletDiffers(a, "lacks, of key number %d, nonce %d", n.key,
					nonce)
			}
		}
	}
	return nil
}

// busy reports whether a wallet awaits the release of something that it sent, or holds anything
// back until then.
func (f *flight) busy() bool {
	return f != nil && (f.newOrders != 0 || f.tickets.out() != 0 || f.heldBack.Len() != 0 ||
		f.queue.Len() != 0 || f.cancellingAll != nil || f.newOrderIDs.Len() != 0 ||
		len(f.amendedOrders) != 0)
}
