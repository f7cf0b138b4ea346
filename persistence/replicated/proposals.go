package replicated

import (
	"errors"
	"fmt"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

var (
	// errNotLeading: nothing was proposed. Of an append it says nothing about an earlier try.
	errNotLeading = errors.New("this node does not lead the cluster")
	// errUnknown: the proposal may still be applied, or never be.
	errUnknown = errors.New("this node stopped leading before the outcome was known")
)

var (
	errChanging = fmt.Errorf("%w: another change of the membership is under way",
		persistence.ErrInvalid)
	errBegins = errors.New("this node has just begun to lead; try again")
)

// maxQueued bounds the changes of the membership that wait for their turn. People ask for them.
const maxQueued = 16

// waits reports whether a change was refused only because its turn has not come.
func waits(err error) bool { return errors.Is(err, errChanging) || errors.Is(err, errBegins) }

// A result is what a caller learns of its proposal.
type result struct {
	answer machine.Answer
	err    error // nil: the entry was applied
}

// proposals are what this node has proposed in its term, and callers wait for. An answer belongs to
// one number. Nothing is proposed again while it stands in the log of this term: the caller that
// comes again with the same append waits for the first one's answer.
type proposals struct {
	term     uint64 // in which all that wait were proposed
	number   uint64 // of the last one
	waiting  map[uint64]*standing
	appended map[appended]*standing
}

// A standing proposal is in this node's log, and not yet applied.
type standing struct {
	key     appended // of an append
	changes bool     // the membership
	callers []chan<- result
}

// appended tells appends apart.
type appended struct {
	token              persistence.Token
	prev, next, digest uint64
}

func newProposals() proposals {
	return proposals{waiting: map[uint64]*standing{}, appended: map[appended]*standing{}}
}

// again lets a caller wait for an append that stands in the log already.
func (p *proposals) again(e *machine.Entry, caller chan<- result) bool {
	s := p.appended[keyOf(e)]
	if e.Kind != machine.Append || s == nil {
		return false
	}
	s.callers = append(s.callers, caller)
	return true
}

func keyOf(e *machine.Entry) appended {
	return appended{token: e.Token, prev: e.Prev, next: e.Next, digest: e.Digest}
}

// add notes a proposal that is in the log now.
func (p *proposals) add(e *machine.Entry, caller chan<- result) {
	s := &standing{callers: []chan<- result{caller}, changes: e.Kind.Changes()}
	if e.Kind == machine.Append {
		s.key = keyOf(e)
		p.appended[s.key] = s
	}
	p.waiting[e.ID.Number] = s
}

// answer tells the callers of a proposal what became of it.
func (p *proposals) answer(number uint64, a machine.Answer) {
	s := p.waiting[number]
	if s == nil {
		return // of an earlier term, and its callers know that its outcome is unknown
	}
	delete(p.waiting, number)
	if p.appended[s.key] == s {
		delete(p.appended, s.key)
	}
	for _, c := range s.callers {
		c <- result{answer: a}
	}
}

// drop tells all callers that the outcome is unknown.
func (p *proposals) drop(why error) {
	for _, s := range p.waiting {
		for _, c := range s.callers {
			c <- result{err: fmt.Errorf("the outcome is unknown: %w", why)}
		}
	}
	clear(p.waiting)
	clear(p.appended)
}
