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
	"exchange/core/market"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/prove/spec"
)

// check checks the invariants after every step.
func (s *sim) check() {
	if s.model.Seq != s.disk.Last() && s.failed() == nil {
		s.violate("the journal is durable up to %d, and the model is at %d", s.disk.Last(),
			s.model.Seq)
	}
	for _, l := range s.lives {
		if s.failed() != nil {
			return
		}
		if l.checkInFlight(s); l.engine != nil {
			l.check(s)
		}
	}
}

func (l *life) check(s *sim) {
	e := l.engine
	switch err := e.Err(); {
	// An engine that releases the store at the end of its stop may receive this.
	case err == nil && l.fenced && !l.releases:
		s.violate("engine %d was notified that it is fenced, and continues", l.number)
	case err != nil && !errors.Is(err, persistence.ErrFenced) && !errors.Is(err, ErrStalled) &&
		!errors.Is(err, errKilled) && !l.stopping:
		s.violate("engine %d ends: %w", l.number, err)
	}
	if seq := e.committed.State().Seq(); seq != l.folded {
		l.folded = seq
		if seq > s.model.Seq {
			s.violate(
				"the committed state of engine %d is at %d, and the journal is durable up to %d",
				l.number, seq, s.model.Seq)
			return
		}
		if err := s.sameState(e.committed.State()); err != nil {
			s.violate("the committed state of engine %d at %d: %w", l.number, seq, err)
		}
	}
	l.checkWallets(s)
}

// checkWallets checks the wallets that have settled a record since the last step.
func (l *life) checkWallets(s *sim) {
	for id := range l.engine.dir.Count() {
		if s.failed() != nil {
			return
		}
		a := l.engine.dir.Account(id + 1)
		w := l.wallets[a.ID]
		if w == nil || w.early != nil { // not started
			continue
		}
		before, known := l.applied[a.ID]
		if known && before == w.applied {
			continue
		}
		if err := s.sameWallet(l, w, before, known); err != nil {
			s.violate("the wallet of %s in engine %d at %d: %w", a.Name, l.number, w.applied, err)
		}
		l.applied[a.ID] = w.applied
	}
}

// sameWallet checks that a wallet has settled each record of its account once, and its money after
// the newest.
func (s *sim) sameWallet(l *life, w *wallet, before uint64, known bool) error {
	if int(w.account.ID) > len(s.model.Accounts) || w.applied > s.model.Seq {
		return fmt.Errorf("durable are %d accounts and %d records", len(s.model.Accounts),
			s.model.Seq)
	}
	a := s.model.Accounts[w.account.ID-1]
	if known {
		if w.applied < before {
			return fmt.Errorf("it went back from %d", before)
		}
		if last := a.Touched(w.applied - 1); last > before {
			return fmt.Errorf("it was at %d, and has left out record %d", before, last)
		}
		if a.Touched(w.applied) != w.applied {
			return errors.New("the record is not of this account")
		}
	}
	return sameFunds(w.balances.Holdings(), a.At(w.applied))
}

func sameFunds(got []ledger.Holding, want spec.Funds) error {
	var w ledger.Wallet
	for _, h := range got {
		w.Put(h)
	}
	return want.Same(func(currency uint16) (balance, reserve money.Balance) {
		h := w.Get(currency)
		return h.Balance, h.Reserve
	})
}

