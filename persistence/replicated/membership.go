package replicated

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

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

// deliver sends a message to a peer.
func (n *node) deliver(m *pb.Message) {
	to := n.route(m.GetTo())
	if to == "" || n.muted() {
		return
	}
	f := n.frame(frameMessage)
	b, err := proto.MarshalOptions{}.MarshalAppend(f.begin(), m)
	if err != nil {
		n.logger.Error("BUG: a raft message cannot be encoded", "error", err)
		return
	}
	n.send(to, b)
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

// roles names the roles of the machine's members.
var roles = map[machine.Role]persistence.Role{machine.Voter: persistence.RoleVoter,
	machine.Leaving: persistence.RoleLeaving, machine.Learner: persistence.RoleLearner,
	machine.Awaited: persistence.RoleAwaited}

// updatePeers refreshes the peers' state in the view. It is called each tick.
func (n *node) updatePeers() {
	match := map[uint64]uint64{}
	if n.raw.BasicStatus().RaftState == raft.StateLeader {
		n.raw.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
			match[id] = p.Match
		})
	} else if last, err := n.log.LastIndex(); err == nil {
		match[n.id] = last
	}
	n.peers, n.logBytes = nil, n.log.Size()
	for _, m := range n.machine.Members() {
		p := persistence.Peer{Name: m.Name, Address: m.Address, Role: roles[m.Role],
			Newest:   m.Nonce != "" && m.ID == n.machine.LastAssignedID(),
			Replaces: n.nameOf(m.Replaces), Match: match[m.ID], Reads: n.peerFormats[m.ID],
			Market: n.peerMarkets[m.ID]}
		if m.ID == n.id {
			p.Reads, p.Market, p.Unfit = n.maxFormat, n.ownMarket(), n.unfit() != nil
		} else {
			p.SilentTicks, p.Unfit = n.tickCount-n.lastFrame[m.ID], n.peerUnfit(m.ID)
		}
		p.Differs = p.Market != 0 && n.marketDigest != 0 && p.Market != n.marketDigest
		n.peers = append(n.peers, p)
	}
	slices.SortStableFunc(n.peers, func(a, b persistence.Peer) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// dropFutureID drops the state of an unassigned ID that its peer has lost or replaced.
func (n *node) dropFutureID(id uint64) error {
	delete(n.lastFrame, id)
	delete(n.peerFormats, id)
	delete(n.peerMarkets, id)
	delete(n.peerClocks, id)
	delete(n.peerUnfits, id)
	return n.log.ForgetStart(id)
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
