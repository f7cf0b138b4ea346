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

// A Node is one of several processes that keep one journal together. It folds the journal and
// writes its own projections and snapshots, so that as the leader it can build an engine on the
// running fold. That engine's life is a term. The deciding side, the journal's writer, the mailer,
// the door, the channels of the stream, and their actor system belong to the term and end with it.
// The fold continues. Its methods may be called from any goroutine.
//
// The goroutine journalFollower feeds the fold with the batches that others append. During a term
// it pauses, and the term's journal feeds the fold. The two pass the turn by the channels lead and
// back.
type Node struct {
	work      *committed.Workers
	committed *committed.Side // that of work
	opts      actors.Options
	replica   persistence.Replica
	// observer is the store of an observer, which has no server's key; nil: this is a member
	observer *observing.Store
	sealer   *seal.Sealer
	keys     *actors.Keyring    // read by the goroutine that calls Lead
	root     *actor.RootContext // of the fold
	meter    *metrics.Engine
	life     mailbox.Life
	engine   atomic.Pointer[actors.Engine] // nil: no term
	// owners of the channels that watch the fold: of the follower, if there is one, otherwise of
	// the term. Used on the committed side's turn.
	followerPublic, termPublic *actors.Public

	links           atomic.Uint64 // number of forwarding connections to terms of this node
	operatorSlots   operatorSlots
	observers       *observing.Server
	traffic         metrics.Links
	badPeers        persistence.Seldom
	lead            chan struct{} // journalFollower passes the turn to Lead
	back            chan struct{} // and gets it back; capacity 1
	halt            context.CancelFunc
	journalDone     chan struct{} // closed when journalFollower has ended
	stopping        atomic.Bool
	completedFormat uint8      // format of the market part; owned by journalFollower
	marketMu        sync.Mutex // held while the market part changes in a term
	// unfitAt is one more than the folded sequence at which the last check found this node unfit to
	// serve; 0: fit
	unfitAt atomic.Uint64
	// building is held while a term is built, so that Stop sees every term
	building sync.Mutex
}

// Start recovers this node's part of the journal, and follows the journal from there. If it fails
// because of stored data, the node can still vote: see VoteOnly. Options.Store is a
// persistence.Replica; the node does not close it. All nodes of a cluster need the same server's
// key, which must be there: Options.Sealer makes none. Options.Identity and Options.TakeOver are
// ignored, because the nodes agree on the owner. On an observing.Store the node is an observer: it
// needs no key, and never leads. When its fold ends, it must be restarted on a new store.
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
	// Trims of others apply here only up to a snapshot of this node: without one its fold needs the
	// whole journal, and it may be far behind the leader.
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
	n.keys = actors.NewKeyring(n.sealer, &n.opts) // decrypted before a term needs them
	if n.observer == nil {
		if _, _, err := n.termOptions(); err != nil {
			o.Log.Warn("this node follows, and is unfit to serve", "error", err)
			n.setUnfit(err)
		}
	}
	n.meter.RecoveryNs, n.meter.RecoveryRecords = int64(time.Since(begin)), n.committed.Refolded()
	o.Log.Info("recovered, and following the journal", "store", replica.String(),
		"seq", n.committed.Folded(), "snapshot", n.committed.Began(),
		"records", n.committed.Refolded(), "took", time.Since(begin).Round(time.Millisecond))
	return n, n.run()
}

// awaitWatermark waits until this node's journal has reached its projections. After a crash the
// journal's end is known only once a leader has confirmed it.
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
			err = mailbox.Pause(ctx, retrySoon) // it leads, and has yet to apply its log
		}
		if err != nil {
			return 0, fmt.Errorf("waiting for the journal to reach sequence %d, which this node's "+
				"projections are at: %w", watermark, err)
		}
	}
}

