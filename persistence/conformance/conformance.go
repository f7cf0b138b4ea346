// Package conformance is the one suite that every store must pass. It states what callers may rely
// on, so that they need not know which store they have.
package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"exchange/core/matching"
	"exchange/core/money"
	"exchange/persistence"
)

// A Backend is one place for data, new and empty. A store opened there is closed and opened again.
type Backend interface {
	// Open opens the store; the suite closes it.
	Open(t *testing.T, r persistence.Retention) persistence.Store
	// Wallet reads a projected wallet, its holdings sorted by currency; persistence.ErrNotFound.
	Wallet(t *testing.T, s persistence.Store, account uint32, name string) (persistence.Wallet, error)
	// DamageBatch changes a byte of the batch that ends at next, behind the store's back.
	DamageBatch(t *testing.T, s persistence.Store, next uint64)
	// LoseBatch removes it.
	LoseBatch(t *testing.T, s persistence.Store, next uint64)
	// DamageSnapshot changes a byte in the last chunk of the newest image.
	DamageSnapshot(t *testing.T, s persistence.Store)
}

// Run runs the suite; fresh makes a new place for each of its parts.
func Run(t *testing.T, fresh func(t *testing.T) Backend) {
	f := func(name string, test func(*world)) {
		t.Run(name, func(t *testing.T) {
			test(&world{T: t, ctx: t.Context(), backend: fresh(t)})
		})
	}
	f("a new store is empty", (*world).emptyStore)
	f("only the newest owner appends", (*world).fencedAppend)
	f("a retry of the same bytes is one success", (*world).retry)
	f("an append that does not follow on is a gap", (*world).gap)
	f("meaningless input is refused", (*world).meaningless)
	f("the journal is read in order from any sequence", (*world).replay)
	f("a batch of 500 kB and a journal of several pages are read back", (*world).largeJournal)
	f("a trimmed journal starts above what was trimmed", (*world).trim)
	f("a damaged or missing batch is found", (*world).damage)
	f("the two newest snapshots are kept", (*world).twoSnapshots)
	f("a snapshot above the watermark is refused", (*world).snapshotAboveWatermark)
	f("a snapshot of a fenced owner is refused", (*world).fencedSnapshot)
	f("snapshots of every size come back whole", (*world).snapshotSizes)
	f("a torn upload is never visible", (*world).tornSnapshot)
	f("a damaged snapshot is found", (*world).damagedSnapshot)
	f("the watermark moves once for one apply", (*world).watermark)
	f("nonces only grow", (*world).nonces)
	f("wallets are replaced as a whole", (*world).wallets)
	f("every field of every row comes back", (*world).fields)
	f("one order is found by its id", (*world).oneOrder)
	f("lists equal the model under every filter", (*world).lists)
	f("lists equal the model under every filter and retention", (*world).trimmedLists)
	f("retention keeps the limit and drops one above", (*world).retention)
	f("swapped ids end in order", (*world).swapped)
	f("an apply of 5000 trades is one apply", (*world).largeApply)
	f("a long offset is skipped exactly", (*world).longOffset)
	f("a list is stable while it is written", (*world).stable)
	f("all methods may be used at once", (*world).concurrent)
	f("everything is there after closing and opening", (*world).reopen)
}

// world is one test's surroundings. Its helpers end the test on an error.
type world struct {
	*testing.T
	ctx     context.Context
	backend Backend
	s       persistence.Store
	tok     persistence.Token
	seq     uint64
}

// open opens the store and becomes its owner.
func (w *world) open(r persistence.Retention) {
	w.Helper()
	w.s = w.backend.Open(w.T, r)
	s := w.s
	w.Cleanup(func() { s.Close() })
	var err error
	w.tok, w.seq, err = w.s.Acquire(w.ctx, "conformance")
	w.must(err)
}

// again closes and opens the store.
func (w *world) again(r persistence.Retention) {
	w.Helper()
	w.must(w.s.Close())
	w.open(r)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) is(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("error is %v, want %v", err, want)
	}
}

// refused wants an error that is none of the named ones.
func (w *world) refused(err error) {
	w.Helper()
	if err == nil {
		w.Fatal("no error")
	}
	for _, named := range []error{persistence.ErrFenced, persistence.ErrGap, persistence.ErrCorrupt, persistence.ErrNoSnapshot, persistence.ErrNotFound} {
		if errors.Is(err, named) {
			w.Fatalf("error is %v, want a plain refusal", err)
		}
	}
}

