package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// pageRows is the most that one command reads: Redis does one thing at a time.
const pageRows = 1000

// firstRows is the first page of a list: most callers want no more.
const firstRows = 128

// rows calls fn for the rows of a list in the order of their ids, from below before down, or up to
// it from the oldest. Each page goes on from the last id, so that no row comes twice and none is
// left out whatever is written meanwhile, but for the oldest, which retention may remove.
func (s *Store) rows(ctx context.Context, list string, before uint64, ascending bool, skip int, fn func(id uint64, row []byte) (bool, error)) error {
	direction, cursor := "down", before
	if ascending {
		direction, cursor = "up", 0
	}
	for many := firstRows; ; many = pageRows {
		page, err := pageScript.Run(ctx, s.history, []string{list}, direction, dec(cursor), skip, many).StringSlice()
		if err != nil {
			return s.fault("read a list", err)
		}
		for _, text := range page {
			row := []byte(text)
			if len(row) < codec.IDSize {
				return fmt.Errorf("%s: %w: a row of %s has %d bytes", s.name, persistence.ErrCorrupt, list, len(row))
			}
			cursor = rowID(row)
			if ascending && before != 0 && cursor >= before {
				return nil
			}
			if more, err := fn(cursor, row[codec.IDSize:]); !more || err != nil {
				return err
			}
		}
		if len(page) < many {
			return nil
		}
		skip = 0
	}
}

// Trades answers from the list that fits: account, pair, or all. An account's trades in one pair are
// filtered from all of the account's.
func (s *Store) Trades(ctx context.Context, q persistence.TradeQuery, fn func(*persistence.Trade) bool) error {
	if err := codec.CheckTrades(&q); err != nil {
		return err
	}
	if q.Before > codec.MaxID {
		q.Before = 0 // above every id
	}
	list, filtered := s.allTrades(), q.TakerSide != 0 || q.MySide != 0
	switch {
	case q.Account != 0:
		list, filtered = s.accountTrades(q.Account), filtered || q.Pair != 0
	case q.Pair != 0:
		list = s.pairTrades(q.Pair)
	}
	skip, ahead := q.Offset, 0
	if !filtered {
		skip, ahead = 0, q.Offset // every row counts: Redis skips them by itself
	}
	var t persistence.Trade
	return s.rows(ctx, list, q.Before, q.Ascending, ahead, func(id uint64, row []byte) (bool, error) {
		if q.TakerSide != 0 && codec.TradeSide(row) != q.TakerSide {
			return true, nil
		}
		if err := codec.DecodeTrade(row, id, &t); err != nil {
			return false, fmt.Errorf("%s: %s: %w", s.name, list, err)
		}
		if !codec.TradeMatches(&t, &q) {
			return true, nil
		}
		if skip > 0 {
			skip--
			return true, nil
		}
		return fn(&t), nil
	})
}

// Deposits answers from the account's list.
func (s *Store) Deposits(ctx context.Context, q persistence.DepositQuery, fn func(*persistence.Deposit) bool) error {
	if err := codec.CheckDeposits(&q); err != nil {
		return err
	}
	if q.Before > codec.MaxID {
		q.Before = 0 // above every id
	}
	list := s.deposits(q.Account)
	var p persistence.Deposit
	return s.rows(ctx, list, q.Before, false, q.Offset, func(id uint64, row []byte) (bool, error) {
		if err := codec.DecodeDeposit(row, q.Account, id, &p); err != nil {
			return false, fmt.Errorf("%s: %s: %w", s.name, list, err)
		}
		return fn(&p), nil
	})
}

// Orders answers from the account's sorted set, whose score is the id; filters are applied here.
func (s *Store) Orders(ctx context.Context, q persistence.OrderQuery, fn func(*persistence.Order) bool) error {
	if len(q.ClientID) > codec.MaxClientID {
		return nil // none can have it
	}
	upper := "+inf"
	if q.Before != 0 && q.Before <= codec.MaxID {
		upper = "(" + dec(q.Before)
	}
	var o persistence.Order
	for many := firstRows; ; many = pageRows {
		page, err := s.history.ZRangeArgs(ctx, redis.ZRangeArgs{Key: s.orders(q.Account), Start: upper, Stop: "-inf", ByScore: true, Rev: true, Count: int64(many)}).Result()
		if err != nil {
			return s.fault("read closed orders", err)
		}
		for _, text := range page {
			id, row, err := s.member(q.Account, text)
			if err != nil {
				return err
			}
			upper = "(" + dec(id)
			if !codec.OrderMatches(row, &q) {
				continue
			}
			if err := codec.DecodeOrder(row, q.Account, id, &o); err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, s.orders(q.Account), err)
			}
			if q.Pair != 0 && o.Pair != q.Pair || q.ClientID != "" && o.ClientID != q.ClientID {
				continue
			}
			if !fn(&o) {
				return nil
			}
		}
		if len(page) < many {
			return nil
		}
	}
}

// member splits a member of an account's orders into id and row.
func (s *Store) member(account uint32, text string) (uint64, []byte, error) {
	row := []byte(text)
	if len(row) < codec.IDSize {
		return 0, nil, fmt.Errorf("%s: %w: a row of %s has %d bytes", s.name, persistence.ErrCorrupt, s.orders(account), len(row))
	}
	return rowID(row), row[codec.IDSize:], nil
}

// Order is one closed order of an account.
func (s *Store) Order(ctx context.Context, account uint32, id uint64) (persistence.Order, error) {
	var o persistence.Order
	page, err := s.history.ZRangeArgs(ctx, redis.ZRangeArgs{Key: s.orders(account), Start: dec(id), Stop: dec(id), ByScore: true, Count: 1}).Result()
	if err != nil {
		return o, s.fault("read a closed order", err)
	}
	if len(page) == 0 || id > codec.MaxID {
		return o, fmt.Errorf("order %d of account %d: %w", id, account, persistence.ErrNotFound)
	}
	got, row, err := s.member(account, page[0])
	if err != nil {
		return o, err
	}
	if err := codec.DecodeOrder(row, account, got, &o); err != nil {
		return o, fmt.Errorf("%s: %s: %w", s.name, s.orders(account), err)
	}
	return o, nil
}
