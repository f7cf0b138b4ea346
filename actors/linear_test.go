package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"exchange/actors/lineartest"
	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/persistence"
)

// How many histories are recorded on each store, unless EXCHANGE_LINEAR_HISTORIES says otherwise.
const histories = 8

// Whatever the store does, and through crashes: what clients are told is what one exchange would tell them that does one
// thing after the other.
func TestConcurrentClientsSeeOneExchange(t *testing.T) {
	n, seed := histories, uint64(time.Now().UnixNano())
	for name, v := range map[string]func(uint64){"EXCHANGE_LINEAR_HISTORIES": func(u uint64) { n = int(u) }, "EXCHANGE_LINEAR_SEED": func(u uint64) { seed = u }} {
		if text := os.Getenv(name); text != "" {
			u, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			v(u)
		}
	}
	t.Logf("EXCHANGE_LINEAR_SEED=%d", seed)
	onBothStores(t, func(t *testing.T, fresh places) {
		outcomes := map[lineartest.Outcome]int{}
		faults, crashes, undecided := 0, 0, 0
		for i := 0; i < n+undecided; i++ {
			r := newRecording(t, fresh(t), seed+uint64(i))
			r.run()
			err := r.history.Check()
			if errors.Is(err, lineartest.ErrUndecided) && undecided <= n/8 {
				undecided++
				t.Logf("history %d: %v; there is one more in its place", i, err)
				continue
			}
			if err != nil {
				t.Fatalf("history %d: %v", i, err)
			}
			for o := range lineartest.RefusedState + 1 {
				outcomes[o] += r.history.Count(o)
			}
			faults, crashes = faults+r.faults, crashes+r.crashes
		}
		t.Logf("%d histories, faults %d, crashes %d, outcomes %v", n, faults, crashes, outcomes)
		for o := range lineartest.RefusedState + 1 {
			if outcomes[o] == 0 {
				t.Errorf("nothing is %v: the histories show too little", o)
			}
		}
		if faults == 0 || crashes == 0 {
			t.Error("the store never failed")
		}
	})
}

// What is planted into a history of the real engine is found.
func TestErrorsPlantedIntoARecordedHistoryAreFound(t *testing.T) {
	onBothStores(t, func(t *testing.T, fresh places) {
		planted := map[string]int{}
		for seed := range uint64(3) {
			r := newRecording(t, fresh(t), seed)
			r.run()
			for what, plant := range plants {
				for i := range r.history.Operations() {
					h := r.history.Clone()
					if o := h.Operations()[i]; o.Result.Outcome != lineartest.Done || !plant(h.Operations(), o) {
						continue
					}
					planted[what]++
					if h.Linearizable() {
						t.Errorf("seed %d: %s is not found in operation %d", seed, what, i)
					}
					break // one of each kind
				}
			}
		}
		for what := range plants {
			if planted[what] == 0 {
				t.Errorf("%s could not be planted", what)
			}
		}
	})
}

