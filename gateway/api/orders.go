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

// A step is a client's instruction to the engine in two halves. prepare reads its fields and makes
// its command, which changes nothing yet; finish answers with the command's outcome. A batch
// prepares many at once.
type step struct {
	prepare func(*Call) *actors.Command // nil: the call is answered
	finish  func(*Call, *actors.Command)
}

var (
	placing    = step{(*Call).prepareOrder, (*Call).finishOrder}
	amending   = step{(*Call).prepareAmend, (*Call).finishAmend}
	cancelling = step{(*Call).prepareCancel, (*Call).finishCancel}
)

// A target is the object of a command, for its answer.
type target struct {
	order    uint64         // to change; 0: the one with clientID, or a new one
	clientID event.ClientID // of it
	shape    orderShape     // of a new order
}

// An orderShape describes the order that a refusal is about.
type orderShape struct {
	side trading.Side
	pair string // name
}

func (c *Call) placeOrder()  { c.carryOut(&placing) }
func (c *Call) cancelOrder() { c.carryOut(&cancelling) }
func (c *Call) amendOrder()  { c.carryOut(&amending) }

// carryOut sends one command and answers with its outcome.
func (c *Call) carryOut(s *step) {
	may := c.commands.Writable
	if s == &cancelling {
		may = c.commands.Cancelling
	}
	if err := may(); err != nil {
		c.FailWith(err)
		return
	}
	cmd := s.prepare(c)
	if cmd == nil {
		return
	}
	cmd, err := c.do(cmd)
	c.end(s, cmd, err)
}

// do sends a command, and waits for its outcome.
func (c *Call) do(cmd *actors.Command) (*actors.Command, error) {
	return c.commands.Do(cmd.Through(c.Gate))
}

// end answers for a completed command, and frees it, or for one without an outcome.
func (c *Call) end(s *step, cmd *actors.Command, err error) {
	if err != nil {
		c.commandFailed(err, c.target.clientID)
		return
	}
	s.finish(c, cmd)
	cmd.Free()
}

func (c *Call) prepareOrder() *actors.Command {
	w, ok := c.checkedOrder()
	if !ok {
		return nil
	}
	c.target = target{clientID: w.ClientID, shape: orderShape{w.Side, w.Pair.Name}}
	return actors.NewOrder(c.Key, c.Nonce, &w)
}

func (c *Call) finishOrder(cmd *actors.Command) {
	if cmd.Outcome() == actors.Accepted {
		c.Status = 201
		c.body = appendPlaced(c.body, cmd.Record())
	} else {
		c.refused(cmd, c.target.shape)
	}
}

// checkedOrder reads an order, and checks it against all rules that need neither its wallet nor its
// book. False: the call is answered.
func (c *Call) checkedOrder() (w actors.OrderRequest, ok bool) {
	w = c.orderRequest()
	switch {
	case c.badFields():
	case w.Pair.Halted():
		c.Fail(PairHalted, w.Pair.Name)
	case w.Price == 0:
		ok = c.worstPrice(&w)
	default:
		ok = true
	}
	return w, ok
}

// orderRequest reads and checks the fields of an order. It records each bad field. A market order
// without a price has none yet.
func (c *Call) orderRequest() actors.OrderRequest {
	var w actors.OrderRequest
	if text, ok := c.field("pair"); ok {
		if w.Pair = c.public.Pair(text); w.Pair == nil {
			c.bad("pair", FieldPair)
		}
	}
	w.Side = c.orderSide()
	if c.instructed() {
		c.specialOrder(&w)
	} else {
		c.price(&w)
		c.amount(&w)
	}
	w.ClientID = c.clientID(&c.Form)
	return w
}

// orderSide reads the side of an order. It records a bad one.
func (c *Call) orderSide() (side trading.Side) {
	if text, ok := c.field("type"); ok {
		if side = sideOf(text); side == 0 {
			c.bad("type", fieldChoice+" It must be buy or sell.")
		}
	}
	return side
}

