package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exchange/persistence"
)

// append appends a batch of n records.
func (w *world) append(n uint64, batch []byte) {
	w.Helper()
	w.must(w.s.Append(w.ctx, w.tok, w.seq, w.seq+n, batch))
	w.seq += n
}

type batch struct {
	prev, next uint64
	data       string
}

// read returns the journal after a sequence.
func (w *world) read(after uint64) ([]batch, error) {
	var all []batch
	err := w.s.Read(w.ctx, after, func(prev, next uint64, b []byte) error {
		all = append(all, batch{prev, next, string(b)})
		return nil
	})
	return all, err
}

func (w *world) emptyStore() {
	w.open(persistence.Retention{})
	if w.seq != 0 || w.tok.Epoch() != 1 {
		w.Fatalf("sequence %d, epoch %d", w.seq, w.tok.Epoch())
	}
	all, err := w.read(0)
	w.must(err)
	if len(all) != 0 {
		w.Fatalf("%d batches", len(all))
	}
	w.wantWatermark(0)
	w.must(w.s.Check(w.ctx, w.tok))
	w.is(w.s.Check(w.ctx, ""), persistence.ErrFenced)
	for _, back := range []int{-1, 0, 1, 2} {
		_, _, err = w.s.LoadSnapshot(w.ctx, back)
		w.is(err, persistence.ErrNoSnapshot)
	}
	w.must(w.s.Nonces(w.ctx, func(key string, nonce uint64) {
		w.Fatalf("nonce %s %d", key, nonce)
	}))
	w.wantTrades(persistence.TradeQuery{}, nil)
	w.wantTrades(persistence.TradeQuery{Account: 1, Pair: 1, Offset: 5000}, nil)
	w.wantTrades(persistence.TradeQuery{Pair: 1, Offset: 5000, Ascending: true}, nil)
	w.wantOrders(persistence.OrderQuery{Account: 1}, nil)
	w.wantDeposits(persistence.DepositQuery{Account: 1}, nil)
	w.wantWithdrawals(persistence.WithdrawalQuery{}, nil)
	w.wantWithdrawals(persistence.WithdrawalQuery{Account: 1, Offset: 5}, nil)
	w.wantCandles(persistence.CandleQuery{Pair: 1, Frame: 1}, &model{})
	w.wantActions(persistence.ActionQuery{}, nil)
	w.must(w.s.Wallets(w.ctx, func(p *persistence.Wallet) bool {
		w.Fatalf("wallet %v", p)
		return false
	}))
	_, err = w.s.Order(w.ctx, 1, 1)
	w.is(err, persistence.ErrNotFound)
	_, err = w.s.Withdrawal(w.ctx, 1)
	w.is(err, persistence.ErrNotFound)
	if w.s.String() == "" {
		w.Fatal("the store has no name")
	}
	_, err = w.read(1) // there is nothing above 0, so a snapshot at 1 has lost its journal
	w.is(err, persistence.ErrCorrupt)
}

func (w *world) fencedAppend() {
	w.open(persistence.Retention{})
	old := w.tok
	w.append(1, []byte("one"))
	tok, last, err := w.s.Acquire(w.ctx, persistence.Claim{Owner: "the second owner"})
	w.must(err)
	if last != 1 || tok == old || tok.Epoch() != old.Epoch()+1 {
		w.Fatalf("token %q after %q, last sequence %d", tok, old, last)
	}
	err = w.s.Append(w.ctx, old, 1, 2, []byte("late"))
	w.is(err, persistence.ErrFenced)
	if !strings.Contains(err.Error(), "the second owner") {
		w.Fatalf("%q does not name the owner", err)
	}
	// also for its own write
	w.is(w.s.Append(w.ctx, old, 0, 1, []byte("one")), persistence.ErrFenced)
	w.is(w.s.Append(w.ctx, "", 1, 2, []byte("nobody's")), persistence.ErrFenced)
	w.is(w.s.Check(w.ctx, old), persistence.ErrFenced)
	w.is(w.s.Trim(w.ctx, old, 1), persistence.ErrFenced)
	w.is(w.s.Apply(w.ctx, old, 0, 1, &persistence.Writes{}), persistence.ErrFenced)
	w.is(w.s.Apply(w.ctx, old, 0, 0,
		&persistence.Writes{Nonces: []persistence.Nonce{{Key: "k", Nonce: 1}}}),
		persistence.ErrFenced)
	w.must(w.s.Check(w.ctx, tok))
	w.must(w.s.Append(w.ctx, tok, 1, 2, []byte("two")))
	all, err := w.read(0)
	w.must(err)
	if !slices.Equal(all, []batch{{0, 1, "one"}, {1, 2, "two"}}) {
		w.Fatalf("the journal is %v", all)
	}
	w.wantWatermark(0)
}

