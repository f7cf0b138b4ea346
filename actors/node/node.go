package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/actors/observing"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/persistence"
)

// A Node is one of several processes that keep one journal together. It folds what the journal has,
// writes its own projections and snapshots, and so stands ready: when it leads, it builds an engine
// on the running fold. That engine's life is a term. What is a term's own is gone when the term
// ends: the deciding side, the journal's writer, the mailer, the door, the channels of the stream,
// and the actor system that they are in. The fold goes on. Its methods may be called from any
// goroutine.
//
// A goroutine of the node (journalFollower) gives the fold what others append. While there is a
// term, it rests: then the term's journal does so. The two take turns by lead and back.
type Node struct {
	work      *committed.Workers
	committed *committed.Side // that of work
	opts      actors.Options
	replica   persistence.Replica
	// observer is the replica of an observer, which has no server's key; nil: this is a member
	observer *observing.Store
	sealer   *seal.Sealer
	keys     *actors.Keyring    // read by the goroutine that calls Lead
	root     *actor.RootContext // of the fold
	meter    *metrics.Engine
	life     mailbox.Life
	engine   atomic.Pointer[actors.Engine] // nil: there is none
	// whose channels watch the fold: those of the follower, if there is one, and otherwise those
	// of the term. On the turn of the committed side.
	followerPublic, termPublic *actors.Public

	links           atomic.Uint64 // connections that forwarded something to a term of this node
	operatorSlots   operatorSlots
	observers       *observing.Server
	traffic         metrics.Links
	badPeers        persistence.Seldom
	lead            chan struct{} // journalFollower gives the turn to a Lead
	back            chan struct{} // and gets it back; capacity 1
	halt            context.CancelFunc
	journalDone     chan struct{} // closed when journalFollower has ended
	stopping        atomic.Bool
	completedFormat uint8      // format up to which complete has nothing to do; of journalFollower
	marketMu        sync.Mutex // held while the market part changes in a term
	// unfitAt is one more than the sequence at which this node was found not to be able to serve,
	// as it was judged last; 0: it could
	unfitAt atomic.Uint64
	// building is held while a term is built, so that Stop finds each
	building sync.Mutex
}

// Start recovers what this node has of the journal, and follows the journal from there on. If
// it fails because of what is stored, the node can still vote: see VoteOn.
// Options.Store is a persistence.Replica; the node does not close it. All nodes of a cluster need
// the same server's key, which must be there: Options.Sealer makes none. Options.Identity and
// Options.TakeOver have no meaning, because the nodes agree on the owner. On an observing.Store the
// node is an observer: it needs no key, and gets no term. When its fold ends, it is to be started
// again, on a new store.
func Start(ctx context.Context, o actors.Options) (*Node, error) {
	replica, ok := o.Store.(persistence.Replica)
	if !ok {
		return nil, fmt.Errorf("BUG: %v is no store of a node", o.Store)
	}
	if o.Scheduler == nil {
		o.Scheduler = mailbox.Runners{}
	}
	n := &Node{opts: o, replica: replica, meter: metrics.NewEngine(),
		lead: make(chan struct{}), back: make(chan struct{}, 1), journalDone: make(chan struct{})}
	if n.observer, _ = o.Store.(*observing.Store); n.observer == nil {
		var err error
		if n.sealer, err = o.Sealer(true); err != nil {
			return nil, fmt.Errorf("a node needs the server's key that all nodes have: %w", err)
		}
	}
	n.life.Begin(o.Scheduler, o.Timing.Request)
	// What others trim counts here only behind a snapshot of this node: without one its fold needs
	// all of the journal, and it may be far behind the node that leads.
	replica.Hold(0)
	begin := time.Now()
	watermark, err := n.awaitWatermark(ctx)
	if err != nil {
		return nil, err
	}
	recovers := &committed.RecoverOptions{Store: replica, Last: watermark, Grows: true, Log: o.Log,
		Meter: n.meter, Snapshot: o.Snapshot, Retention: o.Retention, StepRows: o.Tests.StepRows,
		Candles: o.Tests.Candles, OwnBytes: o.Limits.OwnBytes}
	if n.observer != nil {
		recovers.RemoteHistory = n.observer
	}
	n.committed, err = committed.Recover(ctx, recovers)
	if err != nil {
		return nil, err
	}
	if err := n.checkHistory(); err != nil {
		return nil, err
	}
	n.keys = actors.NewKeyring(n.sealer, &n.opts) // a term finds them open
	if n.observer == nil {
		if _, _, err := n.termOptions(); err != nil {
			o.Log.Warn("this node follows, and could not serve", "error", err)
			n.setUnfit(err)
		}
	}
	n.meter.RecoveryNs, n.meter.RecoveryRecords = int64(time.Since(begin)), n.committed.Refolded()
	o.Log.Info("recovered, and following the journal", "store", replica.String(),
		"seq", n.committed.Folded(), "snapshot", n.committed.Began(),
		"records", n.committed.Refolded(), "took", time.Since(begin).Round(time.Millisecond))
	return n, n.run()
}

