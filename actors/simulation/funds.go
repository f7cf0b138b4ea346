package simulation

import (
	"fmt"
	"math/big"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// Money is in units of 1e-16, as big integers: nothing overflows, and nothing is rounded.

// perAmount is how many such units one unit of an amount has.
var perAmount = big.NewInt(100_000_000)

// Units is a balance as a number of units.
func Units(b money.Balance) *big.Int {
	hi, lo := b.Bits()
	n := new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64)
	return n.Or(n, new(big.Int).SetUint64(lo))
}

func ofAmount(a money.Amount) *big.Int { return new(big.Int).Mul(big.NewInt(int64(a)), perAmount) }

func valueOf(p money.Price, a money.Amount) *big.Int {
	return new(big.Int).Mul(big.NewInt(int64(p)), big.NewInt(int64(a)))
}

// feeOn is a rate's part of what is received, rounded up.
func feeOn(received *big.Int, r money.Rate) *big.Int {
	n := new(big.Int).Mul(received, big.NewInt(int64(r)))
	n.Add(n, big.NewInt(99_999_999))
	return n.Div(n, perAmount)
}

// Funds are what an account has of each currency, by number-1.
type Funds []struct{ Balance, Reserve *big.Int }

func (f Funds) String() string {
	s := ""
	for i, h := range f {
		s += fmt.Sprintf("%d: %v/%v ", i+1, h.Balance, h.Reserve)
	}
	return s
}

// needs is what an order holds, and of which currency.
func (p *Pair) needs(side trading.Side, price money.Price, amount money.Amount) (currency uint16,
	held *big.Int) {
	if side == trading.Buy {
		return p.Quote, valueOf(price, amount)
	}
	return p.Base, ofAmount(amount)
}

// Need is what an order of that kind would hold.
func (m *Model) Need(pair uint16, side trading.Side, price money.Price,
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

// funds adds up anew what an account has and holds.
func (m *Model) funds(a *Account) Funds {
	f := make(Funds, len(m.Currencies))
	for i := range f {
		f[i].Balance, f[i].Reserve = new(big.Int), new(big.Int)
		if i < len(a.balances) {
			f[i].Balance.Set(a.balances[i])
		}
	}
	for _, p := range m.Pairs {
		for _, side := range p.Book.sides {
			for _, o := range side {
				if o.Account == a.ID {
					currency, held := p.needs(o.Side, o.Price, o.Remaining)
					f[currency-1].Reserve.Add(f[currency-1].Reserve, held)
				}
			}
		}
	}
	for _, w := range m.Withdraws {
		if w.Account == a.ID && w.Pending() {
			f[w.Currency-1].Reserve.Add(f[w.Currency-1].Reserve, ofAmount(w.Amount))
		}
	}
	return f
}

// checkFunds notes what the accounts of a record have after it, and checks that money is conserved.
func (m *Model) checkFunds(accounts []uint32) error {
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
			return fmt.Errorf("all accounts have %v of %s, and %v came in and did not go out", sum,
				code, m.supply[i])
		}
	}
	return nil
}

// At is what an account had after the newest record up to a sequence that changed it, nil if there
// was none.
func (a *Account) At(seq uint64) Funds {
	for _, v := range slices.Backward(a.versions) {
		if v.seq <= seq {
			return v.funds
		}
	}
	return nil
}

// Touched is the sequence of the newest record up to a sequence that belongs to an account, 0 if
// there is none.
func (a *Account) Touched(seq uint64) uint64 {
	for _, v := range slices.Backward(a.versions) {
		if v.seq <= seq {
			return v.seq
		}
	}
	return 0
}

// OpenAt are an account's open orders after a record, by id.
func (a *Account) OpenAt(seq uint64) map[uint64]Order {
	for _, v := range slices.Backward(a.versions) {
		if v.seq <= seq {
			return v.open
		}
	}
	return nil
}

func (m *Model) open(a *Account) map[uint64]Order {
	open := map[uint64]Order{}
	for _, p := range m.Pairs {
		for _, side := range p.Book.sides {
			for _, o := range side {
				if o.Account == a.ID {
					open[o.ID] = *o
				}
			}
		}
	}
	return open
}

// MostPending is how many withdraws of an account were pending at most, from after one record to
// after another.
func (a *Account) MostPending(from, to uint64) (most int) {
	for _, v := range slices.Backward(a.versions) {
		if v.seq <= to {
			most = max(most, v.pending)
		}
		if v.seq <= from {
			break
		}
	}
	return most
}

func (m *Model) pending(a *Account) (n int) {
	for _, w := range m.Withdraws {
		if w.Account == a.ID && w.Pending() {
			n++
		}
	}
	return n
}

// A version is an account after a record.
type version struct {
	seq     uint64
	funds   Funds
	open    map[uint64]Order // by id
	pending int              // withdraws
}

// settleTrade moves the money of one trade, and checks its fees.
func (m *Model) settleTrade(p *Pair, o *event.Order, t *event.Trade) error {
	taker, maker := m.Accounts[o.Account-1], m.Accounts[t.MakerAccount-1]
	buyer, seller, buyerFee, sellerFee := taker, maker, t.TakerFee, t.MakerFee
	if o.Side == trading.Sell {
		buyer, seller, buyerFee, sellerFee = maker, taker, t.MakerFee, t.TakerFee
	}
	base, quote := ofAmount(t.Amount), valueOf(t.Price, t.Amount)
	seller.debit(p.Base, base)
	buyer.credit(p.Base, base)
	buyer.debit(p.Quote, quote)
	seller.credit(p.Quote, quote)
	takerGets, makerGets := base, quote
	if o.Side == trading.Sell {
		takerGets, makerGets = quote, base
	}
	if !m.feeFits(p, taker, takerGets, t.TakerFee, func(r Rates) money.Rate { return r.Taker }) ||
		!m.feeFits(p, maker, makerGets, t.MakerFee, func(r Rates) money.Rate { return r.Maker }) {
		return fmt.Errorf("trade %d: fees of %v and %v are of no rate that counts", t.ID,
			t.TakerFee, t.MakerFee)
	}
	for _, fee := range []struct {
		of       *Account
		currency uint16
		n        *big.Int
	}{{buyer, p.Base, Units(buyerFee)}, {seller, p.Quote, Units(sellerFee)}} {
		if fee.n.Sign() == 0 {
			continue
		}
		if m.feeAccount == nil || o.FeeAccount != m.feeAccount.ID {
			return fmt.Errorf("trade %d: its fees go to account %d", t.ID, o.FeeAccount)
		}
		fee.of.debit(fee.currency, fee.n)
		m.feeAccount.credit(fee.currency, fee.n)
	}
	return nil
}

// feeFits says whether a fee is that of the account's rate. A book looks at rates when it decides,
// and a change counts from its release on: so it may be the rate of just before, too.
func (m *Model) feeFits(p *Pair, a *Account, received *big.Int, fee money.Balance,
	which func(Rates) money.Rate) bool {
	list := a.rates[p.Number]
	if len(list) < ratesInFlight {
		list = append([]Rates{p.Rates}, list...)
	}
	for _, r := range list[max(0, len(list)-ratesInFlight):] {
		if feeOn(received, which(r)).Cmp(Units(fee)) == 0 {
			return true
		}
	}
	return false
}

// ratesInFlight is how many of an account's newest rates may count: the last two.
const ratesInFlight = 2
