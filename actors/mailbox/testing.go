package mailbox

// Next returns the message that a mailbox's actor gets next, nil if there is none: for tests of
// package actors, whose simulation looks at it between two turns.
func Next(m *Mailbox) any {
	switch {
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