// awaitWatermark waits until this node's journal has all that its projections have. After a crash the
// journal says so only when a node that leads has confirmed its end.
func (n *Node) awaitWatermark(ctx context.Context) (watermark uint64, err error) {
	if watermark, err = n.replica.Watermark(ctx); err != nil {
		return 0, fmt.Errorf("reading the watermark: %w", err)
	}
	for {
		beat, err := n.replica.Beat(ctx)
		if err != nil || beat.End.Seq >= watermark {
			return watermark, err
		}
		leads, err := n.replica.Follow(ctx, beat.End.Seq)
		if err == nil && leads {
			err = mailbox.Pause(ctx, retrySoon) // it leads, and has yet to apply what it has
		}
		if err != nil {
			return 0, fmt.Errorf("waiting for the journal to reach sequence %d, which this node's "+
				"projections are at: %w", watermark, err)
		}
	}
}

// checkHistory refuses a store that is not the one that this host knows, and remembers its history. A
// store that has folded nothing yet is filled by the others.
func (n *Node) checkHistory() error {
	switch has := n.committed.Histories(); {
	case n.observer != nil:
		return nil
	case len(has) == 0:
		n.opts.Log.Warn("this node's store is empty: it takes what the others have", "store",
			n.replica.String())
		return nil
	default:
		return cmp.Or(n.opts.Familiar(n.committed.Folded(), has),
			n.opts.Remember(has[len(has)-1]))
	}
}

// run starts the fold and all that belongs to it.
func (n *Node) run() error {
	o := &n.opts
	n.root = committed.NewSystem().Root
	host := &mailbox.Host{Scheduler: o.Scheduler, Guard: nodeGuard{n}}
	po := committed.ProjectorOptions{Store: n.replica, Token: n.replica.Own(), Log: o.Log,
		Meter: n.meter, Fail: n.fail, Stop: n.life.Over(), Archive: n.archive,
		Remember: func(id persistence.HistoryID) error { return o.Remember(id) }}
	n.work = committed.Connect(n.committed, n.root, nodeOutput{n}, po)
	if err := n.work.Spawn(host, o.Tests.AtOnce); err != nil {
		return err
	}
	n.replica.Accept(n.accept)
	n.observers = observing.NewServer(n.replica, observedMember{n}, o.Log, o.Timing.OwnerStale)
	n.replica.AcceptObservers(n.acceptObserver)
	ctx, halt := context.WithCancel(context.Background())
	n.halt = halt
	o.Scheduler.Start(n.work.Projector)
	o.Scheduler.Start(&journalFollower{n, ctx})
	o.Scheduler.Start(&nodeTicker{Node: n})
	return nil
}

