package pebble

import (
	"encoding/binary"
	"fmt"

	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// bucketIDs is how many ids share one count row of a trade list.
const bucketIDs = 1000

// count is how many rows of a trade list have ids in one bucket, by the taker's side. A long offset
// is skipped by counts instead of by rows.
type count struct{ buys, sells int64 }

func (c *count) add(side trading.Side, n int64) {
	if side == trading.Buy {
		c.buys += n
	} else {
		c.sells += n
	}
}

// matching returns how many rows have that side; 0 is both.
func (c *count) matching(side trading.Side) int64 {
	switch side {
	case trading.Buy:
		return c.buys
	case trading.Sell:
		return c.sells
	}
	return c.buys + c.sells
}

// decodeCount reads a count row; none is 0.
func decodeCount(v []byte) (count, error) {
	if len(v) == 0 {
		return count{}, nil
	}
	v = v[1:] // its version
	buys, n := binary.Uvarint(v)
	sells, m := binary.Uvarint(v[max(n, 0):])
	if n <= 0 || m <= 0 || n+m != len(v) {
		return count{}, fmt.Errorf("%w: a count row has wrong bytes", persistence.ErrCorrupt)
	}
	return count{int64(buys), int64(sells)}, nil
}

// counted merges rows into a trade list and keeps its count rows.
func (a *applier) counted(list []byte, rows []row, limit int) error {
	prefix := a.s.countPrefix(list)
	var bucket uint64
	var c *count // of bucket: neighbours mostly share one
	bump := func(id uint64, value []byte, n int64) {
		if c == nil || id/bucketIDs != bucket {
			bucket = id / bucketIDs
			a.buf = with(a.buf, prefix, bucket)
			if c = a.counts[string(a.buf)]; c == nil {
				if a.counts == nil {
					a.counts = map[string]*count{}
				}
				c = &count{}
				a.counts[string(a.buf)] = c
			}
		}
		c.add(codec.TradeSide(value), n)
	}
	added, err := a.merge(list, rows, limit, func(id uint64, value []byte) error {
		bump(id, value, -1)
		return nil
	})
	for _, r := range added {
		bump(r.id, r.value, 1)
	}
	return err
}

func (a *applier) writeCounts() error {
	for key, change := range a.counts {
		c, ok := a.s.known.counts[key]
		if !ok {
			v, err := a.s.row(a.s.db, []byte(key))
			if err != nil {
				return err
			}
			if c, err = decodeCount(v); err != nil {
				return fmt.Errorf("%s: %w", a.s, err)
			}
		}
		c.buys += change.buys
		c.sells += change.sells
		a.s.known.counts[key] = c
		var err error
		if c.buys == 0 && c.sells == 0 {
			err = a.b.Delete([]byte(key), nil)
		} else {
			a.buf = append(a.buf[:0], codec.Version)
			a.buf = binary.AppendUvarint(binary.AppendUvarint(a.buf, uint64(c.buys)),
				uint64(c.sells))
			err = a.set([]byte(key), a.buf)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
