package actors

import (
	"context"
	"errors"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
)

// What operators do. They have no nonce; who did it stands in the record. All errors are a
// *RequestError when what is wanted cannot be, one of admission, or ErrTimeout. They go on during
// maintenance.

// administrate sends an operator's command through the registry.
func (e *Engine) administrate(kind event.Kind, who string, a Admin) (Admin, error) {
	c := newCommand(kind)
	c.admin, c.operator = a, who
	if err := e.admitOperator(c); err != nil {
		c.Free()
		return a, e.turnAway(err)
	}
	e.root.Send(e.registry, c)
	if _, err := e.outcome(c); err != nil {
		return a, err
	}
	a, err := c.admin, c.adminErr
	c.Free()
	return a, err
}

// CreateAccount opens an account.
func (e *Engine) CreateAccount(who, name, email string) (Admin, error) {
	return e.administrate(event.KindAccount, who, Admin{Account: name, Email: email})
}

// CreateKey makes an API key for an account, with the public part and the secret given.
func (e *Engine) CreateKey(who, account, public, secret string, permissions uint8,
	allow []string) (Admin, error) {
	return e.administrate(event.KindKey, who,
		Admin{Account: account, Key: public, Secret: secret, Permissions: permissions,
			Allow: allow})
}

// RevokeKey ends an API key.
func (e *Engine) RevokeKey(who, public string) (Admin, error) {
	return e.administrate(event.KindKeyRevoked, who, Admin{Key: public})
}

// Deposit credits an account. The same reference again, with the same content, changes nothing and
// says so.
func (e *Engine) Deposit(who, account, currency string, amount money.Amount,
	reference string) (Admin, error) {
	return e.administrate(event.KindDeposit, who,
		Admin{Account: account, Currency: currency, Amount: amount, Reference: reference})
}

// Halt stops trading on a pair, or resumes it. Open orders stay, and can be cancelled. Repeated
// says that it was so already.
func (e *Engine) Halt(who, pair string, on bool) (Admin, error) {
	return e.administrate(event.KindHalt, who, Admin{Pair: pair, On: on})
}

// Freeze keeps an account's keys from doing anything and its withdraws from being approved, or lets
// them again. Open orders stay.
func (e *Engine) Freeze(who, account string, on bool) (Admin, error) {
	return e.administrate(event.KindFreeze, who, Admin{Account: account, On: on})
}

// SetFees gives an account its own rates in a pair; nil: the pair's usual ones count again. The
// account that fees go to is opened if need be.
func (e *Engine) SetFees(who, account, pair string, own *state.FeeRates) (Admin, error) {
	wish := Admin{Account: account, Pair: pair, Fees: own}
	a, err := e.administrate(event.KindFees, who, wish)
	if !errors.Is(err, errNoFeeAccount) {
		return a, err
	}
	if a, err := e.CreateAccount(who, directory.FeeAccount,
		""); err != nil && e.fees.account.Load() == 0 {
		return a, err
	}
	return e.administrate(event.KindFees, who, wish)
}

// SetMaintenance ends it, or begins it: no client's command is taken from now on, those in flight
// come to their end, and then it is journaled. It outlives restarts. ErrNotQuiet, if they do not
// end while ctx lasts: nothing was done. One change waits for the other: nobody lets clients in
// while it is about to begin, nor does the end of the maintenance before, which its operator may
// have stopped waiting for.
func (e *Engine) SetMaintenance(ctx context.Context, who string, on bool, message string) (Admin,
	error) {
	a := Admin{On: on, Message: message}
	if len(message) > maxMessage {
		return a, refusef("a message has at most %d bytes", maxMessage)
	}
	select {
	case e.maintaining <- struct{}{}:
		defer func() { <-e.maintaining }()
	case <-ctx.Done():
		return a, ErrNotQuiet
	}
	if !on {
		return e.administrate(event.KindMaintenance, who, a)
	}
	if err := e.none(ctx, &e.changing); err != nil {
		return a, err
	}
	closed := &event.Maintenance{On: true, Message: message}
	mine := e.maintenance.CompareAndSwap(nil, closed)
	err := e.none(ctx, &e.inFlight)
	if err == nil {
		a, err = e.administrate(event.KindMaintenance, who, a)
		// it may still come to be, and then the registry settles it
		if errors.Is(err, committed.ErrTimeout) {
			return a, err
		}
	}
	if err != nil && mine {
		e.maintenance.CompareAndSwap(closed, nil) // nothing was done
	}
	return a, err
}

