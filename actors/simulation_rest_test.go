package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"exchange/actors/committed"
	"exchange/actors/rows"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/market"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// atRest compares everything with the model, when nothing is in flight.
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
		errs = append(errs, sameBook(e.books[p.Number-1], c.State(), ordersCompared),
			s.sameOrders(c.State().Pair(p.Number)), s.sameStops(c.State().Pair(p.Number)))
		if halted := s.model.Pairs[p.Number-1].IsHalted(s.model.Seq); p.Halted() != halted {
			errs = append(errs, fmt.Errorf("%s is halted: %v, not %v", p.Name, p.Halted(), halted))
		}
	}
	wallets := comparison{Engine: e, orders: ordersCompared, still: true}
	for _, a := range c.State().Accounts() {
		entry := e.dir.Account(a.ID)
		if w := l.wallets[a.ID]; w != nil {
			v, is := &visit{account: entry}, partly
			for is == partly {
				is = wallets.wallet(w, v, true)
			}
			if is == later {
				errs = append(errs, fmt.Errorf("account %s: its wallet is ahead", a.Name))
			}
		}
		if m := s.model.Accounts[a.ID-1]; entry.Frozen() != m.Frozen || a.Frozen != m.Frozen {
			errs = append(errs, fmt.Errorf("account %s is frozen: %v, committed: %v, not %v",
				a.Name, entry.Frozen(), a.Frozen, m.Frozen))
		}
	}
	errs = append(errs, wallets.found...)
	errs = append(errs, l.sameMaintenance(s), l.sameKeys(s), s.sameRecent(c))
	whole := state.New()
	if errs = append(errs, s.foldInto(whole, s.model.Seq)); whole.Hash() != c.State().Hash() {
		errs = append(errs, errors.New("the records from the first on give another state"))
	}
	return errors.Join(errs...)
}

// sameBook compares a book at rest with the committed side, n orders at a time.
func sameBook(b *book, s *state.State, n int) error {
	for part := (&bookPart{pair: b.pair}); ; {
		part.copyFrom(b, n)
		if done, err := part.compareWith(s); done {
			return err
		}
	}
}

func (l *life) sameMaintenance(s *sim) error {
	closed := event.Maintenance{}
	if now := l.engine.maintenance.Load(); now != nil {
		closed = *now
	}
	folded := l.engine.committed.State().Maintenance()
	if want := s.model.Maintenance; closed != want && (closed.On || want.On) || folded != want {
		return fmt.Errorf("maintenance is %+v, committed: %+v, not %+v", closed, folded, want)
	}
	return nil
}

// sameKeys compares the committed keys with the model's. A revoked key keeps only number, account
// and name. The secret of any other is sealed with the server's newest key.
func (l *life) sameKeys(s *sim) error {
	own, err := seal.New(l.serverKey)
	errs := []error{err}
	for _, k := range l.engine.committed.State().Keys() {
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
		if k.Used != nil && !slices.Equal(slices.Collect(k.Used.All()), m.Kept) {
			errs = append(errs, fmt.Errorf("key %s has used %v, not %v", m.Name,
				slices.Collect(k.Used.All()), m.Kept))
		}
		if k.Nonce != m.Nonce || k.Revoked || (k.Used != nil) != (m.Parallel > 0) {
			errs = append(errs, fmt.Errorf("key %s has nonce %d, revoked: %v, not %d, %v", m.Name,
				k.Nonce, k.Revoked, m.Nonce, m.Revoked))
		}
	}
	return errors.Join(errs...)
}

// boundToRights wants the seal of a key to open only with the key's own number, account, name,
// permissions, allow-list and parallel nonces.
func boundToRights(own *seal.Sealer, k event.Key) error {
	for right, change := range map[string]func(k *event.Key){
		"number":      func(k *event.Key) { k.Number++ },
		"account":     func(k *event.Key) { k.Account++ },
		"name":        func(k *event.Key) { k.Key += "x" },
		"permissions": func(k *event.Key) { k.Permissions ^= event.PermissionWithdraw },
		"allow-list":  func(k *event.Key) { k.Allow = append(slices.Clone(k.Allow), "0.0.0.0/0") },
		"parallel":    func(k *event.Key) { k.NonceWindow++ },
	} {
		other := k
		change(&other)
		if _, err := own.Open(k.Sealed, k.SealedBy, other.Bound()); !errors.Is(err,
			seal.ErrChanged) {
			return fmt.Errorf("the secret of key %s opens with another %s: %v", k.Key, right, err)
		}
	}
	return nil
}

// sameRecent compares the newest trades and candles in memory with the model's: all of them, unless
// the store is marked to have older ones.
func (s *sim) sameRecent(c *committed.Side) error {
	trades := s.tradesUpTo(s.model.Seq)
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
			want := s.candlesUpTo(uint16(i+1), market.Frame(f), s.model.Seq)
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
					Remaining: w.Shown, TimeUs: w.TimeUs}) {
				return fmt.Errorf("%s: %v order %d of the book is not %+v", p.Name, side, i+1, w)
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("%s has %d %v orders, not %d", p.Name, len(got), side, len(want))
		}
	}
	return nil
}

