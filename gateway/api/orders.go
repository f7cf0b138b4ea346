package api

import (
	"errors"
	"strconv"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/encode"
)

func (c *Call) placeOrder() {
	if err := c.engine.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	w := c.orderRequest()
	if c.badFields() {
		return
	}
	if w.Pair.Halted() {
		c.Fail(PairHalted, w.Pair.Name)
		return
	}
	cmd, err := c.engine.Place(c.Key, c.Nonce, &w)
	if err != nil {
		c.commandFailed(err, w.ClientID)
		return
	}
	if cmd.Outcome() == actors.Accepted {
		c.Status = 201
		c.body = appendPlaced(c.body, cmd.Record())
	} else {
		c.refused(cmd, &w)
	}
	cmd.Free()
}

// orderRequest reads and checks the fields of an order. It notes each bad field.
func (c *Call) orderRequest() actors.OrderRequest {
	var w actors.OrderRequest
	if text, ok := c.field("pair"); ok {
		if w.Pair = c.engine.Pair(text); w.Pair == nil {
			c.bad("pair", FieldPair)
		}
	}
	if text, ok := c.field("type"); ok {
		if w.Side = sideOf(text); w.Side == 0 {
			c.bad("type", FieldChoice+" It must be buy or sell.")
		}
	}
	if text, ok := c.field("price"); ok {
		p, err := money.ParsePrice(text)
		switch {
		case err != nil:
			c.bad("price", err.Error())
		case p == 0:
			c.bad("price", FieldPositive)
		case w.Pair != nil && !p.FitsDecimals(w.Pair.PricePrecision):
			c.bad("price", "At most "+strconv.Itoa(w.Pair.PricePrecision)+
				" fractional digits are possible.")
		}
		w.Price = p
	}
	if text, ok := c.field("amount"); ok {
		a, err := money.ParseAmount(text)
		switch {
		case err != nil:
			c.bad("amount", err.Error())
		case a == 0:
			c.bad("amount", FieldPositive)
		case w.Pair == nil:
		case !a.FitsDecimals(w.Pair.AmountPrecision):
			c.bad("amount", "At most "+strconv.Itoa(w.Pair.AmountPrecision)+
				" fractional digits are possible.")
		case a < w.Pair.MinimumOrderSize:
			c.bad("amount", "The smallest amount is "+w.Pair.MinimumOrderSize.String()+".")
		case a > w.Pair.MaximumOrderSize:
			c.bad("amount", "The largest amount is "+w.Pair.MaximumOrderSize.String()+".")
		case w.Price > 0 && w.Price.Times(a).Balance().Cmp(w.Pair.MinimumOrderValue) < 0:
			c.bad("amount", "price x amount must be at least "+w.Pair.MinimumOrderValue.String()+
				".")
		}
		w.Amount = a
	}
	w.ClientID = c.clientID(&c.Form)
	return w
}

// field returns the text of a required parameter of the body. It notes a parameter that is missing
// or no scalar, and returns false.
func (c *Call) field(name string) ([]byte, bool) {
	p, ok := c.Form.Get(name)
	switch {
	case !ok:
		c.bad(name, FieldRequired)
	case !isScalar(p):
		c.bad(name, fieldNotScalar)
	default:
		return p.Value, true
	}
	return nil, false
}

// commandFailed answers for a command that has no outcome.
func (c *Call) commandFailed(err error, id event.ClientID) {
	if !errors.Is(err, committed.ErrTimeout) {
		c.FailWith(err)
		return
	}
	hint := " GET /api/v1/orders/own/ shows what there is."
	if !id.IsZero() {
		hint = " GET /api/v1/orders/own/?client_order_id=" + id.String() +
			" shows whether it is in."
	}
	c.Fail(OutcomeUnknown, hint)
}

