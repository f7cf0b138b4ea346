// Package wal is the journal of the embedded store: batches of records, one after the other, in
// files of their own. An append is one write and one sync of a place that the file has already, so
// that it waits for nothing but its own bytes: not for projections, not for compactions, and not
// for the file system's own log.
//
// A log is a folder of segments, "00000001.journal" and so on, each twice as large as the one
// before, from 64 kB to 32 MB. A segment is filled with zeros, or taken over from one long trimmed,
// before it is needed. It begins with a page that says what it is, with a random number, its salt;
// then come records:
//
//	checksum of the salt and the 32 bytes behind it | length u32, 0 u32 | previous sequence u64 | last sequence u64 | digest u64 | batch
//
// All numbers are big-endian, and a record begins at a multiple of 8. What was in a segment that is
// taken over has another salt, so none of it is taken for a record, and nobody who writes batches
// can make one up.
//
// A record that is not whole is where the log ends if nothing whole is behind it: an append that
// was never acknowledged. Anywhere else it is damage, and Read says so, by the chain of sequences.
package wal
