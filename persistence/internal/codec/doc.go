// Package codec is what both stores share: the binary form of history rows, the checks of what may
// be written, the filters of what is asked for, and the framing of snapshots.
//
// A row starts with a version byte; numbers are uvarints. The id is not part of a row: it stands in
// front of it, big-endian (Redis), or in its key (Pebble). Behind a row a store puts a checksum
// (crc32c) that covers its list and its id too. An unknown version, a short row or a wrong checksum
// is persistence.ErrCorrupt, never a guess.
package codec
