package codec

import (
	"encoding/hex"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"exchange/persistence"
)

// IsUnique reports whether a text has the form of persistence.NewID's.
func IsUnique(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == 16 && hex.EncodeToString(b) == text
}

// Held returns ErrHeld for a claim that came too late: the engine's beat has changed.
func Held(now string) error {
	return fmt.Errorf("%w (%s)", persistence.ErrHeld, now)
}

// Digest distinguishes batches: a retry of the same bytes from other bytes at the same sequence.
func Digest(batch []byte) uint64 { return xxhash.Sum64(batch) }

// Fenced returns ErrFenced with the name of the current owner. A store without an owner has lost
// this engine's data: that is ErrCorrupt, because no other process has taken over.
func Fenced(owner string) error {
	if owner == "" {
		return fmt.Errorf(
			"%w: the store has no owner of this engine: its data was removed, or an empty "+
				"store has its address; bring the data back, or restore a backup",
			persistence.ErrCorrupt)
	}
	return fmt.Errorf("%w (%s)", persistence.ErrFenced, owner)
}

// Gap returns ErrGap for an append after prev to a journal that ends at stored.
func Gap(stored, prev uint64) error {
	switch {
	case stored < prev:
		return fmt.Errorf(
			"%w: it ends at %d and this process left it at %d: the store has lost a tail",
			persistence.ErrGap, stored, prev)
	case stored > prev:
		return fmt.Errorf("%w: it ends at %d and this process left it at %d: another process wrote",
			persistence.ErrGap, stored, prev)
	}
	return fmt.Errorf("%w: it ends at %d", persistence.ErrGap, stored)
}

// WatermarkGap returns ErrGap for an Apply of from to a store whose watermark is stored.
func WatermarkGap(stored, from, to uint64) error {
	return fmt.Errorf("%w: the watermark of the projections is %d, which is neither %d nor %d",
		persistence.ErrGap, stored, from, to)
}

// BelowWatermark refuses a snapshot at seq while the projections are exact only up to watermark.
func BelowWatermark(seq, watermark uint64) error {
	return fmt.Errorf(
		"snapshot at %d: the projections are durable only up to %d; apply the rest first", seq,
		watermark)
}

// OlderSnapshot refuses a snapshot at seq below the newest.
func OlderSnapshot(seq, newest uint64) error {
	return fmt.Errorf("snapshot at %d: there is a newer one at %d already", seq, newest)
}

// A Chain checks that batches follow one another while a journal is read.
type Chain struct {
	After, End uint64 // the reader's position and the end that the journal claims
	last       uint64
	started    bool
}

// Empty checks a read that needs no batch. It reports whether there is nothing to read.
func (c *Chain) Empty() (bool, error) {
	if c.After > c.End {
		return true, fmt.Errorf("%w: the journal ends at %d, below %d: it has lost a tail; bring "+
			"back the store that has the rest, or restore a backup", persistence.ErrCorrupt, c.End,
			c.After)
	}
	return c.After == c.End, nil
}

// Next checks one batch and its digest.
func (c *Chain) Next(prev, next uint64, digest uint64, batch []byte) error {
	switch {
	case !c.started && prev > c.After:
		return fmt.Errorf("%w: the journal starts at %d, above %d: the batches between are missing",
			persistence.ErrCorrupt, prev, c.After)
	case c.started && prev != c.last:
		return fmt.Errorf("%w: a batch follows %d, and the journal is at %d",
			persistence.ErrCorrupt, prev, c.last)
	case next <= prev:
		return fmt.Errorf("%w: a batch goes from %d to %d", persistence.ErrCorrupt, prev, next)
	case Digest(batch) != digest:
		return fmt.Errorf("%w: the batch (%d, %d] has a wrong digest", persistence.ErrCorrupt, prev,
			next)
	}
	c.started, c.last = true, next
	return nil
}

// Done checks that the last batch ends at the journal's stated end.
func (c *Chain) Done() error {
	if !c.started || c.last != c.End {
		return fmt.Errorf("%w: the last batch after %d ends at %d, the journal says %d",
			persistence.ErrCorrupt, c.After, c.last, c.End)
	}
	return nil
}
