package redis

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// pageRows is the most that one command reads: Redis runs one command at a time.
const pageRows = 1000

// pageMarks is the most marks that one command reads: 300 kB, a copy of bytes.
const pageMarks = 100_000

// firstRows is the first page of a list: most callers want no more.
const firstRows = 128

// position is where reading a list starts: after an id, with a number of rows left out.
type position struct {
	cursor uint64 // 0: from the list's end
	ahead  int    // rows to skip; below 0, upwards only: rows to go back
	last   uint64 // id of the row that was read last
	read   bool   // last is set
}

// below returns the position of rows below an id; 0, or one above all, is the newest.
func below(id uint64) position {
	if id > codec.MaxID {
		id = 0
	}
	return position{cursor: id}
}

// rows calls fn for the rows of a list in the order of their ids, from a position down, or up. Each
// page continues from the last id. So no row comes twice and none is left out by writes meanwhile,
// except for the oldest, which retention may remove.
func (s *Store) rows(ctx context.Context, list string, at position, ascending bool,
	fn func(id uint64, row []byte) (bool, error)) error {
	for many := firstRows; ; many = pageRows {
		page, err := s.page(ctx, list, at, ascending, many)
		if err != nil {
			return err
		}
		for _, text := range page {
			id, row, err := s.row(list, text)
			if err != nil {
				return err
			}
			if last, ok := at.last, at.read; ok && (id > last) != ascending {
				return s.misplaced(list, id)
			}
			at.last, at.read = id, true
			if more, err := fn(id, row); !more || err != nil {
				return err
			}
			at.cursor = id
		}
		if len(page) < many || at.cursor == 0 { // nothing is below 0; a time may be 0
			return nil
		}
		if many == pageRows { // the first page is short
			if err := persistence.Pace(ctx); err != nil {
				return err
			}
		}
		at.ahead = 0
	}
}

// page reads rows of a list. It checks the rows between which its search ended, so damage cannot
// have misled the search.
func (s *Store) page(ctx context.Context, list string, at position, ascending bool,
	many int) ([]string, error) {
	answer, err := pageScript.Run(ctx, s.history, []string{list}, direction(ascending),
		dec(at.cursor), at.ahead, many).Slice()
	if err != nil {
		return nil, s.fault("read a list", err)
	}
	if len(answer) != 3 {
		return nil, s.fault("read a list", fmt.Errorf("the script answered %d parts", len(answer)))
	}
	if _, err := s.ids(list, answer[1:]); err != nil {
		return nil, err
	}
	rows, _ := answer[0].([]any)
	page := make([]string, len(rows))
	for i := range rows {
		page[i], _ = rows[i].(string)
	}
	return page, nil
}

