package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
	"exchange/persistence"
)

// An Engine is a running exchange without its gateway: all actors, the journal's writer and the
// projector. Its methods may be called from any goroutine.
type Engine struct {
	opts   Options
	log    *slog.Logger
	system *actor.ActorSystem
	root   *actor.RootContext
	dir    *directory.Directory
	ids    counters
	fees   *fees
	sealer *seal.Sealer
	meter  *metrics.Engine

	history event.HistoryID // codes and mails are of it

	*directory.Catalogue
	books []*book // by number-1; each belongs to its actor

	own       *ownership
	journal   *journal
	committed *committed.Side
	projector *committed.Projector
	*committed.Door
	mailer   *mailer // nil: mails stay in the outbox
	registry *actor.PID
	fold     *actor.PID
	imager   *actor.PID
	wallets  *mailbox.Spawner
	host     *mailbox.Host  // of all actors that are fail-stop
	settler  ledger.Settler // the journal's writer's
	queues   []queue        // for Stats; read only after the start

	lifetime
	admission
	// capacity 1: there is something new in the outbox
	mailbox chan struct{}
	// the store's watermark at the start: rows up to there are of earlier runs
	projected uint64
	auditing  atomic.Bool
	clock     clockWatch // of ticked
}

// Start waits until the store is this process's, recovers the state from it, and starts the actors.
// When it returns without an error the engine takes commands. The engine does not close the store.
func Start(ctx context.Context, o Options) (*Engine, error) {
	if o.scheduler == nil {
		o.scheduler = mailbox.Runners{}
	}
	sealer, err := foresee(ctx, &o)
	if err != nil {
		return nil, err
	}
	own, err := claim(ctx, &o)
	if err != nil {
		return nil, err
	}
	e, err := startOwned(ctx, &o, own, sealer)
	if err != nil {
		own.end() // the store keeps saying whose it is: only an orderly stop gives it back
		return nil, err
	}
	return e, nil
}

// startOwned recovers and starts on a store that is this process's.
func startOwned(ctx context.Context, o *Options, own *ownership,
	sealer *seal.Sealer) (*Engine, error) {
	begin := time.Now()
	r, err := recoverState(ctx, o, own)
	if err != nil {
		return nil, err
	}
	if sealer == nil {
		if sealer, err = o.Sealer(len(r.committed.State().Keys()) > 0); err != nil {
			return nil, err
		}
	}
	if err := servable(r.committed.State(), o, sealer); err != nil {
		return nil, err
	}
	if err := r.reconcile(ctx, o); err != nil {
		return nil, err
	}
	if err := r.sealAnew(ctx, o, sealer); err != nil {
		return nil, err
	}
	if err := own.opened(ctx); err != nil {
		return nil, err
	}
	e := newEngine(o, own, r, sealer)
	if err := e.spawnAll(r); err != nil {
		return nil, err
	}
	if err := own.watch(e.journal.die); err != nil {
		return nil, fmt.Errorf("while starting: %w", err)
	}
	e.run()
	s := r.committed.State()
	e.meter.RecoveryNs, e.meter.RecoveryRecords = int64(time.Since(begin)), r.committed.Refolded()
	e.log.Info("recovered", "store", o.Store.String(), "seq", r.last, "snapshot", r.committed.Began(),
		"records", r.committed.Refolded(),
		"accounts", len(s.Accounts()), "took", time.Since(begin).Round(time.Millisecond))
	return e, nil
}

// newEngine is an engine without actors.
func newEngine(o *Options, own *ownership, r *recovered, sealer *seal.Sealer) *Engine {
	e := &Engine{opts: *o, log: o.Log, own: own, sealer: sealer,
		history: r.committed.State().History(), dir: directory.New(), meter: r.meter,
		projected: r.committed.Watermark(),
		mailbox:   make(chan struct{}, 1)}
	e.begin(o.scheduler, &e.opts.Timing)
	e.prepare(&e.opts, &e.lifetime, own)
	e.fees = &fees{dir: e.dir}
	e.host = &mailbox.Host{Scheduler: o.scheduler, Guard: failStop{o.Log, o.Exit}}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	e.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	e.root = e.system.Root
	e.wallets = e.spawner(0)
	e.system.EventStream.Subscribe(e.deadLetter)
	if o.Mail != nil {
		e.mailer = newMailer(e)
	}
	return e
}

