package api

import (
	"slices"
	"strconv"
	"sync"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/params"
)

// A batch is a list of orders, cancels and amends in one call. Each item has a Call of its own,
// with the response that the item's own operation would give.

const (
	batchField = "orders"
	itemKind   = "do"
)

var items = sync.Pool{New: func() any { return &Call{Status: 200} }}

// wordCancel is the value of itemKind for a cancel.
const wordCancel = "cancel"

// handlerOf returns the handler of a batch item by its itemKind, in any case; nil: unknown.
func handlerOf(word []byte) *commandHandler {
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

// batchTokens reads the items of a batch, and returns how many tokens they take from the limits of
// commands and of cancels. For a list that is bad as a whole it adds a field error, and returns one
// command.
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
		c.addError(batchField, FieldRequired)
		return
	}
	most := c.api.configured.Load().batch
	err := params.Elements(p.Value, func(element []byte) bool {
		if len(c.batch) == most {
			c.addError(batchField, "At most "+strconv.Itoa(most)+" items are possible.")
			c.freeItems()
			return false
		}
		c.addItem(element)
		return true
	})
	switch {
	case err != nil:
		c.freeItems()
		c.addError(batchField, "A JSON array of objects is required. "+err.Error())
	case len(c.batch) == 0 && len(c.fields) == 0:
		c.addError(batchField, "At least one item is required.")
	}
}

// addItem adds an item with its Call. For an element that cannot be parsed it writes the item's
// error response.
func (c *Call) addItem(element []byte) {
	item := items.Get().(*Call)
	item.BindAPI(c.api)
	if !item.CheckParse(item.Form.ParseJSON(element)) {
		item.Form.Reset()
	}
	c.batch = append(c.batch, item)
}

// isAnswered reports whether the call's response is written.
func (c *Call) isAnswered() bool { return c.Status != 200 || len(c.body) > 0 }

// orderBatch executes the items of a batch. Items with bad fields never reach the engine; the
// others go to their wallet together. In a maintenance that accepts cancels, only the batch's
// cancels are executed; a batch without cancels is refused as a whole.
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
	if c.failOnBadFields() {
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
	call    *Call
	handler *commandHandler
}

// prepareItem makes the command of an item. It returns nil after writing the item's error response.
// closed is the reason why only cancels are accepted; nil: all items are.
func (c *Call) prepareItem(closed error) (*commandHandler, *actors.Command) {
	if c.isAnswered() {
		return nil, nil
	}
	text, _ := c.field(itemKind)
	s := handlerOf(text)
	if s == nil {
		if len(c.fields) == 0 {
			c.addError(itemKind, fieldChoice+" It must be place, cancel or amend.")
		}
		c.failOnBadFields()
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

// carryOutAll sends the commands of a batch, and writes the items' responses. It returns false
// after writing one error response for the whole batch: not admitted, or refused by refusesAll.
func (c *Call) carryOutAll(prepared []preparedItem, list []*actors.Command) bool {
	errs := make([]error, len(list))
	for _, cmd := range list {
		cmd.Through(c.Gate) // each, because the first ones may never reach the wallet
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
			c.failRefused(cmd, orderShape{})
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
		p.call.laterOrders = placed
		p.call.finishCommand(p.handler, cmd, errs[i])
		if f := p.call.Failure; f != nil && f.Ours {
			c.failedItem = p.call
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

// refusesAll reports whether a command was refused for its key, its nonce or a frozen account. Then
// all commands of its batch were refused.
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

// FailedItem returns the server failure of a batch's item, and its cause, for the log; nil: none.
func (c *Call) FailedItem() (f *Failure, cause error) {
	if c.failedItem == nil {
		return nil, nil
	}
	return c.failedItem.Failure, c.failedItem.Cause
}
