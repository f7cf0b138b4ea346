// Package harness is a whole exchange in the test's process, for tests of the rooms of gateway.
// Package exchangetest has it as a child process.
//
//	exchange.go   an exchange behind an in-memory network, and the requests of its clients
//	observed.go   an exchange whose clients use an observer
//	clients.go    accounts, forms, and checks of answers
//	documents.go  answers held against the OpenAPI documents
//	operators.go  requests of operators
//	metrics.go    scrapes
//	sockets.go    clients of the event stream
//	network.go    connections from other addresses
//	nodes.go      nodes of a cluster
//	rates.go      limits on requests, and a clock for them
//	stores.go     stores that stall, lie or are damaged
package harness
