package machine

import (
	"fmt"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// An Outcome is what became of an entry.
type Outcome uint8

const (
	Done     Outcome = iota + 1
	Already          // an append: an earlier one with the same bytes is the journal's last batch
	Fenced           // the entry's token is not the owner's
	Gap              // an append: it does not follow on the journal's end
	held             // an acquire: the beat is another one now
	short            // an acquire: the journal ends before the end that the claim has seen
	notEmpty         // a begin: the journal has batches, or begins elsewhere
)

// An Answer is the outcome of an entry, and the state that it met.
type Answer struct {
	Outcome Outcome
	Token   persistence.Token // of an acquire that is Done
	Seq     uint64            // where the journal ends now
	owner   string            // of the engine now
	end     persistence.Mark
}

// Err returns nil if the entry did what it was for, now or before, and the store's error otherwise.
func (a Answer) Err(e *Entry) error {
	switch a.Outcome {
	case Done, Already:
		return nil
	case Fenced:
		return codec.Fenced(a.owner)
	case Gap:
		return codec.Gap(a.Seq, e.Prev)
	case held:
		return codec.Held(a.owner)
	case short:
		return persistence.Shortened(e.After.End, a.end)
	case notEmpty:
		return codec.NotEmpty(fmt.Sprintf("a journal up to sequence %d", a.Seq))
	}
	return fmt.Errorf("BUG: outcome %d of an entry", a.Outcome)
}
