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

// sideCount counts the rows of a trade list with ids in one bucket, by the taker's side. A long
// offset is skipped by counts instead of by rows.
type sideCount struct{ buys, sells int64 }

func (c *sideCount) add(side trading.Side, n int64) {
	if side == trading.Buy {
		c.buys += n
	} else {
		c.sells += n
	}
}

// matching returns how many rows have that side; 0 is both.
func (c *sideCount) matching(side trading.Side) int64 {
	switch side {
	case trading.Buy:
		return c.buys
	case trading.Sell:
		return c.sells
	}
	return c.buys + c.sells
}

// decodeCount reads a count row; a missing one is 0.
func decodeCount(v []byte) (sideCount, error) {
	if len(v) == 0 {
		return sideCount{}, nil
	}
	v = v[1:] // its version
	buys, n := binary.Uvarint(v)
	sells, m := binary.Uvarint(v[max(n, 0):])
	if n <= 0 || m <= 0 || n+m != len(v) {
		return sideCount{}, fmt.Errorf("%w: a count row has wrong bytes", persistence.ErrCorrupt)
	}
	return sideCount{int64(buys), int64(sells)}, nil
}

// mergeTrades merges rows into a trade list and updates its count rows.
func (a *applier) mergeTrades(list []byte, rows []row, limit int) error {
	prefix := a.s.countPrefix(list)
	var bucket uint64
	var c *sideCount // of bucket: neighbours mostly share one
	bump := func(id uint64, value []byte, n int64) {
		if c == nil || id/bucketIDs != bucket {
			bucket = id / bucketIDs
			a.buf = with(a.buf, prefix, bucket)
			if c = a.buckets[string(a.buf)]; c == nil {
				if a.buckets == nil {
					a.buckets = map[string]*sideCount{}
				}
				c = &sideCount{}
				a.buckets[string(a.buf)] = c
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

func (a *applier) writeBuckets() error {
	for key, change := range a.buckets {
		c, ok := a.s.memo.buckets[key]
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
		a.s.memo.buckets[key] = c
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
