package memory

import (
	"errors"
	"fmt"

	"exchange/persistence"
	"exchange/persistence/internal/head"
)

// A Head is a model of the file of persistence/internal/head: the acknowledged end. It outlives
// stores. The simulation that opens stores with it owns it; a store changes it with the disk
// locked.
type Head struct {
	there, damaged bool
	last           head.Mark
	before         []head.Mark // marks since the last sync, the oldest first, without last
}

// missing reports whether there is no file.
func (h *Head) missing() bool { return !h.there }

// Damaged reports whether the file exists but cannot be read.
func (h *Head) Damaged() bool { return h.damaged }

// Acknowledged returns the sequence in the file; 0 if there is none.
func (h *Head) Acknowledged() uint64 { return h.last.Seq }

// Lose removes the file.
func (h *Head) Lose() { *h = Head{} }

// Damage makes the file unreadable.
func (h *Head) Damage() { h.there, h.damaged = true, true }

// Unsynced returns how many writes of the file a power cut may undo.
func (h *Head) Unsynced() int { return len(h.before) }

// PowerCut undoes the newest writes of the file, at most Unsynced.
func (h *Head) PowerCut(writes int) {
	if keep := len(h.before) - writes; writes > 0 {
		h.last, h.before = h.before[keep], h.before[:keep]
	}
	h.before = nil // the remaining marks are on the disk
}

// fits returns ErrCorrupt for a file that cannot be read, or a journal that ends before the file's
// mark.
func (h *Head) fits(end head.Mark) error {
	switch {
	case h.damaged:
		return fmt.Errorf("memory: %w: %w", persistence.ErrCorrupt, errHead)
	case !h.last.Fits(end):
		return fmt.Errorf(
			"memory: %w: appends up to %d were acknowledged, and the journal ends at %d",
			persistence.ErrCorrupt, h.last.Seq, end.Seq)
	}
	return nil
}

var errHead = errors.New("its HEAD cannot be read")

// advance records an acknowledged mark. The first write makes the file, which is durable at once;
// no other write is synced.
func (h *Head) advance(m head.Mark) {
	switch {
	case h == nil, h.there && (m.Seq < h.last.Seq ||
		m.Seq == h.last.Seq && (m.Digest == 0 || m.Digest == h.last.Digest)):
	case !h.there:
		*h = Head{there: true, last: m}
	default:
		h.last, h.before = m, append(h.before, h.last)
	}
}

// reset records that another journal begins, durably.
func (h *Head) reset(seq uint64) {
	if h != nil {
		*h = Head{there: true, last: head.Mark{Seq: seq}}
	}
}

// mark returns the journal's end.
func (d *data) mark() head.Mark { return head.Mark{Seq: d.seq, Digest: d.digest} }

// Whole refuses a disk that has lost records acknowledged by its Head, and a Head that cannot be
// read. A real store does so when it is opened. A store to be filled has nothing to lose.
func (s *Store) Whole() error {
	if s.Head == nil || s.Fill {
		return nil
	}
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.Head.fits(s.disk.live.mark())
}

// HeadMissing reports whether no append through this head was acknowledged yet.
func (s *Store) HeadMissing() bool { return s.Head != nil && s.Head.missing() }

// WithoutLast returns a copy of the durable data without its last batch, like a replica that lagged
// behind or a truncated journal. It returns nil if there is no batch.
func (d *Disk) WithoutLast() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.durable.batches) - 1
	if n < 0 {
		return nil
	}
	c := d.durable.clone()
	c.seq, c.digest, c.batches = c.batches[n].prev, 0, c.batches[:n]
	if n > 0 {
		c.digest = c.batches[n-1].digest
	}
	return &Disk{live: c, durable: c.clone()}
}

// Copy returns a disk with the durable data of this one.
func (d *Disk) Copy() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{live: d.durable.clone(), durable: d.durable.clone()}
}
