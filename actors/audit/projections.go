package audit

import (
	"context"
	"fmt"
	"maps"

	"exchange/core/money"
	"exchange/persistence"
)

// projections compares wallets, nonces and withdrawals with the state as a whole.
func (a *audit) projections(ctx context.Context) error {
	for _, compare := range []func(context.Context) error{a.wallets, a.nonces, a.withdrawals} {
		if err := compare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wallets compares the stored wallets that have not changed since.
func (a *audit) wallets(ctx context.Context) error {
	seen := make(map[uint32]bool)
	err := a.target.Store.Wallets(ctx, func(w *persistence.Wallet) bool {
		seen[w.Account] = true
		if w.Seq > a.report.Sequence {
			a.report.Changed++
			return true
		}
		a.report.Wallets++
		a.wallet(w)
		return true
	})
	if err != nil {
		return fmt.Errorf("reading the projected wallets: %w", err)
	}
	for _, account := range a.state.Accounts() {
		if !seen[account.ID] && len(account.Wallet.Holdings()) > 0 {
			a.differ("account %s has no projected wallet", account.Name)
		}
	}
	return nil
}

func (a *audit) wallet(w *persistence.Wallet) {
	account := a.state.Account(w.Account)
	if account == nil || account.Name != w.Name {
		a.differ("there is a projected wallet of account %d %s, which does not exist", w.Account,
			w.Name)
		return
	}
	projected := map[string]persistence.Holding{}
	for _, h := range w.Holdings {
		projected[h.Currency] = h
	}
	for _, h := range account.Wallet.Holdings() {
		code := a.state.Currencies()[h.Currency-1].Code
		if p := projected[code]; p.Balance != h.Balance || p.Reserve != h.Reserve {
			a.differ("account %s, %s: projected are %v with %v reserved, committed %v with %v",
				w.Name, code, p.Balance, p.Reserve, h.Balance, h.Reserve)
		}
		delete(projected, code)
	}
	for code, h := range projected {
		if !h.Balance.IsZero() || !h.Reserve.IsZero() {
			a.differ("account %s, %s: projected are %v, committed is nothing", w.Name, code,
				h.Balance)
		}
	}
}

// nonces compares the stored nonces. A stored nonce may be higher, because signed reads raise
// nonces too and leave no record.
func (a *audit) nonces(ctx context.Context) error {
	projected := make([]uint64, len(a.state.Keys()))
	err := a.target.Store.Nonces(ctx, func(key string, nonce uint64) {
		if k := a.state.KeyByName(key); k != nil {
			projected[k.Number-1] = nonce
		}
	})
	if err != nil {
		return fmt.Errorf("reading nonces: %w", err)
	}
	for i, k := range a.state.Keys() {
		if projected[i] < k.Nonce {
			a.differ("key %s of account %s: projected is nonce %d, committed %d", k.Key.Key,
				a.accountName(k.Account), projected[i], k.Nonce)
		}
	}
	return nil
}

// withdrawals compares the sums of finished withdrawals, because the state has only each currency's
// total. Each withdrawal is in two lists: that of its account and that of all.
func (a *audit) withdrawals(ctx context.Context) error {
	type sums map[uint16]struct { // by currency
		ended              int
		approved, adjusted money.Balance
	}
	read := func(account uint32, of func(*persistence.Withdrawal) sums) error {
		q := persistence.WithdrawalQuery{Account: account, MaxSeq: a.report.Sequence}
		err := a.target.Store.Withdrawals(ctx, q, func(w *persistence.Withdrawal) bool {
			s := of(w)
			sum := s[w.Currency]
			sum.ended++
			switch w.Status {
			case persistence.WithdrawalApproved:
				sum.approved = sum.approved.Add(w.Amount.Balance())
			case persistence.WithdrawalAdjusted:
				sum.adjusted = sum.adjusted.Add(w.Amount.Balance())
			}
			s[w.Currency] = sum
			return true
		})
		if err != nil {
			return fmt.Errorf("reading withdrawals: %w", err)
		}
		return nil
	}
	all := map[uint32]sums{}
	err := read(0, func(w *persistence.Withdrawal) sums {
		if all[w.Account] == nil {
			all[w.Account] = sums{}
		}
		return all[w.Account]
	})
	if err != nil {
		return err
	}
	for i, c := range a.state.Currencies() {
		var sum, adjusted money.Balance
		for _, s := range all {
			sum = sum.Add(s[uint16(i+1)].approved)
			adjusted = adjusted.Add(s[uint16(i+1)].adjusted)
		}
		if sum != c.Withdrawn {
			a.differ("withdrawals: of %s %v are approved in all, committed are %v withdrawn",
				c.Code, sum, c.Withdrawn)
		}
		if adjusted != c.Adjusted {
			a.differ("withdrawals: of %s %v are adjusted in all, committed are %v", c.Code,
				adjusted, c.Adjusted)
		}
	}
	return concurrently(maps.Keys(all), func(account uint32) error {
		own := sums{}
		if err := read(account, func(*persistence.Withdrawal) sums { return own }); err != nil {
			return err
		}
		for i, c := range a.state.Currencies() {
			if s, in := own[uint16(i+1)], all[account][uint16(i+1)]; s != in {
				a.differ(
					"withdrawals of account %s: of %s %d have ended, %v approved; in the list of "+
						"all accounts they are %d and %v", a.accountName(account), c.Code,
					s.ended, s.approved, in.ended, in.approved)
			}
		}
		return nil
	})
}
