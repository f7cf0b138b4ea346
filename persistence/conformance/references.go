package conformance

import (
	"fmt"
	"strings"

	"exchange/persistence"
)

// wantReferences compares the index of references with the deposits, as a whole and one by one.
func (w *world) wantReferences(m *model) {
	w.Helper()
	index := map[string]persistence.Deposit{} // one may come twice
	w.must(w.s.References(w.ctx, func(p *persistence.Deposit) bool {
		index[p.Reference] = *p
		return true
	}))
	if len(index) != len(m.deposits) {
		w.Fatalf("the index has %d references of %d deposits", len(index), len(m.deposits))
	}
	n, err := w.s.CountReferences(w.ctx)
	if w.must(err); n != uint64(len(m.deposits)) {
		w.Fatalf("the index counts %d references of %d deposits", n, len(m.deposits))
	}
	watermark, err := w.s.Watermark(w.ctx)
	w.must(err)
	for _, want := range m.deposits {
		got, err := w.s.Reference(w.ctx, watermark, want.Reference)
		w.must(err)
		if got != want || index[want.Reference] != want {
			w.Fatalf("the deposit with reference %q is %+v, listed as %+v, want %+v",
				want.Reference, got,
				index[want.Reference], want)
		}
	}
}

// references checks that a reference is found by all of its bytes, and that retention does not trim
// it.
func (w *world) references() {
	keep := persistence.Retention{Trades: 1, Orders: 1, Candles: 1}
	w.open(keep)
	long := strings.Repeat("reference ", 12)
	m := &model{keep: keep}
	names := []string{"one", "one ", "One", "on", "{main}:m", "\x00", "\x00\xff", "\xff", "\u00e9",
		"e\u0301", long, long + "!"}
	for round := range 3 {
		var writes persistence.Writes
		for i, name := range names {
			id := uint64(1 + round*len(names) + i)
			if round > 0 {
				name = fmt.Sprint(name, round)
			}
			writes.Deposits = append(writes.Deposits,
				persistence.Deposit{ID: id, Account: uint32(1 + i%3), Currency: 1, Amount: 5,
					TimeUs: int64(id), Reference: name})
			writes.Trades = append(writes.Trades, trade(id, 1, 1, 2))
		}
		m.add(&writes)
		w.apply(uint64(len(names)), &writes)
		w.wantReferences(m)
		w.again(keep)
	}
	w.wantReferences(m)
	seen := 0
	w.must(w.s.References(w.ctx, func(*persistence.Deposit) bool { seen++; return seen < 5 }))
	if seen != 5 {
		w.Fatalf("fn was called %d times, want 5", seen)
	}
}

// noReference reads missing references, also from a store that lags behind.
func (w *world) noReference() {
	w.open(persistence.Retention{})
	read := func(watermark uint64, reference string, want error) {
		w.Helper()
		got, err := w.s.Reference(w.ctx, watermark, reference)
		if w.is(err, want); got != (persistence.Deposit{}) {
			w.Fatalf("with the error comes %+v", got)
		}
	}
	read(0, "one", persistence.ErrNotFound)
	read(1, "one", persistence.ErrGap)
	made := persistence.Deposit{ID: 1, Account: 1, Currency: 1, Amount: 5, TimeUs: 7,
		Reference: "one"}
	w.apply(10, &persistence.Writes{Deposits: []persistence.Deposit{made}})
	for _, reference := range []string{"on", "one ", "two", ""} {
		read(9, reference, persistence.ErrNotFound)
		read(10, reference, persistence.ErrNotFound)
		read(11, reference, persistence.ErrGap)
	}
	// An existing reference was used, even if the store lags behind.
	got, err := w.s.Reference(w.ctx, 11, "one")
	if w.must(err); got != made {
		w.Fatalf("the deposit is %+v, want %+v", got, made)
	}
}
