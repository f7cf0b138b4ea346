// Package memory is a store for simulations and tests. It keeps everything in memory, and knows
// which part of it is durable. A Disk can crash. It then loses only writes that a real store could
// lose: an embedded one, or a server that syncs before it answers.
//
// A Disk has two logs, as persistence/pebble has: one for the journal, and one for everything else.
// A batch syncs the journal before it is answered, and nothing else. A snapshot and a new owner
// sync the other log before they are answered. Projections and trims are not synced: the next
// snapshot makes projections durable, the next batch makes trims. A crash cuts each log anywhere
// behind its last sync, independently. So some writes are lost together with all later ones of the
// same log, and never one that was synced. The store of a server syncs both before each answer.
//
// A store may keep a Head beside the disk: the file with the mark up to which appends were
// acknowledged. The file is written after the sync of the journal, and is not synced itself. So a
// power cut may leave it behind the journal, but never ahead of it.
//
// Lists are plain sorted slices, filtered for each query: obviously right, and slow.
//
//	disk.go     the data, live and durable, and crashes
//	store.go    the Store on a disk
//	history.go  queries
//	head.go     the file of the acknowledged end
package memory
