package actors

import "github.com/asynkron/protoactor-go/actor"

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
