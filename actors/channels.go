package actors

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
)

// SpawnChannel starts a channel's actor. After a panic the actor gets *actor.Restarting, and
// produce makes it anew; its mailbox stays. Nothing rests on a channel's state. The name is for the
// log.
func (e *Engine) SpawnChannel(name string, produce func() actor.Actor) *actor.PID {
	props := actor.PropsFromProducer(produce, actor.WithGuardian(actor.NewRestartingStrategy()),
		actor.WithMailbox(func() actor.Mailbox {
			return mailbox.New(0,
				&mailbox.Host{Scheduler: e.opts.Scheduler, Guard: startAgain{e.log}})
		}))
	return e.root.SpawnPrefix(props, "channel/"+name+"/")
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
func (e *Engine) Tell(channel *actor.PID, message any) { e.root.Send(channel, message) }

// Watch begins to watch a pair or the status, or asks once more. The channel gets a *Watched, and
// from then on the messages of its kind. Its actor may call it.
func (e *Engine) Watch(w committed.Watch) {
	if e.node != nil && e.Err() != nil {
		return // the fold goes on, and would tell a channel that nothing ends
	}
	e.committed.Send(&w)
}

// UnwatchOwn says that an account has no subscriber any more at a channel. Events that are on their
// way still come.
func (e *Engine) UnwatchOwn(account uint32, channel *actor.PID) {
	e.committed.Send(&committed.OwnUnwatch{Account: account, Channel: channel})
}

// Unwatch ends the Watch of a pair, or with nil of the status. Messages that are on their way still
// come.
func (e *Engine) Unwatch(channel *actor.PID, p *directory.Pair) {
	m := &committed.Unwatch{Channel: channel}
	if p != nil {
		m.Pair = p.Number
	}
	e.committed.Send(m)
}
