package actors

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// A place stores the data of one engine. A call opens the store there, with the data at the
// previous store's close.
type place func() persistence.Store

// places makes new and empty places in one kind of store.
type places func(testing.TB) place

// stores are the kinds of stores that tests of engines run on: an engine's promises do not depend
// on its store. A proof adds others to that in memory.
var stores = map[string]places{"memory": memoryPlaces}

// forEachStore runs a test once on each kind of store.
func forEachStore(t *testing.T, test func(t *testing.T, fresh places)) {
	t.Helper()
	for name, fresh := range stores {
		t.Run(name, func(t *testing.T) { test(t, fresh) })
	}
}

// onEachStore is forEachStore with a bubble for each.
func onEachStore(t *testing.T, test func(t *testing.T, fresh places)) {
	t.Helper()
	forEachStore(t, func(t *testing.T, fresh places) {
		ownPools(t)
		synctest.Test(t, func(t *testing.T) { test(t, fresh) })
	})
}

// bubble runs a test with a clock of its own, which advances when all its goroutines wait.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	ownPools(t)
	synctest.Test(t, test)
}

// ownPools isolates a test's pools: their timers and channels are of one bubble.
func ownPools(t *testing.T) {
	EmptyPools()
	t.Cleanup(EmptyPools)
}

// A gate is a store whose calls a test can hold back, or answer wrongly.
type gate struct {
	persistence.Store
	mu          sync.Mutex
	open        *sync.Cond
	holding     bool
	passing     int           // number of next appends that are not held
	waiting     int           // appends that are held
	deadline    time.Time     // of the newest append
	deaf        bool          // held appends ignore their context, as an embedded store's
	appendErr   error         // instead of appending
	takes       time.Duration // duration of each append
	tries       [][]byte      // batches of all tries to append
	applying    bool          // projections are held
	checkErr    error         // instead of confirming the owner
	saveErr     error         // instead of saving a snapshot
	saving      chan struct{} // a snapshot waits for it, if not nil
	saves       int           // snapshots that were tried
	trimmed     []uint64
	holdLookups bool  // lookups of references are held
	heldLookups int   // number of them
	lookupErr   error // instead of a lookup
}

func newGate(s persistence.Store) *gate {
	g := &gate{Store: s}
	g.open = sync.NewCond(&g.mu)
	return g
}

func (g *gate) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	g.open.Broadcast()
}

func (g *gate) Append(ctx context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
	g.mu.Lock()
	g.deadline, _ = ctx.Deadline()
	g.tries = append(g.tries, slices.Clone(batch))
	g.waiting++
	if passes := g.passing > 0; passes {
		g.passing--
	} else {
		for g.holding && (g.deaf || ctx.Err() == nil) {
			g.open.Wait()
		}
	}
	g.waiting--
	err, takes := g.appendErr, g.takes
	g.mu.Unlock()
	if time.Sleep(takes); err != nil {
		return err
	}
	return g.Store.Append(ctx, tok, prev, next, batch)
}

func (g *gate) Check(ctx context.Context, tok persistence.Token) error {
	g.mu.Lock()
	err := g.checkErr
	g.mu.Unlock()
	if err == nil {
		err = g.Store.Check(ctx, tok)
	}
	return err
}

func (g *gate) Apply(ctx context.Context, tok persistence.Token, from, to uint64,
	w *persistence.Writes) error {
	g.mu.Lock()
	for g.applying {
		g.open.Wait()
	}
	g.mu.Unlock()
	return g.Store.Apply(ctx, tok, from, to, w)
}

func (g *gate) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64,
	r io.Reader) error {
	g.mu.Lock()
	g.saves++
	err, wait := g.saveErr, g.saving
	g.mu.Unlock()
	if wait != nil {
		<-wait
	}
	if err != nil {
		return err
	}
	return g.Store.SaveSnapshot(ctx, tok, seq, r)
}

func (g *gate) Trim(ctx context.Context, tok persistence.Token, upTo uint64) error {
	err := g.Store.Trim(ctx, tok, upTo)
	g.set(func() { g.trimmed = append(g.trimmed, upTo) }) // it is done
	return err
}

func (g *gate) Reference(ctx context.Context, watermark uint64,
	reference string) (persistence.Deposit, error) {
	g.mu.Lock()
	g.heldLookups++
	for g.holdLookups {
		g.open.Wait()
	}
	g.heldLookups--
	err := g.lookupErr
	g.mu.Unlock()
	if err != nil {
		return persistence.Deposit{}, err
	}
	return g.Store.Reference(ctx, watermark, reference)
}

