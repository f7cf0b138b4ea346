package stream

// Stats are a hub's counts.
type Stats struct {
	clients int64
	// current subscriptions by kind of channel; one for each pair and timeframe
	Subscriptions map[string]int64
	// encoded records, once for each channel
	Units   uint64
	Logins  int    // current logins
	Resyncs uint64 // books that replaced differences for slow clients
	// answered commands
	Commands uint64
}

// Stats returns the counts. Any goroutine may call it.
func (h *Hub) Stats() Stats {
	s := Stats{clients: h.counts.clients.Load(), Subscriptions: map[string]int64{},
		Units: h.counts.units.Load(), Resyncs: h.counts.resyncs.Load(),
		Logins: h.logins.count(), Commands: h.counts.commands.Load()}
	for f := range families {
		s.Subscriptions[f.label()] += h.counts.subscriptions[f].Load()
	}
	s.Subscriptions["own"] = h.counts.own.Load()
	return s
}
