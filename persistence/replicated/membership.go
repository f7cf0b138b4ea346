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

// applyMembers applies a change of the membership to raft: in one step if it is joint, and
// otherwise member by member. Raft's resulting configuration must equal the machine's.
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
		return fmt.Errorf("BUG: raft's configuration is %v, and the machine's is %v", now, want)
	}
	// Otherwise, after a crash, removed nodes could be needed to commit the change again.
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
	for name, id := range n.futureIDs { // an ID that is assigned now belongs to its member alone
		if id <= n.machine.LastAssignedID() && n.nameOf(id) != name {
			if err := n.dropFutureID(id); err != nil {
				return err
			}
		}
	}
	n.dropFormerMembers()
	n.onMembers(members)
	n.updatePeers()
	return nil
}

// dropFormerMembers drops the state of former members: no ID is assigned twice.
func (n *node) dropFormerMembers() {
	lastID := n.machine.LastAssignedID()
	gone := func(id uint64) bool { return id <= lastID && n.nameOf(id) == "" }
	maps.DeleteFunc(n.lastFrame, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.peerUnfits, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.offeredAt, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.peerFormats, func(id uint64, _ uint8) bool { return gone(id) })
	maps.DeleteFunc(n.peerMarkets, func(id, _ uint64) bool { return gone(id) })
	maps.DeleteFunc(n.peerClocks, func(id uint64, _ clockReading) bool { return gone(id) })
	maps.DeleteFunc(n.futureIDs, func(_ string, id uint64) bool { return id <= lastID })
}

// markRemoved records durably that this node is no longer a member.
func (n *node) markRemoved() error {
	if err := n.log.Remove(); err != nil {
		return err
	}
	n.endedBy = persistence.ErrRemoved
	return nil
}

// nameOf returns the name of the member with an ID; "": there is none.
func (n *node) nameOf(id uint64) string {
	for _, m := range n.machine.Members() {
		if m.ID == id && id != 0 {
			return m.Name
		}
	}
	return ""
}

// route returns the name of the node to which frames for an ID are sent; "": none is known.
func (n *node) route(id uint64) string {
	if id > n.machine.LastAssignedID() {
		for name, later := range n.futureIDs {
			if later == id {
				return name
			}
		}
	}
	return n.nameOf(id)
}

// acceptsFrom reports whether a frame comes from a member. An ID above any that is assigned here is
// accepted: if its node leads, only that node can send the entry that assigns it. A peer whose ID
// is no longer a member's is notified.
func (n *node) acceptsFrom(from string, f frame) bool {
	switch name := n.nameOf(f.id); {
	case f.id == 0 || f.id == n.id || from == "":
		return false
	case f.id > n.machine.LastAssignedID():
		before := n.futureIDs[from]
		if before > f.id || before != 0 && before < f.id && n.dropFutureID(before) != nil {
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

// isVoter reports whether this node is a voter.
func (n *node) isVoter() bool {
	return slices.ContainsFunc(n.machine.Members(), func(m machine.Member) bool {
		return m.ID == n.id && (m.Role == machine.Voter || m.Role == machine.Leaving)
	})
}

// alone reports whether this node is the only voter.
func (n *node) alone() bool {
	c := configuration(n.machine.Members())
	return len(c.Voters) == 1 && c.Voters[0] == n.id && len(c.VotersOutgoing) == 0
}

// checkChange returns why the leader refuses a change that the machine would accept: it would
// remove the leader, promote a node without the log, or leave too few voters that respond.
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
		// a member that lacks dropped entries can append no new one
		if m.ID == n.id || n.tickCount-n.lastFrame[m.ID] <= electionTicks &&
			progress[m.ID].Next > n.trim.droppedTo {
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
		return fmt.Errorf("%w: only %d of the %d resulting voters respond and can catch up: that "+
			"is no majority; bring the others back first, or replace them",
			persistence.ErrInvalid, living, voters)
	}
	own := func(m machine.Member) bool { return m.ID == n.id && m.Role == machine.Voter }
	if slices.ContainsFunc(before, own) && !slices.ContainsFunc(after, own) {
		return fmt.Errorf("%w: node %q leads: hand the lead over first", persistence.ErrInvalid,
			n.log.Identity().Name)
	}
	return nil
}

// enterChange proposes a change of the membership, unless this node's log holds one that is not
// applied yet. So each change starts from the current members.
func (n *node) enterChange(e *machine.Entry, caller chan<- result) error {
	status := n.raw.BasicStatus()
	for _, s := range n.proposals.pending {
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
	n.proposals.term = status.GetTerm()
	n.proposals.add(e, caller)
	return nil
}

// completeReplacement promotes a learner that replaces a voter; checkChange refuses until it has
// the log. Only the leader does so. A leader that is itself replaced first hands the lead over.
func (n *node) completeReplacement() {
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
	return s.proposeAdd(ctx, &machine.Entry{Kind: machine.Add, Name: name, Address: address})
}

// Replace lets a node with an empty folder join and replace a voter.
func (s *store) Replace(ctx context.Context, old, name, address string) error {
	if old == "" {
		return fmt.Errorf("%w: the voter to replace is not named", persistence.ErrInvalid)
	}
	return s.proposeAdd(ctx, &machine.Entry{Kind: machine.Add, Name: name, Address: address,
		Replaces: old})
}

// proposeAdd makes another node an awaited member.
func (s *store) proposeAdd(ctx context.Context, e *machine.Entry) error {
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
