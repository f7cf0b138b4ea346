package gateway

import (
	"context"
	"errors"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/gateway/api"
	"exchange/gateway/encode"
	"exchange/persistence"
)

// Limits of the lists of deposits and withdraws.
const (
	defaultTransfers = 100
	maxTransfers     = 1000
)

func (g *Gateway) deposits(r *request) {
	q := persistence.DepositQuery{Account: r.key.Account.ID,
		Currency: r.currencyNumber("currency_id"), Before: r.before(), Offset: r.offset()}
	limit := r.limit("limit", defaultTransfers, maxTransfers)
	if r.badFields() {
		return
	}
	barrier := actors.NewRead(actors.ReadHistory)
	if !r.ask(barrier, r.key) {
		return
	}
	defer barrier.Free()
	ctx, cancel := r.storeContext()
	defer cancel()
	b, n := append(r.body, '['), 0
	err := r.engine.History().Deposits(ctx, q, func(d *persistence.Deposit) bool {
		if n > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, `{"id":`...), d.ID, 10)
		b = encode.Seconds(append(b, `,"timestamp":`...), d.TimeUs)
		b = encode.Text(append(b, `,"currency":`...), r.engine.CurrencyCode(d.Currency))
		b = append(d.Amount.Append(append(b, `,"amount":`...)), '}')
		n++
		return n < limit
	})
	if r.body = append(b, ']'); err != nil {
		r.storeFailed(err)
	}
}

