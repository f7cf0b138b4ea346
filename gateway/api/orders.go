package api

import (
	"errors"
	"strconv"

	"exchange/actors"
	"exchange/actors/committed"
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
	w.Side = c.orderSide()
	c.price(&w)
	c.amount(&w)
	w.ClientID = c.clientID(&c.Form)
	c.instructions()
	return w
}

// orderSide reads what an order does. It notes a bad side.
func (c *Call) orderSide() (side trading.Side) {
	if text, ok := c.field("type"); ok {
		if side = sideOf(text); side == 0 {
			c.bad("type", FieldChoice+" It must be buy or sell.")
		}
	}
	return side
}

// price reads the price of an order. It notes one that the pair does not take.
func (c *Call) price(w *actors.OrderRequest) {
	text, ok := c.field("price")
	if !ok {
		return
	}
	p, err := money.ParsePrice(text)
	switch {
	case err != nil:
		c.bad("price", err.Error())
	case p == 0:
		c.bad("price", FieldPositive)
	case w.Pair == nil:
	case !p.FitsDecimals(w.Pair.PricePrecision):
		c.bad("price", "At most "+strconv.Itoa(w.Pair.PricePrecision)+
			" fractional digits are possible.")
	case p%w.Pair.PriceTick != 0:
		c.bad("price", "A multiple of "+w.Pair.PriceTick.String()+" is required.")
	}
	w.Price = p
}

// amount reads the amount of an order, behind its price. It notes one that the pair does not take.
func (c *Call) amount(w *actors.OrderRequest) {
	text, ok := c.field("amount")
	if !ok {
		return
	}
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
	case a%w.Pair.AmountStep != 0:
		c.bad("amount", "A multiple of "+w.Pair.AmountStep.String()+" is required.")
	case a < w.Pair.MinimumOrderSize:
		c.bad("amount", "The smallest amount is "+w.Pair.MinimumOrderSize.String()+".")
	case a > w.Pair.MaximumOrderSize:
		c.bad("amount", "The largest amount is "+w.Pair.MaximumOrderSize.String()+".")
	case w.Price > 0 && w.Price.Times(a).Balance().Cmp(w.Pair.MinimumOrderValue) < 0:
		c.bad("amount", "price x amount must be at least "+w.Pair.MinimumOrderValue.String()+".")
	}
	w.Amount = a
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
		c.readFailed(err) // the look for a client order id is a read
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
	if o.RestCancelled {
		remaining = 0
	}
	b = encode.Side(append(b, `{"success":true,"type":`...), o.Side)
	b = encode.Seconds(append(b, `,"date":`...), rec.TimeUs)
	b = strconv.AppendUint(append(b, `,"oid":`...), o.ID, 10)
	b = o.Price.Append(append(b, `,"price":`...))
	b = remaining.Append(append(b, `,"amount":`...))
	b = (o.Amount - o.Remaining).Append(append(b, `,"amount_filled":`...))
	b = o.Amount.Append(append(b, `,"amount_original":`...))
	if o.RestCancelled { // it met as many orders as one order may, so the rest was cancelled
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
	case event.RefusedPriceBand:
		c.outOfBand(cmd, w.Side)
	case event.RefusedClientID:
		c.bad("client_order_id", "Already used by order "+
			strconv.FormatUint(cmd.TakenBy(), 10))
		c.badFields()
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

// outOfBand tells the client which price would have been possible.
func (c *Call) outOfBand(cmd *actors.Command, side trading.Side) {
	most := "most "
	if side == trading.Sell {
		most = "least "
	}
	b := encode.Seconds(append(c.body, `{"date":`...), cmd.Record().TimeUs)
	b = append(append(b, `,"error":"The price must be at `...), most...)
	b = append(cmd.Bound().Append(b), `","code":"price_band"}`...)
	c.Status, c.body = 400, b
}

// cancelOrder cancels an open order by its id, or by the client's own name for it.
func (c *Call) cancelOrder() {
	if err := c.engine.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	id, name := c.whichOrder()
	if c.badFields() {
		return
	}
	var cmd *actors.Command
	var err error
	if id != 0 {
		cmd, err = c.engine.Cancel(c.Key, c.Nonce, id)
	} else {
		cmd, err = c.engine.CancelNamed(c.Key, c.Nonce, name)
	}
	if err != nil {
		c.commandFailed(err, name)
		return
	}
	rec := cmd.Record()
	switch {
	case cmd.Outcome() == actors.Accepted:
		c.body = append(strconv.AppendUint(append(c.body, `{"order":`...), rec.Cancel.Order, 10),
			'}')
	case rec.Refusal.Reason != event.RefusedNotOpen:
		c.refused(cmd, nil)
	case id != 0:
		c.notCancelled(id, "order")
	default:
		c.notCancelledNamed(name)
	}
	cmd.Free()
}

// whichOrder reads the order that a command is about: its id, or without one the client's own name
// for it. It notes a bad one.
func (c *Call) whichOrder() (id uint64, name event.ClientID) {
	if _, ok := c.Form.Get("order"); !ok {
		if name = c.clientID(&c.Form); !name.IsZero() || len(c.fields) > 0 {
			return 0, name
		}
	}
	if text, ok := c.field("order"); ok {
		if id, ok = Integer(text); !ok || id == 0 {
			c.bad("order", FieldInteger)
		}
	}
	return id, event.ClientID{}
}

// notCancelled tells the client why an order could not be cancelled, on the field that named it.
// The refusal is durable, so the order's row has the reason.
func (c *Call) notCancelled(id uint64, field string) {
	o, found, err := c.engine.OrderOf(c.Key.Account.ID, id)
	c.notOpen(&o, found, err, field)
}

func (c *Call) notOpen(o *committed.Order, found bool, err error, field string) {
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
	c.bad(field, text)
	c.badFields()
}

// notCancelledNamed is notCancelled for the client's own name of an order. No order under it can
// still come from what this key sent before.
func (c *Call) notCancelledNamed(name event.ClientID) {
	field := clientIDName
	if _, ok := c.Form.Get(field); !ok {
		field = clientIDAlias
	}
	o, found, err := c.engine.OrderNamed(c.Key.Account.ID, name)
	c.notOpen(&o, found, err, field)
}

// cancelAllOrders cancels all open orders of the account that pass the filters. The client must say
// which, because a signature without any parameter is the signature of each GET of the key.
func (c *Call) cancelAllOrders() {
	if err := c.engine.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	f := c.cancelFilter()
	if c.badFields() {
		return
	}
	cmd, err := c.engine.CancelAll(c.Key, c.Nonce, f)
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

// cancelFilter reads which orders are to be cancelled. It notes a bad filter, and that there is
// none.
func (c *Call) cancelFilter() (f actors.CancelFilter) {
	_, pair := c.Form.Get("pair")
	_, side := c.Form.Get("type")
	prefix, named := c.Form.Get(clientIDPrefix)
	if _, all := c.Form.Get("all"); all || !pair && !side && !named {
		if text, ok := c.field("all"); ok && string(text) != "1" {
			c.bad("all", FieldChoice+" It must be 1.")
		}
	}
	if pair {
		if text, ok := c.field("pair"); ok {
			if f.Pair = c.engine.Pair(text); f.Pair == nil {
				c.bad("pair", FieldPair)
			}
		}
	}
	if side {
		f.Side = c.orderSide()
	}
	if named {
		f.Prefix = c.clientIDIn(clientIDPrefix, prefix)
	}
	return f
}

const clientIDPrefix = "client_order_id_prefix"
