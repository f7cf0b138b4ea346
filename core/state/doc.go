// Package state is the fold: the committed state of one engine, built by applying the records of
// its journal one by one, and nothing else.
//
// It is the same code that runs at recovery and behind every release, so each snapshot is a proof
// that replay works. It decides nothing: a record says what happened, and Apply checks that it fits
// what is known (a maker stands first in its queue, a wallet has what it pays, ids grow). An error
// from Apply means that the journal or the program is wrong.
//
//	s := state.New()
//	for each record, in sequence order {
//		err := s.Apply(&record, &effects)   // effects: what a projection has to write
//	}
//	image := s.AppendTo(nil)                // deterministic: equal states have equal images
//	s, err = state.Decode(image)
//	err = s.Check()                         // the money invariants, over everything
//
// One goroutine owns a State. There is no clock, no I/O and no configuration in here.
package state
