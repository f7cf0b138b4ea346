package ledger

import (
	"fmt"

	"exchange/core/money"
)

// A Holding is a wallet's money of one currency. 0 <= Reserve <= Balance.
type Holding struct {
	Currency uint16
	Balance  money.Balance // all money of the currency
	Reserve  money.Balance // part that open orders and pending withdrawals hold
}

// Available returns the part that is not reserved.
func (h Holding) Available() money.Balance { return h.Balance.Sub(h.Reserve) }

// A Wallet holds the currencies of one account, sorted by number. The zero Wallet is empty. Few
// accounts hold many currencies, so a short sorted slice serves better than a map.
type Wallet struct {
	holdings []Holding
}

// Holdings returns every currency ever touched, in order of their numbers. The slice belongs to the
// wallet: read only, until the next change.
func (w *Wallet) Holdings() []Holding { return w.holdings }

// Get returns the holding of a currency, zero if never touched.
func (w *Wallet) Get(currency uint16) Holding {
	for i := range w.holdings {
		if w.holdings[i].Currency == currency {
			return w.holdings[i]
		}
	}
	return Holding{Currency: currency}
}

// NewWallet returns a wallet with a copy of the holdings, sorted by currency.
func NewWallet(holdings []Holding) Wallet {
	return Wallet{append([]Holding(nil), holdings...)}
}

// Put sets a holding.
func (w *Wallet) Put(h Holding) { *w.at(h.Currency) = h }

// Clone returns a copy that shares nothing.
func (w *Wallet) Clone() Wallet { return Wallet{append([]Holding(nil), w.holdings...)} }

func (w *Wallet) at(currency uint16) *Holding {
	i := 0
	for i < len(w.holdings) && w.holdings[i].Currency < currency {
		i++
	}
	if i == len(w.holdings) || w.holdings[i].Currency != currency {
		// Grow by one: an account rarely gets a new currency, and there are many accounts.
		grown := make([]Holding, len(w.holdings)+1)
		copy(grown, w.holdings[:i])
		grown[i] = Holding{Currency: currency}
		copy(grown[i+1:], w.holdings[i:])
		w.holdings = grown
	}
	return &w.holdings[i]
}

// A Change is the effect of one record on one holding.
type Change struct {
	Currency uint16
	//tidy:keep other rooms name the credit alone
	Credit, Debit money.Balance // added to the balance, taken from the balance
	//tidy:keep as above
	Lock, Unlock money.Balance // added to the reserve, taken from the reserve
}

// Apply makes one change. An error means that the journal or the program is wrong: the change does
// not fit this wallet, which stays unchanged, and the caller must stop.
func (w *Wallet) Apply(c *Change) error {
	h := w.Get(c.Currency)
	balance, reserve := h.Balance.Add(c.Credit), h.Reserve.Add(c.Lock)
	if balance.Cmp(c.Debit) < 0 {
		return fmt.Errorf("a balance of %v of currency %d is debited %v", balance, c.Currency,
			c.Debit)
	}
	if reserve.Cmp(c.Unlock) < 0 {
		return fmt.Errorf("a reserve of %v of currency %d releases %v", reserve, c.Currency,
			c.Unlock)
	}
	balance, reserve = balance.Sub(c.Debit), reserve.Sub(c.Unlock)
	if reserve.Cmp(balance) > 0 {
		return fmt.Errorf("of currency %d %v would be reserved with a balance of %v", c.Currency,
			reserve, balance)
	}
	*w.at(c.Currency) = Holding{Currency: c.Currency, Balance: balance, Reserve: reserve}
	return nil
}