// sameState compares a fold with the model at its sequence.
func (s *sim) sameState(c *state.State) error {
	for _, a := range c.Accounts() {
		if err := sameFunds(a.Wallet.Holdings(), s.model.Accounts[a.ID-1].At(c.Seq())); err != nil {
			return fmt.Errorf("account %s: %w", a.Name, err)
		}
	}
	for _, p := range c.Pairs() {
		updates := s.model.Pairs[p.Number-1].Updates
		n := 0
		for n < len(updates) && updates[n].Seq <= c.Seq() {
			n++
		}
		if p.Market.UpdateID != uint64(n) {
			return fmt.Errorf("%s has update id %d after %d updates", p.Name, p.Market.UpdateID, n)
		}
		if n == 0 {
			continue
		}
		for side, levels := range updates[n-1].Sides {
			if err := sameLevels(p.Book.AppendLevels(nil, trading.Side(side+1), -1),
				levels); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	return nil
}

// sameLevels compares a side of a book, or its best part, with the expected levels.
func sameLevels(got, want []trading.Level) error {
	if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
		return fmt.Errorf("a side has the levels %+v, not %+v", got, want)
	}
	return nil
}

// A listener is a stream channel that maintains a book from its updates.
type listener struct {
	s    *sim
	l    *life
	pair *directory.Pair
	at   uint64 // update id
}

// A statusListener is a stream channel that tracks halts and the maintenance.
type statusListener struct {
	s           *sim
	l           *life
	halted      map[uint16]bool
	maintenance event.Maintenance
}

// listen begins a listener for each pair, and one for the status.
func (s *sim) listen(l *life) {
	pid := l.engine.SpawnChannel("simulated.status", func() actor.Actor {
		return &statusListener{s: s, l: l, halted: map[uint16]bool{}}
	})
	l.engine.Watch(committed.Watch{Channel: pid, Kind: committed.WatchStatus})
	for _, p := range l.engine.Pairs() {
		pid := l.engine.SpawnChannel("simulated."+p.Name, func() actor.Actor {
			return &listener{s: s, l: l, pair: p}
		})
		l.engine.Watch(committed.Watch{Channel: pid, Pair: p, Kind: committed.WatchDepth,
			View: committed.WatchBook, Levels: -1})
	}
}

func (h *listener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *committed.Watched:
		h.at = m.View.UpdateID
	case *committed.BookUpdates:
		for i := range m.List {
			if err := h.update(&m.List[i]); err != nil {
				h.s.violate("engine %d, stream of %s: %w", h.l.number, h.pair.Name, err)
			}
		}
		if err := h.best(m.Best); err != nil {
			h.s.violate("engine %d, stream of %s: %w", h.l.number, h.pair.Name, err)
		}
	case *actor.Restarting:
		h.s.violate("engine %d: the stream of %s panicked", h.l.number, h.pair.Name)
	}
}

// best checks the best levels after a batch.
func (h *listener) best(d *market.Depth) error {
	updates := h.s.model.Pairs[h.pair.Number-1].Updates
	if h.at > uint64(len(updates)) {
		return nil // reported already
	}
	for i, got := range [...][]trading.Level{d.BuyLevels, d.SellLevels} {
		want := updates[h.at-1].Sides[i]
		if err := sameLevels(got, want); err != nil ||
			len(got) != min(committed.BestLevels, len(want)) {
			return fmt.Errorf("update id %d: %d best levels of %d: %v", h.at, len(got), len(want),
				err)
		}
	}
	return nil
}

// Receive checks that each change changes something: otherwise an earlier one was not sent.
func (h *statusListener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *committed.Watched:
		h.maintenance = m.Status.Maintenance
		for _, pair := range m.Status.Halted {
			h.halted[pair] = true
		}
	case *committed.StatusChanges:
		for _, x := range m.List {
			if x.Pair == 0 && x.Maintenance == h.maintenance ||
				x.Pair != 0 && x.Halted == h.halted[x.Pair] {
				h.s.violate("engine %d: %+v is no change of the status", h.l.number, x)
			}
			if x.Pair == 0 {
				h.maintenance = x.Maintenance
			} else {
				h.halted[x.Pair] = x.Halted
			}
		}
	case *actor.Restarting:
		h.s.violate("engine %d: the stream of the status panicked", h.l.number)
	}
}

func (h *listener) update(u *committed.BookUpdate) error {
	updates := h.s.model.Pairs[h.pair.Number-1].Updates
	if h.at++; u.UpdateID != h.at || h.at > uint64(len(updates)) {
		return fmt.Errorf("update id %d comes after %d, and %d are durable", u.UpdateID, h.at-1,
			len(updates))
	}
	want := &updates[h.at-1]
	if !want.Several && (u.Cancel != want.Cancel || u.ID != want.ID ||
		u.Cancelled != want.Cancelled || u.Side != want.Side || u.Price != want.Price ||
		u.Remaining != want.Remaining || !slices.Equal(u.Trades, want.Trades)) {
		return fmt.Errorf("update %+v is not %+v", u, want)
	}
	return sameChanges(u, want)
}

// sameChanges checks that an update contains each price whose amount has changed, once, with its
// current amount.
func sameChanges(u *committed.BookUpdate, want *spec.BookUpdate) error {
	seen := map[trading.Side]map[money.Price]bool{trading.Buy: {}, trading.Sell: {}}
	for _, l := range u.Levels {
		if is := want.AmountAt(l.Side, l.Price); seen[l.Side][l.Price] || l.Amount != is {
			return fmt.Errorf("update id %d: level %+v comes twice, or is %v", u.UpdateID, l, is)
		}
		seen[l.Side][l.Price] = true
	}
	for _, w := range want.Changed {
		if !seen[w.Side][w.Price] {
			return fmt.Errorf("update id %d lacks %+v", u.UpdateID, w)
		}
	}
	return nil
}
