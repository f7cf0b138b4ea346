package actors

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/persistence"
)

// A gate is a store whose calls can be held back, or answered wrongly, by a test.
type gate struct {
	persistence.Store
	mu        sync.Mutex
	open      *sync.Cond
	holding   bool
	waiting   int           // appends that are held
	deaf      bool          // held appends do not look at their context, as an embedded store's
	appendErr error         // instead of appending
	saveErr   error         // instead of saving a snapshot
	saving    chan struct{} // a snapshot waits for it, if not nil
	trimmed   []uint64
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

func (g *gate) Append(ctx context.Context, tok persistence.Token, prev, next uint64, batch []byte) error {
	g.mu.Lock()
	g.waiting++
	for g.holding && (g.deaf || ctx.Err() == nil) {
		g.open.Wait()
	}
	g.waiting--
	err := g.appendErr
	g.mu.Unlock()
	if err != nil {
		return err
	}
	return g.Store.Append(ctx, tok, prev, next, batch)
}

func (g *gate) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64, r io.Reader) error {
	g.mu.Lock()
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
	g.set(func() { g.trimmed = append(g.trimmed, upTo) })
	return g.Store.Trim(ctx, tok, upTo)
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

func (g *gate) held() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holding && g.waiting > 0
}

type gated struct {
	*gate
	t   *testing.T
	dir string
	o   Options
	e   *Engine
	key *Key
}

// newGated is an engine behind a gate, with a funded account.
func newGated(t *testing.T, change func(*Options)) *gated {
	g := &gated{t: t, dir: t.TempDir()}
	g.gate = newGate(openPebble(t, g.dir))
	g.o = testOptions(g.gate)
	if change != nil {
		change(&g.o)
	}
	g.e = start(t, g.o)
	g.key = fund(t, g.e, "ann", map[string]money.Amount{"BTC": 10 * coin, "USD": 1000 * coin})
	return g
}

func (g *gated) end() {
	g.t.Helper()
	g.set(func() { g.holding, g.appendErr = false, nil })
	stop(g.t, g.e)
	if err := g.Store.Close(); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gated) sell(amount money.Amount) *OrderWish {
	return &OrderWish{Pair: g.e.Pairs()[0], Side: matching.Sell, Price: 100e8, Amount: amount}
}

// begin runs a command that is expected to be held, and returns its end.
func (g *gated) begin(run func() (*Command, error)) <-chan string {
	done := make(chan string, 1)
	go func() {
		c, err := run()
		switch {
		case err != nil:
			done <- err.Error()
		case c.Outcome() == Refused:
			done <- "refused for " + string('0'+rune(c.Record().Refusal.Reason))
		default:
			done <- "accepted"
		}
	}()
	return done
}

func silent(t *testing.T, what string, done <-chan string) {
	t.Helper()
	select {
	case s := <-done:
		t.Fatalf("%s is known before it is durable: %s", what, s)
	case <-time.After(50 * time.Millisecond): // it has no reason to come, however long one waits
	}
}

func (g *gated) inMailbox(n int) {
	g.t.Helper()
	eventually(g.t, "the wallet has decided", func() bool {
		var out int
		g.e.probe(g.key.Account.pid, func() { out = g.key.Account.wallet.tickets.out() })
		return out >= n
	})
}

