package gateway

import (
	"errors"
	"strconv"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/gateway/api"
	"exchange/gateway/encode"
	"exchange/persistence"
)

func (g *Gateway) placeOrder(r *request) {
	if err := r.engine.Writable(); err != nil {
		r.engineFailed(err)
		return
	}
	w := r.orderWish()
	if r.badFields() {
		return
	}
	if w.Pair.Halted() {
		r.fail(PairHalted, w.Pair.Name)
		return
	}
	c, err := r.engine.Place(r.key, r.nonce, &w)
	if err != nil {
		r.commandFailed(err, w.ClientID)
		return
	}
	if c.Outcome() == actors.Accepted {
		r.status = 201
		r.body = appendPlaced(r.body, c.Record())
	} else {
		r.refused(c, &w)
	}
	c.Free()
}

// orderWish reads and checks the fields of an order; what is wrong is noted.
func (r *request) orderWish() actors.OrderWish {
	var w actors.OrderWish
	if text, ok := r.field("pair"); ok {
		if w.Pair = r.engine.Pair(text); w.Pair == nil {
			r.bad("pair", fieldPair)
		}
	}
	if text, ok := r.field("type"); ok {
		if w.Side = sideOf(text); w.Side == 0 {
			r.bad("type", fieldChoice+" It must be buy or sell.")
		}
	}
	if text, ok := r.field("price"); ok {
		p, err := money.ParsePrice(text)
		switch {
		case err != nil:
			r.bad("price", err.Error())
		case p == 0:
			r.bad("price", fieldPositive)
		case w.Pair != nil && !p.FitsDecimals(w.Pair.PricePrecision):
			r.bad("price", "At most "+strconv.Itoa(w.Pair.PricePrecision)+
				" fractional digits are possible.")
		}
		w.Price = p
	}
	if text, ok := r.field("amount"); ok {
		a, err := money.ParseAmount(text)
		switch {
		case err != nil:
			r.bad("amount", err.Error())
		case a == 0:
			r.bad("amount", fieldPositive)
		case w.Pair == nil:
		case !a.FitsDecimals(w.Pair.AmountPrecision):
			r.bad("amount", "At most "+strconv.Itoa(w.Pair.AmountPrecision)+
				" fractional digits are possible.")
		case a < w.Pair.MinimumOrderSize:
			r.bad("amount", "The smallest amount is "+w.Pair.MinimumOrderSize.String()+".")
		case a > w.Pair.MaximumOrderSize:
			r.bad("amount", "The largest amount is "+w.Pair.MaximumOrderSize.String()+".")
		case w.Price > 0 && w.Price.Times(a).Balance().Cmp(w.Pair.MinimumOrderValue) < 0:
			r.bad("amount", "price x amount must be at least "+w.Pair.MinimumOrderValue.String()+
				".")
		}
		w.Amount = a
	}
	w.ClientID = r.clientID(&r.form)
	return w
}

// field is the text of a required parameter of the body; false if it is missing or no scalar, which
// is noted.
func (r *request) field(name string) ([]byte, bool) {
	p, ok := r.form.Get(name)
	switch {
	case !ok:
		r.bad(name, fieldRequired)
	case !isScalar(p):
		r.bad(name, fieldNotScalar)
	default:
		return p.Value, true
	}
	return nil, false
}

// commandFailed answers for a command that has no outcome.
func (r *request) commandFailed(err error, id event.ClientID) {
	if !errors.Is(err, actors.ErrTimeout) {
		r.engineFailed(err)
		return
	}
	hint := " GET /api/v1/orders/own/ shows what there is."
	if !id.IsZero() {
		hint = " GET /api/v1/orders/own/?client_order_id=" + id.String() +
			" shows whether it is in."
	}
	r.fail(OutcomeUnknown, hint)
}

