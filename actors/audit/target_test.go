package audit

import (
	"context"
	"fmt"

	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// stored makes the Target of a store without a writing process: a restored backup, or a store
// after its exchange. The audited state is that of the projections' watermark, folded from the
// newest snapshot and the journal. sealer may be nil.
func stored(ctx context.Context, store Store, keep persistence.Retention, sealer *seal.Sealer) (
	*Target, error) {
	watermark, err := store.Watermark(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the watermark: %w", err)
	}
	s, err := newestState(ctx, store)
	if err != nil {
		return nil, err
	}
	var image []byte
	keepImage := func() {
		if s.Seq() == watermark {
			image = s.AppendTo(nil)
		}
	}
	keepImage()
	f := state.Fold{State: s, Note: func(*event.Record, *state.Effects) { keepImage() }}
	err = store.Read(ctx, s.Seq(), func(prev, next uint64, batch []byte) error {
		if err := f.Batch(prev, next, batch); err != nil {
			return persistence.Unreadable(err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the journal after the newest snapshot: %w", err)
	}
	if image == nil {
		return nil,
			fmt.Errorf("%w: the projections are at sequence %d, which is none of the states "+
				"from the newest snapshot to the journal's end at %d", persistence.ErrCorrupt,
				watermark,
				s.Seq())
	}
	p := present{}
	_, _, p.deposit = s.LastIDs()
	for _, pair := range s.Pairs() {
		p.trades = append(p.trades, pair.LastTrade())
	}
	return &Target{Store: store, Retention: keep, Image: image, Earlier: watermark, Sealer: sealer,
		Present: p}, nil
}

// A present is the journal's end of a store that does not change.
type present struct {
	trades  []uint64 // ids of the newest trades, by pair-1
	deposit uint64   // id of the newest deposit
}

func (p present) Written() error                    { return nil }
func (p present) Newest() ([]uint64, uint64, error) { return p.trades, p.deposit, nil }
