package operator

import "exchange/gateway/openapi"

// RefusalsOf returns the document's examples of a route's refusals, for tests of gateway.
func RefusalsOf(route string) []openapi.Refusal { return refusalsOf(route) }

// Leaving is the role of a voter that is being replaced.
const Leaving = leaving

// DocumentPath is the path of the document.
const DocumentPath = documentPath

// SetArchive changes the archive of the journal.
func (s *Server) SetArchive(a Archive) { s.archive = a }
