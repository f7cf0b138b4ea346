package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"exchange/core/money"
)

// tend opens and closes accounts that few others use, and sometimes changes an account's e-mail
// address: after that no money leaves it for the rest of most runs.
func (s *sim) tend(r *rand.Rand, l *life, name string) {
	spare := fmt.Sprint("spare-", r.IntN(3))
	switch n := r.IntN(16); {
	case n == 0:
		s.setEmail(l, name, fmt.Sprintf("%s-%d@example.org", name, r.IntN(3)))
	case n == 1:
		s.closeAccount(l, name)
	case n == 2:
		s.setEmail(l, spare, fmt.Sprintf("%s-%d@example.org", spare, r.IntN(2)))
	case n == 3:
		s.credit(l, spare, fmt.Sprint("spare ", r.IntN(9)))
	case n < 7:
		s.createAccount(l, spare)
	case n < 9:
		s.createKey(l, spare, "key-"+spare)
	case n == 9:
		s.revokeSpare(l, "key-"+spare)
	default:
		s.closeAccount(l, spare)
	}
}

func (s *sim) setEmail(l *life, name, address string) {
	s.administer(l, "address "+address, func() string {
		missing := s.model.Account(name) == nil
		a, err := l.engine.SetEmail("op", name, address)
		now := s.model.Account(name)
		done := now != nil && now.HoldEndsUs >= a.HoldEndsUs && a.HoldEndsUs > 0
		if err == nil {
			s.outcomes["addresses, changed"]++
		}
		var refused *RequestError
		return s.administered(err, done, missing || s.isClosed(name) ||
			errors.As(err, &refused) && strings.Contains(refused.text, "already") && now != nil)
	})
}

// closeAccount closes an account: commands that begin later have no effect.
func (s *sim) closeAccount(l *life, name string) {
	s.administer(l, "close "+name, func() string {
		missing, since := s.model.Account(name) == nil, s.model.Seq
		a, err := l.engine.CloseAccount("op", name)
		if err == nil && !a.Repeated {
			s.outcomes["accounts, closed"]++
			if b := s.bar(name); b.lifting == 0 {
				b.since = s.steps
			}
		}
		now := s.model.Account(name)
		return s.administered(err, s.isClosed(name), missing || now != nil && now.HadMoney(since) ||
			err != nil && (strings.Contains(err.Error(), "in flight") ||
				strings.Contains(err.Error(), "an armed switch")))
	})
}

// credit deposits a little money.
func (s *sim) credit(l *life, name, reference string) {
	s.administer(l, "deposit to "+name, func() string {
		missing := s.model.Account(name) == nil
		const amount = money.Amount(1e8)
		s.deposits[reference]++
		a, err := l.engine.Deposit("op", name, l.engine.Currencies()[0].Code, amount, reference)
		d, known := s.model.Deposits[reference]
		return s.administered(err, known && d.ID == a.Deposit,
			missing || s.isClosed(name) || known)
	})
}

// revokeSpare revokes the key of an account, whose closing may have revoked it.
func (s *sim) revokeSpare(l *life, key string) {
	s.administer(l, "revoke "+key, func() string {
		missing := s.model.Key(key) == nil
		_, err := l.engine.RevokeKey("op", key)
		known := s.model.Key(key)
		return s.administered(err, known != nil && known.Revoked, missing || known.Revoked)
	})
}
