package state

import (
	"fmt"
	"slices"

	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
)

// Check looks at the whole state and reports the first money invariant that does not hold:
//
//   - per currency, the balances of all accounts (fees are an account's) are deposits - withdrawals
//   - per account and currency, 0 <= reserve <= balance, and reserve is the sum that its open
//     orders and pending withdrawals hold
//   - an account's open orders are exactly its orders in the books, and no book is crossed
//   - an account's withdrawals are exactly its pending ones
func (s *State) Check() error {
	sums := make([]money.Balance, len(s.currencies))
	// reserves derived from books and withdraws
	held := make(map[uint32]*ledger.Wallet, len(s.accounts))
	count := make(map[uint32]int, len(s.accounts))
	for _, p := range s.pairs {
		bid, hasBid := p.Book.Best(trading.Buy)
		ask, hasAsk := p.Book.Best(trading.Sell)
		if hasBid && hasAsk && bid >= ask {
			return fmt.Errorf("the book of %s is crossed: buy %v, sell %v", p.Name, bid, ask)
		}
		for _, side := range [...]trading.Side{trading.Buy, trading.Sell} {
			for o := range p.Book.Orders(side) {
				a := s.Account(o.Account)
				if a == nil || a.Open.Pair(o.ID) != p.Number || a.Open.Side(o.ID) != o.Side {
					return fmt.Errorf(
						"order %d in the book of %s is not among the open orders of account %d",
						o.ID, p.Name, o.Account)
				}
				if o.ID > p.lastOrder {
					return fmt.Errorf("order %d of %s is above its counter %d", o.ID, p.Name,
						p.lastOrder)
				}
				count[a.ID]++
				currency, need := ledger.Need(o.Side, o.Price, o.Remaining, p.Base, p.Quote)
				if !hold(held, a.ID, currency, need) {
					return fmt.Errorf("the open orders of account %s hold more than there can be",
						a.Name)
				}
			}
		}
	}
	listed := 0
	for id, w := range s.withdraws {
		if a := s.Account(w.Account); a == nil || id != w.ID || id > s.lastWithdraw ||
			!slices.Contains(a.Withdraws(), w) {
			return fmt.Errorf(
				"withdraw %d is not among the pending ones of account %d, or above the counter %d",
				id, w.Account, s.lastWithdraw)
		}
		if !w.Pending() || !hold(held, w.Account, w.Currency, w.Amount.Balance()) {
			return fmt.Errorf("withdraw %d has status %d, or all hold more than there can be", w.ID,
				w.Status)
		}
	}
	for _, a := range s.accounts {
		listed += len(a.Withdraws())
		if n := a.Open.Len(); n != count[a.ID] {
			return fmt.Errorf("account %s has %d open orders, the books have %d", a.Name, n,
				count[a.ID])
		}
		if w := held[a.ID]; w != nil {
			for _, h := range w.Holdings() {
				if a.Wallet.Get(h.Currency).Reserve != h.Balance {
					return fmt.Errorf(
						"account %s reserves %v of currency %d, its open orders and withdraws "+
							"hold %v", a.Name, a.Wallet.Get(h.Currency).Reserve, h.Currency,
						h.Balance)
				}
			}
		}
		for _, h := range a.Wallet.Holdings() {
			if h.Currency == 0 || int(h.Currency) > len(sums) {
				return fmt.Errorf("account %s holds currency %d", a.Name, h.Currency)
			}
			var want money.Balance
			if w := held[a.ID]; w != nil {
				want = w.Get(h.Currency).Balance
			}
			code := s.currencies[h.Currency-1].Code
			if h.Reserve != want {
				return fmt.Errorf(
					"account %s reserves %v %s, its open orders and withdraws hold %v", a.Name,
					h.Reserve, code, want)
			}
			if h.Reserve.Cmp(h.Balance) > 0 {
				return fmt.Errorf("account %s reserves %v of %v %s", a.Name, h.Reserve, h.Balance,
					code)
			}
			sum := &sums[h.Currency-1]
			if h.Balance.Cmp(money.MaxSupply) > 0 {
				return fmt.Errorf("account %s has %v %s, more than there can be", a.Name, h.Balance,
					code)
			}
			if *sum = sum.Add(h.Balance); sum.Cmp(money.MaxSupply) > 0 {
				return fmt.Errorf("all balances of %s are above %v", code, money.MaxSupply)
			}
		}
	}
	if listed != len(s.withdraws) {
		return fmt.Errorf("accounts have %d pending withdraws, there are %d", listed,
			len(s.withdraws))
	}
	for i, c := range s.currencies {
		if c.Withdrawn.Cmp(c.Deposited) > 0 {
			return fmt.Errorf("%v %s were withdrawn of %v deposited", c.Withdrawn, c.Code,
				c.Deposited)
		}
		if got, want := sums[i], c.Deposited.Sub(c.Withdrawn); got != want {
			return fmt.Errorf("all balances of %s are %v, deposits - withdraws are %v", c.Code, got,
				want)
		}
	}
	return nil
}

// hold adds to the money that an account's orders and withdrawals hold. It returns false on an
// impossible sum.
func hold(held map[uint32]*ledger.Wallet, account uint32, currency uint16,
	need money.Balance) bool {
	w := held[account]
	if w == nil {
		w = new(ledger.Wallet)
		held[account] = w
	}
	h := w.Get(currency)
	h.Balance = h.Balance.Add(need)
	w.Put(h)
	return h.Balance.Cmp(money.MaxSupply) <= 0
}
