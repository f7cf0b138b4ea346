package actors

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/persistence"
)

// An Attendance is what a node that follows shows to everybody, from its own fold. A read, and the
// first state of a subscription, has all that any node had acknowledged before it was asked for.
// Its methods may be called from any goroutine.
type Attendance struct {
	*Public
	node   *Node
	system *actor.ActorSystem
	market []byte // with which it was made
	ending sync.Once
	ended  chan struct{}
	// confirmed is when the newest question was asked behind which this node has had all that was
	// acknowledged, in the time of metrics.Now. The caller of Await has it.
	confirmed int64
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
)

// Attend begins to show what is public, once this node has all that was acknowledged before. One
// attendance at a time. It may go on when this node comes to lead, and is to be ended before the
// reign's engine gets subscribers. Errors: that of ctx, and the reason why nothing can be shown
// now.
func (n *Node) Attend(ctx context.Context) (*Attendance, error) {
	a := &Attendance{node: n, system: newSystem(), ended: make(chan struct{})}
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
	_, a.market = n.replica.Market()
	o, err := n.whole(a.market)
	if err != nil {
		return err
	}
	if dead := n.onSide(func() { err = a.connect(o) }); dead != nil {
		return dead
	}
	return err
}

// confirm waits until this node has folded all that was acknowledged before.
func (a *Attendance) confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.node.opts.Timing.OwnerStale)
	defer cancel()
	n, asked := a.node, metrics.Now()
	seq, err := n.replica.Reach(ctx)
	if err == nil {
		err = n.life.until(ctx, func() bool { return n.committed.Folded() >= seq })
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
	missing, err := configured(s, o)
	if err == nil && len(missing) > 0 {
		err = errUnnumbered
	}
	if err != nil {
		return err
	}
	limits := committed.ReadLimits{Reads: o.Limits.Reads, PerAccount: o.Limits.ReadsPerAccount,
		Patience: o.Timing.Request}
	a.Public = &Public{Catalogue: directory.NewCatalogue(o.Pairs, o.Currencies, s), opts: o,
		Door: committed.NewDoor(n.committed, attending{a}, o.Scheduler, a.ended, limits,
			n.replica),
		root: a.system.Root, side: n.committed, over: a.isOver}
	n.attended = a.Public
	return nil
}

func (a *Attendance) isOver() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
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
		case <-n.life.dead:
			return n.life.failure
		case <-look.C:
		}
		a.confirm(ctx) //nolint:errcheck // its time says it
		if _, market := n.replica.Market(); !bytes.Equal(market, a.market) {
			return errOther
		}
		if metrics.Now()-a.confirmed > unconfirmed*int64(timing.OwnerStale) {
			return errLagged
		}
	}
}

// End ends it. What still reads gets no answer, and channels are told nothing any more.
func (a *Attendance) End() {
	a.ending.Do(func() {
		close(a.ended)
		n := a.node
		n.committed.Send(committed.Deserted{Then: func() { n.attended = nil }})
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
func (h attending) Stopping() bool { return h.isOver() }

// Confirmed implements committed.ReadHost. It is asked before a signed read, which there is none.
func (h attending) Confirmed() error { return ErrNotConfirmed }

// ToWallet implements committed.ReadHost.
func (h attending) ToWallet(_ *directory.Account, r *committed.Read) {
	r.Err = persistence.ErrInvalid
	r.Answer()
}

// TurnAway implements committed.ReadHost.
func (h attending) TurnAway(why committed.Refusal) error {
	return turnAway(h.node.meter, refusals[why])
}