// archive keeps the journal up to a sequence, that of the older snapshot, before this node forgets
// it. What the archive lacks this node holds. The other nodes do not wait for it: they have
// archives of their own.
func (n *Node) archive(ctx context.Context, upTo uint64) (uint64, error) {
	if n.opts.Archive == nil {
		n.replica.Hold(upTo)
		return upTo, nil
	}
	var history event.HistoryID
	if err := n.onSide(func() { history = n.committed.State().History() }); err != nil {
		return 0, err
	}
	has, err := n.opts.Archive(ctx, n.replica, n.sealer, persistence.HistoryID(history), upTo)
	if err != nil {
		return upTo, fmt.Errorf("%w; until the archive has it this node keeps its log, which is "+
			"of %d bytes, and its disk fills", err, n.replica.Standing().LogBytes)
	}
	n.replica.Hold(has)
	return upTo, nil
}

// Recheck finds out anew whether this node could serve, as when another market part is applied. A
// term that is under way goes on in any case.
func (n *Node) Recheck() {
	n.onSide(n.recheck) //nolint:errcheck // a node whose fold has failed is judged already
}

// recheck is Judge on the committed side's turn.
func (n *Node) recheck() {
	if n.engine.Load() == nil && n.observer == nil {
		_, _, err := n.termOptions()
		n.setUnfit(err)
	}
}

// setUnfit says why this node could not serve; nil: it could. A fold that has failed is why for good.
func (n *Node) setUnfit(why error) {
	at := uint64(0)
	if why != nil {
		at = n.committed.Folded() + 1
	}
	n.unfitAt.Store(at)
	n.replica.Unfit(why)
	if failed := n.life.Err(); failed != nil {
		n.replica.Unfit(failed)
	}
}

// fail ends the fold: the node votes on, and serves no more. Any goroutine may call it.
func (n *Node) fail(err error) {
	n.failWith("this node folds no more: it votes, and neither serves nor leads; mend what is wrong, "+
		"and restart it", err)
}

// failWith is fail, which logs what has happened.
func (n *Node) failWith(what string, err error) {
	if n.life.Fail(err, func() { n.opts.Log.Error(what, "error", err) }) {
		n.replica.Unfit(err)
	}
	if e := n.engine.Load(); e != nil {
		e.Lose(err)
	}
}

// Dead is closed when the fold has failed; Err says why. The node still votes.
func (n *Node) Dead() <-chan struct{} { return n.life.Dead() }

// Err returns why the node is dead; nil: it lives.
func (n *Node) Err() error { return n.life.Err() }

// Ended is closed when the node follows no more: it was stopped, or its store has ended.
func (n *Node) Ended() <-chan struct{} { return n.journalDone }

// Folded returns the newest sequence that this node has folded.
func (n *Node) Folded() uint64 { return n.committed.Folded() }

// Hash returns a digest of this node's state, and the sequence that the state is at. Nodes at the
// same sequence have the same digest. The state is the one that images are made of, so neither
// reads nor the stream wait for it.
func (n *Node) Hash(ctx context.Context) (seq uint64, hash [sha256.Size]byte, err error) {
	if n.work.Imager == nil {
		return 0, hash, errNoHash
	}
	p := mailbox.NewProbe(func(a actor.Actor) {
		s := a.(*committed.Imager).State()
		seq, hash = s.Seq(), s.Hash()
	})
	n.root.Send(n.work.Imager, p)
	select {
	case <-p.Done:
		return seq, hash, nil
	case <-n.life.Dead():
		return 0, hash, n.life.Err()
	case <-ctx.Done():
		return 0, hash, ctx.Err()
	}
}

// errNoHash: an observer's state lacks what only the server needs.
var errNoHash = errors.New("an observer's state has no digest to compare")

// Links counts what this node's clients have others do, and others' clients this one.
func (n *Node) Links() *metrics.Links { return &n.traffic }

// onSide runs a function on the committed side's turn, behind all that was released before.
func (n *Node) onSide(look func()) error {
	p := mailbox.NewUrgentProbe(look)
	n.committed.Send(p)
	select {
	case <-p.Done:
		return nil
	case <-n.life.Dead():
		return n.life.Err()
	}
}

