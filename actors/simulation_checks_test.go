package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/rows"
	"exchange/actors/seal"
	"exchange/actors/simulation"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/market"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// check holds after every step.
func (s *sim) check() {
	if s.model.Seq != s.disk.Last() && s.failed() == nil {
		s.violate("the journal is durable up to %d, and the model has seen %d", s.disk.Last(),
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
	// one that gives the store back when it has stopped may be told so
	case err == nil && l.fenced && !l.over:
		s.violate("engine %d was told that it is fenced, and goes on", l.number)
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
	for id := range e.dir.Count() {
		if s.failed() != nil {
			return
		}
		a := e.dir.Account(id + 1)
		w := l.wallets[a.ID]
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

// sameWallet checks that a wallet has settled each record of its account once, and what it has
// after the newest.
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
	return sameFunds(w.committed.Holdings(), a.At(w.applied))
}

func sameFunds(got []ledger.Holding, want simulation.Funds) error {
	for i, f := range want {
		at := slices.IndexFunc(got, func(h ledger.Holding) bool { return int(h.Currency) == i+1 })
		var h ledger.Holding
		if at >= 0 {
			h = got[at]
		}
		if simulation.Units(h.Balance).Cmp(f.Balance) != 0 ||
			simulation.Units(h.Reserve).Cmp(f.Reserve) != 0 {
			return fmt.Errorf("it has %v of currency %d and %v reserved, not %v and %v",
				simulation.Units(h.Balance), i+1, simulation.Units(h.Reserve), f.Balance, f.Reserve)
		}
	}
	return nil
}

// sameState compares a fold with the model at its sequence.
func (s *sim) sameState(c *state.State) error {
	for _, a := range c.Accounts() {
		if err := sameFunds(a.Wallet.Holdings(), s.model.Accounts[a.ID-1].At(c.Seq())); err != nil {
			return fmt.Errorf("account %s: %w", a.Name, err)
		}
	}
	for _, p := range c.Pairs() {
		units := s.model.Pairs[p.Number-1].Updates
		n := 0
		for n < len(units) && units[n].Seq <= c.Seq() {
			n++
		}
		if p.Market.UpdateID != uint64(n) {
			return fmt.Errorf("%s has update id %d after %d units", p.Name, p.Market.UpdateID, n)
		}
		if n == 0 {
			continue
		}
		for side, levels := range units[n-1].Sides {
			if err := sameLevels(p.Book.AppendLevels(nil, trading.Side(side+1), -1),
				levels); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	return nil
}

// sameLevels compares a side of a book, or its best part, with what it must be.
func sameLevels(got []trading.Level, want []simulation.Level) error {
	if len(got) > len(want) {
		return fmt.Errorf("a side has %d levels, not %d", len(got), len(want))
	}
	for i, l := range got {
		_, low := l.Amount.Bits()
		if l.Price != want[i].Price || l.Orders != want[i].Orders ||
			low != want[i].Amount.Uint64() {
			return fmt.Errorf("level %d is %+v, not %+v", i+1, l, want[i])
		}
	}
	return nil
}

// read asks something at random, and checks the answer against the model at its sequence.
func (s *sim) read(r *rand.Rand, l *life) {
	e := l.engine
	account := s.model.Account(pick(r, s.names))
	if account == nil || account.ID > e.dir.Count() {
		return
	}
	kind := pick(r, []string{"wallet", "wallet", "orders", "history", "client id", "trades",
		"levels", "hash"})
	var id event.ClientID
	if n := len(l.named); n > 0 && r.IntN(4) == 0 { // of an order that may be on its way
		order := l.named[n-1-r.IntN(min(n, 3))]
		kind, account, id = "order", s.model.Accounts[order.account-1], order.id
	}
	pair := pick(r, e.Pairs()).Number
	named := &committed.NamedOrder{Account: account.ID, ClientID: id}
	q := map[string]committed.Question{"wallet": &committed.Wallet{Account: account.ID},
		"orders":    &committed.OpenOrders{Account: account.ID, Limit: 1000},
		"history":   new(committed.Written),
		"client id": &committed.OrderIDOf{Account: account.ID},
		"trades": &committed.NewestTrades{TradeQuery: committed.TradeQuery{Pair: pair,
			Limit: 1000}},
		"levels": &committed.ViewOf{Pair: pair, Kind: committed.ViewLevels, LimitBuy: 1000,
			LimitSell: 1000},
		"hash": new(committed.Hash), "order": named}[kind]
	var key *directory.Key
	var nonce uint64
	if !id.IsZero() || kind == "wallet" && r.IntN(2) == 0 {
		if key = l.key(r, fmt.Sprintf("key-%s-%d", account.Name, r.IntN(2))); key != nil {
			nonce = s.nextNonce(r, key.Public)
		}
	}
	s.spawn(l, fmt.Sprintf("%d.read %s of %s, nonce %d", l.number, kind, account.Name, nonce),
		func() {
			after, sent, begun, taken := l.answered, len(l.named), s.steps, uint64(0)
			if key != nil {
				after = s.told // by any engine
			}
			stale := time.Since(l.confirmed) > l.rhythm.Stale
			if key != nil {
				taken = l.taken[key.Number]
				s.reads[key.Number] = append(s.reads[key.Number], nonce)
				s.model.ReadNonces[key.Number] = max(s.model.ReadNonces[key.Number], nonce)
			}
			err := e.Ask(q, key, nonce)
			if key != nil && stale {
				if s.outcomes["private reads, not confirmed"]++; !turnedAwayBy(err) {
					s.violate(
						"engine %d takes read %s of %s, and the store has not said for too long "+
							"that it is its own: %v", l.number, kind, account.Name, err)
				}
			}
			switch {
			case err == nil:
				s.say("  read at %d", seqOf(q))
				if err := s.checkRead(q, account.ID, after); err != nil {
					s.violate("engine %d, read %s of %s at %d: %w", l.number, kind, account.Name,
						seqOf(q), err)
				}
				if key != nil {
					s.tookNonce(l, key, nonce, taken)
					if s.isBarred(key.Public, begun) {
						s.violate(
							"engine %d answers read %s with %s, which was revoked before it began",
							l.number, kind, key.Public)
					}
				}
				if key != nil && named.Complete && len(named.Orders) == 0 && named.ClosedID == 0 {
					s.outcomes["no order of a client order id"]++
					for _, order := range l.named[:sent] {
						if order.account == account.ID && order.id == id {
							s.missing[order] = true
						}
					}
				}
				s.outcomes["read, answered"]++
				return
			case errors.Is(err, committed.ErrNonce):
				s.toldLast(key, nonce, taken, err.(*committed.NonceError).Last) //nolint:errorlint // it is given as it is
				others := s.model.Keys[key.Number-1].Nonce
				once := false
				for _, n := range s.reads[key.Number] {
					if n != nonce || once {
						others = max(others, n)
					}
					once = once || n == nonce
				}
				if nonce > others {
					s.violate("engine %d refuses nonce %d of %s for a read, and %d is the highest",
						l.number, nonce, key.Public, others)
				}
			case errors.Is(err, committed.ErrTimeout),
				errors.Is(err, committed.ErrKeyRevoked) && s.model.Keys[key.Number-1].Revoked,
				turnedAwayBy(err):
			default:
				s.violate("engine %d, read %s: %w", l.number, kind, err)
			}
			s.say("  read: %v", err)
			s.outcomes["read, not answered"]++
		})
}

// seqOf returns the sequence of an answer.
func seqOf(q committed.Question) uint64 {
	switch q := q.(type) {
	case *committed.Wallet:
		return q.Seq
	case *committed.OpenOrders:
		return q.Seq
	case *committed.NamedOrder:
		return q.Seq
	case *committed.Written:
		return q.Seq
	case *committed.OrderIDOf:
		return q.Seq
	case *committed.NewestTrades:
		return q.Seq
	case *committed.ViewOf:
		return q.Seq
	}
	return q.(*committed.Hash).Seq
}

// checkRead checks what an answer shows: all that was answered before it was asked, and nothing
// that is not durable.
func (s *sim) checkRead(question committed.Question, account uint32, after uint64) error {
	if seq := seqOf(question); seq > s.model.Seq || seq < after {
		return fmt.Errorf("what was answered before is at %d, and durable are %d records", after,
			s.model.Seq)
	}
	a := s.model.Accounts[account-1]
	switch q := question.(type) {
	case *committed.Wallet:
		return sameFunds(q.Holdings, a.At(q.Seq))
	case *committed.NamedOrder:
		want := a.OpenAt(q.Seq)
		for _, o := range q.Orders {
			if w, open := want[o.ID]; o.Account != account || o.ClientID != q.ClientID.String() ||
				open != (o.Status == trading.StatusActive) || open && o.Remaining != w.Remaining {
				return fmt.Errorf("order %+v is not %+v", o, w)
			}
		}
	case *committed.OpenOrders:
		want := a.OpenAt(q.Seq)
		for _, o := range q.Orders {
			if w, open := want[o.ID]; !open || o.Remaining != w.Remaining || o.Price != w.Price ||
				o.ClientID != w.ClientID.String() {
				return fmt.Errorf("order %+v is not %+v", o, w)
			}
		}
		if len(q.Orders) != len(want) {
			return fmt.Errorf("%d orders are open, not %d", len(q.Orders), len(want))
		}
	case *committed.Written:
		if at, err := memory.Open(s.disk, persistence.Retention{}).Watermark(
			context.Background()); err != nil || at < q.Seq {
			return errors.Join(fmt.Errorf("the history is at %d", at), err)
		}
	case *committed.NewestTrades:
		want := simulation.UpTo(s.model.Rows.Trades,
			q.Seq, func(t *persistence.Trade) uint64 { return t.ID })
		want = slices.DeleteFunc(want, func(t persistence.Trade) bool { return t.Pair != q.Pair })
		slices.Reverse(want)
		if q.Complete && !slices.Equal(q.Trades, want) {
			return fmt.Errorf("trades %v are not %v", q.Trades, want)
		}
	case *committed.ViewOf:
		units := s.model.Pairs[q.Pair-1].Updates
		u := int(q.View.UpdateID)
		if u > len(units) || u < len(units) && units[u].Seq <= after {
			return fmt.Errorf("the book is of update id %d of %d", u, len(units))
		}
		if u > 0 {
			return errors.Join(sameLevels(q.View.Depth.BuyLevels, units[u-1].Sides[0]),
				sameLevels(q.View.Depth.SellLevels, units[u-1].Sides[1]))
		}
	case *committed.Hash:
		return q.Err
	}
	return nil
}

// A listener is a stream channel that keeps a book by what it is told.
type listener struct {
	s    *sim
	l    *life
	pair *directory.Pair
	at   uint64 // update id
}

// listen begins one for each pair.
func (s *sim) listen(l *life) {
	for _, p := range l.engine.Pairs() {
		pid := l.engine.SpawnChannel("simulated."+p.Name, func() actor.Actor {
			return &listener{s: s, l: l, pair: p}
		})
		l.engine.Watch(committed.Watch{Channel: pid, Pair: p, Kind: committed.WatchLevels,
			View: committed.WatchBook, Levels: -1})
	}
}

func (h *listener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *committed.Watched:
		h.at = m.View.UpdateID
	case *committed.BookUpdates:
		for i := range m.List {
			if err := h.unit(&m.List[i]); err != nil {
				h.s.violate("engine %d, stream of %s: %w", h.l.number, h.pair.Name, err)
			}
		}
	case *actor.Restarting:
		h.s.violate("engine %d: the stream of %s panicked", h.l.number, h.pair.Name)
	}
}

func (h *listener) unit(u *committed.BookUpdate) error {
	units := h.s.model.Pairs[h.pair.Number-1].Updates
	if h.at++; u.UpdateID != h.at || h.at > uint64(len(units)) {
		return fmt.Errorf("update id %d comes after %d, and %d are durable", u.UpdateID, h.at-1,
			len(units))
	}
	want := &units[h.at-1]
	if u.Cancel != want.Cancel || u.ID != want.ID || u.Cancelled != want.Cancelled ||
		u.Side != want.Side || u.Price != want.Price ||
		u.Remaining != want.Remaining || !slices.Equal(u.Trades, want.Trades) ||
		len(u.Levels) != len(want.Changed) {
		return fmt.Errorf("unit %+v is not %+v", u, want)
	}
	for i, l := range u.Levels {
		_, low := l.Amount.Bits()
		if w := &want.Changed[i]; l.Side != w.Side || l.Price != w.Price ||
			low != w.Amount.Uint64() {
			return fmt.Errorf("update id %d: level %+v is not %+v", h.at, l, w)
		}
	}
	return nil
}

// atRest compares everything with everything, when nothing is in flight.
func (s *sim) atRest(l *life) error {
	e, c := l.engine, l.engine.committed
	if c.State().Seq() != s.model.Seq || e.commandsInFlight() != 0 ||
		e.journal.pending.Load() != 0 ||
		e.ReadsInFlight() != 0 {
		return fmt.Errorf(
			"at rest the state is at %d of %d records, with %d commands, %d records and %d reads "+
				"in flight", c.State().Seq(), s.model.Seq,
			e.commandsInFlight(), e.journal.pending.Load(), e.ReadsInFlight())
	}
	errs := []error{c.State().Check(), s.sameState(c.State())}
	for _, p := range e.Pairs() {
		errs = append(errs, e.verifyBook(p, c.State().Pair(p.Number)),
			s.sameOrders(c.State().Pair(p.Number)))
		if halted := s.model.Pairs[p.Number-1].Halted(s.model.Seq); p.Halted() != halted {
			errs = append(errs, fmt.Errorf("%s is halted: %v, not %v", p.Name, p.Halted(), halted))
		}
	}
	for _, a := range c.State().Accounts() {
		entry := e.dir.Account(a.ID)
		errs = append(errs, verifyWallet(l.wallets[a.ID], a, c, false))
		if m := s.model.Accounts[a.ID-1]; entry.Frozen() != m.Frozen || a.Frozen != m.Frozen {
			errs = append(errs, fmt.Errorf("account %s is frozen: %v, committed: %v, not %v",
				a.Name, entry.Frozen(), a.Frozen, m.Frozen))
		}
	}
	closed := event.Maintenance{}
	if now := e.maintenance.Load(); now != nil {
		closed = *now
	}
	if want := s.model.Maintenance; closed != want && (closed.On || want.On) ||
		c.State().Maintenance() != want {
		errs = append(errs, fmt.Errorf("maintenance is %+v, committed: %+v, not %+v", closed,
			c.State().Maintenance(), want))
	}
	own, err := seal.New(l.serverKey)
	errs = append(errs, err)
	for _, k := range c.State().Keys() {
		m := s.model.Keys[k.Number-1]
		if m.Revoked {
			bare := state.Key{Key: event.Key{Number: m.Number, Account: m.Account, Key: m.Name},
				Revoked: true}
			if !reflect.DeepEqual(*k, bare) {
				errs = append(errs, fmt.Errorf("of the revoked key %s there is %+v", m.Name, *k))
			}
			continue
		}
		if secret, err := own.Open(k.Sealed, k.SealedBy, k.Bound()); err != nil ||
			string(secret) != simulatedSecret {
			errs = append(errs, fmt.Errorf(
				"the secret of key %s is not sealed with the newest key of engine %d: %v",
				k.Key.Key, l.number, err))
		}
		errs = append(errs, boundToRights(own, k.Key))
		if k.Nonce != m.Nonce || k.Revoked {
			errs = append(errs, fmt.Errorf("key %s has nonce %d, revoked: %v, not %d, %v", m.Name,
				k.Nonce, k.Revoked, m.Nonce, m.Revoked))
		}
	}
	errs = append(errs, s.sameRecent(c))
	whole := state.New()
	if errs = append(errs, s.foldInto(whole, s.model.Seq)); whole.Hash() != c.State().Hash() {
		errs = append(errs, errors.New("the records from the first on give another state"))
	}
	return errors.Join(errs...)
}

// boundToRights wants the seal of a key to open beside nothing but its own number, account, name,
// permissions and allow-list.
func boundToRights(own *seal.Sealer, k event.Key) error {
	for what, change := range map[string]func(k *event.Key){
		"number":      func(k *event.Key) { k.Number++ },
		"account":     func(k *event.Key) { k.Account++ },
		"name":        func(k *event.Key) { k.Key += "x" },
		"permissions": func(k *event.Key) { k.Permissions ^= event.PermissionWithdraw },
		"allow-list":  func(k *event.Key) { k.Allow = append(slices.Clone(k.Allow), "0.0.0.0/0") },
	} {
		other := k
		change(&other)
		if _, err := own.Open(k.Sealed, k.SealedBy, other.Bound()); !errors.Is(err,
			seal.ErrChanged) {
			return fmt.Errorf("the secret of key %s opens beside another %s: %v", k.Key, what, err)
		}
	}
	return nil
}

// sameRecent compares what is kept of the newest trades and candles: all of them, unless it says
// that the store has older ones.
func (s *sim) sameRecent(c *committed.Side) error {
	trades := simulation.UpTo(s.model.Rows.Trades,
		s.model.Seq, func(t *persistence.Trade) uint64 { return t.ID })
	var errs []error
	for pair := range uint16(len(s.model.Pairs) + 1) {
		kept, older := committed.RecentTrades(c, pair)
		of := slices.DeleteFunc(slices.Clone(trades), func(t persistence.Trade) bool {
			return pair != 0 && t.Pair != pair
		})
		errs = append(errs, sameNewest(fmt.Sprintf("the newest trades of pair %d", pair), kept,
			of, older))
	}
	for i := range c.State().Pairs() {
		for f := range market.FrameCount {
			list, older := committed.RecentCandles(c, uint16(i+1), market.Frame(f))
			var candles []persistence.Candle
			for at := range list {
				candles = append(candles, rows.Candle(uint16(i+1), market.Frame(f), &list[at]))
			}
			want := s.model.Candles(uint16(i+1), market.Frame(f), s.model.Seq)
			errs = append(errs, sameNewest(fmt.Sprintf("the newest candles %d of pair %d", f, i+1),
				candles, want, older))
		}
	}
	return errors.Join(errs...)
}

func sameNewest[T comparable](what string, got, want []T, older bool) error {
	if older && len(got) < len(want) {
		want = want[len(want)-len(got):]
	}
	return sameRows(what, got, want)
}

// sameOrders compares a book with the model's order by order.
func (s *sim) sameOrders(p *state.Pair) error {
	for _, side := range []trading.Side{trading.Buy, trading.Sell} {
		got, want := p.Book.AppendOrders(nil, side, -1), s.model.Pairs[p.Number-1].Book.Orders(side)
		for i := range want {
			if w := want[i]; i >= len(got) ||
				got[i] != (trading.Order{ID: w.ID, Account: w.Account, Side: w.Side,
					Price: w.Price, Amount: w.Amount,
					Remaining: w.Remaining, TimeUs: w.TimeUs}) {
				return fmt.Errorf("%s: %v order %d of the book is not %+v", p.Name, side, i+1, w)
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("%s has %d %v orders, not %d", p.Name, len(got), side, len(want))
		}
	}
	return nil
}

// checkStore compares all projections with what the records up to the watermark say, and what a
// start from each snapshot gives with the live state. It is asked when all is written.
func (s *sim) checkStore(l *life) error {
	ctx, store := context.Background(), memory.Open(s.disk, persistence.Retention{})
	at, err := store.Watermark(ctx)
	if err != nil || at != s.model.Seq {
		return errors.Join(fmt.Errorf("the projections are at %d, not %d", at, s.model.Seq), err)
	}
	errs := []error{s.checkLists(ctx, store, at)}
	projected := map[string]uint64{}
	errs = append(errs, store.Nonces(ctx, func(key string, nonce uint64) {
		projected[key] = nonce
	}))
	for _, k := range s.model.Keys {
		if k.Revoked { // its nonce counts no more
			continue
		}
		if n := projected[k.Name]; n < k.Nonce || n > max(k.Nonce, s.model.ReadNonces[k.Number]) {
			errs = append(errs, fmt.Errorf("the nonce of %s is projected as %d, not %d", k.Name, n,
				k.Nonce))
		}
	}
	wallets := 0
	errs = append(errs, store.Wallets(ctx, func(w *persistence.Wallet) bool {
		wallets++
		a := s.model.Accounts[w.Account-1]
		var holdings []ledger.Holding
		for _, h := range w.Holdings {
			holdings = append(holdings, ledger.Holding{
				Currency: uint16(slices.Index(s.model.Currencies, h.Currency) + 1),
				Balance:  h.Balance, Reserve: h.Reserve})
		}
		if err := sameFunds(holdings, a.At(at)); err != nil || a.Name != w.Name {
			errs = append(errs, fmt.Errorf("the projected wallet of %s: %w", a.Name, err))
		}
		return true
	}))
	if wallets != len(s.model.Accounts) {
		errs = append(errs, fmt.Errorf("%d wallets are projected, not %d", wallets,
			len(s.model.Accounts)))
	}
	for back := range 2 {
		errs = append(errs, s.checkSnapshot(ctx, store, back, l.engine.committed.State().Hash()))
	}
	return errors.Join(errs...)
}

func (s *sim) checkSnapshot(ctx context.Context, store persistence.Store, back int,
	live [32]byte) error {
	seq, r, err := store.LoadSnapshot(ctx, back)
	if errors.Is(err, persistence.ErrNoSnapshot) {
		return nil
	}
	image, err := io.ReadAll(r)
	if errors.Is(err, persistence.ErrCorrupt) && s.damaged[seq] {
		return nil
	}
	if err != nil {
		return err
	}
	at, err := state.Decode(image)
	if err != nil {
		return err
	}
	// From the store, not from what the simulation keeps: it may have been trimmed too far.
	var tail sim
	if err := store.Read(ctx, seq, func(prev, next uint64, b []byte) error {
		tail.batches = append(tail.batches, durableBatch{prev, next, slices.Clone(b)})
		return nil
	}); err != nil {
		return err
	}
	if err := tail.foldInto(at, s.model.Seq); err != nil {
		return err
	}
	if at.Hash() != live {
		return fmt.Errorf(
			"the snapshot at %d and the journal after it give another state than the live one", seq)
	}
	return nil
}

func (s *sim) checkLists(ctx context.Context, store persistence.Store, at uint64) error {
	rows := &s.model.Rows
	var trades []persistence.Trade
	err := store.Trades(ctx, persistence.TradeQuery{Ascending: true},
		func(t *persistence.Trade) bool { trades = append(trades, *t); return true })
	errs := []error{err, sameRows("trades", trades,
		simulation.UpTo(rows.Trades, at, func(t *persistence.Trade) uint64 { return t.ID }))}
	var orders []persistence.Order
	var deposits []persistence.Deposit
	for _, a := range s.model.Accounts {
		errs = append(errs, store.Orders(ctx,
			persistence.OrderQuery{Account: a.ID}, func(o *persistence.Order) bool {
				orders = append(orders, *o)
				return true
			}),
			store.Deposits(ctx, persistence.DepositQuery{Account: a.ID},
				func(d *persistence.Deposit) bool { deposits = append(deposits, *d); return true }))
	}
	slices.SortFunc(orders, func(a, b persistence.Order) int { return int(a.ID) - int(b.ID) })
	slices.SortFunc(deposits, func(a, b persistence.Deposit) int { return int(a.ID) - int(b.ID) })
	var referred []persistence.Deposit
	errs = append(errs, store.References(ctx, func(d *persistence.Deposit) bool {
		referred = append(referred, *d)
		return true
	}))
	slices.SortFunc(referred, func(a, b persistence.Deposit) int { return int(a.ID) - int(b.ID) })
	var withdraws []persistence.Withdraw
	errs = append(errs, store.Withdraws(ctx,
		persistence.WithdrawQuery{}, func(w *persistence.Withdraw) bool {
			withdraws = append(withdraws, *w)
			return true
		}))
	slices.Reverse(withdraws)
	var actions []persistence.Action
	errs = append(errs, store.Actions(ctx,
		persistence.ActionQuery{}, func(a *persistence.Action) bool {
			if strings.TrimSpace(a.What) == "" {
				errs = append(errs, fmt.Errorf("action %d has no words", a.Seq))
			}
			actions = append(actions, persistence.Action{Seq: a.Seq, TimeUs: a.TimeUs,
				Operator: a.Operator})
			return true
		}))
	slices.Reverse(actions)
	errs = append(errs,
		sameRows("closed orders", orders,
			simulation.UpTo(rows.Orders, at, func(o *persistence.Order) uint64 { return o.ID })),
		sameRows("deposits", deposits,
			simulation.UpTo(rows.Deposits,
				at, func(d *persistence.Deposit) uint64 { return d.ID })),
		sameRows("the index of references", referred,
			simulation.UpTo(rows.Deposits,
				at, func(d *persistence.Deposit) uint64 { return d.ID })),
		sameRows("withdraws", withdraws,
			simulation.UpTo(rows.Withdrawals,
				at, func(w *persistence.Withdraw) uint64 { return w.ID })),
		sameRows("actions", actions, simulation.UpTo(rows.Actions,
			at, func(a *persistence.Action) uint64 { return a.Seq })))
	for _, p := range s.model.Pairs {
		for frame := range market.Frame(market.FrameCount) {
			var candles []persistence.Candle
			errs = append(errs, store.Candles(ctx,
				persistence.CandleQuery{Pair: p.Number, Frame: uint8(frame)},
				func(c *persistence.Candle) bool {
					candles = append(candles, *c)
					return true
				}))
			slices.Reverse(candles)
			errs = append(errs, sameRows(fmt.Sprintf("candles %v of %s", frame, p.Name), candles,
				s.model.Candles(p.Number, frame, at)))
		}
	}
	return errors.Join(errs...)
}

func sameRows[T comparable](what string, got, want []T) error {
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return fmt.Errorf("%s: %d are there, and number %d of %d is not %+v", what, len(got),
				i+1, len(want), want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d are there, and the records give %d", what, len(got), len(want))
	}
	return nil
}
