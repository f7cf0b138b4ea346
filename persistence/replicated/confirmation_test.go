package replicated

import (
	"bytes"
	"encoding/binary"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
)

// A ReadIndex and its answer carry a round's name alone. The name contains the sender's ID: no node
// can have another one's round answered.
func TestAReadIndexWithoutARoundIsDropped(t *testing.T) {
	name := binary.BigEndian.AppendUint64(nil, 2)
	name = append(name, make([]byte, confirmRoundNameBytes-len(name))...)
	message := func(kind pb.MessageType, change func(*pb.Message)) *pb.Message {
		m := &pb.Message{Type: kind.Enum(), From: new(uint64(2)), To: new(uint64(1)),
			Entries: []*pb.Entry{{Data: bytes.Clone(name)}}}
		if kind == pb.MsgReadIndexResp {
			m.Term, m.Index = new(uint64(7)), new(uint64(70))
		}
		if change != nil {
			change(m)
		}
		return m
	}
	for _, kind := range []pb.MessageType{pb.MsgReadIndex, pb.MsgReadIndexResp} {
		if !sound(message(kind, nil)) {
			t.Errorf("%v is dropped", kind)
		}
		for what, change := range map[string]func(*pb.Message){
			"no round":       func(m *pb.Message) { m.Entries = nil },
			"two rounds":     func(m *pb.Message) { m.Entries = append(m.Entries, m.Entries[0]) },
			"a short name":   func(m *pb.Message) { m.Entries[0].Data = name[1:] },
			"a long name":    func(m *pb.Message) { m.Entries[0].Data = append(name, 0) },
			"a context":      func(m *pb.Message) { m.Context = []byte{1} },
			"a snapshot":     func(m *pb.Message) { m.Snapshot = &pb.Snapshot{} },
			"another term":   func(m *pb.Message) { m.Term = new(7 - m.GetTerm()) },
			"an answer":      func(m *pb.Message) { m.Responses = []*pb.Message{{}} },
			"a local sender": func(m *pb.Message) { m.From = new(^uint64(0)) },
		} {
			if sound(message(kind, change)) {
				t.Errorf("%v with %s is taken", kind, what)
			}
		}
	}
	if sound(message(pb.MsgReadIndex, func(m *pb.Message) { m.From = new(uint64(3)) })) {
		t.Error("a ReadIndex in another node's name is accepted")
	}
}

// A follower drops a ReadIndex: raft would forward it to the leader, which rejects it from this
// node, and cuts this node off.
func TestAFollowerForwardsNoReadIndex(t *testing.T) {
	w := newWorld(t, 1)
	a, b, c := w.lead(0), w.nodes[1], w.nodes[2]
	must(t, b.node.receive("c", c.lie(b, func(m *pb.Message) {
		m.Type, m.Term = pb.MsgReadIndex.Enum(), nil
		m.Entries = []*pb.Entry{{Data: c.node.confirmRoundName()}}
	})))
	must(t, b.node.work())
	w.settle()
	if a.node.impossible != 0 {
		t.Error("node a cuts an honest node off")
	}
}
