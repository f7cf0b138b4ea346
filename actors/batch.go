package actors

import (
	"slices"
	"sync"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
)

// commandBatch holds the commands of one client request. Their wallet decides them in order, in one
// turn, takes their nonce once, and returns the batch to its pool.
type commandBatch struct{ list []*Command }

var commandBatches = sync.Pool{New: func() any { return new(commandBatch) }}

func (b *commandBatch) free() {
	clear(b.list)
	b.list = b.list[:0]
	commandBatches.Put(b)
}

// DoAll implements Commands.
func (e *Engine) DoAll(list []*Command, errs []error) error {
	if err := e.Admit(list); err != nil {
		for i, c := range list {
			c.Free()
			list[i] = nil
		}
		return err
	}
	e.journal.lists.Add(1)
	defer e.journal.lists.Add(-1)
	e.sendAll(list, errs)
	began := time.Now()
	for i, c := range slices.Backward(list) { // the last outcome usually arrives last
		if c == nil {
			continue
		}
		if !e.life.AwaitSince(began, c.reply, c.timer) {
			e.meter.UnknownOutcomes.Add(1)
			list[i], errs[i] = nil, committed.ErrTimeout
			continue
		}
		e.measureAnswer(c)
	}
	return nil
}

// takeSlotsOrLower is takeSlots. When only slots reserved for cancels are left, it finds the amends
// that only lower amounts: these may use them.
func (e *Engine) takeSlotsOrLower(list []*Command) error {
	err := e.takeSlots(list)
	if err != ErrBusy && err != ErrAccountBusy {
		return err
	}
	some := false
	for _, c := range list {
		if c.kind == event.KindAmended && c.amend.changesAmountAlone() && e.lowers(c) {
			c.lowering, some = true, true
		}
	}
	if !some {
		return err
	}
	return e.takeSlots(list)
}

// lowers reports whether an amend requests less than the order's current amount.
func (e *Engine) lowers(c *Command) bool {
	find := func() (committed.Order, bool, error) { return e.OrderOf(c.account.ID, c.order.id) }
	if c.order.id == 0 {
		find = func() (committed.Order, bool, error) {
			return e.OrderNamed(c.account.ID, c.order.clientID)
		}
	}
	o, found, err := find()
	return err == nil && found && o.Status == trading.StatusActive && c.amend.Amount < o.Amount
}

// sendAll sends admitted commands to their wallet, except those that a maintenance refuses.
func (e *Engine) sendAll(list []*Command, errs []error) {
	b := commandBatches.Get().(*commandBatch)
	for i, c := range list {
		if c.excluded {
			e.drop(list, errs, i, e.CountRefusal(ErrMaintenance))
		} else {
			b.list = append(b.list, c)
		}
	}
	if len(b.list) == 0 {
		b.free()
		return
	}
	if err := e.pass(b.list[0], b); err != nil {
		b.free()
		for i, c := range list {
			if c != nil {
				e.drop(list, errs, i, err)
			}
		}
	}
}

// drop removes an admitted command that no actor has received from a list.
func (e *Engine) drop(list []*Command, errs []error, i int, err error) {
	e.returnSlot(list[i])
	list[i].Free()
	list[i], errs[i] = nil, err
}

// decideAll decides the commands of a batch. Key, nonce and freeze apply to all of them: each is
// refused for one of these, or none.
func (w *wallet) decideAll(b *commandBatch) {
	reason := w.authorize(b.list[0])
	for _, c := range b.list {
		w.refuseFor(c, reason)
		w.actOrWait(c)
	}
	b.free()
}
