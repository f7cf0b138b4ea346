package api

import (
	"errors"
	"slices"
	"strconv"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/encode"
)

// A commandHandler handles one kind of command in two halves. prepare reads the fields and makes
// the command without sending it. finish writes the response for the outcome. A batch prepares
// all its commands before it sends them.
type commandHandler struct {
	prepare func(*Call) *actors.Command // returns nil after writing an error response
	finish  func(*Call, *actors.Command)
}

var (
	placing    = commandHandler{(*Call).prepareOrder, (*Call).finishOrder}
	amending   = commandHandler{(*Call).prepareAmend, (*Call).finishAmend}
	cancelling = commandHandler{(*Call).prepareCancel, (*Call).finishCancel}
)

// A target is the order of a command, for its answer.
type target struct {
	order    uint64         // id to change; 0: the order with clientID, or a new one
	clientID event.ClientID // of the order; zero: none
	shape    orderShape     // of a new order
}

// An orderShape is the side and pair of an order, for the text of a refusal.
type orderShape struct {
	side trading.Side
	pair string // name
}

func (c *Call) placeOrder()  { c.carryOut(&placing) }
func (c *Call) cancelOrder() { c.carryOut(&cancelling) }
func (c *Call) amendOrder()  { c.carryOut(&amending) }

// carryOut sends one command and writes the response for its outcome.
func (c *Call) carryOut(h *commandHandler) {
	check := c.commands.Writable
	if h == &cancelling {
		check = c.commands.Cancelling
	}
	if err := check(); err != nil {
		c.FailWith(err)
		return
	}
	cmd := h.prepare(c)
	if cmd == nil {
		return
	}
	cmd, err := c.do(cmd)
	c.finishCommand(h, cmd, err)
}

// do sends a command, and waits for its outcome.
func (c *Call) do(cmd *actors.Command) (*actors.Command, error) {
	return c.commands.Do(cmd.Through(c.Gate))
}

// finishCommand writes the response for a completed command, and frees it, or for its error.
func (c *Call) finishCommand(h *commandHandler, cmd *actors.Command, err error) {
	if err != nil {
		c.failCommand(err, c.target.clientID)
		return
	}
	h.finish(c, cmd)
	cmd.Free()
}

func (c *Call) prepareOrder() *actors.Command {
	req, ok := c.readOrder()
	if !ok {
		return nil
	}
	c.target = target{clientID: req.ClientID, shape: orderShape{req.Side, req.Pair.Name}}
	return actors.NewOrder(c.Key, c.Nonce, &req)
}

func (c *Call) finishOrder(cmd *actors.Command) {
	if cmd.Outcome() == actors.Accepted {
		c.Status = 201
		c.body = appendPlaced(c.body, cmd.Record())
	} else {
		c.failRefused(cmd, c.target.shape)
	}
}

// readOrder reads an order, and checks it against all rules that need neither its wallet nor its
// book. It returns false after writing an error response.
func (c *Call) readOrder() (req actors.OrderRequest, ok bool) {
	req = c.orderRequest()
	switch {
	case c.failOnBadFields():
	case req.Pair.Halted():
		c.Fail(PairHalted, req.Pair.Name)
	case req.Price == 0:
		ok = c.setWorstPrice(&req)
	default:
		ok = true
	}
	return req, ok
}

// orderRequest reads the fields of an order, and adds a field error for each bad one. The price of
// a market order stays 0.
func (c *Call) orderRequest() actors.OrderRequest {
	var req actors.OrderRequest
	if text, ok := c.field("pair"); ok {
		if req.Pair = c.public.Pair(text); req.Pair == nil {
			c.addError("pair", FieldPair)
		}
	}
	req.Side = c.orderSide()
	if c.instructed() {
		c.specialOrder(&req)
	} else {
		c.price(&req)
		c.amount(&req)
	}
	req.ClientID = c.clientID(&c.Form)
	return req
}

