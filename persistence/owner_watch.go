package persistence

import (
	"fmt"
	"time"
)

// An OwnerWatch belongs to a start that finds its store owned. It measures how long reads of the
// store have found the same beat, with no long gap between two reads. The clock is the start's own.
type OwnerWatch struct {
	Heartbeat Heartbeat // of the start that watches
	Seen      Beat      // the newest

	since, last time.Time // last is zero if the count begins with the next read
}

// See records a read. ErrCorrupt: since the read before, the store has lost its data or a tail of
// the journal.
func (v *OwnerWatch) See(beat Beat, now time.Time) error {
	switch {
	case v.Seen.Token != "" && beat.Token == "":
		return fmt.Errorf("%w: the store has lost its data while this start waited for its owner",
			ErrCorrupt)
	case beat.Lacks(v.Seen.End, v.Seen.Accepted):
		return Shortened(v.Seen.End, beat.End)
	}
	// A store that did not answer the start for a while may not have taken the owner's beat,
	// either.
	if beat != v.Seen || v.last.IsZero() || now.Sub(v.last) > v.Gap(beat) {
		v.since = now
	}
	v.Seen, v.last = beat, now
	return nil
}

// Gap returns the longest time between two reads of one silence. If a store does not answer for
// longer, its owner may be silent for that reason alone. The slower of both heartbeats counts.
func (v *OwnerWatch) Gap(owner Beat) time.Duration {
	return 2 * max(v.Heartbeat.Check, owner.Heartbeat.Check)
}

// Again restarts the silence with the next read.
func (v *OwnerWatch) Again() { v.last = time.Time{} }

// Quiet returns for how long the owner has shown no sign of life.
func (v *OwnerWatch) Quiet() time.Duration { return v.last.Sub(v.since) }

// Needed returns the silence after which the owner is dead, or at least answers no private reads.
// The slower of both heartbeats counts.
func (v *OwnerWatch) Needed() time.Duration {
	return 2 * max(v.Heartbeat.Stale, v.Seen.Heartbeat.Stale, 2*v.Seen.Heartbeat.Check)
}

// Shortened returns the error for a journal that was seen to end at before and ends at now.
func Shortened(before, now Mark) error {
	what := fmt.Sprintf("ends at %d now", now.Seq)
	if before.Seq == now.Seq {
		what = "has another batch there now"
	}
	return fmt.Errorf(
		"%w: the journal ended at sequence %d and %s: the store has lost a tail, because it was "+
			"a replica, "+
			"is an older copy, or its file was cut off; bring back the store that has the rest, "+
			"or restore a backup; to accept "+
			"the loss and continue with this content, start once with --take-over", ErrCorrupt,
		before.Seq, what)
}

// Cut returns the error for a journal of which an owner has found that it has lost a tail.
func Cut(lost string) error {
	return fmt.Errorf(
		"%w: the owner before had appended up to sequence %.40q, and found that the journal "+
			"ended before: the store "+
			"has lost a tail; bring back the store that has the rest, or restore a backup; to "+
			"accept the loss and "+
			"continue with this content, start once with --take-over", ErrCorrupt, lost)
}
