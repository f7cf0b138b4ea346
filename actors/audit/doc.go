// Package audit derives an exchange's state again and compares it with the whole content of the
// store. It needs a store and one image of the state:
//
//	report, err := audit.Run(ctx, target, nil, progress)
//	... report.Differences ...
//
// An audit first lets the store check all its rows. It then compares wallets, nonces and
// withdrawals with the state, as a whole. Then it replays the journal, from the oldest kept
// snapshot or from the beginning of an archive. It looks up the rows of each replayed record in its
// lists. At the end the replayed state must equal the audited one.
//
//	audit.go        the report, the target, the order of the comparisons
//	replay.go       deriving the state again, from snapshot, journal or archive
//	seals.go        the seals of API keys in records and snapshots
//	projections.go  wallets, nonces, withdrawals: compared as a whole
//	deposits.go     deposits and the index of their references, range by range
//	rows.go         the rows of replayed records, looked up list by list
//	lists.go        the kinds of lists, and how each is read
//	newest.go       rows expected in a list whatever was replayed
//	concurrently.go reading several lists in parallel
package audit
