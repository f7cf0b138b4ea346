package conformance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"exchange/persistence"
)

// A Backend is one new and empty place for data. Its store is closed and opened again.
type Backend interface {
	// Open opens the store; the suite closes it.
	Open(t *testing.T, r persistence.Retention) persistence.Store
	// DamageBatch changes a byte of the batch that ends at next, without the store's knowledge.
	DamageBatch(t *testing.T, s persistence.Store, next uint64)
	// LoseBatch removes it.
	LoseBatch(t *testing.T, s persistence.Store, next uint64)
	// DamageSnapshot changes a byte in the last chunk of the newest image.
	DamageSnapshot(t *testing.T, s persistence.Store)
}

// Run runs the suite; fresh makes a new place for each of its parts.
func Run(t *testing.T, fresh func(t *testing.T) Backend) {
	f := runner(t, fresh)
	f("a new store is empty", (*world).emptyStore)
	f("only the newest owner appends", (*world).fencedAppend)
	f("beats show that the owner lives", (*world).beats)
	f("an engine that is given back has no owner", (*world).release)
	f("a retry of the same bytes is one success", (*world).retry)
	f("an append that does not follow the end is a gap", (*world).gap)
	f("meaningless input is refused", (*world).meaningless)
	f("the journal is read in order from any sequence", (*world).replay)
	f("a batch of 500 kB and a journal of several pages are read back", (*world).largeJournal)
	f("a trimmed journal starts after the trimmed part", (*world).trim)
	f("a damaged or missing batch is detected", (*world).damage)
	f("a restored journal begins at the given sequence", (*world).begin)
	f("only an empty store begins", (*world).beginRefused)
	f("the two newest snapshots are kept", (*world).twoSnapshots)
	f("a snapshot above the watermark is refused", (*world).snapshotAboveWatermark)
	f("a snapshot of a fenced owner is refused", (*world).fencedSnapshot)
	f("snapshots of every size come back whole", (*world).snapshotSizes)
	f("a torn upload is never visible", (*world).tornSnapshot)
	f("an upload is paused after each chunk", (*world).pacedSnapshot)
	f("a damaged snapshot is detected", (*world).damagedSnapshot)
	f("the watermark moves once for one apply", (*world).watermark)
	f("nonces only grow", (*world).nonces)
	f("all wallets are found, and replaced as a whole", (*world).allWallets)
	f("every field of every row comes back", (*world).fields)
	f("one order is found by its id", (*world).oneOrder)
	f("the orders with a client id are found", (*world).clientOrders)
	f("client ids are removed with their orders, and not before", (*world).clientOrdersTrimmed)
	f("lists equal the model under every filter", (*world).lists)
	f("lists equal the model under every filter and retention", (*world).trimmedLists)
	f("rows end in order however they come", (*world).anyOrder)
	f("a deposit is found by its reference, also after trims", (*world).references)
	f("a missing reference is proved by the watermark", (*world).noReference)
	f("a withdrawal is closed once", (*world).withdrawnOnce)
	f("retention keeps the newest candles", (*world).candleRetention)
	f("a long offset is skipped exactly", (*world).longOffset)
	f("a long query is paused, a short one is not", (*world).pacedQueries)
	f("a list is stable while it is written", (*world).stable)
	f("all methods may be used concurrently", (*world).concurrent)
}

// RunCut runs the tests of a store that splits an Apply into several steps, so that a crash can
// leave a part of it. The same rows then come again, perhaps split differently. A store that writes
// an Apply in one step learns from the watermark alone that it has the rows.
func RunCut(t *testing.T, fresh func(t *testing.T) Backend) {
	f := runner(t, fresh)
	f("existing rows are not written again", (*world).writtenAgain)
	f("existing rows do not count again for retention", (*world).retentionAgain)
}

// runner runs one part of a suite.
func runner(t *testing.T, fresh func(t *testing.T) Backend) func(name string, test func(*world)) {
	return func(name string, test func(*world)) {
		t.Run(name, func(t *testing.T) {
			test(&world{T: t, ctx: t.Context(), fresh: fresh, backend: fresh(t)})
		})
	}
}

// world is one test's surroundings. Its helpers end the test on an error.
type world struct {
	*testing.T
	ctx     context.Context
	fresh   func(t *testing.T) Backend
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
	w.tok, w.seq, err = w.s.Acquire(w.ctx, persistence.Claim{Owner: "conformance"})
	w.must(err)
}

// again closes and opens the store. The next owner acquires it.
func (w *world) again(r persistence.Retention) {
	w.Helper()
	before := w.beat().Token.Epoch()
	w.must(w.s.Close())
	w.open(r)
	if now := w.tok.Epoch(); now != before+1 {
		w.Fatalf("the owner has epoch %d, and the one before had %d", now, before)
	}
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

// refused wants an error other than the listed ones.
func (w *world) refused(err error) {
	w.Helper()
	if err == nil {
		w.Fatal("no error")
	}
	for _, named := range []error{persistence.ErrFenced, persistence.ErrGap, persistence.ErrCorrupt,
		persistence.ErrNoSnapshot, persistence.ErrNotFound} {
		if errors.Is(err, named) {
			w.Fatalf("error is %v, want a plain refusal", err)
		}
	}
}

// apply moves the watermark from its current value.
func (w *world) apply(by uint64, writes *persistence.Writes) {
	w.Helper()
	from, err := w.s.Watermark(w.ctx)
	w.must(err)
	w.must(w.s.Apply(w.ctx, w.tok, from, from+by, writes))
}

// newRand returns a source of random numbers; CONFORMANCE_SEED replays or varies it.
func newRand(t *testing.T, stream uint64) *rand.Rand {
	seed := uint64(1)
	if text := os.Getenv("CONFORMANCE_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CONFORMANCE_SEED=%q is not a number", text)
		}
		seed = n
	}
	t.Logf("CONFORMANCE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, stream))
}

// readerOf returns a reader of that many zeros.
func readerOf(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
