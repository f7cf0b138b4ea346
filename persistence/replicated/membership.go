package replicated

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// configuration returns a membership as raft has it.
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
	if len(leaving) > 0 { // the newest voter takes its place
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

// changes returns what raft has to change from one membership to the next.
func changes(before, after []machine.Member) (list []*pb.ConfChangeSingle) {
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

// decode reads an entry of a format up to reads; nil: there is nothing in it.
func decode(entry *pb.Entry, reads uint8) (*machine.Entry, error) {
	switch data := entry.GetData(); {
	case entry.GetType() == pb.EntryNormal && len(data) == 0: // a leader begins its term with one
		return nil, nil
	case entry.GetType() == pb.EntryNormal:
		return machine.Decode(data, reads)
	case entry.GetType() == pb.EntryConfChangeV2 && len(data) == 0: // raft's own
		return &machine.Entry{Kind: machine.Leave}, nil
	case entry.GetType() == pb.EntryConfChangeV2:
		c := &pb.ConfChangeV2{}
		if err := proto.Unmarshal(data, c); err != nil {
			return nil, fmt.Errorf("%w: %w", persistence.ErrCorrupt, err)
		}
		e, err := machine.Decode(c.Context, reads)
		if err == nil && !e.Kind.Changes() {
			err = fmt.Errorf("%w: an entry of kind %d changes the members", persistence.ErrCorrupt,
				e.Kind)
		}
		return e, err
	}
	return nil, fmt.Errorf("%w: an entry of type %s", persistence.ErrCorrupt, entry.GetType())
}

// change tells raft of another membership, all at once or, of learners, one after the other. What
// raft makes of it must be what the machine has.
func (n *node) change(before []machine.Member, joint bool) error {
	members := n.machine.Members()
	from := before
	var now *pb.ConfState
	if joint && !n.machine.Joint() {
		now = n.raw.ApplyConfChange(&pb.ConfChangeV2{})
		from = slices.DeleteFunc(slices.Clone(before),
			func(m machine.Member) bool { return m.Role == machine.Leaving })
	}
	if list := changes(from, members); n.machine.Joint() {
		now = n.raw.ApplyConfChange(&pb.ConfChangeV2{Changes: list})
	} else {
		for _, c := range list {
			now = n.raw.ApplyConfChange(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{c}})
		}
	}
	if want := configuration(members); now != nil && now.Equivalent(want) != nil {
		return fmt.Errorf("BUG: raft has the members %v, and they are %v", now, want)
	}
	// Those that are told may be needed to find the change committed once more.
	if err := n.log.Commit(n.applied); err != nil {
		return err
	}
	for _, m := range before {
		if m.ID != 0 && n.nameOf(m.ID) == "" && m.ID != n.id {
			n.tellRemoved(m.Name, m.ID)
		}
	}
	for _, m := range members {
		if _, ok := n.heard[m.ID]; !ok {
			n.heard[m.ID] = n.ticks
		}
	}
	for name, id := range n.later { // no peer speaks for the one that was given its ID
		if id <= n.machine.Given() && n.nameOf(id) != name {
			if err := n.forgetLater(id); err != nil {
				return err
			}
		}
	}
	n.forget()
	n.changed(members)
	n.see()
	return nil
}

// forget forgets what was known of those that are members no more: no ID comes back.
func (n *node) forget() {
	gone := func(id uint64) bool { return id <= n.machine.Given() && n.nameOf(id) == "" }
	maps.DeleteFunc(n.heard, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.unfits, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.offered, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.told, func(id uint64, _ uint8) bool { return gone(id) })
	maps.DeleteFunc(n.markets, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.clocks, func(id uint64, _ reading) bool { return gone(id) })
	maps.DeleteFunc(n.later, func(_ string, id uint64) bool { return id <= n.machine.Given() })
}

// removed notes, durably, that this node is a member no more.
func (n *node) removed() error {
	if err := n.log.Remove(); err != nil {
		return err
	}
	n.refused = persistence.ErrRemoved
	return nil
}

// nameOf returns the name of a member, "": it is none.
func (n *node) nameOf(id uint64) string {
	for _, m := range n.machine.Members() {
		if m.ID == id && id != 0 {
			return m.Name
		}
	}
	return ""
}

// route returns the name of the node that frames to a member go to, "": it is not known.
func (n *node) route(id uint64) string {
	if id > n.machine.Given() {
		for name, later := range n.later {
			if later == id {
				return name
			}
		}
	}
	return n.nameOf(id)
}

// hears reports whether a peer may speak as a member. One with an ID that was given later than what
// this node has applied may: otherwise this node could not come to know of it. One whose ID is none
// any more is told so.
func (n *node) hears(from string, f frame) bool {
	switch name := n.nameOf(f.id); {
	case f.id == 0 || f.id == n.id || from == "":
		return false
	case f.id > n.machine.Given():
		before := n.later[from]
		if before > f.id || before != 0 && before < f.id && n.forgetLater(before) != nil {
			return false
		}
		n.later[from] = f.id
		return true
	case name == "" && f.kind != frameRemoved:
		n.tellRemoved(from, f.id)
		return false
	default:
		return name == from
	}
}

func (n *node) tellRemoved(name string, id uint64) {
	f := n.frame(frameRemoved)
	n.send(name, binary.BigEndian.AppendUint64(f.begin(), id))
}

// votes reports whether this node is a voter.
func (n *node) votes() bool {
	return slices.ContainsFunc(n.machine.Members(), func(m machine.Member) bool {
		return m.ID == n.id && (m.Role == machine.Voter || m.Role == machine.Leaving)
	})
}

// alone reports whether this node is the only voter.
func (n *node) alone() bool {
	c := configuration(n.machine.Members())
	return len(c.Voters) == 1 && c.Voters[0] == n.id && len(c.VotersOutgoing) == 0
}

// mayChange reports why a change is refused that the machine would take: for what the node that
// leads knows of the others.
func (n *node) mayChange(e *machine.Entry, before, after []machine.Member) error {
	progress := n.raw.Status().Progress
	last, err := n.log.LastIndex()
	if err != nil {
		return err
	}
	living, voters := 0, 0
	for _, m := range after {
		if m.Role != machine.Voter {
			continue
		}
		voters++
		// one that lacks what is forgotten here can take nothing that is proposed from now on
		if m.ID == n.id || n.ticks-n.heard[m.ID] <= electionTicks &&
			progress[m.ID].Next > n.trim.begins {
			living++
		}
		if p := progress[m.ID]; e.Kind == machine.Promote && m.Name == e.Name &&
			(p.Match == 0 || p.Match+maxLag < last || n.ticks-n.heard[m.ID] > electionTicks) {
			return fmt.Errorf("%w: node %q has the log up to entry %d of %d, and was last heard "+
				"of %d ticks ago: it is promoted once it has the log and is heard of",
				persistence.ErrInvalid, e.Name, p.Match, last, n.ticks-n.heard[m.ID])
		}
	}
	if 2*living <= voters && e.Kind != machine.Join {
		return fmt.Errorf("%w: of the %d voters that there would be %d are heard of and not too "+
			"far behind, and they are no majority; bring the others back first, or replace them",
			persistence.ErrInvalid, voters, living)
	}
	own := func(m machine.Member) bool { return m.ID == n.id && m.Role == machine.Voter }
	if slices.ContainsFunc(before, own) && !slices.ContainsFunc(after, own) {
		return fmt.Errorf("%w: node %q leads: hand the lead over first", persistence.ErrInvalid,
			n.log.Identity().Name)
	}
	return nil
}

// enterChange proposes a change of the membership, if no other one is in this node's log that is
// not applied. So what applies it finds the members that are here now.
func (n *node) enterChange(e *machine.Entry, caller chan<- result) error {
	status := n.raw.BasicStatus()
	for _, s := range n.waiting {
		if s.changes {
			return errChanging
		}
	}
	if n.appliedTerm != status.GetTerm() {
		return errBegins
	}
	before := n.machine.Members()
	a, after := n.machine.Try(e)
	if a.Outcome != machine.Done {
		caller <- result{answer: a}
		return nil
	}
	if err := n.mayChange(e, before, after); err != nil {
		return err
	}
	n.identify(e)
	entry := &pb.Entry{Type: pb.EntryNormal.Enum(), Data: e.Encode()}
	if list := changes(before, after); len(list) > 0 {
		data, err := proto.Marshal(&pb.ConfChangeV2{Changes: list, Context: entry.Data})
		if err != nil {
			return err
		}
		entry = &pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Data: data}
	}
	err := n.raw.Step(&pb.Message{Type: pb.MsgProp.Enum(), From: new(n.id),
		Entries: []*pb.Entry{entry}})
	if err != nil {
		return fmt.Errorf("the proposal was dropped: %w", err)
	}
	n.term = status.GetTerm()
	n.add(e, caller)
	return nil
}

