package state

import (
	"fmt"

	"exchange/core/event"
)

// mustBeOpen returns an error for a record that changes a closed account. It ignores an account
// that does not exist.
func (s *State) mustBeOpen(account uint32) error {
	if a := s.Account(account); a != nil && a.Operated().ClosedUs != 0 {
		return fmt.Errorf("account %s was closed at %d us", a.Name, a.Operated().ClosedUs)
	}
	return nil
}

// closeAccount closes an account, revokes its keys, and removes its own fees. The account stays
// frozen, and its name stays taken.
func (s *State) closeAccount(r *event.Record) error {
	a := s.Account(r.AccountClosed.Account)
	if a == nil {
		return fmt.Errorf("there is no account %d", r.AccountClosed.Account)
	}
	if err := s.mustBeOpen(a.ID); err != nil {
		return err
	}
	if r.TimeUs <= 0 {
		return fmt.Errorf("account %s is closed at %d us", a.Name, r.TimeUs)
	}
	if left := s.blocksClosing(a); left != "" {
		return fmt.Errorf("account %s is closed with %s", a.Name, left)
	}
	for _, number := range a.Keys {
		if !s.key(number).Revoked {
			if err := s.revoke(number); err != nil {
				return err
			}
		}
	}
	a.Frozen, a.own().operated.ClosedUs, a.rare.fees = true, r.TimeUs, nil
	return nil
}

// blocksClosing returns the reason that keeps an account from closing; "": none.
func (s *State) blocksClosing(a *Account) string {
	for _, h := range a.Wallet.Holdings() {
		if !h.Balance.IsZero() {
			return fmt.Sprintf("a balance of %v %s", h.Balance, s.currencies[h.Currency-1].Code)
		}
	}
	switch {
	case a.Open.Len() > 0:
		return fmt.Sprintf("%d open orders", a.Open.Len())
	case len(a.Withdrawals()) > 0:
		return fmt.Sprintf("%d pending withdrawals", len(a.Withdrawals()))
	case len(a.Switches()) > 0:
		return fmt.Sprintf("%d armed switches", len(a.Switches()))
	}
	return ""
}

// checkClosed checks that a closed account is in the state that closing leaves.
func (s *State) checkClosed(a *Account) error {
	if a.Operated().ClosedUs == 0 {
		return nil
	}
	if left := s.blocksClosing(a); left != "" {
		return fmt.Errorf("account %s is closed, and has %s", a.Name, left)
	}
	if !a.Frozen {
		return fmt.Errorf("account %s is closed, and not frozen", a.Name)
	}
	for _, number := range a.Keys {
		if k := s.key(number); !k.Revoked {
			return fmt.Errorf("account %s is closed, and its key %s is live", a.Name, k.Key.Key)
		}
	}
	return nil
}