// withdraws merges the pending ones, from the committed state, with those that came to their end,
// from the history up to the same sequence.
func (g *Gateway) withdraws(r *request) {
	closed := persistence.WithdrawQuery{Account: r.key.Account.ID,
		Currency: r.currencyNumber("currency_id"), Status: r.withdrawStatus(), Before: r.before()}
	skip, left := r.offset(), r.limit("limit", defaultTransfers, maxTransfers)
	if r.badFields() {
		return
	}
	q := actors.NewRead(actors.ReadWithdraws)
	// there may be more than the limit that counts now
	q.Currency, q.Before, q.Limit = closed.Currency, closed.Before, math.MaxInt
	if !r.ask(q, r.key) {
		return
	}
	defer q.Free()
	closed.MaxSeq = q.Seq
	var pending []persistence.Withdraw
	for i := range q.Withdraws {
		if w := row(&q.Withdraws[i]); closed.Status == 0 || w.Status == closed.Status {
			pending = append(pending, w)
		}
	}
	b := append(r.body, '[')
	err := r.mergeWithdraws(pending, closed, func(w *persistence.Withdraw) bool {
		if skip > 0 {
			skip--
			return true
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendWithdraw(b, w, r.engine.CurrencyCode(w.Currency))
		left--
		return left > 0
	})
	if r.body = append(b, ']'); err != nil {
		r.storeFailed(err)
	}
}

// mergeWithdraws gives both lists to add, in order of their ids, until it returns false.
func (r *request) mergeWithdraws(pending []persistence.Withdraw, closed persistence.WithdrawQuery,
	add func(*persistence.Withdraw) bool) error {
	more := true
	if closed.Status == 0 || closed.Status > event.WithdrawVerified {
		ctx, cancel := r.storeContext()
		defer cancel()
		err := r.engine.History().Withdraws(ctx, closed, func(w *persistence.Withdraw) bool {
			for more && len(pending) > 0 && pending[0].ID > w.ID {
				more = add(&pending[0])
				pending = pending[1:]
			}
			more = more && add(w)
			return more
		})
		if err != nil {
			return err
		}
	}
	for i := 0; more && i < len(pending); i++ {
		more = add(&pending[i])
	}
	return nil
}

// row is a pending withdraw in the form of the history.
func row(w *state.Withdraw) persistence.Withdraw {
	return persistence.Withdraw{ID: w.ID, Account: w.Account, Currency: w.Currency,
		Amount: w.Amount, Status: w.Status, TimeUs: w.TimeUs,
		Address: w.Address, Details: w.Details}
}

// withdrawStatus is the parameter status, 0 if it is not there.
func (r *request) withdrawStatus() uint8 {
	p, ok := r.query.Get("status")
	if !ok {
		return 0
	}
	switch string(p.Value) {
	case "10", "20", "30", "40", "50":
		n, _ := api.Integer(p.Value)
		return uint8(n)
	}
	r.bad("status", fieldChoice+" It must be 10, 20, 30, 40 or 50.")
	return 0
}

// appendWithdraw writes a Withdraw as all endpoints show it.
func appendWithdraw(b []byte, w *persistence.Withdraw, currency string) []byte {
	b = strconv.AppendUint(append(b, `{"id":`...), w.ID, 10)
	b = encode.Seconds(append(b, `,"timestamp":`...), w.TimeUs)
	b = encode.Text(append(b, `,"currency":`...), currency)
	b = w.Amount.Append(append(b, `,"amount":`...))
	b = strconv.AppendUint(append(b, `,"status":`...), uint64(w.Status), 10)
	b = encode.Text(append(b, `,"address":`...), w.Address)
	if w.Details != "" {
		b = encode.Text(append(b, `,"details":`...), w.Details)
	}
	return append(b, '}')
}

func (g *Gateway) withdraw(r *request) {
	if err := r.engine.Writable(); err != nil {
		r.engineFailed(err)
		return
	}
	if err := r.engine.Mails(); err != nil {
		r.engineFailed(err)
		return
	}
	currency, amount := r.withdrawMoney()
	address := r.withdrawAddress(&currency)
	if r.badFields() {
		return
	}
	if !r.key.Account.HasEmail {
		r.fail(NoEmail, "")
		return
	}
	c, err := r.engine.Withdraw(r.key, r.nonce, currency.Number, amount, address)
	if err != nil {
		r.withdrawUnknown(err)
		return
	}
	if c.Outcome() == actors.Accepted {
		w := &c.Record().Withdraw
		r.status = 201
		r.body = appendWithdraw(r.body,
			&persistence.Withdraw{ID: w.ID, Amount: w.Amount, Status: event.WithdrawNew,
				TimeUs: c.Record().TimeUs, Address: w.Address}, currency.Code)
	} else {
		r.refused(c, nil)
	}
	c.Free()
}

// withdrawMoney reads the fields currency and amount.
func (r *request) withdrawMoney() (currency directory.Currency, amount money.Amount) {
	if text, ok := r.field("currency"); ok {
		if c := r.engine.Currency(text); c != nil {
			currency = *c
		} else {
			r.bad("currency", fieldCurrency)
		}
	}
	if text, ok := r.field("amount"); ok {
		var err error
		amount, err = money.ParseAmount(text)
		switch {
		case err != nil:
			r.bad("amount", err.Error())
		case amount == 0:
			r.bad("amount", fieldPositive)
		case amount < currency.MinimumWithdraw:
			r.bad("amount", "The smallest amount is "+currency.MinimumWithdraw.String()+".")
		}
	}
	return currency, amount
}

// withdrawAddress reads the field address, for a currency whose code is "" if it is not known.
func (r *request) withdrawAddress(currency *directory.Currency) string {
	b, ok := r.field("address")
	switch {
	case !ok:
	case !actors.ValidAddress(b):
		r.bad("address", fieldAddress)
	case currency.Addresses != nil && !currency.Addresses.Match(b):
		r.bad("address", "This is not an address of "+currency.Code+".")
	default:
		return string(b)
	}
	return ""
}

// text reads a required text of the body without control characters, of at most so many bytes.
func (r *request) text(name string, most int) string {
	b, ok := r.field(name)
	if !ok {
		return ""
	}
	valid := len(b) > 0 && len(b) <= most && utf8.Valid(b)
	for _, c := range string(b) {
		valid = valid && !unicode.IsControl(c)
	}
	if !valid {
		r.bad(name, "A text of 1 to "+strconv.Itoa(most)+
			" bytes without control characters is required.")
		return ""
	}
	return string(b)
}

func (r *request) withdrawUnknown(err error) {
	if errors.Is(err, actors.ErrTimeout) {
		r.fail(OutcomeUnknown, " GET /api/v1/withdraws/ shows what there is.")
		return
	}
	r.engineFailed(err)
}

// maxCode bounds the text of a code that is compared.
const maxCode = 64

func (g *Gateway) confirmWithdraw(r *request) {
	if err := r.engine.Writable(); err != nil {
		r.engineFailed(err)
		return
	}
	id, code := r.withdrawID(), r.text("code", maxCode)
	if r.badFields() {
		return
	}
	c, err := r.engine.ConfirmWithdraw(r.key, r.nonce, id, code)
	r.withdrawMoved(id, c, err)
}

func (g *Gateway) cancelWithdraw(r *request) {
	if err := r.engine.Writable(); err != nil {
		r.engineFailed(err)
		return
	}
	id := r.withdrawID()
	if r.badFields() {
		return
	}
	c, err := r.engine.CancelWithdraw(r.key, r.nonce, id)
	r.withdrawMoved(id, c, err)
}

func (r *request) withdrawID() (id uint64) {
	if text, ok := r.field("withdraw"); ok {
		if id, ok = api.Integer(text); !ok || id == 0 {
			r.bad("withdraw", fieldInteger)
		}
	}
	return id
}

// withdrawMoved answers with the record as it is after a change, or why there was none.
func (r *request) withdrawMoved(id uint64, c *actors.Command, err error) {
	if err != nil {
		r.withdrawUnknown(err)
		return
	}
	rec := c.Record()
	switch {
	case c.Outcome() == actors.Accepted:
		w := row(c.Withdraw())
		r.body = appendWithdraw(r.body, &w, r.engine.CurrencyCode(w.Currency))
	case rec.Kind == event.KindCodeRefused && rec.CodeRefused.Expired:
		r.refuseField("code", "Code expired")
	case rec.Kind == event.KindCodeRefused:
		r.refuseField("code", "Wrong code")
	case rec.Refusal.Reason == event.RefusedTries:
		r.refuseField("code", "Too many tries")
	case rec.Refusal.Reason == event.RefusedWithdraw:
		r.withdrawNotMoved(id)
	default:
		r.refused(c, nil)
	}
	c.Free()
}

func (r *request) refuseField(name, text string) {
	r.bad(name, text)
	r.badFields()
}

// withdrawRow is any withdraw, as it is when everything that was answered so far is known.
func withdrawRow(e *actors.Engine, id uint64) (*persistence.Withdraw, error) {
	if err := e.BeginRead(true); err != nil {
		return nil, err
	}
	defer e.EndRead(true)
	q := actors.NewRead(actors.ReadWithdraw)
	q.ID = id
	if err := e.AskWithin(q, nil, 0); err != nil {
		return nil, err
	}
	if len(q.Withdraws) > 0 {
		w := row(&q.Withdraws[0])
		q.Free()
		return &w, nil
	}
	q.Free()
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	w, err := e.History().Withdraw(ctx, id)
	return &w, err
}

// withdrawNotMoved says why a withdraw could not be changed, as its row tells now that the refusal
// is durable.
func (r *request) withdrawNotMoved(id uint64) {
	w, err := withdrawRow(r.engine, id)
	text := "Withdraw is not pending"
	switch {
	case errors.Is(err, persistence.ErrNotFound) || err == nil && w.Account != r.key.Account.ID:
		text = "Withdraw not found"
	case err == nil:
		text = "Withdraw is " + event.WithdrawStatusName(w.Status)
	}
	r.refuseField("withdraw", text)
}

// fees are the rates that count for the account, for every pair.
func (g *Gateway) fees(r *request) {
	q := actors.NewRead(actors.ReadFees)
	if !r.ask(q, r.key) {
		return
	}
	b := append(r.body, '[')
	for i, p := range r.engine.Pairs() {
		rates, own := q.Fees[p.Number]
		if !own {
			rates = p.Fees
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Text(append(b, `{"pair":`...), p.Name)
		b = rates.Maker.Append(append(b, `,"maker":`...))
		b = append(rates.Taker.Append(append(b, `,"taker":`...)), '}')
	}
	r.body = append(b, ']')
	q.Free()
}
