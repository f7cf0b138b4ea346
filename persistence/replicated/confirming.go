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

var errUnconfirmed = errors.New("this node stopped leading before the others confirmed it")

// questions are those about what is acknowledged: whether an owner still owns the engine, and how
// far this node must have the journal. A round asks the node that leads for what is committed, and
// that one asks all nodes whether it still leads. A question that comes while a round is under way
// waits for the next one, because answers to the round may be older than the question.
type questions struct {
	next  []question
	asked []question // of the round under way
	round uint64     // counts the rounds of this start
	asks  uint64     // the term of the round
	at    uint64     // the tick at which the round was sent last
	index uint64     // what must be applied before the round is answered; 0: not known yet
}

// A question is whether a token is the owner's; "": only up to where the journal is acknowledged.
// Its caller's channel has room for the answer, and ctx ends when the caller has left.
type question struct {
	ctx    context.Context
	token  persistence.Token
	caller chan<- reached
}

// reached answers a question: this node has the journal up to a sequence.
type reached struct {
	seq uint64
	err error
}

// confirm takes a question.
func (n *node) confirm(q question) {
	if q.token != "" && n.raw.BasicStatus().RaftState != raft.StateLeader {
		q.caller <- reached{err: errNotLeading}
		return
	}
	n.questions.next = append(n.questions.next, q)
}

// repeatTicks is after how many ticks a node that follows sends a round again: the message, or the
// answer to it, may be lost.
const repeatTicks = 3

// ask answers the questions of a round that has come to its end, and begins another one. Of a
// leader raft repeats a round's messages with each heartbeat.
func (n *node) ask() {
	q := &n.questions
	if len(q.next)+len(q.asked) == 0 {
		return
	}
	status := n.raw.BasicStatus()
	leads := status.RaftState == raft.StateLeader
	if len(q.asked) > 0 && status.GetTerm() != q.asks { // the round gets no answer any more
		q.next, q.asked = append(q.asked, q.next...), nil
	}
	if !leads {
		q.asked, q.next = owners(q.asked), owners(q.next)
	}
	if q.index > 0 && n.applied >= q.index {
		n.answerAsked()
	}
	// A leader knows what is committed once an entry of its own term is.
	if len(q.asked) == 0 && len(q.next) > 0 &&
		(leads && n.appliedTerm == status.GetTerm() || !leads && status.Lead != raft.None) {
		q.asked, q.next = q.next, nil
		q.round++
		q.asks, q.index = status.GetTerm(), 0
		n.sendRound()
	}
}

// owners leaves the questions whether a token is the owner's without the answer yes: this node does
// not lead. It returns the others.
func owners(list []question) []question {
	return slices.DeleteFunc(list, func(q question) bool {
		if q.token == "" {
			return false
		}
		q.caller <- reached{err: errUnconfirmed}
		return true
	})
}

// sendRound sends the round under way. Its name is that of no other round of any node.
func (n *node) sendRound() {
	n.questions.at = n.ticks
	n.raw.ReadIndex(n.roundName())
}

// roundName is the round's number behind the node's ID and the number of its start, so that no
// answer to another round counts, however late it comes.
func (n *node) roundName() []byte {
	b := binary.BigEndian.AppendUint64(nil, n.id)
	b = binary.BigEndian.AppendUint64(b, n.log.Own().Boot)
	return binary.BigEndian.AppendUint64(b, n.questions.round)
}

const roundNameBytes = 24

// isRound reports whether a message between a node that asks and the one that leads has the name of
// a round. raft gives a question no term.
func isRound(m *pb.Message) bool {
	if len(m.Entries) != 1 || len(m.Entries[0].GetData()) != roundNameBytes ||
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

// askTick forgets the questions whose callers have left, and sends a round again that has had no
// answer.
func (n *node) askTick() {
	q := &n.questions
	left := func(q question) bool { return q.ctx.Err() != nil }
	q.next, q.asked = slices.DeleteFunc(q.next, left), slices.DeleteFunc(q.asked, left)
	if len(q.asked) > 0 && q.index == 0 && n.ticks-q.at >= repeatTicks &&
		n.raw.BasicStatus().RaftState != raft.StateLeader {
		n.sendRound()
	}
}

// answerAsked answers each caller of the round, once this node has applied all that was committed.
func (n *node) answerAsked() {
	q := &n.questions
	beat := n.machine.Beat()
	n.show() // what is answered is seen
	for _, a := range q.asked {
		r := reached{seq: beat.End.Seq}
		if a.token != "" && a.token != beat.Token {
			r.err = codec.Fenced(beat.Owner)
		}
		a.caller <- r
	}
	q.asked, q.index = nil, 0
}

// confirmed takes what raft says of rounds.
func (n *node) confirmed(states []raft.ReadState) {
	q := &n.questions
	for _, s := range states {
		if len(q.asked) > 0 && q.index == 0 && bytes.Equal(s.RequestCtx, n.roundName()) {
			q.index = s.Index
		}
	}
}

// Confirm returns the end of the journal if tok owned the engine at some moment after the call.
func (s *store) Confirm(ctx context.Context, tok persistence.Token) (uint64, error) {
	if err := s.owned(tok); err != nil {
		return 0, err
	}
	return s.question(ctx, tok)
}

// Reach returns up to where this node has the journal, with all that was acknowledged before.
func (s *store) Reach(ctx context.Context) (uint64, error) { return s.question(ctx, "") }

// Known returns the end of the journal as it is applied here, and whether nothing else is committed
// as far as any node can know from this one.
func (s *store) Known() (end uint64, all bool) {
	v := s.seen.Load()
	return v.beat.End.Seq, v.leading && v.settled && v.applied >= v.committed
}

func (s *store) question(ctx context.Context, tok persistence.Token) (uint64, error) {
	c := make(chan reached, 1)
	select {
	case s.asked <- question{ctx, tok, c}:
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

// told waits for an answer of the node.
func (s *store) told(ctx context.Context, c <-chan error) error {
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return s.failure
	}
}