// appendPlaced writes the result of placing an order.
func appendPlaced(b []byte, rec *event.Record) []byte {
	o := &rec.Order
	remaining := o.Remaining
	if o.MaxFillsReached {
		remaining = 0
	}
	b = encode.Side(append(b, `{"success":true,"type":`...), o.Side)
	b = encode.Seconds(append(b, `,"date":`...), rec.TimeUs)
	b = strconv.AppendUint(append(b, `,"oid":`...), o.ID, 10)
	b = o.Price.Append(append(b, `,"price":`...))
	b = remaining.Append(append(b, `,"amount":`...))
	b = (o.Amount - o.Remaining).Append(append(b, `,"amount_filled":`...))
	b = o.Amount.Append(append(b, `,"amount_original":`...))
	if o.MaxFillsReached { // it met as many orders as one order may, so the rest was cancelled
		b = o.Remaining.Append(append(b, `,"amount_cancelled":`...))
	}
	if !o.ClientID.IsZero() {
		b = o.ClientID.Append(append(b, `,"client_order_id":"`...))
		b = append(b, '"')
	}
	b = append(b, `,"trades":[`...)
	for i := range o.Trades {
		t := &o.Trades[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, `{"tid":`...), t.ID, 10)
		b = encode.Side(append(b, `,"type":`...), o.Side.Opposite())
		b = t.Price.Append(append(b, `,"price":`...))
		b = t.Amount.Append(append(b, `,"amount":`...))
		b = strconv.AppendUint(append(b, `,"o_id":`...), t.Maker, 10)
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

// refused answers for a command whose refusal is in the journal.
func (c *Call) refused(cmd *actors.Command, w *actors.OrderRequest) {
	switch cmd.Record().Refusal.Reason {
	case event.RefusedNonce:
		c.wrongNonce(cmd.LastNonce())
	case event.RefusedKey:
		c.Fail(Unauthenticated, "")
	case event.RefusedFunds:
		currency, missing := cmd.Shortfall()
		b := encode.Seconds(append(c.body, `{"date":`...), cmd.Record().TimeUs)
		b = missing.Append(append(b, `,"error":"Out of balance -`...))
		b = append(append(append(b, ' '), c.engine.CurrencyCode(currency)...), `"}`...)
		c.Status, c.body = 400, b
	case event.RefusedClientID:
		c.clientIDTaken(w.ClientID)
	case event.RefusedAccountLimit:
		c.Fail(TooManyOpenOrders, "")
	case event.RefusedAccountBookLimit:
		c.Fail(TooManyInBook, w.Pair.Name)
	case event.RefusedBookLimit:
		c.Fail(BookFull, w.Pair.Name)
	case event.RefusedHalted:
		c.Fail(PairHalted, w.Pair.Name)
	case event.RefusedFrozen:
		c.Fail(AccountFrozen, "")
	case event.RefusedWithdrawalLimit:
		c.Fail(TooManyWithdrawals, "")
	default:
		c.Cause = errors.New("BUG: a command was refused for reason " +
			strconv.Itoa(int(cmd.Record().Refusal.Reason)))
		c.Fail(InternalError, "")
	}
}

// clientIDTaken tells the client which order has the id. The refusal is durable, so the answer
// never asks for a repeat, even when this look-up fails.
func (c *Call) clientIDTaken(id event.ClientID) {
	q := &committed.OrderIDOf{Account: c.Key.Account.ID, ClientID: id}
	text := "Already used by another order."
	if c.engine.FollowUp(q) == nil && q.ID != 0 {
		text = "Already used by order " + strconv.FormatUint(q.ID, 10)
	}
	c.bad("client_order_id", text)
	c.badFields()
}

func (c *Call) cancelOrder() {
	if err := c.engine.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	var id uint64
	if text, ok := c.field("order"); ok {
		if id, ok = Integer(text); !ok || id == 0 {
			c.bad("order", FieldInteger)
		}
	}
	if c.badFields() {
		return
	}
	cmd, err := c.engine.Cancel(c.Key, c.Nonce, id)
	if err != nil {
		c.commandFailed(err, event.ClientID{})
		return
	}
	rec := cmd.Record()
	switch {
	case cmd.Outcome() == actors.Accepted:
		c.body = append(strconv.AppendUint(append(c.body, `{"order":`...), rec.Cancel.Order, 10),
			'}')
	case rec.Refusal.Reason == event.RefusedNotOpen:
		c.notCancelled(id)
	default:
		c.refused(cmd, nil)
	}
	cmd.Free()
}

// notCancelled tells the client why an order could not be cancelled. The refusal is durable, so the
// order's row has the reason.
func (c *Call) notCancelled(id uint64) {
	o, found, err := c.engine.OrderOf(c.Key.Account.ID, id)
	text := "Order not found"
	switch {
	case err != nil:
		text = "Order is not open"
	case !found:
	case o.Status == trading.StatusDone:
		text = "Order already done"
	case o.Status == trading.StatusCancelled:
		text = "Order already cancelled"
	}
	c.bad("order", text)
	c.badFields()
}

// cancelAllOrders cancels all open orders of the account, or of one pair. The client must say
// which, because a signature without any parameter is the signature of each GET of the key.
func (c *Call) cancelAllOrders() {
	if err := c.engine.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	var pair *directory.Pair
	_, one := c.Form.Get("pair")
	if _, all := c.Form.Get("all"); all || !one {
		if text, ok := c.field("all"); ok && string(text) != "1" {
			c.bad("all", FieldChoice+" It must be 1.")
		}
	}
	if one {
		if text, ok := c.field("pair"); ok {
			if pair = c.engine.Pair(text); pair == nil {
				c.bad("pair", FieldPair)
			}
		}
	}
	if c.badFields() {
		return
	}
	cmd, err := c.engine.CancelAll(c.Key, c.Nonce, pair)
	switch {
	case err != nil:
		c.commandFailed(err, event.ClientID{})
		return
	case cmd.Outcome() == actors.Refused && cmd.Record().Refusal.Reason != event.RefusedNoOrders:
		c.refused(cmd, nil)
	default:
		b := append(c.body, `{"orders":[`...)
		for i, id := range cmd.Cancelled() {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendUint(b, id, 10)
		}
		c.body = append(b, "]}"...)
	}
	cmd.Free()
}
