package lineartest

import (
	"errors"
	"fmt"

	"github.com/anishathalye/porcupine"
)

// ErrNotLinearizable means that no order of the operations explains all results.
var ErrNotLinearizable = errors.New("the history is not linearizable")

// ErrUndecided means that there are too many orders to search. That affects few histories, in which
// many operations without an outcome overlapped. Such a history proves nothing, so the caller
// records another one.
var ErrUndecided = errors.New("the history could not be decided")

// decideWithin bounds a check, in steps: operations that the search tries on a state. A bound in
// steps gives the same decision on a slow machine as on a fast one. A history of some hundred
// operations takes a few thousand steps, of half a millisecond each at most.
const decideWithin = 40_000

// A state is the changing part of an object. after returns the states that a part may lead to: none
// if its result is impossible.
type state interface{ after(*part) []any }

// model returns the search's model of an object whose first state is init. After most steps no
// operation fits any more, which ends the search; spent reports whether that happened.
func model(init state, equal func(a, b any) bool, most int) (m porcupine.Model, spent func() bool) {
	steps := 0 // counted by the search's goroutine, which has ended when spent is called
	n := porcupine.NondeterministicModel{
		Init: func() []any { return []any{init} },
		Step: func(s, input, _ any) []any {
			if steps++; steps > most {
				return nil
			}
			return s.(state).after(input.(*part))
		},
		Equal:             equal,
		DescribeOperation: func(input, _ any) string { return input.(*part).describe() },
		DescribeState:     func(s any) string { return s.(fmt.Stringer).String() },
	}
	return n.ToModel(), func() bool { return steps > most }
}

// An object has operations that are ordered independently: the market, or the keys of one account.
type object struct {
	name  string
	init  state
	equal func(a, b any) bool
	ops   []porcupine.Operation
}

func (h *History) objects() []object {
	books, accounts := h.parts()
	list := []object{{"the market", &market{fees: &h.Fees, notices: &h.notices}, equalMarkets,
		operations(books)}}
	for i, spans := range accounts {
		list = append(list, object{fmt.Sprint("the keys of account ", i),
			new(keys), equalKeys, operations(spans)})
	}
	return list
}

func equalMarkets(a, b any) bool { return a == b || a.(*market).equal(b.(*market)) }

func equalKeys(a, b any) bool { return a == b || a.(*keys).equal(b.(*keys)) }

func operations(spans []span) (ops []porcupine.Operation) {
	for i := range spans {
		s := &spans[i]
		ops = append(ops, porcupine.Operation{ClientId: s.client, Input: &s.part,
			Call: s.call, Return: s.end})
	}
	return ops
}

// Check searches an order of all operations that explains their results. If there is none it writes
// a page for a browser into the system's temporary folder, and the error names the page.
func (h *History) Check() error {
	x, err := h.judge(decideWithin)
	if !errors.Is(err, ErrNotLinearizable) || x == nil {
		return err
	}
	page, pageErr := x.visualize()
	return errors.Join(fmt.Errorf("%w: see %s", err, page), pageErr)
}

// Judge is Check without a page and with another step limit, for histories that should be wrong.
func (h *History) Judge(most int) error {
	_, err := h.judge(most)
	return err
}

// judge returns the error, and the object concerned, if any.
func (h *History) judge(most int) (*object, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.checkSequences(); err != nil {
		return nil, err
	}
	var undecided error
	for _, x := range h.objects() {
		m, spent := model(x.init, x.equal, most)
		switch legal := porcupine.CheckOperations(m, x.ops); {
		case legal:
		case spent():
			undecided = fmt.Errorf("%w: %s, %d operations, within %d steps", ErrUndecided, x.name,
				len(x.ops), most)
		default:
			return &x, fmt.Errorf("%w: %s", ErrNotLinearizable, x.name)
		}
	}
	return nil, undecided
}
