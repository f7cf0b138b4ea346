package state

// An image of version 1 lacks counts of trades, and what a market shows but for its two counters. A state that was
// read from one knows less, for ever of the first and for a day of the second, than one that has all records.

// IsVersion1 reports whether an image is of version 1.
func IsVersion1(image []byte) bool {
	return len(image) > len(imageMagic) && image[len(imageMagic)] == 1
}

// SinceVersion1 reports whether the state goes back to an image of version 1.
func (s *State) SinceVersion1() bool { return s.trades[0] == 0 }

// Overlook makes s say what o says of all that an image of version 1 lacks, to compare the rest of two states. It
// shares memory with o: neither is to be changed then.
func (s *State) Overlook(o *State) {
	if len(s.trades) == len(o.trades) && len(s.pairs) == len(o.pairs) {
		s.trades = o.trades
		for i, p := range s.pairs {
			p.Market = o.pairs[i].Market
		}
	}
}
