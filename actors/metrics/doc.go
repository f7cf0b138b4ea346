// Package metrics has the numbers that a running engine counts about itself, and the histograms
// that the engine and the gateway count with. It does not know how they are shown: the gateway
// exports them.
//
// Counting must cost an order next to nothing. So nothing is looked up by name, nothing allocates,
// and nearly everything is a plain atomic. Only the journal's writer, which counts most, counts
// under a lock, once a batch. Any goroutine may read at any time. Engine says, group by group,
// which goroutine adds: a group has one that adds often, and cache lines of its own.
//
// The numbers begin at 0 with the process. They are no part of the state.
//
//	m := metrics.NewEngine()
//	m.Apply.Observe(metrics.Now() - start) // nanoseconds
//	d := m.Apply.Read()                    // d.Counts, d.Sum
//
//	engine.go     the numbers of an engine, the stages of a command, calls of the store
//	links.go      what one node of a cluster does for another
//	histogram.go  histograms, their bounds, and the clock of durations
package metrics
