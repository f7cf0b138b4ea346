// Package pebble is the embedded store: one folder, held by one process, fsynced.
//
// The journal is a log of its own (persistence/internal/wal), synced with each append. All the rest
// is in Pebble. Snapshots are committed with pebble.Sync; projections are not synced by themselves.
// Pebble's log is one sequence, so a published snapshot makes the projections before it durable. A
// crash that loses a projection loses its watermark with it, and the journal still has the records.
//
// A failed sync of the journal ends the process. So does a failed write of Pebble's, except for
// tables, which Pebble makes again for a while. So the store never goes on after a write that it
// could not keep. See guard and background.
//
// See docs/storage.md for the keys and files.
//
//	store.go       opening and closing, the folder's lock, options of Pebble
//	version.go     the folder's version, which is looked at before Pebble opens it
//	journal.go     the owner, appends, reads, trims
//	head.go        the mark of the acknowledged end
//	apply.go       one Apply as one batch
//	rows.go        rows of each kind into their lists
//	lists.go       lists with a counter, and their trimming
//	counts.go      counts of a list's rows by side, in buckets
//	history.go     queries
//	client_ids.go  the index of client ids
//	references.go  the index of deposits' references
//	wallets.go     wallets and nonces
//	snapshot.go    images
//	links.go       links from Apply to Apply, by which a lost file is noticed
//	verify.go      checks of all rows
//	keys.go        the keys
//	guard.go       the file system that ends the process at a failed write
//	background.go  Pebble's own work, and when its failures end the process
//	testing.go     damage, for tests of other packages
package pebble
