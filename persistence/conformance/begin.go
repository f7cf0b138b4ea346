package conformance

import (
	"slices"
	"strings"

	"exchange/persistence"
)

// begin restores a store: its journal begins at the backup's sequence, its projections are applied
// step by step, and the image comes last. It is closed and opened again between any two steps.
func (w *world) begin() {
	const at = 1000
	w.open(persistence.Retention{})
	accepted := w.beat().Accepted
	w.must(w.s.Begin(w.ctx, w.tok, at))
	if now := w.beat(); !w.s.Exclusive() &&
		(now.Accepted <= accepted || now.Lacks(persistence.Mark{Seq: at + 1}, accepted)) {
		w.Fatalf("hosts that have seen more do not see the restore: %+v after %d", now, accepted)
	}
	w.must(w.s.Begin(w.ctx, w.tok, at)) // a retry
	w.seq = at
	check := func(watermark uint64) {
		w.Helper()
		for range 2 {
			if w.seq != at {
				w.Fatalf("the journal ends at %d, want %d", w.seq, at)
			}
			w.wantWatermark(watermark)
			all, err := w.read(at)
			w.must(err)
			if len(all) != 0 {
				w.Fatalf("the journal is %v", all)
			}
			// there is no image yet, so this must not look whole
			for _, after := range []uint64{0, at - 1, at + 1} {
				_, err = w.read(after)
				w.is(err, persistence.ErrCorrupt)
			}
			w.again(persistence.Retention{})
		}
	}
	check(0)
	w.is(w.s.Append(w.ctx, w.tok, 0, 1, []byte("x")), persistence.ErrGap)
	w.is(w.s.Append(w.ctx, w.tok, at-1, at, []byte("x")), persistence.ErrGap)
	w.is(w.s.Apply(w.ctx, w.tok, at, at+1, nil), persistence.ErrGap)
	w.refused(w.s.SaveSnapshot(w.ctx, w.tok, at, strings.NewReader("too early")))
	r := newRand(w.T, 14)
	m := &model{}
	var id uint64
	for from := uint64(0); from < at; from += at / 4 {
		writes, late := flush(r, &id, 1+from, 100, nil)
		writes.Trades = append(writes.Trades, late...)
		m.add(&writes)
		w.must(w.s.Apply(w.ctx, w.tok, from, from+at/4, &writes))
		check(from + at/4)
	}
	w.save(at, []byte("the state"))
	w.again(persistence.Retention{})
	w.wantSnapshot(0, at, []byte("the state"))
	w.wantEverything(m)
	w.append(3, []byte("continues"))
	w.append(1, []byte("and again"))
	want := []batch{{at, at + 3, "continues"}, {at + 3, at + 4, "and again"}}
	for range 2 {
		all, err := w.read(at)
		w.must(err)
		if !slices.Equal(all, want) || w.seq != at+4 {
			w.Fatalf("the journal is %v, ends at %d", all, w.seq)
		}
		_, err = w.read(at - 1)
		w.is(err, persistence.ErrCorrupt)
		w.again(persistence.Retention{})
	}
	w.apply(4, nil)
	w.save(at+4, []byte("the next state"))
	w.must(w.s.Trim(w.ctx, w.tok, at))
	w.again(persistence.Retention{})
	w.wantSnapshot(0, at+4, []byte("the next state"))
	w.wantSnapshot(1, at, []byte("the state"))
}

func (w *world) beginRefused() {
	w.open(persistence.Retention{})
	w.is(w.s.Begin(w.ctx, "", 5), persistence.ErrFenced)
	w.is(w.s.Begin(w.ctx, w.tok, 1<<53), persistence.ErrInvalid)
	w.must(w.s.Begin(w.ctx, w.tok, 0)) // a new store's end anyway
	old := w.tok
	w.again(persistence.Retention{})
	w.is(w.s.Begin(w.ctx, old, 5), persistence.ErrFenced)
	w.append(1, []byte("a record"))
	for _, seq := range []uint64{0, 1, 5} {
		w.is(w.s.Begin(w.ctx, w.tok, seq), persistence.ErrInvalid)
	}
	w.again(persistence.Retention{})
	w.is(w.s.Begin(w.ctx, w.tok, 5), persistence.ErrInvalid)
	w.append(1, []byte("continues"))

	f := func(what string, fill func()) {
		w.Helper()
		w.backend = w.fresh(w.T)
		w.open(persistence.Retention{})
		fill()
		for _, seq := range []uint64{0, 5, 7} {
			if err := w.s.Begin(w.ctx, w.tok, seq); err == nil {
				w.Errorf("%s: a journal began at %d", what, seq)
			} else {
				w.is(err, persistence.ErrInvalid)
			}
		}
	}
	f("with a watermark", func() { w.apply(1, nil) })
	f("with an image", func() { w.save(0, []byte("of nothing")) })
	f("half restored", func() {
		w.must(w.s.Begin(w.ctx, w.tok, 5))
		w.apply(2, nil)
	})
	f("restored, with records since", func() {
		w.must(w.s.Begin(w.ctx, w.tok, 4))
		w.seq = 4
		w.append(1, []byte("a record"))
	})
	w.backend = w.fresh(w.T)
	w.open(persistence.Retention{})
	w.must(w.s.Begin(w.ctx, w.tok, 5))
	w.is(w.s.Begin(w.ctx, w.tok, 6), persistence.ErrInvalid) // it ends at 5 already
}
