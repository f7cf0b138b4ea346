package replicated

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"exchange/core/wire"
	"exchange/persistence"
)

// errOlder: this start of the node does not follow on the newest one that a peer has seen.
var errOlder = errors.New("a peer has seen a start of this node that this folder does not " +
	"know: the folder is an older copy, or is used twice; replace this node")

// errShort: this node has told the one that leads of more entries than it has.
var errShort = errors.New("this node has acknowledged entries that it has no more: the folder is " +
	"an older copy, or was cut off; replace this node")

// Why a frame or a message that can be read is dropped.
var (
	errOtherMember  = errors.New("it is not that of the member that has sent it")
	errOtherMessage = errors.New("it is not from the member that has sent it to this one, or " +
		"makes no sense")
)

// receive takes a frame from a peer, as its transport has proved. What is not in order is dropped:
// a peer sends again.
func (n *node) receive(from string, b []byte) error {
	if n.isCut(from) {
		return nil
	}
	f, err := parseFrame(b)
	if err == nil && f.kind == frameForming {
		return n.welcome(from, f.payload)
	}
	if err == nil && f.kind == frameSeen { // a node that is a member no more may ask, too
		return n.asked(from, f)
	}
	if err != nil || !n.hears(from, f) {
		n.dropped.Warn(n.logger, "a frame is dropped", from, cmp.Or(err, errOtherMember), "node",
			from)
		return nil
	}
	if newest, err := n.newest(from, f); err != nil || !newest {
		return err
	}
	n.heard[f.id], n.told[f.id] = n.ticks, f.reads
	switch f.kind {
	case frameMessage:
		return n.message(from, f.id, f.payload)
	case frameClock:
		return n.clock(from, f)
	case frameRemoved:
		if f.names(n.id) && n.accuse(&n.removals, from, f.id, persistence.ErrRemoved) {
			return n.removed()
		}
	case frameBehind:
		n.isBehind(f.id, f.payload)
	case frameUnfit:
		n.unfits[f.id] = n.ticks
	}
	return nil
}

// newest reports whether a frame is of the newest start of a peer, and remembers a newer one. A
// start is newer if the peer says that it follows on the one seen. An older copy of the peer's
// folder cannot say so, however often it is started.
func (n *node) newest(from string, f frame) (bool, error) {
	seen := n.log.Seen(f.id)
	switch {
	case f.start == seen:
		return true, nil
	case seen.Boot == 0, f.kind == frameFollows && f.start.Boot > seen.Boot &&
		bytes.Equal(f.payload, appendStart(nil, seen)):
		return true, n.log.See(f.id, f.start)
	}
	r := n.frame(frameSeen)
	n.send(from, appendStart(appendStart(r.begin(), f.start), seen))
	return false, nil
}

// asked answers a peer that has seen another start of this node than the one that it was sent.
func (n *node) asked(from string, f frame) error {
	p := wire.Read(f.payload)
	start, seen := readStart(&p), readStart(&p)
	if p.Bad() || start != n.log.Own() {
		return nil
	}
	follows := n.log.Follows(seen)
	switch {
	case !follows && n.nameOf(f.id) != from && f.id <= n.machine.Given():
		return nil // a node that was removed refuses none
	case !follows:
		why := fmt.Errorf("%w (member %d)", errOlder, f.id)
		if n.accuse(&n.older, from, f.id, why) {
			return n.refuse(why)
		}
		return nil
	}
	r := n.frame(frameFollows)
	n.send(from, appendStart(r.begin(), seen))
	return nil
}

// refuse ends the node. Its folder is not opened again.
func (n *node) refuse(why error) error {
	n.refused = why
	return n.log.Refuse()
}

// message lets raft take a message of a peer.
func (n *node) message(name string, from uint64, b []byte) error {
	m := &pb.Message{}
	switch err := proto.Unmarshal(b, m); {
	case err == nil && m.GetTo() != n.id: // it may be late, and was to a member of the same name
		kind := m.GetType().String()
		n.dropped.Warn(n.logger, "a message is dropped", name+" "+kind, errOtherMessage, "node",
			name, "type", kind)
		return nil
	case err != nil || m.GetFrom() != from || !sound(m):
		n.cutOff(name, fmt.Errorf("a message of type %s: %w", m.GetType(),
			cmp.Or(err, errOtherMessage)))
		return nil
	}
	switch why := n.possible(m); {
	case errors.Is(why, errNoneHeard): // it is sent again
		n.dropped.Warn(n.logger, "a message is dropped", name, why, "node", name)
		return nil
	case why != nil:
		n.cutOff(name, fmt.Errorf("a message of type %s: %w", m.GetType(), why))
		return nil
	}
	if !n.inPlace(m) {
		return nil
	}
	last, err := n.log.LastIndex()
	// A node that leads tells of no entry as committed that the other has not acknowledged to it.
	if m.GetType() == pb.MsgHeartbeat && m.GetTerm() >= n.raw.BasicStatus().GetTerm() &&
		(err != nil || m.GetCommit() > last) {
		why := fmt.Errorf("%w (up to entry %d, and it has %d)", errShort, m.GetCommit(), last)
		n.short.index, n.short.leads = max(n.short.index, m.GetCommit()), from
		if n.accuse(&n.short, name, from, why) {
			return n.refuse(why)
		}
		return nil
	}
	if err := n.raw.Step(m); err != nil {
		n.logger.Debug("raft has dropped a message", "node", from, "error", err)
	}
	status := n.raw.BasicStatus()
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat:
		if status.Lead == from {
			n.silent = 0
		}
	case pb.MsgVote:
		if status.GetTerm() == m.GetTerm() && status.GetVote() == from {
			n.rest()
		}
	case pb.MsgTimeoutNow:
		n.elections++
		n.rest()
	}
	return nil
}

// sound reports whether a message is one that a member sends to another, with entries in order.
func sound(m *pb.Message) bool {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp,
		pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgTimeoutNow:
	case pb.MsgReadIndex, pb.MsgReadIndexResp:
		return isRound(m)
	default:
		return false
	}
	if m.GetTerm() == 0 || m.Snapshot != nil || len(m.Responses) > 0 ||
		m.GetType() != pb.MsgApp && len(m.Entries) > 0 || raft.IsLocalMsgTarget(m.GetFrom()) ||
		m.GetType() == pb.MsgHeartbeatResp && len(m.Context) != 0 && len(m.Context) != 8 {
		return false
	}
	term := m.GetLogTerm()
	for i, e := range m.Entries {
		if e.GetIndex() != m.GetIndex()+1+uint64(i) || e.GetTerm() < term ||
			e.GetTerm() > m.GetTerm() ||
			e.GetType() != pb.EntryNormal && e.GetType() != pb.EntryConfChangeV2 {
			return false
		}
		term = e.GetTerm()
	}
	return true
}
