package pebble

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// Reference returns the deposit that was made under a reference. The entry and the watermark are
// read from one state of the folder.
func (s *Store) Reference(_ context.Context, watermark uint64,
	reference string) (p persistence.Deposit, err error) {
	return p, s.view(func(snap *pebble.Snapshot) error {
		entry, err := s.row(snap, s.reference(reference))
		if err != nil {
			return err
		}
		if entry != nil {
			return s.indexed(entry, reference, &p)
		}
		stored, err := s.watermark(snap)
		if err != nil {
			return err
		}
		return codec.NoReference(reference, stored, watermark)
	})
}

// References calls fn for each entry of the index of references.
func (s *Store) References(ctx context.Context, fn func(*persistence.Deposit) bool) error {
	return s.view(func(snap *pebble.Snapshot) error {
		all := s.reference("")
		var p persistence.Deposit
		return s.scan(ctx, snap, all, after(all), true, func(key, value []byte) (bool, error) {
			if err := s.indexed(value, string(key[len(all):]), &p); err != nil {
				return false, err
			}
			return fn(&p), nil
		})
	})
}

// CountReferences returns the number of deposits in the index, from its counter.
func (s *Store) CountReferences(context.Context) (n uint64, err error) {
	err = s.view(func(snap *pebble.Snapshot) error {
		c, err := s.counter(snap, s.reference(""))
		n = c.rows
		return err
	})
	return n, err
}

func (s *Store) indexed(entry []byte, reference string, p *persistence.Deposit) error {
	if err := codec.DecodeReference(entry, reference, p); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	return nil
}
