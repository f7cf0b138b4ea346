package state

import (
	"math"
	"strings"
	"testing"

	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/money"
)

func TestCheckFindsPlantedFaults(t *testing.T) {
	most := money.BalanceFromBits(math.MaxUint64, math.MaxUint64)
	f := func(what string, plant func(s *State), text string) {
		t.Helper()
		s := small()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		plant(s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	change := func(s *State, account uint32, currency uint16, change func(h *ledger.Holding)) {
		h := s.Account(account).Wallet.Get(currency)
		change(&h)
		s.Account(account).Wallet.Put(h)
	}
	unit := money.BalanceFromBits(0, 1)
	f("a balance with a unit more", func(s *State) {
		change(s, 1, 1, func(h *ledger.Holding) { h.Balance = h.Balance.Add(unit) })
	}, "all balances of BTC")
	f("a balance with a unit less", func(s *State) {
		change(s, 2, 2, func(h *ledger.Holding) { h.Balance = h.Balance.Sub(unit) })
	}, "all balances of USD")
	f("the largest balance", func(s *State) { change(s, 1, 1, func(h *ledger.Holding) { h.Balance = most }) }, "more than there can be")
	f("two balances that are too large together", func(s *State) {
		for a := range uint32(2) {
			change(s, a+1, 1, func(h *ledger.Holding) { h.Balance = money.MaxSupply })
		}
	}, "all balances of BTC are above")
	f("a balance below its reserve", func(s *State) {
		change(s, 2, 2, func(h *ledger.Holding) { h.Balance = h.Reserve.Sub(unit) })
	}, "account bob reserves 18 of 17.9")
	f("a reserve with a unit more", func(s *State) {
		change(s, 1, 1, func(h *ledger.Holding) { h.Reserve = h.Reserve.Add(unit) })
	}, "account alice reserves")
	f("a reserve with a unit less", func(s *State) {
		change(s, 2, 2, func(h *ledger.Holding) { h.Reserve = h.Reserve.Sub(unit) })
	}, "account bob reserves")
	f("a reserve for no order", func(s *State) {
		change(s, 3, 1, func(h *ledger.Holding) { h.Reserve = unit })
	}, "its open orders hold 0")
	f("a reserve without a balance", func(s *State) {
		s.Account(3).Wallet.Put(ledger.Holding{Currency: 3, Reserve: unit})
	}, "account house reserves")
	f("an unknown currency", func(s *State) { s.Account(1).Wallet.Put(ledger.Holding{Currency: 4}) }, "holds currency 4")
	f("a deposit that no balance shows", func(s *State) { s.currencies[2].Deposited = unit }, "all balances of ETH")
	f("a withdrawal that no balance shows", func(s *State) { s.currencies[0].Withdrawn = unit }, "all balances of BTC")
	f("more withdrawn than deposited", func(s *State) { s.currencies[2].Withdrawn = unit }, "withdrawn")
	f("an open order that is forgotten", func(s *State) { s.Account(1).Open.Remove(2) }, "order 2 in the book of BTC_USD")
	f("an open order that is nowhere", func(s *State) { s.Account(1).Open.Add(9, 1) }, "3 open orders, the books have 2")
	f("an open order in another pair", func(s *State) { s.Account(1).Open.Remove(2); s.Account(1).Open.Add(2, 2) }, "order 2 in the book of BTC_USD")
	f("a book without an order", func(s *State) { s.pairs[0].Book.Cancel(2) }, "2 open orders, the books have 1")
	f("a book with a smaller order", func(s *State) {
		o, _ := s.pairs[0].Book.Cancel(2)
		o.Remaining--
		s.pairs[0].Book.Add(o)
	}, "account alice reserves")
	f("a book with an order at another price", func(s *State) {
		o, _ := s.pairs[0].Book.Cancel(3)
		o.Price--
		s.pairs[0].Book.Add(o)
	}, "account bob reserves")
	f("a book with an order of an unknown account", func(s *State) {
		o, _ := s.pairs[0].Book.Cancel(3)
		o.Account = 4
		s.pairs[0].Book.Add(o)
	}, "account 4")
	f("an order above its pair's counter", func(s *State) { s.pairs[0].lastOrder = 2 }, "order 3 of BTC_USD is above its counter 2")
	add := func(s *State, o matching.Order) {
		o.Remaining = o.Amount
		s.pairs[1].Book.Add(o)
		s.pairs[1].lastOrder = o.ID
		s.Account(o.Account).Open.Add(o.ID, 2)
	}
	// alice holds BTC and USD: an order that sells ETH is found though she never touched ETH.
	f("an order of a currency that the account never held", func(s *State) {
		add(s, matching.Order{ID: 9, Account: 1, Side: matching.Sell, Price: coin, Amount: coin})
	}, "account alice reserves 0 of currency 3")
	f("orders of unimaginable value", func(s *State) {
		for id := range uint64(9) {
			add(s, matching.Order{ID: 10 + id, Account: 1, Side: matching.Buy, Price: money.MaxPrice, Amount: money.MaxAmount})
		}
	}, "hold more than there can be")
}