// replace completes a replacement once the new node has the log. The node that leads does so; if it
// is itself the one that is replaced, it hands the lead over before.
func (n *node) replace() {
	if n.raw.BasicStatus().RaftState != raft.StateLeader || n.machine.Joint() {
		return
	}
	for _, m := range n.machine.Members() {
		switch {
		case m.Replaces == 0 || m.Role != machine.Learner:
		case m.Replaces == n.id && n.handing.caller == nil:
			n.hand(0, make(chan error, 1))
		case m.Replaces != n.id:
			n.attempt(&machine.Entry{Kind: machine.Promote, Name: m.Name})
		}
	}
}

// Add lets a node with an empty folder join as a learner.
func (s *store) Add(ctx context.Context, name, address string) error {
	return s.await(ctx, &machine.Entry{Kind: machine.Add, Name: name, Address: address})
}

// Replace lets a node with an empty folder join, and take the place of a voter.
func (s *store) Replace(ctx context.Context, old, name, address string) error {
	if old == "" {
		return fmt.Errorf("%w: no voter is named that is to be replaced", persistence.ErrInvalid)
	}
	return s.await(ctx, &machine.Entry{Kind: machine.Add, Name: name, Address: address,
		Replaces: old})
}

func (s *store) await(ctx context.Context, e *machine.Entry) error {
	if err := s.reach(e.Name, e.Address); err != nil {
		return fmt.Errorf("%w: %w", persistence.ErrInvalid, err)
	}
	_, err := s.propose(ctx, e)
	return err
}

// Promote makes a learner a voter.
func (s *store) Promote(ctx context.Context, name string) error {
	_, err := s.propose(ctx, &machine.Entry{Kind: machine.Promote, Name: name})
	return err
}

// Remove removes a member.
func (s *store) Remove(ctx context.Context, name string) error {
	_, err := s.propose(ctx, &machine.Entry{Kind: machine.Remove, Name: name})
	return err
}
