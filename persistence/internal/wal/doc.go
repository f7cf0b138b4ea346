// Package wal is the journal of the embedded store: batches of records, one after the other, in
// files of their own. An append is one write and one sync of a place that the file has already. So
// an append waits for its own bytes alone: not for projections, not for compactions, and not for
// the file system's own log.
//
// A log is a folder of segments, "00000001.journal" and so on, each twice as large as the one
// before, from 64 kB to 32 MB. A segment is filled with zeros, or taken over from one long trimmed,
// before it is needed. It begins with a page that has its description and a random number, its
// salt. Then come records:
//
//	checksum of the salt and the 32 bytes behind it | length u32, 0 u32 |
//	previous sequence u64 | last sequence u64 | digest u64 | batch
//
// All numbers are big-endian, and a record begins at a multiple of 8. The old records of a segment
// that is taken over have another salt, so none of them is taken for a record. Nor can a writer of
// batches make one up.
//
// The log ends at a record that is not whole, if no whole record is behind it: that append was
// never acknowledged. Anywhere else it is damage, and Read reports it, by the chain of sequences.
//
// The end of a log can be cut off again, because nodes that share a log may have to take back what
// no majority has. A cut removes the segments behind it from the last one on, and then replaces the
// segment that it lies in by a shorter copy. So after a crash the log is a chain that ends at the
// cut or above.
//
// A head that cannot be read is that of a segment which a crash left unfinished, if only zeros are
// behind it. Otherwise it is damage, and Open reports it where the log would end.
//
//	log.go      opening, appending, trimming, reading
//	cut.go      cutting off the end
//	between.go  reading a part
//	segment.go  one file: making it, taking it over, its head
//	record.go   one record as bytes
package wal
