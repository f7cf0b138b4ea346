package actors

import "time"

// A driver decides who goes on next in a simulation, where one goroutine runs at a time and a seed
// gives the order of everything. It takes the place of runners and of the engine's own goroutines;
// and who waits for something that others do waits in it, until it is there: what comes then does
// not block any more. Waits for the clock and for the store are not its concern: the simulation has
// a clock and a store of its own.
type driver interface {
	// mailbox has messages and nobody who runs it, as startRunner is told.
	mailbox(m *mailbox)
	// owner has the store; its beats are to be driven.
	owner(w *ownership)
	// engine has its actors; its journal, projector, mailer and ticks are to be driven.
	engine(e *Engine)
	// await takes a reply: false if the time is over before it is there, or the engine is dead.
	await(reply <-chan struct{}, most time.Duration, dead <-chan struct{}) bool
	// until returns when the condition, which only counters tell, is true.
	until(condition func() bool)
}
