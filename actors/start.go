package actors

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/owner"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// Start waits until this process owns the store, recovers the state from it, and starts the actors.
// On success the engine accepts commands. The engine does not close the store.
func Start(ctx context.Context, o Options) (*Engine, error) {
	if o.Scheduler == nil {
		o.Scheduler = mailbox.Runners{}
	}
	sealer, err := precheck(ctx, &o)
	if err != nil {
		return nil, err
	}
	own, err := owner.Claim(ctx, o.OwnerOptions(), o.Scheduler)
	if err != nil {
		return nil, err
	}
	e, err := startOwned(ctx, &o, own, sealer)
	if err != nil {
		own.End() // the store still names this owner: only an orderly stop releases it
		return nil, err
	}
	return e, nil
}

// startOwned recovers and starts on a store that this process owns.
func startOwned(ctx context.Context, o *Options, own *owner.Hold,
	sealer *seal.Sealer) (*Engine, error) {
	begin := time.Now()
	r, err := recoverState(ctx, o, own)
	if err != nil {
		return nil, err
	}
	if sealer == nil {
		sealed := len(r.Side.State().Keys()) > 0
		if sealer, err = o.Sealer(sealed && !o.RevokeLost); err != nil {
			return nil, err
		}
	}
	if o.Store.Exclusive() { // otherwise precheck has read it, before a standby's wait
		if err := o.CheckHistory(own.Last, r.Side.Histories()); err != nil {
			return nil, err
		}
	}
	r.Sealer, r.Keys = sealer, NewKeyring(sealer, o)
	if err := checkServable(r.Side.State(), o, r.Keys); err != nil {
		return nil, err
	}
	o.NotifyStart(r.Side.State())
	if err := r.Prepare(ctx, o); err != nil {
		return nil, err
	}
	if err := own.AwaitOpening(ctx); err != nil {
		return nil, err
	}
	e, err := r.Build(o)
	if err == nil {
		err = e.Launch()
	}
	if err != nil {
		return nil, err
	}
	s := r.Side.State()
	e.meter.RecoveryNs, e.meter.RecoveryRecords = int64(time.Since(begin)), r.Side.Refolded()
	e.log.Info("recovered", "store", o.Store.String(), "seq", r.last,
		"snapshot", r.Side.Began(), "records", r.Side.Refolded(),
		"accounts", len(s.Accounts()), "took", time.Since(begin).Round(time.Millisecond))
	return e, nil
}

// An actor system keeps its actors in 1,024 maps of SHARD_COUNT shards. One shard is enough: 32
// cost each engine 65,000 objects and 5 ms.
func init() { cmap.SHARD_COUNT = 1 }

// Build makes an engine with its actors from the state, which must not change meanwhile. Launch
// follows.
func (r *Base) Build(o *Options) (*Engine, error) {
	e := newEngine(o, r)
	return e, e.spawnAll(r)
}

// Launch starts the non-actors: from then on the engine accepts commands. An error: the store is
// already lost.
func (e *Engine) Launch() error {
	if err := e.own.Watch(e.journal.die); err != nil {
		return fmt.Errorf("while starting: %w", err)
	}
	e.run()
	return nil
}

// newEngine makes an engine without actors.
func newEngine(o *Options, r *Base) *Engine {
	e := &Engine{opts: *o, log: o.Log, own: r.Hold, cluster: r.Cluster,
		history: r.Side.State().History(), meter: r.Meter, committed: r.Side,
		projected: r.Side.Watermark()}
	limits := e.opts.Limits
	e.live.Store(&limits)
	e.life.Begin(o.Scheduler, o.Timing.Request)
	e.prepare(&e.opts, &e.live, &e.life, r.Hold)
	e.host = &mailbox.Host{Scheduler: o.Scheduler, Guard: FailStop{o.Log, o.Exit}}
	e.system = committed.NewSystem()
	e.root = e.system.Root
	e.Public = &Public{opts: &e.opts, live: e.limits, root: e.root, side: r.Side,
		firesAt: e.firesAt, sealer: r.Sealer,
		onKeyRevoked: e.onKeyRevoked, onMaintenance: e.onMaintenance}
	if e.cluster != nil {
		e.closed = func() bool { return e.Err() != nil }
	}
	e.opener.wallets = e.spawner(0)
	e.system.EventStream.Subscribe(e.deadLetter)
	if o.Mail != nil {
		e.mailer = newMailer(&e.opts, e, &e.life, e.meter, e.history)
	}
	return e
}

