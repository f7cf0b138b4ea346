package raftlog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/durable"
	"exchange/persistence/internal/head"
	"exchange/persistence/internal/wal"
)

const (
	headFile  = "HEAD"
	logFolder = "log"
	// keepBytes is how many bytes of the newest entries stay in memory, for peers and the machine.
	// Up to twice as many may be there.
	keepBytes = 16 << 20
	// aheadBytes is how much is read at once from the disk for a peer that lags further behind.
	aheadBytes = 4 << 20
)

// A Log is an open folder. One goroutine uses it; Read may be called by any.
type Log struct {
	files   vfs.FS
	dir     string
	state   *stateIn
	head    *head.File
	wal     *wal.Log
	base    Base          // without the machine
	members *pb.ConfState // at base

	first  []run       // beginning of each term, from base on
	last   uint64      // index of the last entry
	commit uint64      // the highest index seen as committed
	tail   []*pb.Entry // the newest entries, up to last
	bytes  int         // of tail
	ahead  []*pb.Entry // the entries read last from the disk
}

// A run is a term and its first entry in the log.
type run struct{ index, term uint64 }

// Options of Open.
type Options struct {
	FS vfs.FS
	// Fatal is called when a sync has failed. It must end the process.
	Fatal func(error)
	// Nonce is the random part of this start.
	Nonce string
	// AtNeed does all work within the calls, so that a simulation can be repeated.
	AtNeed bool
	// Anyway opens a folder also if its node was removed or refused, as far as its own checksums
	// are right.
	Anyway bool
}

// Open opens the folder, and makes another start of the node durable. machine is the state after
// which the log begins. ErrNotFormed: the folder has no log. ErrRemoved: the node is a member no
// more. ErrCorrupt: the log has lost acknowledged entries, is refused, or cannot be read.
func Open(dir string, o Options) (_ *Log, machine []byte, err error) {
	l := &Log{files: o.FS, dir: dir}
	if machine, err = l.open(o); err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return l, machine, nil
}

func (l *Log) open(o Options) (machine []byte, err error) {
	if l.state, err = openState(l.files, l.dir, o.Anyway); err != nil {
		return nil, err
	}
	// A Form that a crash interrupted may not have synced the name of STATE.
	if err := durable.SyncFolder(l.files, l.dir); err != nil {
		return nil, err
	}
	if err := durable.SyncFolder(l.files, l.files.PathDir(l.dir)); err != nil {
		return nil, err
	}
	if l.base, err = readCheckpoint(l.files, l.dir); err != nil {
		return nil, err
	}
	machine, l.base.Machine = l.base.Machine, nil
	if l.head, err = head.OpenOld(l.files, l.files.PathJoin(l.dir, headFile)); err != nil {
		return nil, err
	} else if l.head == nil {
		return nil, fmt.Errorf("%w: %s has no file %s, so its log may have lost its end; "+
			"replace this node", persistence.ErrCorrupt, l.dir, headFile)
	}
	log, err := wal.Open(l.files.PathJoin(l.dir, logFolder),
		wal.Options{FS: l.files, Begin: l.base.Index, Fatal: o.Fatal, AtNeed: o.AtNeed})
	if errors.Is(err, persistence.ErrCorrupt) && !errors.Is(err, persistence.ErrVersion) {
		err = fmt.Errorf("%w; replace this node", err)
	}
	if err != nil {
		return nil, err
	}
	l.wal = log
	if err := l.load(); err != nil {
		return nil, err
	}
	l.state.Own = Start{Boot: l.state.Own.Boot + 1, Nonce: o.Nonce}
	l.state.Starts = append(l.state.Starts, o.Nonce)
	l.state.Starts = l.state.Starts[max(0, len(l.state.Starts)-keepStarts):]
	return machine, l.state.write()
}

