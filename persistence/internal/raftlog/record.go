package raftlog

import (
	"encoding/binary"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/core/wire"
	"exchange/persistence"
)

// The form of a record: version, the node's commit index, the number of entries, and each entry:
// type, term, length, data. An entry's index follows from the record's place. Numbers are
// big-endian.
const (
	recordVersion = 1
	recordHead    = 1 + 8 + 4
	entryHead     = 1 + 8 + 4
)

// encode returns entries as one record.
func encode(entries []*pb.Entry, commit uint64) []byte {
	size := recordHead
	for _, e := range entries {
		size += entryHead + len(e.GetData())
	}
	b := append(make([]byte, 0, size), recordVersion)
	b = binary.BigEndian.AppendUint64(b, commit)
	b = binary.BigEndian.AppendUint32(b, uint32(len(entries)))
	for _, e := range entries {
		b = append(b, byte(e.GetType()))
		b = binary.BigEndian.AppendUint64(b, e.GetTerm())
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.GetData())))
		b = append(b, e.GetData()...)
	}
	return b
}

// decode returns the entries of the record that covers (prev, next]. Their data is part of b.
func decode(prev, next uint64, b []byte) (entries []*pb.Entry, commit uint64, err error) {
	if len(b) > 0 && b[0] != recordVersion { // the log's checksum covers it
		return nil, 0, fmt.Errorf("the record of the entries %d to %d: %w", prev+1, next,
			persistence.OtherVersion(uint64(b[0]), recordVersion))
	}
	d := wire.Read(b)
	d.Take(1)
	commit = d.Fixed64()
	d.Check(uint64(d.Fixed32()) == next-prev)
	for index := prev + 1; index <= next && !d.Bad(); index++ {
		kind, term := pb.EntryType(d.Byte()), d.Fixed64()
		d.Check(kind <= pb.EntryConfChangeV2)
		entries = append(entries, &pb.Entry{Type: &kind, Term: &term, Index: new(index),
			Data: d.Take(int(d.Fixed32()))})
	}
	if !d.End() {
		return nil, 0, fmt.Errorf("%w: the record of the entries %d to %d cannot be read",
			persistence.ErrCorrupt, prev+1, next)
	}
	return entries, commit, nil
}

// upTo returns the part of a record up to an index.
func upTo(index uint64) func(prev, next uint64, b []byte) ([]byte, error) {
	return func(prev, next uint64, b []byte) ([]byte, error) {
		entries, commit, err := decode(prev, next, b)
		if err != nil {
			return nil, err
		}
		return encode(entries[:index-prev], min(commit, index)), nil
	}
}
