// Package pebble is the embedded store: one folder, held by one process, fsynced.
//
// The journal is a log of its own (persistence/internal/wal), synced with each append. All the rest
// is in Pebble. Snapshots are committed with pebble.Sync; projections are not synced by themselves.
// Pebble's log is one sequence, so a published snapshot makes the projections before it durable. A
// crash that loses a projection loses its watermark with it, and the journal still has the records.
//
// A failed sync of the journal ends the process, and so does a failed write of Pebble's. The
// exception is tables, which Pebble rewrites for a while. So the store never continues after a lost
// write. See guard and background.
//
// See docs/storage.md for the keys and files.
//
//	store.go       opening and closing, the folder's lock, options of Pebble
//	version.go     the folder's version, which is checked before Pebble opens it
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
//	links.go       links from Apply to Apply, which reveal a lost file
//	verify.go      checks of all rows
//	keys.go        the keys
//	guard.go       the file system that ends the process at a failed write
//	background.go  Pebble's own work, and when its failures end the process
package pebble
