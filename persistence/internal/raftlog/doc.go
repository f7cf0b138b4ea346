// Package raftlog is a voter's data on its disk: the log of entries, which is the journal, and the
// state that raft must keep. It is a folder:
//
//	STATE       the node's identity, term, vote and starts, and the newest starts of its peers
//	HEAD        the last index that was acknowledged to a leader
//	CHECKPOINT  the state of the machine, with the membership, after which the log begins
//	log/        the entries, see persistence/internal/wal; a record holds those of one write
//
// A write is one record and one sync. Then HEAD moves, unsynced, and only then are the entries
// acknowledged to a leader. So HEAD may lag behind the log after a power cut, and is never ahead: a
// log that ends below HEAD has lost entries that a majority may rely on. Such a folder is not
// opened, so its node takes no part and never votes. Nor is a folder without a STATE, as on a
// replaced disk: only Form makes one.
//
// STATE is two equal copies in one file, each with a checksum, and each is synced before the next
// is written. One damaged copy is the one that was being written, or has the same content as the
// other, so the other one counts and no vote is lost.
//
// Entries that no majority has may have to be removed again. HEAD is lowered, durably, before they
// do.
//
//	log.go         opening, appending, reading
//	storage.go     raft's Storage
//	state.go       STATE
//	checkpoint.go  CHECKPOINT, and dropping the entries below it
//	record.go      entries as bytes
package raftlog
