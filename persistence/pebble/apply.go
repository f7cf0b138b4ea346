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

// Apply writes w and moves the watermark, in one batch. So the rows of w are there if the watermark
// says so, and otherwise none of them. Rows are written without a look whether they are there.
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
	// stays true until projections is unlocked: Acquire takes it too
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
	s.known.bound()
	err = s.project(from, to, w)
	if err != nil {
		s.known.forget() // it may have values that were not written
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
	if err := a.writeCounts(); err != nil {
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

// applier collects the batch of one Apply. It reads the folder as it was before.
type applier struct {
	s      *Store
	b      *pebble.Batch
	counts map[string]*count // changes to count rows, by key
	rows   []row
	buf    []byte
	sealed []byte
}

// set writes a value with its checksum.
func (a *applier) set(key, value []byte) error {
	a.sealed = codec.At(key).Seal(a.sealed[:0], value)
	return a.b.Set(key, a.sealed, nil)
}

// memoRows is how many values of a kind are known from one Apply to the next; all together are
// about 20 MB.
const memoRows = 1 << 16

// known has the small values that an Apply reads, changes and writes again, as the folder has them.
// Values that changed lately change again soon, and reading them was measured to cost as much as
// writing the rows. An Apply that fails forgets them all. Guarded by Store.projections.
type known struct {
	counters map[string]*counter // by list
	counts   map[string]count    // by key
	nonces   map[string]nonce    // by public key
}

// nonce is a key's projected nonce, if there is one.
type nonce struct {
	value uint64
	there bool
}

func (k *known) forget() {
	*k = known{counters: map[string]*counter{}, counts: map[string]count{},
		nonces: map[string]nonce{}}
}

// bound forgets maps that have grown too large. It is called before an Apply, so that an Apply
// never reads a value from the folder that its own batch has changed already.
func (k *known) bound() {
	if len(k.counters) > memoRows {
		k.counters = map[string]*counter{}
	}
	if len(k.counts) > memoRows {
		k.counts = map[string]count{}
	}
	if len(k.nonces) > memoRows {
		k.nonces = map[string]nonce{}
	}
}
