// Package lineartest checks recorded histories of concurrent clients against a sequential exchange.
//
// A client notes each operation in a History before it sends it, and its result when the answer is
// there. Check asks whether there is an order of all operations that keeps those apart that did not
// overlap, and in which each result is what one exchange, doing one operation after the other,
// would have answered. The sequential exchange knows two pairs and the wallets of the accounts that
// trade on them, as one object (model.go): so a read of a wallet that shows a trade which a later
// read of the book does not show is an error too. The keys of each account are another object
// (keys.go). It shares no code with the exchange that it judges.
//
// An operation without an outcome is one that may have happened at any time since, or never, until
// Settle says that nothing is under way any more. What later reads show of it is taken into account
// before the search (parts.go).
//
// One answer is weaker than the rest. A wallet decides on what is durable and on what it has itself
// sent on, and money that is on its way to it is neither. So a refusal for funds may leave out what
// operations brought that overlapped with it, and nothing else.
package lineartest