// awaitFold waits until all that was released is folded.
func (n *Node) awaitFold() error { return n.onSide(func() {}) }

// journalFollower is the goroutine that follows the journal.
type journalFollower struct {
	*Node
	ctx context.Context
}

// offerTimeout is for how long a node that leads waits for a caller of Lead before it looks again
// whether it leads.
const offerTimeout = 50 * time.Millisecond

// Run follows until the node stops. When the fold has failed it hands the lead over.
func (n *journalFollower) Run() {
	defer close(n.journalDone)
	for n.ctx.Err() == nil && n.life.Err() == nil {
		leads, err := n.replica.Follow(n.ctx, n.committed.Released())
		if err != nil && n.ctx.Err() == nil && !errors.Is(err, persistence.ErrFormat) {
			n.failWith("this node's store has ended", err)
			return
		}
		if err == nil {
			err = n.catchUp(n.ctx)
		}
		switch {
		case n.ctx.Err() != nil:
		case err != nil:
			n.fail(fmt.Errorf("following the journal: %w", err))
		case leads:
			n.offer()
		}
	}
	VoteOnly(n.ctx, n.replica, n.opts.Log)
}

// VoteOnly is all that a node does whose fold has failed, or could not begin: its store votes, and it
// hands the lead over whenever it leads. It returns when ctx or the store has ended.
func VoteOnly(ctx context.Context, r persistence.Replica, log *slog.Logger) {
	for ctx.Err() == nil {
		leads, err := r.Follow(ctx, ^uint64(0))
		switch {
		case errors.Is(err, persistence.ErrFormat): // the store hands the lead over by itself
			if mailbox.Pause(ctx, time.Second) != nil {
				return
			}
		case err != nil || !leads, handOver(ctx, r, log) != nil:
			return
		}
	}
}

// offer gives the turn to a caller of Lead, if there is one, until it comes back.
func (n *journalFollower) offer() {
	t := time.NewTimer(offerTimeout)
	defer t.Stop()
	select {
	case n.lead <- struct{}{}:
		n.completedFormat = 0
		n.awaitTurn()
	case <-t.C:
	case <-n.ctx.Done():
	}
}

// awaitTurn waits until the turn comes back.
func (n *journalFollower) awaitTurn() {
	t := time.NewTicker(n.opts.Timing.OwnerCheck)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			n.completeMarket(n.ctx)
		case <-n.back:
			return
		case <-n.ctx.Done():
			return
		}
	}
}

// catchUp gives the fold what the journal has. The caller has the turn.
func (n *Node) catchUp(ctx context.Context) error {
	return n.replica.Read(ctx, n.committed.Released(), func(_, next uint64, batch []byte) error {
		n.committed.Release(slices.Clone(batch), next)
		return n.awaitRoom(ctx)
	})
}