// beat returns the engine's newest.
func (w *world) beat() persistence.Beat {
	w.Helper()
	b, err := w.s.Beat(w.ctx)
	w.must(err)
	return b
}

// beats wants each confirmation of an owner to be visible to others, and a claim that has missed
// one to fail.
func (w *world) beats() {
	w.open(persistence.Retention{})
	first := w.beat()
	if !first.HasOwner() || first.Token != w.tok || first.Owner != "conformance" ||
		first != w.beat() {
		w.Fatalf("%+v, of %s", first, w.tok)
	}
	claim := persistence.Claim{Owner: "another", ID: strings.Repeat("a1", 16), After: &first}
	if !w.s.Exclusive() {
		seen := map[persistence.Beat]bool{first: true}
		for range 3 {
			w.must(w.s.Check(w.ctx, w.tok))
			if now := w.beat(); seen[now] || now.Token != w.tok {
				w.Fatalf("after a check the beat is %+v", now)
			}
			seen[w.beat()] = true
		}
		_, _, err := w.s.Acquire(w.ctx, claim)
		w.is(err, persistence.ErrHeld)
		if !strings.Contains(err.Error(), "conformance") {
			w.Fatalf("%q does not name the owner", err)
		}
		now := w.beat()
		claim.After = &now
	}
	w.is(w.s.Check(w.ctx, "1:somebody's"), persistence.ErrFenced)
	if *claim.After != w.beat() {
		w.Fatal("a check without the token is a beat")
	}
	w.append(1, []byte("one")) // of a live owner; appends do not confirm it
	tok, last, err := w.s.Acquire(w.ctx, claim)
	w.must(err)
	if last != 1 || tok.ID() != claim.ID || tok.Epoch() != w.tok.Epoch()+1 {
		w.Fatalf("token %q, last sequence %d", tok, last)
	}
	w.is(w.s.Check(w.ctx, w.tok), persistence.ErrFenced)
	if n := w.beat().Accepted; n != first.Accepted {
		w.Fatalf("a claim that does not insist has accepted something: %d after %d", n,
			first.Accepted)
	}
	_, _, err = w.s.Acquire(w.ctx, claim) // as a second one that has seen the same
	w.is(err, persistence.ErrHeld)
	for _, id := range []string{"x", strings.Repeat("A1", 16), strings.Repeat("a", 64),
		"1:" + strings.Repeat("a", 30)} {
		_, _, err = w.s.Acquire(w.ctx, persistence.Claim{Owner: "another", ID: id})
		w.is(err, persistence.ErrInvalid)
	}
	w.must(w.s.Check(w.ctx, tok))
	if w.s.Exclusive() {
		return
	}
	for range 2 { // each is another acceptance, also within a millisecond
		before := w.beat()
		_, _, err = w.s.Acquire(w.ctx,
			persistence.Claim{Owner: "insists", After: &before, Insist: true})
		w.must(err)
		if n := w.beat().Accepted; n <= before.Accepted {
			w.Fatalf("a claim that insists accepts %d after %d", n, before.Accepted)
		}
	}
}

