package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// verifyTries is how often a list that changes meanwhile is read. After that only its rows are
// verified, and not that none is missing.
const verifyTries = 5

// A sum is a list's entry in the hash of sums: the number of rows, and the exclusive or of their
// checksums.
type sum struct {
	rows int
	all  uint32
}

func (s sum) String() string { return fmt.Sprintf("%d:%08x", s.rows, s.all) }

// Verify checks all keys of the projections.
func (s *Store) Verify(ctx context.Context, wrong func(place string)) (rows int, err error) {
	if _, err := s.Watermark(ctx); errors.Is(err, persistence.ErrCorrupt) {
		wrong(err.Error())
	} else if err != nil {
		return 0, err
	}
	keys, err := s.projected(ctx)
	if err != nil {
		return 0, err
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		n, err := s.verifyKey(ctx, key, wrong)
		if err != nil && !errors.Is(err, persistence.ErrCorrupt) {
			return rows, err
		}
		if err != nil {
			wrong(err.Error())
		}
		rows += n
	}
	return rows, nil
}

// projected returns the existing keys, and those in the sums.
func (s *Store) projected(ctx context.Context) (map[string]bool, error) {
	keys := map[string]bool{s.references(): true}
	for cursor := uint64(0); ; {
		page, next, err := s.history.Scan(ctx, cursor, s.key("*"), pageRows).Result()
		if err != nil {
			return nil, s.fault("find lists", err)
		}
		for _, key := range page {
			keys[strings.TrimSuffix(key, clientIDs)] = true // an index is checked with its orders
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	for cursor := uint64(0); ; {
		page, next, err := s.history.HScan(ctx, s.sums(), cursor, "", pageRows).Result()
		if err != nil {
			return nil, s.fault("read the sums of lists", err)
		}
		for i := 0; i < len(page); i += 2 {
			if page[i] != watermarkSum {
				keys[page[i]] = true
			}
		}
		if cursor = next; cursor == 0 {
			return keys, nil
		}
	}
}

// verifyKey checks a key, if it is one of the projections.
func (s *Store) verifyKey(ctx context.Context, key string, wrong func(place string)) (int, error) {
	name := strings.TrimPrefix(key, s.key(""))
	kind, _, _ := strings.Cut(name, ":")
	switch {
	case kind == "nonces":
		n := 0
		err := s.Nonces(ctx, func(string, uint64) { n++ })
		return n, err
	case name == "references":
		return s.verifyReferences(ctx)
	case kind == "references":
		return 0, nil // the witnesses, with their index
	case kind == "wallet":
		_, err := s.readWallet(ctx, strings.TrimPrefix(name, "wallet:"))
		if errors.Is(err, persistence.ErrNotFound) {
			err = nil // removed by hand meanwhile
		}
		return 1, err
	case kind == "trades" && strings.HasSuffix(name, ":marks"):
		return 0, nil // with their list
	case kind == "trades":
		return s.verifyList(ctx, key, wrong, s.tradePage)
	case kind == "deposits", kind == "candles", kind == "actions":
		return s.verifyList(ctx, key, wrong, s.listPage)
	case kind == "orders", kind == "withdraws":
		return s.verifyList(ctx, key, wrong, s.setPage)
	}
	return 0, nil
}

// verifyReferences checks each entry of the index with its witness, and their number.
func (s *Store) verifyReferences(ctx context.Context) (n int, err error) {
	if _, err := s.CountReferences(ctx); err != nil {
		return 0, err
	}
	return n, s.References(ctx, func(*persistence.Deposit) bool { n++; return true })
}

// A listReading is one reading of a list.
type listReading struct {
	s       *Store
	key     string
	is      sum
	damaged []string // rows with a wrong checksum
	odd     []string // faults that may come from changes meanwhile
	last    uint64
	// clients is the sum of the entries that the index of client ids must have.
	clients sum
}

// verifyList reads a list again until it did not change meanwhile. page returns stored rows, from a
// rank on.
func (s *Store) verifyList(ctx context.Context, key string, wrong func(place string),
	page func(ctx context.Context, l *listReading, from int) ([]string, error)) (int, error) {
	for try := 1; ; try++ {
		before, err := s.sum(ctx, key)
		if err != nil {
			return 0, err
		}
		l := &listReading{s: s, key: key}
		for {
			rows, err := page(ctx, l, l.is.rows)
			if err != nil {
				return l.is.rows, err
			}
			for _, stored := range rows {
				l.row(stored)
			}
			if len(rows) < pageRows {
				break
			}
			if err := persistence.Pace(ctx); err != nil {
				return l.is.rows, err
			}
		}
		if err := s.verifyClients(ctx, l); err != nil {
			return l.is.rows, err
		}
		after, err := s.sum(ctx, key)
		if err != nil {
			return l.is.rows, err
		}
		if before != after && try < verifyTries {
			continue
		}
		if before == after && l.is.String() != before {
			l.odd = append(l.odd, fmt.Sprintf(
				"%s: %s: %d rows with the sum %s exist, and %s says %s: rows are missing, or "+
					"there twice",
				s.name, key, l.is.rows, l.is, s.sums(), before))
		}
		if before == after {
			l.damaged = append(l.damaged, l.odd...)
		}
		for _, place := range l.damaged {
			wrong(place)
		}
		return l.is.rows, nil
	}
}

// row checks one row.
func (l *listReading) row(stored string) {
	l.is.rows++
	if err := l.check(stored); err != nil {
		l.damaged = append(l.damaged, err.Error())
		return
	}
	l.is.all ^= codec.Sum([]byte(stored))
}

// check refuses a row that is damaged. It adds an order's entry to the expected index of client
// ids.
func (l *listReading) check(stored string) error {
	id, row, err := l.s.row(l.key, stored)
	of, isOrder := strings.CutPrefix(l.key, l.s.key("orders:"))
	if err != nil || !isOrder {
		return err
	}
	account, err := l.s.number("an account in the name of a list", of)
	if err != nil {
		return err
	}
	var o persistence.Order
	if err := codec.DecodeOrder(row, uint32(account), id, &o); err != nil {
		return fmt.Errorf("%s: %s: %w", l.s.name, l.key, err)
	}
	if entry := l.s.clientEntry(&o); entry != nil {
		l.clients.rows++
		l.clients.all ^= codec.Sum(entry)
	}
	return nil
}

// sum returns a list's entry in the hash of sums.
func (s *Store) sum(ctx context.Context, key string) (string, error) {
	text, err := s.history.HGet(ctx, s.sums(), key).Result()
	if errors.Is(err, redis.Nil) {
		return sum{}.String(), nil
	}
	if err != nil {
		return "", s.fault("read the sum of a list", err)
	}
	return text, nil
}

// listPage returns a page of a list. It checks the order of the rows, because a row in a wrong
// place changes no sum.
func (s *Store) listPage(ctx context.Context, l *listReading, from int) ([]string, error) {
	rows, err := s.history.LRange(ctx, l.key, int64(from), int64(from+pageRows-1)).Result()
	if err != nil {
		return nil, s.fault("read "+l.key, err)
	}
	for i, stored := range rows {
		if len(stored) < codec.IDSize {
			continue
		}
		id := rowID([]byte(stored))
		if from+i > 0 && id <= l.last {
			l.odd = append(l.odd, s.misplaced(l.key, id).Error())
		}
		l.last = id
	}
	return rows, nil
}

// tradePage returns listPage for a list with marks.
func (s *Store) tradePage(ctx context.Context, l *listReading, from int) ([]string, error) {
	rows, err := s.listPage(ctx, l, from)
	if err == nil && len(rows) > 0 {
		err = s.verifyMarks(ctx, l, from, rows)
	}
	return rows, err
}

// setPage returns a page of a sorted set.
func (s *Store) setPage(ctx context.Context, l *listReading, from int) ([]string, error) {
	page, err := s.history.ZRangeWithScores(ctx, l.key, int64(from),
		int64(from+pageRows-1)).Result()
	if err != nil {
		return nil, s.fault("read "+l.key, err)
	}
	rows := make([]string, len(page))
	for i, z := range page {
		rows[i], _ = z.Member.(string)
		if len(rows[i]) >= codec.IDSize && z.Score != float64(rowID([]byte(rows[i]))) {
			l.odd = append(l.odd, s.misplaced(l.key, rowID([]byte(rows[i]))).Error())
		}
	}
	return rows, nil
}

// verifyClients compares the index of client ids with the orders that were read. The index is
// ordered by its entries' bytes, so all scores must be 0.
func (s *Store) verifyClients(ctx context.Context, l *listReading) error {
	if !strings.HasPrefix(l.key, s.key("orders:")) {
		return nil
	}
	key, is := l.key+clientIDs, sum{}
	for more := true; more; {
		page, err := s.history.ZRangeWithScores(ctx, key, int64(is.rows),
			int64(is.rows+pageRows-1)).Result()
		if err != nil {
			return s.fault("read "+key, err)
		}
		for _, z := range page {
			entry, _ := z.Member.(string)
			is.rows++
			if err := s.checkClientEntry(key, entry); err != nil {
				l.odd = append(l.odd, err.Error())
			} else if is.all ^= codec.Sum([]byte(entry)); z.Score != 0 {
				l.odd = append(l.odd, fmt.Sprintf("%s: %s: an entry is in a wrong place", s.name,
					key))
			}
		}
		if err := persistence.Pace(ctx); err != nil {
			return err
		}
		more = len(page) == pageRows
	}
	if is != l.clients && len(l.damaged) == 0 {
		l.odd = append(l.odd, fmt.Sprintf("%s: %s: %d entries with the sum %s are there, and the "+
			"client ids in %s are %s: entries are missing, or wrong", s.name, key, is.rows, is,
			l.key, l.clients))
	}
	return nil
}

// verifyMarks compares the marks beside a list with these rows of it, the first of which has the
// rank from. There is a mark for each of the newest rows.
func (s *Store) verifyMarks(ctx context.Context, l *listReading, from int, rows []string) error {
	key := s.marks(l.key)
	length, err := s.history.LLen(ctx, l.key).Result()
	if err != nil {
		return s.fault("read "+l.key, err)
	}
	bytes, err := s.history.StrLen(ctx, key).Result()
	if err != nil {
		return s.fault("read "+key, err)
	}
	odd := func(format string, args ...any) {
		l.odd = append(l.odd, fmt.Sprintf("%s: %s: %s", s.name, key, fmt.Sprintf(format, args...)))
	}
	if bytes%codec.MarkSize != 0 {
		odd("it has %d bytes", bytes)
		return nil
	}
	first := int(length - bytes/codec.MarkSize) // the rank of the first mark's row
	if without := first - from; without > 0 {
		rows, from = rows[min(without, len(rows)):], first
	}
	at := int64(from-first) * codec.MarkSize
	marks, err := s.history.GetRange(ctx, key, at, at+int64(len(rows)*codec.MarkSize)-1).Result()
	if err != nil {
		return s.fault("read "+key, err)
	}
	account, err := s.accountOf(l.key)
	if err != nil {
		return err
	}
	var t persistence.Trade
	for i, stored := range rows {
		id, row, err := s.row(l.key, stored)
		if err == nil {
			err = codec.DecodeTrade(row, id, &t)
		}
		if err != nil {
			return nil // the row itself is checked elsewhere
		}
		want := codec.AppendMark(nil, codec.At(key), &t, account(&t))
		if len(marks) < (i+1)*codec.MarkSize ||
			string(want) != marks[i*codec.MarkSize:][:codec.MarkSize] {
			odd("the mark of trade %d is wrong", id)
		}
	}
	return nil
}

// accountOf returns the account whose side the marks of a list show.
func (s *Store) accountOf(list string) (func(*persistence.Trade) uint32, error) {
	text, ok := strings.CutPrefix(list, s.key("trades:account:"))
	if !ok {
		return takerOf, nil
	}
	n, err := s.number("an account in the name of a list", text)
	return func(*persistence.Trade) uint32 { return uint32(n) }, err
}