// append writes a batch of n records that follows on.
func (w *world) append(n uint64, batch []byte) {
	w.Helper()
	w.must(w.s.Append(w.ctx, w.tok, w.seq, w.seq+n, batch))
	w.seq += n
}

type batch struct {
	prev, next uint64
	data       string
}

// read is the journal after a sequence.
func (w *world) read(after uint64) ([]batch, error) {
	var all []batch
	err := w.s.Read(w.ctx, after, func(prev, next uint64, b []byte) error {
		all = append(all, batch{prev, next, string(b)})
		return nil
	})
	return all, err
}

func (w *world) wantWatermark(want uint64) {
	w.Helper()
	got, err := w.s.Watermark(w.ctx)
	w.must(err)
	if got != want {
		w.Fatalf("the watermark is %d, want %d", got, want)
	}
}

// apply moves the watermark from where it is.
func (w *world) apply(by uint64, writes *persistence.Writes) {
	w.Helper()
	from, err := w.s.Watermark(w.ctx)
	w.must(err)
	w.must(w.s.Apply(w.ctx, w.tok, from, from+by, writes))
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
	w.must(w.s.Nonces(w.ctx, func(key string, nonce uint64) { w.Fatalf("nonce %s %d", key, nonce) }))
	w.wantTrades(persistence.TradeQuery{}, nil)
	w.wantTrades(persistence.TradeQuery{Account: 1, Pair: 1, Offset: 5000}, nil)
	w.wantTrades(persistence.TradeQuery{Pair: 1, Offset: 5000, Ascending: true}, nil)
	w.wantOrders(persistence.OrderQuery{Account: 1}, nil)
	w.wantDeposits(persistence.DepositQuery{Account: 1}, nil)
	_, err = w.s.Order(w.ctx, 1, 1)
	w.is(err, persistence.ErrNotFound)
	if w.s.String() == "" {
		w.Fatal("the store has no name")
	}
	_, err = w.read(1) // nothing is there above 0, so a snapshot at 1 has lost its journal
	w.is(err, persistence.ErrCorrupt)
}

func (w *world) fencedAppend() {
	w.open(persistence.Retention{})
	old := w.tok
	w.append(1, []byte("one"))
	tok, last, err := w.s.Acquire(w.ctx, "the second owner")
	w.must(err)
	if last != 1 || tok == old || tok.Epoch() != old.Epoch()+1 {
		w.Fatalf("token %q after %q, last sequence %d", tok, old, last)
	}
	err = w.s.Append(w.ctx, old, 1, 2, []byte("late"))
	w.is(err, persistence.ErrFenced)
	if !strings.Contains(err.Error(), "the second owner") {
		w.Fatalf("%q does not name the owner", err)
	}
	w.is(w.s.Append(w.ctx, old, 0, 1, []byte("one")), persistence.ErrFenced) // also what it wrote itself
	w.is(w.s.Append(w.ctx, "", 1, 2, []byte("nobody's")), persistence.ErrFenced)
	w.is(w.s.Check(w.ctx, old), persistence.ErrFenced)
	w.is(w.s.Trim(w.ctx, old, 1), persistence.ErrFenced)
	w.is(w.s.Apply(w.ctx, old, 0, 1, &persistence.Writes{}), persistence.ErrFenced)
	w.is(w.s.Apply(w.ctx, old, 0, 0, &persistence.Writes{Nonces: []persistence.Nonce{{Key: "k", Nonce: 1}}}), persistence.ErrFenced)
	w.must(w.s.Check(w.ctx, tok))
	w.must(w.s.Append(w.ctx, tok, 1, 2, []byte("two")))
	all, err := w.read(0)
	w.must(err)
	if !slices.Equal(all, []batch{{0, 1, "one"}, {1, 2, "two"}}) {
		w.Fatalf("the journal is %v", all)
	}
	w.wantWatermark(0)
}

