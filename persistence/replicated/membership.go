package replicated

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence/internal/machine"
)

// configuration returns a membership as raft has it.
func configuration(members []machine.Member) *pb.ConfState {
	c := &pb.ConfState{}
	for _, m := range members {
		c.Voters = append(c.Voters, m.ID)
	}
	return c
}

// nameOf returns the name of a member, "": it is none.
func (n *node) nameOf(id uint64) string {
	for _, m := range n.machine.Members() {
		if m.ID == id {
			return m.Name
		}
	}
	return ""
}

// hears reports whether a peer may speak as a member.
func (n *node) hears(from string, id uint64) bool {
	return id != n.id && from != "" && n.nameOf(id) == from
}