func TestNothingIsKnownBeforeItIsDurable(t *testing.T) {
	g := newGated(t, nil)
	g.set(func() { g.holding = true })
	order := g.begin(func() (*Command, error) { return g.e.Place(g.key, 10, g.sell(9*coin)) })
	eventually(t, "the order is at the store", g.held)
	// These depend on the order: on what it reserved, and on its nonce.
	funds := g.begin(func() (*Command, error) { return g.e.Place(g.key, 11, g.sell(5*coin)) })
	g.inMailbox(2)
	nonce := g.begin(func() (*Command, error) { return g.e.Cancel(g.key, 10, 99) })
	g.inMailbox(3)
	// A read with a nonce that only a refusal has used.
	read := g.begin(func() (*Command, error) { return nil, g.e.Ask(NewRead(ReadWallet), g.key, 11) })
	silent(t, "an order", order)
	silent(t, "a refusal for funds", funds)
	silent(t, "a refusal for a nonce", nonce)
	silent(t, "a refused read", read)
	// A book shows what is committed.
	depth := NewRead(ReadLevels)
	depth.Pair, depth.LimitBuy, depth.LimitSell = 1, 10, 10
	if err := g.e.Ask(depth, nil, 0); err != nil || len(depth.Depth.SellLevels) != 0 {
		t.Fatalf("the book shows %v, %v", depth.Depth.SellLevels, err)
	}
	g.set(func() { g.holding = false })
	for what, c := range map[string]struct {
		done <-chan string
		want string
	}{"order": {order, "accepted"}, "funds": {funds, "refused for 2"}, "nonce": {nonce, "refused for 1"}, "read": {read, ErrNonce.Error()}} {
		if got := <-c.done; got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
	// And whoever was answered finds it: the committed side had the batch before the answer went out.
	r := NewRead(ReadWallet)
	if err := g.e.Ask(r, g.key, 12); err != nil || r.Holdings[0].Reserve.String() != "9" {
		t.Errorf("after the answer the wallet is %+v, %v", r.Holdings, err)
	}
	g.end()
}

func TestAClientIDIsFreeWhenTheOrderThatTookItWasRefused(t *testing.T) {
	g := newGated(t, func(o *Options) { o.Limits.OpenOrdersPerBook = 1 })
	c := must[*Command](t)(g.e.Place(g.key, 1, g.sell(coin)))
	c.Free()
	id, _ := event.NewClientID("mine")
	g.set(func() { g.holding = true })
	first, second := g.sell(coin), g.sell(coin)
	first.ClientID, second.ClientID = id, id
	second.Pair = g.e.Pairs()[1]
	one := g.begin(func() (*Command, error) { return g.e.Place(g.key, 2, first) }) // its book is full
	eventually(t, "the refusal is at the store", g.held)
	two := g.begin(func() (*Command, error) { return g.e.Place(g.key, 3, second) })
	g.inMailbox(2)
	g.set(func() { g.holding = false })
	if a, b := <-one, <-two; a != "refused for 7" || b != "accepted" {
		t.Fatalf("first: %s, second: %s", a, b)
	}
	if err := g.e.VerifyAtRest(); err != nil {
		t.Fatal(err)
	}
	g.end()
}

func TestARevokedKeyIsRefusedByItsWallet(t *testing.T) {
	g := newGated(t, nil)
	must[Admin](t)(g.e.RevokeKey(g.key.Public))
	if g.e.Key([]byte(g.key.Public)) != nil {
		t.Error("the directory still has the key")
	}
	c := must[*Command](t)(g.e.Place(g.key, 1, g.sell(coin))) // a handler had looked it up before
	if c.Outcome() != Refused || c.Record().Refusal.Reason != event.RefusedKey {
		t.Errorf("an order: %+v", c.Record())
	}
	if err := g.e.Ask(NewRead(ReadWallet), g.key, 2); !errors.Is(err, ErrKeyRevoked) {
		t.Errorf("a read: %v", err)
	}
	g.end()
}

func TestAnEngineThatCannotGoOnEndsAndLeavesOutcomesOpen(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		deaf bool
		want error
	}{
		"fenced":             {err: persistence.ErrFenced, want: persistence.ErrFenced},
		"gap":                {err: persistence.ErrGap, want: persistence.ErrGap},
		"invalid":            {err: persistence.ErrInvalid, want: persistence.ErrInvalid},
		"no answer":          {err: errors.New("refused"), want: ErrStalled},
		"never even returns": {deaf: true, want: ErrStalled},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t, func(o *Options) {
				o.Timing.StallMax, o.Timing.Projection = 200*time.Millisecond, 10*time.Millisecond
				o.Timing.Request = time.Hour
			})
			g.set(func() { g.holding, g.deaf = true, c.deaf })
			done := g.begin(func() (*Command, error) { return g.e.Place(g.key, 1, g.sell(coin)) })
			held := g.begin(func() (*Command, error) { return g.e.Place(g.key, 1, g.sell(coin)) })
			eventually(t, "an order is at the store", g.held)
			if !c.deaf {
				g.set(func() { g.holding, g.appendErr = false, c.err })
			}
			<-g.e.Dead()
			if !errors.Is(g.e.Err(), c.want) {
				t.Errorf("the engine ends with %v, want %v", g.e.Err(), c.want)
			}
			for _, d := range []<-chan string{done, held} {
				if got := <-d; got != ErrTimeout.Error() {
					t.Errorf("an order in flight is told %q", got)
				}
			}
			if _, err := g.e.Place(g.key, 9, g.sell(coin)); !errors.Is(err, ErrStopping) {
				t.Errorf("a new order is told %v", err)
			}
			g.set(func() { g.holding, g.appendErr = false, nil })
			g.e.Abandon()
			if err := g.Store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStopGivesUpInTimeAndIsSafe(t *testing.T) {
	g := newGated(t, nil)
	g.set(func() { g.holding, g.deaf = true, true })
	done := g.begin(func() (*Command, error) { return g.e.Place(g.key, 1, g.sell(coin)) })
	eventually(t, "the order is at the store", g.held)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := g.e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the stop ends with %v", err)
	}
	if got := <-done; got != ErrTimeout.Error() {
		t.Errorf("an order in flight is told %q", got)
	}
	g.set(func() { g.holding = false }) // late, the append lands: it happened, and nobody was told
	<-g.e.journal.stopped
	if err := g.Store.Close(); err != nil {
		t.Fatal(err)
	}
	g.gate = newGate(openPebble(t, g.dir))
	g.o.Store = g.gate
	g.e = start(t, g.o)
	r := NewRead(ReadWallet)
	r.Account = 1
	if err := g.e.Ask(r, nil, 0); err != nil || r.Holdings[0].Reserve.String() != "1" {
		t.Errorf("the wallet after it: %+v, %v", r.Holdings, err)
	}
	g.end()
}

