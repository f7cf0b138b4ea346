package pebble

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// trimAhead bounds how many rows one Apply removes from a list, beyond the number that it adds. So
// turning retention on for a long history does not stop the exchange: the list shrinks step by
// step.
const trimAhead = 10_000

// row is one row to be merged into a list.
type row struct {
	list  uint32 // the account or pair whose list it is
	of    int32  // its place in the Writes; of two with one id the one with the lower place is kept
	id    uint64
	value []byte
}

// eachList calls fn for the rows of each list, in the order of their ids, which occur once.
func eachList(rows []row, fn func(list uint32, rows []row) error) error {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.list, b.list), cmp.Compare(a.id, b.id), cmp.Compare(a.of, b.of))
	})
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].list == rows[0].list {
			n++
		}
		if err := fn(rows[0].list, slices.CompactFunc(rows[:n], func(a, b row) bool {
			return a.id == b.id
		})); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// A counter is kept beside each list. It holds the number of rows, and the ids at both ends, which
// save scanning deleted keys there.
type counter struct{ rows, oldest, newest uint64 }

// note counts one more row.
func (c *counter) note(id uint64) {
	if c.rows++; c.rows == 1 {
		c.oldest = id
	}
	c.oldest, c.newest = min(c.oldest, id), max(c.newest, id)
}

func (s *Store) counter(r pebble.Reader, list []byte) (counter, error) {
	v, err := s.row(r, s.counterKey(list))
	if err != nil || v == nil {
		return counter{}, err
	}
	return s.decodeCounter(v)
}

func (s *Store) decodeCounter(v []byte) (counter, error) {
	if len(v) != 25 {
		return counter{}, fmt.Errorf("%s: %w: a list's counter has %d bytes", s,
			persistence.ErrCorrupt, len(v))
	}
	v = v[1:] // its version
	return counter{binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]),
		binary.BigEndian.Uint64(v[16:])}, nil
}

// counter returns a list's counter, mostly from the memo.
func (a *applier) counter(list []byte) (*counter, error) {
	if c := a.s.memo.counters[string(list)]; c != nil {
		return c, nil
	}
	c, err := a.s.counter(a.s.db, list)
	if err == nil {
		a.s.memo.counters[string(list)] = &c
	}
	return &c, err
}

// writeCounter writes a list's counter.
func (a *applier) writeCounter(list []byte, c *counter) error {
	a.buf = u64(u64(u64(append(a.buf[:0], codec.Version), c.rows), c.oldest), c.newest)
	return a.set(a.s.counterKey(list), a.buf)
}

// merge adds new rows to a list, in the order of their ids. It then removes the oldest rows, old or
// new, until limit are left (0: no limit). It calls dropped for each old row that it removes. It
// returns the written rows: all but those that would have been the oldest beyond the limit.
func (a *applier) merge(list []byte, rows []row, limit int, dropped func(id uint64,
	value []byte) error) ([]row, error) {
	c, err := a.counter(list)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	oldest := c.oldest
	if c.rows == 0 {
		oldest = rows[0].id
	}
	if total := c.rows + uint64(len(rows)); limit > 0 && total > uint64(limit) {
		excess := min(int(total)-limit, len(rows)+trimAhead)
		var removed uint64
		rows, removed, oldest, err = a.trim(list, rows, *c, excess, dropped)
		if err != nil {
			return nil, err
		}
		c.rows -= removed
	}
	for _, r := range rows {
		a.buf = with(a.buf, list, r.id)
		if err := a.set(a.buf, r.value); err != nil {
			return nil, err
		}
		oldest = min(oldest, r.id)
		c.newest = max(c.newest, r.id)
	}
	c.rows += uint64(len(rows))
	c.oldest = oldest
	return rows, a.writeCounter(list, c)
}

// trim removes the excess oldest of a list and its new rows together. It returns the new rows that
// stay, how many old ones went, and the oldest remaining id.
func (a *applier) trim(list []byte, rows []row, c counter, excess int, dropped func(id uint64,
	value []byte) error) (kept []row, removed, oldest uint64, err error) {
	it, err := a.s.db.NewIter(&pebble.IterOptions{LowerBound: with(nil, list, c.oldest),
		UpperBound: after(list)})
	if err != nil {
		return nil, 0, 0, a.s.fault("trim a list", err)
	}
	defer it.Close()
	it.First()
	for ; excess > 0; excess-- {
		if len(rows) > 0 && (!it.Valid() || rows[0].id < idOf(it.Key())) {
			rows = rows[1:]
			continue
		}
		if !it.Valid() {
			break
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, 0, 0, a.s.fault("trim a list", err)
		}
		if err := a.b.Delete(bytes.Clone(it.Key()), nil); err != nil {
			return nil, 0, 0, err
		}
		if dropped != nil {
			if value, err = a.s.unseal(it.Key(), value); err != nil {
				return nil, 0, 0, err
			}
			if err := dropped(idOf(it.Key()), value); err != nil {
				return nil, 0, 0, err
			}
		}
		removed++
		it.Next()
	}
	if err := it.Error(); err != nil {
		return nil, 0, 0, a.s.fault("trim a list", err)
	}
	switch {
	case it.Valid():
		oldest = idOf(it.Key())
	case len(rows) > 0:
		oldest = rows[0].id
	}
	return rows, removed, oldest, nil
}
