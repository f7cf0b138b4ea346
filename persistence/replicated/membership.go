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

// decode reads an entry of a format up to reads; nil: it is empty.
func decode(entry *pb.Entry, reads uint8) (*machine.Entry, error) {
	switch data := entry.GetData(); {
	case entry.GetType() == pb.EntryNormal && len(data) == 0: // the first one of a leader's term
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

// applyMembers applies another membership to raft, all at once or, for learners, one by one. Raft's
// resulting configuration must equal the machine's.
func (n *node) applyMembers(before []machine.Member, joint bool) error {
	members := n.machine.Members()
	from := before
	var now *pb.ConfState
	if joint && !n.machine.Joint() {
		now = n.raw.ApplyConfChange(&pb.ConfChangeV2{})
		from = slices.DeleteFunc(slices.Clone(before),
			func(m machine.Member) bool { return m.Role == machine.Leaving })
	}
	if list := confChanges(from, members); n.machine.Joint() {
		now = n.raw.ApplyConfChange(&pb.ConfChangeV2{Changes: list})
	} else {
		for _, c := range list {
			now = n.raw.ApplyConfChange(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{c}})
		}
	}
	if want := configuration(members); now != nil && now.Equivalent(want) != nil {
		return fmt.Errorf("BUG: raft has the members %v, and they are %v", now, want)
	}
	// The removed nodes may be needed to commit the change again after a crash.
	if err := n.log.Commit(n.applied); err != nil {
		return err
	}
	for _, m := range before {
		if m.ID != 0 && n.nameOf(m.ID) == "" && m.ID != n.id {
			n.notifyRemoved(m.Name, m.ID)
		}
	}
	for _, m := range members {
		if _, ok := n.lastFrame[m.ID]; !ok {
			n.lastFrame[m.ID] = n.tickCount
		}
	}
	for name, id := range n.futureIDs { // an assigned ID is its member's alone
		if id <= n.machine.Given() && n.nameOf(id) != name {
			if err := n.forgetFuture(id); err != nil {
				return err
			}
		}
	}
	n.forgetMembers()
	n.onMembers(members)
	n.updatePeers()
	return nil
}

// forgetMembers drops the state of former members: no ID comes back.
func (n *node) forgetMembers() {
	gone := func(id uint64) bool { return id <= n.machine.Given() && n.nameOf(id) == "" }
	maps.DeleteFunc(n.lastFrame, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.peerUnfits, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.offeredAt, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.peerFormats, func(id uint64, _ uint8) bool { return gone(id) })
	maps.DeleteFunc(n.peerMarkets, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.peerClocks, func(id uint64, _ clockReading) bool { return gone(id) })
	maps.DeleteFunc(n.futureIDs, func(_ string, id uint64) bool { return id <= n.machine.Given() })
}

// markRemoved records durably that this node is no longer a member.
func (n *node) markRemoved() error {
	if err := n.log.Remove(); err != nil {
		return err
	}
	n.refused = persistence.ErrRemoved
	return nil
}

// nameOf returns the name of a member; "": the ID is none's.
func (n *node) nameOf(id uint64) string {
	for _, m := range n.machine.Members() {
		if m.ID == id && id != 0 {
			return m.Name
		}
	}
	return ""
}

// route returns the name of the node that receives a member's frames; "": none is known.
func (n *node) route(id uint64) string {
	if id > n.machine.Given() {
		for name, later := range n.futureIDs {
			if later == id {
				return name
			}
		}
	}
	return n.nameOf(id)
}

// acceptsFrom reports whether a frame comes from a member. An ID above those applied here is
// accepted: otherwise this node could not learn of its assignment. A peer whose ID is no longer a
// member's is notified.
func (n *node) acceptsFrom(from string, f frame) bool {
	switch name := n.nameOf(f.id); {
	case f.id == 0 || f.id == n.id || from == "":
		return false
	case f.id > n.machine.Given():
		before := n.futureIDs[from]
		if before > f.id || before != 0 && before < f.id && n.forgetFuture(before) != nil {
			return false
		}
		n.futureIDs[from] = f.id
		return true
	case name == "" && f.kind != frameRemoved:
		n.notifyRemoved(from, f.id)
		return false
	default:
		return name == from
	}
}

func (n *node) notifyRemoved(name string, id uint64) {
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

// checkChange returns why the leader refuses a change that the machine would accept, by the state
// of the other nodes.
func (n *node) checkChange(e *machine.Entry, before, after []machine.Member) error {
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
		// a member that lacks trimmed entries can append nothing proposed from now on
		if m.ID == n.id || n.tickCount-n.lastFrame[m.ID] <= electionTicks &&
			progress[m.ID].Next > n.trim.forgotten {
			living++
		}
		if p := progress[m.ID]; e.Kind == machine.Promote && m.Name == e.Name &&
			(p.Match == 0 || p.Match+maxLag < last ||
				n.tickCount-n.lastFrame[m.ID] > electionTicks) {
			return fmt.Errorf("%w: node %q has the log up to entry %d of %d, and its last "+
				"message came %d ticks ago: it is promoted once it has the log and responds",
				persistence.ErrInvalid, e.Name, p.Match, last, n.tickCount-n.lastFrame[m.ID])
		}
	}
	if 2*living <= voters && e.Kind != machine.Join {
		return fmt.Errorf("%w: of the %d resulting voters %d respond and are not too "+
			"far behind, which is no majority; bring the others back first, or replace them",
			persistence.ErrInvalid, voters, living)
	}
	own := func(m machine.Member) bool { return m.ID == n.id && m.Role == machine.Voter }
	if slices.ContainsFunc(before, own) && !slices.ContainsFunc(after, own) {
		return fmt.Errorf("%w: node %q leads: hand the lead over first", persistence.ErrInvalid,
			n.log.Identity().Name)
	}
	return nil
}

// enterChange proposes a change of the membership, unless an unapplied one is in this node's log.
// The change is therefore applied to the current members.
func (n *node) enterChange(e *machine.Entry, caller chan<- result) error {
	status := n.raw.BasicStatus()
	for _, s := range n.pending {
		if s.isChange {
			return errChanging
		}
	}
	if n.appliedTerm != status.GetTerm() {
		return errUnsettled
	}
	before := n.machine.Members()
	a, after := n.machine.Try(e)
	if a.Outcome != machine.Done {
		caller <- result{answer: a}
		return nil
	}
	if err := n.checkChange(e, before, after); err != nil {
		return err
	}
	n.identify(e)
	entry := &pb.Entry{Type: pb.EntryNormal.Enum(), Data: e.Encode()}
	if list := confChanges(before, after); len(list) > 0 {
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

// replace completes a replacement once the new node has the log. The leader does so; one that is
// itself replaced first hands the lead over.
func (n *node) replace() {
	if n.raw.BasicStatus().RaftState != raft.StateLeader || n.machine.Joint() {
		return
	}
	for _, m := range n.machine.Members() {
		switch {
		case m.Replaces == 0 || m.Role != machine.Learner:
		case m.Replaces == n.id && n.transfer.caller == nil:
			n.transferLead(0, make(chan error, 1))
		case m.Replaces != n.id:
			n.tryPropose(&machine.Entry{Kind: machine.Promote, Name: m.Name})
		}
	}
}

// Add lets a node with an empty folder join as a learner.
func (s *store) Add(ctx context.Context, name, address string) error {
	return s.await(ctx, &machine.Entry{Kind: machine.Add, Name: name, Address: address})
}

// Replace lets a node with an empty folder join and replace a voter.
func (s *store) Replace(ctx context.Context, old, name, address string) error {
	if old == "" {
		return fmt.Errorf("%w: no voter is named that is to be replaced", persistence.ErrInvalid)
	}
	return s.await(ctx, &machine.Entry{Kind: machine.Add, Name: name, Address: address,
		Replaces: old})
}

func (s *store) await(ctx context.Context, e *machine.Entry) error {
	if err := s.checkPeer(e.Name, e.Address); err != nil {
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
