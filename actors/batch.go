package actors

import (
	"slices"
	"sync"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
)

// commandBatch are commands that one client sent together: their wallet decides them in one turn,
// in their order, and takes their nonce once. The wallet gives it back to its pool.
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
	for i, c := range slices.Backward(list) { // the last outcome mostly comes last
		if c == nil {
			continue
		}
		if !e.life.AwaitSince(began, c.reply, c.timer) {
			e.meter.UnknownOutcomes.Add(1)
			list[i], errs[i] = nil, committed.ErrTimeout
			continue
		}
		e.answered(c)
	}
	return nil
}

// takeSlotsOrLower is takeSlots. When the slots of other commands are taken, it looks which changes
// of orders only lower amounts: these may have the slots that are kept for cancels.
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

// lowers reports whether a change of an order asks for less than the order's amount now.
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

// sendAll sends admitted commands to their wallet, without those that a maintenance bars.
func (e *Engine) sendAll(list []*Command, errs []error) {
	b := commandBatches.Get().(*commandBatch)
	for i, c := range list {
		if c.barred {
			e.drop(list, errs, i, e.TurnAway(ErrMaintenance))
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

// drop takes an admitted command that no actor has seen out of a list.
func (e *Engine) drop(list []*Command, errs []error, i int, err error) {
	e.giveBack(list[i])
	list[i].Free()
	list[i], errs[i] = nil, err
}

// decideAll decides the commands of a batch. The key, its nonce and a freeze count for all of them:
// either each is refused for one of these, or none.
func (w *wallet) decideAll(b *commandBatch) {
	reason := w.admits(b.list[0])
	for _, c := range b.list {
		w.refuseFor(c, reason)
		w.actOrWait(c)
	}
	b.free()
}
