package metrics

import "sync/atomic"

// Links counts what clients of one node have another one do. A request is what is answered at once:
// commands that travel together, a read's nonce, or the question whether all before it is done.
type Links struct {
	To   Link // this node sends requests
	From Link // it carries out those of others
	Passed
}

// Passed counts the requests and logins that observers have passed on as they were signed.
type Passed struct {
	Verified atomic.Uint64
	Refused  atomic.Uint64 // for the signature, the address, the permission, a rate or a field
}

// A Link counts in one direction. All of it is added to by many goroutines, once a request.
type Link struct {
	Up       atomic.Int64  // connections
	InFlight atomic.Int64  // requests without an answer
	Answered atomic.Uint64 // carried out or refused, and told
	Full     atomic.Uint64 // turned away because too many were in flight
	Unknown  atomic.Uint64 // the connection was over before the answer
}
