package node

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/state"
)

// A Follower serves public data from the node's own fold, and forwards its clients' commands to the
// leader. A read, and the first state of a subscription, contains everything that any node
// acknowledged before the request. Its methods may be called from any goroutine.
type Follower struct {
	*actors.Public
	node    *Node
	system  *actor.ActorSystem
	market  atomic.Pointer[[]byte] // the applied text, equivalent to the first one
	endOnce sync.Once
	ended   chan struct{}
	// confirmed is the start of the newest successful confirm, in the time of metrics.Now. The
	// caller of Await owns it.
	confirmed int64

	// State for clients with keys, beside the directory.
	maintenance atomic.Pointer[event.Maintenance] // nil: there is none
	graceMu     sync.Mutex
	grace       actors.Grace // after the newest end of a maintenance; guarded by graceMu

	commands      *forwarder // nil: no clients, because of keyless
	keyless       error      // reason why no client's key can be opened; nil: none
	halt          context.CancelFunc
	forwarderDone chan struct{} // closed when commands.run has returned
}

var (
	// errFollows: the previous follower has not ended yet.
	errFollows = errors.New("this node has a follower already")
	// errLeads: watching channels would receive events twice.
	errLeads  = errors.New("this node serves as the leader")
	errLagged = errors.New("this node's fold lags behind the leader, or no leader has " +
		"confirmed it lately")
	// errUnnumbered: the term has yet to write these records.
	errUnnumbered = errors.New("a currency or a pair of the market part has no number yet")
	// errOther: the served pairs are no longer current.
	errOther = errors.New("another market part is in effect")
	// errSessions: clients that rely on the end of their sockets must be disconnected.
	errSessions = errors.New("the connection to the leader is lost, and with it the " +
		"sessions whose end cancels orders")
)

// Follow starts to serve public data, once this node has folded everything acknowledged before.
// There is one follower at a time. It may continue when this node becomes the leader, and must be
// ended before the term's engine gets subscribers. Errors: that of ctx, and the reason why nothing
// can be served now.
func (n *Node) Follow(ctx context.Context) (*Follower, error) {
	a := &Follower{node: n, system: committed.NewSystem(), ended: make(chan struct{})}
	if err := a.begin(ctx); err != nil {
		a.system.Shutdown()
		return nil, err
	}
	return a, nil
}

func (a *Follower) begin(ctx context.Context) error {
	n := a.node
	if err := n.life.Err(); err != nil {
		return err
	}
	err := a.confirm(ctx)
	if err != nil {
		return err
	}
	_, market := n.replica.Market()
	a.market.Store(&market)
	o, err := n.optionsFor(market)
	if err != nil {
		return err
	}
	if dead := n.onSide(func() { err = a.connect(o) }); dead != nil {
		return dead
	}
	if err != nil || a.commands == nil {
		return err
	}
	ctx, a.halt = context.WithCancel(context.Background())
	a.forwarderDone = make(chan struct{})
	go func() {
		defer close(a.forwarderDone)
		a.commands.run(ctx)
	}()
	return nil
}

// Commands executes the commands of this node's clients; nil: it has no clients with keys.
func (a *Follower) Commands() actors.Commands {
	if a.commands == nil {
		return nil
	}
	return a.commands
}

// Keyless returns why this node serves public data only; nil: it executes requests with keys.
func (a *Follower) Keyless() error { return a.keyless }

// confirm waits until this node has folded everything acknowledged before.
func (a *Follower) confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.node.opts.Timing.OwnerStale)
	defer cancel()
	n, asked := a.node, metrics.Now()
	seq, err := n.replica.Reach(ctx)
	if err == nil {
		err = n.life.Until(ctx, func() bool { return n.committed.Folded() >= seq })
	}
	if err == nil {
		a.confirmed = asked
	}
	return err
}

// connect builds the public view of the state, on the committed side's turn.
func (a *Follower) connect(o *actors.Options) error {
	n := a.node
	switch {
	case n.followerPublic != nil:
		return errFollows
	case n.termPublic != nil:
		return errLeads
	}
	s := n.committed.State()
	if o.NotReady != nil {
		if err := o.NotReady(s); err != nil {
			return err
		}
	}
	missing, err := actors.Configured(s, o)
	if err == nil && len(missing) > 0 {
		err = errUnnumbered
	}
	if err != nil {
		return err
	}
	limits := committed.ReadLimits{Reads: o.Limits.Reads, PerAccount: o.Limits.ReadsPerAccount,
		Patience: o.Timing.Request}
	door := committed.NewDoor(n.committed, followerReads{a}, o.Scheduler, a.ended, limits,
		n.replica)
	a.Public = actors.NewPublic(&actors.PublicOptions{Options: o, Door: door, Root: a.system.Root,
		Side: n.committed, Sealer: n.sealer, OnMaintenance: a.updateMaintenance})
	n.followerPublic = a.Public
	a.fill(s)
	return nil
}

