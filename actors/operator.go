package actors

import (
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
)

// Operators' commands have no nonce, and run during maintenance. Their records carry the operator's
// name. An error is a *RequestError if the request is refused, an error of admission, or
// ErrTimeout.

// askRegistry sends an operator's command through the registry.
func (e *Engine) askRegistry(kind event.Kind, operator string, decide decider,
	a Admin) (Admin, error) {
	return e.toRegistry(kind, operator, decide, a)()
}

// toRegistry is askRegistry without the wait: the caller waits with the returned function.
func (e *Engine) toRegistry(kind event.Kind, operator string, decide decider,
	a Admin) func() (Admin, error) {
	c := newCommand(kind)
	c.admin, c.operator, c.decide = a, operator, decide
	if err := e.admitOperator(c); err != nil {
		c.Free()
		err = e.CountRefusal(err)
		return func() (Admin, error) { return a, err }
	}
	e.registry.enter(c)
	return func() (Admin, error) {
		if _, err := e.outcome(c); err != nil {
			return a, err
		}
		defer c.Free()
		return c.admin, c.adminErr
	}
}

// askWallet sends an operator's command through an account's wallet.
func (e *Engine) askWallet(c *Command, operator string, account uint32) (*Command, error) {
	if err := e.sendToWallet(c, operator, account); err != nil {
		return nil, err
	}
	return e.outcome(c)
}

func (e *Engine) sendToWallet(c *Command, operator string, account uint32) error {
	c.account, c.operator = e.dir.Account(account), operator
	if err := e.admitOperator(c); err != nil {
		c.Free()
		return e.CountRefusal(err)
	}
	e.toWallet(c.account, c)
	return nil
}

// OperatorCancel cancels an open order of any account. The caller must Free the command.
// RefusedNotOpen: the order closed meanwhile.
func (e *Engine) OperatorCancel(operator string, order uint64) (*Command, error) {
	q := &committed.OwnerOf{Order: order}
	if err := e.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	if q.Account == 0 {
		return nil, requestErrorf("order %d is not open", order)
	}
	c := newCommand(event.KindCancel)
	c.order.id = order
	return e.askWallet(c, operator, q.Account)
}

// Adjust takes available money out of an account, as a correction; its owner sees the reason. The
// caller must Free the command, whose Withdrawal describes the adjustment. RefusedFunds, with its
// Shortfall: less is available. RefusedWithdrawalID: TakenBy has the reference.
func (e *Engine) Adjust(operator string, account uint32, currency uint16, amount money.Amount,
	reason string, reference event.ClientID) (*Command, error) {
	if amount < 1 || reason == "" || len(reason) > MaxDetails || reference.IsZero() {
		return nil, requestErrorf("an adjustment is of an amount above 0, with a reference and a "+
			"reason of at most %d bytes", MaxDetails)
	}
	c := newCommand(event.KindAdjusted)
	c.withdrawal = withdrawalRequest{currency: currency, amount: amount, details: reason,
		clientID: reference}
	return e.askWallet(c, operator, account)
}

// SetWithdrawalStatus approves or refuses a withdrawal; its owner sees the details: the reason of a
// refusal, or the paying transaction. The caller must Free the command. RefusedWithdrawal: the
// status does not allow it. RefusedFrozen: an approval for a frozen account.
func (e *Engine) SetWithdrawalStatus(operator string, withdrawal uint64, to uint8,
	details string) (*Command, error) {
	return e.setStatusAsOperator(operator,
		withdrawalRequest{id: withdrawal, nextStatus: to, details: details})
}

// ApproveDespiteFreeze is SetWithdrawalStatus that also approves for a frozen account. A freeze is
// logged before the approval is sent to the store.
func (e *Engine) ApproveDespiteFreeze(operator string, withdrawal uint64,
	details string) (*Command, error) {
	return e.setStatusAsOperator(operator, withdrawalRequest{id: withdrawal,
		nextStatus: event.WithdrawalApproved, details: details, despiteFreeze: true})
}

// logDespiteFreeze logs an operator's approval despite a freeze. The wallet calls it before it
// submits the record, so each approval is logged, even if the operator never receives the outcome.
func (e *Engine) logDespiteFreeze(c *Command) {
	e.log.Warn("a withdrawal of a frozen account is approved, as the operator insists", "operator",
		c.operator, "withdraw", c.record.WithdrawalStatus.ID, "account", c.account.Name)
}

func (e *Engine) setStatusAsOperator(operator string, req withdrawalRequest) (*Command, error) {
	switch to := req.nextStatus; {
	case to != event.WithdrawalApproved && to != event.WithdrawalRefused:
		return nil, requestErrorf("a withdrawal is approved or refused, not given status %d", to)
	case len(req.details) > MaxDetails:
		return nil, requestErrorf("details have at most %d bytes", MaxDetails)
	}
	q := &committed.PendingWithdrawal{ID: req.id}
	if err := e.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	if !q.Found {
		return nil, requestErrorf("there is no pending withdrawal %d", req.id)
	}
	c := newCommand(event.KindWithdrawalStatus)
	c.withdrawal = req
	return e.askWallet(c, operator, q.Withdrawal.Account)
}

// Greatest lengths of a withdrawal's stored texts, in bytes.
const (
	MaxAddress = 256
	MaxDetails = 1024
)

// ValidAddress reports whether an address is possible in any currency: 1 to MaxAddress printable
// ASCII characters without blanks. So mails and lists show exactly the stored text.
func ValidAddress[T string | []byte](address T) bool {
	for i := range len(address) {
		if c := address[i]; c <= ' ' || c > '~' {
			return false
		}
	}
	return len(address) > 0 && len(address) <= MaxAddress
}

// AccountName returns the name of the account with that id, which must exist.
func (e *Engine) AccountName(id uint32) string { return e.dir.Account(id).Name }

// AccountFrozen reports whether the account with that id, which must exist, is frozen.
func (e *Engine) AccountFrozen(id uint32) bool { return e.dir.Account(id).Frozen() }

// FeesOf returns an account's rates in a pair; both must exist.
func (e *Engine) FeesOf(account uint32, pair string) state.FeeRates {
	p := e.PairNamed(pair)
	return rates(p, p.Rules().Fees, e.dir.Account(account))
}
