package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
)

// An adjustmentAnswer is an adjustment, with the balance after it.
type adjustmentAnswer struct {
	Adjustment uint64        `json:"adjustment" doc:"Id of the correction"`
	Account    string        `json:"account"`
	Currency   string        `json:"currency"`
	Amount     json.Number   `json:"amount" max:"0" doc:"Amount, below 0"`
	Balance    money.Balance `json:"balance" doc:"The balance after it"`
	Reference  string        `json:"reference"`
	Reason     string        `json:"reason"`
	Repeated   bool          `json:"repeated,omitempty"`
}

// An adjustment is the request for one.
type adjustment struct {
	Account   string `json:"account" need:"yes" doc:"Name of the account"`
	Currency  string `json:"currency" need:"yes" doc:"Code of the currency"`
	Reference string `json:"reference,omitempty" most:"MaxClientID"`
	Reason    string `json:"reason" need:"yes" most:"MaxDetails"`
	Amount    Number `json:"amount" need:"yes" doc:"Amount, below 0: a correction only takes money"`

	amount    money.Amount // that the account loses
	reference event.ClientID
	account   uint32
	currency  uint16
}

// check checks the fields, and resolves the names in them.
func (q *adjustment) check(c *call) (err error) {
	size, down := strings.CutPrefix(string(q.Amount), "-")
	if q.amount, err = money.ParseAmount(size); err != nil {
		return &badRequest{"amount: " + err.Error()}
	}
	switch {
	case !down || q.amount == 0:
		return &badRequest{fmt.Sprintf("amount: %.80q is not below 0, and an adjustment only "+
			"takes money: to credit an account use a deposit (exchange deposit)", q.Amount)}
	case q.Reason == "" || len(q.Reason) > actors.MaxDetails:
		return &badRequest{fmt.Sprintf("reason: required, 1 to %d bytes; the owner receives it",
			actors.MaxDetails)}
	}
	if err := line("reason", q.Reason); err != nil {
		return err
	}
	if q.Reference == "" {
		q.Reference = random(18)
	}
	if q.reference, err = event.NewClientID(q.Reference); err != nil {
		return &badRequest{"reference: " + err.Error()}
	}
	currency := c.engine.Currency([]byte(q.Currency))
	if currency == nil {
		return &badRequest{c.engine.NoCurrency(q.Currency)}
	}
	q.currency = currency.Number
	q.account, err = c.account(q.Account)
	return err
}

// adjust takes available money out of an account. An adjustment with the same reference and content
// is made once, so a repeat is safe.
func adjust(c *call, q *adjustment) (*adjustmentAnswer, error) {
	if err := q.check(c); err != nil {
		return nil, err
	}
	command, err := c.engine.Adjust(c.operator, q.account, q.currency, q.amount, q.Reason,
		q.reference)
	switch {
	case errors.Is(err, committed.ErrTimeout):
		return nil, fmt.Errorf("outcome unknown: the adjustment may or may not have been made; "+
			"repeat it with the reference %q, which is safe", q.Reference)
	case err != nil:
		return nil, err
	}
	defer command.Free()
	if command.Outcome() == actors.Accepted {
		return q.answer(c, command.Withdrawal().ID, false)
	}
	if command.Record().Refusal.Reason == event.RefusedWithdrawalID {
		return q.repeated(c, command.TakenBy())
	}
	_, missing := command.Shortfall()
	available := q.amount.Balance().Sub(missing)
	return nil, &badRequest{fmt.Sprintf("account %s has %v %s available, and %v were to be taken: "+
		"what open orders and pending withdrawals hold cannot be, unless they are cancelled or "+
		"refused", q.Account, available, q.Currency, q.amount)}
}

// repeated answers a request whose reference already belongs to an adjustment or a withdrawal of
// the account.
func (q *adjustment) repeated(c *call, id uint64) (*adjustmentAnswer, error) {
	w, found, err := c.engine.WithdrawalOf(id)
	switch {
	case err != nil:
		return nil, err
	case !found || w.Status != event.WithdrawalAdjusted || w.Currency != q.currency ||
		w.Amount != q.amount || w.Details != q.Reason:
		return nil, &badRequest{fmt.Sprintf("reference %q belongs to %d of account %s, which is "+
			"another adjustment or withdraw", q.Reference, id, q.Account)}
	}
	return q.answer(c, id, true)
}

func (q *adjustment) answer(c *call, id uint64, repeated bool) (*adjustmentAnswer, error) {
	a := &adjustmentAnswer{Adjustment: id, Account: q.Account, Currency: q.Currency,
		Amount: json.Number("-" + q.amount.String()), Reference: q.Reference, Reason: q.Reason,
		Repeated: repeated}
	w := &committed.Wallet{Account: q.account}
	if err := c.ask(w); err != nil {
		//nolint:errorlint // the adjustment was made, whatever the cause
		return nil, fmt.Errorf("adjustment %d was made, with the reference %q, but the balance "+
			"cannot be read: %v", id, q.Reference, err)
	}
	for _, h := range w.Holdings {
		if h.Currency == q.currency {
			a.Balance = h.Balance
		}
	}
	return a, nil
}