// checkHistory fails for a store with another history than this host remembers, and remembers its
// history. An empty store is filled by the others.
func (n *Node) checkHistory() error {
	switch has := n.committed.Histories(); {
	case n.observer != nil:
		return nil
	case len(has) == 0:
		n.opts.Log.Warn("this node's store is empty: it is filled from the others", "store",
			n.replica.String())
		return nil
	default:
		return cmp.Or(n.opts.CheckHistory(n.committed.Folded(), has),
			n.opts.Remember(has[len(has)-1]))
	}
}

// run starts the fold and its goroutines.
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

// archive archives the journal up to the older snapshot, before this node trims it. The node holds
// everything not archived yet. Other nodes do not wait for it: they have their own archives.
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

// Recheck checks again whether this node could serve, as after a change of the market part. It does
// not affect a running term.
func (n *Node) Recheck() {
	n.onSide(n.recheck) //nolint:errcheck // a node whose fold has failed is unfit already
}

// recheck is Recheck on the committed side's turn.
func (n *Node) recheck() {
	if n.engine.Load() == nil && n.observer == nil {
		_, _, err := n.termOptions()
		n.setUnfit(err)
	}
}

// setUnfit sets why this node could not serve; nil: it could. A failed fold makes it unfit
// permanently.
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

// fail ends the fold: the node keeps voting, and no longer serves. Any goroutine may call it.
func (n *Node) fail(err error) {
	n.failWith("the fold has failed: this node only votes; fix the cause, and restart it", err)
}

// failWith is fail with a log message.
func (n *Node) failWith(what string, err error) {
	if n.life.Fail(err, func() { n.opts.Log.Error(what, "error", err) }) {
		n.replica.Unfit(err)
	}
	if e := n.engine.Load(); e != nil {
		e.Lose(err)
	}
}

// Dead is closed when the fold has failed; Err returns why. The node still votes.
func (n *Node) Dead() <-chan struct{} { return n.life.Dead() }

// Err returns why the fold has failed; nil: it has not.
func (n *Node) Err() error { return n.life.Err() }

// Ended is closed when the node no longer follows: it was stopped, or its store has ended.
func (n *Node) Ended() <-chan struct{} { return n.journalDone }

// Folded returns this node's newest folded sequence.
func (n *Node) Folded() uint64 { return n.committed.Folded() }

// Hash returns a digest of this node's state, and the state's sequence. Nodes at the same sequence
// have the same digest. The imager computes it, so neither reads nor the stream wait.
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

// errNoHash: an observer's state lacks the parts that only the server needs.
var errNoHash = errors.New("an observer's state has no digest to compare")

// Links counts requests forwarded from and to this node.
func (n *Node) Links() *metrics.Links { return &n.traffic }

// onSide runs a function on the committed side's turn, after everything released before.
func (n *Node) onSide(fn func()) error {
	p := mailbox.NewUrgentProbe(fn)
	n.committed.Send(p)
	select {
	case <-p.Done:
		return nil
	case <-n.life.Dead():
		return n.life.Err()
	}
}

// awaitFold waits until everything released is folded.
func (n *Node) awaitFold() error { return n.onSide(func() {}) }

// journalFollower is the goroutine that follows the journal.
type journalFollower struct {
	*Node
	ctx context.Context
}

// offerTimeout is how long a leader waits for a caller of Lead before it checks again whether it
// leads.
const offerTimeout = 50 * time.Millisecond

// Run follows until the node stops. Once the fold has failed, it hands over the lead.
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

// VoteOnly keeps a node without a working fold voting: its store votes, and hands over the lead
// whenever it has it. It returns when ctx or the store has ended.
func VoteOnly(ctx context.Context, r persistence.Replica, log *slog.Logger) {
	for ctx.Err() == nil {
		leads, err := r.Follow(ctx, ^uint64(0))
		switch {
		case errors.Is(err, persistence.ErrFormat): // the store itself hands over the lead
			if mailbox.Pause(ctx, time.Second) != nil {
				return
			}
		case err != nil || !leads, handOver(ctx, r, log) != nil:
			return
		}
	}
}

// offer passes the turn to a caller of Lead, if there is one, and waits for its return.
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

