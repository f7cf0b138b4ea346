package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/directory"
)

// A probe runs a function in an actor's own turn, where the function may read the actor's state.
type probe struct {
	look func(actor.Actor)
	done chan struct{}
}

// Run looks, in the actor's turn.
func (p *probe) Run(a actor.Actor) {
	p.look(a)
	close(p.done)
}

// An urgentProbe overtakes the reads that wait for the committed side: the look of an actor that
// stands still meanwhile.
type urgentProbe struct{ probe }

// Urgent implements mailbox.Urgent.
func (*urgentProbe) Urgent() bool { return true }

func (e *Engine) probeActor(pid *actor.PID, look func(actor.Actor)) {
	p, root := &probe{look, make(chan struct{})}, e.root
	if pid == e.fold || pid == e.imager {
		root = e.at
	}
	root.Send(pid, p)
	<-p.done
}

func (e *Engine) probe(pid *actor.PID, look func()) {
	e.probeActor(pid, func(actor.Actor) { look() })
}

func (e *Engine) probeWallet(a *directory.Account, look func(*wallet)) {
	if a.Wallet() == nil {
		e.openWallet(a)
	}
	e.probeActor(a.Wallet(), func(w actor.Actor) { look(w.(*wallet)) })
}

// probeFold runs a function in the next turn of the committed side.
func (e *Engine) probeFold(look func()) {
	p := &urgentProbe{probe{func(actor.Actor) { look() }, make(chan struct{})}}
	e.committed.Send(p)
	<-p.done
}
