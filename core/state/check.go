package state

import (
	"fmt"
	"slices"

	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
)

// Check checks the whole state and reports the first violated money invariant:
//
//   - per currency, the balances of all accounts (fees are an account's) are deposits - withdrawals
//   - per account and currency, 0 <= reserve <= balance, and reserve is the sum that its open
//     orders and pending withdrawals hold
//   - an account's open orders are exactly its orders in the books and those that wait for a
//     trigger, and no book is crossed
//   - orders with instructions are open, and wait according to them
//   - an account's withdrawals are exactly its pending ones
func (s *State) Check() error {
	c := checker{State: s, sums: make([]money.Balance, len(s.currencies)),
		reserved: make([]ledger.Wallet, len(s.accounts)), open: make([]int, len(s.accounts))}
	for _, p := range s.pairs {
		for _, check := range [...]func(*Pair) error{c.book, c.stops, c.instructions} {
			if err := check(p); err != nil {
				return err
			}
		}
	}
	for id, w := range s.withdrawals {
		if err := c.withdrawal(id, w); err != nil {
			return err
		}
	}
	for _, a := range s.accounts {
		if err := c.account(a); err != nil {
			return err
		}
	}
	if c.listed != len(s.withdrawals) {
		return fmt.Errorf("the accounts have %d pending withdrawals, but the state has %d",
			c.listed, len(s.withdrawals))
	}
	return c.currencies()
}

// A checker holds the sums that one Check derives.
type checker struct {
	*State
	sums     []money.Balance // balances of all accounts, by currency-1
	reserved []ledger.Wallet // money that orders and withdrawals hold, by account-1
	open     []int           // open orders of the pairs, by account-1
	listed   int             // pending withdrawals in the accounts' lists
}

// book checks a pair's book against the open orders of accounts, and sums up the money that its
// orders reserve.
func (c *checker) book(p *Pair) error {
	bid, hasBid := p.Book.Best(trading.Buy)
	ask, hasAsk := p.Book.Best(trading.Sell)
	if hasBid && hasAsk && bid >= ask {
		return fmt.Errorf("the book of %s is crossed: its best prices are buy %v and sell %v",
			p.Name, bid, ask)
	}
	for o := range p.Book.Open(nil) {
		if err := c.openOrder(p, &o.Order); err != nil {
			return err
		}
	}
	return nil
}

// openOrder checks that an order of a pair is its account's, and adds the money that it reserves.
func (c *checker) openOrder(p *Pair, o *trading.Order) error {
	a := c.Account(o.Account)
	if a == nil || !isOpen(a, p, o) {
		return fmt.Errorf("order %d in the book of %s is not among the open orders of account %d",
			o.ID, p.Name, o.Account)
	}
	if o.ID > p.lastOrder {
		return fmt.Errorf("order %d of %s is above the last id given there, %d", o.ID, p.Name,
			p.lastOrder)
	}
	c.open[a.ID-1]++
	currency, need := ledger.Need(o.Side, o.Price, o.Remaining, p.Base, p.Quote)
	if !c.addReserved(a.ID, currency, need) {
		return fmt.Errorf("the open orders of account %s hold more money than can exist", a.Name)
	}
	return nil
}

// isOpen reports whether an order of a pair's book is among the open orders of an account.
func isOpen(a *Account, p *Pair, o *trading.Order) bool {
	pair, side := a.Open.Find(o.ID)
	return pair == p.Number && side == o.Side
}

// withdrawal checks that a withdrawal is pending and its account's, and adds the money that it
// reserves.
func (c *checker) withdrawal(id uint64, w *Withdrawal) error {
	if a := c.Account(w.Account); a == nil || id != w.ID || id > c.lastWithdrawal ||
		!slices.Contains(a.Withdrawals(), w) {
		return fmt.Errorf(
			"withdrawal %d is not pending for account %d, or above the last id given, %d",
			id, w.Account, c.lastWithdrawal)
	}
	if !w.Pending() || !c.addReserved(w.Account, w.Currency, w.Amount.Balance()) {
		return fmt.Errorf("withdrawal %d has status %d, or with it its account's orders and "+
			"withdrawals hold more money than can exist", w.ID, w.Status)
	}
	return nil
}

// addReserved adds to the money that an account's orders and withdrawals reserve. It returns false
// if the sum is impossible.
func (c *checker) addReserved(account uint32, currency uint16, need money.Balance) bool {
	w := &c.reserved[account-1]
	h := w.Get(currency)
	h.Balance = h.Balance.Add(need)
	w.Put(h)
	return h.Balance.Cmp(money.MaxSupply) <= 0
}

// account checks an account's open orders and wallet against the sums of books and withdrawals, and
// adds up its balances.
func (c *checker) account(a *Account) error {
	c.listed += len(a.Withdrawals())
	if n := a.Open.Len(); n != c.open[a.ID-1] {
		return fmt.Errorf("account %s has %d open orders, but the books have %d of them", a.Name, n,
			c.open[a.ID-1])
	}
	held := &c.reserved[a.ID-1]
	for _, h := range held.Holdings() { // also currencies missing in the account's wallet
		if reserve := a.Wallet.Get(h.Currency).Reserve; reserve != h.Balance {
			return fmt.Errorf(
				"account %s reserves %v of currency %d, but its orders and withdrawals hold %v",
				a.Name, reserve, h.Currency, h.Balance)
		}
	}
	for _, h := range a.Wallet.Holdings() {
		if err := c.checkHolding(a, h, held.Get(h.Currency).Balance); err != nil {
			return err
		}
	}
	return c.checkClosed(a)
}

// checkHolding checks one currency of an account against held, the sum of its orders and
// withdrawals.
func (c *checker) checkHolding(a *Account, h ledger.Holding, held money.Balance) error {
	if h.Currency == 0 || int(h.Currency) > len(c.sums) {
		return fmt.Errorf("account %s holds currency %d, which does not exist", a.Name, h.Currency)
	}
	code := c.State.currencies[h.Currency-1].Code
	if h.Reserve != held {
		return fmt.Errorf("account %s reserves %v %s, but its orders and withdrawals hold %v",
			a.Name, h.Reserve, code, held)
	}
	if h.Reserve.Cmp(h.Balance) > 0 {
		return fmt.Errorf("account %s reserves %v of only %v %s", a.Name, h.Reserve, h.Balance,
			code)
	}
	if h.Balance.Cmp(money.MaxSupply) > 0 {
		return fmt.Errorf("account %s has %v %s, more than can exist", a.Name, h.Balance, code)
	}
	sum := &c.sums[h.Currency-1]
	if *sum = sum.Add(h.Balance); sum.Cmp(money.MaxSupply) > 0 {
		return fmt.Errorf("all balances of %s together are above %v", code, money.MaxSupply)
	}
	return nil
}

// currencies compares the sums with deposits, withdrawals and adjustments.
func (c *checker) currencies() error {
	for i, currency := range c.State.currencies {
		code, in, out := currency.Code, currency.Deposited, currency.outflow()
		if out.Cmp(in) > 0 {
			return fmt.Errorf("%v %s were withdrawn or adjusted, but only %v deposited", out, code,
				in)
		}
		if got, want := c.sums[i], currency.Held(); got != want {
			return fmt.Errorf("all balances of %s are %v, but deposits - withdrawals - "+
				"adjustments are %v", code, got, want)
		}
	}
	return nil
}
