package pebble

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// checkEvery is the number of rows after which a scan asks whether its caller still waits, and
// whether the scan may go on.
const checkEvery = 1024

// scan calls fn for the keys in [lower, upper), in one direction, from one state of the store. A
// value with a wrong checksum ends it.
func (s *Store) scan(ctx context.Context, r pebble.Reader, lower, upper []byte, ascending bool,
	fn func(key, value []byte) (bool, error)) error {
	return s.scanStored(ctx, r, lower, upper, ascending, func(key, stored []byte) (bool, error) {
		value, err := s.opened(key, stored)
		if err != nil {
			return false, err
		}
		return fn(key, value)
	})
}

// scanStored is scan for values as they are stored.
func (s *Store) scanStored(ctx context.Context, r pebble.Reader,
	lower, upper []byte, ascending bool,
	fn func(key, stored []byte) (bool, error)) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return s.fault("read a list", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	step, ok := it.Prev, false
	if ascending {
		step, ok = it.Next, it.First()
	} else {
		ok = it.Last()
	}
	for n := 1; ok; n++ {
		if n%checkEvery == 0 {
			if err := persistence.GoOn(ctx); err != nil {
				return err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return s.fault("read a list", err)
		}
		if more, err := fn(it.Key(), value); !more || err != nil {
			return err
		}
		ok = step()
	}
	return s.fault("read a list", it.Error())
}

// view runs fn on one state of the store.
func (s *Store) view(fn func(snap *pebble.Snapshot) error) (err error) {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	snap := s.db.NewSnapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	return fn(snap)
}

// bounds of the ids that a query wants of a list: [lowest, before).
func bounds(list []byte, lowest, before uint64) (lower, upper []byte) {
	if before == 0 {
		return with(nil, list, lowest), after(list)
	}
	return with(nil, list, lowest), with(nil, list, max(before, lowest))
}

// Trades answers from the list that fits: account and pair, account, pair, or all.
func (s *Store) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	if err := codec.CheckTrades(&q); err != nil {
		return err
	}
	return s.view(func(snap *pebble.Snapshot) error {
		switch {
		case q.Account != 0 && q.Pair != 0:
			// A trade that is trimmed from an account's list is trimmed from the lists of its
			// pairs.
			return s.tradeList(ctx, snap, s.accountPairTrades(q.Account, q.Pair),
				s.accountTrades(q.Account), &q, fn)
		case q.Account != 0:
			list := s.accountTrades(q.Account)
			return s.tradeList(ctx, snap, list, list, &q, fn)
		case q.Pair != 0:
			return s.counted(ctx, snap, s.pairTrades(q.Pair), &q, fn)
		}
		return s.counted(ctx, snap, s.allTrades(), &q, fn)
	})
}

// tradeList reads a list of rows and filters them. owner is the list with the counter that has the
// oldest id.
func (s *Store) tradeList(ctx context.Context, snap *pebble.Snapshot, list, owner []byte,
	q *persistence.TradeQuery, fn func(*persistence.Trade) bool) error {
	c, err := s.counter(snap, owner)
	if err != nil || c.rows == 0 {
		return err
	}
	lower, upper := bounds(list, c.oldest, q.Before)
	return s.tradeRange(ctx, snap, lower, upper, q, fn)
}

// tradeRange is tradeList for a range of keys.
func (s *Store) tradeRange(ctx context.Context, snap *pebble.Snapshot, lower, upper []byte,
	q *persistence.TradeQuery, fn func(*persistence.Trade) bool) error {
	skip, filtered := q.Offset, q.TakerSide != 0 || q.MySide != 0 // the list itself is of the pair
	var t persistence.Trade
	return s.scan(ctx, snap, lower, upper, q.Ascending, func(key, value []byte) (bool, error) {
		if filtered && !codec.TradeMatches(value, q) {
			return true, nil
		}
		if skip > 0 {
			skip--
			return true, nil
		}
		if err := codec.DecodeTrade(value, idOf(key), &t); err != nil {
			return false, fmt.Errorf("%s: %w", s, err)
		}
		return fn(&t), nil
	})
}