// run starts the goroutines of non-actors.
func (e *Engine) run() {
	start := e.opts.Scheduler.Start
	// At a quarter of the limit that refuses commands, they still have room.
	rests := projectionPause{most: int64(e.opts.Limits.ProjectionLag / 4)}
	if r, ok := e.opts.Store.(persistence.Rewriter); ok {
		rests.rewriting = r.Rewriting
	}
	start(&ticker{life: &e.life, timing: &e.opts.Timing, journal: e.journal,
		committed: e.committed, wake: e.wakeBooks, fire: e.fireSwitches, log: e.log,
		pause: rests})
	start(e.journal)
	if e.cluster == nil {
		start(e.work.Projector)
	}
	if e.mailer != nil {
		start(e.mailer)
	}
}

// spawnAll starts every actor from the recovered state.
func (e *Engine) spawnAll(r *Base) error {
	s := r.Side.State()
	e.ids.restore(s)
	e.Catalogue = directory.NewCatalogue(e.opts.Pairs, e.opts.Currencies, s)
	e.connect(r)
	e.admission.connect(s, e.journal, e)
	if ended := s.Maintained(); ended != 0 {
		e.startSwitchGrace(ended)
	}
	if err := e.Fill(r.Keys); err != nil { // it opens those that the start has resealed
		return err
	}
	if err := e.spawnBooks(s); err != nil {
		return err
	}
	if err := e.openAccounts(s); err != nil {
		return err
	}
	e.registry = newRegistry(e)
	e.queues = append(e.queues, committed.Queue{Name: "registry", Mailbox: e.registry})
	if e.cluster == nil {
		if err := e.work.Spawn(e.host, e.opts.Tests.AtOnce); err != nil {
			return err
		}
	}
	// Switches that came due while no engine ran fire before any client's command. Lagging
	// projections, which refuse clients, do not delay them.
	e.fireWhile(e.checkStartCancel)
	return nil
}

// connect makes the journal and the door, and connects the committed side.
func (e *Engine) connect(r *Base) {
	o := &e.opts
	e.journal = newJournal(o.Store, r.Hold.Token, r.last, o.Limits.BatchBytes, &o.Timing, e.log,
		e.meter,
		e)
	if e.cluster != nil {
		e.work = e.cluster.Work
	} else {
		po := committed.ProjectorOptions{Store: o.Store, Token: r.Hold.Token, Log: e.log,
			Meter: e.meter, Fail: e.fail, Stop: e.life.Over(),
			Remember: func(id persistence.HistoryID) error { return o.Remember(id) }}
		if o.Archive != nil {
			po.Archive = func(ctx context.Context, upTo uint64) (uint64, error) {
				return o.Archive(ctx, o.Store, e.sealer, persistence.HistoryID(e.history), upTo)
			}
		}
		e.work = committed.Connect(e.committed, e.root, outside{e}, po)
	}
	limits := committed.ReadLimits{Reads: o.Limits.Reads, PerAccount: o.Limits.ReadsPerAccount,
		Patience: o.Timing.Request}
	e.Door = committed.NewDoor(e.committed, readHost{e}, o.Scheduler, e.Dead(), limits,
		o.Store)
}

// spawnBooks starts the book of each configured pair.
func (e *Engine) spawnBooks(s *state.State) (err error) {
	shared := &bookShares{limits: &e.live, ids: &e.ids, dir: e.dir, journal: e.journal,
		clock: &clockAlarm{log: e.log}, out: e}
	e.books = make([]*book, len(s.Pairs()))
	pairs := e.Pairs()
	err = mailbox.AtOnce(len(pairs), func(i int) error {
		p := pairs[i]
		e.books[p.Number-1] = newBook(p, s, shared)
		return nil
	})
	if err != nil {
		return err
	}
	books := e.spawner(1024)
	for _, p := range pairs {
		if p.Book, err = books.Spawn("book/"+p.Name, e.books[p.Number-1]); err != nil {
			return err
		}
		e.queues = append(e.queues, committed.Queue{Name: "books", Mailbox: books.Newest()})
	}
	return nil
}

