package api

import (
	"exchange/actors/committed"
	"exchange/core/event"
)

// Placed checks the fields of an order and answers as if the engine had made rec of it. False: a
// field is bad. For tests of the work of an edge and the API for an order.
func (c *Call) Placed(rec *event.Record) bool {
	w := c.orderRequest()
	rec.Order.Side, rec.Order.Price, rec.Order.Amount, rec.Order.Remaining = w.Side, w.Price,
		w.Amount, w.Amount
	c.Status, c.body = 201, appendPlaced(c.body, rec)
	return len(c.fields) == 0
}

// Waiting returns the number of texts of large answers, and their bytes. For tests of what edges
// give back.
func (b *Budget) Waiting() (texts int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.texts, b.held
}

// Whole returns a view's JSON as a whole; the first call makes it by encode. For tests of how often
// a view is encoded.
func Whole(v *committed.View, encode func() []byte) []byte { return shown(v).body(encode).json }

// Part returns the entries [from, to) of a view's first list as JSON; entry appends those not
// encoded before. For tests of how often a view is encoded.
func Part(v *committed.View, from, to int, entry func(b []byte, place int) []byte) []byte {
	return shown(v).part(sellList, from, to, entry).json
}
