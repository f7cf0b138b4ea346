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

func (w *world) withdraws(q persistence.WithdrawQuery) []persistence.Withdraw {
	w.Helper()
	var all []persistence.Withdraw
	w.must(w.s.Withdraws(w.ctx, q, func(d *persistence.Withdraw) bool {
		all = append(all, *d)
		return true
	}))
	return all
}

func (w *world) wantWithdraws(q persistence.WithdrawQuery, want []persistence.Withdraw) {
	w.Helper()
	if got := w.withdraws(q); !slices.Equal(got, want) {
		w.Fatalf("%+v answers %s, want %s", q, ids(got, withdrawID), ids(want, withdrawID))
	}
}

// withdraw returns one with plain values.
func withdraw(id uint64, account uint32) persistence.Withdraw {
	return persistence.Withdraw{
		ID: id, Account: account, Currency: 1, Amount: money.Amount(id * 7),
		Status: persistence.WithdrawApproved,
		TimeUs: 1_700_000_000_000_000 + int64(id), ClosedUs: 1_700_000_000_500_000 + int64(id),
		ClosedSeq: id, Address: fmt.Sprintf("address %d", id),
	}
}

func randomWithdraw(r *rand.Rand, id, seq uint64) persistence.Withdraw {
	d := withdraw(id, 1+r.Uint32N(accounts))
	d.Currency = uint16(1 + r.IntN(currencies))
	d.Status = uint8(10 * (3 + r.IntN(3)))
	d.ClosedSeq = seq
	if d.Status == persistence.WithdrawRefused {
		d.Details = fmt.Sprintf("reason %d", id)
	}
	return d
}

func (w *world) withdrawnOnce() {
	w.open(persistence.Retention{})
	a, b, c := withdraw(10, 1), withdraw(11, 2), withdraw(12, 1)
	w.apply(1, &persistence.Writes{Withdraws: []persistence.Withdraw{c, b}})
	// older, came to its end later
	w.apply(1, &persistence.Writes{Withdraws: []persistence.Withdraw{a}})
	for round := range 2 {
		for _, want := range []persistence.Withdraw{a, b, c} {
			got, err := w.s.Withdraw(w.ctx, want.ID)
			w.must(err)
			if got != want {
				w.Fatalf("withdraw is %+v, want %+v", got, want)
			}
		}
		for _, id := range []uint64{0, 9, 13, 1 << 53, 1<<64 - 1} {
			_, err := w.s.Withdraw(w.ctx, id)
			w.is(err, persistence.ErrNotFound)
		}
		w.wantWithdraws(persistence.WithdrawQuery{}, []persistence.Withdraw{c, b, a})
		w.wantWithdraws(persistence.WithdrawQuery{Account: 1}, []persistence.Withdraw{c, a})
		w.wantWithdraws(persistence.WithdrawQuery{Account: 1, Offset: 1}, []persistence.Withdraw{a})
		w.wantWithdraws(persistence.WithdrawQuery{Before: 12, MaxSeq: 10},
			[]persistence.Withdraw{a})
		if round == 0 {
			// A row that is there stays, whatever comes again. So does the first of two rows that
			// come at once.
			other, first, second := b, withdraw(20, 2), withdraw(20, 2)
			other.Status, other.Details = persistence.WithdrawRefused, "no"
			second.Status = persistence.WithdrawCancelled
			w.apply(1, &persistence.Writes{Withdraws: []persistence.Withdraw{other, first, second}})
			w.wantWithdraws(persistence.WithdrawQuery{Account: 2}, []persistence.Withdraw{first, b})
			w.again(persistence.Retention{})
			w.wantWithdraws(persistence.WithdrawQuery{Before: 20}, []persistence.Withdraw{c, b, a})
			w.wantWithdraws(persistence.WithdrawQuery{}, []persistence.Withdraw{first, c, b, a})
			return
		}
	}
}
