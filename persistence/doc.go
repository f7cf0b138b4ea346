// Package persistence is the memory of the exchange: the Store interface, the rows that go through
// it, and its errors. The implementations are persistence/pebble (embedded) and persistence/redis;
// both must pass the one suite of persistence/conformance.
//
// A store keeps three things for one engine:
//
//   - the journal: batches of records, one dense sequence, appended under a fence. It is the truth.
//   - snapshots: the two newest images of the committed state, each at one sequence.
//   - projections: wallets, nonces and history. They are derived from the journal and written
//     after it, together with a watermark: the sequence up to which they are exact. History
//     becomes primary data once the journal below it is trimmed.
//
// The bytes of batches and snapshots are opaque here. All methods may be called from any goroutine,
// and may block on I/O: no actor calls them inside Receive.
//
//	store.go      the interface, rows, queries and errors
//	replica.go    one node's store of a journal on several nodes
//	horizon.go    a history that is ahead of its reader
//	read.go       reading a first batch, and a snapshot as a whole
//	ownership.go  the claims that a host stores
//	owner_watch.go  watching another owner's beats
//	authority.go  the proof that an exchange wrote a file
//	pace.go       turns of long queries
//	seldom.go     rate-limited log lines
package persistence
