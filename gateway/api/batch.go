package api

import (
	"slices"
	"strconv"
	"sync"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/params"
)

// A batch is a list of orders, cancels and amends in one call. Each item is answered as its own
// operation would answer it, in a call of its own.

const (
	batchField = "orders"
	itemKind   = "do"
)

var items = sync.Pool{New: func() any { return &Call{Status: 200} }}

// wordCancel is the word of an item that cancels.
const wordCancel = "cancel"

// stepOf returns the step of a batch item's word, in either case; nil: unknown word.
func stepOf(word []byte) *step {
	switch {
	case isWord(word, "place"):
		return &placing
	case isWord(word, wordCancel):
		return &cancelling
	case isWord(word, "amend"):
		return &amending
	}
	return nil
}

// freeItems releases the items of a batch.
func (c *Call) freeItems() {
	for i, item := range c.batch {
		item.Reset()
		items.Put(item)
		c.batch[i] = nil
	}
	c.batch = c.batch[:0]
}

// batchTokens reads the items of a batch, and returns the tokens they cost, of commands and of
// cancels. It records a list that is bad as a whole, which counts as one command.
func (c *Call) batchTokens() (commands, cancels int) {
	c.readItems()
	for _, item := range c.batch {
		if item.cancelsItem() {
			cancels++
		}
	}
	if len(c.batch) == 0 {
		return 1, 0
	}
	return len(c.batch) - cancels, cancels
}

// readItems reads the parameter with the items: a JSON array, or its text.
func (c *Call) readItems() {
	p, ok := c.Form.Get(batchField)
	if !ok {
		c.bad(batchField, FieldRequired)
		return
	}
	most := c.api.configured.Load().batch
	err := params.Elements(p.Value, func(element []byte) bool {
		if len(c.batch) == most {
			c.bad(batchField, "At most "+strconv.Itoa(most)+" items are possible.")
			c.freeItems()
			return false
		}
		c.addItem(element)
		return true
	})
	switch {
	case err != nil:
		c.freeItems()
		c.bad(batchField, "A JSON array of objects is required. "+err.Error())
	case len(c.batch) == 0 && len(c.fields) == 0:
		c.bad(batchField, "At least one item is required.")
	}
}

// addItem begins the call of an item. A text that is no object of fields is answered at once.
func (c *Call) addItem(element []byte) {
	item := items.Get().(*Call)
	item.Begin(c.api)
	if !item.Parsed(item.Form.ParseJSON(element)) {
		item.Form.Reset()
	}
	c.batch = append(c.batch, item)
}

// isAnswered reports whether a call has its answer.
func (c *Call) isAnswered() bool { return c.Status != 200 || len(c.body) > 0 }

// orderBatch carries out the items of a batch. Items with bad fields are answered without the
// engine; the others go to their wallet together. In a maintenance with cancels, the other items
// are answered with the maintenance. A batch without cancels is refused as a whole.
func (c *Call) orderBatch() {
	if err := c.commands.Cancelling(); err != nil {
		c.FailWith(err)
		return
	}
	closed := c.commands.Writable()
	if closed != nil && !slices.ContainsFunc(c.batch, (*Call).cancelsItem) {
		c.FailWith(closed)
		return
	}
	if c.badFields() {
		return
	}
	prepared := make([]preparedItem, 0, len(c.batch))
	list := make([]*actors.Command, 0, len(c.batch))
	for _, item := range c.batch {
		item.Key, item.Nonce, item.Address = c.Key, c.Nonce, c.Address
		if s, cmd := item.prepareItem(closed); cmd != nil {
			prepared = append(prepared, preparedItem{item, s})
			list = append(list, cmd)
		}
	}
	if len(list) > 0 && !c.carryOutAll(prepared, list) {
		return
	}
	b := append(c.body, `{"results":[`...)
	for i, item := range c.batch {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"status":`...), int64(item.Status), 10)
		body, _ := item.Body()
		b = append(append(append(b, `,"body":`...), body...), '}')
	}
	c.body = append(b, "]}"...)
}

// A preparedItem is an item whose command is in flight.
type preparedItem struct {
	call *Call
	step *step
}

// prepareItem makes the command of an item; nil: the item is answered. closed is why it may only
// cancel; nil: anything.
func (c *Call) prepareItem(closed error) (*step, *actors.Command) {
	if c.isAnswered() {
		return nil, nil
	}
	text, _ := c.field(itemKind)
	s := stepOf(text)
	if s == nil {
		if len(c.fields) == 0 {
			c.bad(itemKind, fieldChoice+" It must be place, cancel or amend.")
		}
		c.badFields()
		return nil, nil
	}
	if closed != nil && s != &cancelling {
		c.FailWith(closed)
		return nil, nil
	}
	return s, s.prepare(c)
}

// cancelsItem reports whether the call is an item of a batch that cancels.
func (c *Call) cancelsItem() bool {
	p, ok := c.Form.Get(itemKind)
	return ok && isWord(p.Value, wordCancel)
}

// carryOutAll sends the commands of a batch, and answers its items. False: the batch is answered as
// a whole, because it was not admitted, or the wallet did not take its nonce.
func (c *Call) carryOutAll(prepared []preparedItem, list []*actors.Command) bool {
	errs := make([]error, len(list))
	for _, cmd := range list {
		cmd.Through(c.Gate) // the first ones may have no effect
	}
	if err := c.commands.DoAll(list, errs); err != nil {
		c.FailWith(err)
		return false
	}
	whole, placed := false, placedBy(list)
	for i, p := range prepared {
		cmd := list[i]
		if cmd != nil && !whole && refusesAll(cmd) {
			whole = true
			c.refused(cmd, orderShape{})
		}
		if whole {
			if cmd != nil {
				cmd.Free()
			}
			continue
		}
		if placesOrder(cmd) {
			placed = placed[1:]
		}
		p.call.later = placed
		p.call.end(p.step, cmd, errs[i])
		if f := p.call.Failure; f != nil && f.Ours {
			c.faulty = p.call
		}
	}
	return !whole
}

// placedBy returns the orders placed by commands, in their order.
func placedBy(list []*actors.Command) (ids []uint64) {
	for _, cmd := range list {
		if placesOrder(cmd) {
			ids = append(ids, cmd.Record().Order.ID)
		}
	}
	return ids
}

// placesOrder reports whether a command has an outcome, and placed an order.
func placesOrder(cmd *actors.Command) bool {
	if cmd == nil || cmd.Outcome() != actors.Accepted {
		return false
	}
	switch cmd.Record().Kind {
	case event.KindOrder, event.KindInstructed, event.KindStop:
		return true
	}
	return false
}

// refusesAll reports whether a command was refused for its key, its nonce or its account: then all
// commands of its batch were refused.
func refusesAll(cmd *actors.Command) bool {
	if cmd.Outcome() != actors.Refused {
		return false
	}
	switch cmd.Record().Refusal.Reason {
	case event.RefusedKey, event.RefusedNonce, event.RefusedFrozen:
		return true
	}
	return false
}

// Faulty returns the server failure that an item of a batch was answered with, for the log, and its
// cause; nil: none.
func (c *Call) Faulty() (f *Failure, cause error) {
	if c.faulty == nil {
		return nil, nil
	}
	return c.faulty.Failure, c.faulty.Cause
}
