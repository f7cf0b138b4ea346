// Package memory is a store for simulations and tests. It keeps everything in memory, and tracks
// which part of it is durable. A Disk can crash. It then loses only writes that a real store could
// lose: an embedded one, or a server that syncs before it answers.
//
// A Disk has two logs, like persistence/pebble: one for the journal, and one for everything else. A
// batch syncs the journal before it is answered, and nothing else. A snapshot and a new owner sync
// the other log before they are answered. Projections and trims are not synced: the next snapshot
// makes projections durable, the next batch makes trims. A crash truncates each log anywhere after
// its last sync, independently. So a lost write takes all later ones of the same log with it, and
// synced ones are never lost. The store of a server syncs both before each answer.
//
// A store may keep a Head beside the disk: the file with the mark of the acknowledged end. The file
// is written after the sync of the journal, and is not synced itself. So after a power cut it may
// lag behind the journal, but is never ahead of it.
//
// Lists are plain sorted slices, filtered for each query: obviously right, and slow.
//
//	disk.go     the data, live and durable, and crashes
//	store.go    the Store on a disk
//	history.go  queries
//	head.go     the file of the acknowledged end
package memory
