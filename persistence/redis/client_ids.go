package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// The index of client ids is a sorted set beside each account's set of closed orders. All its
// scores are 0, so Redis keeps the entries in the order of their bytes. An entry is the length and
// the bytes of the client id, the order's id and a checksum. So the entries of one client id are
// adjacent, the newest order last. The script that adds or trims an order adds or removes its
// entry.

// clientIDs ends the key of an index, after that of its orders.
const clientIDs = ":ids"

// clientID returns the bytes that all entries of a client id begin with.
func clientID(client string) []byte { return append([]byte{byte(len(client))}, client...) }

// appendClientEntry appends the entry of a closed order, nothing if it has no client id. index is
// the codec.Place of the index.
func appendClientEntry(dst []byte, index codec.Place, o *persistence.Order) []byte {
	if o.ClientID == "" {
		return dst
	}
	from := len(dst)
	dst = append(append(dst, byte(len(o.ClientID))), o.ClientID...)
	dst = binary.BigEndian.AppendUint64(dst, o.ID)
	return binary.BigEndian.AppendUint32(dst, uint32(index.And(dst[from:])))
}

// clientEntry returns the entry of a closed order, nil if it has no client id.
func (s *Store) clientEntry(o *persistence.Order) []byte {
	return appendClientEntry(nil, codec.At(s.clientIDs(o.Account)), o)
}

// checkClientEntry refuses an entry that is damaged, or belongs to another set.
func (s *Store) checkClientEntry(key, entry string) error {
	if n := len(entry); n < 1+1+codec.IDSize+codec.SumSize ||
		n != 1+int(entry[0])+codec.IDSize+codec.SumSize {
		return fmt.Errorf("%s: %s: %w: an entry has %d bytes", s.name, key,
			persistence.ErrCorrupt, n)
	}
	body := []byte(entry[:len(entry)-codec.SumSize])
	if uint32(codec.At(key).And(body)) != codec.Sum([]byte(entry)) {
		return fmt.Errorf("%s: %s: %w: the checksum of order %d, client id %q, is wrong", s.name,
			key, persistence.ErrCorrupt, rowID(body[len(body)-codec.IDSize:]),
			body[1:len(body)-codec.IDSize])
	}
	return nil
}

// clientRange returns the range of the entries of a client id with orders below an id (0: all),
// newest first.
func (s *Store) clientRange(account uint32, client string, before uint64,
	many int) redis.ZRangeArgs {
	if before == 0 || before > codec.MaxID {
		before = codec.MaxID + 1
	}
	first := clientID(client)
	return redis.ZRangeArgs{Key: s.clientIDs(account), ByLex: true, Rev: true,
		Start: "(" + string(binary.BigEndian.AppendUint64(first, before)),
		Stop:  "[" + string(first), Count: int64(many)}
}

// clientOrder reads the row that an entry of the index refers to. ErrNotFound: retention has
// trimmed both meanwhile. An entry without its row is damage.
func (s *Store) clientOrder(ctx context.Context, account uint32, client, entry string) (
	o persistence.Order, err error) {
	key, set := s.clientIDs(account), s.orders(account)
	if err := s.checkClientEntry(key, entry); err != nil {
		return o, err
	}
	id := rowID([]byte(entry[len(entry)-codec.SumSize-codec.IDSize:]))
	var page *redis.ZSliceCmd
	var there *redis.FloatCmd
	_, err = s.history.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		page = tx.ZRangeArgsWithScores(ctx,
			redis.ZRangeArgs{Key: set, Start: dec(id), Stop: dec(id), ByScore: true, Count: 1})
		there = tx.ZScore(ctx, key, entry)
		return nil
	})
	for _, err := range []error{err, page.Err(), there.Err()} {
		if err != nil && !errors.Is(err, redis.Nil) {
			return o, s.fault("read "+set, err)
		}
	}
	switch {
	case len(page.Val()) > 0:
		_, row, err := s.member(set, page.Val()[0])
		if err != nil {
			return o, err
		}
		if err := codec.DecodeOrder(row, account, id, &o); err != nil {
			return o, fmt.Errorf("%s: %s: %w", s.name, set, err)
		}
		return o, codec.CheckClient(&o, client)
	case there.Err() == nil:
		return o, fmt.Errorf("%s: %s: %w: order %d has a client id and no row", s.name, set,
			persistence.ErrCorrupt, id)
	}
	return o, persistence.ErrNotFound
}

// clientOrders calls fn for the closed orders of an account with a client id, newest first.
func (s *Store) clientOrders(ctx context.Context, q *persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	for before, many := q.Before, firstRows; ; many = pageRows {
		page, err := s.history.ZRangeArgs(ctx,
			s.clientRange(q.Account, q.ClientID, before, many)).Result()
		if err != nil {
			return s.fault("read "+s.clientIDs(q.Account), err)
		}
		for _, entry := range page {
			o, err := s.clientOrder(ctx, q.Account, q.ClientID, entry)
			if errors.Is(err, persistence.ErrNotFound) {
				return nil // so are all older ones
			}
			if err != nil {
				return err
			}
			before = o.ID
			if codec.ClientOrderMatches(&o, q) && !fn(&o) {
				return nil
			}
		}
		if len(page) < many {
			return nil
		}
		if err := persistence.Pace(ctx); err != nil {
			return err
		}
	}
}
