package spec

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// Money is in units of 1e-16, as big integers: nothing overflows, and nothing is rounded.

// perAmount is the number of such units in one unit of an amount.
var perAmount = big.NewInt(100_000_000)

// Units returns a balance in units.
func Units(b money.Balance) *big.Int {
	hi, lo := b.Bits()
	n := new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64)
	return n.Or(n, new(big.Int).SetUint64(lo))
}

// halves returns the halves of a number.
func halves(n *big.Int) (high, low uint64) {
	return new(big.Int).Rsh(n, 64).Uint64(),
		new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
}

func ofAmount(a money.Amount) *big.Int { return new(big.Int).Mul(big.NewInt(int64(a)), perAmount) }

func valueOf(p money.Price, a money.Amount) *big.Int {
	return new(big.Int).Mul(big.NewInt(int64(p)), big.NewInt(int64(a)))
}

// feeOn returns the fee on a received amount, rounded up.
func feeOn(received *big.Int, r money.Rate) *big.Int {
	n := new(big.Int).Mul(received, big.NewInt(int64(r)))
	n.Add(n, big.NewInt(99_999_999))
	return n.Div(n, perAmount)
}

// Funds are an account's money in each currency, by number-1.
type Funds []struct{ Balance, Reserve *big.Int }

func (f Funds) String() string {
	s := ""
	for i, h := range f {
		s += fmt.Sprintf("%d: %v/%v ", i+1, h.Balance, h.Reserve)
	}
	return s
}

// Same returns an error if an account's money differs. has returns the account's money.
func (f Funds) Same(has func(currency uint16) (balance, reserve money.Balance)) error {
	for i, want := range f {
		balance, reserve := has(uint16(i + 1))
		if Units(balance).Cmp(want.Balance) != 0 || Units(reserve).Cmp(want.Reserve) != 0 {
			return fmt.Errorf("it has %v of currency %d and %v reserved, not %v and %v",
				Units(balance), i+1, Units(reserve), want.Balance, want.Reserve)
		}
	}
	return nil
}

// needs returns the money that an order reserves, and its currency.
func (p *Pair) needs(side trading.Side, price money.Price, amount money.Amount) (currency uint16,
	held *big.Int) {
	if side == trading.Buy {
		return p.quote, valueOf(price, amount)
	}
	return p.base, ofAmount(amount)
}

// Need returns the money that an order would reserve, and its currency.
func (m *Exchange) Need(pair uint16, side trading.Side, price money.Price,
	amount money.Amount) (currency uint16, held *big.Int) {
	return m.Pairs[pair-1].needs(side, price, amount)
}

// credit and debit change a balance. It may be below 0 only within a record.
func (a *Account) credit(currency uint16, n *big.Int) {
	for len(a.balances) < int(currency) {
		a.balances = append(a.balances, new(big.Int))
	}
	b := a.balances[currency-1]
	b.Add(b, n)
}

func (a *Account) debit(currency uint16, n *big.Int) { a.credit(currency, new(big.Int).Neg(n)) }

func (m *Exchange) applyDeposit(r *event.Record) error {
	d := &r.Deposit
	if _, taken := m.Deposits[d.Reference]; taken || !says(m, &d.ID, uint64(len(m.Deposits)+1)) ||
		d.Amount <= 0 {
		return fmt.Errorf("deposit %d of %v, reference %q, after %d others", d.ID, d.Amount,
			d.Reference, len(m.Deposits))
	}
	m.Deposits[d.Reference] = Deposit{*d, m.Seq, r.TimeUs}
	n := ofAmount(d.Amount)
	m.Accounts[d.Account-1].credit(d.Currency, n)
	m.supply[d.Currency-1].Add(m.supply[d.Currency-1], n)
	m.touched = append(m.touched, d.Account)
	return nil
}

// funds sums an account's balances and reserves.
func (m *Exchange) funds(a *Account) Funds {
	f := make(Funds, len(m.Currencies))
	for i := range f {
		f[i].Balance, f[i].Reserve = new(big.Int), new(big.Int)
		if i < len(a.balances) {
			f[i].Balance.Set(a.balances[i])
		}
	}
	for _, p := range m.Pairs {
		for _, o := range p.Open() {
			if o.Account == a.ID {
				currency, held := p.needs(o.Side, o.Price, o.Remaining)
				f[currency-1].Reserve.Add(f[currency-1].Reserve, held)
			}
		}
	}
	for _, w := range m.Withdrawals {
		if w.Account == a.ID && w.Pending() {
			f[w.Currency-1].Reserve.Add(f[w.Currency-1].Reserve, ofAmount(w.Amount))
		}
	}
	return f
}

// checkFunds adds a version of each account that a record touched, and checks that money is
// conserved.
func (m *Exchange) checkFunds(accounts []uint32) error {
	slices.Sort(accounts)
	for _, id := range slices.Compact(accounts) {
		a := m.Accounts[id-1]
		f := m.funds(a)
		for i := range f {
			if f[i].Reserve.Cmp(f[i].Balance) > 0 || f[i].Balance.Sign() < 0 {
				return fmt.Errorf("account %s has %v of %s and %v of it reserved", a.Name,
					f[i].Balance, m.Currencies[i], f[i].Reserve)
			}
		}
		a.versions = append(a.versions, version{m.Seq, f, m.open(a), m.pending(a)})
	}
	for i, code := range m.Currencies {
		sum := new(big.Int)
		for _, a := range m.Accounts {
			if i < len(a.balances) {
				sum.Add(sum, a.balances[i])
			}
		}
		if sum.Cmp(m.supply[i]) != 0 {
			return fmt.Errorf("all accounts have %v of %s; deposits less paid withdrawals are %v",
				sum, code, m.supply[i])
		}
	}
	return nil
}