// release wants the store to refuse all writes of an owner that has released the engine.
func (w *world) release() {
	w.open(persistence.Retention{})
	w.append(1, []byte("one"))
	w.is(w.s.Release(w.ctx, ""), persistence.ErrFenced)
	w.is(w.s.Release(w.ctx, "1:somebody's"), persistence.ErrFenced)
	w.must(w.s.Check(w.ctx, w.tok))
	w.must(w.s.Release(w.ctx, w.tok))
	free := w.beat()
	if free.HasOwner() || free == (persistence.Beat{}) {
		w.Fatalf("given back it has %+v", free)
	}
	for _, tok := range []persistence.Token{w.tok, "", free.Token + "x"} {
		w.is(w.s.Check(w.ctx, tok), persistence.ErrFenced)
		w.is(w.s.Append(w.ctx, tok, 1, 2, []byte("late")), persistence.ErrFenced)
		w.is(w.s.Append(w.ctx, tok, 0, 1, []byte("one")), persistence.ErrFenced)
		w.is(w.s.Apply(w.ctx, tok, 0, 1, &persistence.Writes{}), persistence.ErrFenced)
		w.is(w.s.Trim(w.ctx, tok, 1), persistence.ErrFenced)
		w.is(w.s.Release(w.ctx, tok), persistence.ErrFenced)
	}
	tok, last, err := w.s.Acquire(w.ctx, persistence.Claim{Owner: "the next", After: &free})
	w.must(err)
	if last != 1 || tok.Epoch() != w.tok.Epoch()+1 {
		w.Fatalf("token %q after %q, last sequence %d", tok, w.tok, last)
	}
	w.must(w.s.Append(w.ctx, tok, 1, 2, []byte("two")))
	_, _, err = w.s.Acquire(w.ctx, persistence.Claim{Owner: "a third, too late", After: &free})
	w.is(err, persistence.ErrHeld)
}

func (w *world) retry() {
	w.open(persistence.Retention{})
	w.append(3, []byte("abc"))
	w.must(w.s.Append(w.ctx, w.tok, 0, 3, []byte("abc")))
	w.must(w.s.Append(w.ctx, w.tok, 0, 3, []byte("abc")))
	w.append(1, []byte("d"))
	w.is(w.s.Append(w.ctx, w.tok, 0, 3, []byte("abc")), persistence.ErrGap) // a delayed duplicate
	// A new owner with the same bytes: it has read the journal's end and does not write them again.
	w.again(persistence.Retention{})
	w.must(w.s.Append(w.ctx, w.tok, 3, 4, []byte("d")))
	all, err := w.read(0)
	w.must(err)
	if !slices.Equal(all, []batch{{0, 3, "abc"}, {3, 4, "d"}}) {
		w.Fatalf("the journal is %v", all)
	}
}

func (w *world) gap() {
	w.open(persistence.Retention{})
	w.append(5, []byte("five"))
	err := w.s.Append(w.ctx, w.tok, 4, 6, []byte("x"))
	w.is(err, persistence.ErrGap)
	if !strings.Contains(err.Error(), "another process wrote") {
		w.Fatalf("%q does not name a store that is ahead", err)
	}
	err = w.s.Append(w.ctx, w.tok, 9, 10, []byte("x"))
	w.is(err, persistence.ErrGap)
	if !strings.Contains(err.Error(), "lost a tail") {
		w.Fatalf("%q does not name a store that lags behind", err)
	}
	w.is(w.s.Append(w.ctx, w.tok, 0, 5, []byte("other bytes")), persistence.ErrGap)
	w.append(5, []byte("ten"))
	all, err := w.read(0)
	w.must(err)
	if !slices.Equal(all, []batch{{0, 5, "five"}, {5, 10, "ten"}}) {
		w.Fatalf("the journal is %v", all)
	}
}

