// Package wal is the journal of the embedded store: batches of records, one after the other, in
// files of their own. An append is one write and one sync within the file's existing size. So an
// append waits for its own bytes alone: not for projections, not for compactions, and not for the
// file system's own log.
//
// A log is a folder of segments, "00000001.journal" and so on, each twice as large as the one
// before, from 64 kB to 32 MB. A segment is filled with zeros, or reuses a trimmed one, before it
// is needed. It begins with a page that holds its description and a random number, its salt. Then
// come records:
//
//	checksum of the salt and the next 32 bytes | length u32, 0 u32 |
//	previous sequence u64 | last sequence u64 | digest u64 | batch
//
// All numbers are big-endian, and a record begins at a multiple of 8. The old records of a reused
// segment have another salt, so none of them counts as a record. Nor can a writer of batches forge
// one.
//
// The log ends at a record that is not whole, if no whole record follows: that append was never
// acknowledged. Anywhere else it is damage, and Read reports it, by the chain of sequences.
//
// The end of a log can be cut off again, because nodes that share a log may have to remove entries
// that no majority has. A cut removes the later segments from the last one on, and then replaces
// the segment of the cut by a shorter copy. So after a crash the log is a chain that ends at the
// cut or above.
//
// An unreadable head belongs to a segment that a crash left unfinished, if only zeros follow.
// Otherwise it is damage, and Open reports it where the log would end.
//
//	log.go      opening, appending, trimming, reading
//	cut.go      cutting off the end
//	between.go  reading a part
//	segment.go  one file: making or reusing it, its head
//	record.go   one record as bytes
package wal
