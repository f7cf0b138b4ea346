package state

import (
	"fmt"
	"slices"

	"exchange/core/event"
)

// email changes an account's e-mail address. Codes mailed to the old address are void, because its
// mailbox may be in other hands, and a pending mail with a code is not sent. The first confirmation
// after the hold has a new code mailed.
func (s *State) email(r *event.Record) error {
	m := &r.Email
	a := s.Account(m.Account)
	if err := s.mustBeOpen(m.Account); err != nil {
		return err
	}
	switch {
	case a == nil:
		return fmt.Errorf("there is no account %d", m.Account)
	case m.Address == "" || m.Address == a.Email && m.Address != event.Withheld:
		return fmt.Errorf("the new e-mail address of account %s is none, or the one that it has",
			a.Name)
	case m.HoldEndsUs < max(a.Operated().HoldEndsUs, 1):
		return fmt.Errorf("the hold of account %s ends at %d us: before the end that it had, %d us",
			a.Name, m.HoldEndsUs, a.Operated().HoldEndsUs)
	}
	for _, w := range a.Withdrawals() {
		w.VoidCode()
		s.removeMail(s.outbox.codes[w.ID])
	}
	before := a.Email
	a.Email, a.own().operated.HoldEndsUs = m.Address, m.HoldEndsUs
	if before != "" {
		s.mailChange(r.TimeUs, AccountChange{a.ID, before, formerAddress, m.HoldEndsUs})
	}
	s.mailChange(r.TimeUs, AccountChange{a.ID, m.Address, NewAddress, m.HoldEndsUs})
	return nil
}

// mailChange queues a mail about a change of an account.
func (s *State) mailChange(timeUs int64, c AccountChange) {
	s.lastMail++
	s.post(&Mail{ID: s.lastMail, TimeUs: timeUs, Change: c})
}

// VoidCode makes the valid code of a withdrawal count as expired, if the withdrawal waits for it.
func (w *Withdrawal) VoidCode() { w.Stale, w.Renewed = w.Status == event.WithdrawalNew, false }

// checkHold returns an error for a record that withdraws money during a hold.
func (a *Account) checkHold(r *event.Record) error {
	if r.TimeUs < a.Operated().HoldEndsUs {
		return fmt.Errorf("money of account %s is held until %d us, and the record's time is %d us",
			a.Name, a.Operated().HoldEndsUs, r.TimeUs)
	}
	return nil
}

// accountChange reads the account change of a mail.
func (r *reader) accountChange(s *State) AccountChange {
	c := AccountChange{r.U32(), r.text(), ChangeKind(r.U8()), r.Int63()}
	if a := s.Account(c.Account); a == nil || c.To == "" || c.Kind > KeysLost ||
		(c.HoldEndsUs == 0) != (c.Kind == KeysLost) || c.HoldEndsUs > a.Operated().HoldEndsUs {
		r.Fail("a mail is about an impossible change of an account")
	}
	return c
}

// mailLostKeys queues a mail to the account's owner. One mail covers all keys revoked together.
func (s *State) mailLostKeys(timeUs int64, a *Account) {
	if a.Email == "" || slices.ContainsFunc(a.own().changeMails, func(id uint64) bool {
		return s.outbox.mails[id].Change.Kind == KeysLost
	}) {
		return
	}
	s.mailChange(timeUs, AccountChange{Account: a.ID, To: a.Email, Kind: KeysLost})
}
