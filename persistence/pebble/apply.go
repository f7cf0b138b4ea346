package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"exchange/core/matching"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

const (
	// bucketIDs is how many ids share one count row of a trade list.
	bucketIDs = 1000
	// trimAhead bounds how many rows beyond those it adds one Apply removes from a list, so that
	// turning retention on for a long history does not stop the exchange: it shrinks by and by.
	trimAhead = 10_000
)

// watermark reads the projections' sequence.
func (s *Store) watermark(r pebble.Reader) (uint64, error) {
	v, err := s.get(r, s.key(kindWatermark))
	if err != nil || v == nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("%s: %w: the watermark has %d bytes", s, persistence.ErrCorrupt, len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}

// Watermark is the sequence the projections are exact for.
func (s *Store) Watermark(context.Context) (uint64, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.end()
	return s.watermark(s.db)
}

// Nonces calls fn for each key's nonce.
func (s *Store) Nonces(ctx context.Context, fn func(key string, nonce uint64)) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	prefix := s.key(kindNonce)
	return s.scan(ctx, s.db, prefix, after(prefix), true, func(k, v []byte) (bool, error) {
		if len(v) != 8 {
			return false, fmt.Errorf("%s: %w: a nonce has %d bytes", s, persistence.ErrCorrupt, len(v))
		}
		fn(string(k[len(prefix):]), binary.BigEndian.Uint64(v))
		return true, nil
	})
}

// Wallet is one projected wallet, for people and tests; ErrNotFound.
func (s *Store) Wallet(_ context.Context, account uint32) (persistence.Wallet, error) {
	var w persistence.Wallet
	if err := s.begin(); err != nil {
		return w, err
	}
	defer s.end()
	v, err := s.get(s.db, u32(s.key(kindWallet), account))
	if err != nil {
		return w, err
	}
	if v == nil {
		return w, fmt.Errorf("wallet of account %d: %w", account, persistence.ErrNotFound)
	}
	return w, codec.DecodeWallet(v, account, &w)
}

// Apply writes w and moves the watermark, in one batch.
func (s *Store) Apply(_ context.Context, tok persistence.Token, from, to uint64, w *persistence.Writes) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if w == nil {
		w = &persistence.Writes{}
	}
	if err := codec.CheckWrites(from, to, w); err != nil {
		return err
	}
	s.projections.Lock()
	defer s.projections.Unlock()
	s.journal.Lock()
	err := s.owned(tok) // stays true until projections is unlocked: Acquire takes it too
	s.journal.Unlock()
	if err != nil {
		return err
	}
	watermark, err := s.watermark(s.db)
	if err != nil {
		return err
	}
	if from != to && watermark == to {
		return nil // an earlier try landed
	}
	if watermark != from {
		return codec.WatermarkGap(watermark, from, to)
	}
	a := applier{s: s, b: s.db.NewBatch(), counts: map[string]*count{}}
	defer a.b.Close()
	if err := a.write(w); err != nil {
		return err
	}
	if from != to {
		if err := a.b.Set(s.key(kindWatermark), u64(nil, to), nil); err != nil {
			return err
		}
	}
	return s.fault("write projections", a.b.Commit(pebble.NoSync))
}

// applier collects the batch of one Apply. It reads the folder as it was before.
type applier struct {
	s      *Store
	b      *pebble.Batch
	counts map[string]*count // changes to count rows, by key
	buf    []byte
}

// count is how many rows of a trade list have ids in one bucket, by the taker's side.
type count struct{ buys, sells int64 }

func (c *count) add(side matching.Side, n int64) {
	if side == matching.Buy {
		c.buys += n
	} else {
		c.sells += n
	}
}

// matching is how many rows have that side; 0 is both.
func (c *count) matching(side matching.Side) int64 {
	switch side {
	case matching.Buy:
		return c.buys
	case matching.Sell:
		return c.sells
	}
	return c.buys + c.sells
}

func (a *applier) write(w *persistence.Writes) error {
	for i := range w.Wallets {
		a.buf = codec.AppendWallet(a.buf[:0], &w.Wallets[i])
		if err := a.b.Set(u32(a.s.key(kindWallet), w.Wallets[i].Account), a.buf, nil); err != nil {
			return err
		}
	}
	if err := a.nonces(w.Nonces); err != nil {
		return err
	}
	if err := a.trades(w.Trades); err != nil {
		return err
	}
	if err := a.orders(w.Orders); err != nil {
		return err
	}
	if err := a.deposits(w.Deposits); err != nil {
		return err
	}
	return a.writeCounts()
}

