package lineartest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/anishathalye/porcupine"
)

// ErrNotLinearizable: no order of the operations explains all results.
var ErrNotLinearizable = errors.New("the history is not linearizable")

// ErrUndecided: there are too many orders to look at. It happens to few histories, in which much
// overlapped that has no outcome; they show nothing, and others have to be recorded in their place.
var ErrUndecided = errors.New("the history could not be decided")

// decideWithin bounds a check, in steps: operations that are tried on a state. So a history is
// decided on a slow machine as on a fast one. One of some hundred operations takes a few thousand
// steps, of half a millisecond each at most.
const decideWithin = 40_000

// A state is an object's that operations change.
type state interface{ after(*part) []any }

// model is the checker's of an object that begins as init and compares by equal. After so many
// steps no operation fits any more, so that the search comes to its end; spent says so.
func model(init state, equal func(a, b any) bool, most int) (m porcupine.Model, spent func() bool) {
	steps := 0 // the checker's goroutine counts, and has ended when spent is asked
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

// An object is one whose operations are put in order by themselves: the market, or the keys of one
// account.
type object struct {
	name  string
	init  state
	equal func(a, b any) bool
	ops   []porcupine.Operation
}

func (h *History) objects() []object {
	books, accounts := h.parts()
	list := []object{{"the market", &market{fees: &h.Fees}, equalMarkets, operations(books)}}
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

// Check looks for an order of all operations that explains their results. Where there is none it
// writes what it found into a page for a browser, in the system's temporary folder, and the error
// says which.
func (h *History) Check() error {
	x, err := h.judge(decideWithin)
	if !errors.Is(err, ErrNotLinearizable) {
		return err
	}
	page, pageErr := x.visualize()
	return errors.Join(fmt.Errorf("%w: see %s", err, page), pageErr)
}

// Judge is Check without a page, for histories that are expected to be wrong, and within another
// number of steps.
func (h *History) Judge(most int) error {
	_, err := h.judge(most)
	return err
}

// judge also returns the object that the error is about.
func (h *History) judge(most int) (*object, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
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

// visualize writes the page, and beside it the history as text with the longest order that explains
// a part of it.
func (x *object) visualize() (string, error) {
	m, _ := model(x.init, x.equal, decideWithin)
	_, info := porcupine.CheckOperationsVerbose(m, x.ops, 0)
	dir, err := os.MkdirTemp("", "exchange-history-")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, o := range x.ops {
		fmt.Fprintf(&text, "%d to %d, client %d: %s\n", o.Call, o.Return, o.ClientId,
			m.DescribeOperation(o.Input, nil))
	}
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, part := range partition {
			if len(part) > len(longest) {
				longest = part
			}
		}
	}
	fmt.Fprintf(&text, "\n%d of %d operations can be explained by this order:\n",
		len(longest), len(x.ops))
	m, _ = model(x.init, x.equal, decideWithin)
	state := m.Init()
	for _, o := range longest {
		_, state = m.Step(state, o.Input, nil)
		fmt.Fprintln(&text, m.DescribeOperation(o.Input, nil))
	}
	fmt.Fprintln(&text, "\nThen there are",
		strings.ReplaceAll(m.DescribeState(state), "<br>", "\n"))
	if err := os.WriteFile(filepath.Join(dir, "history.txt"), []byte(text.String()),
		0o600); err != nil {
		return "", err
	}
	page := filepath.Join(dir, "history.html")
	return page, porcupine.VisualizePath(m, info, page)
}

func (s *market) String() string {
	var b strings.Builder
	for _, o := range s.orders {
		if o.status == Open {
			fmt.Fprintf(&b, "open %+v<br>", *o)
		}
	}
	fmt.Fprintf(&b, "wallets %+v<br>withdrawals %+v<br>updates %v", s.wallets,
		s.withdrawals, s.updates)
	return b.String()
}

func (s *keys) String() string {
	return fmt.Sprintf("frozen %v, at the door %v, keys %+v", s.frozen, s.barred, s.keys)
}

func (p *part) describe() string {
	o, r := p.o, p.r
	text := fmt.Sprintf("%v of account %d", o.Kind, o.Account)
	if o.Key != 0 {
		text += fmt.Sprintf(" with key %d, nonce %d", o.Key, o.Nonce)
	}
	switch o.Kind {
	case Place:
		side := "sell"
		if o.Buy {
			side = "buy"
		}
		text += fmt.Sprintf(" #%d in pair %d: %s %d at %d", o.Order, o.Pair, side,
			o.Amount, o.Price)
	case Cancel, ReadOrder:
		text += fmt.Sprintf(" #%d", o.Order)
	case CancelAll:
		text += fmt.Sprintf(" in pair %d, here #%d of %v", o.Pair, p.order, r.Cancelled)
	case ReadBook:
		text += fmt.Sprintf(" of pair %d", o.Pair)
	case Deposit, Withdraw:
		text += fmt.Sprintf(" %d: %d of currency %d", o.Withdrawal, o.Amount, o.Currency)
	case ConfirmWithdraw, CancelWithdraw, ApproveWithdraw, RefuseWithdraw:
		text += fmt.Sprintf(" %d", o.Withdrawal)
	case CreateKey:
		text += fmt.Sprintf(" for %b", o.Permissions)
	case Freeze:
		text += fmt.Sprintf(" %v", o.On)
	}
	text += ": " + r.Outcome.String()
	if r.Outcome == RefusedNonce {
		return text + fmt.Sprintf(", the last is %d", r.LastNonce)
	}
	if r.Outcome != Done {
		return text
	}
	switch o.Kind {
	case Place, Cancel:
		text += fmt.Sprintf(", id %d, trades %+v, remains %d", r.ID, r.Trades, r.Remains)
	case ReadOrder, ReadOpen:
		text += fmt.Sprintf(", %+v", r.Orders)
	case ReadBook:
		text += fmt.Sprintf(", update %d, buy %v, sell %v", r.UpdateID, r.Levels[0], r.Levels[1])
	case ReadWallet:
		text += fmt.Sprintf(", %+v", r.Funds)
	case ReadPending:
		text += fmt.Sprintf(", %+v", r.Pending)
	case ReadKeys:
		text += fmt.Sprintf(", frozen %v, %+v", r.Frozen, r.Keys)
	}
	return text
}
