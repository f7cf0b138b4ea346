package lineartest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// ErrNotLinearizable: no order of the operations explains all results.
var ErrNotLinearizable = errors.New("the history is not linearizable")

// ErrUndecided: there are too many orders to look at. It happens to few histories, in which much overlapped that has no outcome; they show
// nothing, and others have to be recorded in their place.
var ErrUndecided = errors.New("the history could not be decided")

// decideWithin bounds a check. A history of a hundred operations takes milliseconds.
const decideWithin = 30 * time.Second

var model = porcupine.Model{
	Init: func() any { return new(state) },
	Step: func(before, input, output any) (bool, any) {
		s := before.(*state).clone()
		ok := s.step(input.(*Operation), output.(*Result))
		return ok, s
	},
	Equal:             func(a, b any) bool { return a.(*state).equal(b.(*state)) },
	DescribeOperation: func(input, output any) string { return describe(input.(*Operation), output.(*Result)) },
	DescribeState: func(s any) string {
		st := s.(*state)
		return fmt.Sprintf("orders %+v<br>wallets %+v<br>withdrawals %+v", st.orders, st.wallets, st.withdrawals)
	},
}

// Check looks for an order of all operations that explains their results. Where there is none it writes what it found
// into a page for a browser, in the system's temporary folder, and the error says which.
func (h *History) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops := h.prepare()
	switch result := porcupine.CheckOperationsTimeout(model, ops, decideWithin); result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%w: %d operations, within %v", ErrUndecided, len(ops), decideWithin)
	}
	page, err := visualize(ops)
	return errors.Join(fmt.Errorf("%w: see %s", ErrNotLinearizable, page), err)
}

// Linearizable is Check without a page: for histories that are expected to be wrong.
func (h *History) Linearizable() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return porcupine.CheckOperationsTimeout(model, h.prepare(), decideWithin) == porcupine.Ok
}

// prepare gives the operations as the checker wants them. A read without an answer says nothing, and is left out.
func (h *History) prepare() (ops []porcupine.Operation) {
	all := h.bounded()
	ranks := ranksOfIDs(all)
	for i := range all {
		r := &all[i]
		o := &r.Operation
		o.rank = ranks[r.Result.ID]
		if r.Result.Outcome == RefusedFunds {
			o.overlap = map[int]struct{}{}
			for j := range all {
				if other := &all[j]; other.call < r.end && r.call < other.end {
					o.overlap[other.Operation.number] = struct{}{}
				}
			}
		}
		ops = append(ops, porcupine.Operation{ClientId: r.Client, Input: o, Call: r.call, Output: &r.Result, Return: r.end})
	}
	return ops
}

// bounded are copies of the operations that count, each with an end. What reads say about the orders of operations without an
// outcome bounds when these can have happened, which saves the checker from trying all other times: where an order is not
// there, or not cancelled, it was not placed or cancelled before the read; where it is there, it was placed before.
func (h *History) bounded() (all []Recorded) {
	for _, r := range h.events {
		c := *r
		if c.end == 0 {
			c.end, c.Result = math.MaxInt64, Result{}
		}
		if isRead := c.Operation.Kind.reads(); !c.forgotten && !(isRead && c.end == math.MaxInt64) {
			all = append(all, c)
		}
	}
	for i := range all {
		open := &all[i]
		if kind := open.Operation.Kind; open.Result.Outcome != Unknown || kind != Place && kind != Cancel {
			continue
		}
		for _, r := range h.events {
			if !r.forgotten && r.end != 0 && r.Operation.Kind == ReadOrder && r.Operation.Order == open.Operation.Order {
				open.boundBy(r)
			}
		}
	}
	return all
}

func (k Kind) reads() bool {
	return k == ReadOrder || k == ReadOpen || k == ReadBook || k == ReadWallet
}

// boundBy learns from a read of the order that r, which has no outcome, placed or cancelled.
func (r *Recorded) boundBy(read *Recorded) {
	switch found := read.Result.Orders; {
	case r.Operation.Kind == Cancel && (len(found) != 1 || found[0].Status != Cancelled), len(found) == 0:
		r.call = max(r.call, read.call)
	case r.Operation.Kind == Place:
		r.end = min(r.end, read.end)
		r.Result.ID = found[0].ID
	}
}

// ranksOfIDs says of each id of an order or a cancel that somebody was told which one it is in their order: one counter
// gives them all, so the operations must have happened in it.
func ranksOfIDs(all []Recorded) map[uint64]int {
	var ids []uint64
	for i := range all {
		if id := all[i].Result.ID; id != 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ranks := map[uint64]int{}
	for i, id := range ids {
		ranks[id] = i + 1 // of one that is there twice, the first is never right
	}
	return ranks
}

// visualize writes the page, and beside it the history as text with the longest order that explains a part of it.
func visualize(ops []porcupine.Operation) (string, error) {
	_, info := porcupine.CheckOperationsVerbose(model, ops, decideWithin)
	dir, err := os.MkdirTemp("", "exchange-history-")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&text, "%d to %d, client %d: %s\n", o.Call, o.Return, o.ClientId, model.DescribeOperation(o.Input, o.Output))
	}
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, part := range partition {
			if len(part) > len(longest) {
				longest = part
			}
		}
	}
	fmt.Fprintf(&text, "\n%d of %d operations can be explained by this order:\n", len(longest), len(ops))
	state := model.Init()
	for _, o := range longest {
		_, state = model.Step(state, o.Input, o.Output)
		fmt.Fprintln(&text, model.DescribeOperation(o.Input, o.Output))
	}
	fmt.Fprintln(&text, "\nThen there are", strings.ReplaceAll(model.DescribeState(state), "<br>", "\n"))
	if err := os.WriteFile(filepath.Join(dir, "history.txt"), []byte(text.String()), 0o600); err != nil {
		return "", err
	}
	page := filepath.Join(dir, "history.html")
	return page, porcupine.VisualizePath(model, info, page)
}

func describe(o *Operation, r *Result) string {
	text := o.Kind.String()
	side := "sell"
	if o.Buy {
		side = "buy"
	}
	currency := "base"
	if o.Quote {
		currency = "quote"
	}
	switch o.Kind {
	case Place:
		text += fmt.Sprintf(" #%d of account %d: %s %d at %d", o.Order, o.Account, side, o.Amount, o.Price)
	case Cancel, ReadOrder:
		text += fmt.Sprintf(" #%d", o.Order)
	case ReadOpen, ReadWallet:
		text += fmt.Sprintf(" of account %d", o.Account)
	case Deposit, Withdraw:
		text += fmt.Sprintf(" %d of account %d, %d %s", o.Withdrawal, o.Account, o.Amount, currency)
	case ReadBook:
	default:
		text += fmt.Sprintf(" %d", o.Withdrawal)
	}
	text += ": " + r.Outcome.String()
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
		text += fmt.Sprintf(", base %+v, quote %+v", r.Base, r.Quote)
	}
	return text
}