// run starts what is not an actor.
func (e *Engine) run() {
	start := e.opts.scheduler.Start
	start(ticker{e})
	start(e.journal)
	start(e.projector)
	if e.mailer != nil {
		start(e.mailer)
	}
}

// spawnAll starts every actor from the recovered state.
func (e *Engine) spawnAll(r *recovered) error {
	s := r.committed.State()
	e.ids.restore(s)
	e.Catalogue = directory.NewCatalogue(e.opts.Pairs, e.opts.Currencies, s)
	e.connect(r)
	e.admission.connect(s, e.journal, e)
	if err := e.spawnBooks(s); err != nil {
		return err
	}
	g := newRegistry(s, registryTools{limits: &e.opts.Limits, dir: e.dir, catalogue: e.Catalogue,
		fees: e.fees, sealer: e.sealer, material: e.opts.KeyMaterial, journal: e.journal, out: e,
		index: committed.NewIndex(e.opts.Store, e.opts.Timing.Request/2, e.log, e.meter, outside{e})})
	for _, a := range s.Accounts() {
		if err := e.openAccount(g.recoverAccount(a), newWallet(a, r.committed)); err != nil {
			return err
		}
	}
	if err := g.recoverKeys(s); err != nil {
		return err
	}
	registries := e.spawner(16)
	pid, err := registries.Spawn("registry", g)
	if err != nil {
		return err
	}
	e.registry = pid
	e.queues = append(e.queues, queue{"registry", registries.Newest()})
	return e.spawnFolds()
}

// spawnFolds starts the committed side and its imager. At the committed side what is released comes
// before the reads that wait.
func (e *Engine) spawnFolds() (err error) {
	lanes := *e.host
	lanes.Lanes = true
	imagers, committeds := e.spawner(1024), mailbox.NewSpawner(e.root, 1024, &lanes)
	imager := e.committed.Imager()
	if e.imager, err = imagers.Spawn("imager", imager); err != nil {
		return err
	}
	imager.Spawned(e.imager)
	if e.fold, err = committeds.Spawn("committed", e.committed); err != nil {
		return err
	}
	e.committed.Spawned(e.fold)
	e.queues = append(e.queues, queue{"committed", committeds.Newest()},
		queue{"imager", imagers.Newest()})
	return nil
}

// connect makes the journal, the projector, and the ways by which the committed side tells others.
func (e *Engine) connect(r *recovered) {
	o := &e.opts
	e.journal = newJournal(o.Store, r.token, r.last, o.Limits.BatchBytes, &o.Timing, e.log, e.meter,
		e)
	e.committed = r.committed
	po := committed.ProjectorOptions{Store: o.Store, Token: r.token, Log: e.log, Meter: e.meter, Fail: e.fail,
		Stop: e.stop}
	if o.Archive != nil {
		po.Archive = func(ctx context.Context, upTo uint64) (uint64, error) {
			return o.Archive(ctx, o.Store, e.sealer, persistence.HistoryID(e.history), upTo)
		}
	}
	e.projector = committed.NewProjector(e.committed, po)
	e.committed.Connect(e.root, outside{e}, e.projector)
	e.Door = committed.NewDoor(e.committed, readHost{e}, o.scheduler, e.dead, committed.ReadLimits{Reads: o.Limits.Reads,
		PerAccount: o.Limits.ReadsPerAccount, Patience: o.Timing.Request}, o.Store)
}

// outside is what the committed side tells of things.
type outside struct{ *Engine }

// Recycle implements committed.Outside.
func (o outside) Recycle(data []byte) { o.journal.recycleData(data) }

// Found implements committed.Outside.
func (o outside) Found(l committed.Looker) { o.root.Send(o.registry, l) }

// Mailed implements committed.Outside.
func (o outside) Mailed() {
	select {
	case o.mailbox <- struct{}{}:
	default:
	}
}

// readHost is what a door asks.
type readHost struct{ *Engine }

// Stopping implements committed.ReadHost.
func (h readHost) Stopping() bool { return h.stopping.Load() }

// TurnAway implements committed.ReadHost.
func (h readHost) TurnAway(why committed.Refusal) error {
	return h.turnAway([...]error{committed.RefusedBusy: ErrBusy, committed.RefusedAccountBusy: ErrAccountBusy,
		committed.RefusedStopping: ErrStopping}[why])
}

