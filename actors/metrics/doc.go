// Package metrics holds the counters of a running engine, and the histograms of the engine and the
// gateway. The gateway exports them.
//
// Counting must cost an order almost nothing. So there is no lookup by name and no allocation, and
// nearly everything is a plain atomic. Only the journal's writer, which counts most, counts under a
// lock, once a batch. Any goroutine may read at any time. Engine documents, group by group, which
// goroutine adds: a group has one that adds often, and its own cache lines.
//
// The counters start at 0 with the process. They are no part of the state.
//
//	m := metrics.NewEngine()
//	m.Apply.Observe(metrics.Now() - start) // nanoseconds
//	d := m.Apply.Read()                    // d.Counts, d.Sum
//
//	engine.go     the counters of an engine, the stages of a command, calls of the store
//	links.go      traffic between the nodes of a cluster
//	histogram.go  histograms, their bounds, and the clock of durations
package metrics
