package replicated

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

var errUnconfirmed = errors.New("this node stopped leading before the others confirmed its lead")

// A confirmQueue batches linearizable reads: whether an owner still owns the engine, and up to
// which sequence the journal is acknowledged. A round is one ReadIndex of raft: it asks the leader
// for the committed index, and the leader confirms its lead with all nodes. A request that arrives
// during a round waits for the next one, because the round's answers may be older than the request.
type confirmQueue struct {
	next    []confirmRequest // of the next round
	inRound []confirmRequest // of the current round
	number  uint64           // of the current round, counted since the node's start
	term    uint64           // of the current round
	sentAt  uint64           // tick at which the round was last sent
	index   uint64           // entry to apply before the round is answered; 0: not received yet
}

// A confirmRequest asks whether a token is the owner's; "": only for the acknowledged sequence. Its
// caller's channel has room for the answer, and ctx ends when the caller has left.
type confirmRequest struct {
	ctx    context.Context
	token  persistence.Token
	caller chan<- confirmResult
}

// A confirmResult is the sequence up to which this node has applied the journal.
type confirmResult struct {
	seq uint64
	err error
}

// confirm queues a request for the next round.
func (n *node) confirm(q confirmRequest) {
	if q.token != "" && n.raw.BasicStatus().RaftState != raft.StateLeader {
		q.caller <- confirmResult{err: errNotLeading}
		return
	}
	n.confirms.next = append(n.confirms.next, q)
}

// repeatTicks is the interval at which a follower resends a round, because the message or its
// answer may be lost.
const repeatTicks = 3

// advanceConfirmRound answers a completed round and starts the next one. On a leader raft resends
// the round's messages with each heartbeat.
func (n *node) advanceConfirmRound() {
	q := &n.confirms
	if len(q.next)+len(q.inRound) == 0 {
		return
	}
	status := n.raw.BasicStatus()
	leads := status.RaftState == raft.StateLeader
	if len(q.inRound) > 0 && status.GetTerm() != q.term { // the round stays unanswered
		q.next, q.inRound = append(q.inRound, q.next...), nil
	}
	if !leads {
		q.inRound, q.next = failOwnerRequests(q.inRound), failOwnerRequests(q.next)
	}
	if q.index > 0 && n.applied >= q.index {
		n.answerConfirmRound()
	}
	// A leader's commit index is valid only once an entry of its own term is committed.
	if len(q.inRound) == 0 && len(q.next) > 0 &&
		(leads && n.appliedTerm == status.GetTerm() || !leads && status.Lead != raft.None) {
		q.inRound, q.next = q.next, nil
		q.number++
		q.term, q.index = status.GetTerm(), 0
		n.sendConfirmRound()
	}
}

// failOwnerRequests fails the requests with a token, because this node does not lead. It returns
// the others.
func failOwnerRequests(list []confirmRequest) []confirmRequest {
	return slices.DeleteFunc(list, func(q confirmRequest) bool {
		if q.token == "" {
			return false
		}
		q.caller <- confirmResult{err: errUnconfirmed}
		return true
	})
}

// sendConfirmRound sends the current round, under a name that is unique in the cluster.
func (n *node) sendConfirmRound() {
	n.confirms.sentAt = n.tickCount
	n.raw.ReadIndex(n.confirmRoundName())
}

// confirmRoundName is the node's ID, the number of its start and that of the round, so that late
// answers to other rounds do not match.
func (n *node) confirmRoundName() []byte {
	b := binary.BigEndian.AppendUint64(nil, n.id)
	b = binary.BigEndian.AppendUint64(b, n.log.Own().Boot)
	return binary.BigEndian.AppendUint64(b, n.confirms.number)
}

const confirmRoundNameBytes = 24

// isConfirmRound reports whether a ReadIndex message carries a round's name. raft gives the request
// no term.
func isConfirmRound(m *pb.Message) bool {
	if len(m.Entries) != 1 || len(m.Entries[0].GetData()) != confirmRoundNameBytes ||
		m.Snapshot != nil || len(m.Responses) > 0 || len(m.Context) > 0 ||
		raft.IsLocalMsgTarget(m.GetFrom()) {
		return false
	}
	if m.GetType() == pb.MsgReadIndexResp {
		return m.GetTerm() > 0
	}
	return m.GetTerm() == 0 &&
		binary.BigEndian.Uint64(m.Entries[0].GetData()) == m.GetFrom()
}

// confirmRoundTick drops the requests whose callers have left, and resends an unanswered round.
func (n *node) confirmRoundTick() {
	q := &n.confirms
	left := func(q confirmRequest) bool { return q.ctx.Err() != nil }
	q.next, q.inRound = slices.DeleteFunc(q.next, left), slices.DeleteFunc(q.inRound, left)
	if len(q.inRound) > 0 && q.index == 0 && n.tickCount-q.sentAt >= repeatTicks &&
		n.raw.BasicStatus().RaftState != raft.StateLeader {
		n.sendConfirmRound()
	}
}

// answerConfirmRound answers the round's callers once this node has applied all that is committed.
func (n *node) answerConfirmRound() {
	q := &n.confirms
	beat := n.machine.Beat()
	n.publishView() // before callers continue
	for _, a := range q.inRound {
		r := confirmResult{seq: beat.End.Seq}
		if a.token != "" && a.token != beat.Token {
			r.err = codec.Fenced(beat.Owner)
		}
		a.caller <- r
	}
	q.inRound, q.index = nil, 0
}

// takeReadStates stores the commit index that raft returns for the current round.
func (n *node) takeReadStates(states []raft.ReadState) {
	q := &n.confirms
	for _, s := range states {
		if len(q.inRound) > 0 && q.index == 0 && bytes.Equal(s.RequestCtx, n.confirmRoundName()) {
			q.index = s.Index
		}
	}
}

// Confirm returns the journal's end if tok owned the engine at some moment after the call.
func (s *store) Confirm(ctx context.Context, tok persistence.Token) (uint64, error) {
	if err := s.checkToken(tok); err != nil {
		return 0, err
	}
	return s.awaitConfirmRound(ctx, tok)
}

// Reach returns the sequence up to which this node has applied the journal. It includes everything
// acknowledged before the call.
func (s *store) Reach(ctx context.Context) (uint64, error) { return s.awaitConfirmRound(ctx, "") }

// Known returns the end of the applied journal, and whether this node can exclude further committed
// entries.
func (s *store) Known() (end uint64, all bool) {
	v := s.view.Load()
	return v.beat.End.Seq, v.leading && v.settled && v.applied >= v.committed
}

func (s *store) awaitConfirmRound(ctx context.Context, tok persistence.Token) (uint64, error) {
	c := make(chan confirmResult, 1)
	select {
	case s.confirms <- confirmRequest{ctx, tok, c}:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.done:
		return 0, s.failure
	}
	select {
	case r := <-c:
		return r.seq, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.done:
		return 0, s.failure
	}
}

// awaitResult waits for an answer of the node.
func (s *store) awaitResult(ctx context.Context, c <-chan error) error {
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return s.failure
	}
}