// plants make a right result wrong, whatever overlapped with it, and say whether they could.
var plants = map[string]func(all []*lineartest.Recorded, o *lineartest.Recorded) bool{
	"a lost order": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		last := all[len(all)-1].Client // who looks when nothing happens any more
		if o.Client != last || o.Operation.Kind != lineartest.ReadOpen || len(o.Result.Orders) == 0 {
			return false
		}
		o.Result.Orders = o.Result.Orders[1:]
		return true
	},
	"a stale book": func(_ []*lineartest.Recorded, o *lineartest.Recorded) bool {
		had := o.Result.UpdateID > 0
		o.Result.UpdateID--
		return had
	},
	"a double fill": func(_ []*lineartest.Recorded, o *lineartest.Recorded) bool {
		had := len(o.Result.Trades) > 0
		if had {
			o.Result.Trades = append(o.Result.Trades[:1:1], o.Result.Trades...)
		}
		return had
	},
	"a trade with itself": func(_ []*lineartest.Recorded, o *lineartest.Recorded) bool {
		had := len(o.Result.Trades) > 0
		if had {
			first := o.Result.Trades[0]
			first.Maker = o.Operation.Order
			o.Result.Trades = append([]lineartest.Trade{first}, o.Result.Trades[1:]...)
		}
		return had
	},
	"money from nowhere": func(_ []*lineartest.Recorded, o *lineartest.Recorded) bool {
		o.Result.Quote.Balance += 1_000_000
		return o.Operation.Kind == lineartest.ReadWallet
	},
	"an id twice": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		for _, other := range all {
			if other != o && other.Result.ID != 0 && o.Operation.Kind == lineartest.Place {
				o.Result.ID = other.Result.ID
				return true
			}
		}
		return false
	},
	"a cancel that is told to have been refused": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		if o.Operation.Kind != lineartest.Cancel {
			return false
		}
		for _, other := range all { // another may have done it
			if other.Operation.Kind == lineartest.Cancel && other.Operation.Order == o.Operation.Order && other.Result.Outcome == lineartest.Unknown {
				return false
			}
		}
		o.Result = lineartest.Result{Outcome: lineartest.RefusedState}
		return true
	},
}

// A weather is a store that now and then is slow, refuses, loses an answer, or has clients lose their patience.
type weather struct {
	persistence.Store
	r *recording
}

func (w *weather) Append(ctx context.Context, tok persistence.Token, prev, next uint64, batch []byte) error {
	r := w.r
	r.mu.Lock()
	fault := r.random.IntN(30)
	if r.calm || r.crashes == maxCrashes && fault == crashesBefore || r.crashes == maxCrashes && fault == crashesAfter {
		fault = -1
	}
	if fault >= 0 && fault <= lastFault {
		r.faults++
	}
	if (fault == losesPatience || fault == losesPatienceAfter) && r.impatient > 0 { // each leaves outcomes open, which makes a check long
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

// What an append may meet.
const (
	refuses            = iota
	losesAnswer        // it lands
	isSlow             // and lands
	losesPatience      // clients do not wait for it, and it lands
	losesPatienceAfter // clients do not wait, it has landed, and its answer is lost
	crashesBefore      // the engine ends with it, and it has not landed
	crashesAfter       // it has
	lastFault          = crashesAfter
)

// Bounds of one history. A check takes longer with each outcome that is open.
const (
	maxCrashes       = 1
	maxImpatience    = 1
	operationsOfEach = 14 // of a client
	fundedBase       = 12
	fundedQuote      = 900
)

// A recording is one history while it is made: clients that act at random on one pair, each with a key of its own, and the
// store's weather.
type recording struct {
	t       *testing.T
	at      place
	change  []func(*Options) // of each engine
	history lineartest.History

	reading sync.RWMutex // held by who reads from the store, and by who closes it

	mu          sync.Mutex
	random      *rand.Rand // of the weather
	calm        bool
	faults      int
	crashes     int
	impatient   int           // how often clients may still lose their patience
	patience    chan struct{} // closed when they do
	e           *Engine
	store       persistence.Store
	crash       chan struct{}  // has one when the engine is to crash
	down        chan struct{}  // closed when it is down
	up          *sync.Cond     // e is another one
	orders      []known        // acknowledged
	withdrawals []known        // acknowledged
	orderCount  int            // numbers given
	drawCount   int            // numbers given to withdrawals
	numbers     map[uint64]int // of orders, by id
}

// A known is an order or a withdrawal whose id its account was told.
type known struct {
	account, number int
	id              uint64
}

var recordedAccounts = []string{"ann", "ben", "cid"}

func newRecording(t *testing.T, at place, seed uint64, change ...func(*Options)) *recording {
	t.Helper()
	r := &recording{t: t, at: at, change: change, random: rand.New(rand.NewPCG(seed, 1)), calm: true, impatient: maxImpatience, patience: make(chan struct{}),
		crash: make(chan struct{}, 1), down: make(chan struct{}), numbers: map[uint64]int{}}
	r.up = sync.NewCond(&r.mu)
	r.store, r.e = r.open()
	for i, name := range recordedAccounts {
		must[Admin](t)(r.e.CreateAccount("test", name, ""))
		for c := range 2 {
			must[Admin](t)(r.e.CreateKey("test", name, fmt.Sprint(name, c), "secret", event.AllPermissions, nil))
		}
		for _, quote := range []bool{false, true} {
			amount := int64(fundedBase)
			if quote {
				amount = fundedQuote
			}
			(&recordedClient{r: r, number: i, account: -1}).do(r.e, lineartest.Operation{Kind: lineartest.Deposit, Account: i, Quote: quote, Amount: amount})
		}
	}
	return r
}

// open starts an engine on what is there.
func (r *recording) open() (persistence.Store, *Engine) {
	r.t.Helper()
	store := r.at()
	o := testOptions(&weather{store, r})
	o.Timing.Request, o.Timing.Stall, o.Timing.StallMax, o.Timing.OwnerStale = time.Minute, time.Minute, time.Minute, time.Minute
	o.Timing.Projection = time.Millisecond
	o.Snapshot = SnapshotPolicy{MinRecords: 20, MaxRecords: 20}
	for _, change := range r.change {
		change(&o)
	}
	return store, start(r.t, o)
}

// giveUp has all clients that wait leave, without an answer.
func (r *recording) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.patience)
	r.patience = make(chan struct{})
}

