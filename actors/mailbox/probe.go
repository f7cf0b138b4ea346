package mailbox

import "github.com/asynkron/protoactor-go/actor"

// A Probe runs a function in an actor's own turn, where the function may read the actor's state.
type Probe struct {
	look func(actor.Actor)
	Done chan struct{} // closed behind it
}

// NewProbe makes a probe that has yet to be sent.
func NewProbe(look func(actor.Actor)) *Probe { return &Probe{look, make(chan struct{})} }

// Run looks, in the actor's turn.
func (p *Probe) Run(a actor.Actor) {
	p.look(a)
	close(p.Done)
}

// An UrgentProbe overtakes the reads that wait for the committed side: the look of an actor that
// stands still meanwhile.
type UrgentProbe struct{ Probe }

// NewUrgentProbe makes an urgent one of a function that needs no actor.
func NewUrgentProbe(look func()) *UrgentProbe {
	return &UrgentProbe{Probe{func(actor.Actor) { look() }, make(chan struct{})}}
}

// Urgent implements mailbox.Urgent.
func (*UrgentProbe) Urgent() bool { return true }