// load reads all entries of the log once.
func (l *Log) load() error {
	end, _ := l.wal.End()
	if end < l.base.Index {
		return fmt.Errorf("%w: the log ends at %d, and its checkpoint is at %d; replace this node",
			persistence.ErrCorrupt, end, l.base.Index)
	}
	l.last, l.commit = l.base.Index, l.base.Index
	err := l.wal.Between(l.base.Index, end, func(prev, next uint64, b []byte) error {
		entries, commit, err := decode(prev, next, bytes.Clone(b))
		if err != nil {
			return err
		}
		l.commit = max(l.commit, commit)
		entries = slices.DeleteFunc(entries,
			func(e *pb.Entry) bool { return e.GetIndex() <= l.base.Index })
		return l.note(entries)
	})
	if err != nil {
		return err
	}
	l.commit = min(max(l.commit, l.state.Committed), l.last)
	mark := head.Mark{Seq: l.last, Digest: l.lastTerm()}
	if acknowledged := l.head.Acknowledged(); !acknowledged.Fits(mark) {
		return fmt.Errorf("%w: the log ends at entry %d of term %d, and entry %d of term %d was "+
			"acknowledged: its end is damaged or lost, or the folder is an older copy; replace "+
			"this node", persistence.ErrCorrupt, mark.Seq, mark.Digest, acknowledged.Seq,
			acknowledged.Digest)
	}
	if l.lastTerm() > l.state.Term {
		return fmt.Errorf("%w: the log has an entry of term %d, and the node was never in a term "+
			"above %d; replace this node", persistence.ErrCorrupt, l.lastTerm(), l.state.Term)
	}
	return l.head.Advance(mark) // the log's end is on the disk, see wal
}

func (l *Log) lastTerm() uint64 {
	if n := len(l.first); n > 0 {
		return l.first[n-1].term
	}
	return l.base.Term
}

// note adds entries after the last one to memory.
func (l *Log) note(entries []*pb.Entry) error {
	for _, e := range entries {
		term := e.GetTerm()
		if term < l.lastTerm() || e.GetIndex() != l.last+1 {
			return fmt.Errorf("%w: entry %d of term %d follows entry %d of term %d",
				persistence.ErrCorrupt, e.GetIndex(), term, l.last, l.lastTerm())
		}
		if term > l.lastTerm() {
			l.first = append(l.first, run{e.GetIndex(), term})
		}
		l.last = e.GetIndex()
		l.tail = append(l.tail, e)
		l.bytes += len(e.GetData())
	}
	if l.bytes > 2*keepBytes {
		drop := 0
		for ; l.bytes > keepBytes && drop < len(l.tail)-1; drop++ {
			l.bytes -= len(l.tail[drop].GetData())
		}
		l.tail = slices.Clone(l.tail[drop:])
	}
	return nil
}

// Append makes entries durable, in place of those from the first one's index on. commit is the
// node's commit index. After an error the log must not be used any more.
func (l *Log) Append(entries []*pb.Entry, commit uint64) error {
	if len(entries) == 0 {
		return nil
	}
	after := entries[0].GetIndex() - 1
	if after < l.last {
		if err := l.cut(after); err != nil {
			return err
		}
	}
	if err := l.note(entries); err != nil {
		return err
	}
	b := encode(entries, min(commit, l.last))
	if err := l.wal.Append(after, l.last, codec.Digest(b), b); err != nil {
		return err
	}
	return l.head.Advance(head.Mark{Seq: l.last, Digest: l.lastTerm()})
}

// cut removes the entries above an index.
func (l *Log) cut(index uint64) error {
	if index < l.base.Index {
		return fmt.Errorf("BUG: entries from %d on are replaced, and the log begins after %d",
			index+1, l.base.Index)
	}
	if l.head.Acknowledged().Seq > index {
		if err := l.head.Reset(index); err != nil {
			return err
		}
	}
	if err := l.wal.Cut(index, upTo(index)); err != nil {
		return err
	}
	for n := len(l.tail); n > 0 && l.tail[n-1].GetIndex() > index; n = len(l.tail) {
		l.bytes -= len(l.tail[n-1].GetData())
		l.tail = l.tail[:n-1]
	}
	l.tail = slices.Clip(l.tail) // raft may still hold the removed ones
	for n := len(l.first); n > 0 && l.first[n-1].index > index; n = len(l.first) {
		l.first = l.first[:n-1]
	}
	l.last, l.ahead = index, nil
	return nil
}

