package pebble

import (
	"fmt"

	"exchange/persistence"
	"exchange/persistence/internal/head"
)

const headFile = "HEAD." // and the engine's id

// openHead opens the folder's file that stores the end of the acknowledged appends.
func (s *Store) openHead(path string) (*head.File, error) {
	h, err := head.Open(s.fs, s.fs.PathJoin(path, headFile+s.Engine()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	return h, nil
}

// atLeast refuses a journal that ends before the acknowledged end, or there with another batch.
func (s *Store) atLeast(end, acknowledged head.Mark) error {
	if acknowledged.Fits(end) {
		return nil
	}
	if end.Seq == acknowledged.Seq {
		return fmt.Errorf(
			"%s: %w: the last batch of the journal, up to sequence %d, is not the one that was "+
				"acknowledged; restore a backup", s, persistence.ErrCorrupt, end.Seq)
	}
	return fmt.Errorf(
		"%s: %w: the journal ends at sequence %d, and appends up to %d were acknowledged: the "+
			"rest is damaged or lost; restore a backup",
		s, persistence.ErrCorrupt, end.Seq, acknowledged.Seq)
}
