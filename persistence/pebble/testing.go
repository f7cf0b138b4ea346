package pebble

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// DamageSnapshot changes the last byte of the newest image where it lies, for tests of stores that
// keep their images in this one.
func (s *Store) DamageSnapshot() error {
	img, err := s.image(*s.meta.Load(), 0)
	if err != nil {
		return err
	}
	key := u32(s.chunks(img), img.Chunks-1)
	v, err := s.get(s.db, key)
	if err != nil {
		return err
	}
	if len(v) == 0 {
		return errors.New("there is nothing to damage")
	}
	v[len(v)-1] ^= 0x40
	return s.db.Set(key, v, pebble.Sync)
}
