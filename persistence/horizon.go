package persistence

// A Horizon is the position of a reader whose history may be ahead of it.
type Horizon struct {
	Seq    uint64   // the reader's newest sequence
	Trades []uint64 // id of each pair's newest trade by then, by pair-1
}

// A RemoteHistory is in another process, and may be ahead of the reader.
type RemoteHistory interface {
	// At returns the history as it was at a horizon, except for rows that retention has trimmed
	// since. The caller does not change h any more.
	At(h *Horizon) History
}

// HasTrade reports whether a trade had been made.
func (h *Horizon) HasTrade(t *Trade) bool {
	return t.Pair != 0 && int(t.Pair) <= len(h.Trades) && t.ID <= h.Trades[t.Pair-1]
}
