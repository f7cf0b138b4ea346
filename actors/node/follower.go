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

// A Follower is what a node that follows shows from its own fold, and how the commands of its
// clients come to the node that leads. A read, and the first state of a subscription, has all that
// any node had acknowledged before it was asked for. Its methods may be called from any goroutine.
type Follower struct {
	*actors.Public
	node    *Node
	system  *actor.ActorSystem
	market  atomic.Pointer[[]byte] // the applied text; each means what it was made with
	endOnce sync.Once
	ended   chan struct{}
	// confirmed is when the newest question was asked behind which this node has had all that was
	// acknowledged, in the time of metrics.Now. The caller of Await has it.
	confirmed int64

	// What clients with keys need beside the directory: as that.
	maintenance atomic.Pointer[event.Maintenance] // nil: there is none
	graceMu     sync.Mutex
	grace       actors.Grace // behind the newest end of a maintenance; guarded by graceMu

	commands      *forwarder // nil: the server's key does not open the keys, so there are no clients
	halt          context.CancelFunc
	forwarderDone chan struct{} // closed when commands runs no more
}

var (
	// errFollows: the follower before has not ended yet.
	errFollows = errors.New("this node shows what is public already")
	// errLeads: channels that watch would be told twice.
	errLeads  = errors.New("this node serves as the one that leads")
	errLagged = errors.New("this node has not had lately all that is acknowledged, as far as a " +
		"node that leads has confirmed it")
	// errUnnumbered: the term that writes these records has only begun.
	errUnnumbered = errors.New("a currency or a pair of the market part has no number yet")
	// errOther: the pairs that it shows are not those any more.
	errOther = errors.New("another market part counts")
	// errSessions: clients that count on the end of their sockets must hear of it.
	errSessions = errors.New("the connection to the node that leads is over, and with it the " +
		"sessions whose end cancels orders")
)

// Follow begins to show what is public, once this node has all that was acknowledged before. One
// follower at a time. It may go on when this node comes to lead, and is to be ended before the
// term's engine gets subscribers. Errors: that of ctx, and the reason why nothing can be shown
// now.
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

// Commands is where the commands of this node's clients go; nil: it has no clients with keys.
func (a *Follower) Commands() actors.Commands {
	if a.commands == nil {
		return nil
	}
	return a.commands
}

// confirm waits until this node has folded all that was acknowledged before.
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

// connect makes what is shown from the state, on its turn.
func (a *Follower) connect(o *actors.Options) error {
	n := a.node
	switch {
	case n.followerPublic != nil:
		return errFollows
	case n.termPublic != nil:
		return errLeads
	}
	s := n.committed.State()
	if o.Unshown != nil {
		if err := o.Unshown(s); err != nil {
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
		Side: n.committed, Sealer: n.sealer, Maintains: a.updateMaintenance})
	n.followerPublic = a.Public
	a.fill(s)
	return nil
}

// fill fills the directory from the state, on its turn.
func (a *Follower) fill(s *state.State) {
	a.updateMaintenance(s)
	if err := a.Fill(a.node.keys); err != nil {
		a.Log().Error("this node shows what is public, and takes no requests with keys", "error",
			err)
		return
	}
	a.commands = newForwarder(a)
}

// updateMaintenance follows a maintenance that begins, changes or ends.
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

// Await waits until nothing can be shown any more, and returns why: for long no node that leads has
// confirmed what is acknowledged, or this one has not folded it; other pairs count, the fold has
// failed, or ctx has ended. One goroutine calls it.
func (a *Follower) Await(ctx context.Context) error {
	n, timing := a.node, &a.node.opts.Timing
	look := time.NewTicker(timing.OwnerCheck)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.life.Dead():
			return n.life.Err()
		case <-look.C:
		}
		if a.commands != nil && a.commands.lostSessions() {
			return errSessions
		}
		a.confirm(ctx) //nolint:errcheck // its time says it
		if !a.keepsMarket() {
			return errOther
		}
		if metrics.Now()-a.confirmed > unconfirmed*int64(timing.OwnerStale) {
			return errLagged
		}
	}
}

// keepsMarket reports whether what it shows is what the applied market part says. A term may write
// its own once more, with what an earlier format had no words for: that changes nothing.
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

// End ends it. What still reads gets no answer, and channels are told nothing any more.
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

// followerReads answers the door of a follower.
type followerReads struct{ *Follower }

// Current implements committed.ReadHost.
func (h followerReads) Current() (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), h.node.opts.Timing.OwnerStale)
	defer cancel()
	seq, err := h.node.replica.Reach(ctx)
	if err != nil {
		return 0, actors.TurnAway(h.node.meter, actors.ErrNotConfirmed)
	}
	return seq, nil
}

// Stopping implements committed.ReadHost.
func (h followerReads) Stopping() bool { return h.IsOver() }

// Confirmed implements committed.ReadHost.
func (h followerReads) Confirmed() error { return h.commands.Confirmed() }

// Answered implements committed.ReadHost.
func (h followerReads) Answered() uint64 { return h.commands.newest.Load() }

// ToWallet implements committed.ReadHost: the wallet is at the node that leads.
func (h followerReads) ToWallet(_ *directory.Account, r *committed.Read) { h.commands.toWallet(r) }

// TurnAway implements committed.ReadHost.
func (h followerReads) TurnAway(why committed.Refusal) error {
	return actors.TurnAway(h.node.meter, actors.Refusals[why])
}