// awaitRoom waits until the fold and the projections may be given more. A node whose own store is
// that slow does not lead meanwhile.
func (n *Node) awaitRoom(ctx context.Context) error {
	for !n.hasRoom() {
		some, cancel := context.WithTimeout(ctx, n.opts.Timing.OwnerStale)
		err := n.life.Until(some, n.hasRoom)
		cancel()
		switch {
		case err == nil:
		case ctx.Err() != nil, n.life.Err() != nil:
			return err
		case n.replica.Leads():
			if err := n.handOver(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasRoom reports whether the fold and the projections may be given more: see admission.going.
func (n *Node) hasRoom() bool {
	l, c := &n.opts.Limits, n.committed
	return c.Lag() <= uint64(l.FoldLag) && c.Unsaved() <= int64(l.ProjectionLag)
}

func (n *Node) handOver(ctx context.Context) error { return handOver(ctx, n.replica, n.opts.Log) }

// handOver tries to give the lead to another node, and pauses if none takes it. An error is that of
// ctx.
func handOver(ctx context.Context, r persistence.Replica, log *slog.Logger) error {
	if err := r.Transfer(ctx, ""); err != nil && ctx.Err() == nil {
		log.Warn("this node should not lead, and no other one takes the lead", "error", err)
		return mailbox.Pause(ctx, time.Second)
	}
	return ctx.Err()
}

// A nodeTicker makes the committed side of a node write behind, as ticker does for an engine. It
// has a node judged again that could not serve, when its fold has moved on: what the node lacked at
// its start may be there. It waits for no judgement, because a node that stops may give none.
type nodeTicker struct {
	*Node
	pendingCheck *mailbox.UrgentProbe // the newest; nil: there is none
}

// Run ticks until the node has stopped.
func (n *nodeTicker) Run() {
	t := time.NewTicker(n.opts.Timing.Projection)
	defer t.Stop()
	for {
		select {
		case <-n.life.Over():
			return
		case <-t.C:
			n.committed.Send(committed.Tick{})
			n.recheckIfUnfit()
		}
	}
}

// recheckIfUnfit has the node judged again, one judgement at a time.
func (n *nodeTicker) recheckIfUnfit() {
	at := n.unfitAt.Load()
	if at == 0 || n.committed.Folded() < at {
		return
	}
	if n.pendingCheck != nil {
		select {
		case <-n.pendingCheck.Done:
		default:
			return
		}
	}
	n.pendingCheck = mailbox.NewUrgentProbe(n.recheck)
	n.committed.Send(n.pendingCheck)
}

// A nodeGuard guards the fold. While there is a term, a panic ends the process, as in any engine.
// A node that follows goes on without its fold: it must vote.
type nodeGuard struct{ *Node }

// Panicked ends the fold or the process.
func (g nodeGuard) Panicked(m *mailbox.Mailbox, reason, message any) {
	if g.engine.Load() != nil {
		actors.FailStop{Log: g.opts.Log, Exit: g.opts.Exit}.Panicked(m, reason, message)
	}
	g.fail(fmt.Errorf("actor %s: %v", m.Name(), reason))
}

// nodeOutput passes on what the committed side of a node tells: to the term, if there is one.
type nodeOutput struct{ *Node }

// Recycle implements committed.Outside.
func (o nodeOutput) Recycle(data []byte) {
	if e := o.engine.Load(); e != nil {
		e.Outside().Recycle(data)
	}
}

// Notify implements committed.Outside.
func (o nodeOutput) Notify(channel *actor.PID, message any) {
	if p := cmp.Or(o.followerPublic, o.termPublic); p != nil {
		p.Notify(channel, message)
	}
}

// Applied implements committed.Outside.
func (o nodeOutput) Applied(r *event.Record) {
	for _, p := range [...]*actors.Public{o.followerPublic, o.termPublic} {
		if p != nil && p.HasKeys() {
			p.Apply(r)
		}
	}
}

// Mailed implements committed.Outside.
func (o nodeOutput) Mailed() {
	if e := o.engine.Load(); e != nil {
		e.Outside().Mailed()
	}
}

// Stop ends the node in order: its term, if it has one, then its lead, then the fold, with a last
// projection and a snapshot. An error means that not all of that was done, which is safe.
func (n *Node) Stop(ctx context.Context) error {
	if n.stopping.Swap(true) {
		return errors.New("BUG: a node is stopped twice")
	}
	n.building.Lock() // behind it no term begins any more
	e := n.engine.Load()
	n.building.Unlock()
	var err error
	if e != nil && e.Err() == nil {
		err = e.Stop(ctx)
	}
	if n.replica.Leads() {
		if err := n.replica.Transfer(ctx, ""); err != nil {
			n.opts.Log.Warn("the lead was not handed over: the other nodes elect another one when "+
				"they miss this one", "error", err)
		}
	}
	n.halt()
	<-n.journalDone
	if n.life.Err() == nil && n.observer == nil { // an observer keeps nothing
		err = errors.Join(err, n.work.Finish(ctx, &n.life))
	}
	n.life.End()
	return err
}