// forget drops entries up to an index from memory.
func (l *Log) forget(index uint64) {
	drop, _ := slices.BinarySearchFunc(l.tail, index+1,
		func(e *pb.Entry, i uint64) int { return int(int64(e.GetIndex()) - int64(i)) })
	for _, e := range l.tail[:drop] {
		l.bytes -= len(e.GetData())
	}
	l.tail, l.ahead = slices.Clone(l.tail[drop:]), nil
	for len(l.first) > 0 && l.first[0].index <= index {
		l.first = l.first[1:]
	}
}

// Vote makes a term and the vote in it durable.
func (l *Log) Vote(term, vote uint64) error {
	if l.state.Term == term && l.state.Vote == vote {
		return nil
	}
	l.state.Term, l.state.Vote = term, vote
	return l.state.write()
}

// Size returns how many bytes the entries take on the disk.
func (l *Log) Size() uint64 { return uint64(l.wal.Size()) }

// Commit makes durable that the entries up to an index are committed. Otherwise the next Append
// with that index does so.
func (l *Log) Commit(index uint64) error {
	if index <= l.commit {
		return nil
	}
	l.commit, l.state.Committed = index, index
	return l.state.write()
}

// Newest returns the index after which the newest entries begin that take at most a number of bytes
// on the disk, in whole files.
func (l *Log) Newest(bytes uint64) uint64 { return l.wal.Newest(int64(bytes)) }

// Identity returns the node and cluster of the folder.
func (l *Log) Identity() Identity { return l.state.Identity }

// Fresh reports whether the log was always empty, and the node was never in a term.
func (l *Log) Fresh() bool { return l.last == 0 && l.state.Term == 0 }

// Own returns this start of the node.
func (l *Log) Own() Start { return l.state.Own }

// Follows reports whether this start follows another one of the node, by the folder's list. One
// that is not in it was made by another copy of the folder.
func (l *Log) Follows(s Start) bool {
	own, starts := l.state.Own, l.state.Starts
	if s.Boot >= own.Boot {
		return false
	}
	back := own.Boot - s.Boot
	return back >= uint64(len(starts)) || starts[uint64(len(starts))-1-back] == s.Nonce
}

// Retire makes durable that the folder is an older copy, or has lost acknowledged entries: it is
// not opened again.
func (l *Log) Retire() error {
	l.state.Refused = true
	return l.state.write()
}

// Ended returns why the folder is not opened without Anyway; "": no reason.
func (l *Log) Ended() string {
	switch {
	case l.state.Removed:
		return "the node was removed"
	case l.state.Refused:
		return "the other nodes have found it an older copy, or shorter than what it acknowledged"
	}
	return ""
}

// Restore makes durable that the folder is opened again.
func (l *Log) Restore() error {
	l.state.Removed, l.state.Refused = false, false
	return l.state.write()
}

// ForgetStart removes the recorded start of a peer.
func (l *Log) ForgetStart(peer uint64) error {
	if _, seen := l.state.Seen[peer]; !seen {
		return nil
	}
	delete(l.state.Seen, peer)
	return l.state.write()
}

// EndTerm returns the term of the newest entry.
func (l *Log) EndTerm() uint64 { return l.lastTerm() }

// RecordedStart returns the newest start of a peer that this node has recorded.
func (l *Log) RecordedStart(peer uint64) Start { return l.state.Seen[peer] }

// RecordStart makes the newest start of a peer durable.
func (l *Log) RecordStart(peer uint64, s Start) error {
	if l.state.Seen == nil {
		l.state.Seen = map[uint64]Start{}
	}
	l.state.Seen[peer] = s
	return l.state.write()
}

// Remove makes durable that the node is a member no more: the folder is not opened again.
func (l *Log) Remove() error {
	l.state.Removed = true
	return l.state.write()
}

// Read calls fn for the entries of (after, upTo], which must be committed and above the base. The
// data is valid during the call only.
func (l *Log) Read(after, upTo uint64, fn func(*pb.Entry) error) error {
	return l.wal.Between(after, upTo, func(prev, next uint64, b []byte) error {
		entries, _, err := decode(prev, next, b)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if i := e.GetIndex(); i <= after || i > upTo {
				continue
			}
			if err := fn(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close frees the files.
func (l *Log) Close() (err error) {
	if l.wal != nil {
		err = l.wal.Close()
	}
	if l.state != nil {
		err = errors.Join(err, l.state.close())
	}
	return errors.Join(err, l.head.Close())
}