// crashed asks for the engine's end, and waits until it can acknowledge nothing any more.
func (r *recording) crashed() error {
	r.mu.Lock()
	down := r.down
	r.crashes++
	r.mu.Unlock()
	r.crash <- struct{}{}
	<-down
	return errors.New("the engine is dead")
}

// run has clients act until each has done its share, and starts another engine whenever one crashes.
func (r *recording) run() {
	r.t.Helper()
	r.mu.Lock()
	r.calm = false
	var clients []*recordedClient
	for i := range recordedAccounts {
		for c := range 2 - i%2 { // ben has one
			clients = append(clients, &recordedClient{r: r, number: len(clients), account: i, key: fmt.Sprint(recordedAccounts[i], c),
				random: rand.New(rand.NewPCG(r.random.Uint64(), 2))})
		}
	}
	clients = append(clients, &recordedClient{r: r, number: len(clients), account: -1, random: rand.New(rand.NewPCG(r.random.Uint64(), 2))})
	r.mu.Unlock()
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
		case <-r.crash: // in an append for which nobody has waited
			r.restart()
		default:
		}
		return r.e.commandsInFlight() == 0
	})
	// A last look at everything.
	last := &recordedClient{r: r, number: len(clients), account: -1}
	for _, sent := range r.history.Operations() { // what became of it
		if k := sent.Operation.Kind; sent.Result.Outcome == lineartest.Unknown && (k == lineartest.Place || k == lineartest.Cancel) {
			last.do(r.e, lineartest.Operation{Kind: lineartest.ReadOrder, Account: sent.Operation.Account, Order: sent.Operation.Order})
		}
	}
	last.do(r.e, lineartest.Operation{Kind: lineartest.ReadBook})
	for i := range recordedAccounts {
		last.do(r.e, lineartest.Operation{Kind: lineartest.ReadOpen, Account: i})
		last.do(r.e, lineartest.Operation{Kind: lineartest.ReadWallet, Account: i})
	}
	if err := r.e.VerifyAtRest(); err != nil {
		r.t.Error(err)
	}
	stop(r.t, r.e)
	if err := r.store.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// restart ends the engine as a kill would, and starts the next one on what it left.
func (r *recording) restart() {
	r.t.Helper()
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
	if err := r.store.Close(); err != nil {
		r.t.Fatal(err)
	}
	store, e := r.open()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store, r.e, r.calm = store, e, calm
	r.up.Broadcast()
}

// A recordedClient sends one operation after the other. The one with account -1 is the operator, who also looks at the book.
type recordedClient struct {
	r       *recording
	number  int
	account int
	key     string
	nonce   uint64
	random  *rand.Rand
}