// awaitTurn waits until the turn is given back.
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

// catchUp folds the journal up to its end. The caller holds the turn.
func (n *Node) catchUp(ctx context.Context) error {
	return n.replica.Read(ctx, n.committed.Released(), func(_, next uint64, batch []byte) error {
		n.committed.Release(slices.Clone(batch), next)
		return n.awaitRoom(ctx)
	})
}

// awaitRoom waits until the fold and the projections have room for more. A node whose own store is
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

// hasRoom reports whether the fold and the projections have room for more: see admission.going.
func (n *Node) hasRoom() bool {
	l, c := &n.opts.Limits, n.committed
	return c.Lag() <= uint64(l.FoldLag) && c.Unsaved() <= int64(l.ProjectionLag)
}

func (n *Node) handOver(ctx context.Context) error { return handOver(ctx, n.replica, n.opts.Log) }

// handOver tries to transfer the lead to another node, and pauses if none takes it. An error is
// that of ctx.
func handOver(ctx context.Context, r persistence.Replica, log *slog.Logger) error {
	if err := r.Transfer(ctx, ""); err != nil && ctx.Err() == nil {
		log.Warn("this node should not lead, and no other node takes the lead", "error", err)
		return mailbox.Pause(ctx, time.Second)
	}
	return ctx.Err()
}

// A nodeTicker triggers the projections of a node, as ticker does for an engine. It rechecks an
// unfit node whenever the fold has advanced, because the missing records may be there. It does not
// wait for the check, because a stopping node may never run it.
type nodeTicker struct {
	*Node
	pendingCheck *mailbox.UrgentProbe // the newest check; nil: none
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

// recheckIfUnfit rechecks an unfit node, one check at a time.
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

// A nodeGuard guards the fold. While there is a term, a panic ends the process, as in any engine. A
// follower continues without its fold: it must vote.
type nodeGuard struct{ *Node }

// Panicked ends the fold or the process.
func (g nodeGuard) Panicked(m *mailbox.Mailbox, reason, message any) {
	if g.engine.Load() != nil {
		actors.FailStop{Log: g.opts.Log, Exit: g.opts.Exit}.Panicked(m, reason, message)
	}
	g.fail(fmt.Errorf("actor %s: %v", m.Name(), reason))
}

// nodeOutput forwards the output of a node's committed side: to the term, if there is one.
type nodeOutput struct{ *Node }

// Recycle implements committed.Output.
func (o nodeOutput) Recycle(data []byte) {
	if e := o.engine.Load(); e != nil {
		e.Outside().Recycle(data)
	}
}

// Notify implements committed.Output.
func (o nodeOutput) Notify(channel *actor.PID, message any) {
	if p := cmp.Or(o.followerPublic, o.termPublic); p != nil {
		p.Notify(channel, message)
	}
}

// Applied implements committed.Output.
func (o nodeOutput) Applied(r *event.Record) {
	for _, p := range [...]*actors.Public{o.followerPublic, o.termPublic} {
		if p != nil && p.HasKeys() {
			p.Apply(r)
		}
	}
}

// MailAdded implements committed.Output.
func (o nodeOutput) MailAdded() {
	if e := o.engine.Load(); e != nil {
		e.Outside().MailAdded()
	}
}

// Stop stops the node in order: its term, if it has one, then its lead, then the fold, with a last
// projection and a snapshot. An error means that part of that was not done, which is safe.
func (n *Node) Stop(ctx context.Context) error {
	if n.stopping.Swap(true) {
		return errors.New("BUG: a node is stopped twice")
	}
	n.building.Lock() // from here on no term starts
	e := n.engine.Load()
	n.building.Unlock()
	var err error
	if e != nil && e.Err() == nil {
		err = e.Stop(ctx)
	}
	if n.replica.Leads() {
		if err := n.replica.Transfer(ctx, ""); err != nil {
			n.opts.Log.Warn("the lead was not handed over: the other nodes elect another leader "+
				"after a timeout", "error", err)
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
