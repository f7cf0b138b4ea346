// Package openapi has the OpenAPI document of the public API, for programs and for the page at
// /docs. It makes the document from three sources that cannot drift apart from the gateway: the
// table of operations, which has privacy, limits and permissions; the catalogue of failures; and
// one description for each operation, with the words, the parameters and the shape of the answer.
// Tests of package gateway compare the document with the answers of a running exchange.
//
// The page is Swagger UI, whose files are part of the program. So the page works wherever the
// exchange runs, and reveals its readers to no other host.
//
//	document.go    the document; JSON objects whose members keep their order
//	guide.go       the text before the operations: guide.md, and stream.md about the stream
//	market.go, account.go, orders.go, service.go   the operations
//	info.go        shapes of rules and limits
//	parameters.go  parameters, headers, and how a request is signed
//	schemas.go     shapes of bodies and answers
//	batch.go       several orders in one request
//	special.go     orders with instructions: their operations and shapes
//	failures.go    failures of an operation, and their examples
//	routes.go      the document of an API of Go types, which package operator's is
//	pages.go       the document and the page as files, in several codings; sign.js is one of them
//	testing.go     for tests of other packages
package openapi
