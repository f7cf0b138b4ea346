package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"exchange/core/money"
	"exchange/persistence"
)

func (w *world) deposits(q persistence.DepositQuery) []persistence.Deposit {
	w.Helper()
	var all []persistence.Deposit
	w.must(w.s.Deposits(w.ctx, q, func(p *persistence.Deposit) bool {
		all = append(all, *p)
		return true
	}))
	return all
}

func (w *world) wantDeposits(q persistence.DepositQuery, want []persistence.Deposit) {
	w.Helper()
	if got := w.deposits(q); !slices.Equal(got, want) {
		w.Fatalf("%+v answers %s, want %s", q, ids(got, depositID), ids(want, depositID))
	}
}

func (w *world) withdrawals(q persistence.WithdrawalQuery) []persistence.Withdrawal {
	w.Helper()
	var all []persistence.Withdrawal
	w.must(w.s.Withdrawals(w.ctx, q, func(d *persistence.Withdrawal) bool {
		all = append(all, *d)
		return true
	}))
	return all
}

func (w *world) wantWithdrawals(q persistence.WithdrawalQuery, want []persistence.Withdrawal) {
	w.Helper()
	if got := w.withdrawals(q); !slices.Equal(got, want) {
		w.Fatalf("%+v answers %s, want %s", q, ids(got, withdrawalID), ids(want, withdrawalID))
	}
}

// withdrawal returns one with plain values.
func withdrawal(id uint64, account uint32) persistence.Withdrawal {
	return persistence.Withdrawal{
		ID: id, Account: account, Currency: 1, Amount: money.Amount(id * 7),
		Status: persistence.WithdrawalApproved,
		TimeUs: 1_700_000_000_000_000 + int64(id), ClosedUs: 1_700_000_000_500_000 + int64(id),
		ClosedSeq: id, Address: fmt.Sprintf("address %d", id),
	}
}

func randomWithdrawal(r *rand.Rand, id, seq uint64) persistence.Withdrawal {
	d := withdrawal(id, 1+r.Uint32N(accounts))
	d.Currency = uint16(1 + r.IntN(currencies))
	d.Status = uint8(10 * (3 + r.IntN(4)))
	d.ClosedSeq = seq
	if d.Status == persistence.WithdrawalRefused {
		d.Details = fmt.Sprintf("reason %d", id)
	}
	if r.IntN(2) == 0 {
		d.ClientID = fmt.Sprintf("client-%d", id)
	}
	return d
}

func (w *world) withdrawnOnce() {
	w.open(persistence.Retention{})
	a, b, c := withdrawal(10, 1), withdrawal(11, 2), withdrawal(12, 1)
	w.apply(1, &persistence.Writes{Withdrawals: []persistence.Withdrawal{c, b}})
	// older, closed later
	w.apply(1, &persistence.Writes{Withdrawals: []persistence.Withdrawal{a}})
	for round := range 2 {
		for _, want := range []persistence.Withdrawal{a, b, c} {
			got, err := w.s.Withdrawal(w.ctx, want.ID)
			w.must(err)
			if got != want {
				w.Fatalf("withdraw is %+v, want %+v", got, want)
			}
		}
		for _, id := range []uint64{0, 9, 13, 1 << 53, 1<<64 - 1} {
			_, err := w.s.Withdrawal(w.ctx, id)
			w.is(err, persistence.ErrNotFound)
		}
		if round == 0 {
			// An existing row stays unchanged, even if another one comes under its id. So does the
			// first of two rows in one Apply.
			other, first, second := b, withdrawal(20, 2), withdrawal(20, 2)
			other.Status, other.Details = persistence.WithdrawalRefused, "no"
			second.Status = persistence.WithdrawalCancelled
			w.apply(1, &persistence.Writes{Withdrawals: []persistence.Withdrawal{other, first,
				second}})
			w.again(persistence.Retention{})
			w.wantWithdrawals(persistence.WithdrawalQuery{}, []persistence.Withdrawal{first, c, b,
				a})
			return
		}
	}
}
