package raftlog

import (
	"encoding/binary"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence"
)

// The form of a record: version, the commit index that the node knew, how many entries, and each
// entry: type, term, length, data. An entry's index follows from the record's place. Numbers are
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
	broken := fmt.Errorf("%w: the record of the entries %d to %d cannot be read",
		persistence.ErrCorrupt, prev+1, next)
	if len(b) > 0 && b[0] != recordVersion { // the log's checksum covers it
		return nil, 0, fmt.Errorf("the record of the entries %d to %d: %w", prev+1, next,
			persistence.OtherVersion(uint64(b[0]), recordVersion))
	}
	if len(b) < recordHead ||
		uint64(binary.BigEndian.Uint32(b[9:])) != next-prev {
		return nil, 0, broken
	}
	commit = binary.BigEndian.Uint64(b[1:])
	b = b[recordHead:]
	for index := prev + 1; index <= next; index++ {
		if len(b) < entryHead || b[0] > byte(pb.EntryConfChangeV2) {
			return nil, 0, broken
		}
		kind, term := pb.EntryType(b[0]), binary.BigEndian.Uint64(b[1:])
		n := int(binary.BigEndian.Uint32(b[9:]))
		if b = b[entryHead:]; len(b) < n {
			return nil, 0, broken
		}
		entries = append(entries, &pb.Entry{Type: &kind, Term: &term, Index: new(index),
			Data: b[:n:n]})
		b = b[n:]
	}
	if len(b) > 0 {
		return nil, 0, broken
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
