// Package memory is a store for simulations and tests. It keeps everything in memory, and knows what of it
// is durable: a Disk can crash, and then loses what an embedded store on a real disk, or a server that syncs
// before it answers, would lose, and nothing else.
//
// All writes of a Disk are one log. Those of the journal, of owners and of snapshots are synced before they are
// answered; those of projections and trims are not, and the next sync makes them durable. A crash cuts the log
// anywhere behind the last sync: so some writes are lost together with all that came after them, and never one
// that was synced.
//
// Lists are kept as plain sorted slices and filtered when they are asked for: right by looking at it, and slow.
package memory
