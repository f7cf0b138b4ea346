package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// copyOf shares nothing with w.
func copyOf(w *persistence.Writes) *persistence.Writes {
	c := &persistence.Writes{Wallets: slices.Clone(w.Wallets), Nonces: slices.Clone(w.Nonces),
		Trades: slices.Clone(w.Trades), Orders: slices.Clone(w.Orders),
		Deposits: slices.Clone(w.Deposits), Withdrawals: slices.Clone(w.Withdrawals),
		Candles: slices.Clone(w.Candles), Actions: slices.Clone(w.Actions)}
	for i := range c.Wallets {
		c.Wallets[i].Holdings = slices.Clone(c.Wallets[i].Holdings)
	}
	return c
}

func (d *data) apply(to uint64, w *persistence.Writes) {
	d.watermark = to
	for _, n := range w.Nonces {
		d.nonces[n.Key] = max(d.nonces[n.Key], n.Nonce)
	}
	for _, wallet := range w.Wallets {
		d.wallets[wallet.Account] = wallet
	}
	add(&d.trades, w.Trades, func(t *persistence.Trade) uint64 { return t.ID })
	add(&d.orders, w.Orders, func(o *persistence.Order) uint64 { return o.ID })
	add(&d.deposits, w.Deposits, func(p *persistence.Deposit) uint64 { return p.ID })
	for _, p := range w.Deposits {
		d.references[p.Reference] = p
	}
	add(&d.actions, w.Actions, func(a *persistence.Action) uint64 { return a.Seq })
	for i := range w.Withdrawals {
		if k := &w.Withdrawals[i]; !slices.ContainsFunc(d.withdrawals,
			func(o persistence.Withdrawal) bool { return o.ID == k.ID }) {
			add(&d.withdrawals, w.Withdrawals[i:i+1], func(k *persistence.Withdrawal) uint64 {
				return k.ID
			})
		}
	}
	for _, c := range w.Candles {
		list := d.candles[chart{c.Pair, c.Frame}]
		at, there := slices.BinarySearchFunc(list,
			c.Time, func(c persistence.Candle, time int64) int { return cmp.Compare(c.Time, time) })
		if there {
			list[at] = c
		} else {
			list = slices.Insert(list, at, c)
		}
		d.candles[chart{c.Pair, c.Frame}] = list
	}
}

// add puts rows in their places in a list.
func add[T any](list *[]T, rows []T, id func(*T) uint64) {
	if len(rows) == 0 {
		return
	}
	*list = append(*list, rows...)
	slices.SortStableFunc(*list, func(a, b T) int { return cmp.Compare(id(&a), id(&b)) })
}

// A selection is the part of a list that one query covers.
type selection[T any] struct {
	of        func(*T) bool // the rows of the query's list
	most      int           // how many of its newest are kept; 0: all
	match     func(*T) bool
	offset    int
	ascending bool
}

// A result holds the selected rows, and after how many examined rows each was found.
type result[T any] struct {
	rows     []T
	after    []int
	examined int
}

// rows returns a copy of the selected rows, newest first unless the selection orders otherwise.
func rows[T any](list []T, q selection[T]) (a result[T]) {
	for i := len(list) - 1; i >= 0; i-- {
		if !q.of(&list[i]) {
			continue
		}
		if q.most > 0 && a.examined == q.most {
			break
		}
		a.examined++
		if q.match(&list[i]) {
			a.rows, a.after = append(a.rows, list[i]), append(a.after, a.examined)
		}
	}
	if q.ascending {
		slices.Reverse(a.rows)
		slices.Reverse(a.after)
		for i, after := range a.after {
			a.after[i] = a.examined + 1 - after
		}
	}
	skip := min(q.offset, len(a.rows))
	a.rows, a.after = a.rows[skip:], a.after[skip:]
	return a
}

// whole selects all rows of a list.
func whole[T any](list []T) result[T] { return result[T]{rows: list} }

// checkEvery is the number of rows after which a query calls the function of WithPace.
const checkEvery = 1024