// fill fills the directory from the state, on the committed side's turn.
func (a *Follower) fill(s *state.State) {
	a.updateMaintenance(s)
	if err := a.Fill(a.node.keys); err != nil {
		a.keyless = err
		a.Log().Error("this node serves public data only, and no requests with keys", "error",
			err)
		return
	}
	a.commands = newForwarder(a)
}

// updateMaintenance applies a maintenance that begins, changes or ends.
func (a *Follower) updateMaintenance(s *state.State) {
	if m := s.Maintenance(); m.On {
		a.maintenance.Store(&m)
	} else {
		a.maintenance.Store(nil)
	}
	a.graceMu.Lock()
	defer a.graceMu.Unlock()
	a.grace.Begin(s.Maintained(), a.node.opts.Timing.SwitchGrace.Microseconds())
}

// Await waits until this follower can no longer serve, and returns why: the fold lags or no leader
// has confirmed it for too long, another market part is in effect, the fold has failed, or ctx has
// ended. One goroutine calls it.
func (a *Follower) Await(ctx context.Context) error {
	n, timing := a.node, &a.node.opts.Timing
	check := time.NewTicker(timing.OwnerCheck)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.life.Dead():
			return n.life.Err()
		case <-check.C:
		}
		if a.commands != nil && a.commands.lostSessions() {
			return errSessions
		}
		a.confirm(ctx) //nolint:errcheck // a.confirmed decides
		if !a.keepsMarket() {
			return errOther
		}
		if metrics.Now()-a.confirmed > unconfirmed*int64(timing.OwnerStale) {
			return errLagged
		}
	}
}

// keepsMarket reports whether the served market part is equivalent to the applied one. A term may
// rewrite its own with additions of a newer format, which changes nothing.
func (a *Follower) keepsMarket() bool {
	n, had := a.node, *a.market.Load()
	_, now := n.replica.Market()
	if bytes.Equal(now, had) {
		return true
	}
	was, err := n.optionsFor(had)
	if err != nil {
		return false
	}
	is, err := n.optionsFor(now)
	if err != nil || !bytes.Equal(is.Agreed, was.Agreed) {
		return false
	}
	a.market.Store(&now)
	return true
}

// End ends the follower. Reads in flight get no answer, and channels no further messages.
func (a *Follower) End() {
	a.endOnce.Do(func() {
		if a.commands != nil {
			a.commands.finish()
		}
		close(a.ended)
		n := a.node
		n.committed.Send(committed.DropWatchers{Then: func() { n.followerPublic = nil }})
		if a.commands != nil {
			a.halt()
			<-a.forwarderDone
		}
		a.system.Shutdown()
	})
}

// followerReads is the ReadHost of a follower's door.
type followerReads struct{ *Follower }

// Current implements committed.ReadHost.
func (h followerReads) Current() (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), h.node.opts.Timing.OwnerStale)
	defer cancel()
	seq, err := h.node.replica.Reach(ctx)
	if err != nil {
		return 0, actors.CountRefusal(h.node.meter, actors.ErrNotConfirmed)
	}
	return seq, nil
}

// Stopping implements committed.ReadHost.
func (h followerReads) Stopping() bool { return h.IsOver() }

// Confirmed implements committed.ReadHost.
func (h followerReads) Confirmed() error { return h.commands.Confirmed() }

// Answered implements committed.ReadHost.
func (h followerReads) Answered() uint64 { return h.commands.newest.Load() }

// ToWallet implements committed.ReadHost: the wallet is at the leader.
func (h followerReads) ToWallet(_ *directory.Account, r *committed.Read) { h.commands.toWallet(r) }

// CountRefusal implements committed.ReadHost.
func (h followerReads) CountRefusal(why committed.Refusal) error {
	return actors.CountRefusal(h.node.meter, actors.Refusals[why])
}
