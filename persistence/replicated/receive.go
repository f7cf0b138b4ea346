package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// errOlder: this start of the node is not the newest one that a peer has seen.
var errOlder = errors.New("a peer has seen a newer start of this node: the folder is an older " +
	"copy, or is used twice; replace this node")

// errShort: this node has told the one that leads of more entries than it has.
var errShort = errors.New("this node has acknowledged entries that it has no more: the folder is " +
	"an older copy, or was cut off; replace this node")

// receive takes a frame from a peer, as its transport has proved. What is not in order is dropped:
// a peer sends again.
func (n *node) receive(from string, b []byte) error {
	f, err := parseFrame(b)
	if err == nil && f.kind == frameForming {
		return n.welcome(from, f.payload)
	}
	if err != nil || !n.hears(from, f) {
		n.logger.Warn("a frame is dropped", "node", from, "error", err)
		return nil
	}
	if newest, err := n.newest(from, f); err != nil || !newest {
		return err
	}
	n.heard[f.id] = n.ticks
	switch f.kind {
	case frameMessage:
		n.message(f.id, f.payload)
	case frameRemoved:
		if len(f.payload) == 8 && binary.BigEndian.Uint64(f.payload) == n.id {
			return n.removed()
		}
	case frameRefused:
		start, _, err := cutStart(f.payload)
		if err == nil && start == n.log.Own() {
			n.refused = fmt.Errorf("%w (member %d)", errOlder, f.id)
		}
	}
	return nil
}

// newest reports whether a frame is of the newest start of a peer, and remembers a newer one.
func (n *node) newest(from string, f frame) (bool, error) {
	seen := n.log.Seen(f.id)
	switch {
	case f.start == seen:
		return true, nil
	case f.start.Boot > seen.Boot:
		return true, n.log.See(f.id, f.start)
	}
	r := frame{kind: frameRefused, id: n.id, start: n.log.Own()}
	n.send(from, appendStart(r.begin(), f.start))
	return false, nil
}

// message lets raft take a message of a peer.
func (n *node) message(from uint64, b []byte) {
	m := &pb.Message{}
	if err := proto.Unmarshal(b, m); err != nil || m.GetFrom() != from || m.GetTo() != n.id ||
		!sound(m) {
		n.logger.Warn("a message is dropped", "node", from, "type", m.GetType().String(),
			"error", err)
		return
	}
	last, err := n.log.LastIndex()
	// A node that leads tells of no entry as committed that the other has not acknowledged to it.
	if m.GetType() == pb.MsgHeartbeat && m.GetTerm() >= n.raw.BasicStatus().GetTerm() &&
		(err != nil || m.GetCommit() > last) {
		n.refused = fmt.Errorf("%w (up to entry %d, and it has %d)", errShort, m.GetCommit(), last)
		return
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
}

// sound reports whether a message is one that a voter sends to another, with entries in order.
func sound(m *pb.Message) bool {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp,
		pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgTimeoutNow:
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