// lookups returns the number of lookups of references that wait at the gate.
func (g *gate) lookups() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.heldLookups
}

// held reports whether an append waits at the gate.
func (g *gate) held() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holding && g.waiting > 0
}

// hold keeps appends at the gate until letGo.
func (g *gate) hold()  { g.set(func() { g.holding, g.tries = true, nil }) }
func (g *gate) letGo() { g.set(func() { g.holding = false }) }

// lift lets all calls through.
func (g *gate) lift() { g.set(func() { g.holding, g.appendErr, g.applying = false, nil, false }) }

// eventually waits for a condition that other goroutines of the bubble produce.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for synctest.Wait(); !condition(); synctest.Wait() {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// gated is an engine behind a gate, with a funded account.
type gated struct {
	*gate
	t     *testing.T
	at    place
	o     Options
	e     *Engine
	key   *directory.Key
	nonce uint64 // the last that was used
}

// newGated starts an engine with bounds that a slow machine does not reach, unless change sets
// others. So a test may hold commands as long as it likes.
func newGated(t *testing.T, fresh places, change func(*Options)) *gated {
	t.Helper()
	g := &gated{t: t, at: fresh(t)}
	g.gate = newGate(g.at())
	g.o = testOptions(g.gate)
	g.o.Timing.Request, g.o.Timing.Stall, g.o.Timing.OwnerStale = time.Minute, time.Minute,
		time.Minute
	if change != nil {
		change(&g.o)
	}
	g.e = start(t, g.o)
	t.Cleanup(func() { g.lift() }) // an engine that a failed test leaves can end then
	g.key = fund(t, g.e, "ann", map[string]money.Amount{"BTC": 10 * coin, "USD": 1000 * coin})
	g.e.probeWallet(g.key.Account, func(*wallet) {}) // it has started
	return g
}

// onGated runs a test with an engine behind a gate on each store, and ends the engine.
func onGated(t *testing.T, change func(*Options), test func(t *testing.T, g *gated)) {
	t.Helper()
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, change)
		test(t, g)
		g.end()
	})
}

// end compares both sides of the engine once abandoned commands have completed, and stops the
// engine.
func (g *gated) end() {
	g.t.Helper()
	g.lift()
	eventually(g.t, "nothing is in flight", g.e.quiet)
	if err := g.e.VerifyAtRest(); err != nil {
		g.t.Error(err)
	}
	stop(g.t, g.e)
	g.close()
}

// crash ends the engine as a kill would.
func (g *gated) crash() {
	g.t.Helper()
	g.lift()
	g.e.Abandon()
	g.close()
}

func (g *gated) close() {
	g.t.Helper()
	succeeds(g.t, g.Store.Close())
}

// again starts the next engine on the store of the last one.
func (g *gated) again() {
	g.t.Helper()
	g.gate = newGate(g.at())
	g.o.Store = g.gate
	g.e = start(g.t, g.o)
	g.key = g.e.Key([]byte(g.key.Public))
}

func (g *gated) sell(amount money.Amount) *OrderRequest {
	return &OrderRequest{Pair: g.e.Pairs()[0], Side: trading.Sell, Price: 100e8, Amount: amount}
}

func (g *gated) buy(price money.Price, amount money.Amount) *OrderRequest {
	return &OrderRequest{Pair: g.e.Pairs()[0], Side: trading.Buy, Price: price, Amount: amount}
}

// placing and cancelling are commands of the account with its next nonce, for outcome or begin.
func (g *gated) placing(w *OrderRequest) func() (*Command, error) {
	g.nonce++
	nonce := g.nonce
	return func() (*Command, error) { return g.e.Place(g.key, nonce, w) }
}

func (g *gated) cancelling(order uint64) func() (*Command, error) {
	g.nonce++
	nonce := g.nonce
	return func() (*Command, error) { return g.e.Cancel(g.key, nonce, order) }
}

// depositing returns a deposit of some BTC to ann, under a new reference each time.
func (g *gated) depositing() func() (*Command, error) {
	g.nonce++
	reference := fmt.Sprint("reference ", g.nonce)
	return func() (*Command, error) {
		_, err := g.e.Deposit("test", "ann", "BTC", coin, reference)
		return nil, err
	}
}

// asking returns a read that is signed with the nonce if there is a key.
func (g *gated) asking(q committed.Question, key *directory.Key, nonce uint64) func() (*Command,
	error) {
	return func() (*Command, error) { return nil, g.e.Ask(q, key, nonce) }
}

