// Package lineartest checks recorded histories of concurrent clients against a sequential exchange.
//
// A client notes each operation in a History before sending it, and its result when the answer
// arrives. Check searches an order of all operations that preserves the order of those that did not
// overlap, and in which each result is that of one exchange doing one operation after the other.
// The search for that order is porcupine's. The package shares no code with the exchange under
// test. Its books are those of the specification, prove/spec.
//
//	history.go      the operations, their results, and the history that records them
//	check.go        the search, for each object
//	market.go       one object: two books and the wallets of the accounts that trade on them
//	orders.go       the market's orders and cancels       withdrawals.go  its withdrawals
//	keys.go         the other objects: each account's keys, nonces and freeze
//	window.go       the nonces of a key for parallel use
//	batches.go      operations sent as one request
//	own.go          events sent to subscribers of accounts
//	parts.go        an operation as the parts that the search orders
//	unknown.go      operations without an outcome, decided by reads and events before the search
//	page.go         a wrong history as a page for a browser and as text
//	workload.go     clients that choose their operations at random
//
// Books and wallets are one object, so it is also an error if a read of a wallet shows a trade
// which a later read of the book does not show.
//
// An operation without an outcome may have happened at any time since, or never, until Settle notes
// that nothing is in flight any more.
//
// One answer is weaker than the rest. A wallet decides on durable state and on its own pending
// requests, which excludes money still in flight to it. So a refusal for funds may ignore money
// from overlapping operations, and an overlapping order under the same client order id, and nothing
// else.
package lineartest