func (w *world) retry() {
	w.open(persistence.Retention{})
	w.append(3, []byte("abc"))
	w.must(w.s.Append(w.ctx, w.tok, 0, 3, []byte("abc")))
	w.must(w.s.Append(w.ctx, w.tok, 0, 3, []byte("abc")))
	w.append(1, []byte("d"))
	w.is(w.s.Append(w.ctx, w.tok, 0, 3, []byte("abc")), persistence.ErrGap) // a delayed duplicate
	// A new owner of the same bytes: it read the journal's end and does not write them again.
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
	if !strings.Contains(err.Error(), "somebody else wrote") {
		w.Fatalf("%q does not say that the store is ahead", err)
	}
	err = w.s.Append(w.ctx, w.tok, 9, 10, []byte("x"))
	w.is(err, persistence.ErrGap)
	if !strings.Contains(err.Error(), "lost a tail") {
		w.Fatalf("%q does not say that the store is behind", err)
	}
	w.is(w.s.Append(w.ctx, w.tok, 0, 5, []byte("other bytes")), persistence.ErrGap)
	w.append(5, []byte("ten"))
	all, err := w.read(0)
	w.must(err)
	if !slices.Equal(all, []batch{{0, 5, "five"}, {5, 10, "ten"}}) {
		w.Fatalf("the journal is %v", all)
	}
}

func (w *world) meaningless() {
	w.open(persistence.Retention{})
	f := func(what string, err error) {
		w.Helper()
		if err == nil {
			w.Errorf("%s: no error", what)
		} else if errors.Is(err, persistence.ErrGap) || errors.Is(err, persistence.ErrFenced) {
			w.Errorf("%s: %v is not what is wrong", what, err)
		}
	}
	f("an empty batch", w.s.Append(w.ctx, w.tok, 0, 1, nil))
	f("a batch of no records", w.s.Append(w.ctx, w.tok, 0, 0, []byte("x")))
	f("a batch that goes back", w.s.Append(w.ctx, w.tok, 2, 1, []byte("x")))
	f("a sequence of 2^53", w.s.Append(w.ctx, w.tok, 0, 1<<53, []byte("x")))
	apply := func(writes persistence.Writes) error { return w.s.Apply(w.ctx, w.tok, 0, 1, &writes) }
	f("an apply that goes back", w.s.Apply(w.ctx, w.tok, 2, 1, &persistence.Writes{}))
	f("rows without a move", w.s.Apply(w.ctx, w.tok, 0, 0, &persistence.Writes{Trades: []persistence.Trade{trade(1, 1, 1, 2)}}))
	f("an id of 0", apply(persistence.Writes{Trades: []persistence.Trade{trade(0, 1, 1, 2)}}))
	f("an id of 2^53", apply(persistence.Writes{Orders: []persistence.Order{order(1<<53, 1, 1)}}))
	open := order(1, 1, 1)
	open.Status = persistence.StatusActive
	f("an open order", apply(persistence.Writes{Orders: []persistence.Order{open}}))
	long := order(1, 1, 1)
	long.ClientID = strings.Repeat("x", 37)
	f("a client id of 37 bytes", apply(persistence.Writes{Orders: []persistence.Order{long}}))
	f("a nonce without a key", apply(persistence.Writes{Nonces: []persistence.Nonce{{}}}))
	f("a wallet without a name", apply(persistence.Writes{Wallets: []persistence.Wallet{{Account: 1}}}))
	f("too many rows", apply(persistence.Writes{Nonces: make([]persistence.Nonce, persistence.MaxRows+1)}))
	f("a negative offset", w.s.Trades(w.ctx, persistence.TradeQuery{Offset: -1}, func(*persistence.Trade) bool { return true }))
	w.wantWatermark(0)
	w.must(w.s.Apply(w.ctx, w.tok, 0, 1, nil)) // nothing to write is fine
	w.wantWatermark(1)
	most := make([]persistence.Nonce, persistence.MaxRows)
	for i := range most {
		most[i] = persistence.Nonce{Key: "key", Nonce: uint64(i + 1)}
	}
	w.must(w.s.Apply(w.ctx, w.tok, 1, 2, &persistence.Writes{Nonces: most}))
	w.wantNonces(map[string]uint64{"key": persistence.MaxRows})
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
				w.Fatalf("round %d: after %d the journal is %v, want %v", round, after, all, want[from:])
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
		w.Fatalf("fn was called %d times after it had said stop at 7", n)
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
		w.Fatal("the journal is not what was written")
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
	w.append(1, []byte("goes on"))
	all, err = w.read(20)
	w.must(err)
	if !slices.Equal(all, []batch{{20, 21, "goes on"}}) {
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
	w.backend.LoseBatch(w.T, w.s, 6) // the last: the head says 6
	_, err = w.read(4)
	w.is(err, persistence.ErrCorrupt)
	_, err = w.read(5)
	w.is(err, persistence.ErrCorrupt)
}

// load is a whole snapshot.
func (w *world) load(back int) (uint64, []byte, error) {
	seq, r, err := w.s.LoadSnapshot(w.ctx, back)
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return seq, data, err
}

func (w *world) wantSnapshot(back int, seq uint64, data []byte) {
	w.Helper()
	gotSeq, got, err := w.load(back)
	w.must(err)
	if gotSeq != seq || !bytes.Equal(got, data) {
		w.Fatalf("snapshot %d back is of %d with %d bytes, want %d with %d", back, gotSeq, len(got), seq, len(data))
	}
}

func (w *world) save(seq uint64, data []byte) {
	w.Helper()
	w.must(w.s.SaveSnapshot(w.ctx, w.tok, seq, bytes.NewReader(data)))
}

func (w *world) twoSnapshots() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.apply(10, nil)
	w.save(2, []byte("two"))
	w.wantSnapshot(0, 2, []byte("two"))
	_, _, err := w.s.LoadSnapshot(w.ctx, 1)
	w.is(err, persistence.ErrNoSnapshot)
	w.save(4, []byte("four"))
	w.save(6, []byte("six"))
	w.again(persistence.Retention{})
	w.wantSnapshot(0, 6, []byte("six"))
	w.wantSnapshot(1, 4, []byte("four"))
	w.refused(w.s.SaveSnapshot(w.ctx, w.tok, 5, strings.NewReader("five")))
	w.save(6, []byte("six again")) // replaces the one at the same sequence, not the one before
	w.wantSnapshot(0, 6, []byte("six again"))
	w.wantSnapshot(1, 4, []byte("four"))
	_, _, err = w.s.LoadSnapshot(w.ctx, 2)
	w.is(err, persistence.ErrNoSnapshot)

	// One that is pushed out while it is read says so.
	_, r, err := w.s.LoadSnapshot(w.ctx, 1)
	w.must(err)
	w.save(8, []byte("eight"))
	_, err = io.ReadAll(r)
	w.is(err, persistence.ErrNoSnapshot)
	w.must(r.Close())
}

