package state

import (
	"fmt"
	"slices"

	"exchange/core/event"
)

func (s *State) withdrawal(r *event.Record) error {
	w := &r.Withdrawal
	a := s.Account(w.Account)
	switch {
	case a == nil:
		return fmt.Errorf("there is no account %d", w.Account)
	case w.ID == 0 || s.withdrawals[w.ID] != nil ||
		len(a.Withdrawals()) > 0 && w.ID <= a.Withdrawals()[len(a.Withdrawals())-1].ID:
		return fmt.Errorf(
			"withdrawal %d is pending already, or is not above the last pending id of account %s",
			w.ID, a.Name)
	case w.Currency == 0 || int(w.Currency) > len(s.currencies):
		return fmt.Errorf("there is no currency %d", w.Currency)
	case w.Amount < 1:
		return fmt.Errorf("withdrawal %d is of %d units: it must be of at least 1", w.ID,
			int64(w.Amount))
	}
	if err := a.checkHold(r); err != nil {
		return err
	}
	if err := s.keepWithdrawalID(a, w); err != nil {
		return err
	}
	s.lastWithdrawal = max(s.lastWithdrawal, w.ID) // accounts may come slightly out of order
	made := NewWithdrawal(r)
	s.pend(a, made)
	s.mail(r.TimeUs, made)
	return s.useNonce(w.Key, w.Account, w.Nonce)
}

// NewWithdrawal returns the withdrawal of the record that requests it.
func NewWithdrawal(r *event.Record) *Withdrawal {
	w := &r.Withdrawal
	return &Withdrawal{ID: w.ID, Account: w.Account, Currency: w.Currency, Amount: w.Amount,
		Status: event.WithdrawalNew, TimeUs: r.TimeUs,
		Address: w.Address, ClientID: w.ClientID, Issue: 1, IssuedUs: r.TimeUs}
}

// keepWithdrawalID notes the client id of a new withdrawal, if it has one.
func (s *State) keepWithdrawalID(a *Account, w *event.Withdrawal) error {
	if w.ClientID.IsZero() {
		return nil
	}
	ids := &a.own().withdrawalIDs
	if other := ids.Withdrawal(w.ClientID); other != 0 {
		return fmt.Errorf("withdrawal %d of account %s has the client id %v already", other, a.Name,
			w.ClientID)
	}
	if n := ids.Len(); n > 0 && w.ID <= ids.list[n-1].number {
		return fmt.Errorf("withdrawal %d of account %s is not above the last one with a client id",
			w.ID, a.Name)
	}
	ids.Add(w.ID, w.ClientID, func(number uint64) bool { return s.withdrawals[number] != nil })
	return nil
}

func (s *State) pend(a *Account, w *Withdrawal) {
	s.withdrawals[w.ID] = w
	own := a.own()
	own.withdrawals = append(own.withdrawals, w)
}

// withdrawalMoved follows the life cycle: New -> Verified -> Approved, and from the first two also
// Refused or Cancelled. The money of a frozen account leaves only when the record allows it.
func (s *State) withdrawalMoved(r *event.Record, e *Effects) error {
	m := &r.WithdrawalStatus
	w := s.withdrawals[m.ID]
	if w == nil || w.Account != m.Account || w.Currency != m.Currency || w.Amount != m.Amount {
		return fmt.Errorf(
			"withdrawal %d of account %d (%d units of currency %d) is not pending: there is %+v",
			m.ID, m.Account, int64(m.Amount), m.Currency, w)
	}
	if !ValidTransition(w.Status, m.To) || w.Stale && m.To == event.WithdrawalVerified {
		return fmt.Errorf(
			"withdrawal %d cannot go from status %d to %d (its code is of an earlier history: %v)",
			m.ID, w.Status, m.To, w.Stale)
	}
	if frozen := s.Account(w.Account).Frozen; m.DespiteFreeze !=
		(frozen && m.To == event.WithdrawalApproved) {
		return fmt.Errorf(
			"withdrawal %d goes to status %d, despite a freeze: %v, but its account is frozen: %v",
			m.ID, m.To, m.DespiteFreeze, frozen)
	}
	if m.To == event.WithdrawalVerified || m.To == event.WithdrawalApproved {
		if err := s.Account(w.Account).checkHold(r); err != nil {
			return err
		}
	}
	w.Status, w.Details, w.Stale, w.Renewed = m.To, m.Details, false, false
	s.removeMail(s.outbox.codes[w.ID]) // it needs no confirmation any more
	if !w.Pending() {
		s.unpend(w)
		e.Withdrawal = w
	}
	switch m.To {
	case event.WithdrawalApproved:
		c := &s.currencies[w.Currency-1]
		c.Withdrawn = c.Withdrawn.Add(w.Amount.Balance())
	case event.WithdrawalRefused:
		s.mail(r.TimeUs, w)
	}
	return s.useNonce(m.Key, m.Account, m.Nonce)
}