// counted reads a list that has count rows. It skips most of an offset by whole buckets. It skips
// rows one by one up to the next bucket, then whole count rows while they fit into the offset, then
// rows again.
func (s *Store) counted(ctx context.Context, snap *pebble.Snapshot, list []byte,
	q *persistence.TradeQuery, fn func(*persistence.Trade) bool) error {
	if q.Offset < 2*bucketIDs {
		return s.tradeList(ctx, snap, list, list, q, fn)
	}
	c, err := s.counter(snap, list)
	if err != nil || c.rows == 0 {
		return err
	}
	rest := *q
	lower, upper := bounds(list, c.oldest, q.Before)
	// Whole buckets are skipped behind edge, in the direction of reading. Upwards, skipping also
	// counts rows at or above Before. That does no harm, because no row is then left to answer.
	var edge uint64
	if q.Ascending {
		edge = (c.oldest + bucketIDs - 1) / bucketIDs * bucketIDs
		upper = with(nil, list, edge)
	} else {
		if edge = c.newest + 1; q.Before != 0 {
			edge = min(edge, q.Before)
		}
		edge = edge / bucketIDs * bucketIDs
		lower = with(nil, list, max(edge, c.oldest))
	}
	err = s.scan(ctx, snap, lower, upper, q.Ascending, func(_, value []byte) (bool, error) {
		if q.TakerSide == 0 || codec.TradeSide(value) == q.TakerSide {
			rest.Offset--
		}
		return true, nil // a bucket has fewer rows than the offset
	})
	if err != nil {
		return err
	}
	counts := s.countPrefix(list)
	if q.Ascending {
		lower, upper = with(nil, counts, edge/bucketIDs), after(counts)
	} else {
		lower, upper = with(nil, counts, 0), with(nil, counts, edge/bucketIDs)
	}
	err = s.scan(ctx, snap, lower, upper, q.Ascending, func(key, value []byte) (bool, error) {
		n, err := decodeCount(value)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s, err)
		}
		if int64(rest.Offset) < n.matching(q.TakerSide) {
			return false, nil
		}
		rest.Offset -= int(n.matching(q.TakerSide))
		if q.Ascending {
			edge = (idOf(key) + 1) * bucketIDs
		} else {
			edge = idOf(key) * bucketIDs
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if q.Ascending {
		lower, upper = bounds(list, max(edge, c.oldest), q.Before)
	} else {
		lower, upper = bounds(list, c.oldest, max(edge, 1))
	}
	return s.tradeRange(ctx, snap, lower, upper, &rest, fn)
}

// Orders answers from the list that fits: client id, pair, or all of the account.
func (s *Store) Orders(ctx context.Context, q persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	if len(q.ClientID) > codec.MaxClientID {
		return nil // none can have it
	}
	if q.ClientID != "" {
		return s.ordersOfClient(&q, fn)
	}
	return s.view(func(snap *pebble.Snapshot) error {
		rows := s.orders(q.Account)
		c, err := s.counter(snap, rows) // what is trimmed there is trimmed from the others
		if err != nil || c.rows == 0 {
			return err
		}
		list := rows
		if q.Pair != 0 {
			list = s.pairOrders(q.Account, q.Pair)
		}
		lower, upper := bounds(list, c.oldest, q.Before)
		var o persistence.Order
		return s.scan(ctx, snap, lower, upper, false, func(key, value []byte) (bool, error) {
			if !codec.OrderMatches(value, &q) {
				return true, nil
			}
			if err := codec.DecodeOrder(value, q.Account, idOf(key), &o); err != nil {
				return false, fmt.Errorf("%s: %w", s, err)
			}
			return fn(&o), nil
		})
	})
}

// Order returns one closed order of an account.
func (s *Store) Order(_ context.Context, account uint32, id uint64) (o persistence.Order,
	err error) {
	err = s.view(func(snap *pebble.Snapshot) error {
		v, err := s.row(snap, u64(s.orders(account), id))
		if err != nil {
			return err
		}
		if v == nil {
			return fmt.Errorf("order %d of account %d: %w", id, account, persistence.ErrNotFound)
		}
		if err := codec.DecodeOrder(v, account, id, &o); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		return nil
	})
	return o, err
}

// Withdraws answers from the account's list, or from that of all.
func (s *Store) Withdrawals(ctx context.Context, q persistence.WithdrawalQuery,
	fn func(*persistence.Withdrawal) bool) error {
	if err := codec.CheckWithdrawals(&q); err != nil {
		return err
	}
	return s.view(func(snap *pebble.Snapshot) error {
		lower, upper := bounds(s.withdrawals(q.Account), 0, q.Before)
		skip := q.Offset
		var d persistence.Withdrawal
		return s.scan(ctx, snap, lower, upper, false, func(key, value []byte) (bool, error) {
			if err := codec.DecodeWithdrawal(value, idOf(key), &d); err != nil {
				return false, fmt.Errorf("%s: %w", s, err)
			}
			if !codec.WithdrawalMatches(&d, &q) {
				return true, nil
			}
			if skip > 0 {
				skip--
				return true, nil
			}
			return fn(&d), nil
		})
	})
}

// Withdrawal returns one closed withdrawal.
func (s *Store) Withdrawal(_ context.Context, id uint64) (d persistence.Withdrawal, err error) {
	err = s.view(func(snap *pebble.Snapshot) error {
		v, err := s.row(snap, u64(s.withdrawals(0), id))
		if err != nil {
			return err
		}
		if v == nil {
			return fmt.Errorf("withdrawal %d: %w", id, persistence.ErrNotFound)
		}
		if err := codec.DecodeWithdrawal(v, id, &d); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		return nil
	})
	return d, err
}

// Candles answers from the list of the pair and frame.
func (s *Store) Candles(ctx context.Context, q persistence.CandleQuery,
	fn func(*persistence.Candle) bool) error {
	since, before, any := codec.CandleTimes(&q)
	if !any {
		return nil
	}
	return s.view(func(snap *pebble.Snapshot) error {
		list := s.candles(q.Pair, q.Frame)
		c, err := s.counter(snap, list)
		if err != nil || c.rows == 0 {
			return err
		}
		lower, upper := bounds(list, max(since, c.oldest), before)
		var row persistence.Candle
		return s.scan(ctx, snap, lower, upper, false, func(key, value []byte) (bool, error) {
			if err := codec.DecodeCandle(value, q.Pair, q.Frame, idOf(key), &row); err != nil {
				return false, fmt.Errorf("%s: %w", s, err)
			}
			return fn(&row), nil
		})
	})
}

// Actions answers from the log.
func (s *Store) Actions(ctx context.Context, q persistence.ActionQuery,
	fn func(*persistence.Action) bool) error {
	return s.view(func(snap *pebble.Snapshot) error {
		lower, upper := bounds(s.actions(), 0, q.Before)
		var row persistence.Action
		return s.scan(ctx, snap, lower, upper, false, func(key, value []byte) (bool, error) {
			if err := codec.DecodeAction(value, idOf(key), &row); err != nil {
				return false, fmt.Errorf("%s: %w", s, err)
			}
			return fn(&row), nil
		})
	})
}

// Deposits answers from the account's list.
func (s *Store) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	if err := codec.CheckDeposits(&q); err != nil {
		return err
	}
	return s.view(func(snap *pebble.Snapshot) error {
		lower, upper := bounds(s.deposits(q.Account), 0, q.Before)
		skip := q.Offset
		var p persistence.Deposit
		return s.scan(ctx, snap, lower, upper, false, func(key, value []byte) (bool, error) {
			if err := codec.DecodeDeposit(value, q.Account, idOf(key), &p); err != nil {
				return false, fmt.Errorf("%s: %w", s, err)
			}
			if q.Currency != 0 && p.Currency != q.Currency {
				return true, nil
			}
			if skip > 0 {
				skip--
				return true, nil
			}
			return fn(&p), nil
		})
	})
}