// answer passes a list to fn, while the disk may change.
func answer[T any](ctx context.Context, s *Store, list func(*data) result[T],
	fn func(*T) bool) error {
	if err := s.lock(); err != nil {
		return err
	}
	a := list(s.disk.live)
	s.unlock()
	checked := checkEvery
	examine := func(n int) (err error) {
		for ; err == nil && checked <= n; checked += checkEvery {
			err = persistence.Pace(ctx)
		}
		return err
	}
	for i := range a.rows {
		if a.after != nil {
			if err := examine(a.after[i]); err != nil {
				return err
			}
		}
		if !fn(&a.rows[i]) {
			return nil
		}
	}
	return examine(a.examined)
}

// Trades answers a list.
func (s *Store) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	if err := codec.CheckTrades(&q); err != nil {
		return err
	}
	of := func(t *persistence.Trade) bool {
		if q.Account != 0 {
			return t.Taker == q.Account || t.Maker == q.Account
		}
		return q.Pair == 0 || t.Pair == q.Pair
	}
	match := func(t *persistence.Trade) bool {
		mine := t.TakerSide
		if t.Taker != q.Account {
			mine = mine.Opposite()
		}
		return (q.Pair == 0 || t.Pair == q.Pair) &&
			(q.TakerSide == 0 || t.TakerSide == q.TakerSide) &&
			(q.MySide == 0 || mine == q.MySide) &&
			(q.Before == 0 || t.ID < q.Before) && t.ID > q.After &&
			t.TimeUs >= q.SinceUs && (q.UntilUs == 0 || t.TimeUs <= q.UntilUs)
	}
	return answer(ctx, s, func(d *data) result[persistence.Trade] {
		return rows(d.trades, selection[persistence.Trade]{of, s.keep.Trades, match, q.Offset,
			q.Ascending})
	}, fn)
}

// Orders answers a list.
func (s *Store) Orders(ctx context.Context, q persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	match := func(o *persistence.Order) bool {
		return (q.Pair == 0 || o.Pair == q.Pair) && (q.Side == 0 || o.Side == q.Side) &&
			(q.Status == 0 || o.Status == q.Status) &&
			(q.ClientID == "" || o.ClientID == q.ClientID) && (q.Before == 0 || o.ID < q.Before) &&
			(q.MaxSeq == 0 || o.ClosedSeq <= q.MaxSeq)
	}
	return answer(ctx, s, func(d *data) result[persistence.Order] {
		return rows(d.orders, selection[persistence.Order]{func(o *persistence.Order) bool {
			return o.Account == q.Account
		}, s.keep.Orders, match, 0, false})
	}, fn)
}

// Order returns one closed order of an account.
func (s *Store) Order(ctx context.Context, account uint32, id uint64) (found persistence.Order,
	err error) {
	err = s.Orders(ctx, persistence.OrderQuery{Account: account}, func(o *persistence.Order) bool {
		if o.ID == id {
			found = *o
		}
		return o.ID > id
	})
	if err == nil && found.ID == 0 {
		err = fmt.Errorf("order %d of account %d: %w", id, account, persistence.ErrNotFound)
	}
	return found, err
}

// OrdersByID reads each of them.
func (s *Store) OrdersByID(ctx context.Context, account uint32, ids []uint64,
	fn func(*persistence.Order) bool) error {
	for _, id := range ids {
		o, err := s.Order(ctx, account, id)
		switch {
		case errors.Is(err, persistence.ErrNotFound):
		case err != nil:
			return err
		case !fn(&o):
			return nil
		}
	}
	return nil
}

// Deposits answers a list.
func (s *Store) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	if err := codec.CheckDeposits(&q); err != nil {
		return err
	}
	match := func(p *persistence.Deposit) bool {
		return (q.Before == 0 || p.ID < q.Before) && (q.Currency == 0 || p.Currency == q.Currency)
	}
	return answer(ctx, s, func(d *data) result[persistence.Deposit] {
		return rows(d.deposits, selection[persistence.Deposit]{func(p *persistence.Deposit) bool {
			return p.Account == q.Account
		}, 0, match, q.Offset, false})
	}, fn)
}

