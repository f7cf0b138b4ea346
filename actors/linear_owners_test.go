package actors

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/lineartest"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/persistence/redistest"
)

// A cutOff is an owner's way to the store, which can be cut: then the owner cannot learn that another one has the store.
type cutOff struct {
	persistence.Store
	cut *atomic.Bool
}

var errCutOff = errors.New("the store cannot be reached")

func (c *cutOff) Check(ctx context.Context, tok persistence.Token) error {
	if c.cut.Load() {
		return errCutOff
	}
	return c.Store.Check(ctx, tok)
}

func (c *cutOff) Append(ctx context.Context, tok persistence.Token, prev, next uint64, batch []byte) error {
	if c.cut.Load() {
		return errCutOff
	}
	return c.Store.Append(ctx, tok, prev, next, batch)
}

func (c *cutOff) Apply(ctx context.Context, tok persistence.Token, from, to uint64, w *persistence.Writes) error {
	if c.cut.Load() {
		return errCutOff
	}
	return c.Store.Apply(ctx, tok, from, to, w)
}

func (c *cutOff) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64, r io.Reader) error {
	if c.cut.Load() {
		return errCutOff
	}
	return c.Store.SaveSnapshot(ctx, tok, seq, r)
}

func (c *cutOff) Trim(ctx context.Context, tok persistence.Token, upTo uint64) error {
	if c.cut.Load() {
		return errCutOff
	}
	return c.Store.Trim(ctx, tok, upTo)
}

// A memoryIdentity is a host's.
type memoryIdentity struct{ known persistence.Tenures }

func (m *memoryIdentity) Load() (persistence.Tenures, error)   { return m.known, nil }
func (m *memoryIdentity) Save(known persistence.Tenures) error { m.known = known; return nil }

// twoOwners is a history of clients of two engines on one store.
type twoOwners struct {
	*recording
	open func() persistence.Store
	cut  *atomic.Bool
	o    Options // of the second one
}

// newTwoOwners starts the first engine, which is sure of its store for as long as stale after each beat.
func newTwoOwners(t *testing.T, open place, seed uint64, stale time.Duration) *twoOwners {
	t.Helper()
	w := &twoOwners{open: open, cut: new(atomic.Bool)}
	at := func() persistence.Store { return &cutOff{open(), w.cut} }
	w.recording = newRecording(t, at, seed, func(o *Options) {
		o.Timing.OwnerCheck, o.Timing.OwnerStale = min(stale/4, 50*time.Millisecond), stale
		o.Identity = &memoryIdentity{}
		w.o = *o
	})
	w.e.opts.Timing.Request = 100 * time.Millisecond // it may be cut off from now on
	w.o.Owner, w.o.Identity = "the second", &memoryIdentity{}
	w.o.Currencies = testOptions(nil).Currencies // a start writes their numbers there
	return w
}

// client is one with a key of its own.
func (w *twoOwners) client(number int) *recordedClient {
	account := number % len(recordedAccounts)
	key := recordedAccounts[account] + string(rune('0'+number/len(recordedAccounts)))
	return &recordedClient{r: w.recording, number: number, account: account, key: key, random: rand.New(rand.NewPCG(uint64(number), 3))}
}

// wallet reads an account's wallet from an engine.
func (c *recordedClient) wallet(e *Engine) {
	c.do(e, lineartest.Operation{Kind: lineartest.ReadWallet, Account: c.account})
}

// acts sends one command or read, which is drawn.
func (c *recordedClient) acts(e *Engine) {
	c.r.mu.Lock()
	o := c.draw()
	c.r.mu.Unlock()
	c.do(e, o)
}

// play has some clients act on the first engine, and starts the second one; then some read from the first
// engine, and others act on the second.
func (w *twoOwners) play() *Engine {
	w.t.Helper()
	first := w.e
	var acting sync.WaitGroup
	opened := make(chan *Engine, 6)
	for i := range 3 {
		writer, reader := w.client(i), w.client(3+i)
		acting.Go(func() {
			writer.acts(first)
			if second := <-opened; second != nil {
				for range 3 {
					writer.acts(second)
				}
			}
		})
		acting.Go(func() {
			reader.wallet(first)
			for second := <-opened; second != nil; second = nil {
				for range 4 {
					reader.wallet(first) // it does not know that there is another
				}
			}
		})
	}
	w.o.Store = w.open()
	second, err := Start(w.t.Context(), w.o)
	for range cap(opened) {
		opened <- second
	}
	acting.Wait()
	if err != nil {
		w.t.Fatal(err)
	}
	last := &recordedClient{r: w.recording, number: 6, account: -1}
	for i := range recordedAccounts {
		last.do(second, lineartest.Operation{Kind: lineartest.ReadWallet, Account: i})
		last.do(second, lineartest.Operation{Kind: lineartest.ReadOpen, Account: i})
	}
	return second
}

// end ends both engines, the first as it stands.
func (w *twoOwners) end(second *Engine) {
	w.t.Helper()
	w.cut.Store(false) // an append that waits learns that it is fenced
	w.e.Abandon()
	if second != nil {
		stop(w.t, second)
		if err := w.o.Store.Close(); err != nil {
			w.t.Error(err)
		}
	}
	if err := w.store.Close(); err != nil {
		w.t.Error(err)
	}
}