// adjust takes available money out of an account. The settlement that follows refuses more.
func (s *State) adjust(r *event.Record, e *Effects) error {
	j := &r.Adjusted
	a := s.Account(j.Account)
	switch {
	case a == nil:
		return fmt.Errorf("there is no account %d", j.Account)
	case j.ID == 0 || s.withdrawals[j.ID] != nil || j.ClientID.IsZero() || j.Reason == "":
		return fmt.Errorf("adjustment %d has the id of a pending withdrawal, or no reference or "+
			"reason", j.ID)
	case j.Currency == 0 || int(j.Currency) > len(s.currencies):
		return fmt.Errorf("there is no currency %d", j.Currency)
	case j.Amount < 1:
		return fmt.Errorf("adjustment %d is of %d units: it must be of at least 1", j.ID,
			int64(j.Amount))
	}
	if err := s.keepWithdrawalID(a, &event.Withdrawal{ID: j.ID, ClientID: j.ClientID}); err != nil {
		return err
	}
	s.lastWithdrawal = max(s.lastWithdrawal, j.ID)
	c := &s.currencies[j.Currency-1]
	c.Adjusted = c.Adjusted.Add(j.Amount.Balance())
	e.Withdrawal = NewAdjustment(r)
	return nil
}

// NewAdjustment returns the adjustment of a record, in the form of a finished withdrawal.
func NewAdjustment(r *event.Record) *Withdrawal {
	j := &r.Adjusted
	return &Withdrawal{ID: j.ID, Account: j.Account, Currency: j.Currency, Amount: j.Amount,
		Status: event.WithdrawalAdjusted, TimeUs: r.TimeUs, Details: j.Reason,
		ClientID: j.ClientID}
}

// ValidTransition reports whether a withdrawal may go from one status to another.
func ValidTransition(from, to uint8) bool {
	switch to {
	case event.WithdrawalVerified:
		return from == event.WithdrawalNew
	case event.WithdrawalApproved:
		return from == event.WithdrawalVerified
	case event.WithdrawalRefused, event.WithdrawalCancelled:
		return from == event.WithdrawalNew || from == event.WithdrawalVerified
	}
	return false
}

func (s *State) unpend(w *Withdrawal) {
	delete(s.withdrawals, w.ID)
	own := s.accounts[w.Account-1].own()
	own.withdrawals = slices.DeleteFunc(own.withdrawals,
		func(o *Withdrawal) bool { return o.ID == w.ID })
	own.withdrawalIDs.Finish(w.ID)
}

// Reissue makes a new code valid from a time.
func (w *Withdrawal) Reissue(timeUs int64) {
	w.Issue++
	w.IssuedUs, w.Stale, w.Renewed = timeUs, false, false
}

// codeRefused counts a wrong code, or makes a new one valid because the last one expired or is of
// an earlier history.
func (s *State) codeRefused(r *event.Record) error {
	c := &r.CodeRefused
	w := s.withdrawals[c.Withdrawal]
	if w == nil || w.Account != c.Account || w.Status != event.WithdrawalNew {
		return fmt.Errorf("a code for withdrawal %d of account %d, which waits for none: %+v",
			c.Withdrawal, c.Account, w)
	}
	if (w.Stale || w.Renewed) && !c.Expired {
		return fmt.Errorf(
			"a try is counted for withdrawal %d, but the code may be of an earlier history", w.ID)
	}
	tries := w.Tries
	if !c.Expired {
		tries++
	}
	if c.Tries != tries {
		return fmt.Errorf("withdrawal %d has had %d wrong codes, but the record counts %d",
			w.ID, tries, c.Tries)
	}
	if w.Tries = tries; c.Expired {
		w.Reissue(r.TimeUs)
		s.mail(r.TimeUs, w)
	}
	return s.useNonce(c.Key, c.Account, c.Nonce)
}
