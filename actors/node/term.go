package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/mailbox"
	"exchange/actors/owner"
	"exchange/persistence"
)

// errUnfit is wrapped by the reason why a leader cannot serve.
var errUnfit = errors.New("this node cannot serve")

const (
	// unconfirmed is how many times OwnerStale a term continues without confirmation by a majority.
	// Without an append in flight nothing else ends it, and its subscribers receive nothing new.
	unconfirmed = 2
	retrySoon   = 5 * time.Millisecond
	retryLate   = 200 * time.Millisecond
	// triesToLead is the number of attempts of a leader to serve before it hands over.
	triesToLead = 3
)

// Lead waits until this node is the leader, and builds an engine on its fold, which takes commands
// when Lead returns. Call it again once that engine is dead: Engine.Dead is closed when another
// node has taken the lead, or Engine.Stop has ended the term. A leader that cannot serve hands over
// the lead, and keeps waiting. Errors: that of ctx, Node.Err if the fold has failed, and
// ErrStopping after Node.Stop. One goroutine calls it.
func (n *Node) Lead(ctx context.Context) (*actors.Engine, error) {
	logged := ""
	for tries := 1; ; tries++ {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-n.life.Dead():
			return nil, n.life.Err()
		case <-n.journalDone: // perhaps because the fold or the store has failed
			return nil, cmp.Or(n.life.Err(), actors.ErrStopping)
		case <-n.lead:
		}
		begin := time.Now()
		e, err := n.build(ctx)
		if err == nil || errors.Is(err, errUnfit) {
			n.setUnfit(err)
		}
		if err == nil {
			go n.oversee(e)
			seq, epoch := e.StartPoint()
			n.opts.Log.Info("this node leads and serves", "seq", seq, "epoch", epoch, "took",
				time.Since(begin).Round(time.Millisecond))
			return e, nil
		}
		// another node may lead by now, as after a hand-over
		if err != actors.ErrStopping && logged != err.Error() && ctx.Err() == nil &&
			n.replica.Leads() {
			logged = err.Error()
			n.opts.Log.Error("this node leads and does not serve", "error", err)
		}
		over := ctx.Err()
		switch {
		case !n.replica.Leads():
			tries = 0
		case errors.Is(err, errUnfit), errors.Is(err, persistence.ErrClock),
			tries%triesToLead == 0:
			over = n.handOver(ctx)
		}
		n.back <- struct{}{}
		if err == actors.ErrStopping {
			return nil, err
		}
		if over == nil {
			over = mailbox.Pause(ctx, retryLate)
		}
		if over != nil {
			return nil, over
		}
	}
}

// build calls becomeLeader, unless the node stops.
func (n *Node) build(ctx context.Context) (*actors.Engine, error) {
	n.building.Lock()
	defer n.building.Unlock()
	if n.stopping.Load() {
		return nil, actors.ErrStopping
	}
	return n.becomeLeader(ctx)
}

// becomeLeader makes this node the owner, and builds an engine. The caller holds the turn.
func (n *Node) becomeLeader(ctx context.Context) (_ *actors.Engine, err error) {
	if err := n.awaitFold(); err != nil {
		return nil, err
	}
	// From here on only this goroutine moves the fold.
	o, _, err := n.termOptions()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	own, err := owner.Lead(ctx, o.OwnerOptions(), o.Scheduler, n.replica.Leads,
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
	o, misfit, err := n.termOptions()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	if misfit != nil {
		n.opts.Log.Error("the applied market part does not fit the state any more: "+
			"that of the previous term is in effect again", "error", misfit)
	}
	o.NotifyStart(n.committed.State())
	if err := n.proposeMarket(ctx, o.Agreed); err != nil {
		return nil, err
	}
	if err := r.Prepare(ctx, o); err != nil {
		return nil, err
	}
	return n.buildEngine(o, r)
}

// current brings the fold to the end of the journal, which only this owner extends from now on.
func (n *Node) current(ctx context.Context, own *owner.Hold) (*actors.Base, error) {
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
	return &actors.Base{Hold: own, Side: n.committed, Meter: n.meter, Sealer: n.sealer,
		Keys:    n.keys,
		Cluster: &actors.Cluster{Replica: n.replica, Work: n.work, Settle: n.awaitFold}}, err
}

// buildEngine builds the engine, on the committed side's turn, so that it is built from a
// consistent state.
func (n *Node) buildEngine(o *actors.Options, r *actors.Base) (*actors.Engine, error) {
	var e *actors.Engine
	var failed error
	err := n.onSide(func() {
		if e, failed = r.Build(o); failed == nil {
			n.termPublic = e.Public
		}
	})
	if err != nil {
		return nil, err // the function may still run, and use the variables
	}
	if failed != nil {
		return nil, failed
	}
	n.engine.Store(e)
	if err := e.Launch(); err != nil {
		n.engine.Store(nil)
		e.Lose(err) // for commands that other nodes have forwarded already
		n.dropWatchers()
		return nil, err
	}
	if err := n.life.Err(); err != nil { // the fold failed before it could find the term
		e.Lose(err)
	}
	return e, nil
}

// oversee waits for the end of a term, shuts it down, and gives back the turn.
func (n *Node) oversee(e *actors.Engine) {
	e.Retire()
	n.engine.Store(nil)
	n.dropWatchers()
	e.Shutdown()
	n.back <- struct{}{}
}

// dropWatchers ends the watches of an ended term's channels.
func (n *Node) dropWatchers() {
	n.committed.Send(committed.DropWatchers{Then: func() { n.termPublic = nil }})
}