// ids returns the ids of rows of a list, 0 for a missing row. The rows' checksums must be right.
func (s *Store) ids(list string, rows []any) (ids [4]uint64, err error) {
	for i := range rows {
		text, _ := rows[i].(string)
		if text == "" {
			continue
		}
		if ids[i], _, err = s.row(list, text); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

func direction(ascending bool) string {
	if ascending {
		return "up"
	}
	return "down"
}

// Trades answers from the list that fits: account, pair, or all. An account's trades in one pair
// are filtered from all of the account's.
func (s *Store) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	if err := codec.CheckTrades(&q); err != nil {
		return err
	}
	if any, err := s.timesToIDs(ctx, &q); !any || err != nil {
		return err
	}
	list, filtered := s.allTrades(), q.TakerSide != 0 || q.MySide != 0
	switch {
	case q.Account != 0:
		list, filtered = s.accountTrades(q.Account), filtered || q.Pair != 0
	case q.Pair != 0:
		list = s.pairTrades(q.Pair)
	}
	at := position{cursor: q.After}
	if !q.Ascending {
		at = below(q.Before)
	}
	skip := q.Offset
	switch {
	case !filtered:
		skip, at.ahead = 0, q.Offset // every row counts: Redis skips them by itself
	case q.SinceUs != 0 || q.UntilUs != 0: // marks hold no times
	case skip > pageRows:
		var err error
		if skip, at, err = s.skipByMarks(ctx, list, at, &q); err != nil {
			return err
		}
	}
	var t persistence.Trade
	return s.rows(ctx, list, at, q.Ascending, func(id uint64, row []byte) (bool, error) {
		if q.Ascending && q.Before != 0 && id >= q.Before || !q.Ascending && id <= q.After {
			return false, nil
		}
		if filtered && !codec.TradeMatches(row, &q) {
			return true, nil
		}
		if skip > 0 {
			skip--
			return true, nil
		}
		if err := codec.DecodeTrade(row, id, &t); err != nil {
			return false, fmt.Errorf("%s: %s: %w", s.name, list, err)
		}
		return fn(&t), nil
	})
}

// timesToIDs narrows the ids of a query to those that its times allow, as far as the list of its
// pair reaches. The list of an account may reach further back, so its rows are filtered, too.
// False: no trade can be in the query's list.
func (s *Store) timesToIDs(ctx context.Context, q *persistence.TradeQuery) (any bool, err error) {
	if q.After >= codec.MaxID {
		return false, nil
	}
	if q.SinceUs != 0 {
		earlier, _, err := s.tradesAround(ctx, q.Pair, q.SinceUs)
		if err != nil {
			return false, err
		}
		q.After = max(q.After, earlier)
	}
	if q.UntilUs == 0 {
		return true, nil
	}
	earlier, later, err := s.tradesAround(ctx, q.Pair, q.UntilUs+1)
	if err != nil || earlier == 0 && later == 0 {
		return false, err
	}
	if later == 0 { // trades from now on are later
		later = earlier + 1
	}
	if q.Before == 0 || later < q.Before {
		q.Before = later
	}
	return true, nil
}

// tradesAround returns the ids of the last trade of a pair before a time, and of the first at it or
// later; 0: none.
func (s *Store) tradesAround(ctx context.Context, pair uint16, us int64) (earlier, later uint64,
	err error) {
	list := s.pairTrades(pair)
	answer, err := timesScript.Run(ctx, s.history, []string{list}, us).Slice()
	if err != nil {
		return 0, 0, s.fault("find a time in a list", err)
	}
	if len(answer) != 2 {
		return 0, 0, s.fault("find a time in a list",
			fmt.Errorf("the script answered %d parts", len(answer)))
	}
	ids, err := s.ids(list, answer)
	return ids[0], ids[1], err
}

// skipByMarks returns where a query with a long offset and a filter starts to read rows, and how
// many matching rows it must still skip. The marks of a list show which rows match. A hundred
// thousand marks are read in the time of a few hundred rows.
func (s *Store) skipByMarks(ctx context.Context, list string, at position,
	q *persistence.TradeQuery) (int, position, error) {
	skip, of := q.Offset, codec.At(s.marks(list))
	for {
		answer, err := marksScript.Run(ctx, s.history, []string{list, s.marks(list)},
			direction(q.Ascending), dec(at.cursor), pageMarks).Slice()
		if err != nil {
			return 0, at, s.fault("read the marks of a list", err)
		}
		if len(answer) != 5 {
			return 0, at, s.fault("read the marks of a list",
				fmt.Errorf("the script answered %d parts", len(answer)))
		}
		marks, _ := answer[0].(string)
		ids, err := s.ids(list, answer[1:])
		if err != nil {
			return 0, at, err
		}
		oldest, newest := ids[0], ids[1]
		n := len(marks) / codec.MarkSize
		if n == 0 {
			return skip, at, nil // no marks from here on: the rest is skipped row by row
		}
		for i := range n {
			k := i
			if !q.Ascending {
				k = n - 1 - i
			}
			mark := marks[k*codec.MarkSize:][:codec.MarkSize]
			if err := codec.CheckMark(of, mark); err != nil {
				return 0, at, fmt.Errorf("%s: %s: a mark of the trades from %d to %d: %w", s.name,
					s.marks(list), oldest, newest, err)
			}
			if !codec.MarkMatches(mark, q) {
				continue
			}
			if skip == 0 {
				// The offset counts from the newest of these rows, also when it reads upwards. So
				// rows appended or trimmed meanwhile do not matter.
				if q.Ascending {
					return 0, position{cursor: newest, ahead: i - n}, nil
				}
				return 0, position{cursor: newest + 1, ahead: i}, nil
			}
			skip--
		}
		at.cursor = oldest
		if q.Ascending {
			at.cursor = newest
		}
		if err := persistence.Pace(ctx); err != nil {
			return 0, at, err
		}
	}
}

// Deposits answers from the account's list.
func (s *Store) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	if err := codec.CheckDeposits(&q); err != nil {
		return err
	}
	list, at, skip := s.deposits(q.Account), below(q.Before), q.Offset
	if q.Currency == 0 {
		skip, at.ahead = 0, q.Offset // every row counts: Redis skips them by itself
	}
	var p persistence.Deposit
	return s.rows(ctx, list, at, false, func(id uint64, row []byte) (bool, error) {
		if err := codec.DecodeDeposit(row, q.Account, id, &p); err != nil {
			return false, fmt.Errorf("%s: %s: %w", s.name, list, err)
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
}

// Withdrawals answers from the sorted set of the account, or of all, whose score is the id.
func (s *Store) Withdrawals(ctx context.Context, q persistence.WithdrawalQuery,
	fn func(*persistence.Withdrawal) bool) error {
	if err := codec.CheckWithdrawals(&q); err != nil {
		return err
	}
	set, skip := s.withdrawals(q.Account), q.Offset
	var d persistence.Withdrawal
	return s.members(ctx, set, q.Before, func(id uint64, row []byte) (bool, error) {
		if err := codec.DecodeWithdrawal(row, id, &d); err != nil {
			return false, fmt.Errorf("%s: %s: %w", s.name, set, err)
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
}

// Withdrawal returns one closed withdrawal.
func (s *Store) Withdrawal(ctx context.Context, id uint64) (persistence.Withdrawal, error) {
	var d persistence.Withdrawal
	row, err := s.one(ctx, s.withdrawals(0), id)
	if err != nil {
		return d, err
	}
	if row == nil {
		return d, fmt.Errorf("withdrawal %d: %w", id, persistence.ErrNotFound)
	}
	if err := codec.DecodeWithdrawal(row, id, &d); err != nil {
		return d, fmt.Errorf("%s: %s: %w", s.name, s.withdrawals(0), err)
	}
	return d, nil
}

// Candles answers from the list of the pair and frame.
func (s *Store) Candles(ctx context.Context, q persistence.CandleQuery,
	fn func(*persistence.Candle) bool) error {
	since, before, any := codec.CandleTimes(&q)
	if !any {
		return nil
	}
	list := s.candleList(q.Pair, q.Frame)
	var c persistence.Candle
	return s.rows(ctx, list, below(before), false, func(time uint64, row []byte) (bool, error) {
		if time < since {
			return false, nil
		}
		if err := codec.DecodeCandle(row, q.Pair, q.Frame, time, &c); err != nil {
			return false, fmt.Errorf("%s: %s: %w", s.name, list, err)
		}
		return fn(&c), nil
	})
}

// Actions answers from the log.
func (s *Store) Actions(ctx context.Context, q persistence.ActionQuery,
	fn func(*persistence.Action) bool) error {
	var a persistence.Action
	return s.rows(ctx, s.actions(), below(q.Before),
		false, func(seq uint64, row []byte) (bool, error) {
			if err := codec.DecodeAction(row, seq, &a); err != nil {
				return false, fmt.Errorf("%s: %s: %w", s.name, s.actions(), err)
			}
			return fn(&a), nil
		})
}

// Orders answers from the account's sorted set, whose score is the id; filters are applied here. It
// reads orders with a client id through the index beside the set.
func (s *Store) Orders(ctx context.Context, q persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	if len(q.ClientID) > codec.MaxClientID {
		return nil // none can have it
	}
	if q.ClientID != "" {
		return s.clientOrders(ctx, &q, fn)
	}
	set := s.orders(q.Account)
	var o persistence.Order
	return s.members(ctx, set, q.Before, func(id uint64, row []byte) (bool, error) {
		if !codec.OrderMatches(row, &q) {
			return true, nil
		}
		if err := codec.DecodeOrder(row, q.Account, id, &o); err != nil {
			return false, fmt.Errorf("%s: %s: %w", s.name, set, err)
		}
		if q.Pair != 0 && o.Pair != q.Pair {
			return true, nil
		}
		return fn(&o), nil
	})
}

// Order returns one closed order of an account.
func (s *Store) Order(ctx context.Context, account uint32, id uint64) (persistence.Order, error) {
	var o persistence.Order
	row, err := s.one(ctx, s.orders(account), id)
	if err != nil {
		return o, err
	}
	if row == nil {
		return o, fmt.Errorf("order %d of account %d: %w", id, account, persistence.ErrNotFound)
	}
	if err := codec.DecodeOrder(row, account, id, &o); err != nil {
		return o, fmt.Errorf("%s: %s: %w", s.name, s.orders(account), err)
	}
	return o, nil
}

// OrdersByID fetches pageRows orders per round trip, each with its own command.
func (s *Store) OrdersByID(ctx context.Context, account uint32, ids []uint64,
	fn func(*persistence.Order) bool) error {
	set := s.orders(account)
	for page := range slices.Chunk(ids, pageRows) {
		if err := persistence.Pace(ctx); err != nil {
			return err
		}
		answers := make([]*redis.ZSliceCmd, len(page))
		if _, err := s.history.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range page {
				id = min(id, codec.MaxID+1) // one above is exact as a score, and no row's
				answers[i] = p.ZRangeArgsWithScores(ctx, exactly(set, id))
			}
			return nil
		}); err != nil {
			return s.fault("read rows", err)
		}
		var o persistence.Order
		for _, answer := range answers {
			if len(answer.Val()) == 0 {
				continue
			}
			id, row, err := s.member(set, answer.Val()[0])
			if err != nil {
				return err
			}
			if err := codec.DecodeOrder(row, account, id, &o); err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, set, err)
			}
			if !fn(&o) {
				return nil
			}
		}
	}
	return nil
}

// exactly selects the entry of a sorted set with that id.
func exactly(set string, id uint64) redis.ZRangeArgs {
	return redis.ZRangeArgs{Key: set, Start: dec(id), Stop: dec(id), ByScore: true, Count: 1}
}

// members calls fn for the rows of a sorted set, newest first, from below before down (0: all).
func (s *Store) members(ctx context.Context, set string, before uint64, fn func(id uint64,
	row []byte) (bool, error)) error {
	upper := "+inf"
	if before != 0 && before <= codec.MaxID {
		upper = "(" + dec(before)
	}
	for many := firstRows; ; many = pageRows {
		page, err := s.history.ZRangeArgsWithScores(ctx,
			redis.ZRangeArgs{Key: set, Start: upper, Stop: "-inf", ByScore: true, Rev: true,
				Count: int64(many)}).Result()
		if err != nil {
			return s.fault("read a sorted set", err)
		}
		for _, z := range page {
			id, row, err := s.member(set, z)
			if err != nil {
				return err
			}
			upper = "(" + dec(id)
			if more, err := fn(id, row); !more || err != nil {
				return err
			}
		}
		if len(page) < many {
			return nil
		}
		if many == pageRows { // the first page is short
			if err := persistence.Pace(ctx); err != nil {
				return err
			}
		}
	}
}

// one returns the row of a sorted set with that id, nil if there is none.
func (s *Store) one(ctx context.Context, set string, id uint64) ([]byte, error) {
	if id > codec.MaxID {
		return nil, nil // it would not be exact as a score
	}
	page, err := s.history.ZRangeArgsWithScores(ctx, exactly(set, id)).Result()
	if err != nil {
		return nil, s.fault("read a row", err)
	}
	if len(page) == 0 {
		return nil, nil
	}
	_, row, err := s.member(set, page[0])
	return row, err
}

// member is row for an entry of a sorted set, whose score is the row's id.
func (s *Store) member(set string, z redis.Z) (uint64, []byte, error) {
	text, _ := z.Member.(string)
	id, row, err := s.row(set, text)
	if err == nil && z.Score != float64(id) {
		err = s.misplaced(set, id)
	}
	return id, row, err
}

// row splits a stored value into id and row, whose checksum must be right.
func (s *Store) row(key, text string) (uint64, []byte, error) {
	stored := []byte(text)
	if len(stored) < codec.IDSize {
		return 0, nil, fmt.Errorf("%s: %s: %w: a row has %d bytes", s.name, key,
			persistence.ErrCorrupt, len(stored))
	}
	row, err := codec.At(key).And(stored[:codec.IDSize]).Open(stored[codec.IDSize:])
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %s: row %d: %w", s.name, key, rowID(stored), err)
	}
	return rowID(stored), row, nil
}

// misplaced returns the error for a row at the wrong place for its id.
func (s *Store) misplaced(key string, id uint64) error {
	return fmt.Errorf("%s: %s: %w: row %d is in a wrong place", s.name, key,
		persistence.ErrCorrupt, id)
}