// rest places an order that rests, and returns its id.
func (g *gated) rest(w *OrderRequest) uint64 {
	g.t.Helper()
	c := must[*Command](g.t)(g.placing(w)())
	defer c.Free()
	if c.Outcome() != Accepted || !c.Record().Order.Rests() {
		g.t.Fatalf("an order that should rest: %+v", c.Record())
	}
	return c.Record().Order.ID
}

const accepted = "accepted"

// outcome runs a command and returns its end: accepted, "refused for" a reason, or an error's text.
func outcome(run func() (*Command, error)) string {
	c, err := run()
	switch {
	case err != nil:
		return err.Error()
	case c == nil:
		return accepted
	}
	defer c.Free()
	if c.Outcome() == Refused {
		return refusedFor(c.Record().Refusal.Reason)
	}
	return accepted
}

func refusedFor(reason uint8) string { return fmt.Sprint("refused for ", reason) }

// ends wants a given outcome of a command.
func (g *gated) ends(what string, run func() (*Command, error), want string) {
	g.t.Helper()
	wantOutcome(g.t, what, outcome(run), want)
}

// wantOutcome compares a client's outcome with the expected one.
func wantOutcome(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// turnedAway wants an error of admission and no trace of the command: it holds no slot, and its
// nonce stays unused.
func (g *gated) turnedAway(what string, run func() (*Command, error), want error) {
	g.t.Helper()
	before, own := g.e.inFlight.Load(), g.key.Account.InFlight.Load()
	g.ends(what, run, want.Error())
	if after, ownAfter := g.e.inFlight.Load(),
		g.key.Account.InFlight.Load(); after != before || ownAfter != own {
		g.t.Errorf("%s: %d are in flight instead of %d, %d of the account instead of %d", what,
			after, before, ownAfter, own)
	}
	g.nonce--
}

// begin runs a command that the gate holds, and returns its end.
func (g *gated) begin(run func() (*Command, error)) <-chan string {
	done := make(chan string, 1)
	go func() { done <- outcome(run) }()
	return done
}

// silent wants no outcome, however long it waits.
func silent(t *testing.T, what string, done <-chan string) {
	t.Helper()
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
	select {
	case s := <-done:
		t.Fatalf("%s is known before it is durable: %s", what, s)
	default:
	}
}

// inMailbox waits until the account's wallet has n commands in flight.
func (g *gated) inMailbox(n int) { g.decided(g.key, n) }

func (g *gated) decided(key *directory.Key, n int) {
	g.t.Helper()
	eventually(g.t, "the wallet has decided", func() bool {
		var out int
		g.e.probeWallet(key.Account, func(w *wallet) { out = w.inFlight() })
		return out >= n
	})
}

// heldCommands are commands of the account that are held, in the order of their arrival at the
// wallet.
type heldCommands struct {
	g    *gated
	ends []<-chan string
}

// send begins a command of the account, after the previous one.
func (f *heldCommands) send(run func() (*Command, error)) {
	f.g.t.Helper()
	f.ends = append(f.ends, f.g.begin(run))
	f.g.inMailbox(len(f.ends))
}

// want opens the gate and wants all ends.
func (f *heldCommands) want(what, end string) {
	f.g.t.Helper()
	f.g.letGo()
	for i, done := range f.ends {
		if got := <-done; got != end {
			f.g.t.Errorf("%s, number %d: %s, want %s", what, i+1, got, end)
		}
	}
}

// funds returns an account's committed funds of a currency: "balance/reserve".
func (g *gated) funds(account uint32, currency uint16) string {
	g.t.Helper()
	r := &committed.Wallet{Account: account}
	succeeds(g.t, g.e.Ask(r, nil, 0))
	for _, h := range r.Holdings {
		if h.Currency == currency {
			return h.Balance.String() + "/" + h.Reserve.String()
		}
	}
	return "0/0"
}

// codeOf returns a pending withdrawal's code, as it would be mailed; "": not pending.
func codeOf(t ender, e *Engine, id uint64) string {
	t.Helper()
	return must[string](t)(askCode(e, id))
}

func askCode(e *Engine, id uint64) (string, error) {
	r := &committed.PendingWithdrawal{ID: id}
	if err := e.Ask(r, nil, 0); err != nil {
		return "", err
	}
	if !r.Found {
		return "", nil
	}
	return e.Code(&r.Withdrawal), nil
}

// setPatience sets the wait of requests from now on.
func (e *Engine) setPatience(d time.Duration) {
	e.opts.Timing.Request = d
	committed.SetPatience(e.Door, d)
}