// orderSide reads the side of an order. It adds a field error for a bad one.
func (c *Call) orderSide() (side trading.Side) {
	if text, ok := c.field("type"); ok {
		if side = sideOf(text); side == 0 {
			c.addError("type", fieldChoice+" It must be buy or sell.")
		}
	}
	return side
}

// price reads the price of an order. It adds a field error for one that the pair's rules forbid.
func (c *Call) price(req *actors.OrderRequest) {
	text, ok := c.field("price")
	if !ok {
		return
	}
	p, err := money.ParsePrice(text)
	fault := ""
	switch {
	case err != nil:
		fault = err.Error()
	case p == 0:
		fault = FieldPositive
	case req.Pair != nil:
		fault = req.Pair.PriceFault(p)
	}
	if fault != "" {
		c.addError("price", fault)
	}
	req.Price = p
}

// amount reads the amount of an order, after its price. It adds a field error for one that the
// pair's rules forbid.
func (c *Call) amount(req *actors.OrderRequest) {
	text, ok := c.field("amount")
	if !ok {
		return
	}
	a, err := money.ParseAmount(text)
	fault := ""
	switch {
	case err != nil:
		fault = err.Error()
	case a == 0:
		fault = FieldPositive
	case req.Pair == nil:
	default:
		if fault = req.Pair.AmountFault(a); fault == "" && req.Price > 0 {
			fault = req.Pair.ValueFault(req.Price, a)
		}
	}
	if fault != "" {
		c.addError("amount", fault)
		return
	}
	req.Amount = a
}

// field returns the text of a required parameter of the body. It returns false after adding a field
// error for a parameter that is missing or no scalar.
func (c *Call) field(name string) ([]byte, bool) {
	p, ok := c.Form.Get(name)
	switch {
	case !ok:
		c.addError(name, FieldRequired)
	case !isScalar(p):
		c.addError(name, fieldNotScalar)
	default:
		return p.Value, true
	}
	return nil, false
}

// failCommand writes the response for a command's error. id is its client order id; zero: none.
func (c *Call) failCommand(err error, id event.ClientID) {
	if !errors.Is(err, committed.ErrTimeout) {
		c.failRead(err) // it reached no wallet, as a refused read
		return
	}
	hint := " GET /api/v1/orders/own/ shows what there is."
	if !id.IsZero() {
		hint = " GET /api/v1/orders/own/?client_order_id=" + id.String() +
			" shows whether the order was accepted."
	}
	c.Fail(OutcomeUnknown, hint)
}

// appendPlaced writes the result of placing an order.
func appendPlaced(b []byte, rec *event.Record) []byte {
	b = appendAccepted(b, rec)
	if rec.Kind == event.KindInstructed || rec.Kind == event.KindStop {
		b = appendOutcome(b, rec)
	}
	return append(b, '}')
}

