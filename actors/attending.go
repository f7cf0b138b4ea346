package actors

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/state"
)

// An Attendance is what a node that follows shows from its own fold, and how the commands of its
// clients come to the node that leads. A read, and the first state of a subscription, has all that
// any node had acknowledged before it was asked for. Its methods may be called from any goroutine.
type Attendance struct {
	*Public
	node   *Node
	system *actor.ActorSystem
	market atomic.Pointer[[]byte] // the applied text; each means what it was made with
	ending sync.Once
	ended  chan struct{}
	// confirmed is when the newest question was asked behind which this node has had all that was
	// acknowledged, in the time of metrics.Now. The caller of Await has it.
	confirmed int64

	// What clients with keys need beside the directory: as that.
	maintenance atomic.Pointer[event.Maintenance] // nil: there is none
	graceMu     sync.Mutex
	grace       grace // behind the newest end of a maintenance; guarded by graceMu

	commands  *forwarding // nil: the server's key does not open the keys, so there are no clients
	halt      context.CancelFunc
	forwarded chan struct{} // closed when commands runs no more
}

var (
	// errAttends: the end of the attendance before is on its way, or has yet to come.
	errAttends = errors.New("this node shows what is public already")
	// errReigns: channels that watch would be told twice.
	errReigns = errors.New("this node serves as the one that leads")
	errLagged = errors.New("this node has not had lately all that is acknowledged, as far as a " +
		"node that leads has confirmed it")
	// errUnnumbered: the reign that writes these records has only begun.
	errUnnumbered = errors.New("a currency or a pair of the market part has no number yet")
	// errOther: the pairs that it shows are not those any more.
	errOther = errors.New("another market part counts")
	// errSessions: clients that count on the end of their sockets must hear of it.
	errSessions = errors.New("the connection to the node that leads is over, and with it the " +
		"sessions whose end cancels orders")
)

// Attend begins to show what is public, once this node has all that was acknowledged before. One
// attendance at a time. It may go on when this node comes to lead, and is to be ended before the
// reign's engine gets subscribers. Errors: that of ctx, and the reason why nothing can be shown
// now.
func (n *Node) Attend(ctx context.Context) (*Attendance, error) {
	a := &Attendance{node: n, system: committed.NewSystem(), ended: make(chan struct{})}
	if err := a.begin(ctx); err != nil {
		a.system.Shutdown()
		return nil, err
	}
	return a, nil
}

func (a *Attendance) begin(ctx context.Context) error {
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
	o, err := n.whole(market)
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
	a.forwarded = make(chan struct{})
	go func() {
		defer close(a.forwarded)
		a.commands.run(ctx)
	}()
	return nil
}

// Commands is where the commands of this node's clients go; nil: it has no clients with keys.
func (a *Attendance) Commands() Commands {
	if a.commands == nil {
		return nil
	}
	return a.commands
}

// confirm waits until this node has folded all that was acknowledged before.
func (a *Attendance) confirm(ctx context.Context) error {
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
func (a *Attendance) connect(o *Options) error {
	n := a.node
	switch {
	case n.attended != nil:
		return errAttends
	case n.crowned != nil:
		return errReigns
	}
	s := n.committed.State()
	if o.Unshown != nil {
		if err := o.Unshown(s); err != nil {
			return err
		}
	}
	missing, err := configured(s, o)
	if err == nil && len(missing) > 0 {
		err = errUnnumbered
	}
	if err != nil {
		return err
	}
	limits := committed.ReadLimits{Reads: o.Limits.Reads, PerAccount: o.Limits.ReadsPerAccount,
		Patience: o.Timing.Request}
	door := committed.NewDoor(n.committed, attending{a}, o.Scheduler, a.ended, limits, n.replica)
	a.Public = &Public{Catalogue: directory.NewCatalogue(o.Pairs, o.Currencies, s), opts: o,
		Door: door, root: a.system.Root, side: n.committed, over: door.IsOver, sealer: n.sealer,
		maintains: a.follow}
	n.attended = a.Public
	a.know(s)
	return nil
}

// know fills the directory from the state, on its turn.
func (a *Attendance) know(s *state.State) {
	a.follow(s)
	if err := a.fill(a.node.keys); err != nil {
		a.dir = nil
		a.Log().Error("this node shows what is public, and takes no requests with keys", "error",
			err)
		return
	}
	a.commands = newForwarding(a)
}

// follow follows a maintenance that begins, changes or ends.
func (a *Attendance) follow(s *state.State) {
	if m := s.Maintenance(); m.On {
		a.maintenance.Store(&m)
	} else {
		a.maintenance.Store(nil)
	}
	a.graceMu.Lock()
	defer a.graceMu.Unlock()
	if ended := s.Maintained(); a.grace.endUs != ended {
		a.grace = grace{endUs: ended, lengthUs: a.opts.Timing.SwitchGrace.Microseconds()}
	}
}

// Await waits until nothing can be shown any more, and returns why: for long no node that leads has
// confirmed what is acknowledged, or this one has not folded it; other pairs count, the fold has
// failed, or ctx has ended. One goroutine calls it.
func (a *Attendance) Await(ctx context.Context) error {
	n, timing := a.node, &a.opts.Timing
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

// keepsMarket reports whether what it shows is what the applied market part says. A reign may write
// its own once more, with what an earlier format had no words for: that changes nothing.
func (a *Attendance) keepsMarket() bool {
	n, had := a.node, *a.market.Load()
	_, now := n.replica.Market()
	if bytes.Equal(now, had) {
		return true
	}
	was, err := n.whole(had)
	if err != nil {
		return false
	}
	is, err := n.whole(now)
	if err != nil || !bytes.Equal(is.market, was.market) {
		return false
	}
	a.market.Store(&now)
	return true
}

// End ends it. What still reads gets no answer, and channels are told nothing any more.
func (a *Attendance) End() {
	a.ending.Do(func() {
		if a.commands != nil {
			a.commands.finish()
		}
		close(a.ended)
		n := a.node
		n.committed.Send(committed.Deserted{Then: func() { n.attended = nil }})
		if a.commands != nil {
			a.halt()
			<-a.forwarded
		}
		a.system.Shutdown()
	})
}

// attending answers the door of an attendance.
type attending struct{ *Attendance }

// Current implements committed.ReadHost.
func (h attending) Current() (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), h.opts.Timing.OwnerStale)
	defer cancel()
	seq, err := h.node.replica.Reach(ctx)
	if err != nil {
		return 0, turnAway(h.node.meter, ErrNotConfirmed)
	}
	return seq, nil
}

// Stopping implements committed.ReadHost.
func (h attending) Stopping() bool { return h.IsOver() }

// Confirmed implements committed.ReadHost.
func (h attending) Confirmed() error { return h.commands.Confirmed() }

// Answered implements committed.ReadHost.
func (h attending) Answered() uint64 { return h.commands.newest.Load() }

// ToWallet implements committed.ReadHost: the wallet is at the node that leads.
func (h attending) ToWallet(_ *directory.Account, r *committed.Read) { h.commands.toWallet(r) }

// TurnAway implements committed.ReadHost.
func (h attending) TurnAway(why committed.Refusal) error {
	return turnAway(h.node.meter, refusals[why])
}
