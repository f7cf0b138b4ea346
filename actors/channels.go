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

// A Public is what an exchange shows to everybody: its pairs, the reads that need no key, and the
// channels of the stream. An engine has one, and so has a node that follows (Node.Attend). Its
// methods may be called from any goroutine.
type Public struct {
	*directory.Catalogue
	*committed.Door
	opts *Options
	live func() *Limits     // nil: those of the options
	root *actor.RootContext // of its channels
	side *committed.Side
	// nil: there are no clients with keys; see Fill. The next three are for it.
	dir       *directory.Directory
	sealer    *seal.Sealer           // nil: this is an observer, which opens no keys
	keyEnds   func(k *directory.Key) // receives a key that has ended; nil: no one does
	maintains func(s *state.State)   // follows a maintenance that begins, changes or ends
	// over reports that the channels have ended, while the fold of their node goes on. nil: the
	// fold ends with them.
	over func() bool
	// fires returns when a switch cancels that is due at a time; nil: the fold knows all of that.
	fires func(dueUs int64) int64
}

// PublicOptions are what a Public of a node that follows is made of.
type PublicOptions struct {
	Options   *Options
	Door      *committed.Door
	Root      *actor.RootContext // of its channels
	Side      *committed.Side
	Sealer    *seal.Sealer         // nil: this is an observer, which opens no keys
	Maintains func(s *state.State) // follows a maintenance that begins, changes or ends
}

// NewPublic makes one from the state of the committed side, on its turn. Its channels end with its
// door.
func NewPublic(o *PublicOptions) *Public {
	return &Public{Catalogue: directory.NewCatalogue(o.Options.Pairs, o.Options.Currencies,
		o.Side.State()), opts: o.Options, Door: o.Door, root: o.Root, side: o.Side,
		over: o.Door.IsOver, sealer: o.Sealer, maintains: o.Maintains}
}

// Key returns the live API key with that public part, nil if there is none.
func (p *Public) Key(public []byte) *directory.Key { return p.dir.Key(public) }

// HasKeys reports whether there are clients with keys: see Fill.
func (p *Public) HasKeys() bool { return p.dir != nil }

// Limits returns the limits that count now.
func (p *Public) Limits() Limits {
	if p.live != nil {
		return *p.live()
	}
	return p.opts.Limits
}

// Agreed returns the market part that counts, as text; nil: there is none.
func (p *Public) Agreed() []byte { return p.opts.Agreed }

// SwitchFires returns when the switch of an answer cancels, as Commands.SwitchFires does.
func (p *Public) SwitchFires(q *committed.KeySwitch) int64 {
	if p.fires != nil {
		return p.fires(q.Switch.DueUs)
	}
	g := Grace{endUs: q.MaintainedUs, lengthUs: p.opts.Timing.SwitchGrace.Microseconds()}
	return max(q.Switch.DueUs, g.OverAt(time.Now().UnixMicro()))
}

// Log returns the log.
func (p *Public) Log() *slog.Logger { return p.opts.Log }

// SpawnChannel starts a channel's actor. After a panic the actor gets *actor.Restarting, and
// produce makes it anew; its mailbox stays. Nothing rests on a channel's state. The name is for the
// log.
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

// Notify sends a message to a channel's actor.
func (p *Public) Notify(channel *actor.PID, message any) { p.root.Send(channel, message) }

// Watch begins to watch a pair or the status, or asks once more. The channel gets a *Watched, and
// from then on the messages of its kind. Its actor may call it.
func (p *Public) Watch(w committed.Watch) {
	w.Over = p.over
	p.side.Send(&w)
}

// UnwatchOwn says that an account has no subscriber any more at a channel. The token is that of the
// newest answer that the channel got: see committed.OwnUnwatch. Events that are on their way still
// come.
func (p *Public) UnwatchOwn(account uint32, channel *actor.PID, token uint64) {
	p.side.Send(&committed.OwnUnwatch{Account: account, Channel: channel, Token: token})
}

// Unwatch ends the Watch of a pair, or with nil of the status. Messages that are on their way still
// come.
func (p *Public) Unwatch(channel *actor.PID, pair *directory.Pair) {
	m := &committed.Unwatch{Channel: channel}
	if pair != nil {
		m.Pair = pair.Number
	}
	p.side.Send(m)
}