// appendPlaced writes the result of placing an order.
func appendPlaced(b []byte, rec *event.Record) []byte {
	o := &rec.Order
	remaining := o.Remaining
	if o.Cut {
		remaining = 0
	}
	b = encode.Side(append(b, `{"success":true,"type":`...), o.Side)
	b = encode.Seconds(append(b, `,"date":`...), rec.TimeUs)
	b = strconv.AppendUint(append(b, `,"oid":`...), o.ID, 10)
	b = o.Price.Append(append(b, `,"price":`...))
	b = remaining.Append(append(b, `,"amount":`...))
	b = (o.Amount - o.Remaining).Append(append(b, `,"amount_filled":`...))
	b = o.Amount.Append(append(b, `,"amount_original":`...))
	if o.Cut { // it met as many orders as one order may: the rest was cancelled
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
func (r *request) refused(c *actors.Command, w *actors.OrderWish) {
	switch c.Record().Refusal.Reason {
	case event.RefusedNonce:
		r.wrongNonce(c.LastNonce())
	case event.RefusedKey:
		r.fail(Unauthenticated, "")
	case event.RefusedFunds:
		currency, missing := c.Shortfall()
		b := encode.Seconds(append(r.body, `{"date":`...), c.Record().TimeUs)
		b = missing.Append(append(b, `,"error":"Out of balance -`...))
		b = append(append(append(b, ' '), r.engine.CurrencyCode(currency)...), `"}`...)
		r.status, r.body = 400, b
	case event.RefusedClientID:
		r.clientIDTaken(w.ClientID)
	case event.RefusedAccountLimit:
		r.fail(TooManyOpenOrders, "")
	case event.RefusedAccountBookLimit:
		r.fail(TooManyInBook, w.Pair.Name)
	case event.RefusedBookLimit:
		r.fail(BookFull, w.Pair.Name)
	case event.RefusedHalted:
		r.fail(PairHalted, w.Pair.Name)
	case event.RefusedFrozen:
		r.fail(AccountFrozen, "")
	case event.RefusedWithdrawLimit:
		r.fail(TooManyWithdraws, "")
	default:
		r.internal(errors.New("BUG: a command was refused for reason " + strconv.Itoa(
			int(c.Record().Refusal.Reason))))
	}
}

// clientIDTaken says which order has the id. The refusal is durable: whatever happens to this
// look-up, the answer is not one that asks for a repeat.
func (r *request) clientIDTaken(id event.ClientID) {
	q := actors.NewRead(actors.ReadClientID)
	q.Account, q.ClientID, q.FollowUp = r.key.Account.ID, id, true
	text := "Already used by another order."
	if r.engine.Ask(q, nil, 0) == nil {
		if q.ID != 0 {
			text = "Already used by order " + strconv.FormatUint(q.ID, 10)
		}
		q.Free()
	}
	r.bad("client_order_id", text)
	r.badFields()
}

func (g *Gateway) cancelOrder(r *request) {
	if err := r.engine.Writable(); err != nil {
		r.engineFailed(err)
		return
	}
	var id uint64
	if text, ok := r.field("order"); ok {
		if id, ok = api.Integer(text); !ok || id == 0 {
			r.bad("order", fieldInteger)
		}
	}
	if r.badFields() {
		return
	}
	c, err := r.engine.Cancel(r.key, r.nonce, id)
	if err != nil {
		r.commandFailed(err, event.ClientID{})
		return
	}
	rec := c.Record()
	switch {
	case c.Outcome() == actors.Accepted:
		r.body = append(strconv.AppendUint(append(r.body, `{"order":`...), rec.Cancel.Order, 10),
			'}')
	case rec.Refusal.Reason == event.RefusedNotOpen:
		r.notCancelled(id)
	default:
		r.refused(c, nil)
	}
	c.Free()
}

// notCancelled says why an order could not be cancelled, as its row tells now that the refusal is
// durable.
func (r *request) notCancelled(id uint64) {
	o, err := r.closedLately(id)
	text := "Order not found"
	switch {
	case err != nil:
		text = "Order is not open"
	case o == nil:
	case o.Status == persistence.StatusDone:
		text = "Order already done"
	case o.Status == persistence.StatusCancelled:
		text = "Order already cancelled"
	}
	r.bad("order", text)
	r.badFields()
}

// closedLately is an order of the request's account, to complete the answer to a command; nil:
// there is none.
func (r *request) closedLately(id uint64) (*persistence.Order, error) {
	if err := r.engine.BeginRead(true); err != nil {
		return nil, err
	}
	defer r.engine.EndRead(true)
	q := actors.NewRead(actors.ReadOrder)
	q.ID, q.Account = id, r.key.Account.ID
	if err := r.engine.AskWithin(q, nil, 0); err != nil {
		return nil, err
	}
	defer q.Free()
	if len(q.Orders) > 0 {
		row := q.Orders[0]
		return &row, nil
	}
	return r.closedOrder(id)
}

// cancelAllOrders cancels all open orders of the account, or those of one pair. It must say which:
// without any parameter its signature would be that of every GET of the key.
func (g *Gateway) cancelAllOrders(r *request) {
	if err := r.engine.Writable(); err != nil {
		r.engineFailed(err)
		return
	}
	var pair *directory.Pair
	_, one := r.form.Get("pair")
	if _, all := r.form.Get("all"); all || !one {
		if text, ok := r.field("all"); ok && string(text) != "1" {
			r.bad("all", fieldChoice+" It must be 1.")
		}
	}
	if one {
		if text, ok := r.field("pair"); ok {
			if pair = r.engine.Pair(text); pair == nil {
				r.bad("pair", fieldPair)
			}
		}
	}
	if r.badFields() {
		return
	}
	c, err := r.engine.CancelAll(r.key, r.nonce, pair)
	switch {
	case err != nil:
		r.commandFailed(err, event.ClientID{})
		return
	case c.Outcome() == actors.Refused && c.Record().Refusal.Reason != event.RefusedNoOrders:
		r.refused(c, nil)
	default:
		b := append(r.body, `{"orders":[`...)
		for i, id := range c.Cancelled() {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendUint(b, id, 10)
		}
		r.body = append(b, "]}"...)
	}
	c.Free()
}
