package replicated

import (
	"errors"
	"fmt"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

var (
	// errNotLeading: nothing was proposed. An earlier try of an append may still be applied.
	errNotLeading = errors.New("this node does not lead the cluster")
	// errUnknown: the proposal may still be applied, or never.
	errUnknown = errors.New("this node stopped leading before the outcome was known")
)

var (
	errChanging = fmt.Errorf("%w: another change of the membership is under way",
		persistence.ErrInvalid)
	errUnsettled = errors.New("this node has just begun to lead; try again")
)

// maxQueued bounds the queued membership changes, which operators request.
const maxQueued = 16

// isDeferred reports whether a change was refused only because it cannot be proposed yet.
func isDeferred(err error) bool {
	return errors.Is(err, errChanging) || errors.Is(err, errUnsettled)
}

type request struct {
	entry  *machine.Entry
	caller chan<- result
}

// A result is the outcome of a proposal.
type result struct {
	answer machine.Answer
	err    error // nil: the entry was applied
}

// proposals are this node's unanswered proposals of its term. An answer belongs to one number. An
// append is not proposed again while it is in the log of this term: a caller that repeats it waits
// for the answer of the first proposal.
type proposals struct {
	term    uint64 // of all pending proposals
	number  uint64 // of the last proposal
	pending map[uint64]*pendingProposal
	appends map[appendKey]*pendingProposal
}

// A pendingProposal is in this node's log, and not yet applied.
type pendingProposal struct {
	key      appendKey // of an append
	isChange bool      // of the membership
	callers  []chan<- result
}

// An appendKey identifies an append.
type appendKey struct {
	token              persistence.Token
	prev, next, digest uint64
}

func newProposals() proposals {
	return proposals{pending: map[uint64]*pendingProposal{},
		appends: map[appendKey]*pendingProposal{}}
}

// attachToPending lets a caller wait for an append that is already in the log.
func (p *proposals) attachToPending(e *machine.Entry, caller chan<- result) bool {
	s := p.appends[keyOf(e)]
	if e.Kind != machine.Append || s == nil {
		return false
	}
	s.callers = append(s.callers, caller)
	return true
}

func keyOf(e *machine.Entry) appendKey {
	return appendKey{token: e.Token, prev: e.Prev, next: e.Next, digest: e.Digest}
}

// add registers a proposal that was added to the log.
func (p *proposals) add(e *machine.Entry, caller chan<- result) {
	s := &pendingProposal{callers: []chan<- result{caller}, isChange: e.Kind.ChangesCluster()}
	if e.Kind == machine.Append {
		s.key = keyOf(e)
		p.appends[s.key] = s
	}
	p.pending[e.ID.Number] = s
}

// answer sends a proposal's answer to its callers.
func (p *proposals) answer(number uint64, a machine.Answer) {
	s := p.pending[number]
	if s == nil {
		return // of an earlier term: its callers were answered by failPending
	}
	delete(p.pending, number)
	if p.appends[s.key] == s {
		delete(p.appends, s.key)
	}
	for _, c := range s.callers {
		c <- result{answer: a}
	}
}

// failPending answers all callers that the outcome is unknown.
func (p *proposals) failPending(why error) {
	for _, s := range p.pending {
		for _, c := range s.callers {
			c <- result{err: fmt.Errorf("the outcome is unknown: %w", why)}
		}
	}
	clear(p.pending)
	clear(p.appends)
}
