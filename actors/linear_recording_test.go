package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/lineartest"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
)

// A flakyStore is sometimes slow, refuses, loses an answer, or exhausts its clients' patience.
type flakyStore struct {
	persistence.Store
	r *recording
}

func (w *flakyStore) Append(ctx context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
	r := w.r
	r.mu.Lock()
	fault := r.random.IntN(30)
	if r.calm || r.crashesLeft == 0 && (fault == crashesBefore || fault == crashesAfter) {
		fault = -1
	}
	if fault >= 0 && fault <= lastFault {
		r.faults++
	}
	// each leaves outcomes open, which makes a check long
	if (fault == losesPatience || fault == losesPatienceAfter) && r.impatient > 0 {
		r.impatient--
	} else if fault == losesPatience || fault == losesPatienceAfter {
		fault = isSlow
	}
	r.mu.Unlock()
	switch fault {
	case refuses:
		return errors.New("the store refuses")
	case isSlow:
		<-time.After(time.Millisecond)
	case losesPatience:
		r.giveUp()
	case crashesBefore:
		return r.crashed()
	}
	err := w.Store.Append(ctx, tok, prev, next, batch)
	switch {
	case err != nil:
		return err
	case fault == losesAnswer:
		return errors.New("the answer is lost")
	case fault == losesPatienceAfter:
		r.giveUp()
		return errors.New("the answer took too long")
	case fault == crashesAfter:
		return r.crashed()
	}
	return nil
}

// The ends of an append.
const (
	refuses            = iota
	losesAnswer        // it lands
	isSlow             // but lands
	losesPatience      // clients do not wait for it, and it lands
	losesPatienceAfter // clients do not wait, it has landed, and its answer is lost
	crashesBefore      // the engine ends with it, and it has not landed
	crashesAfter       // and has landed
	lastFault          = crashesAfter
)

// Bounds of one history. Clients act in bursts. After each burst all rest and one reads everything,
// so a check has few orders of operations to try. A check takes longer with each overlapping
// operation, and with each open outcome.
const (
	bursts           = 12
	operationsOfEach = 4 // of a client, in a burst
	maxCrashes       = 1 // of a burst
	maxImpatience    = 1 // of a burst
	fundedBase       = 12
	fundedQuote      = 900
)

// A recording is one history in the making: clients that act at random on two pairs, with keys that
// some share, and a flaky store.
type recording struct {
	*lineartest.Workload // locked by mu

	t       *testing.T
	at      place
	change  []func(*Options) // of each engine
	history lineartest.History

	reading sync.RWMutex // held by each read from the store, and by its close
	// unreturned sends: one of an impatient client may not even have begun
	sending atomic.Int64

	mu          sync.Mutex
	random      *rand.Rand // of the store's faults
	calm        bool
	faults      int
	crashes     int
	crashesLeft int           // of the burst
	impatient   int           // remaining losses of patience in the burst
	patience    chan struct{} // closed at such a loss
	e           *Engine
	store       persistence.Store
	crash       chan struct{}  // holds one when the engine is to crash
	down        chan struct{}  // closed when it is down
	up          *sync.Cond     // e is another one
	numbers     map[uint64]int // of orders, by id
	own         [lineartest.Accounts]*recordedOwn
	// reads refused because the engine was unsure of its ownership
	notConfirmed  int
	answeredReads int // private ones
}

// The accounts of a history, by their numbers.
var recordedAccounts = []string{"ann", "ben", "cid"}

// accountName returns one of the trading accounts, or the fee account.
func accountName(account int) string {
	if account == lineartest.FeeAccount {
		return directory.FeeAccount
	}
	return recordedAccounts[account]
}

// ownKey returns the number of a key that is never revoked. Each account has two.
func ownKey(account, client int) int { return 2*account + client + 1 }

// parallelKey is the number of the key that both clients of the last account share, for parallel
// use. It keeps keptNonces nonces.
const (
	parallelKey = 90
	keptNonces  = 8
)

func keyName(number int) string { return fmt.Sprint("key-", number) }

