package state

import (
	"fmt"

	"exchange/core/event"
)

// A Fold advances a state by the batches of its journal, in order. The live engine, a recovery, an
// inspection of a store and an audit all use it. One goroutine owns it.
type Fold struct {
	State *State
	// Note, optional, is called after each applied record, with the record's effects. Both
	// arguments are valid during the call.
	Note func(*event.Record, *Effects)

	record  event.Record
	effects Effects
}

// Batch applies the records of one batch, which the store holds as (prev, next]. After an error the
// state is unusable: the journal, or the program, is wrong.
func (f *Fold) Batch(prev, next uint64, data []byte) error {
	b, err := event.OpenBatch(data)
	if err != nil {
		return err
	}
	if b.Prev != prev || b.Prev+uint64(b.Count) != next || prev != f.State.Seq() {
		return fmt.Errorf(
			"a batch says that it is (%d, %d], but it is stored as (%d, %d], and comes after %d",
			b.Prev, b.Prev+uint64(b.Count), prev, next, f.State.Seq())
	}
	for rest := b.Records; len(rest) > 0; {
		if rest, err = f.record.Decode(rest); err == nil {
			err = f.State.Apply(&f.record, &f.effects)
		}
		if err != nil {
			return err
		}
		if f.Note != nil {
			f.Note(&f.record, &f.effects)
		}
	}
	if f.State.Seq() != next {
		return fmt.Errorf("the records of a batch to sequence %d end at %d", next, f.State.Seq())
	}
	return nil
}