// appendAccepted writes the common answer of accepted and amended orders, without the closing
// brace.
func appendAccepted(b []byte, rec *event.Record) []byte {
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
	if o.RestCancelled && rec.Instructions.Cancelled == 0 {
		// A plain order that met the maximum number of orders.
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
	return append(b, ']')
}

// failRefused writes the response for a command whose refusal is in the journal.
func (c *Call) failRefused(cmd *actors.Command, shape orderShape) {
	switch reason := cmd.Record().Refusal.Reason; reason {
	case event.RefusedNonce:
		c.failWrongNonce(cmd.LastNonce())
	case event.RefusedKey:
		c.Fail(Unauthenticated, "")
	case event.RefusedFunds:
		currency, missing := cmd.Shortfall()
		c.failOutOfFunds(cmd.Record().TimeUs, currency, missing)
	case event.RefusedClientID:
		c.failIDTaken(cmd.TakenBy())
	case event.RefusedAccountLimit:
		c.Fail(TooManyOpenOrders, "")
	case event.RefusedAccountBookLimit:
		c.Fail(TooManyInBook, shape.pair)
	case event.RefusedBookLimit:
		c.Fail(BookFull, shape.pair)
	case event.RefusedHalted:
		c.Fail(PairHalted, shape.pair)
	case event.RefusedFrozen:
		c.Fail(AccountFrozen, "")
	case event.RefusedHeld:
		c.Fail(WithdrawalsHeld, heldUntil(cmd.HoldEndsUs()))
	case event.RefusedWithdrawalLimit:
		c.Fail(TooManyWithdrawals, "")
	default:
		if !c.failMarketRefused(cmd, shape) {
			c.Cause = errors.New("BUG: a command was refused for reason " +
				strconv.Itoa(int(reason)))
			c.Fail(InternalError, "")
		}
	}
}

// failMarketRefused writes the response for a refusal by the book. It returns false, without
// writing, for any other reason.
func (c *Call) failMarketRefused(cmd *actors.Command, shape orderShape) bool {
	at := cmd.Record().TimeUs
	switch cmd.Record().Refusal.Reason {
	case event.RefusedPriceBand:
		c.failPriceBand(at, shape.side, cmd.Bound())
	case event.RefusedWouldTrade:
		c.forbid(WouldTrade, at, "")
	case event.RefusedWouldTrigger:
		c.forbid(WouldTrigger, at, cmd.Bound().String())
	case event.RefusedStopLimit:
		c.forbid(TooManyStops, at, shape.pair)
	case event.RefusedGTDLimit:
		c.forbid(TooManyGTD, at, shape.pair)
	default:
		return false
	}
	return true
}

// forbid writes the response for a MarketRefusal; about replaces the %s of its text.
func (c *Call) forbid(why *MarketRefusal, timeUs int64, about string) {
	b := encode.Seconds(append(c.body[:0], `{"date":`...), timeUs)
	b = encode.Text(append(b, `,"error":`...), why.About(about))
	b = append(append(append(b, `,"code":"`...), why.Code...), `"}`...)
	c.Status, c.body = 400, b
}

// failPriceBand writes the response for a price outside the price band: above bound for a buy,
// below it for a sell.
func (c *Call) failPriceBand(timeUs int64, side trading.Side, bound money.Price) {
	about := "most "
	if side == trading.Sell {
		about = "least "
	}
	c.forbid(PriceBand, timeUs, about+bound.String())
}

// failOutOfFunds writes the response for an account that cannot pay for its order.
func (c *Call) failOutOfFunds(timeUs int64, currency uint16, missing money.Balance) {
	b := encode.Seconds(append(c.body[:0], `{"date":`...), timeUs)
	b = missing.Append(append(b, `,"error":"Out of balance -`...))
	b = append(append(append(b, ' '), c.public.CurrencyCode(currency)...), `"}`...)
	c.Status, c.body = 400, b
}

// failIDTaken writes the response for a client order id that the order by already has.
func (c *Call) failIDTaken(by uint64) {
	c.addError(clientIDName, "Already used by order "+strconv.FormatUint(by, 10))
	c.failOnBadFields()
}

// prepareCancel makes the cancel of an open order, by its id or by the client order id.
func (c *Call) prepareCancel() *actors.Command {
	id, clientID := c.whichOrder()
	if c.failOnBadFields() {
		return nil
	}
	c.target = target{order: id, clientID: clientID}
	return actors.NewCancel(c.Key, c.Nonce, id, clientID)
}

func (c *Call) finishCancel(cmd *actors.Command) {
	rec := cmd.Record()
	switch {
	case cmd.Outcome() == actors.Accepted:
		c.body = append(strconv.AppendUint(append(c.body, `{"order":`...), rec.Cancel.Order, 10),
			'}')
	case rec.Refusal.Reason != event.RefusedNotOpen:
		c.failRefused(cmd, orderShape{})
	default:
		c.failNotOpen()
	}
}

// whichOrder reads the order of a command: its id, or without one the client order id. It adds a
// field error for a bad one.
func (c *Call) whichOrder() (id uint64, clientID event.ClientID) {
	if _, ok := c.Form.Get("order"); !ok {
		if clientID = c.clientID(&c.Form); !clientID.IsZero() || len(c.fields) > 0 {
			return 0, clientID
		}
	}
	if text, ok := c.field("order"); ok {
		if id, ok = Integer(text); !ok || id == 0 {
			c.addError("order", FieldInteger)
		}
	}
	return id, event.ClientID{}
}

// failNotOpen writes why an order could not be changed, as an error of the field that named the
// order. The refusal is durable, so the order's row already shows whether it is done or cancelled.
// The key's nonce was used, so no earlier request can still place an order with the client order
// id.
func (c *Call) failNotOpen() {
	field, text := "order", "Order not found"
	if c.target.order == 0 {
		if field = clientIDName; !c.given(field) {
			field = clientIDAlias
		}
	}
	switch o, found, err := c.orderNamed(); {
	case err != nil:
		text = "Order is not open"
	case !found, slices.Contains(c.laterOrders, o.ID): // a later item placed it, after the refusal
	case o.Status == trading.StatusDone:
		text = "Order already done"
	case o.Status == trading.StatusCancelled:
		text = "Order already cancelled"
	}
	c.addError(field, text)
	c.failOnBadFields()
}

// orderNamed returns the order of c.target.
func (c *Call) orderNamed() (o committed.Order, found bool, err error) {
	if c.target.order != 0 {
		return c.public.OrderOf(c.Key.Account.ID, c.target.order)
	}
	return c.public.OrderNamed(c.Key.Account.ID, c.target.clientID)
}

// given reports whether the body has a parameter.
func (c *Call) given(name string) bool {
	_, ok := c.Form.Get(name)
	return ok
}

// cancelAllOrders cancels all open orders of the account that match the filters. A filter is
// required: without parameters, a request would have the signature of every GET of the key.
func (c *Call) cancelAllOrders() {
	if err := c.commands.Cancelling(); err != nil {
		c.FailWith(err)
		return
	}
	f := c.cancelFilter()
	if c.failOnBadFields() {
		return
	}
	cmd, err := c.do(actors.NewCancelAll(c.Key, c.Nonce, f))
	switch {
	case err != nil:
		c.failCommand(err, event.ClientID{})
		return
	case cmd.Outcome() == actors.Refused && cmd.Record().Refusal.Reason != event.RefusedNoOrders:
		c.failRefused(cmd, orderShape{})
	default:
		b := append(c.body, `{"orders":[`...)
		for i, id := range cmd.CancelledOrders() {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendUint(b, id, 10)
		}
		c.body = append(b, "]}"...)
	}
	cmd.Free()
}

// cancelFilter reads which orders to cancel. It adds a field error for a bad or a missing filter.
func (c *Call) cancelFilter() actors.CancelFilter {
	filtered := c.given("pair") || c.given("type") || c.given(clientIDPrefix)
	noted := len(c.fields)
	if all := c.flag(&c.Form, "all"); !all && !filtered && len(c.fields) == noted {
		c.addError("all", FieldRequired)
	}
	return c.orderFilter()
}

// orderFilter reads filters of open orders. It adds a field error for each bad one.
func (c *Call) orderFilter() (f actors.CancelFilter) {
	if _, ok := c.Form.Get("pair"); ok {
		if text, ok := c.field("pair"); ok {
			if f.Pair = c.public.Pair(text); f.Pair == nil {
				c.addError("pair", FieldPair)
			}
		}
	}
	if _, ok := c.Form.Get("type"); ok {
		f.Side = c.orderSide()
	}
	if prefix, ok := c.Form.Get(clientIDPrefix); ok {
		f.Prefix = c.clientIDIn(clientIDPrefix, prefix)
	}
	return f
}

const clientIDPrefix = "client_order_id_prefix"
