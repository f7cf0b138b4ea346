package actors

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
)

// Operators' commands have no nonce, and go on during maintenance. Their records carry the
// operator's name. An error is a *RequestError when the request cannot be granted, an error of
// admission, or ErrTimeout.

// askRegistry sends an operator's command through the registry.
func (e *Engine) askRegistry(kind event.Kind, operator string, a Admin) (Admin, error) {
	return e.toRegistry(kind, operator, a)()
}

// toRegistry is askRegistry that leaves it to the caller when to wait for the answer.
func (e *Engine) toRegistry(kind event.Kind, operator string, a Admin) func() (Admin, error) {
	c := newCommand(kind)
	c.admin, c.operator = a, operator
	if err := e.admitOperator(c); err != nil {
		c.Free()
		err = e.turnAway(err)
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

// CreateAccount opens an account.
func (e *Engine) CreateAccount(operator, name, email string) (Admin, error) {
	return e.askRegistry(event.KindAccount, operator, Admin{Account: name, Email: email})
}

// CreateKey makes an API key for an account, with the public part and the secret given.
func (e *Engine) CreateKey(operator, account, public, secret string, permissions uint8,
	allow []string) (Admin, error) {
	return e.askRegistry(event.KindKey, operator,
		Admin{Account: account, Key: public, Secret: secret, Permissions: permissions,
			Allow: allow})
}

// CreateParallelKey makes an API key whose requests may overtake each other: it keeps the greatest
// nonces that it has used, 1 to event.MaxParallel of them.
func (e *Engine) CreateParallelKey(operator, account, public, secret string, permissions uint8,
	allow []string, nonces int) (Admin, error) {
	a := Admin{Account: account, Key: public, Secret: secret, Permissions: permissions,
		Allow: allow, Parallel: nonces}
	if nonces < 1 || nonces > event.MaxParallel {
		return a, refusef("a key for parallel use keeps 1 to %d nonces", event.MaxParallel)
	}
	return e.askRegistry(event.KindKey, operator, a)
}

// RevokeKey ends an API key.
func (e *Engine) RevokeKey(operator, public string) (Admin, error) {
	return e.askRegistry(event.KindKeyRevoked, operator, Admin{Key: public})
}

// Deposit credits an account. The same reference again, with the same content, changes nothing and
// returns the deposit as Repeated.
func (e *Engine) Deposit(operator, account, currency string, amount money.Amount,
	reference string) (Admin, error) {
	return e.askRegistry(event.KindDeposit, operator,
		Admin{Account: account, Currency: currency, amount: amount, Reference: reference})
}

// Halt stops trading on a pair, or resumes it. Open orders stay, and can be cancelled. Repeated
// means that the pair was so already.
func (e *Engine) Halt(operator, pair string, on bool) (Admin, error) {
	return e.askRegistry(event.KindHalt, operator, Admin{Pair: pair, On: on})
}

// Freeze keeps an account's keys from doing anything and its withdrawals from being approved, or
// ends that. Open orders stay.
func (e *Engine) Freeze(operator, account string, on bool) (Admin, error) {
	return e.askRegistry(event.KindFreeze, operator, Admin{Account: account, On: on})
}

// SetFees gives an account its own rates in a pair; nil: the pair's usual rates count again. It
// opens the account that fees go to, if need be.
func (e *Engine) SetFees(operator, account, pair string, own *state.FeeRates) (Admin, error) {
	wish := Admin{Account: account, Pair: pair, fees: own}
	a, err := e.askRegistry(event.KindFees, operator, wish)
	if !errors.Is(err, errNoFeeAccount) {
		return a, err
	}
	if err := e.openFeeAccount(operator); err != nil {
		return a, err
	}
	return e.askRegistry(event.KindFees, operator, wish)
}

// openFeeAccount opens the account that fees go to, unless it is there.
func (e *Engine) openFeeAccount(operator string) error {
	if e.dir.FeeAccount() != 0 {
		return nil
	}
	if _, err := e.CreateAccount(operator, directory.FeeAccount,
		""); err != nil && e.dir.FeeAccount() == 0 {
		return err
	}
	return nil
}

// SetMaintenance begins maintenance, changes it, or ends it: no client's command is taken from now
// on, those in flight come to their end, and then it is journaled. A plain maintenance has nothing
// in flight, so its end waits for nothing. If clients may cancel in it, they can once that is
// journaled. It outlives restarts. ErrNotQuiet means that they did not end while ctx lasted, and
// that nothing was done. Changes run one at a time: ending an earlier maintenance cannot admit
// clients while a new one is starting.
func (e *Engine) SetMaintenance(ctx context.Context, operator string,
	m event.Maintenance) (Admin, error) {
	a := Admin{On: m.On, Message: m.Message, Cancels: m.Cancels}
	switch {
	case len(m.Message) > MaxMessage:
		return a, refusef("a message has at most %d bytes", MaxMessage)
	case m.Cancels && !m.On:
		return a, refusef("clients may cancel in a maintenance that is on")
	}
	select {
	case e.maintaining <- struct{}{}:
		defer func() { <-e.maintaining }()
	case <-ctx.Done():
		return a, ErrNotQuiet
	}
	if err := e.none(ctx, &e.changing); err != nil {
		return a, err
	}
	before, closed := e.maintenance.Load(), &event.Maintenance{On: true, Message: m.Message}
	mine := before == nil || before.Cancels
	if !m.On && (before == nil || !before.Cancels) {
		return e.askRegistry(event.KindMaintenance, operator, a)
	}
	if mine {
		mine = e.maintenance.CompareAndSwap(before, closed)
	}
	e.hold(closed)
	err := e.none(ctx, &e.inFlight)
	if err == nil {
		err = e.none(ctx, &e.busyBooks)
	}
	if err == nil {
		err = e.none(ctx, &e.firing)
	}
	if err == nil {
		a, err = e.askRegistry(event.KindMaintenance, operator, a)
		// the record may still be made, and then the fold settles it
		if errors.Is(err, committed.ErrTimeout) {
			return a, err
		}
	}
	if err != nil && mine {
		e.hold(before)
		e.maintenance.CompareAndSwap(closed, before) // nothing was done
	}
	return a, err
}

// Note has the log of actions say what an operator did that is no part of the state, such as a
// change of the cluster's members. A text that is too long is cut, and what is no printable
// character of it is '?'. The caller waits for the note, once, and may do something else before:
// Stop waits for it, too, as for each command in flight.
func (e *Engine) Note(operator, text string) (wait func() error) {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
	if len(text) > event.MaxNote {
		text = strings.ToValidUTF8(text[:event.MaxNote-len("...")], "") + "..."
	}
	if text == "" {
		return func() error { return refusef("a note says something") }
	}
	answer := e.toRegistry(event.KindNote, operator, Admin{Message: text})
	return func() error {
		_, err := answer()
		return err
	}
}

// mailed takes a mail out of the outbox: it was sent, or given up for a reason.
func (e *Engine) mailed(id uint64, reason string) error {
	_, err := e.askRegistry(event.KindMailed, "", Admin{mail: id, Message: reason})
	return err
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
		return e.turnAway(err)
	}
	e.toWallet(c.account, c)
	return nil
}

// OperatorCancel cancels an open order of any account. The caller must Free the command. It is
// refused for RefusedNotOpen when the order closed meanwhile.
func (e *Engine) OperatorCancel(operator string, order uint64) (*Command, error) {
	q := &committed.OwnerOf{Order: order}
	if err := e.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	if q.Account == 0 {
		return nil, refusef("order %d is not open", order)
	}
	c := newCommand(event.KindCancel)
	c.order.id = order
	return e.askWallet(c, operator, q.Account)
}

// SetEmail gives an account another e-mail address, and holds its withdrawals for a while: HeldUs
// of the answer says until when. With the address that it has nothing changes: the answer says
// Repeated, and HeldUs is the end of the hold that its last change began, 0 if there was none.
func (e *Engine) SetEmail(operator, account, email string) (Admin, error) {
	return e.askRegistry(event.KindEmail, operator, Admin{Account: account, Email: email})
}

// CloseAccount ends an account that has no money, no orders and no pending withdrawals, and all its
// keys. Its name stays taken. Of a closed one nothing changes, and the answer says Repeated. A
// RequestError says what is left in the account.
func (e *Engine) CloseAccount(operator, account string) (Admin, error) {
	return e.askRegistry(event.KindAccountClosed, operator, Admin{Account: account})
}

// Adjust takes available money out of an account, as a correction; its owner is told the reason.
// The caller must Free the command, whose Withdrawal says what was done. It is refused for
// RefusedFunds, with its Shortfall, when less is available, and for RefusedWithdrawalID when
// TakenBy has the reference.
func (e *Engine) Adjust(operator string, account uint32, currency uint16, amount money.Amount,
	reason string, reference event.ClientID) (*Command, error) {
	if amount < 1 || reason == "" || len(reason) > MaxDetails || reference.IsZero() {
		return nil, refusef("an adjustment is of an amount above 0, with a reference and a reason "+
			"of at most %d bytes", MaxDetails)
	}
	c := newCommand(event.KindAdjusted)
	c.withdrawal = withdrawalRequest{currency: currency, amount: amount, details: reason,
		clientID: reference}
	return e.askWallet(c, operator, account)
}

// MoveWithdrawal approves or refuses a withdrawal; its owner is told the details: why it is
// refused, or by which transaction it is paid. The caller must Free the command. It is refused for
// RefusedWithdrawal when the status does not allow it, and an approval for RefusedFrozen when the
// account is frozen.
func (e *Engine) MoveWithdrawal(operator string, withdrawal uint64, to uint8,
	details string) (*Command, error) {
	return e.moveAsOperator(operator, withdrawalRequest{id: withdrawal, to: to, details: details})
}

// ApproveDespiteFreeze approves a withdrawal also of a frozen account; otherwise as MoveWithdrawal.
// If the account is frozen, the log says so before the approval is sent to the store.
func (e *Engine) ApproveDespiteFreeze(operator string, withdrawal uint64,
	details string) (*Command, error) {
	return e.moveAsOperator(operator, withdrawalRequest{id: withdrawal,
		to: event.WithdrawalApproved, details: details, despiteFreeze: true})
}

// insisted logs an approval that its operator wants despite a freeze. The wallet calls it before
// it submits the record, so each approval has its line, also when its operator never learns the
// outcome.
func (e *Engine) insisted(c *Command) {
	e.log.Warn("a withdraw of a frozen account is approved, as the operator insists", "operator",
		c.operator, "withdraw", c.record.WithdrawalMoved.ID, "account", c.account.Name)
}

func (e *Engine) moveAsOperator(operator string, wish withdrawalRequest) (*Command, error) {
	switch to := wish.to; {
	case to != event.WithdrawalApproved && to != event.WithdrawalRefused:
		return nil, refusef("a withdraw is approved or refused, not given status %d", to)
	case len(wish.details) > MaxDetails:
		return nil, refusef("details have at most %d bytes", MaxDetails)
	}
	q := &committed.PendingWithdrawal{ID: wish.id}
	if err := e.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	if !q.Found {
		return nil, refusef("there is no pending withdraw %d", wish.id)
	}
	c := newCommand(event.KindWithdrawalMoved)
	c.withdrawal = wish
	return e.askWallet(c, operator, q.Withdrawal.Account)
}

// Longest texts of a withdrawal, in bytes: the ones that the store keeps.
const (
	MaxAddress = 256
	MaxDetails = 1024
)

// ValidAddress reports whether an address can be one of any currency: 1 to MaxAddress printable
// ASCII characters without blanks. So a reader of a mail or a list sees exactly the stored text.
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

// FeesOf returns the rates that count for an account in a pair; both must exist.
func (e *Engine) FeesOf(account uint32, pair string) state.FeeRates {
	p := e.PairNamed(pair)
	return rates(p, p.Rules().Fees, e.dir.Account(account))
}
