package metrics

import "sync/atomic"

// Links counts a node's traffic for its clients with another node. A request has one immediate
// answer: commands sent together, a read's nonce, or the question whether everything before it is
// done.
type Links struct {
	To   Link // this node sends requests
	From Link // this node executes requests of others
	Passed
}

// Passed counts the signed requests and logins forwarded by observers.
type Passed struct {
	Verified atomic.Uint64
	Refused  atomic.Uint64 // for the signature, the address, the permission, a rate or a field
}

// A Link counts in one direction. Many goroutines add to it, once a request.
type Link struct {
	Up       atomic.Int64  // connections
	InFlight atomic.Int64  // unanswered requests
	Answered atomic.Uint64 // executed or refused, and answered
	Full     atomic.Uint64 // refused because too many were in flight
	Unknown  atomic.Uint64 // the connection closed before the answer
}
