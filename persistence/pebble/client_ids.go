package pebble

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// The index of client ids has one key for each client id of an account. Its value is a cell for
// each closed order with that id, mostly one. A cell is the order's id and a checksum. Pebble
// merges a new cell behind those that are there, so an Apply reads nothing to add it. A client id
// that was never used is known by the bloom filters of Pebble's tables, without reading a block.

// cellSize is the size of a cell.
const cellSize = codec.IDSize + codec.SumSize

// appendCell appends the cell of an order, for the value of a key.
func appendCell(dst, key []byte, id uint64) []byte {
	at := len(dst)
	dst = u64(dst, id)
	return binary.BigEndian.AppendUint32(dst, uint32(codec.At(key).And(dst[at:])))
}

// cells returns the ids of the orders that a stored value has, newest first.
func (s *Store) cells(key, stored []byte) ([]uint64, error) {
	if len(stored)%cellSize != 0 {
		return nil, fmt.Errorf("%s: %s: %w: it has %d bytes", s, s.placeOf(key),
			persistence.ErrCorrupt, len(stored))
	}
	ids := make([]uint64, 0, len(stored)/cellSize)
	for cell := range slices.Chunk(stored, cellSize) {
		id, place := binary.BigEndian.Uint64(cell), codec.At(key).And(cell[:codec.IDSize])
		if uint32(place) != codec.Sum(cell) {
			return nil, fmt.Errorf("%s: %s: %w: the checksum of order %d is wrong", s,
				s.placeOf(key), persistence.ErrCorrupt, id)
		}
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Compare(b, a) })
	return ids, nil
}

// enter adds a closed order to the index.
func (a *applier) enter(o *persistence.Order) error {
	key := a.s.clientOrders(o.Account, o.ClientID)
	a.buf = appendCell(a.buf[:0], key, o.ID)
	return a.b.Merge(key, a.buf, nil)
}

// leave removes a closed order from the index. All that leave an account do so before others enter.
func (a *applier) leave(o *persistence.Order) error {
	key := a.s.clientOrders(o.Account, o.ClientID)
	left, known := a.clients[string(key)]
	if !known {
		stored, err := a.s.get(a.s.db, key)
		if err == nil {
			left, err = a.s.cells(key, stored)
		}
		if err != nil {
			return err
		}
	}
	left = slices.DeleteFunc(left, func(id uint64) bool { return id == o.ID })
	if a.clients == nil {
		a.clients = map[string][]uint64{}
	}
	if a.clients[string(key)] = left; len(left) == 0 {
		return a.b.Delete(key, nil)
	}
	a.buf = a.buf[:0]
	for _, id := range left {
		a.buf = appendCell(a.buf, key, id)
	}
	return a.b.Set(key, a.buf, nil)
}

// ClientOrder returns the newest closed order of an account with a client id. The watermark is read
// first: the index then has all up to there.
func (s *Store) ClientOrder(ctx context.Context, watermark uint64, account uint32,
	client string) (o persistence.Order, err error) {
	if err := s.begin(); err != nil {
		return o, err
	}
	defer s.end()
	if err := s.reaches(watermark); err != nil {
		return o, err
	}
	stored, err := s.get(s.db, s.clientOrders(account, client))
	if err != nil {
		return o, err
	}
	if stored != nil {
		q := persistence.OrderQuery{Account: account, ClientID: client}
		err = s.ordersOfClient(&q, func(newest *persistence.Order) bool {
			o = *newest
			return false
		})
	}
	if err == nil && o.ID == 0 {
		err = codec.NoClientOrder(account, client)
	}
	return o, err
}

// ordersOfClient passes the orders to fn that an account closed with a client id, newest first. The
// index and the rows are of one state of the folder.
func (s *Store) ordersOfClient(q *persistence.OrderQuery, fn func(*persistence.Order) bool) error {
	return s.view(func(snap *pebble.Snapshot) error {
		key := s.clientOrders(q.Account, q.ClientID)
		stored, err := s.get(snap, key)
		if err != nil {
			return err
		}
		ids, err := s.cells(key, stored)
		if err != nil {
			return err
		}
		var o persistence.Order
		for _, id := range ids {
			if q.Before != 0 && id >= q.Before {
				continue
			}
			row, err := s.row(snap, u64(s.orders(q.Account), id))
			if err != nil {
				return err
			}
			if row == nil {
				return fmt.Errorf("%s: %w: order %d has a client id and no row", s,
					persistence.ErrCorrupt, id)
			}
			if err := codec.DecodeOrder(row, q.Account, id, &o); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
			if err := codec.CheckClient(&o, q.ClientID); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
			if codec.ClientOrderMatches(&o, q) && !fn(&o) {
				return nil
			}
		}
		return nil
	})
}

// reaches returns ErrGap if the projections end below a watermark. They were seen to reach
// s.reached, and mostly need not be asked again.
func (s *Store) reaches(watermark uint64) error {
	if s.reached.Load() >= watermark {
		return nil
	}
	stored, err := s.watermark(s.db)
	if err != nil {
		return err
	}
	for at := s.reached.Load(); at < stored && !s.reached.CompareAndSwap(at, stored); {
		at = s.reached.Load()
	}
	return codec.Reaches(stored, watermark)
}
