package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// Reference is the deposit that was made under a reference. The entry and the watermark are of one
// moment of the server.
func (s *Store) Reference(ctx context.Context, watermark uint64, reference string) (p persistence.Deposit, err error) {
	var at, entry *redis.StringCmd
	_, err = s.history.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		at, entry = tx.Get(ctx, s.watermark()), tx.HGet(ctx, s.references(), reference)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return p, s.fault("look for a reference", err)
	}
	text, err := entry.Result()
	if err == nil {
		return p, s.indexed(text, reference, &p)
	}
	if !errors.Is(err, redis.Nil) {
		return p, s.fault("look for a reference", err)
	}
	var stored uint64
	switch text, err := at.Result(); {
	case err == nil:
		if stored, err = s.number("the watermark", text); err != nil {
			return p, err
		}
	case !errors.Is(err, redis.Nil): // as long as nothing was projected there is none
		return p, s.fault("read the watermark", err)
	}
	return p, codec.NoReference(reference, stored, watermark)
}

// References calls fn for each entry of the index of references.
func (s *Store) References(ctx context.Context, fn func(*persistence.Deposit) bool) error {
	var p persistence.Deposit
	for cursor := uint64(0); ; {
		page, next, err := s.history.HScan(ctx, s.references(), cursor, "", pageRows).Result()
		if err != nil {
			return s.fault("read the references", err)
		}
		for i := 0; i+1 < len(page); i += 2 {
			if err := s.indexed(page[i+1], page[i], &p); err != nil {
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

func (s *Store) referencePlace(reference string) codec.Place {
	return codec.At(s.references()).And([]byte(reference))
}

// indexed reads an entry, whose checksum must be right for its reference.
func (s *Store) indexed(entry, reference string, p *persistence.Deposit) error {
	value, err := s.referencePlace(reference).Open([]byte(entry))
	if err == nil {
		err = codec.DecodeReference(value, reference, p)
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", s.name, s.references(), err)
	}
	return nil
}