// onSharedStores runs a test on the stores that let several engines in.
func onSharedStores(t *testing.T, test func(t *testing.T, fresh func() place)) {
	t.Run("memory", func(t *testing.T) {
		test(t, func() place {
			disk := memory.NewDisk()
			return func() persistence.Store {
				s := memory.Open(disk, persistence.Retention{})
				s.Server = true
				return s
			}
		})
	})
	t.Run("redis", func(t *testing.T) {
		server, engines := redistest.Start(t), 0
		test(t, func() place {
			engines++
			engine := "owners-" + string(rune('a'+engines))
			return func() persistence.Store { return openRedis(t, server.URL(), engine) }
		})
	})
}

// Two owners of one store, of which the first may live on without knowing of the second, are one exchange for their clients.
func TestTwoOwnersOfOneStoreAreOneExchange(t *testing.T) {
	const stale = 200 * time.Millisecond
	for name, how := range map[string]struct{ cut, takeOver bool }{
		"a standby, of an owner that is cut off":    {cut: true},
		"a take-over from an owner that is well":    {takeOver: true},
		"a take-over from an owner that is cut off": {cut: true, takeOver: true},
	} {
		t.Run(name, func(t *testing.T) {
			onSharedStores(t, func(t *testing.T, fresh func() place) {
				for seed := range uint64(3) {
					w := newTwoOwners(t, fresh(), seed, stale)
					w.o.TakeOver = how.takeOver
					w.cut.Store(how.cut)
					second := w.play()
					err := w.history.Check()
					w.end(second)
					if err != nil && !errors.Is(err, lineartest.ErrUndecided) {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			})
		})
	}
}

// Such a history can fail: one owner that opens at once, beside one that does not know of it, is found.
func TestAStaleReadOfAnOwnerThatWasOvertakenIsFound(t *testing.T) {
	onSharedStores(t, func(t *testing.T, fresh func() place) {
		w := newTwoOwners(t, fresh(), 1, time.Hour)
		w.cut.Store(true)
		w.o.Timing.OwnerStale, w.o.TakeOver = 1, true
		w.o.Store = w.open()
		second := start(t, w.o)
		(&recordedClient{r: w.recording, number: 9, account: -1}).do(second, lineartest.Operation{Kind: lineartest.Deposit, Amount: 5})
		w.client(0).wallet(w.e)
		if err := w.history.Check(); err == nil || errors.Is(err, lineartest.ErrUndecided) {
			t.Errorf("the stale read is not found: %v", err)
		}
		w.end(second)
	})
}

// What stays open: a process that is stopped between its last look, whether the store is its own, and the write of an answer answers
// when it goes on, by what it had seen. By then its client may know more from the other exchange. The answer is as old as its question
// and no older, so that there is still one order of all operations; a question that comes after the stop is refused.
func TestAnAnswerThatAStopDelaysIsAsOldAsItsQuestion(t *testing.T) {
	const stale = 200 * time.Millisecond
	onSharedStores(t, func(t *testing.T, fresh func() place) {
		w := newTwoOwners(t, fresh(), 1, stale)
		client := w.client(0)
		asked := lineartest.Operation{Kind: lineartest.ReadWallet}
		var delayed *lineartest.Recorded
		var result lineartest.Result
		for err := ErrNotConfirmed; errors.Is(err, ErrNotConfirmed); { // a machine may be slow
			client.nonce++
			w.mu.Lock()
			send := client.request(w.e, &asked, client.nonce)
			delayed = w.history.Begin(client.number, asked)
			w.mu.Unlock()
			if result, err = send(); err != nil { // else it has looked, and is stopped before the answer is written
				delayed.Forget()
			}
			if err != nil && !errors.Is(err, ErrNotConfirmed) {
				t.Fatal(err)
			}
		}
		w.cut.Store(true)
		w.o.Store = w.open()
		second := start(t, w.o)
		(&recordedClient{r: w.recording, number: 9, account: -1}).do(second, lineartest.Operation{Kind: lineartest.Deposit, Amount: 5})
		w.client(3).wallet(second)
		delayed.End(result) // it goes on
		if err := w.e.Confirmed(); !errors.Is(err, ErrNotConfirmed) {
			t.Errorf("the next question is taken: %v", err)
		}
		if err := w.history.Check(); err != nil {
			t.Error(err)
		}
		w.end(second)
	})
}

// A take-over that ended before it opened is remembered: the next start of that host finds the store its own, and opens later all the same.
func TestATakeOverThatEndedBeforeItOpenedIsRemembered(t *testing.T) {
	onSharedStores(t, func(t *testing.T, fresh func() place) {
		w := newTwoOwners(t, fresh(), 1, time.Hour)
		id := &memoryIdentity{}
		w.o.Identity, w.o.Store = id, w.open()
		w.o.TakeOver = true
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := Start(ctx, w.o)
			ended <- err
		}()
		<-w.e.Dead() // it has lost the store to a start that is to open in an hour
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || !id.known.Newest.Early {
			t.Fatalf("the start ends with %v, and its host remembers %+v", err, id.known)
		}
		w.o.TakeOver, w.o.Timing.OwnerStale = false, time.Millisecond
		second := start(t, w.o)
		if id.known.Newest.Early || !id.known.Before.Early || id.known.Before.ID == "" {
			t.Errorf("its host remembers %+v", id.known)
		}
		w.end(second)
	})
}