// spawnBooks starts the book of each configured pair.
func (e *Engine) spawnBooks(s *state.State) (err error) {
	shared := &bookShares{limits: &e.opts.Limits, ids: &e.ids, fees: e.fees, journal: e.journal,
		clock: &clockAlarm{log: e.log}}
	e.books = make([]*book, len(s.Pairs()))
	books := e.spawner(1024)
	for _, p := range e.Pairs() {
		b := newBook(p, s.Pair(p.Number), shared)
		if p.Book, err = books.Spawn("book/"+p.Name, b); err != nil {
			return err
		}
		e.queues = append(e.queues, queue{"books", books.Newest()})
		e.books[p.Number-1] = b
	}
	return nil
}

// openAccount starts an account's wallet, and lets others find the account.
func (e *Engine) openAccount(a *directory.Account, w *wallet) (err error) {
	w.account, w.out = a, e
	name := "wallet/" + strconv.FormatUint(uint64(a.ID), 10)
	if a.Wallet, err = e.wallets.Spawn(name, w); err == nil {
		e.dir.AddAccount(a)
	}
	return err
}

// spawner is for actors of one kind that are fail-stop.
func (e *Engine) spawner(room int) *mailbox.Spawner {
	return mailbox.NewSpawner(e.root, room, e.host)
}

// failStop is the guard of actors whose state cannot be trusted after a panic.
type failStop struct {
	log  *slog.Logger
	exit func(code int)
}

// Panicked ends the process.
func (f failStop) Panicked(m *mailbox.Mailbox, reason, message any) {
	f.broken(m.Name(), reason, message)
}

// broken ends the process because an actor's invariant broke. Its state cannot be trusted, and what
// others submitted may rest on it: recovery from the journal is what makes this safe.
func (f failStop) broken(name string, reason, message any) {
	f.log.Error("an invariant broke, the process ends", "actor", name, "reason", fmt.Sprint(reason),
		"message", fmt.Sprintf("%T", message), "stack", string(debug.Stack()))
	f.exit(ExitBroken)
}

func (e *Engine) deadLetter(message any) {
	if m, ok := message.(*actor.DeadLetterEvent); ok {
		switch m.Message.(type) {
		case *Command, *settled, *releasedCancel, *committed.Released, *releasedCommand, *lookup,
			*keyEnded:
			failStop{e.log, e.opts.Exit}.broken(m.PID.GetId(),
				"BUG: a message about money went to an actor that is not there",
				m.Message)
		}
	}
}

// A clockWatch sees jumps of the wall clock: it goes by another one than metrics.Now. One goroutine
// uses it.
type clockWatch struct {
	apart int64 // of the two, in nanoseconds, at the last look
	known bool
}

// jumped is how far the wall clock has gone ahead of the other one since the last look; negative:
// behind.
func (w *clockWatch) jumped(wall, monotonic int64) time.Duration {
	before, known := w.apart, w.known
	w.apart, w.known = wall-monotonic, true
	if !known {
		return 0
	}
	return time.Duration(w.apart - before)
}

// A ticker makes the committed side write behind now and then, and watches over the append in
// flight.
type ticker struct{ engine *Engine }

// Run ticks until the engine ends.
func (k ticker) Run() {
	e := k.engine
	t := time.NewTicker(e.opts.Timing.Projection)
	defer t.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-t.C:
			e.ticked()
		}
	}
}

func (e *Engine) ticked() {
	now := time.Now()
	if ahead := e.clock.jumped(now.UnixNano(),
		metrics.At(now)); ahead > clockToleranceUs*time.Microsecond {
		e.log.Error(
			"the clock has jumped ahead, or the machine stood still; if it is wrong now, records "+
				"keep its time until that has come: check the time service",
			"ahead", ahead.Round(time.Millisecond), "now", now.UTC().Format(time.RFC3339))
	}
	// later than the writer itself: a store that never returns
	if e.journal.stalledFor(metrics.Now()) > e.opts.Timing.StallMax*9/8 {
		e.journal.die(fmt.Errorf("%w after %v: an append has no outcome", ErrStalled,
			e.opts.Timing.StallMax))
	}
	e.committed.Send(committed.Tick{})
}

// lag is how far the committed side, or the imager behind it, is behind what was released, in
// records, and the store's projections behind that, in rows.
func (e *Engine) lag() (records uint64, rows int64) {
	c := e.committed
	return behind(c.Released(), min(c.Folded(), c.Imaged())), c.Unsaved()
}

