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

// errOlderCopy: this start of the node does not succeed the newest one that a peer has recorded.
var errOlderCopy = errors.New("a peer has recorded a start of this node that this folder does " +
	"not list: the folder is an older copy, or two processes use copies of it; replace this node")

// errLogTruncated: this node has acknowledged entries above its log's last one.
var errLogTruncated = errors.New("this node's log lacks entries that the node has acknowledged: " +
	"the folder is an older copy, or was truncated; replace this node")

// Reasons to drop a readable frame or message.
var (
	errWrongID    = errors.New("its ID is not that of the sending member")
	errBadMessage = errors.New("its sender or receiver is wrong, or it is malformed")
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
		n.dropLog.Warn(n.logger, "a frame is dropped", from, cmp.Or(err, errWrongID), "node",
			from)
		return nil
	}
	if newest, err := n.isNewestStart(from, f); err != nil || !newest {
		return err
	}
	n.lastFrame[f.id], n.peerFormats[f.id] = n.tickCount, f.maxFormat
	switch f.kind {
	case frameMessage:
		return n.receiveMessage(from, f.id, f.payload)
	case frameClock:
		return n.receiveClock(from, f)
	case frameRemoved:
		if f.names(n.id) && n.accusedBy(&n.removedDoubt, from, f.id, persistence.ErrRemoved) {
			return n.markRemoved()
		}
	case frameBehind:
		n.receiveBehind(f.id, f.payload)
	case frameUnfit:
		n.peerUnfits[f.id] = n.tickCount
	}
	return nil
}

// isNewestStart reports whether a frame is from a peer's newest start, and records a newer start. A
// start is newer if the peer states that it succeeds the recorded one. An older copy of the peer's
// folder cannot state so, however often it is started.
func (n *node) isNewestStart(from string, f frame) (bool, error) {
	recorded := n.log.RecordedStart(f.id)
	switch {
	case f.start == recorded:
		return true, nil
	case recorded.Boot == 0, f.kind == frameFollows && f.start.Boot > recorded.Boot &&
		bytes.Equal(f.payload, appendStart(nil, recorded)):
		return true, n.log.RecordStart(f.id, f.start)
	}
	r := n.frame(frameSeen)
	n.send(from, appendStart(appendStart(r.begin(), f.start), recorded))
	return false, nil
}

// answerSeen answers a peer that has recorded another start of this node. If this start does not
// succeed that one, the frame accuses this node of running on an older copy.
func (n *node) answerSeen(from string, f frame) error {
	p := wire.Read(f.payload)
	start, recorded := readStart(&p), readStart(&p)
	if p.Bad() || start != n.log.Own() {
		return nil
	}
	follows := n.log.Follows(recorded)
	switch {
	case !follows && n.nameOf(f.id) != from && f.id <= n.machine.LastAssignedID():
		return nil // a former member's accusation does not count
	case !follows:
		why := fmt.Errorf("%w (member %d)", errOlderCopy, f.id)
		if n.accusedBy(&n.olderCopyDoubt, from, f.id, why) {
			return n.retire(why)
		}
		return nil
	}
	r := n.frame(frameFollows)
	n.send(from, appendStart(r.begin(), recorded))
	return nil
}

// receiveMessage passes a peer's message to raft.
func (n *node) receiveMessage(peer string, id uint64, b []byte) error {
	m := &pb.Message{}
	switch err := proto.Unmarshal(b, m); {
	case err == nil && m.GetTo() != n.id: // perhaps late, to a former member of the same name
		kind := m.GetType().String()
		n.dropLog.Warn(n.logger, "a message is dropped", peer+" "+kind, errBadMessage, "node",
			peer, "type", kind)
		return nil
	case err != nil || m.GetFrom() != id || !sound(m):
		n.cutOff(peer, fmt.Errorf("a message of type %s: %w", m.GetType(),
			cmp.Or(err, errBadMessage)))
		return nil
	}
	switch why := n.checkMessage(m); {
	case errors.Is(why, errFormatsUnknown): // the peer sends it again
		n.dropLog.Warn(n.logger, "a message is dropped", peer, why, "node", peer)
		return nil
	case why != nil:
		n.cutOff(peer, fmt.Errorf("a message of type %s: %w", m.GetType(), why))
		return nil
	}
	if !n.fitsKnownLeader(m) {
		return nil
	}
	last, err := n.log.LastIndex()
	// A leader's heartbeat commits no entry that its receiver has not acknowledged.
	if m.GetType() == pb.MsgHeartbeat && m.GetTerm() >= n.raw.BasicStatus().GetTerm() &&
		(err != nil || m.GetCommit() > last) {
		why := fmt.Errorf("%w (up to entry %d, and it has %d)", errLogTruncated, m.GetCommit(),
			last)
		d := &n.truncatedDoubt
		d.index, d.leaderID = max(d.index, m.GetCommit()), id
		if n.accusedBy(d, peer, id, why) {
			return n.retire(why)
		}
		return nil
	}
	if err := n.raw.Step(m); err != nil {
		n.logger.Debug("raft has dropped a message", "node", peer, "error", err)
	}
	status := n.raw.BasicStatus()
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat:
		if status.Lead == id {
			n.silent = 0
		}
	case pb.MsgVote:
		if status.GetTerm() == m.GetTerm() && status.GetVote() == id {
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
		return isConfirmRound(m)
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