// recordedFees are the rates of the recordings; one account has its own in one pair.
var recordedFees = func() (fees [lineartest.Pairs][lineartest.Accounts]lineartest.Rates) {
	for pair := range fees {
		for account := range fees[pair] {
			fees[pair][account] = lineartest.Rates{Maker: 10, Taker: 20}
		}
	}
	fees[0][1] = lineartest.Rates{Maker: 5, Taker: 30}
	return fees
}()

func feeRates(r lineartest.Rates) state.FeeRates {
	rate := func(units int64) money.Rate { return money.Rate(units * (1e8 / lineartest.Unit)) }
	return state.FeeRates{Maker: rate(r.Maker), Taker: rate(r.Taker)}
}

func newRecording(t *testing.T, at place, seed uint64, change ...func(*Options)) *recording {
	t.Helper()
	r := &recording{Workload: lineartest.NewWorkload(parallelKey, false), t: t, at: at,
		change: change, random: rand.New(rand.NewPCG(seed, 1)), calm: true,
		patience: make(chan struct{}), crash: make(chan struct{}, 1),
		down: make(chan struct{}), numbers: map[uint64]int{}}
	r.history.Fees = recordedFees
	r.up = sync.NewCond(&r.mu)
	r.store, r.e = r.open()
	operator := r.client(0, -1, 0)
	for i := range lineartest.Accounts {
		if i != lineartest.FeeAccount { // opened by the start
			must[Admin](t)(r.e.CreateAccount("test", accountName(i), ""))
		}
		for c := range 2 {
			operator.do(r.e, lineartest.Operation{Kind: lineartest.CreateKey, Account: i,
				Key: ownKey(i, c), Permissions: lineartest.MayAll})
		}
	}
	own := feeRates(recordedFees[0][1])
	must[Admin](t)(r.e.SetFees("test", accountName(1), r.e.Pairs()[0].Name, &own))
	for i := range recordedAccounts {
		for currency := range lineartest.Currencies {
			amount := int64(fundedBase)
			if currency > 0 {
				amount = fundedQuote
			}
			operator.do(r.e, lineartest.Operation{Kind: lineartest.Deposit, Account: i,
				Currency: currency, Amount: amount})
		}
	}
	r.history.Settle()
	return r
}

// open starts an engine on the existing data.
func (r *recording) open() (persistence.Store, *Engine) {
	r.t.Helper()
	store := r.at()
	o := testOptions(&flakyStore{store, r})
	o.Timing.Request, o.Timing.Stall, o.Timing.StallMax, o.Timing.OwnerStale = time.Minute,
		time.Minute, time.Minute, time.Minute
	o.Timing.Projection = time.Millisecond
	o.Snapshot = committed.SnapshotPolicy{MinRecords: 20, MaxRecords: 20}
	for i := range o.Pairs {
		o.Pairs[i].Fees = feeRates(recordedFees[i][0])
	}
	for _, change := range r.change {
		change(&o)
	}
	return store, start(r.t, o)
}

// giveUp makes all waiting clients leave without an answer.
func (r *recording) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.patience)
	r.patience = make(chan struct{})
}

// crashed requests the engine's end, and waits until it can acknowledge nothing any more.
func (r *recording) crashed() error {
	r.mu.Lock()
	down := r.down
	r.crashes++
	r.crashesLeft--
	r.mu.Unlock()
	r.crash <- struct{}{}
	<-down
	return errors.New("the engine is dead")
}

// client returns a client of an account, or of the operator (-1).
func (r *recording) client(number, account, key int) *recordedClient {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &recordedClient{r: r, number: number, Client: lineartest.Client{Workload: r.Workload,
		Account: account, Key: key, Random: rand.New(rand.NewPCG(r.random.Uint64(), 2))}}
}