// These make the engine a walletOut and a registryOut.
func (e *Engine) toBook(c *Command) {
	e.root.Send(e.Numbered(c.record.Pair).Book, c)
}
func (e *Engine) toJournal(n *entry)                         { e.journal.submit(n) }
func (e *Engine) toCommitted(r *committed.Read)              { e.committed.Send(r) }
func (e *Engine) lookUp(l *lookup)                           { e.committed.Send(l) }
func (e *Engine) limits() *Limits                            { return &e.opts.Limits }
func (e *Engine) withdrawalPolicy() *WithdrawPolicy          { return &e.opts.Withdraw }
func (e *Engine) toWallet(a *directory.Account, message any) { e.root.Send(a.Wallet, message) }
func (e *Engine) nextWithdrawal() uint64                     { return e.ids.withdrawal.Add(1) }
func (e *Engine) narrowCancelAll()                           { e.extraCancels.Add(-1) }
func (e *Engine) widenCancelAll() bool {
	if e.extraCancels.Add(1) <= int64(e.opts.Limits.InFlight) {
		return true
	}
	e.extraCancels.Add(-1)
	return false
}

// Code is the code that a withdraw is confirmed with.
func (e *Engine) Code(w *state.Withdraw) string { return e.sealer.Code(e.history, w) }

func (e *Engine) codeFits(w *state.Withdraw, code string) bool {
	return e.sealer.CodeFits(e.history, w, code)
}

// fail ends the engine: nothing is acknowledged any more. It may be called from any goroutine.
func (e *Engine) fail(err error) {
	e.failOnce.Do(func() {
		e.log.Error("the engine stops", "error", err)
		e.failure = err
		close(e.dead)
		e.own.end()
		if e.mailer != nil {
			e.mailer.hurry()
		}
	})
}

// Stop ends the engine in order: admission is closed, the mail that is being sent is sent, what is
// in flight is released, projections are written, a snapshot is taken, and the store is given back,
// so that another host's start need not wait. An error means that it did not come to that end
// before ctx was over, which is safe: the next start recovers from the journal.
func (e *Engine) Stop(ctx context.Context) error {
	e.CloseAdmission()
	defer close(e.stop)
	if e.mailer != nil {
		e.mailer.stop(ctx)
	}
	err := e.drain(ctx)
	if err == nil {
		e.committed.Send(committed.Finish{})
		select {
		case <-e.projector.Finished():
			err = errors.Join(e.Err(), e.projector.Err())
		case <-e.dead:
			err = e.failure
		case <-ctx.Done():
			err = fmt.Errorf("stopping before the projections were written: %w", ctx.Err())
		}
	}
	e.journal.close()
	if err != nil {
		e.fail(err) // wakes whoever still waits: the outcome is unknown
		return err
	}
	<-e.journal.stopped
	if err := e.own.release(ctx); err != nil {
		e.log.Warn(
			"the store was not given back: a start on another host waits until it is sure that "+
				"this one has ended", "error", err)
	}
	return nil
}

// drain waits until nothing is in flight.
func (e *Engine) drain(ctx context.Context) error {
	err := e.until(ctx, func() bool {
		return e.commandsInFlight() == 0 && e.journal.pending.Load() == 0 && e.ReadsInFlight() == 0
	})
	if err != nil && err == ctx.Err() {
		return fmt.Errorf("stopping with %d commands in flight: %w", e.commandsInFlight(), err)
	}
	return err
}

// Abandon ends the engine's goroutines without an orderly end, as a crash would: for tests.
func (e *Engine) Abandon() {
	e.CloseAdmission()
	e.fail(errors.New("abandoned"))
	e.journal.close()
	<-e.journal.stopped
	<-e.own.stopped
	close(e.stop)
	<-e.projector.Finished()
	if e.mailer != nil {
		<-e.mailer.finished
	}
}

// Key is the live API key with that public part, nil if there is none.
func (e *Engine) Key(public []byte) *directory.Key { return e.dir.Key(public) }

// Authority authenticates what is written apart from the store, with the server's key.
func (e *Engine) Authority() persistence.Authority { return e.sealer }

// Log is the engine's log.
func (e *Engine) Log() *slog.Logger { return e.log }

// Ready is nil when the engine is up and the store has confirmed lately that it is ours. In
// maintenance it is.
func (e *Engine) Ready() error {
	now := metrics.Now()
	if err := e.open(now); err != nil {
		return err
	}
	return e.confirmed(now)
}
