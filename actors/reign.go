package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/committed"
	"exchange/actors/mailbox"
	"exchange/actors/owner"
	"exchange/core/event"
	"exchange/persistence"
)

// errUnfit is wrapped by the log's reason why a node that leads cannot serve.
var errUnfit = errors.New("this node cannot serve")

const (
	// unconfirmed is how many times OwnerStale a reign goes on that no majority confirms. Without
	// an append in flight nothing else ends it, and its subscribers hear nothing new.
	unconfirmed = 2
	// triesToReign is how often in a row a node that leads tries to serve before it hands over.
	triesToReign = 3
)

// Reign waits until this node leads, and builds an engine on its fold, which takes commands when
// Reign returns. It is called again once that engine is dead: Engine.Dead is closed when another
// node has taken the lead, or Engine.Stop has ended the reign. A node that leads and cannot serve
// hands the lead over, and waits on. Errors: that of ctx, of a node whose fold has failed
// (Node.Err), and ErrStopping behind Node.Stop. One goroutine calls it.
func (n *Node) Reign(ctx context.Context) (*Engine, error) {
	said := ""
	for tries := 1; ; tries++ {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-n.life.Dead():
			return nil, n.life.Err()
		case <-n.followed: // perhaps because the fold or the store has failed
			return nil, cmp.Or(n.life.Err(), ErrStopping)
		case <-n.lead:
		}
		begin := time.Now()
		e, err := n.build(ctx)
		if err == nil || errors.Is(err, errUnfit) {
			n.judged(err)
		}
		if err == nil {
			go n.oversee(e)
			n.opts.Log.Info("this node leads and serves", "seq", e.own.Last, "epoch",
				e.own.Token.Epoch(), "took", time.Since(begin).Round(time.Millisecond))
			return e, nil
		}
		// another node may have taken the lead meanwhile, as after a hand-over
		if err != ErrStopping && said != err.Error() && ctx.Err() == nil && n.replica.Leads() {
			said = err.Error()
			n.opts.Log.Error("this node leads and does not serve", "error", err)
		}
		over := ctx.Err()
		switch {
		case !n.replica.Leads():
			tries = 0
		case errors.Is(err, errUnfit), errors.Is(err, persistence.ErrClock),
			tries%triesToReign == 0:
			over = n.handOver(ctx)
		}
		n.back <- struct{}{}
		if err == ErrStopping {
			return nil, err
		}
		if over == nil {
			over = mailbox.Pause(ctx, retryMost)
		}
		if over != nil {
			return nil, over
		}
	}
}

// build is ascend, and nothing behind Stop.
func (n *Node) build(ctx context.Context) (*Engine, error) {
	n.building.Lock()
	defer n.building.Unlock()
	if n.stopping.Load() {
		return nil, ErrStopping
	}
	return n.ascend(ctx)
}

// ascend makes this node the owner, and builds an engine. It has the turn.
func (n *Node) ascend(ctx context.Context) (_ *Engine, err error) {
	if err := n.settled(); err != nil {
		return nil, err
	}
	// The fold stands still from here on, but for what this goroutine gives it.
	o, err := n.agreed()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	own, err := owner.Lead(ctx, o.owner(), o.Scheduler, n.replica.Leads,
		unconfirmed*o.Timing.OwnerStale)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			own.End()
		}
	}()
	r, err := n.current(ctx, own)
	if err != nil {
		return nil, err
	}
	o, err = n.agreed()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	if o.misfit != nil {
		n.opts.Log.Error("the market part that was applied does not fit what the exchange holds "+
			"now: that of the reign before counts again", "error", o.misfit)
	}
	o.begins(n.committed.State())
	if err := n.decree(ctx, o.market); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx, o, n.sealer); err != nil {
		return nil, err
	}
	return n.crown(o, own, r)
}

