package operator

// GuessesAtOnce is the burst of wrong tokens of one address, for tests of gateway.
const GuessesAtOnce = guessesAtOnce

// AllowGuesses takes the limit on wrong tokens away, for tests of gateway.
func (s *Server) AllowGuesses() { s.guesses.buckets = nil }

// Document returns the document of the operator's API, for tests of gateway.
func Document() []byte { return newDocument() }