// openAccounts schedules the switches, and starts the wallets that are too large for the fold's
// turn.
func (e *Engine) openAccounts(s *state.State) error {
	var long []*directory.Account
	for _, a := range s.Accounts() {
		account := e.dir.Account(a.ID)
		for list := a.Switches(); len(list) > 0; list = list[1:] {
			e.scheduleSwitch(account, switchOf(&list[0]), list[0].DueUs)
		}
		if a.Open.Len() > openAtOnce {
			long = append(long, account)
		}
	}
	return e.startWallets(long)
}

// spawner makes the spawner of one kind of fail-stop actors; room is its mailbox capacity.
func (e *Engine) spawner(room int) *mailbox.Spawner {
	return mailbox.NewSpawner(e.root, room, e.host)
}

func (e *Engine) deadLetter(message any) {
	if e.cluster != nil && e.Err() != nil {
		return // the term is over, and the outcome of commands in flight unknown
	}
	if m, ok := message.(*actor.DeadLetterEvent); ok {
		switch m.Message.(type) {
		case *Command, *commandBatch, *wallet, *settled, *releasedCancel, *committed.Released,
			*keyRevoked, *ownEntry, bookContinue:
			FailStop{e.log, e.opts.Exit}.broken(m.PID.GetId(),
				"BUG: a message about money went to an actor that is not there",
				m.Message)
		}
	}
}

// FailStop guards actors whose state is invalid after a panic.
type FailStop struct {
	Log  *slog.Logger
	Exit func(code int)
}

// Panicked ends the process.
func (f FailStop) Panicked(m *mailbox.Mailbox, reason, message any) {
	f.broken(m.Name(), reason, message)
}

// broken ends the process because an actor's invariant broke. The actor's state cannot be trusted,
// and other actors' entries may depend on it. Recovery from the journal makes this safe.
func (f FailStop) broken(name string, reason, message any) {
	f.Log.Error("an invariant broke, the process ends", "actor", name, "reason", fmt.Sprint(reason),
		"message", fmt.Sprintf("%T", message), "stack", string(debug.Stack()))
	f.Exit(exitBroken)
}

// Outside returns the receiver for a node's committed side.
func (e *Engine) Outside() committed.Output { return outside{e} }

// outside receives the committed side's notifications.
type outside struct{ *Engine }

// Recycle implements committed.Output.
func (o outside) Recycle(data []byte) { o.journal.recycleData(data) }

// Applied implements committed.Output.
func (o outside) Applied(r *event.Record) { o.Apply(r) }

// Mailed implements committed.Outside.
func (o outside) MailAdded() {
	if o.mailer != nil {
		o.mailer.wake()
	}
}

// readHost implements committed.ReadHost for the engine's door.
type readHost struct{ *Engine }

// Current implements committed.ReadHost. With a store of its own the engine alone answers commands,
// but for a moment that Confirmed bounds. In a cluster a read also waits for anything that a
// follower may have shown.
func (h readHost) Current() (uint64, error) {
	if h.cluster == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.opts.Timing.OwnerStale)
	defer cancel()
	seq, err := h.cluster.Replica.Confirm(ctx, h.own.Token)
	if err != nil {
		return 0, h.Engine.CountRefusal(ErrNotConfirmed)
	}
	return seq, nil
}

// Answered implements committed.ReadHost. Answers are folded here first.
func (h readHost) Answered() uint64 { return 0 }

// ToWallet implements committed.ReadHost.
func (h readHost) ToWallet(a *directory.Account, r *committed.Read) { h.toWallet(a, r) }

// Stopping implements committed.ReadHost.
func (h readHost) Stopping() bool { return h.stopping.Load() }

// CountRefusal implements committed.ReadHost.
func (h readHost) CountRefusal(why committed.Refusal) error {
	return h.Engine.CountRefusal(Refusals[why])
}

// Refusals are the errors of reads that are not admitted.
var Refusals = [...]error{committed.RefusedBusy: ErrBusy,
	committed.RefusedAccountBusy: ErrAccountBusy,
	committed.RefusedStopping:    ErrStopping}
