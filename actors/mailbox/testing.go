package mailbox

import "github.com/asynkron/protoactor-go/actor"

// Next returns the message that a mailbox's actor gets next, nil if there is none: for tests of
// package actors, whose simulation looks at it between two turns.
func Next(m *Mailbox) any {
	switch {
	case m.urgent.Len() > 0:
		return *m.urgent.First()
	case len(m.rest) > 0:
		return m.rest[0]
	case len(m.in) > 0:
		return m.in[0]
	}
	return nil
}

// Waiting reports whether a mailbox has messages: for tests of package actors, whose simulation
// gives an actor one message at a time.
func Waiting(m *Mailbox) bool { return m.users.Load() > 0 || m.systems.Load() > 0 }

// Actor returns the actor of a mailbox that was started: for tests of package actors, whose
// simulation looks at wallets between two turns.
func Actor(m *Mailbox) actor.Actor { return m.invoker.(actor.Context).Actor() }
