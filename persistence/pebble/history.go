package pebble

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// checkEvery is the number of rows after which a scan checks its context, and calls the function of
// WithPace.
const checkEvery = 1024

// scan calls fn for the keys in [lower, upper), in one direction, from one state of the store. A
// value with a wrong checksum ends it.
func (s *Store) scan(ctx context.Context, r pebble.Reader, lower, upper []byte, ascending bool,
	fn func(key, value []byte) (bool, error)) error {
	return s.scanStored(ctx, r, lower, upper, ascending, func(key, stored []byte) (bool, error) {
		value, err := s.unseal(key, stored)
		if err != nil {
			return false, err
		}
		return fn(key, value)
	})
}

// scanStored is scan for stored values, with their checksums.
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
			if err := persistence.Pace(ctx); err != nil {
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

// bounds returns the keys of a list's ids in [lowest, before).
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
			return s.skipByCounts(ctx, snap, s.pairTrades(q.Pair), &q, fn)
		}
		return s.skipByCounts(ctx, snap, s.allTrades(), &q, fn)
	})
}

// tradeList reads a list of rows and filters them. owner is the list with the counter that has the
// oldest id.
func (s *Store) tradeList(ctx context.Context, snap *pebble.Snapshot, list, owner []byte,
	q *persistence.TradeQuery, fn func(*persistence.Trade) bool) error {
	ids, err := s.tradeIDs(ctx, snap, list, owner, q)
	if err != nil {
		return err
	}
	lower, upper := bounds(list, ids.lowest, ids.before)
	return s.tradeRange(ctx, snap, lower, upper, q, fn)
}

// idRange is the ids [lowest, before) of a list.
type idRange struct{ lowest, before uint64 }

// tradeIDs returns the ids of a list that a query covers, before its other filters. The end of the
// range is never 0.
func (s *Store) tradeIDs(ctx context.Context, snap *pebble.Snapshot, list, owner []byte,
	q *persistence.TradeQuery) (ids idRange, err error) {
	c, err := s.counter(snap, owner)
	if err != nil || c.rows == 0 || q.After >= c.newest {
		return idRange{1, 1}, err
	}
	ids = idRange{max(c.oldest, q.After+1), c.newest + 1}
	if q.Before != 0 {
		ids.before = min(ids.before, q.Before)
	}
	if q.SinceUs != 0 {
		if ids.lowest, err = s.firstTrade(ctx, snap, list, ids, q.SinceUs); err != nil {
			return ids, err
		}
	}
	if q.UntilUs != 0 {
		ids.before, err = s.firstTrade(ctx, snap, list, ids, q.UntilUs+1)
	}
	return ids, err
}

// firstTrade returns the first of some ids from which on the trades of a pair's list are at a time
// or later, and the end of the ids if none is. Within a pair times grow with ids, so this is a
// binary search.
func (s *Store) firstTrade(ctx context.Context, snap *pebble.Snapshot, list []byte, ids idRange,
	us int64) (uint64, error) {
	for ids.lowest < ids.before {
		middle := ids.lowest + (ids.before-ids.lowest)/2
		lower, upper := bounds(list, middle, ids.before)
		earlier := uint64(0) // the first trade from the middle on, if it is before the time
		err := s.scan(ctx, snap, lower, upper, true, func(key, value []byte) (bool, error) {
			at, ok := codec.TradeTime(value)
			if !ok {
				return false, fmt.Errorf("%s: %w: trade %d", s, persistence.ErrCorrupt, idOf(key))
			}
			if at < us {
				earlier = idOf(key)
			}
			return false, nil
		})
		switch {
		case err != nil:
			return 0, err
		case earlier != 0:
			ids.lowest = earlier + 1
		default:
			ids.before = middle
		}
	}
	return ids.lowest, nil
}

// tradeRange is tradeList for a range of keys.
func (s *Store) tradeRange(ctx context.Context, snap *pebble.Snapshot, lower, upper []byte,
	q *persistence.TradeQuery, fn func(*persistence.Trade) bool) error {
	// The list itself is of the pair, and the range of the times.
	skip, filtered := q.Offset, q.TakerSide != 0 || q.MySide != 0
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

// skipByCounts reads a list that has count rows. It skips most of an offset by whole buckets. It
// skips rows one by one up to the next bucket, then whole count rows while they fit into the
// offset, then rows again. Skipping may also count rows after the query's last one. That does no
// harm, because no row is then left to answer.
func (s *Store) skipByCounts(ctx context.Context, snap *pebble.Snapshot, list []byte,
	q *persistence.TradeQuery, fn func(*persistence.Trade) bool) error {
	if q.Offset < 2*bucketIDs {
		return s.tradeList(ctx, snap, list, list, q, fn)
	}
	ids, err := s.tradeIDs(ctx, snap, list, list, q)
	if err != nil || ids.lowest >= ids.before {
		return err
	}
	rest := *q
	var lower, upper []byte
	var edge uint64 // whole buckets are skipped from there on, in the direction of reading
	if q.Ascending {
		edge = (ids.lowest + bucketIDs - 1) / bucketIDs * bucketIDs
		lower, upper = bounds(list, ids.lowest, max(edge, 1))
	} else {
		edge = ids.before / bucketIDs * bucketIDs
		lower, upper = bounds(list, max(edge, ids.lowest), ids.before)
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
		lower, upper = bounds(list, max(edge, ids.lowest), ids.before)
	} else {
		lower, upper = bounds(list, ids.lowest, max(edge, 1))
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
		return s.ordersOfClient(ctx, &q, fn)
	}
	return s.view(func(snap *pebble.Snapshot) error {
		rows := s.orders(q.Account)
		c, err := s.counter(snap, rows) // rows trimmed there are trimmed from the other lists
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

// OrdersByID reads all of them from one state of the store.
func (s *Store) OrdersByID(ctx context.Context, account uint32, ids []uint64,
	fn func(*persistence.Order) bool) error {
	return s.view(func(snap *pebble.Snapshot) error {
		var o persistence.Order
		for _, id := range ids {
			v, err := s.row(snap, u64(s.orders(account), id))
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return err
			case v == nil:
				continue
			}
			if err := codec.DecodeOrder(v, account, id, &o); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
			if !fn(&o) {
				return nil
			}
		}
		return nil
	})
}

// Withdrawals answers from the account's list, or from that of all.
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