func TestSnapshotsAreKeptTwiceAndTrimOnlyBelowTheOlder(t *testing.T) {
	g := newGated(t, func(o *Options) {
		o.Snapshot = SnapshotPolicy{MinRecords: 5, MaxRecords: 5}
		o.Timing.Projection = time.Millisecond
	})
	for nonce := uint64(1); nonce <= 60; nonce++ {
		must[*Command](t)(g.e.Place(g.key, nonce, g.sell(1e5))).Free()
	}
	stop(t, g.e)
	ctx := context.Background()
	newest, _, err := g.LoadSnapshot(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	older, image, err := g.LoadSnapshot(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	image.Close()
	if last := g.trimmed[len(g.trimmed)-1]; last != older || older >= newest {
		t.Fatalf("snapshots at %d and %d, trimmed up to %d", older, newest, last)
	}
	if err := g.Store.Close(); err != nil {
		t.Fatal(err)
	}
	// With the newest one unreadable the older one and the journal after it give the same state.
	for _, damaged := range []bool{false, true} {
		s := openPebble(t, g.dir)
		g.o.Store = s
		if damaged {
			g.o.Store = unreadable{s}
		}
		e := start(t, g.o)
		r := NewRead(ReadWallet)
		r.Account = 1
		if err := e.Ask(r, nil, 0); err != nil || r.Holdings[0].Reserve.String() != "0.06" {
			t.Errorf("damaged %v: %+v, %v", damaged, r.Holdings, err)
		}
		e.Abandon()
		s.Close()
	}
}

// unreadable is a store whose newest snapshot is damaged.
type unreadable struct{ persistence.Store }

func (u unreadable) LoadSnapshot(ctx context.Context, back int) (uint64, io.ReadCloser, error) {
	seq, r, err := u.Store.LoadSnapshot(ctx, back)
	if back == 0 && err == nil {
		r.Close()
		r = io.NopCloser(bytes.NewReader([]byte("exchange state\n\x01 and then nothing of use")))
	}
	return seq, r, err
}

func TestAFailedSnapshotHoldsUpNothingAndIsTriedAgain(t *testing.T) {
	g := newGated(t, func(o *Options) {
		o.Snapshot = SnapshotPolicy{MinRecords: 3, MaxRecords: 3}
		o.Timing.Projection = time.Millisecond
	})
	wait := make(chan struct{})
	g.set(func() { g.saving, g.saveErr = wait, errors.New("no room") })
	for nonce := uint64(1); nonce <= 10; nonce++ {
		must[*Command](t)(g.e.Place(g.key, nonce, g.sell(1e5))).Free()
	}
	if err := g.e.Ask(NewRead(ReadHistory), nil, 0); err != nil {
		t.Errorf("history while a snapshot hangs: %v", err)
	}
	g.set(func() { g.saving, g.saveErr = nil, nil })
	close(wait)
	eventually(t, "a snapshot is taken after all", func() bool {
		_, r, err := g.LoadSnapshot(context.Background(), 0)
		if err == nil {
			r.Close()
			return true
		}
		g.e.root.Send(g.e.fold, tick{})
		return false
	})
	g.set(func() { g.saveErr = errors.New("no room") })
	must[*Command](t)(g.e.Place(g.key, 11, g.sell(1e5))).Free()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := g.e.Stop(ctx); err == nil {
		t.Error("a stop without its snapshot is called orderly")
	}
	if err := g.Store.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRecoveryRefusesAStoreThatHasLostWrites(t *testing.T) {
	g := newGated(t, nil)
	must[*Command](t)(g.e.Place(g.key, 1, g.sell(coin))).Free()
	g.end()
	for name, watermark := range map[string]uint64{"below the snapshot": 0, "above the journal": 1 << 40} {
		s := openPebble(t, g.dir)
		g.o.Store = liar{s, watermark}
		if _, err := Start(context.Background(), g.o); !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("a watermark %s: %v", name, err)
		}
		s.Close()
	}
}

type liar struct {
	persistence.Store
	watermark uint64
}

func (l liar) Watermark(context.Context) (uint64, error) { return l.watermark, nil }

func TestACurrencyThatIsHeldMustBeConfigured(t *testing.T) {
	g := newGated(t, nil)
	g.end()
	s := openPebble(t, g.dir)
	defer s.Close()
	g.o.Store = s
	g.o.Currencies, g.o.Pairs = []Currency{{Code: "BTC"}, {Code: "EUR"}}, g.o.Pairs[1:]
	if _, err := Start(context.Background(), g.o); !errors.Is(err, ErrConfig) {
		t.Errorf("without USD: %v", err)
	}
}

func TestNoncesOfReadsOutliveAStop(t *testing.T) {
	g := newGated(t, nil)
	if err := g.e.Ask(NewRead(ReadWallet), g.key, 77); err != nil {
		t.Fatal(err)
	}
	g.end()
	s := openPebble(t, g.dir)
	g.gate = newGate(s)
	g.o.Store = g.gate
	g.e = start(t, g.o)
	key := g.e.Key([]byte(g.key.Public))
	if err := g.e.Ask(NewRead(ReadWallet), key, 77); !errors.Is(err, ErrNonce) {
		t.Errorf("the same nonce again: %v", err)
	}
	if err := g.e.Ask(NewRead(ReadWallet), key, 78); err != nil {
		t.Errorf("the next nonce: %v", err)
	}
	g.end()
}

func TestOrdersAreRefusedWhileTheCommittedSideOrTheStoreIsTooFarBehind(t *testing.T) {
	g := newGated(t, nil)
	g.e.committed.unsaved.Add(int64(g.o.Limits.ProjectionLag) + 1)
	if _, err := g.e.Place(g.key, 1, g.sell(coin)); !errors.Is(err, ErrBehind) {
		t.Errorf("with too many unsaved rows: %v", err)
	}
	g.e.committed.unsaved.Add(-int64(g.o.Limits.ProjectionLag) - 1)
	g.e.released.Add(uint64(g.o.Limits.FoldLag) + 1)
	if _, err := g.e.Place(g.key, 1, g.sell(coin)); !errors.Is(err, ErrBehind) {
		t.Errorf("with the fold behind: %v", err)
	}
	g.e.released.Add(-uint64(g.o.Limits.FoldLag) - 1)
	must[*Command](t)(g.e.Place(g.key, 1, g.sell(coin))).Free()
	g.end()
}
