package lineartest

import (
	"cmp"
	"slices"
)

// A batch is not atomic: operations of other accounts may come between its own. But those that
// reach one book do so in their order, and nothing else of the account that a client sent reaches
// it in between. An operation that was refused comes behind those before it that are about the same
// order. It need not come before any, because its wallet may have refused it: then it has reached
// no book.

// A sent is a batch as its key sees it: one request with one nonce.
type sent struct {
	speaks *Recorded // for all; with an outcome, if one has any
	torn   bool      // some were refused for the key, and others were not
}

// batchesOf returns the batches by their numbers.
func batchesOf(all []Recorded) map[int]*sent {
	batches := map[int]*sent{}
	for i := range all {
		r := &all[i]
		if r.batch == 0 {
			continue
		}
		b := batches[r.batch]
		switch {
		case b == nil:
			batches[r.batch] = &sent{speaks: r}
		case r.Result.Outcome == Unknown:
		case b.speaks.Result.Outcome == Unknown:
			b.speaks = r
		default:
			b.torn = b.torn || b.speaks.verdict() != r.verdict()
		}
	}
	return batches
}

// A verdict is what an answer says of the key.
type verdict struct {
	refused   Outcome // Done: it was not
	lastNonce uint64
}

func (r *Recorded) verdict() verdict {
	if r.Result.Outcome.byKey() {
		return verdict{r.Result.Outcome, r.Result.LastNonce}
	}
	return verdict{refused: Done}
}

// A place is where an operation of a batch stands among those for the same pair.
type place struct {
	batch  int  // 0: it is of none
	behind int  // how many come before it, of those that may have had an effect
	acts   bool // it may have had an effect itself
	more   bool // one that had an effect follows
}

// placeInBatches gives each part of a batch its place.
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
		acting, of := 0, map[int]int{} // of an order: how many up to its last one
		for _, s := range list {
			acts := s.fate != answered || s.r.Outcome == Done
			s.place = place{batch: q.batch, behind: of[s.o.Order], acts: acts}
			if acts {
				s.place.behind = acting
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

// A progress says how many parts of a batch that may have had an effect in a pair are over.
type progress struct{ batch, pair, done int }

// isTurnOf reports whether all parts are over that come before a part in its batch. It counts the
// part, whether it happens or not.
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
		return *done >= p.place.behind
	}
	*done++
	return *done == p.place.behind+1
}

// staysTogether reports whether a part that has just happened comes between no two of a batch of
// its account. A cancel of all may have begun before the batch, and goes on beside it.
func (s *market) staysTogether(p *part) bool {
	switch o := p.o; {
	case o.Kind != Place && o.Kind != Cancel && o.Kind != Amend,
		p.fate == answered && p.r.Outcome != Done:
		return true
	default:
		amidst := &s.amidst[o.Account][o.Pair]
		if *amidst != 0 && *amidst != p.place.batch {
			return false
		}
		if *amidst = 0; p.place.more {
			*amidst = p.place.batch
		}
		return true
	}
}
