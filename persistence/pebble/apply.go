package pebble

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// watermark reads the projections' sequence.
func (s *Store) watermark(r pebble.Reader) (uint64, error) {
	v, err := s.row(r, s.key(kindWatermark))
	if err != nil || v == nil {
		return 0, err
	}
	if len(v) != 9 {
		return 0, fmt.Errorf("%s: %w: the watermark has %d bytes", s, persistence.ErrCorrupt,
			len(v))
	}
	return binary.BigEndian.Uint64(v[1:]), nil
}

// Watermark returns the sequence the projections are exact for.
func (s *Store) Watermark(context.Context) (uint64, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.end()
	return s.watermark(s.db)
}

// Apply writes w and moves the watermark, in one batch. So either the watermark and all rows of w
// are written, or nothing is. Rows are written without checking for existing ones.
func (s *Store) Apply(_ context.Context, tok persistence.Token, from, to uint64,
	w *persistence.Writes) error {
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
	// holds until projections is unlocked: Acquire locks it, too
	if err := s.owned(tok); err != nil {
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
	s.memo.bound()
	err = s.project(from, to, w)
	if err != nil {
		s.memo.reset() // it may hold values that were not written
	}
	return err
}

// project commits w, the watermark and the link between the two sequences. The caller holds
// projections.
func (s *Store) project(from, to uint64, w *persistence.Writes) error {
	a := applier{s: s, b: s.db.NewBatch()}
	defer a.b.Close()
	for _, part := range []func(*persistence.Writes) error{
		a.wallets, a.nonces, a.trades, a.orders, a.deposits, a.withdrawals, a.candles, a.actions,
	} {
		if err := part(w); err != nil {
			return err
		}
	}
	if err := a.writeBuckets(); err != nil {
		return err
	}
	if err := a.set(s.key(kindWatermark), u64([]byte{codec.Version}, to)); err != nil {
		return err
	}
	if err := s.link(a.b, from, to); err != nil {
		return err
	}
	if err := s.write("write projections", a.b, pebble.NoSync); err != nil {
		return err
	}
	s.syncSoon()
	return nil
}

// applier collects the batch of one Apply. It reads the folder's state from before the batch.
type applier struct {
	s       *Store
	b       *pebble.Batch
	buckets map[string]*sideCount // changes to count rows, by key
	rows    []row
	buf     []byte
	sealed  []byte
}

// set writes a value with its checksum.
func (a *applier) set(key, value []byte) error {
	a.sealed = codec.At(key).Seal(a.sealed[:0], value)
	return a.b.Set(key, a.sealed, nil)
}

// memoRows is how many values of a kind are cached from one Apply to the next; all together are
// about 20 MB.
const memoRows = 1 << 16

// memo caches the small values that an Apply reads, changes and writes again, equal to the
// folder's. Values that changed lately change again soon, and reading them costs as much as writing
// the rows, by measurement. A failed Apply drops them all. Guarded by Store.projections.
type memo struct {
	counters map[string]*counter  // by list
	buckets  map[string]sideCount // by key
	nonces   map[string]nonce     // by public key
}

// nonce is a key's projected nonce, if there is one.
type nonce struct {
	value uint64
	there bool
}

func (k *memo) reset() {
	*k = memo{counters: map[string]*counter{}, buckets: map[string]sideCount{},
		nonces: map[string]nonce{}}
}

// bound drops maps that have grown too large. It is called before an Apply, so that an Apply never
// reads a value from the folder that its own batch has changed already.
func (k *memo) bound() {
	if len(k.counters) > memoRows {
		k.counters = map[string]*counter{}
	}
	if len(k.buckets) > memoRows {
		k.buckets = map[string]sideCount{}
	}
	if len(k.nonces) > memoRows {
		k.nonces = map[string]nonce{}
	}
}
