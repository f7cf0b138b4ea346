package api

import "exchange/core/event"

// Placed checks the fields of an order and writes the response as if the engine had made rec of it.
// It returns false if a field is bad. For tests of an order's cost in an edge and the API.
func (c *Call) Placed(rec *event.Record) bool {
	req := c.orderRequest()
	rec.Order.Side, rec.Order.Price, rec.Order.Amount, rec.Order.Remaining = req.Side, req.Price,
		req.Amount, req.Amount
	c.Status, c.body = 201, appendPlaced(c.body, rec)
	return len(c.fields) == 0
}
