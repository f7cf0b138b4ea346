// Package raftlog is what a voter of a replicated store has on its disk: the log of entries, which
// is the journal, and the little that raft must not forget. It is a folder:
//
//	STATE       the node's identity, term, vote and starts, and the newest starts of its peers
//	HEAD        the last index that was acknowledged to a leader
//	CHECKPOINT  the state of the machine, with the membership, behind which the log begins
//	log/        the entries, see persistence/internal/wal; a record has those of one write
//
// A write is one record and one sync. Then HEAD moves, unsynced, and only then may a leader learn
// of the entries. So HEAD may be behind the log after a power cut, and is never ahead: a log that
// ends below HEAD has lost what a majority may rely on. Such a folder is not opened, so its node
// takes no part and never votes. Nor is a folder without a STATE, which a replaced disk has: only
// Form makes one.
//
// STATE is two equal copies in one file, each with a checksum, and each is synced before the next
// is written. One damaged copy is the one that was being written, or has the same content as the
// other, so the other one counts and no vote is forgotten.
//
// Entries that no majority has may have to go again. HEAD is lowered, durably, before they do.
//
//	log.go         opening, appending, reading
//	storage.go     what raft asks
//	state.go       STATE
//	checkpoint.go  CHECKPOINT, and forgetting what lies below it
//	record.go      entries as bytes
package raftlog