func (w *world) snapshotAboveWatermark() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.refused(w.s.SaveSnapshot(w.ctx, w.tok, 1, strings.NewReader("x")))
	w.apply(5, nil)
	w.refused(w.s.SaveSnapshot(w.ctx, w.tok, 6, strings.NewReader("x")))
	_, _, err := w.s.LoadSnapshot(w.ctx, 0)
	w.is(err, persistence.ErrNoSnapshot)
	w.save(5, []byte("at the watermark"))
	w.wantSnapshot(0, 5, []byte("at the watermark"))
}

func (w *world) fencedSnapshot() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.apply(10, nil)
	w.save(1, []byte("one"))
	old := w.tok
	tok, _, err := w.s.Acquire(w.ctx, "another")
	w.must(err)
	w.is(w.s.SaveSnapshot(w.ctx, old, 2, strings.NewReader("two")), persistence.ErrFenced)
	// Fenced in the midst of an upload: read by read, the owner changes.
	r := readerFunc(func(p []byte) (int, error) {
		if tok, _, err = w.s.Acquire(w.ctx, "another"); err != nil {
			return 0, err
		}
		return copy(p, "half of an image"), io.EOF
	})
	w.is(w.s.SaveSnapshot(w.ctx, tok, 3, r), persistence.ErrFenced)
	w.wantSnapshot(0, 1, []byte("one"))
	w.must(w.s.SaveSnapshot(w.ctx, tok, 4, strings.NewReader("four")))
	w.wantSnapshot(0, 4, []byte("four"))
	w.wantSnapshot(1, 1, []byte("one"))
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (w *world) snapshotSizes() {
	w.open(persistence.Retention{})
	w.append(100, []byte("a hundred records"))
	w.apply(100, nil)
	rng := newRand(w.T, 2)
	var before []byte
	for i, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 5*256<<10 + 12345, 0} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		seq := uint64(i + 1)
		w.save(seq, data)
		w.wantSnapshot(0, seq, data)
		if i > 0 {
			w.wantSnapshot(1, seq-1, before)
		}
		before = data
	}
}