func (c *recordedClient) act() {
	for range operationsOfEach {
		r := c.r
		r.mu.Lock()
		for r.e.Err() != nil {
			r.up.Wait()
		}
		e, o := r.e, c.draw()
		r.mu.Unlock()
		c.do(e, o)
	}
}

// draw chooses what to do; the recording is locked.
func (c *recordedClient) draw() lineartest.Operation {
	r := c.r
	if c.account < 0 {
		if n := len(r.withdrawals); n > 0 && c.random.IntN(3) > 0 {
			kind := lineartest.ApproveWithdraw
			if c.random.IntN(2) == 0 {
				kind = lineartest.RefuseWithdraw
			}
			return lineartest.Operation{Kind: kind, Withdrawal: r.withdrawals[c.random.IntN(n)].number}
		}
		if c.random.IntN(3) == 0 {
			return lineartest.Operation{Kind: lineartest.Deposit, Account: c.random.IntN(len(recordedAccounts)), Amount: 1 + c.random.Int64N(2)}
		}
		return lineartest.Operation{Kind: lineartest.ReadBook}
	}
	own := func(kind lineartest.Kind) lineartest.Operation {
		return lineartest.Operation{Kind: kind, Account: c.account}
	}
	switch c.random.IntN(20) {
	case 0, 1, 2, 3:
		if o, ok := c.pick(r.orders); ok {
			what := own(lineartest.Cancel)
			what.Order = o
			return what
		}
	case 4, 5:
		if o, ok := c.pick(r.orders); ok {
			what := own(lineartest.ReadOrder)
			what.Order = o
			return what
		}
	case 6:
		return own(lineartest.ReadOpen)
	case 7, 8:
		return own(lineartest.ReadWallet)
	case 9:
		return lineartest.Operation{Kind: lineartest.ReadBook}
	case 10:
		r.drawCount++
		return lineartest.Operation{Kind: lineartest.Withdraw, Account: c.account, Withdrawal: r.drawCount, Quote: c.random.IntN(2) == 0, Amount: 1 + c.random.Int64N(8)}
	case 11, 12:
		if w, ok := c.pick(r.withdrawals); ok {
			what := own(lineartest.ConfirmWithdraw)
			if c.random.IntN(3) == 0 {
				what.Kind = lineartest.CancelWithdraw
			}
			what.Withdrawal = w
			return what
		}
	}
	r.orderCount++
	return lineartest.Operation{Kind: lineartest.Place, Account: c.account, Order: r.orderCount, Buy: c.random.IntN(2) == 0, Price: 98 + c.random.Int64N(5),
		Amount: 1 + c.random.Int64N(4)}
}

// pick chooses one of the account's newest.
func (c *recordedClient) pick(known []known) (number int, ok bool) {
	for i := len(known) - 1 - c.random.IntN(4); i >= 0; i-- {
		if known[i].account == c.account {
			return known[i].number, true
		}
	}
	return 0, false
}

// do sends one operation and notes its result, unless patience ends before.
func (c *recordedClient) do(e *Engine, o lineartest.Operation) {
	r := c.r
	r.mu.Lock()
	patience := r.patience // before anything is sent
	c.nonce++
	send := c.request(e, &o, c.nonce)
	noted := r.history.Begin(c.number, o)
	r.mu.Unlock()
	type answer struct {
		result lineartest.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := send()
		answers <- answer{result, err}
	}()
	select {
	case <-patience:
	case a := <-answers:
		switch {
		case a.err == nil:
			noted.End(a.result)
		case errors.Is(a.err, ErrTimeout):
		case errors.Is(a.err, ErrStopping), errors.Is(a.err, ErrNotConfirmed), errors.Is(a.err, ErrStalled):
			noted.Forget()
		default:
			r.t.Errorf("%+v: %v", o, a.err)
		}
	}
}

