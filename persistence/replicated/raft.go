package replicated

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// configuration returns a membership as raft's configuration.
func configuration(members []machine.Member) *pb.ConfState {
	c := &pb.ConfState{}
	var leaving, coming []uint64
	for _, m := range members {
		switch m.Role {
		case machine.Voter:
			coming = append(coming, m.ID)
		case machine.Learner:
			c.Learners = append(c.Learners, m.ID)
		case machine.Leaving:
			leaving = append(leaving, m.ID)
		}
	}
	c.Voters = coming
	if len(leaving) > 0 { // the newest voter replaces it
		c.VotersOutgoing = slices.Concat(leaving, without(coming, slices.Max(coming)))
		c.AutoLeave = new(true)
	}
	for _, list := range [][]uint64{c.Voters, c.VotersOutgoing, c.Learners} {
		slices.Sort(list)
	}
	return c
}

func without(ids []uint64, id uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(ids), func(i uint64) bool { return i == id })
}

// confChanges returns raft's changes from one membership to the next.
func confChanges(before, after []machine.Member) (list []*pb.ConfChangeSingle) {
	change := func(kind pb.ConfChangeType, id uint64) {
		list = append(list, &pb.ConfChangeSingle{Type: kind.Enum(), NodeId: new(id)})
	}
	role := func(members []machine.Member, id uint64) machine.Role {
		for _, m := range members {
			if m.ID == id {
				return m.Role
			}
		}
		return 0
	}
	for _, m := range before {
		now := role(after, m.ID)
		if m.ID != 0 && (now == 0 || now == machine.Leaving && m.Role != now) {
			change(pb.ConfChangeRemoveNode, m.ID)
		}
	}
	for _, m := range after {
		switch was := role(before, m.ID); {
		case m.Role == was:
		case m.Role == machine.Learner:
			change(pb.ConfChangeAddLearnerNode, m.ID)
		case m.Role == machine.Voter:
			change(pb.ConfChangeAddNode, m.ID)
		}
	}
	return list
}

// decode reads an entry of a format up to maxFormat; nil: the empty first entry of a term.
func decode(entry *pb.Entry, maxFormat uint8) (*machine.Entry, error) {
	switch data := entry.GetData(); {
	case entry.GetType() == pb.EntryNormal && len(data) == 0:
		return nil, nil
	case entry.GetType() == pb.EntryNormal:
		return machine.Decode(data, maxFormat)
	case entry.GetType() == pb.EntryConfChangeV2 && len(data) == 0: // raft's own
		return &machine.Entry{Kind: machine.Leave}, nil
	case entry.GetType() == pb.EntryConfChangeV2:
		c := &pb.ConfChangeV2{}
		if err := proto.Unmarshal(data, c); err != nil {
			return nil, fmt.Errorf("%w: %w", persistence.ErrCorrupt, err)
		}
		e, err := machine.Decode(c.Context, maxFormat)
		if err == nil && !e.Kind.ChangesCluster() {
			err = fmt.Errorf("%w: a configuration change holds an entry of kind %d",
				persistence.ErrCorrupt, e.Kind)
		}
		return e, err
	}
	return nil, fmt.Errorf("%w: an entry of type %s", persistence.ErrCorrupt, entry.GetType())
}
