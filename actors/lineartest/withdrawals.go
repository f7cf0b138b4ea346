package lineartest

import (
	"cmp"
	"slices"
)

type withdrawal struct {
	number, account, currency int
	amount                    int64
	status                    withdrawalStatus
}

type withdrawalStatus uint8

const (
	isNew       withdrawalStatus = iota // to be confirmed by its owner
	isConfirmed                         // to be decided by the operator
	isClosed                            // it was paid out, cancelled or refused
)

func (s *market) withdrawal(p *part) bool {
	o, r := p.o, p.r
	if r.Outcome == RefusedFunds {
		return s.mayRefuse(p, o.Account, o.Currency, o.Amount*Unit)
	}
	if !s.reserve(o.Account, o.Currency, o.Amount*Unit) {
		return false
	}
	s.last.of[o.Account] = true
	at, _ := slices.BinarySearchFunc(s.withdrawals, o.Withdrawal,
		func(w withdrawal, n int) int { return cmp.Compare(w.number, n) })
	s.withdrawals = slices.Insert(s.withdrawals, at,
		withdrawal{o.Withdrawal, o.Account, o.Currency, o.Amount, isNew})
	return r.Outcome == Done || r.Outcome == Unknown
}

// adjust takes money out of an account, frozen or not, within the limit of a withdrawal.
func (s *market) adjust(p *part) bool {
	o, r, amount := p.o, p.r, p.o.Amount*Unit
	if r.Outcome == RefusedFunds {
		return s.mayRefuse(p, o.Account, o.Currency, amount)
	}
	if !s.reserve(o.Account, o.Currency, amount) {
		return false
	}
	s.last.of[o.Account] = true
	f := &s.wallets[o.Account][o.Currency]
	f.Reserve, f.Balance = f.Reserve-amount, f.Balance-amount
	return r.Outcome == Done || r.Outcome == Unknown
}

// moveWithdrawal confirms a withdrawal, approves it, cancels it or refuses it.
func (s *market) moveWithdrawal(p *part) bool {
	o, r := p.o, p.r
	at := slices.IndexFunc(s.withdrawals, func(w withdrawal) bool {
		return w.number == o.Withdrawal
	})
	possible := false
	if at >= 0 {
		switch s.withdrawals[at].status {
		case isNew:
			possible = o.Kind != ApproveWithdrawal
		case isConfirmed:
			possible = o.Kind != ConfirmWithdrawal
		}
	}
	if r.Outcome == RefusedState || !possible {
		return !possible && r.Outcome == RefusedState
	}
	w := &s.withdrawals[at]
	s.last.of[w.account] = true
	if o.Kind == ConfirmWithdrawal {
		w.status = isConfirmed
		return true
	}
	w.status = isClosed
	f := &s.wallets[w.account][w.currency]
	f.Reserve -= w.amount * Unit
	if o.Kind == ApproveWithdrawal {
		f.Balance -= w.amount * Unit
	} else {
		s.noteCredit(p, w.account, w.currency, w.amount*Unit)
	}
	return true
}

func (s *market) showsPending(o *Operation, r *Result) bool {
	left := len(r.Pending)
	for _, w := range s.withdrawals {
		if w.account != o.Account || w.status == isClosed {
			continue
		}
		if !slices.Contains(r.Pending, Pending{w.number, w.status == isConfirmed}) {
			return false
		}
		left--
	}
	return left == 0
}
