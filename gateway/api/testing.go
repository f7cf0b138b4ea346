package api

import "exchange/core/event"

// Placed checks the fields of an order and answers as if the engine had made rec of it. False: a
// field is bad. For tests of the work of an edge and the API for an order.
func (c *Call) Placed(rec *event.Record) bool {
	w := c.orderRequest()
	rec.Order.Side, rec.Order.Price, rec.Order.Amount, rec.Order.Remaining = w.Side, w.Price,
		w.Amount, w.Amount
	c.Status, c.body = 201, appendPlaced(c.body, rec)
	return len(c.fields) == 0
}