// nonces writes max(old, new) of each key, also when one appears twice.
func (a *applier) nonces(list []persistence.Nonce) error {
	highest := make(map[string]uint64, len(list))
	for _, n := range list {
		highest[n.Key] = max(highest[n.Key], n.Nonce)
	}
	for key, nonce := range highest {
		k := append(a.s.key(kindNonce), key...)
		old, err := a.s.get(a.s.db, k)
		if err != nil {
			return err
		}
		if len(old) == 8 && binary.BigEndian.Uint64(old) >= nonce {
			continue
		}
		if err := a.b.Set(k, u64(nil, nonce), nil); err != nil {
			return err
		}
	}
	return nil
}

// row is one row on its way into a list.
type row struct {
	id    uint64
	value []byte
	of    int // its place in the Writes
}

// sorted puts rows in the order of their ids and leaves out the second of two with the same.
func sorted(rows []row) []row {
	slices.SortStableFunc(rows, func(a, b row) int {
		switch {
		case a.id < b.id:
			return -1
		case a.id > b.id:
			return 1
		}
		return 0
	})
	return slices.CompactFunc(rows, func(a, b row) bool { return a.id == b.id })
}

// trades writes each trade into the list of its pair, the list of all, and those of its accounts.
// Each list has rows of its own: it is read by one scan (rows fetched one by one through an index were
// measured to cost dozens of times as much), and it is trimmed by itself.
func (a *applier) trades(list []persistence.Trade) error {
	if len(list) == 0 {
		return nil
	}
	limit := a.s.retention.Trades
	all := make([]row, 0, len(list))
	pairs := map[uint16][]row{}
	accounts := map[uint32][]row{}
	var memory []byte // of all rows; slices of an outgrown array stay valid
	for i := range list {
		t := &list[i]
		at := len(memory)
		memory = codec.AppendTrade(memory, t)
		r := row{t.ID, memory[at:len(memory):len(memory)], i}
		all = append(all, r)
		pairs[t.Pair] = append(pairs[t.Pair], r)
		accounts[t.Taker] = append(accounts[t.Taker], r)
		if t.Maker != t.Taker {
			accounts[t.Maker] = append(accounts[t.Maker], r)
		}
	}
	if err := a.counted(a.s.allTrades(), all, limit); err != nil {
		return err
	}
	for pair, rows := range pairs {
		if err := a.counted(a.s.pairTrades(pair), rows, limit); err != nil {
			return err
		}
	}
	for account, rows := range accounts {
		added, err := a.merge(a.s.accountTrades(account), rows, limit, func(id uint64, value []byte) error {
			var t persistence.Trade
			if err := codec.DecodeTrade(value, id, &t); err != nil {
				return err
			}
			return a.b.Delete(u64(a.s.accountPairTrades(account, t.Pair), id), nil)
		})
		if err != nil {
			return err
		}
		for _, r := range added {
			t := &list[r.of]
			if err := a.b.Set(u64(a.s.accountPairTrades(account, t.Pair), t.ID), r.value, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// counted merges rows into a trade list and keeps its count rows.
func (a *applier) counted(list []byte, rows []row, limit int) error {
	prefix := a.s.countPrefix(list)
	bump := func(id uint64, value []byte, n int64) {
		a.buf = with(a.buf, prefix, id/bucketIDs)
		c := a.counts[string(a.buf)]
		if c == nil {
			c = &count{}
			a.counts[string(a.buf)] = c
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
		v, err := a.s.get(a.s.db, []byte(key))
		if err != nil {
			return err
		}
		c, err := decodeCount(v)
		if err != nil {
			return fmt.Errorf("%s: %w", a.s, err)
		}
		c.buys += change.buys
		c.sells += change.sells
		if c.buys == 0 && c.sells == 0 {
			err = a.b.Delete([]byte(key), nil)
		} else {
			err = a.b.Set([]byte(key), binary.AppendUvarint(binary.AppendUvarint(nil, uint64(c.buys)), uint64(c.sells)), nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decodeCount reads a count row; none is 0.
func decodeCount(v []byte) (count, error) {
	if len(v) == 0 {
		return count{}, nil
	}
	buys, n := binary.Uvarint(v)
	sells, m := binary.Uvarint(v[max(n, 0):])
	if n <= 0 || m <= 0 || n+m != len(v) {
		return count{}, fmt.Errorf("%w: a count row has wrong bytes", persistence.ErrCorrupt)
	}
	return count{int64(buys), int64(sells)}, nil
}

// orders writes each closed order into the list of its account, which knows when to trim, and those
// of its account and pair and of its client id.
func (a *applier) orders(list []persistence.Order) error {
	accounts := map[uint32][]row{}
	for i := range list {
		o := &list[i]
		accounts[o.Account] = append(accounts[o.Account], row{o.ID, codec.AppendOrder(nil, o), i})
	}
	for account, rows := range accounts {
		added, err := a.merge(a.s.orders(account), rows, a.s.retention.Orders, func(id uint64, value []byte) error {
			var o persistence.Order
			if err := codec.DecodeOrder(value, account, id, &o); err != nil {
				return err
			}
			if o.ClientID != "" {
				if err := a.b.Delete(u64(a.s.clientOrders(account, o.ClientID), id), nil); err != nil {
					return err
				}
			}
			return a.b.Delete(u64(a.s.pairOrders(account, o.Pair), id), nil)
		})
		if err != nil {
			return err
		}
		for _, r := range added {
			o := &list[r.of]
			if o.ClientID != "" {
				if err := a.b.Set(u64(a.s.clientOrders(account, o.ClientID), o.ID), codec.OrderIndex(r.value), nil); err != nil {
					return err
				}
			}
			if err := a.b.Set(u64(a.s.pairOrders(account, o.Pair), o.ID), r.value, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *applier) deposits(list []persistence.Deposit) error {
	accounts := map[uint32][]row{}
	for i := range list {
		accounts[list[i].Account] = append(accounts[list[i].Account], row{list[i].ID, codec.AppendDeposit(nil, &list[i]), i})
	}
	for account, rows := range accounts {
		if _, err := a.merge(a.s.deposits(account), rows, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

// counter is kept beside each list: how many rows it has, and the ids at its two ends, which save
// searching from an end that deletions have hollowed out.
type counter struct{ rows, oldest, newest uint64 }

func (s *Store) counter(r pebble.Reader, list []byte) (counter, error) {
	v, err := s.get(r, s.counterKey(list))
	if err != nil || v == nil {
		return counter{}, err
	}
	if len(v) != 24 {
		return counter{}, fmt.Errorf("%s: %w: a list's counter has %d bytes", s, persistence.ErrCorrupt, len(v))
	}
	return counter{binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]), binary.BigEndian.Uint64(v[16:])}, nil
}

// merge adds rows to a list, and removes the oldest ones, old or new, until limit are left (0: no
// limit). It calls dropped for each old row that it removes, and returns the rows that it wrote:
// all but those that were there already or would have been the oldest beyond the limit.
func (a *applier) merge(list []byte, rows []row, limit int, dropped func(id uint64, value []byte) error) ([]row, error) {
	c, err := a.s.counter(a.s.db, list)
	if err != nil {
		return nil, err
	}
	rows, err = a.absent(list, sorted(rows), c)
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
		rows, removed, oldest, err = a.trim(list, rows, c, excess, dropped)
		if err != nil {
			return nil, err
		}
		c.rows -= removed
	}
	for _, r := range rows {
		a.buf = with(a.buf, list, r.id)
		if err := a.b.Set(a.buf, r.value, nil); err != nil {
			return nil, err
		}
		oldest = min(oldest, r.id)
		c.newest = max(c.newest, r.id)
	}
	c.rows += uint64(len(rows))
	value := u64(u64(u64(nil, c.rows), oldest), c.newest)
	return rows, a.b.Set(a.s.counterKey(list), value, nil)
}

// absent leaves out rows that the list has. Ids mostly grow, so few need a look.
func (a *applier) absent(list []byte, rows []row, c counter) ([]row, error) {
	kept := rows[:0]
	for _, r := range rows {
		if c.rows > 0 && r.id <= c.newest {
			a.buf = with(a.buf, list, r.id)
			v, err := a.s.get(a.s.db, a.buf)
			if err != nil {
				return nil, err
			}
			if v != nil {
				continue
			}
		}
		kept = append(kept, r)
	}
	return kept, nil
}

// trim removes the excess oldest of a list and its new rows together. It returns the new rows that
// stay, how many old ones went, and the id of the oldest that is left.
func (a *applier) trim(list []byte, rows []row, c counter, excess int, dropped func(id uint64, value []byte) error) (kept []row, removed, oldest uint64, err error) {
	it, err := a.s.db.NewIter(&pebble.IterOptions{LowerBound: with(nil, list, c.oldest), UpperBound: after(list)})
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
		if err := dropped(idOf(it.Key()), value); err != nil {
			return nil, 0, 0, err
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
