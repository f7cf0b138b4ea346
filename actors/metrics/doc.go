// Package metrics has the numbers that a running engine counts about itself, and the histograms
// that it and the gateway count with. It knows nothing of how they are shown: the gateway exports
// them.
//
// Counting must cost an order next to nothing. So nothing is looked up by name, nothing allocates,
// and nearly everything is a plain atomic; only the journal's writer, who counts most, does so
// under a lock, once a batch. Any goroutine may read at any time. Who adds is written in Engine,
// group by group: a group has one goroutine that adds often, and cache lines of its own.
//
// The numbers begin at 0 with the process. They are no part of the state.
//
//	m := metrics.NewEngine()
//	m.Apply.Observe(metrics.Now() - start) // nanoseconds
//	d := m.Apply.Read()                    // d.Counts, d.Sum
package metrics
