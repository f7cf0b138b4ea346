package api

import (
	"errors"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/gateway/encode"
)

// Limits of the lists of deposits and withdrawals.
const (
	DefaultTransfers = 100
	MaxTransfers     = 1000
)

func (c *Call) deposits() {
	q := committed.DepositQuery{Currency: c.everCurrency("currency_id"), Before: c.before(),
		Offset: c.offset(), Limit: c.limit("limit", DefaultTransfers, MaxTransfers)}
	if c.failOnBadFields() {
		return
	}
	list, err := c.public.Deposits(c.readingClient(), q)
	answerRows(c, list, err, func(b []byte, d *committed.Deposit) []byte {
		return AppendDeposit(b, c.public, d)
	})
}

func (c *Call) withdrawals() {
	q := committed.WithdrawalQuery{Currency: c.everCurrency("currency_id"),
		Status: c.withdrawalStatus(), Before: c.before(), Offset: c.offset(),
		Limit: c.limit("limit", DefaultTransfers, MaxTransfers)}
	if c.failOnBadFields() {
		return
	}
	list, err := c.public.Withdrawals(c.readingClient(), q)
	answerRows(c, list, err, func(b []byte, w *committed.Withdrawal) []byte {
		return AppendWithdrawal(b, c.public, w)
	})
}

// withdrawalStatus returns the parameter status, 0 without it.
func (c *Call) withdrawalStatus() uint8 {
	p, ok := c.Query.Get("status")
	if !ok {
		return 0
	}
	switch n, _ := Integer(p.Value); n {
	case 10, 20, 30, 40, 50:
		return uint8(n)
	}
	c.addError("status", fieldChoice+" It must be 10, 20, 30, 40 or 50.")
	return 0
}

// appendWithdrawal writes a withdrawal as in all endpoints. An adjustment has the status of a
// withdrawal that has left the balance, because clients have no other, and a mark.
func appendWithdrawal(b []byte, w *committed.Withdrawal, currency string) []byte {
	status, adjusted := w.Status, w.Status == event.WithdrawalAdjusted
	if adjusted {
		status = event.WithdrawalApproved
	}
	b = strconv.AppendUint(append(b, `{"id":`...), w.ID, 10)
	b = encode.Seconds(append(b, `,"timestamp":`...), w.TimeUs)
	b = encode.Text(append(b, `,"currency":`...), currency)
	b = w.Amount.Append(append(b, `,"amount":`...))
	b = strconv.AppendUint(append(b, `,"status":`...), uint64(status), 10)
	b = encode.Text(append(b, `,"address":`...), w.Address)
	if adjusted {
		b = append(b, `,"adjustment":true`...)
	}
	if w.Details != "" {
		b = encode.Text(append(b, `,"details":`...), w.Details)
	}
	if w.ClientID != "" {
		b = append(append(append(b, `,"client_id":"`...), w.ClientID...), '"')
	}
	return append(b, '}')
}

func (c *Call) withdrawal() {
	if err := c.commands.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	if err := c.commands.MailEnabled(); err != nil {
		c.FailWith(err)
		return
	}
	currency, amount := c.withdrawalMoney()
	address := c.withdrawalAddress(&currency)
	var clientID event.ClientID
	if p, ok := c.Form.Get(withdrawalIDName); ok {
		clientID = c.clientIDIn(withdrawalIDName, p)
	}
	if c.failOnBadFields() {
		return
	}
	if !c.Key.Account.HasEmail() {
		c.Fail(NoEmail, "")
		return
	}
	cmd, err := c.do(actors.NewWithdrawal(c.Key, c.Nonce, currency.Number, amount,
		address).WithClientID(clientID))
	if errors.Is(err, committed.ErrTimeout) && !clientID.IsZero() {
		c.Fail(OutcomeUnknown, " Sent again with the same client_id, it is not asked for twice.")
		return
	}
	if err != nil {
		c.failWithdrawal(err)
		return
	}
	if cmd.Outcome() == actors.Accepted {
		w := &cmd.Record().Withdrawal
		c.Status = 201
		c.body = appendWithdrawal(c.body,
			&committed.Withdrawal{ID: w.ID, Amount: w.Amount, Status: event.WithdrawalNew,
				TimeUs: cmd.Record().TimeUs, Address: w.Address,
				ClientID: w.ClientID.String()}, currency.Code)
	} else if cmd.Record().Refusal.Reason == event.RefusedWithdrawalID {
		c.refuseField(withdrawalIDName,
			"Already used by withdraw "+strconv.FormatUint(cmd.TakenBy(), 10))
	} else {
		c.failRefused(cmd, orderShape{})
	}
	cmd.Free()
}

// withdrawalIDName is the field with a client's own id of a withdrawal.
const withdrawalIDName = "client_id"

// withdrawalMoney reads the fields currency and amount.
func (c *Call) withdrawalMoney() (currency directory.Currency, amount money.Amount) {
	if text, ok := c.field("currency"); ok {
		if known := c.public.Currency(text); known != nil {
			currency = *known
		} else {
			c.addError("currency", FieldCurrency)
		}
	}
	if text, ok := c.field("amount"); ok {
		var err error
		amount, err = money.ParseAmount(text)
		switch {
		case err != nil:
			c.addError("amount", err.Error())
		case amount == 0:
			c.addError("amount", FieldPositive)
		case amount < currency.MinimumWithdrawal:
			c.addError("amount", "The smallest amount is "+currency.MinimumWithdrawal.String()+".")
		}
	}
	return currency, amount
}