// run has clients act in bursts, and starts another engine whenever one crashes.
func (r *recording) run() {
	r.t.Helper()
	var clients []*recordedClient
	for i := range recordedAccounts {
		for c := range 2 {
			// ben's two share a key, and cid's one for parallel use
			key := []int{ownKey(i, c), ownKey(i, 0), parallelKey}[i]
			clients = append(clients, r.client(len(clients), i, key))
		}
	}
	clients = append(clients, r.client(len(clients), -1, 0))
	last := r.client(len(clients), -1, 0)
	last.do(r.e, lineartest.Operation{Kind: lineartest.CreateKey,
		Account: len(recordedAccounts) - 1, Key: parallelKey, Parallel: keptNonces,
		Permissions: lineartest.MayAll})
	r.history.Settle()
	r.subscribe(r.e)
	for range bursts {
		r.burst(clients)
		r.readAll(last)
	}
	if err := r.e.VerifyAtRest(); err != nil {
		r.t.Error(err)
	}
	stop(r.t, r.e)
	succeeds(r.t, r.store.Close())
}

// burst has each client send its share, and waits until nothing is in flight.
func (r *recording) burst(clients []*recordedClient) {
	r.t.Helper()
	r.mu.Lock()
	r.calm, r.crashesLeft, r.impatient = false, maxCrashes, maxImpatience
	left, again := r.random.IntN(2*lineartest.Accounts), r.random.IntN(2*lineartest.Accounts)
	r.mu.Unlock()
	if left < lineartest.Accounts {
		r.own[left].leave()
	}
	var acting sync.WaitGroup
	for _, c := range clients {
		acting.Go(c.act)
	}
	done := make(chan struct{})
	go func() {
		acting.Wait()
		close(done)
	}()
	for going := true; going; {
		select {
		case <-r.crash:
			r.restart()
		case <-done:
			going = false
		}
	}
	r.mu.Lock()
	r.calm = true
	r.mu.Unlock()
	eventually(r.t, "nothing is in flight", func() bool {
		select {
		case <-r.crash: // in an append that no client has waited for
			r.restart()
		default:
		}
		return r.sending.Load() == 0 && r.e.Err() == nil && r.e.commandsInFlight() == 0 &&
			r.e.ReadsInFlight() == 0
	})
	for i, s := range r.own {
		s.ask(i != again)
	}
	r.history.Settle()
}

// look reads everything, when nothing is in flight: also each order not seen to be closed.
func (r *recording) readAll(c *recordedClient) {
	for account, frozen := range r.Frozen {
		if frozen {
			r.Frozen[account] = false
			c.do(r.e, lineartest.Operation{Kind: lineartest.Freeze, Account: account})
			r.own[account].ask(true) // it receives the answer before the epoch ends
		}
	}
	for pair := range lineartest.Pairs {
		c.do(r.e, lineartest.Operation{Kind: lineartest.ReadBook, Pair: pair})
	}
	for i := range lineartest.Accounts {
		c.do(r.e, lineartest.Operation{Kind: lineartest.ReadKeys, Account: i})
		c.sign(lineartest.Operation{Kind: lineartest.ReadWallet, Account: i})
		if i < len(recordedAccounts) {
			c.sign(lineartest.Operation{Kind: lineartest.ReadOpen, Account: i})
			c.sign(lineartest.Operation{Kind: lineartest.ReadPending, Account: i})
		}
	}
	for _, o := range r.Sent {
		if !r.Closed[o.Number] {
			c.sign(lineartest.Operation{Kind: lineartest.ReadOrder, Account: o.Account,
				Order: o.Number})
		}
	}
	r.history.Settle()
}

// restart ends the engine as a kill would, and starts the next one on its data.
func (r *recording) restart() {
	r.t.Helper()
	r.mu.Lock()
	noted := r.history.Begin(-1, lineartest.Operation{Kind: lineartest.Restart})
	r.mu.Unlock()
	r.e.fail(errors.New("a crash of the test's"))
	r.mu.Lock()
	close(r.down)
	r.down = make(chan struct{})
	calm := r.calm
	r.calm = true // a start is no client's
	r.mu.Unlock()
	r.e.Abandon()
	r.reading.Lock()
	defer r.reading.Unlock()
	succeeds(r.t, r.store.Close())
	store, e := r.open()
	noted.End(lineartest.Result{Outcome: lineartest.Done})
	r.subscribe(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store, r.e, r.calm = store, e, calm
	r.up.Broadcast()
}