// checkStore compares all projections with the rows derived from the records up to the watermark.
// It compares the state after each snapshot and its journal with the live state. The caller waits
// until everything is written.
func (s *sim) checkStore(l *life) error {
	ctx, store := context.Background(), memory.Open(s.disk, persistence.Retention{})
	at, err := store.Watermark(ctx)
	if err != nil || at != s.model.Seq {
		return errors.Join(fmt.Errorf("the projections are at %d, not %d", at, s.model.Seq), err)
	}
	errs := []error{s.checkLists(ctx, store, at), s.checkCandles(ctx, store, at)}
	projected := map[string]uint64{}
	errs = append(errs, store.Nonces(ctx, func(key string, nonce uint64) {
		projected[key] = nonce
	}))
	for _, k := range s.model.Keys {
		if k.Revoked { // its nonce no longer counts
			continue
		}
		if n := projected[k.Name]; n < k.Nonce || n > slices.Max(append([]uint64{k.Nonce},
			s.model.ReadNonces[k.Number]...)) {
			errs = append(errs, fmt.Errorf("the nonce of %s is projected as %d, not %d", k.Name, n,
				k.Nonce))
		}
	}
	errs = append(errs, s.checkProjectedWallets(ctx, store, at))
	for back := range 2 {
		errs = append(errs, s.checkSnapshot(ctx, store, back, l.engine.committed.State().Hash()))
	}
	return errors.Join(errs...)
}

func (s *sim) checkProjectedWallets(ctx context.Context, store persistence.Store,
	at uint64) error {
	wallets := 0
	var errs []error
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
	// From the store, not from the simulation's copy: it may have been trimmed too far.
	var tail turnState
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

// checkLists compares the rows of all lists but candles.
func (s *sim) checkLists(ctx context.Context, store persistence.Store, at uint64) error {
	var errs []error
	trades := rowsOf(&errs, func(fn func(*persistence.Trade) bool) error {
		return store.Trades(ctx, persistence.TradeQuery{Ascending: true}, fn)
	})
	var orders []persistence.Order
	var deposits []persistence.Deposit
	for _, a := range s.model.Accounts {
		orders = append(orders, rowsOf(&errs, func(fn func(*persistence.Order) bool) error {
			return store.Orders(ctx, persistence.OrderQuery{Account: a.ID}, fn)
		})...)
		deposits = append(deposits, rowsOf(&errs, func(fn func(*persistence.Deposit) bool) error {
			return store.Deposits(ctx, persistence.DepositQuery{Account: a.ID}, fn)
		})...)
	}
	referred := rowsOf(&errs, func(fn func(*persistence.Deposit) bool) error {
		return store.References(ctx, fn)
	})
	slices.SortFunc(orders, func(a, b persistence.Order) int { return int(a.ID) - int(b.ID) })
	slices.SortFunc(deposits, func(a, b persistence.Deposit) int { return int(a.ID) - int(b.ID) })
	slices.SortFunc(referred, func(a, b persistence.Deposit) int { return int(a.ID) - int(b.ID) })
	withdrawals := rowsOf(&errs, func(fn func(*persistence.Withdrawal) bool) error {
		return store.Withdrawals(ctx, persistence.WithdrawalQuery{}, fn)
	})
	slices.Reverse(withdrawals)
	actions := rowsOf(&errs, func(fn func(*persistence.Action) bool) error {
		return store.Actions(ctx, persistence.ActionQuery{}, fn)
	})
	slices.Reverse(actions)
	for i, a := range actions {
		if strings.TrimSpace(a.What) == "" {
			errs = append(errs, fmt.Errorf("action %d has no words", a.Seq))
		}
		actions[i] = persistence.Action{Seq: a.Seq, TimeUs: a.TimeUs, Operator: a.Operator}
	}
	return errors.Join(append(errs,
		sameRows("trades", trades, s.tradesUpTo(at)),
		sameRows("closed orders", orders, s.ordersUpTo(at)),
		sameRows("deposits", deposits, s.depositsUpTo(at)),
		sameRows("the index of references", referred, s.depositsUpTo(at)),
		sameRows("withdrawals", withdrawals, s.withdrawalsUpTo(at)),
		sameRows("actions", actions, s.actionsUpTo(at)))...)
}

func (s *sim) checkCandles(ctx context.Context, store persistence.Store, at uint64) error {
	var errs []error
	for _, p := range s.model.Pairs {
		for frame := range market.Frame(market.FrameCount) {
			candles := rowsOf(&errs, func(fn func(*persistence.Candle) bool) error {
				return store.Candles(ctx,
					persistence.CandleQuery{Pair: p.Number, Frame: uint8(frame)}, fn)
			})
			slices.Reverse(candles)
			errs = append(errs, sameRows(fmt.Sprintf("candles %v of %s", frame, p.Name), candles,
				s.candlesUpTo(p.Number, frame, at)))
		}
	}
	return errors.Join(errs...)
}

// rowsOf returns all rows of a query.
func rowsOf[T any](errs *[]error, query func(fn func(*T) bool) error) (rows []T) {
	err := query(func(row *T) bool {
		rows = append(rows, *row)
		return true
	})
	*errs = append(*errs, err)
	return rows
}

func sameRows[T comparable](what string, got, want []T) error {
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return fmt.Errorf("%s: %d are there (%+v), and number %d of %d is not %+v", what,
				len(got), got[min(i, len(got)):min(i+1, len(got))], i+1, len(want), want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d are there, and the records give %d", what, len(got), len(want))
	}
	return nil
}