func (w *world) tornSnapshot() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.apply(10, nil)
	w.save(1, []byte("whole"))
	broken := errors.New("the state cannot be encoded")
	torn := io.MultiReader(bytes.NewReader(make([]byte, 700_000)), readerFunc(func([]byte) (int, error) { return 0, broken }))
	w.is(w.s.SaveSnapshot(w.ctx, w.tok, 2, torn), broken)
	ctx, cancel := context.WithCancel(w.ctx)
	cancelled := io.MultiReader(bytes.NewReader(make([]byte, 300_000)), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, io.EOF
	}))
	if err := w.s.SaveSnapshot(ctx, w.tok, 3, cancelled); err == nil {
		w.Fatal("no error although the context ended before the last chunk")
	}
	w.wantSnapshot(0, 1, []byte("whole"))
	_, _, err := w.s.LoadSnapshot(w.ctx, 1)
	w.is(err, persistence.ErrNoSnapshot)
	w.again(persistence.Retention{})
	w.wantSnapshot(0, 1, []byte("whole"))
	w.save(4, []byte("next"))
	w.wantSnapshot(1, 1, []byte("whole"))
}

func (w *world) damagedSnapshot() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.apply(10, nil)
	w.save(1, []byte("older"))
	w.save(2, make([]byte, 600_000))
	w.backend.DamageSnapshot(w.T, w.s)
	_, _, err := w.load(0)
	w.is(err, persistence.ErrCorrupt)
	w.wantSnapshot(1, 1, []byte("older"))
	w.save(2, []byte("made again"))
	w.wantSnapshot(0, 2, []byte("made again"))
	w.wantSnapshot(1, 1, []byte("older"))
}

func (w *world) watermark() {
	w.open(persistence.Retention{})
	first := &persistence.Writes{Trades: []persistence.Trade{trade(1, 1, 1, 2)}}
	w.must(w.s.Apply(w.ctx, w.tok, 0, 5, first))
	w.wantWatermark(5)
	w.must(w.s.Apply(w.ctx, w.tok, 0, 5, first)) // a retry
	other := &persistence.Writes{Trades: []persistence.Trade{trade(2, 1, 1, 2)}, Nonces: []persistence.Nonce{{Key: "k", Nonce: 1}}}
	w.must(w.s.Apply(w.ctx, w.tok, 3, 5, other)) // to 5 has landed: nothing is written
	w.is(w.s.Apply(w.ctx, w.tok, 0, 6, other), persistence.ErrGap)
	w.is(w.s.Apply(w.ctx, w.tok, 4, 6, other), persistence.ErrGap)
	w.is(w.s.Apply(w.ctx, w.tok, 6, 7, other), persistence.ErrGap)
	nonces := &persistence.Writes{Nonces: []persistence.Nonce{{Key: "k", Nonce: 7}}}
	w.is(w.s.Apply(w.ctx, w.tok, 4, 4, nonces), persistence.ErrGap)
	w.is(w.s.Apply(w.ctx, w.tok, 6, 6, nonces), persistence.ErrGap)
	w.wantNonces(map[string]uint64{})
	w.must(w.s.Apply(w.ctx, w.tok, 5, 5, nonces))
	w.wantNonces(map[string]uint64{"k": 7})
	w.wantWatermark(5)
	w.wantTrades(persistence.TradeQuery{}, first.Trades)
	w.again(persistence.Retention{})
	w.wantWatermark(5)
}

func (w *world) wantNonces(want map[string]uint64) {
	w.Helper()
	got := map[string]uint64{}
	w.must(w.s.Nonces(w.ctx, func(key string, nonce uint64) { got[key] = nonce }))
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Fatalf("nonces are %v, want %v", got, want)
	}
}