// withdrawalAddress reads the field address, for a currency whose code is "" if unknown.
func (c *Call) withdrawalAddress(currency *directory.Currency) string {
	b, ok := c.field("address")
	switch {
	case !ok:
	case !actors.ValidAddress(b):
		c.addError("address", fieldAddress)
	case currency.Addresses != nil && !currency.Addresses.Match(b):
		c.addError("address", "This is not an address of "+currency.Code+".")
	default:
		return string(b)
	}
	return ""
}

// text returns a required text of the body without control characters, of at most most bytes.
func (c *Call) text(name string, most int) string {
	b, ok := c.field(name)
	if !ok {
		return ""
	}
	valid := len(b) > 0 && len(b) <= most && utf8.Valid(b)
	for _, cmd := range string(b) {
		valid = valid && !unicode.IsControl(cmd)
	}
	if !valid {
		c.addError(name, "A text of 1 to "+strconv.Itoa(most)+
			" bytes without control characters is required.")
		return ""
	}
	return string(b)
}

func (c *Call) failWithdrawal(err error) {
	if errors.Is(err, committed.ErrTimeout) {
		c.Fail(OutcomeUnknown, " GET /api/v1/withdraws/ shows what there is.")
		return
	}
	c.FailWith(err)
}

// MaxCode bounds a compared code, in bytes.
const MaxCode = 64

func (c *Call) confirmWithdrawal() {
	if err := c.commands.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	id, code := c.withdrawalID(), c.text("code", MaxCode)
	if c.failOnBadFields() {
		return
	}
	cmd, err := c.do(actors.NewConfirmation(c.Key, c.Nonce, id, code))
	c.answerWithdrawal(id, cmd, err)
}

func (c *Call) cancelWithdrawal() {
	if err := c.commands.Cancelling(); err != nil {
		c.FailWith(err)
		return
	}
	id := c.withdrawalID()
	if c.failOnBadFields() {
		return
	}
	cmd, err := c.do(actors.NewWithdrawalCancel(c.Key, c.Nonce, id))
	c.answerWithdrawal(id, cmd, err)
}

func (c *Call) withdrawalID() (id uint64) {
	if text, ok := c.field("withdraw"); ok {
		if id, ok = Integer(text); !ok || id == 0 {
			c.addError("withdraw", FieldInteger)
		}
	}
	return id
}

// answerWithdrawal writes the changed withdrawal, or the reason why it did not change.
func (c *Call) answerWithdrawal(id uint64, cmd *actors.Command, err error) {
	if err != nil {
		c.failWithdrawal(err)
		return
	}
	rec := cmd.Record()
	switch {
	case cmd.Outcome() == actors.Accepted:
		w := committed.WithdrawalRow(cmd.Withdrawal())
		c.body = appendWithdrawal(c.body, &w, c.public.CurrencyCode(w.Currency))
	case rec.Kind == event.KindCodeRefused && rec.CodeRefused.Expired:
		c.refuseField("code", "Code expired")
	case rec.Kind == event.KindCodeRefused:
		c.refuseField("code", "Wrong code")
	case rec.Refusal.Reason == event.RefusedTries:
		c.refuseField("code", "Too many tries")
	case rec.Refusal.Reason == event.RefusedWithdrawal:
		c.failNotPending(id)
	default:
		c.failRefused(cmd, orderShape{})
	}
	cmd.Free()
}

func (c *Call) refuseField(name, text string) {
	c.addError(name, text)
	c.failOnBadFields()
}

// failNotPending writes why a withdrawal could not be changed. The refusal is durable, so the
// withdrawal's row shows the reason.
func (c *Call) failNotPending(id uint64) {
	w, found, err := c.public.WithdrawalOf(id)
	text := "Withdraw is not pending"
	switch {
	case err != nil:
	case !found || w.Account != c.Key.Account.ID:
		text = "Withdraw not found"
	default:
		text = "Withdraw is " + event.WithdrawalStatusName(w.Status)
	}
	c.refuseField("withdraw", text)
}

// fees writes the account's rates for each pair.
func (c *Call) fees() {
	q := new(committed.Fees)
	if err := c.public.Ask(q, c.Key, c.Nonce); err != nil {
		c.failRead(err)
		return
	}
	b := append(c.body, '[')
	for i, p := range c.public.Pairs() {
		rates, own := q.Own[p.Number]
		if !own {
			rates = p.Rules().Fees
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Text(append(b, `{"pair":`...), p.Name)
		b = rates.Maker.Append(append(b, `,"maker":`...))
		b = append(rates.Taker.Append(append(b, `,"taker":`...)), '}')
	}
	c.body = append(b, ']')
}

// heldUntil returns the end of a hold, in whole seconds.
func heldUntil(us int64) string {
	end := time.UnixMicro(us)
	if whole := end.Truncate(time.Second); whole.Before(end) {
		end = whole.Add(time.Second)
	}
	return end.UTC().Format(time.RFC3339)
}
