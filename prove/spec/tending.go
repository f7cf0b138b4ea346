package spec

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"exchange/core/event"
)

// hold is the time for which no money leaves an account after a change of its e-mail address.
const hold = 48 * time.Hour

// applyEmail gives an account another e-mail address: both addresses are notified, and all codes
// mailed before are void.
func (m *Exchange) applyEmail(r *event.Record) error {
	k := &r.Email
	a := m.Accounts[k.Account-1]
	// the hold uses the operator's clock, which may be earlier than an earlier record's time
	if until := max(a.HoldEndsUs, r.TimeUs+hold.Microseconds()); a.ClosedUs != 0 ||
		k.Address == "" || k.Address == a.Email || k.HoldEndsUs < a.HoldEndsUs ||
		k.HoldEndsUs > until {
		return fmt.Errorf("%s, of %q, closed at %d, gets %q and is held until %d, not %d", a.Name,
			a.Email, a.ClosedUs, k.Address, k.HoldEndsUs, until)
	}
	for _, w := range m.Withdrawals {
		if w.Account == a.ID && w.Status == event.WithdrawalNew {
			w.Stale, w.Renewed = true, false
			m.dropCode(w)
		}
	}
	if a.Email != "" {
		m.send(Mail{TimeUs: r.TimeUs, Account: a.ID, About: FormerAddress, To: a.Email,
			HoldEndsUs: k.HoldEndsUs})
	}
	m.send(Mail{TimeUs: r.TimeUs, Account: a.ID, About: newAddress, To: k.Address,
		HoldEndsUs: k.HoldEndsUs})
	a.Email, a.HoldEndsUs = k.Address, k.HoldEndsUs
	a.emailHolds = append(a.emailHolds, k.HoldEndsUs)
	return nil
}

// HeldOnce reports whether a change of the account's e-mail address began a hold until untilUs.
func (a *Account) HeldOnce(untilUs int64) bool { return slices.Contains(a.emailHolds, untilUs) }

// mayLeave returns an error for a record that withdraws an account's money during a hold.
func (m *Exchange) mayLeave(account uint32, timeUs int64) error {
	if a := m.Accounts[account-1]; timeUs < a.HoldEndsUs {
		return fmt.Errorf("money of %s leaves at %d us, and is held until %d us", a.Name, timeUs,
			a.HoldEndsUs)
	}
	return nil
}

// applyClosed closes an account and revokes its keys.
func (m *Exchange) applyClosed(r *event.Record) error {
	a := m.Accounts[r.AccountClosed.Account-1]
	if a.ClosedUs != 0 || a.Name == m.FeeAccount || m.pending(a) > 0 || len(m.open(a)) > 0 ||
		m.funds(a).any() {
		return fmt.Errorf("%s is closed: at %d us before, with %d pending withdrawals, %d open "+
			"orders, and %v", a.Name, a.ClosedUs, m.pending(a), len(m.open(a)), m.funds(a))
	}
	for id, w := range m.switches {
		if w != nil && m.Keys[id.key-1].Account == a.ID {
			return fmt.Errorf("%s is closed with a switch", a.Name)
		}
	}
	a.ClosedUs, a.Frozen, a.rates = r.TimeUs, true, nil
	a.Freezes++
	for _, k := range m.Keys {
		if k.Account == a.ID {
			k.Revoked = true
		}
	}
	return nil
}

func (f Funds) any() bool {
	return slices.ContainsFunc(f, func(h struct{ Balance, Reserve *big.Int }) bool {
		return h.Balance.Sign() != 0
	})
}

// HadMoney reports whether the account had any money at a sequence, or since.
func (a *Account) HadMoney(since uint64) bool {
	for _, v := range slices.Backward(a.versions) {
		if v.funds.any() {
			return true
		}
		if v.seq <= since {
			break
		}
	}
	return false
}
