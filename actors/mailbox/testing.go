package mailbox

import "github.com/asynkron/protoactor-go/actor"

// Waiting reports whether a mailbox has messages: for tests of package actors, whose simulation
// gives an actor one message at a time.
func Waiting(m *Mailbox) bool { return m.users.Load() > 0 || m.systems.Load() > 0 }

// Actor returns the actor of a mailbox that was started: for tests of package actors, whose
// simulation looks at wallets between two turns.
func Actor(m *Mailbox) actor.Actor { return m.invoker.(actor.Context).Actor() }