// price reads the price of an order. It records one that the pair does not take.
func (c *Call) price(w *actors.OrderRequest) {
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
	case w.Pair != nil:
		fault = w.Pair.PriceFault(p)
	}
	if fault != "" {
		c.bad("price", fault)
	}
	w.Price = p
}

// amount reads the amount of an order, after its price. It records one that the pair does not take.
func (c *Call) amount(w *actors.OrderRequest) {
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
	case w.Pair == nil:
	default:
		if fault = w.Pair.AmountFault(a); fault == "" && w.Price > 0 {
			fault = w.Pair.ValueFault(w.Price, a)
		}
	}
	if fault != "" {
		c.bad("amount", fault)
		return
	}
	w.Amount = a
}

// field returns the text of a required parameter of the body. It records a parameter that is
// missing or no scalar, and returns false.
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

// commandFailed answers for a command without an outcome.
func (c *Call) commandFailed(err error, id event.ClientID) {
	if !errors.Is(err, committed.ErrTimeout) {
		c.readFailed(err) // it reached no wallet, as a refused read
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

// refused answers for a command whose refusal is in the journal.
func (c *Call) refused(cmd *actors.Command, of orderShape) {
	switch reason := cmd.Record().Refusal.Reason; reason {
	case event.RefusedNonce:
		c.wrongNonce(cmd.LastNonce())
	case event.RefusedKey:
		c.Fail(Unauthenticated, "")
	case event.RefusedFunds:
		currency, missing := cmd.Shortfall()
		c.outOfFunds(cmd.Record().TimeUs, currency, missing)
	case event.RefusedClientID:
		c.idTaken(cmd.TakenBy())
	case event.RefusedAccountLimit:
		c.Fail(TooManyOpenOrders, "")
	case event.RefusedAccountBookLimit:
		c.Fail(TooManyInBook, of.pair)
	case event.RefusedBookLimit:
		c.Fail(BookFull, of.pair)
	case event.RefusedHalted:
		c.Fail(PairHalted, of.pair)
	case event.RefusedFrozen:
		c.Fail(AccountFrozen, "")
	case event.RefusedHeld:
		c.Fail(WithdrawalsHeld, heldUntil(cmd.HoldEndsUs()))
	case event.RefusedWithdrawalLimit:
		c.Fail(TooManyWithdrawals, "")
	default:
		if !c.refusedByMarket(cmd, of) {
			c.Cause = errors.New("BUG: a command was refused for reason " +
				strconv.Itoa(int(reason)))
			c.Fail(InternalError, "")
		}
	}
}

// refusedByMarket is refused for a book's reasons. False: it is none of them.
func (c *Call) refusedByMarket(cmd *actors.Command, of orderShape) bool {
	at := cmd.Record().TimeUs
	switch cmd.Record().Refusal.Reason {
	case event.RefusedPriceBand:
		c.beyondBand(at, of.side, cmd.Bound())
	case event.RefusedWouldTrade:
		c.forbid(WouldTrade, at, "")
	case event.RefusedWouldTrigger:
		c.forbid(WouldTrigger, at, cmd.Bound().String())
	case event.RefusedStopLimit:
		c.forbid(TooManyStops, at, of.pair)
	case event.RefusedGTDLimit:
		c.forbid(TooManyGTD, at, of.pair)
	default:
		return false
	}
	return true
}

// forbid answers that the market does not allow a command; about replaces the %s of the text.
func (c *Call) forbid(why *MarketRefusal, timeUs int64, about string) {
	b := encode.Seconds(append(c.body[:0], `{"date":`...), timeUs)
	b = encode.Text(append(b, `,"error":`...), why.About(about))
	b = append(append(append(b, `,"code":"`...), why.Code...), `"}`...)
	c.Status, c.body = 400, b
}

// beyondBand answers that the price of an order of a side is worse than the bound of its band.
func (c *Call) beyondBand(timeUs int64, side trading.Side, bound money.Price) {
	about := "most "
	if side == trading.Sell {
		about = "least "
	}
	c.forbid(PriceBand, timeUs, about+bound.String())
}

// outOfFunds answers that an account cannot pay for its order.
func (c *Call) outOfFunds(timeUs int64, currency uint16, missing money.Balance) {
	b := encode.Seconds(append(c.body[:0], `{"date":`...), timeUs)
	b = missing.Append(append(b, `,"error":"Out of balance -`...))
	b = append(append(append(b, ' '), c.public.CurrencyCode(currency)...), `"}`...)
	c.Status, c.body = 400, b
}

// idTaken answers that another order has the client order id.
func (c *Call) idTaken(by uint64) {
	c.bad(clientIDName, "Already used by order "+strconv.FormatUint(by, 10))
	c.badFields()
}

// prepareCancel makes the cancel of an open order, by its id or by the client order id.
func (c *Call) prepareCancel() *actors.Command {
	id, name := c.whichOrder()
	if c.badFields() {
		return nil
	}
	c.target = target{order: id, clientID: name}
	return actors.NewCancel(c.Key, c.Nonce, id, name)
}

func (c *Call) finishCancel(cmd *actors.Command) {
	rec := cmd.Record()
	switch {
	case cmd.Outcome() == actors.Accepted:
		c.body = append(strconv.AppendUint(append(c.body, `{"order":`...), rec.Cancel.Order, 10),
			'}')
	case rec.Refusal.Reason != event.RefusedNotOpen:
		c.refused(cmd, orderShape{})
	default:
		c.notOpen()
	}
}

// whichOrder reads the order of a command: its id, or without one the client order id. It records a
// bad one.
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

// notOpen answers why an order could not be changed, on the field that named it. The refusal is
// durable, so the order's row has the reason. No earlier request of this key can still place an
// order under the client order id.
func (c *Call) notOpen() {
	field, text := "order", "Order not found"
	if c.target.order == 0 {
		if field = clientIDName; !c.given(field) {
			field = clientIDAlias
		}
	}
	switch o, found, err := c.orderNamed(); {
	case err != nil:
		text = "Order is not open"
	case !found, slices.Contains(c.later, o.ID): // there was none when the wallet checked
	case o.Status == trading.StatusDone:
		text = "Order already done"
	case o.Status == trading.StatusCancelled:
		text = "Order already cancelled"
	}
	c.bad(field, text)
	c.badFields()
}

// orderNamed returns the order that the call's command names.
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

// cancelAllOrders cancels all open orders of the account that pass the filters. A filter is
// required, because a signature without any parameter is the signature of each GET of the key.
func (c *Call) cancelAllOrders() {
	if err := c.commands.Cancelling(); err != nil {
		c.FailWith(err)
		return
	}
	f := c.cancelFilter()
	if c.badFields() {
		return
	}
	cmd, err := c.do(actors.NewCancelAll(c.Key, c.Nonce, f))
	switch {
	case err != nil:
		c.commandFailed(err, event.ClientID{})
		return
	case cmd.Outcome() == actors.Refused && cmd.Record().Refusal.Reason != event.RefusedNoOrders:
		c.refused(cmd, orderShape{})
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

// cancelFilter reads which orders to cancel. It records a bad or a missing filter.
func (c *Call) cancelFilter() actors.CancelFilter {
	filtered := c.given("pair") || c.given("type") || c.given(clientIDPrefix)
	noted := len(c.fields)
	if all := c.flag(&c.Form, "all"); !all && !filtered && len(c.fields) == noted {
		c.bad("all", FieldRequired)
	}
	return c.orderFilter()
}

// orderFilter reads filters of open orders. It records bad ones.
func (c *Call) orderFilter() (f actors.CancelFilter) {
	if _, ok := c.Form.Get("pair"); ok {
		if text, ok := c.field("pair"); ok {
			if f.Pair = c.public.Pair(text); f.Pair == nil {
				c.bad("pair", FieldPair)
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
