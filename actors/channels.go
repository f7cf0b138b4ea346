package actors

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/seal"
	"exchange/core/state"
)

// A Public is the public side of an exchange: its pairs, the reads that need no key, and the stream
// channels. An engine has one, and so has a follower (Node.Follow). Its methods may be called from
// any goroutine.
type Public struct {
	*directory.Catalogue
	*committed.Door
	opts *Options
	live func() *Limits     // nil: those of the options
	root *actor.RootContext // of its channels
	side *committed.Side
	// nil: no clients with keys; see Fill. The next three are for it.
	dir           *directory.Directory
	sealer        *seal.Sealer           // nil: an observer, which opens no keys
	onKeyRevoked  func(k *directory.Key) // receives a revoked key; nil: unused
	onMaintenance func(s *state.State)   // called when a maintenance begins, changes or ends
	// closed reports that the channels have ended while their node's fold continues. nil: the fold
	// ends with them.
	closed func() bool
	// firesAt returns when a switch due at a time fires; nil: the fold is the source.
	firesAt func(dueUs int64) int64
}

// PublicOptions configure the Public of a follower.
type PublicOptions struct {
	Options       *Options
	Door          *committed.Door
	Root          *actor.RootContext // of its channels
	Side          *committed.Side
	Sealer        *seal.Sealer         // nil: an observer, which opens no keys
	OnMaintenance func(s *state.State) // called when a maintenance begins, changes or ends
}

// NewPublic makes one from the committed side's state, on its turn. Its channels end with its door.
func NewPublic(o *PublicOptions) *Public {
	return &Public{Catalogue: directory.NewCatalogue(o.Options.Pairs, o.Options.Currencies,
		o.Side.State()), opts: o.Options, Door: o.Door, root: o.Root, side: o.Side,
		closed: o.Door.IsOver, sealer: o.Sealer, onMaintenance: o.OnMaintenance}
}

// Key returns the live API key with that public part, nil if there is none.
func (p *Public) Key(public []byte) *directory.Key { return p.dir.Key(public) }

// HasKeys reports whether clients with keys are served: see Fill.
func (p *Public) HasKeys() bool { return p.dir != nil }

// Limits returns the current limits.
func (p *Public) Limits() Limits {
	if p.live != nil {
		return *p.live()
	}
	return p.opts.Limits
}

// Agreed returns the agreed market part as text; nil: none.
func (p *Public) Agreed() []byte { return p.opts.Agreed }

// SwitchFires returns when the answer's switch cancels, as Commands.SwitchFires does.
func (p *Public) SwitchFires(q *committed.KeySwitch) int64 {
	if p.firesAt != nil {
		return p.firesAt(q.Switch.DueUs)
	}
	g := Grace{endUs: q.MaintainedUs, lengthUs: p.opts.Timing.SwitchGrace.Microseconds()}
	return max(q.Switch.DueUs, g.OverAt(time.Now().UnixMicro()))
}

// Log returns the log.
func (p *Public) Log() *slog.Logger { return p.opts.Log }

// SpawnChannel starts a channel's actor. After a panic the actor gets *actor.Restarting, and
// produce makes it again; its mailbox stays. Nothing depends on a channel's state. The name is for
// the log.
func (p *Public) SpawnChannel(name string, produce func() actor.Actor) *actor.PID {
	props := actor.PropsFromProducer(produce, actor.WithGuardian(actor.NewRestartingStrategy()),
		actor.WithMailbox(func() actor.Mailbox {
			return mailbox.New(0,
				&mailbox.Host{Scheduler: p.opts.Scheduler, Guard: startAgain{p.opts.Log}})
		}))
	return p.root.SpawnPrefix(props, "channel/"+name+"/")
}

// startAgain guards stream channels.
type startAgain struct{ log *slog.Logger }

// Panicked leaves the channel to its supervisor.
func (g startAgain) Panicked(m *mailbox.Mailbox, reason, message any) {
	g.log.Error(
		"a stream channel failed and is started again, its subscribers are disconnected",
		"channel", m.Name(), "reason", fmt.Sprint(reason), "message", fmt.Sprintf("%T", message),
		"stack", string(debug.Stack()))
	m.Escalate(reason, message)
}

// Tell sends a message to a channel's actor.
func (p *Public) Notify(channel *actor.PID, message any) { p.root.Send(channel, message) }

// Watch subscribes a channel to a pair or the status, or asks again. The channel gets a *Watched,
// and then the messages of its kind. Its actor may call it.
func (p *Public) Watch(w committed.Watch) {
	w.Over = p.closed
	p.side.Send(&w)
}

// UnwatchOwn says that an account has no more subscribers at a channel. The token is that of the
// newest answer to the channel: see committed.OwnUnwatch. Events in flight still arrive.
func (p *Public) UnwatchOwn(account uint32, channel *actor.PID, token uint64) {
	p.side.Send(&committed.OwnUnwatch{Account: account, Channel: channel, Token: token})
}

// Unwatch ends the Watch of a pair, or with nil of the status. Messages in flight still arrive.
func (p *Public) Unwatch(channel *actor.PID, pair *directory.Pair) {
	m := &committed.Unwatch{Channel: channel}
	if pair != nil {
		m.Pair = pair.Number
	}
	p.side.Send(m)
}
