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

// errOlderCopy: this start of the node does not follow on the newest one that a peer has seen.
var errOlderCopy = errors.New("a peer has seen a start of this node that this folder does not " +
	"hold: the folder is an older copy, or is used twice; replace this node")

// errLogTruncated: this node has acknowledged more entries than its log holds.
var errLogTruncated = errors.New("this node has acknowledged entries that its log lacks: the " +
	"folder is an older copy, or was truncated; replace this node")

// Reasons to drop a readable frame or message.
var (
	errOtherMember  = errors.New("its ID is not that of the sending member")
	errOtherMessage = errors.New("its sender or receiver is wrong, or it is malformed")
)

// receive handles a frame of a peer, whose name its transport has proved. Invalid frames are
// dropped: peers send again.
func (n *node) receive(from string, b []byte) error {
	if n.isCut(from) {
		return nil
	}
	f, err := parseFrame(b)
	if err == nil && f.kind == frameForming {
		return n.answerJoiner(from, f.payload)
	}
	if err == nil && f.kind == frameSeen { // former members may ask, too
		return n.answerSeen(from, f)
	}
	if err != nil || !n.acceptsFrom(from, f) {
		n.dropped.Warn(n.logger, "a frame is dropped", from, cmp.Or(err, errOtherMember), "node",
			from)
		return nil
	}
	if newest, err := n.isNewestStart(from, f); err != nil || !newest {
		return err
	}
	n.lastFrame[f.id], n.peerFormats[f.id] = n.tickCount, f.reads
	switch f.kind {
	case frameMessage:
		return n.receiveMessage(from, f.id, f.payload)
	case frameClock:
		return n.receiveClock(from, f)
	case frameRemoved:
		if f.names(n.id) && n.accuse(&n.removals, from, f.id, persistence.ErrRemoved) {
			return n.markRemoved()
		}
	case frameBehind:
		n.receiveBehind(f.id, f.payload)
	case frameUnfit:
		n.peerUnfits[f.id] = n.tickCount
	}
	return nil
}

// isNewestStart reports whether a frame is of a peer's newest start, and stores a newer one. A
// start is newer if the peer states that it follows on the one seen. An older copy of the peer's
// folder cannot state so, however often it is started.
func (n *node) isNewestStart(from string, f frame) (bool, error) {
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

// answerSeen answers a peer that has seen another start of this node than the frame's.
func (n *node) answerSeen(from string, f frame) error {
	p := wire.Read(f.payload)
	start, seen := readStart(&p), readStart(&p)
	if p.Bad() || start != n.log.Own() {
		return nil
	}
	follows := n.log.Follows(seen)
	switch {
	case !follows && n.nameOf(f.id) != from && f.id <= n.machine.Given():
		return nil // a removed node ends no other one
	case !follows:
		why := fmt.Errorf("%w (member %d)", errOlderCopy, f.id)
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

// receiveMessage passes a peer's message to raft.
func (n *node) receiveMessage(name string, from uint64, b []byte) error {
	m := &pb.Message{}
	switch err := proto.Unmarshal(b, m); {
	case err == nil && m.GetTo() != n.id: // perhaps late, to a former member of the same name
		kind := m.GetType().String()
		n.dropped.Warn(n.logger, "a message is dropped", name+" "+kind, errOtherMessage, "node",
			name, "type", kind)
		return nil
	case err != nil || m.GetFrom() != from || !sound(m):
		n.cutOff(name, fmt.Errorf("a message of type %s: %w", m.GetType(),
			cmp.Or(err, errOtherMessage)))
		return nil
	}
	switch why := n.checkMessage(m); {
	case errors.Is(why, errUnknownReaders): // the peer repeats it
		n.dropped.Warn(n.logger, "a message is dropped", name, why, "node", name)
		return nil
	case why != nil:
		n.cutOff(name, fmt.Errorf("a message of type %s: %w", m.GetType(), why))
		return nil
	}
	if !n.matchesLeader(m) {
		return nil
	}
	last, err := n.log.LastIndex()
	// A leader's heartbeat commits no entry that its receiver has not acknowledged.
	if m.GetType() == pb.MsgHeartbeat && m.GetTerm() >= n.raw.BasicStatus().GetTerm() &&
		(err != nil || m.GetCommit() > last) {
		why := fmt.Errorf("%w (up to entry %d, and it has %d)", errLogTruncated, m.GetCommit(),
			last)
		n.short.index, n.short.leaderID = max(n.short.index, m.GetCommit()), from
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
			n.resetElection()
		}
	case pb.MsgTimeoutNow:
		n.elections++
		n.resetElection()
	}
	return nil
}

// sound reports whether a message is well-formed and of a kind that members exchange.
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
