package mailbox

import "github.com/asynkron/protoactor-go/actor"

// A Probe runs a function in an actor's own turn, where it may read the actor's state.
type Probe struct {
	inspect func(actor.Actor)
	Done    chan struct{} // closed after it
}

// NewProbe makes a probe that is still to be sent.
func NewProbe(look func(actor.Actor)) *Probe { return &Probe{look, make(chan struct{})} }

// Run calls the function, in the actor's turn.
func (p *Probe) Run(a actor.Actor) {
	p.inspect(a)
	close(p.Done)
}

// An UrgentProbe overtakes the reads that wait for the committed side, and so inspects an actor
// that is blocked meanwhile.
type UrgentProbe struct{ Probe }

// NewUrgentProbe makes an urgent probe from a function without an actor.
func NewUrgentProbe(look func()) *UrgentProbe {
	return &UrgentProbe{Probe{func(actor.Actor) { look() }, make(chan struct{})}}
}

// Urgent implements mailbox.Urgent.
func (*UrgentProbe) Urgent() bool { return true }
