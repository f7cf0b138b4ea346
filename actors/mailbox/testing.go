package mailbox

import "github.com/asynkron/protoactor-go/actor"

// Waiting reports whether a mailbox has messages: for tests of package actors, whose simulation
// delivers one message at a time.
func Waiting(m *Mailbox) bool { return m.users.Load() > 0 || m.systems.Load() > 0 }

// Actor returns the actor of a started mailbox: for tests of package actors, whose simulation
// inspects wallets between two turns.
func Actor(m *Mailbox) actor.Actor { return m.invoker.(actor.Context).Actor() }