// request is the operation as the engine takes it; the recording is locked.
func (c *recordedClient) request(e *Engine, o *lineartest.Operation, nonce uint64) func() (lineartest.Result, error) {
	r := c.r
	key, pair := e.Key([]byte(c.key)), e.Pairs()[0]
	idOf := func(list []known, number int) uint64 {
		for _, k := range list {
			if k.number == number {
				return k.id
			}
		}
		return 0
	}
	order, withdrawal := idOf(r.orders, o.Order), idOf(r.withdrawals, o.Withdrawal)
	currency, code := uint16(1), "BTC"
	if o.Quote {
		currency, code = 2, "USD"
	}
	amount := money.Amount(o.Amount) * coin
	command := func(run func() (*Command, error)) func() (lineartest.Result, error) {
		return func() (lineartest.Result, error) {
			cmd, err := run()
			var refused *RequestError
			if errors.As(err, &refused) { // an operator's
				return lineartest.Result{Outcome: lineartest.RefusedState}, nil
			}
			if err != nil {
				return lineartest.Result{}, err
			}
			defer cmd.Free()
			return r.result(o, cmd)
		}
	}
	switch o.Kind {
	case lineartest.Place:
		wish := &OrderWish{Pair: pair, Side: matching.Sell, Price: money.Price(o.Price) * 1e8, Amount: amount}
		if o.Buy {
			wish.Side = matching.Buy
		}
		wish.ClientID, _ = event.NewClientID(strconv.Itoa(o.Order))
		return command(func() (*Command, error) { return e.Place(key, nonce, wish) })
	case lineartest.Cancel:
		return command(func() (*Command, error) { return e.Cancel(key, nonce, order) })
	case lineartest.Withdraw:
		return command(func() (*Command, error) { return e.Withdraw(key, nonce, currency, amount, "somewhere") })
	case lineartest.ConfirmWithdraw:
		return command(func() (*Command, error) {
			code, err := askCode(e, withdrawal)
			if err != nil {
				return nil, err
			}
			return e.ConfirmWithdraw(key, nonce, withdrawal, code)
		})
	case lineartest.CancelWithdraw:
		return command(func() (*Command, error) { return e.CancelWithdraw(key, nonce, withdrawal) })
	case lineartest.ApproveWithdraw:
		return command(func() (*Command, error) { return e.MoveWithdraw("test", withdrawal, event.WithdrawApproved, "") })
	case lineartest.RefuseWithdraw:
		return command(func() (*Command, error) { return e.MoveWithdraw("test", withdrawal, event.WithdrawRefused, "no") })
	case lineartest.Deposit:
		reference := fmt.Sprint("reference ", len(r.history.Operations()))
		return func() (lineartest.Result, error) {
			_, err := e.Deposit("test", recordedAccounts[o.Account], code, amount, reference)
			return lineartest.Result{Outcome: lineartest.Done}, err
		}
	}
	return func() (lineartest.Result, error) { return r.look(e, key, nonce, o, order) }
}

// result is what a command's end says, and makes what it has acknowledged known to all clients of the account.
func (r *recording) result(o *lineartest.Operation, c *Command) (result lineartest.Result, err error) {
	if c.Outcome() == Refused {
		reason := c.Record().Refusal.Reason
		switch reason {
		case event.RefusedFunds:
			result.Outcome = lineartest.RefusedFunds
		case event.RefusedNotOpen, event.RefusedWithdraw:
			result.Outcome = lineartest.RefusedState
		default:
			err = errors.New(refusedFor(reason))
		}
		return result, err
	}
	result.Outcome = lineartest.Done
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o.Kind {
	case lineartest.Place:
		made := &c.Record().Order
		result.ID, result.Remains = made.ID, coins(made.Remaining.Balance())
		r.numbers[made.ID] = o.Order
		for _, t := range made.Trades {
			result.Trades = append(result.Trades, lineartest.Trade{ID: t.ID, Maker: r.numbers[t.Maker], Price: int64(t.Price) / 1e8, Amount: coins(t.Amount.Balance())})
		}
		r.orders = append(r.orders, known{o.Account, o.Order, made.ID})
	case lineartest.Cancel:
		result.ID, result.Remains = c.Record().Cancel.ID, coins(c.Record().Cancel.Remaining.Balance())
	case lineartest.Withdraw:
		r.withdrawals = append(r.withdrawals, known{o.Account, o.Withdrawal, c.Record().Withdraw.ID})
	}
	return result, nil
}

