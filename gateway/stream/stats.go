package stream

// Stats are a hub's counts.
type Stats struct {
	Clients       int64
	Subscriptions map[string]int64 // at present, by kind of channel; all pairs count as so many
	// records that were encoded, once for each channel that told of them
	Units   uint64
	Resyncs uint64 // books that took the place of differences a slow client could not take
}

// Stats may be called from any goroutine.
func (h *Hub) Stats() Stats {
	s := Stats{Clients: h.counts.clients.Load(), Subscriptions: map[string]int64{},
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