func (w *world) replay() {
	w.open(persistence.Retention{})
	var want []batch
	for i := range uint64(50) {
		data := fmt.Sprintf("batch %d", i)
		want = append(want, batch{w.seq, w.seq + 1 + i%3, data})
		w.append(1+i%3, []byte(data))
	}
	for round := range 2 {
		for after := range w.seq + 1 {
			all, err := w.read(after)
			w.must(err)
			from := slices.IndexFunc(want, func(b batch) bool { return b.next > after })
			if from < 0 {
				from = len(want)
			}
			if !slices.Equal(all, want[from:]) {
				w.Fatalf("round %d: after %d the journal is %v, want %v", round, after, all,
					want[from:])
			}
		}
		w.again(persistence.Retention{})
	}
	stop := errors.New("enough")
	n := 0
	w.is(w.s.Read(w.ctx, 0, func(_, _ uint64, _ []byte) error {
		if n++; n == 7 {
			return stop
		}
		return nil
	}), stop)
	if n != 7 {
		w.Fatalf("fn was called %d times after it had stopped at 7", n)
	}
}

func (w *world) largeJournal() {
	w.open(persistence.Retention{})
	rng := newRand(w.T, 1)
	var want []batch
	for _, size := range []int{500_000, 1, 300_000, 256 << 10, 700_000, 10} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		want = append(want, batch{w.seq, w.seq + 10, string(data)})
		w.append(10, data)
	}
	for i := range 1500 { // more than one page of small ones
		data := fmt.Sprint(i)
		want = append(want, batch{w.seq, w.seq + 1, data})
		w.append(1, []byte(data))
	}
	all, err := w.read(0)
	w.must(err)
	if !slices.Equal(all, want) {
		w.Fatal("the journal differs from the written batches")
	}
}

func (w *world) trim() {
	w.open(persistence.Retention{})
	for range 10 {
		w.append(2, []byte("xx"))
	}
	w.must(w.s.Trim(w.ctx, w.tok, 0))
	all, err := w.read(0)
	w.must(err)
	if len(all) != 10 {
		w.Fatalf("%d batches after nothing was trimmed", len(all))
	}
	w.must(w.s.Trim(w.ctx, w.tok, 7)) // within the batch (6, 8], which stays
	w.must(w.s.Trim(w.ctx, w.tok, 7))
	_, err = w.read(5)
	w.is(err, persistence.ErrCorrupt)
	for _, after := range []uint64{6, 7} {
		all, err = w.read(after)
		w.must(err)
		if len(all) != 7 || all[0].prev != 6 {
			w.Fatalf("after %d the journal is %v", after, all)
		}
	}
	w.must(w.s.Trim(w.ctx, w.tok, 1_000)) // all of it
	w.again(persistence.Retention{})
	if w.seq != 20 {
		w.Fatalf("the trimmed journal ends at %d", w.seq)
	}
	all, err = w.read(20)
	w.must(err)
	if len(all) != 0 {
		w.Fatalf("the journal is %v", all)
	}
	_, err = w.read(19)
	w.is(err, persistence.ErrCorrupt)
	w.append(1, []byte("continues"))
	all, err = w.read(20)
	w.must(err)
	if !slices.Equal(all, []batch{{20, 21, "continues"}}) {
		w.Fatalf("the journal is %v", all)
	}
}

func (w *world) damage() {
	w.open(persistence.Retention{})
	for range 6 {
		w.append(1, []byte("a batch"))
	}
	w.backend.DamageBatch(w.T, w.s, 3)
	all, err := w.read(0)
	w.is(err, persistence.ErrCorrupt)
	if len(all) != 2 {
		w.Fatalf("%d batches before the damaged third", len(all))
	}
	_, err = w.read(3)
	w.must(err)
	w.backend.LoseBatch(w.T, w.s, 4)
	_, err = w.read(3)
	w.is(err, persistence.ErrCorrupt)
	w.backend.LoseBatch(w.T, w.s, 6) // the last: the head has 6
	_, err = w.read(4)
	w.is(err, persistence.ErrCorrupt)
	_, err = w.read(5)
	w.is(err, persistence.ErrCorrupt)
}
