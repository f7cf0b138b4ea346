package raftlog

import (
	"bytes"
	"errors"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

var _ raft.Storage = (*Log)(nil)

// InitialState returns raft's initial state: State, and the membership of Begin.
func (l *Log) InitialState() (*pb.HardState, *pb.ConfState, error) {
	return l.State(), l.members, nil
}

// Begin sets the membership after which the log begins.
func (l *Log) Begin(members *pb.ConfState) { l.members = members }

// State returns the term and the vote that are durable, and the highest index seen as committed.
func (l *Log) State() *pb.HardState {
	return &pb.HardState{Term: new(l.state.Term), Vote: new(l.state.Vote), Commit: new(l.commit)}
}

// FirstIndex returns the index of the first entry that can be read.
func (l *Log) FirstIndex() (uint64, error) { return l.base.Index + 1, nil }

// LastIndex returns the index of the last entry.
func (l *Log) LastIndex() (uint64, error) { return l.last, nil }

// Term returns the term of an entry, from the base's on.
func (l *Log) Term(index uint64) (uint64, error) {
	switch {
	case index < l.base.Index:
		return 0, raft.ErrCompacted
	case index > l.last:
		return 0, raft.ErrUnavailable
	}
	term := l.base.Term
	for i := len(l.first) - 1; i >= 0; i-- { // few, and mostly the newest are needed
		if l.first[i].index <= index {
			return l.first[i].term, nil
		}
	}
	return term, nil
}

// Snapshot returns none: the log always holds the entries that any peer needs.
func (l *Log) Snapshot() (*pb.Snapshot, error) {
	return nil, raft.ErrSnapshotTemporarilyUnavailable
}

var errEnough = errors.New("enough is read")

// Entries returns the entries of [lo, hi), or the first ones of them.
func (l *Log) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	switch {
	case lo <= l.base.Index:
		return nil, raft.ErrCompacted
	case hi > l.last+1 || lo >= hi:
		return nil, raft.ErrUnavailable
	}
	if len(l.tail) > 0 && lo >= l.tail[0].GetIndex() {
		return limit(l.tail, lo, hi, maxSize), nil
	}
	if n := len(l.ahead); n == 0 || lo < l.ahead[0].GetIndex() || lo > l.ahead[n-1].GetIndex() {
		l.ahead = nil
		size := 0
		err := l.Read(lo-1, l.last, func(e *pb.Entry) error {
			kept := &pb.Entry{Type: e.Type, Term: e.Term, Index: e.Index,
				Data: bytes.Clone(e.GetData())}
			l.ahead = append(l.ahead, kept)
			if size += len(kept.GetData()); size >= aheadBytes {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return nil, err
		}
	}
	return limit(l.ahead, lo, hi, maxSize), nil
}

// limit returns a copy of the part of a list that begins at lo, of at most that size, and at least
// one entry.
func limit(list []*pb.Entry, lo, hi, maxSize uint64) []*pb.Entry {
	from := lo - list[0].GetIndex()
	list = list[from:min(uint64(len(list)), from+hi-lo)]
	size := uint64(0)
	for i, e := range list {
		if size += uint64(len(e.GetData())) + 32; size > maxSize && i > 0 {
			list = list[:i]
			break
		}
	}
	return slices.Clone(list)
}
