// Package memory is a store for simulations and tests. It keeps everything in memory, and knows
// what of it is durable: a Disk can crash, and then loses what an embedded store on a real disk, or
// a server that syncs before it answers, would lose, and nothing else.
//
// A Disk has two logs, as persistence/pebble has: one of the journal, and one of everything else. A
// batch syncs the journal before it is answered, and nothing else. A snapshot and a new owner sync
// the other log before they are answered. Projections and trims are not synced: the next snapshot
// makes projections durable, the next batch makes trims. A crash cuts each log anywhere behind its
// last sync, independently: so some writes are lost together with all that came after them in the
// same log, and never one that was synced. The store of a server syncs both before each answer.
//
// A store may keep a Head beside the disk: the file that says up to where appends were
// acknowledged. It is written behind the sync of the journal and not synced itself, so a power cut
// leaves it behind the journal, and never ahead of it.
//
// Lists are kept as plain sorted slices and filtered when they are asked for: right by looking at
// it, and slow.
package memory
