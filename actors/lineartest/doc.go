// Package lineartest checks recorded histories of concurrent clients against a sequential exchange.
//
// A client notes each operation in a History before it sends it, and its result when the answer is
// there. Check asks whether there is an order of all operations that keeps those apart that did not
// overlap, and in which each result is what one exchange, doing one operation after the other,
// would have answered. The search for that order is porcupine's. The package shares no code with
// the exchange that it judges. Its books are those of the specification, prove/spec.
//
//	history.go      the operations, their results, and the history that notes them
//	check.go        the search, for each object
//	market.go       one object: two books and the wallets of the accounts that trade on them
//	orders.go       the market's orders and cancels       withdrawals.go  its withdrawals
//	keys.go         the other objects: each account's keys, nonces and freeze
//	window.go       the nonces of a key for parallel use
//	batches.go      operations that were sent as one request
//	own.go          what subscribers of accounts are told
//	parts.go        an operation as the parts that the search puts in order
//	unknown.go      operations without an outcome, decided by reads and events before the search
//	page.go         a wrong history as a page for a browser and as text
//	drawing.go      clients that choose their operations at random
//
// Books and wallets are one object, so a read of a wallet that shows a trade which a later read of
// the book does not show is an error too.
//
// An operation without an outcome may have happened at any time since, or never, until Settle says
// that nothing is under way any more.
//
// One answer is weaker than the rest. A wallet decides on what is durable and on what it has itself
// sent on, and money that is on its way to it is neither. So a refusal for funds may leave out what
// operations brought that overlapped with it, and an order under the same client order id of one
// that did, and nothing else.
package lineartest