func (w *world) nonces() {
	w.open(persistence.Retention{})
	want := map[string]uint64{}
	put := func(list ...persistence.Nonce) {
		w.must(w.s.Apply(w.ctx, w.tok, 0, 0, &persistence.Writes{Nonces: list}))
		for _, n := range list {
			want[n.Key] = max(want[n.Key], n.Nonce)
		}
		w.wantNonces(want)
	}
	const top = ^uint64(0)
	put(persistence.Nonce{Key: "a", Nonce: 9}, persistence.Nonce{Key: "b", Nonce: 1<<53 + 1})
	put(persistence.Nonce{Key: "a", Nonce: 10}, persistence.Nonce{Key: "b", Nonce: 1 << 53})
	put(persistence.Nonce{Key: "a", Nonce: 9}, persistence.Nonce{Key: "b", Nonce: 1<<53 + 2})
	put(persistence.Nonce{Key: "c", Nonce: top - 1}, persistence.Nonce{Key: "c", Nonce: top}, persistence.Nonce{Key: "c", Nonce: 5})
	put(persistence.Nonce{Key: "c", Nonce: top - 10}, persistence.Nonce{Key: "d", Nonce: 0})
	put(persistence.Nonce{Key: "e", Nonce: 1234567890123}, persistence.Nonce{Key: "e", Nonce: 1234567890999})
	put(persistence.Nonce{Key: "e", Nonce: 1234567890998})
	var many []persistence.Nonce
	for i := range uint64(3000) {
		many = append(many, persistence.Nonce{Key: fmt.Sprintf("key-%d", i), Nonce: i * i})
	}
	put(many...)
	w.again(persistence.Retention{})
	w.wantNonces(want)
}

func (w *world) wallets() {
	w.open(persistence.Retention{})
	balance := func(text string) money.Balance {
		a, err := money.ParseAmount(text)
		w.must(err)
		return a.Balance()
	}
	alice := persistence.Wallet{Account: 7, Name: "alice.b-c_1", Seq: 1, Holdings: []persistence.Holding{
		{Currency: "BTC", Balance: balance("1.5"), Reserve: balance("0.25")},
		{Currency: "USD", Balance: money.Price(123456789).Times(987654321).Balance()},
	}}
	w.apply(1, &persistence.Writes{Wallets: []persistence.Wallet{alice}})
	w.wantWallet(alice)
	alice.Seq, alice.Holdings = 2, []persistence.Holding{{Currency: "USD", Balance: money.BalanceFromBits(1<<56-1, ^uint64(0)), Reserve: money.BalanceFromBits(0, 1)}}
	bob := persistence.Wallet{Account: 8, Name: "bob", Seq: 2}
	w.apply(1, &persistence.Writes{Wallets: []persistence.Wallet{alice, bob}})
	w.wantWallet(alice)
	w.wantWallet(bob)
	_, err := w.backend.Wallet(w.T, w.s, 9, "nobody")
	w.is(err, persistence.ErrNotFound)
	w.again(persistence.Retention{})
	w.wantWallet(alice)
}

func (w *world) wantWallet(want persistence.Wallet) {
	w.Helper()
	got, err := w.backend.Wallet(w.T, w.s, want.Account, want.Name)
	w.must(err)
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		w.Fatalf("the wallet is %+v, want %+v", got, want)
	}
}

// trade is one with plain values.
func trade(id uint64, pair uint16, taker, maker uint32) persistence.Trade {
	return persistence.Trade{
		ID: id, Pair: pair, TakerSide: matching.Side(1 + id%2), Price: money.Price(id * 1000), Amount: money.Amount(id * 7),
		TimeUs: 1_700_000_000_000_000 + int64(id), Taker: taker, Maker: maker, TakerOrder: id + 1, MakerOrder: id + 2,
	}
}

// order is a closed one with plain values.
func order(id uint64, account uint32, pair uint16) persistence.Order {
	return persistence.Order{
		ID: id, Account: account, Pair: pair, Side: matching.Side(1 + id%2), Status: persistence.StatusDone,
		Price: money.Price(id * 1000), Amount: money.Amount(id * 7), TimeUs: 1_700_000_000_000_000 + int64(id),
		ClosedUs: 1_700_000_000_500_000 + int64(id), ClosedSeq: id,
	}
}

// readerOf reads that many zeros.
func readerOf(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