// mailed takes a mail out of the outbox: it was sent, or given up for a reason.
func (e *Engine) mailed(id uint64, reason string) error {
	_, err := e.administrate(event.KindMailed, "", Admin{Mail: id, Message: reason})
	return err
}

// operate sends an operator's command through an account's wallet.
func (e *Engine) operate(c *Command, who string, account uint32) (*Command, error) {
	if err := e.sendOperator(c, who, account); err != nil {
		return nil, err
	}
	return e.outcome(c)
}

func (e *Engine) sendOperator(c *Command, who string, account uint32) error {
	c.account, c.operator = e.dir.Account(account), who
	if err := e.admitOperator(c); err != nil {
		c.Free()
		return e.turnAway(err)
	}
	e.root.Send(c.account.Wallet, c)
	return nil
}

// OperatorCancel cancels an open order, whoever's it is. The command is the caller's to Free; it is
// refused for RefusedNotOpen when the order closed meanwhile.
func (e *Engine) OperatorCancel(who string, order uint64) (*Command, error) {
	r := committed.NewRead(committed.ReadOwner)
	r.ID = order
	if err := e.Ask(r, nil, 0); err != nil {
		return nil, err
	}
	account := r.Account
	r.Free()
	if account == 0 {
		return nil, refusef("order %d is not open", order)
	}
	c := newCommand(event.KindCancel)
	c.order.id = order
	return e.operate(c, who, account)
}

// MoveWithdraw approves or refuses a withdraw, for details that its owner is told. The command is
// the caller's to Free; it is refused for RefusedWithdraw when the status does not allow it, and an
// approval for RefusedFrozen when the account is frozen.
func (e *Engine) MoveWithdraw(who string, withdraw uint64, to uint8, details string) (*Command,
	error) {
	return e.moveAsOperator(who, withdrawRequest{id: withdraw, to: to, details: details})
}

// ApproveDespiteFreeze approves a withdraw also of a frozen account; otherwise as MoveWithdraw. If
// the account is frozen, the log says so before the approval is sent to the store.
func (e *Engine) ApproveDespiteFreeze(who string, withdraw uint64) (*Command, error) {
	return e.moveAsOperator(who,
		withdrawRequest{id: withdraw, to: event.WithdrawApproved, despiteFreeze: true})
}

// insisted logs an approval that its operator wants despite a freeze. The wallet calls it before
// the record is on its way: so each approval has its line, also one whose outcome its operator
// never hears.
func (e *Engine) insisted(c *Command) {
	e.log.Warn("a withdraw of a frozen account is approved, as the operator insists", "operator",
		c.operator, "withdraw", c.record.WithdrawMoved.ID, "account", c.account.Name)
}

func (e *Engine) moveAsOperator(who string, wish withdrawRequest) (*Command, error) {
	switch to := wish.to; {
	case to != event.WithdrawApproved && to != event.WithdrawRefused:
		return nil, refusef("a withdraw is approved or refused, not given status %d", to)
	case len(wish.details) > MaxDetails:
		return nil, refusef("details have at most %d bytes", MaxDetails)
	}
	r := committed.NewRead(committed.ReadWithdraw)
	r.ID = wish.id
	if err := e.Ask(r, nil, 0); err != nil {
		return nil, err
	}
	var account uint32
	if len(r.Withdraws) > 0 {
		account = r.Withdraws[0].Account
	}
	r.Free()
	if account == 0 {
		return nil, refusef("there is no pending withdraw %d", wish.id)
	}
	c := newCommand(event.KindWithdrawMoved)
	c.withdraw = wish
	return e.operate(c, who, account)
}

// Longest texts of a withdraw, in bytes: the ones that the store keeps.
const (
	MaxAddress = 256
	MaxDetails = 1024
)

// ValidAddress reports whether an address can be one of any currency: 1 to MaxAddress printable
// ASCII characters without blanks. So a reader of a mail or a list sees exactly what is stored.
func ValidAddress[T string | []byte](address T) bool {
	for i := range len(address) {
		if c := address[i]; c <= ' ' || c > '~' {
			return false
		}
	}
	return len(address) > 0 && len(address) <= MaxAddress
}

// AccountName is the name of the account with that id, which must exist.
func (e *Engine) AccountName(id uint32) string { return e.dir.Account(id).Name }

// AccountFrozen reports whether the account with that id, which must exist, is frozen.
func (e *Engine) AccountFrozen(id uint32) bool { return e.dir.Account(id).Frozen() }

// FeesOf are the rates that count for an account in a pair; both must exist.
func (e *Engine) FeesOf(account uint32, pair string) state.FeeRates {
	return e.fees.rates(e.PairNamed(pair), e.dir.Account(account))
}