// current brings the fold to the end of the journal, which is this owner's from now on.
func (n *Node) current(ctx context.Context, own *owner.Hold) (*recovered, error) {
	if err := n.catchUp(ctx); err != nil {
		return nil, err
	}
	if at := n.committed.Released(); at != own.Last {
		return nil, fmt.Errorf("%w: the journal ends at sequence %d, this node has read up to %d",
			persistence.ErrCorrupt, own.Last, at)
	}
	var err error
	if dead := n.onSide(func() { err = n.committed.LoadNonces(ctx, n.replica) }); dead != nil {
		return nil, dead
	}
	return &recovered{token: own.Token, last: own.Last, committed: n.committed, meter: n.meter,
		keys: n.keys, node: n}, err
}

// crown builds the engine, on the turn of the committed side: what is built from the state must not
// see a part of a step.
func (n *Node) crown(o *Options, own *owner.Hold, r *recovered) (*Engine, error) {
	var e *Engine
	var failed error
	err := n.onSide(func() {
		e = newEngine(o, own, r, n.sealer)
		if failed = e.spawnAll(r); failed == nil {
			n.crowned = e.Public
		}
	})
	if err != nil {
		return nil, err // the function may still run: it has the variables
	}
	if failed != nil {
		return nil, failed
	}
	n.reign.Store(e)
	if err := own.Watch(e.journal.die); err != nil {
		n.reign.Store(nil)
		e.fail(err) // for those whom other nodes have sent here already
		n.deserted()
		return nil, fmt.Errorf("while starting: %w", err)
	}
	e.run()
	if err := n.life.Err(); err != nil { // the fold failed before it could find the reign
		e.journal.die(err)
	}
	return e, nil
}

// oversee waits for the end of a reign, ends what is its own, and gives the turn back.
func (n *Node) oversee(e *Engine) {
	select {
	case <-e.Dead():
	case <-e.life.Over():
	}
	e.CloseAdmission()
	e.journal.close()
	<-e.journal.stopped // what it has made durable and not released is read from the journal
	e.own.End()
	<-e.own.Stopped()
	e.life.End()
	e.fail(errReignOver)
	if e.mailer != nil {
		<-e.mailer.finished
	}
	n.reign.Store(nil)
	n.deserted()
	e.system.Shutdown()
	n.back <- struct{}{}
}

// deserted ends what the channels of a reign that is over have watched.
func (n *Node) deserted() {
	n.committed.Send(committed.Deserted{Then: func() { n.crowned = nil }})
}

// admit lets commands of one account in, or none, once this engine has released all that another
// node may have shown to their client: what was seen there can be used here.
func (e *Engine) admit(list []*Command) error {
	if list[0].kind == event.KindWithdrawal && e.mailer == nil {
		return ErrNoMail
	}
	if !e.hasReleased() {
		err := e.takes(list)
		if err == nil {
			err = e.awaitReleased()
		}
		if err != nil {
			return err
		}
	}
	return e.takeSlotsOrLower(list)
}

// hasReleased reports whether no other node can have more than this engine has released.
func (e *Engine) hasReleased() bool {
	if e.node == nil {
		return true
	}
	end, all := e.node.replica.Known()
	return all && e.committed.Released() >= end
}

// awaitReleased waits until all is released that is committed now. The journal's writer mostly
// needs but a moment.
func (e *Engine) awaitReleased() error {
	end, all := e.node.replica.Known()
	runtime.Gosched()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for until := time.Now().Add(e.opts.Timing.OwnerStale); ; {
		next := e.releases.wait()
		if !all {
			end, all = e.node.replica.Known()
		}
		if all && e.committed.Released() >= end {
			return nil
		}
		select {
		case <-next:
		case now := <-again.C: // raft may have applied what no release follows
			if now.After(until) {
				return ErrNotConfirmed
			}
		case <-e.Dead():
			return ErrStopping
		}
	}
}

// releases tell the commands that wait for a release of it. The journal's writer calls told.
type releases struct {
	waiting atomic.Bool
	mu      sync.Mutex
	next    chan struct{} // closed by the next release; nil: no command waits; guarded by mu
}

// wait returns a channel that the next release closes.
func (r *releases) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = make(chan struct{})
		r.waiting.Store(true)
	}
	return r.next
}

func (r *releases) told() {
	if !r.waiting.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.next)
	r.next = nil
	r.waiting.Store(false)
}
