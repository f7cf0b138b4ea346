package pebble

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// clientEntry is the value of an entry in the index of client ids: its content is in its key.
var clientEntry = []byte{codec.Version}

// clientOrder returns the key of a closed order in the index of client ids.
func (s *Store) clientOrder(o *persistence.Order) []byte {
	return u64(s.clientOrders(o.Account, o.ClientID), o.ID)
}

// ordersOfClient passes the orders to fn that an account closed with a client id, newest first. The
// index and the rows are of one state of the folder.
func (s *Store) ordersOfClient(ctx context.Context, q *persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	return s.view(func(snap *pebble.Snapshot) error {
		lower, upper := bounds(s.clientOrders(q.Account, q.ClientID), 0, q.Before)
		var o persistence.Order
		return s.scan(ctx, snap, lower, upper, false, func(key, _ []byte) (bool, error) {
			id := idOf(key)
			row, err := s.row(snap, u64(s.orders(q.Account), id))
			if err == nil && row == nil {
				err = fmt.Errorf("%w: order %d has a client id and no row", persistence.ErrCorrupt,
					id)
			}
			if err == nil {
				err = codec.DecodeOrder(row, q.Account, id, &o)
			}
			if err == nil {
				err = codec.CheckClient(&o, q.ClientID)
			}
			if err != nil {
				return false, fmt.Errorf("%s: %w", s, err)
			}
			return !codec.ClientOrderMatches(&o, q) || fn(&o), nil
		})
	})
}