// Reference returns the deposit that was made under a reference.
func (s *Store) Reference(_ context.Context, watermark uint64,
	reference string) (persistence.Deposit, error) {
	if err := s.lock(); err != nil {
		return persistence.Deposit{}, err
	}
	defer s.unlock()
	d := s.disk.live
	if p, there := d.references[reference]; there {
		return p, nil
	}
	return persistence.Deposit{}, codec.NoReference(reference, d.watermark, watermark)
}

// CountReferences returns the number of deposits in the index.
func (s *Store) CountReferences(context.Context) (uint64, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.unlock()
	return uint64(len(s.disk.live.references)), nil
}

// References calls fn for each deposit of that index.
func (s *Store) References(ctx context.Context, fn func(*persistence.Deposit) bool) error {
	return answer(ctx, s, func(d *data) result[persistence.Deposit] {
		return whole(slices.Collect(maps.Values(d.references)))
	}, fn)
}

// Withdrawals answers a list.
func (s *Store) Withdrawals(ctx context.Context, q persistence.WithdrawalQuery,
	fn func(*persistence.Withdrawal) bool) error {
	if err := codec.CheckWithdrawals(&q); err != nil {
		return err
	}
	match := func(k *persistence.Withdrawal) bool {
		return codec.WithdrawalMatches(k, &q) && (q.Before == 0 || k.ID < q.Before)
	}
	return answer(ctx, s, func(d *data) result[persistence.Withdrawal] {
		return rows(d.withdrawals,
			selection[persistence.Withdrawal]{func(*persistence.Withdrawal) bool {
				return true
			}, 0, match, q.Offset, false})
	}, fn)
}

// Withdrawal returns a closed one.
func (s *Store) Withdrawal(ctx context.Context, id uint64) (found persistence.Withdrawal,
	err error) {
	err = s.Withdrawals(ctx, persistence.WithdrawalQuery{}, func(k *persistence.Withdrawal) bool {
		if k.ID == id {
			found = *k
		}
		return k.ID > id
	})
	if err == nil && found.ID == 0 {
		err = fmt.Errorf("withdrawal %d: %w", id, persistence.ErrNotFound)
	}
	return found, err
}

// Candles answers a list.
func (s *Store) Candles(ctx context.Context, q persistence.CandleQuery,
	fn func(*persistence.Candle) bool) error {
	match := func(c *persistence.Candle) bool {
		return c.Time >= q.Since && (q.Until == 0 || c.Time <= q.Until)
	}
	return answer(ctx, s, func(d *data) result[persistence.Candle] {
		return rows(d.candles[chart{q.Pair, q.Frame}],
			selection[persistence.Candle]{func(*persistence.Candle) bool { return true },
				s.keep.Candles, match, 0, false})
	}, fn)
}

// Actions answers a list.
func (s *Store) Actions(ctx context.Context, q persistence.ActionQuery,
	fn func(*persistence.Action) bool) error {
	match := func(a *persistence.Action) bool { return q.Before == 0 || a.Seq < q.Before }
	return answer(ctx, s, func(d *data) result[persistence.Action] {
		return rows(d.actions, selection[persistence.Action]{func(*persistence.Action) bool {
			return true
		}, 0, match, 0, false})
	}, fn)
}

// Wallets calls fn for each wallet.
func (s *Store) Wallets(ctx context.Context, fn func(*persistence.Wallet) bool) error {
	return answer(ctx, s, func(d *data) result[persistence.Wallet] {
		var all []persistence.Wallet
		for _, account := range slices.Sorted(maps.Keys(d.wallets)) {
			all = append(all, d.wallets[account])
		}
		return whole(all)
	}, fn)
}

// Nonces calls fn for each key's nonce.
func (s *Store) Nonces(ctx context.Context, fn func(key string, nonce uint64)) error {
	return answer(ctx, s, func(d *data) result[persistence.Nonce] {
		var all []persistence.Nonce
		for _, key := range slices.Sorted(maps.Keys(d.nonces)) {
			all = append(all, persistence.Nonce{Key: key, Nonce: d.nonces[key]})
		}
		return whole(all)
	}, func(n *persistence.Nonce) bool {
		fn(n.Key, n.Nonce)
		return true
	})
}

// Verify finds nothing: memory has no bits that flip.
func (s *Store) Verify(context.Context, func(place string)) (int, error) { return 0, nil }
