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
	"exchange/core/state"
)

// MaxMessage bounds the text for clients during maintenance, in bytes.
const MaxMessage = 500

// Halt stops trading on a pair, or resumes it. Open orders stay, and can be cancelled. Repeated:
// the pair was already so.
func (e *Engine) Halt(operator, pair string, on bool) (Admin, error) {
	return e.askRegistry(event.KindHalt, operator, (*registry).halt, Admin{Pair: pair, On: on})
}

func (g *registry) halt(c *Command) (submit bool, err error) {
	a := &c.admin
	p := g.PairNamed(a.Pair)
	if p == nil {
		return false, requestErrorf("%s", g.NoPair(a.Pair))
	}
	c.pair, c.record.Pair = p, p.Number
	a.Repeated = g.committed.State().Pair(p.Number).Halted == a.On
	return !a.Repeated, nil
}

// Freeze blocks an account's keys and the approval of its withdrawals, or ends that. Open orders
// stay.
func (e *Engine) Freeze(operator, account string, on bool) (Admin, error) {
	return e.askRegistry(event.KindFreeze, operator, (*registry).freeze,
		Admin{Account: account, On: on})
}

func (g *registry) freeze(c *Command) (submit bool, err error) {
	a := &c.admin
	account, err := g.openAccount(a.Account)
	if err != nil {
		return false, err
	}
	a.AccountID, a.Repeated = account.ID, account.Frozen == a.On
	c.record.Freeze = event.Freeze{Account: account.ID, Frozen: a.On}
	return !a.Repeated, nil
}

// SetFees gives an account its own rates in a pair; nil: the pair's usual rates again. It opens the
// fee account if needed.
func (e *Engine) SetFees(operator, account, pair string, own *state.FeeRates) (Admin, error) {
	request := Admin{Account: account, Pair: pair, fees: own}
	a, err := e.askRegistry(event.KindFees, operator, (*registry).ownFees, request)
	if !errors.Is(err, errNoFeeAccount) {
		return a, err
	}
	if err := e.openFeeAccount(operator); err != nil {
		return a, err
	}
	return e.askRegistry(event.KindFees, operator, (*registry).ownFees, request)
}

// openFeeAccount opens the fee account, unless it exists.
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

// errNoFeeAccount: an account is to pay fees, and the fee account does not exist. It comes after
// all other checks, so that account is not opened in vain.
var errNoFeeAccount = errors.New("there is no account that fees go to")

func (g *registry) ownFees(c *Command) (submit bool, err error) {
	a := &c.admin
	account, err := g.openAccount(a.Account)
	if err != nil {
		return false, err
	}
	p := g.PairNamed(a.Pair)
	if p == nil {
		return false, requestErrorf("%s", g.NoPair(a.Pair))
	}
	a.AccountID = account.ID
	f := event.Fees{Account: account.ID, Own: a.fees != nil}
	now, has := account.Fees()[p.Number]
	if a.fees != nil {
		f.Maker, f.Taker = a.fees.Maker, a.fees.Taker
	}
	a.Repeated = has == f.Own && (!has || now == *a.fees)
	if f.Own && *a.fees != (state.FeeRates{}) &&
		g.committed.State().AccountByName(directory.FeeAccount) == nil {
		return false, errNoFeeAccount
	}
	c.pair, c.record.Pair, c.record.Fees = p, p.Number, f
	return !a.Repeated, nil
}

// SetMaintenance begins, changes or ends maintenance: clients' commands are refused from now on,
// those in flight complete, and then it is journaled. A plain maintenance has nothing in flight, so
// its end waits for nothing. If it allows cancels, they work once that is journaled. It outlives
// restarts. ErrNotQuiet: the commands did not complete within ctx, and nothing was done. Changes
// run one at a time: ending an earlier maintenance cannot admit clients while a new one starts.
func (e *Engine) SetMaintenance(ctx context.Context, operator string,
	m event.Maintenance) (Admin, error) {
	a := Admin{On: m.On, Message: m.Message, AllowCancels: m.Cancels}
	switch {
	case len(m.Message) > MaxMessage:
		return a, requestErrorf("a message has at most %d bytes", MaxMessage)
	case m.Cancels && !m.On:
		return a, requestErrorf("clients may cancel in a maintenance that is on")
	}
	select {
	case e.maintaining <- struct{}{}:
		defer func() { <-e.maintaining }()
	case <-ctx.Done():
		return a, ErrNotQuiet
	}
	if err := e.awaitZero(ctx, &e.maintenanceChanges); err != nil {
		return a, err
	}
	before, closed := e.maintenance.Load(), &event.Maintenance{On: true, Message: m.Message}
	mine := before == nil || before.Cancels
	if !m.On && (before == nil || !before.Cancels) {
		return e.askRegistry(event.KindMaintenance, operator, (*registry).keepMaintenance, a)
	}
	if mine {
		mine = e.maintenance.CompareAndSwap(before, closed)
	}
	e.holdBooks(closed)
	err := e.awaitZero(ctx, &e.inFlight)
	if err == nil {
		err = e.awaitZero(ctx, &e.busyBooks)
	}
	if err == nil {
		err = e.awaitZero(ctx, &e.internalInFlight)
	}
	if err == nil {
		a, err = e.askRegistry(event.KindMaintenance, operator, (*registry).keepMaintenance, a)
		// the record may still follow, and then the fold applies it
		if errors.Is(err, committed.ErrTimeout) {
			return a, err
		}
	}
	if err != nil && mine {
		e.holdBooks(before)
		e.maintenance.CompareAndSwap(closed, before) // nothing was done
	}
	return a, err
}

func (g *registry) keepMaintenance(c *Command) (submit bool, err error) {
	a := &c.admin
	wanted := event.Maintenance{On: a.On, Message: a.Message, Cancels: a.AllowCancels}
	if a.Repeated = g.committed.State().Maintenance() == wanted; a.Repeated {
		g.applyMaintenance(&wanted)
	}
	c.record.Maintenance = wanted
	return !a.Repeated, nil
}

// Note adds to the log of actions an operator's action outside the state, such as a change of the
// cluster's members. A text that is too long is cut, and its unprintable characters become '?'. The
// caller waits for the note, once, and may do other work before. Stop waits for it as for each
// command in flight.
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
		return func() error { return requestErrorf("a note must not be empty") }
	}
	answer := e.toRegistry(event.KindNote, operator, (*registry).note,
		Admin{Message: text})
	return func() error {
		_, err := answer()
		return err
	}
}

func (g *registry) note(c *Command) (submit bool, err error) {
	c.record.Note = c.admin.Message
	return true, nil
}

// removeMail removes a mail from the outbox: it was sent, or given up for a reason.
func (e *Engine) removeMail(id uint64, reason string) error {
	_, err := e.askRegistry(event.KindMailed, "", (*registry).unmail,
		Admin{mail: id, Message: reason})
	return err
}

func (g *registry) unmail(c *Command) (submit bool, err error) {
	a := &c.admin
	a.Repeated = g.committed.State().Mail(a.mail) == nil // it left the outbox before
	c.record.Mailed = event.Mailed{ID: a.mail, Error: a.Message}
	return !a.Repeated, nil
}
