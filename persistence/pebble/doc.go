// Package pebble is the embedded store: one folder, held by one process, fsynced.
//
// Journal appends and snapshots are committed with pebble.Sync; projections are not synced by
// themselves. The write-ahead log is one sequence, so a projection is durable as soon as any later
// append is, and a crash that loses one loses its watermark with it.
//
// A write error of the log ends the process (pebble's fatal logger): the store never goes on after
// a write it could not keep.
//
// See docs/storage.md for the keys.
package pebble
