// Package lineartest checks recorded histories of concurrent clients against a sequential exchange.
//
// A client notes each operation in a History before it sends it, and its result when the answer is there. Check
// asks whether there is an order of all operations that keeps those apart that did not overlap, and in which each
// result is what one exchange, doing one operation after the other, would have answered. The sequential exchange
// (model.go) knows one pair and the wallets of the accounts that trade on it, as one object: so a read of a wallet
// that shows a trade which a later read of the book does not show is an error too. It shares no code with the
// exchange that it judges.
//
// An operation without an outcome is one that may have happened at any time since, or never: it lasts until the
// end of the history.
//
// One answer is weaker than the rest. A wallet decides on what is durable and on what it has itself sent on, and money that is
// on its way to it is neither. So a refusal for funds may leave out what operations brought that overlapped with it, and
// nothing else.
package lineartest
