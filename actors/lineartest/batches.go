package lineartest

import (
	"cmp"
	"slices"
)

// A batch is not atomic: operations of other accounts may come between its own. But those for one
// book reach it in order, with nothing else sent by the account's clients in between. A refused
// operation comes after earlier ones about the same order. It need not come before any, because its
// wallet may have refused it: then it reached no book.

// A batchCall is a batch as seen by its key: one request with one nonce.
type batchCall struct {
	answer *Recorded // stands for all; with an outcome, if one has any
	mixed  bool      // only some were refused for the key
}

// batchesOf returns the batches by their numbers.
func batchesOf(all []Recorded) map[int]*batchCall {
	batches := map[int]*batchCall{}
	for i := range all {
		r := &all[i]
		if r.batch == 0 {
			continue
		}
		b := batches[r.batch]
		switch {
		case b == nil:
			batches[r.batch] = &batchCall{answer: r}
		case r.Result.Outcome == Unknown:
		case b.answer.Result.Outcome == Unknown:
			b.answer = r
		default:
			b.mixed = b.mixed || b.answer.verdict() != r.verdict()
		}
	}
	return batches
}

// A verdict is the part of an answer about the key.
type verdict struct {
	refused   Outcome // Done: not refused
	lastNonce uint64
}

func (r *Recorded) verdict() verdict {
	if r.Result.Outcome.byKey() {
		return verdict{r.Result.Outcome, r.Result.LastNonce}
	}
	return verdict{refused: Done}
}

// A place is the position of a batch's operation among those for the same pair.
type place struct {
	batch   int  // 0: none
	earlier int  // number of earlier ones that may have had an effect
	acts    bool // it may have had an effect itself
	more    bool // a later one had an effect
}

// placeInBatches sets the place of each part of a batch.
func placeInBatches(market []span, all []Recorded) {
	type queue struct{ batch, pair int }
	batch := map[int]int{} // of each operation
	for i := range all {
		batch[all[i].number] = all[i].batch
	}
	spans := map[queue][]*span{}
	for i := range market {
		if s := &market[i]; batch[s.number] != 0 {
			q := queue{batch[s.number], s.o.Pair}
			spans[q] = append(spans[q], s)
		}
	}
	for q, list := range spans {
		acting, of := 0, map[int]int{} // acting: number of an order's operations up to its last one
		for _, s := range list {
			acts := s.fate != answered || s.r.Outcome == Done
			s.place = place{batch: q.batch, earlier: of[s.o.Order], acts: acts}
			if acts {
				s.place.earlier = acting
				acting++
				of[s.o.Order] = acting
			}
		}
		more := false
		for _, s := range slices.Backward(list) {
			s.place.more = more
			more = more || s.fate == happened || s.r.Outcome == Done
		}
	}
}

// A progress counts the finished parts of a batch in a pair that may have had an effect.
type progress struct{ batch, pair, done int }

// isTurnOf reports whether all earlier parts of a part's batch are done. It counts the part,
// whether it happens or not.
func (s *market) isTurnOf(p *part) bool {
	if p.place.batch == 0 {
		return true
	}
	want := progress{batch: p.place.batch, pair: p.o.Pair}
	at, there := slices.BinarySearchFunc(s.batches, want, func(a, b progress) int {
		return cmp.Or(cmp.Compare(a.batch, b.batch), cmp.Compare(a.pair, b.pair))
	})
	if !there {
		s.batches = slices.Insert(s.batches, at, want)
	}
	done := &s.batches[at].done
	if !p.place.acts {
		return *done >= p.place.earlier
	}
	*done++
	return *done == p.place.earlier+1
}

// staysTogether reports whether a part that just happened separates no two of a batch of its
// account. A cancel of all may have begun before the batch, and continue in parallel.
func (s *market) staysTogether(p *part) bool {
	switch o := p.o; {
	case o.Kind != Place && o.Kind != Cancel && o.Kind != Amend,
		p.fate == answered && p.r.Outcome != Done:
		return true
	default:
		inside := &s.insideBatch[o.Account][o.Pair]
		if *inside != 0 && *inside != p.place.batch {
			return false
		}
		if *inside = 0; p.place.more {
			*inside = p.place.batch
		}
		return true
	}
}
