// Package pebble is the embedded store: one folder, held by one process, fsynced.
//
// The journal is a log of its own (persistence/internal/wal), synced with each append. All the rest
// is in Pebble: snapshots are committed with pebble.Sync; projections are not synced by themselves.
// Pebble's log is one sequence, so a projection is durable as soon as a snapshot behind it is
// published, and a crash that loses one loses its watermark with it: the journal has it still.
//
// A sync of the journal that fails ends the process, and so does a write of Pebble's that fails,
// but for its tables, which it makes again for a while: the store never goes on after a write that
// it could not keep. See guard and background.
//
// See docs/storage.md for the keys and files.
package pebble