// coins is an amount of money as the history has it.
func coins(b money.Balance) int64 {
	d := b.Decimal()
	if !d.IsInteger() {
		panic(fmt.Sprintf("%v is no whole number", d))
	}
	return d.IntPart()
}

// look does the reads.
func (r *recording) look(e *Engine, key *Key, nonce uint64, o *lineartest.Operation, order uint64) (result lineartest.Result, err error) {
	result.Outcome = lineartest.Done
	if o.Kind == lineartest.ReadBook {
		v, err := e.View(ReadLevels, e.Pairs()[0], 0, shownLevels, shownLevels)
		if err != nil {
			return result, err
		}
		result.UpdateID = v.UpdateID
		for side, levels := range [][]matching.Level{v.Depth.BuyLevels, v.Depth.SellLevels} {
			for _, l := range levels {
				amount, err := strconv.ParseInt(l.Amount.String(), 10, 64)
				if err != nil {
					return result, err
				}
				result.Levels[side] = append(result.Levels[side], lineartest.Level{Price: int64(l.Price) / 1e8, Amount: amount})
			}
		}
		return result, nil
	}
	read := NewRead(map[lineartest.Kind]ReadKind{lineartest.ReadOrder: ReadOrder, lineartest.ReadOpen: ReadOrders, lineartest.ReadWallet: ReadWallet}[o.Kind])
	read.ID, read.Limit, read.Account = order, 1000, uint32(o.Account+1)
	if o.Kind == lineartest.ReadOrder && order == 0 { // nobody was told its id
		read.Kind = ReadOrders
		read.ClientID, _ = event.NewClientID(strconv.Itoa(o.Order))
	}
	if err := e.Ask(read, key, nonce); err != nil {
		return result, err
	}
	defer read.Free()
	if o.Kind == lineartest.ReadOrder && len(read.Orders) == 0 {
		if err := r.inHistory(e, o, order, read); err != nil {
			return result, err
		}
	}
	for _, row := range read.Orders {
		number, err := strconv.Atoi(row.ClientID)
		if err != nil {
			return result, err
		}
		status := lineartest.Open
		switch row.Status {
		case persistence.StatusDone:
			status = lineartest.Filled
		case persistence.StatusCancelled:
			status = lineartest.Cancelled
		}
		result.Orders = append(result.Orders, lineartest.OrderRow{Order: number, ID: row.ID, Status: status, Remains: coins(row.Remaining.Balance())})
	}
	for _, h := range read.Holdings {
		funds := lineartest.Funds{Balance: coins(h.Balance), Reserve: coins(h.Reserve)}
		switch h.Currency {
		case 1:
			result.Base = funds
		case 2:
			result.Quote = funds
		}
	}
	return result, nil
}

// inHistory looks an order up that is not in memory, as a handler does: by its id, or if nobody was told that, by the name that
// its client gave it.
func (r *recording) inHistory(e *Engine, o *lineartest.Operation, order uint64, read *Read) error {
	r.reading.RLock()
	defer r.reading.RUnlock()
	if e.Err() != nil {
		return ErrTimeout
	}
	ctx := context.Background()
	if order == 0 {
		q := persistence.OrderQuery{Account: read.Account, ClientID: strconv.Itoa(o.Order), MaxSeq: read.Seq}
		return e.History().Orders(ctx, q, func(row *persistence.Order) bool {
			read.Orders = append(read.Orders, *row)
			return true
		})
	}
	row, err := e.History().Order(ctx, read.Account, order)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil
	}
	read.Orders = append(read.Orders, row)
	return err
}
