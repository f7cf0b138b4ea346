package operator

import "exchange/gateway/openapi"

// GuessesAtOnce is the burst of wrong tokens of one address, for tests of gateway.
const GuessesAtOnce = guessesAtOnce

// AllowGuesses takes the limit on wrong tokens away, for tests of gateway.
func (s *Server) AllowGuesses() { s.guesses.buckets = nil }

// SetArchive changes the archive of the journal, for tests of gateway.
func (s *Server) SetArchive(a Archive) { s.archive = a }

// Document returns the document of the operator's API, for tests of gateway.
func Document() []byte { return newDocument() }

// RefusalsOf returns the document's examples of a route's refusals, for tests of gateway.
func RefusalsOf(route string) []openapi.Refusal { return refusalsOf(route) }
