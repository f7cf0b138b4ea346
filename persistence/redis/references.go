package redis

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// The index has two hashes. One holds the entry of each reference. The other, its witnesses, holds
// the checksum of that entry under a digest of the reference. Redis's file has no checksum of its
// own. If damage changes a reference there, the lookup finds no entry, but still finds the witness.
// So a reference is new only if both hashes lack it. One script writes both, and neither is ever
// trimmed.

// witnessBytes is the length of the reference's digest that names its witness.
const witnessBytes = 16

func witness(reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return string(sum[:witnessBytes])
}

// Reference returns the deposit that was made under a reference. The entry, its witness and the
// watermark are read at one moment.
func (s *Store) Reference(ctx context.Context, watermark uint64,
	reference string) (p persistence.Deposit, err error) {
	var at, entry, seen *redis.StringCmd
	_, err = s.history.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		at = tx.Get(ctx, s.watermark())
		entry, seen = tx.HGet(ctx, s.references(), reference),
			tx.HGet(ctx, s.witnesses(), witness(reference))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return p, s.fault("read "+s.references(), err)
	}
	for _, cmd := range []*redis.StringCmd{at, entry, seen} { // the first error hides the others
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return p, s.fault("read "+s.references(), err)
		}
	}
	if !errors.Is(entry.Err(), redis.Nil) || !errors.Is(seen.Err(), redis.Nil) {
		return p, s.indexed(entry.Val(), seen.Val(), reference, &p)
	}
	var stored uint64
	if at.Val() != "" { // there is none until the first projection
		if stored, err = s.number("the watermark", at.Val()); err != nil {
			return p, err
		}
	}
	return p, codec.NoReference(reference, stored, watermark)
}

// References calls fn for each entry of the index of references, whose witness must exist.
func (s *Store) References(ctx context.Context, fn func(*persistence.Deposit) bool) error {
	var p persistence.Deposit
	for cursor := uint64(0); ; {
		page, next, err := s.history.HScan(ctx, s.references(), cursor, "", pageRows).Result()
		if err != nil {
			return s.fault("read "+s.references(), err)
		}
		var fields []string
		for i := 0; i+1 < len(page); i += 2 {
			fields = append(fields, witness(page[i]))
		}
		var seen []string
		if len(fields) > 0 {
			if seen, err = s.fieldsOf(ctx, s.witnesses(), fields); err != nil {
				return err
			}
		}
		for i := range seen {
			if err := s.indexed(page[2*i+1], seen[i], page[2*i], &p); err != nil {
				return err
			}
			if !fn(&p) {
				return nil
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func (s *Store) fieldsOf(ctx context.Context, key string, names []string) ([]string, error) {
	list, err := fields(s.history.HMGet(ctx, key, names...))
	if err != nil {
		return nil, s.fault("read "+key, err)
	}
	return list, nil
}

// CountReferences returns the number of deposits in the index. Entries and witnesses are equal in
// number.
func (s *Store) CountReferences(ctx context.Context) (uint64, error) {
	var entries, witnesses *redis.IntCmd
	_, err := s.history.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		entries, witnesses = tx.HLen(ctx, s.references()), tx.HLen(ctx, s.witnesses())
		return nil
	})
	if err != nil {
		return 0, s.fault("read "+s.references(), err)
	}
	if entries.Val() != witnesses.Val() {
		return 0,
			fmt.Errorf(
				"%s: %w: %s has %d entries and %s has %d: the index of references was damaged; "+
					"restore a backup", s.name, persistence.ErrCorrupt, s.references(),
				entries.Val(), s.witnesses(), witnesses.Val())
	}
	return uint64(entries.Val()), nil
}

func (s *Store) referencePlace(reference string) codec.Place {
	return codec.At(s.references()).And([]byte(reference))
}

// indexed reads an entry. Its checksum must be right for its reference, and equal its witness.
func (s *Store) indexed(entry, seen, reference string, p *persistence.Deposit) error {
	if entry == "" {
		return fmt.Errorf(
			"%s: %s: %w: the entry of reference %q is missing, and its witness in %s exists; "+
				"restore a backup",
			s.name, s.references(), persistence.ErrCorrupt, reference, s.witnesses())
	}
	value, err := s.referencePlace(reference).Open([]byte(entry))
	if err == nil && seen != entry[len(entry)-codec.SumSize:] {
		err = fmt.Errorf("%w: its witness in %s is %q", persistence.ErrCorrupt, s.witnesses(), seen)
	}
	if err == nil {
		err = codec.DecodeReference(value, reference, p)
	}
	if err != nil {
		return fmt.Errorf("%s: %s: reference %q: %w", s.name, s.references(), reference, err)
	}
	return nil
}
