package replicated

import (
	"context"
	"encoding/binary"
	"errors"

	"go.etcd.io/raft/v3"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

var errUnconfirmed = errors.New("this node stopped leading before the others confirmed it")

// questions are those whether an owner still owns the engine. A round asks all nodes at once
// whether this one leads. A question that comes while a round is under way waits for the next one,
// because answers to the round may be older than the question.
type questions struct {
	next  []question
	asked []question // of the round under way
	round uint64     // counts the rounds of this start
	asks  uint64     // the term of the round
	index uint64     // what must be applied before the round is answered; 0: not known yet
}

// A question is whether a token is the owner's. Its caller's channel has room for the answer.
type question struct {
	token  persistence.Token
	caller chan<- error
}

func tell(list []question, err error) {
	for _, q := range list {
		q.caller <- err
	}
}

// confirm takes a question.
func (n *node) confirm(q question) {
	if n.raw.BasicStatus().RaftState != raft.StateLeader {
		q.caller <- errNotLeading
		return
	}
	n.questions.next = append(n.questions.next, q)
}

// ask answers the questions of a round that has come to its end, and begins another one. raft
// repeats a round's messages with each heartbeat.
func (n *node) ask() {
	q := &n.questions
	if len(q.next)+len(q.asked) == 0 {
		return
	}
	status := n.raw.BasicStatus()
	leads := status.RaftState == raft.StateLeader
	if !leads || status.GetTerm() != q.asks {
		tell(q.asked, errUnconfirmed)
		q.asked = nil
	}
	if !leads {
		tell(q.next, errUnconfirmed)
		q.next = nil
		return
	}
	if q.index > 0 && n.applied >= q.index {
		n.answerAsked()
	}
	// A leader knows what is committed once an entry of its own term is.
	if len(q.asked) == 0 && len(q.next) > 0 && n.appliedTerm == status.GetTerm() {
		q.asked, q.next = q.next, nil
		q.round++
		q.asks, q.index = status.GetTerm(), 0
		n.raw.ReadIndex(binary.BigEndian.AppendUint64(nil, q.round))
	}
}

// answerAsked tells each caller of the round whether its token is the newest.
func (n *node) answerAsked() {
	q := &n.questions
	beat := n.machine.Beat()
	n.show() // what is answered is seen
	for _, a := range q.asked {
		if a.token == beat.Token {
			a.caller <- nil
		} else {
			a.caller <- codec.Fenced(beat.Owner)
		}
	}
	q.asked, q.index = nil, 0
}

// confirmed takes what raft says of rounds.
func (n *node) confirmed(states []raft.ReadState) {
	q := &n.questions
	for _, s := range states {
		if len(q.asked) > 0 && len(s.RequestCtx) == 8 &&
			binary.BigEndian.Uint64(s.RequestCtx) == q.round {
			q.index = s.Index
		}
	}
}

// Confirm returns nil if tok owned the engine at some moment after the call.
func (s *store) Confirm(ctx context.Context, tok persistence.Token) error {
	if err := s.owned(tok); err != nil {
		return err
	}
	c := make(chan error, 1)
	select {
	case s.asked <- question{tok, c}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return s.failure
	}
	return s.told(ctx, c)
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
