package stream

// Stats are a hub's counts.
type Stats struct {
	clients       int64
	Subscriptions map[string]int64 // at present, by kind of channel; each pair counts as one
	// encoded records, once for each channel
	Units   uint64
	Resyncs uint64 // books that replaced differences for slow clients
}

// Stats returns the counts. Any goroutine may call it.
func (h *Hub) Stats() Stats {
	s := Stats{clients: h.counts.clients.Load(), Subscriptions: map[string]int64{},
		Units: h.counts.units.Load(), Resyncs: h.counts.resyncs.Load()}
	for f := range families {
		s.Subscriptions[kindOf(f)] = h.counts.subscriptions[f].Load()
	}
	return s
}

func kindOf(f family) string {
	if f == book {
		return "book"
	}
	return plainNames[f]
}
