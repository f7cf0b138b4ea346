package state

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// checkFinds returns a function that checks that Check finds a fault, with a text in its error.
func checkFinds(t *testing.T, sound func() *State) func(name string, plant func(s *State),
	text string) {
	t.Helper()
	if err := sound().Check(); err != nil {
		t.Fatal(err)
	}
	return func(name string, plant func(s *State), text string) {
		t.Helper()
		s := sound()
		plant(s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func change(s *State, account uint32, currency uint16, change func(h *ledger.Holding)) {
	h := s.Account(account).Wallet.Get(currency)
	change(&h)
	s.Account(account).Wallet.Put(h)
}

func TestCheckFindsWrongBalances(t *testing.T) {
	f := checkFinds(t, asked)
	most, unit := money.BalanceFromBits(math.MaxUint64, math.MaxUint64), money.BalanceFromBits(0, 1)
	f("a balance with a unit more", func(s *State) {
		change(s, 1, 1, func(h *ledger.Holding) { h.Balance = h.Balance.Add(unit) })
	}, "all balances of BTC")
	f("a balance with a unit less", func(s *State) {
		change(s, 2, 2, func(h *ledger.Holding) { h.Balance = h.Balance.Sub(unit) })
	}, "all balances of USD")
	f("the largest balance", func(s *State) {
		change(s, 1, 1, func(h *ledger.Holding) { h.Balance = most })
	}, "more than can exist")
	f("two balances that are too large together", func(s *State) {
		for a := range uint32(2) {
			change(s, a+1, 1, func(h *ledger.Holding) { h.Balance = money.MaxSupply })
		}
	}, "all balances of BTC together are above")
	f("a balance below its reserve", func(s *State) {
		change(s, 2, 2, func(h *ledger.Holding) { h.Balance = h.Reserve.Sub(unit) })
	}, "account bob reserves 48 of only 47.9")
	f("a reserve with a unit more", func(s *State) {
		change(s, 1, 1, func(h *ledger.Holding) { h.Reserve = h.Reserve.Add(unit) })
	}, "account alice reserves")
	f("a reserve with a unit less", func(s *State) {
		change(s, 2, 2, func(h *ledger.Holding) { h.Reserve = h.Reserve.Sub(unit) })
	}, "account bob reserves")
	f("a reserve for no order", func(s *State) {
		change(s, 3, 1, func(h *ledger.Holding) { h.Reserve = unit })
	}, "its orders and withdrawals hold 0")
	f("a reserve without a balance", func(s *State) {
		s.Account(3).Wallet.Put(ledger.Holding{Currency: 3, Reserve: unit})
	}, "account house reserves")
	f("an unknown currency", func(s *State) {
		s.Account(1).Wallet.Put(ledger.Holding{Currency: 4})
	}, "holds currency 4")
	f("a deposit that no balance shows", func(s *State) { s.currencies[2].Deposited = unit },
		"all balances of ETH")
	f("a withdrawal that no balance shows", func(s *State) { s.currencies[0].Withdrawn = unit },
		"all balances of BTC")
	f("an adjustment that no balance shows", func(s *State) { s.currencies[0].Adjusted = unit },
		"all balances of BTC")
	f("more withdrawn than deposited", func(s *State) { s.currencies[2].Withdrawn = unit },
		"withdrawn")
}

func TestCheckFindsWrongOpenOrders(t *testing.T) {
	f := checkFinds(t, asked)
	f("an open order that is forgotten", func(s *State) { s.Account(1).Open.Remove(2) },
		"order 2 in the book of BTC_USD")
	f("an open order that is nowhere", func(s *State) { s.Account(1).Open.Add(9, 1, trading.Buy) },
		"3 open orders, but the books have 2")
	f("an open order in another pair",
		func(s *State) { s.Account(1).Open.Remove(2); s.Account(1).Open.Add(2, 2, trading.Buy) },
		"order 2 in the book of BTC_USD")
	f("an open order of another side", func(s *State) {
		_, side := s.Account(1).Open.Find(2)
		s.Account(1).Open.Remove(2)
		s.Account(1).Open.Add(2, 1, side.Opposite())
	},
		"order 2 in the book of BTC_USD")
	f("a book without an order", func(s *State) { s.pairs[0].Book.Cancel(2) },
		"2 open orders, but the books have 1")
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
	f("an order above its pair's counter", func(s *State) { s.pairs[0].lastOrder = 2 },
		"order 3 of BTC_USD is above the last id given there, 2")
	add := func(s *State, o trading.Order) {
		o.Remaining = o.Amount
		s.pairs[1].Book.Add(o)
		s.pairs[1].lastOrder = o.ID
		s.Account(o.Account).Open.Add(o.ID, 2, o.Side)
	}
	// alice holds BTC and USD: an order that sells ETH is found though she never touched ETH.
	f("an order of a currency that the account never held", func(s *State) {
		add(s, trading.Order{ID: 9, Account: 1, Side: trading.Sell, Price: coin, Amount: coin})
	}, "account alice reserves 0 of currency 3")
	f("orders of unimaginable value", func(s *State) {
		for id := range uint64(9) {
			add(s, trading.Order{ID: 10 + id, Account: 1, Side: trading.Buy,
				Price: money.MaxPrice, Amount: money.MaxAmount})
		}
	}, "hold more money than can exist")
}

func TestCheckFindsWrongInstructions(t *testing.T) {
	f := checkFinds(t, speaking)
	again := func(id uint64, change func(stop *matching.Stop)) func(s *State) {
		return func(s *State) {
			stop, _ := s.pairs[0].Stops.Remove(id)
			change(&stop)
			s.pairs[0].Stops.Add(stop)
		}
	}
	f("a waiting order that is forgotten", func(s *State) { s.Account(1).Open.Remove(6) },
		"order 6 in the book of BTC_USD is not among")
	f("a waiting order that is nowhere", func(s *State) {
		s.pairs[0].Stops.Remove(6)
		delete(s.pairs[0].instructed, 6)
	}, "account alice has 3 open orders, but the books have 2")
	f("a waiting order of another amount", again(6, func(stop *matching.Stop) {
		stop.Order.Amount, stop.Order.Remaining = coin, coin
	}), "account alice reserves")
	f("a waiting order that was filled in part", again(6, func(stop *matching.Stop) {
		stop.Order.Remaining--
	}), "stop 6 of BTC_USD waits for")
	f("a waiting order with another trigger", again(6, func(stop *matching.Stop) {
		stop.Trigger.Price++
	}), "stop 6 of BTC_USD waits for")
	f("a waiting order without instructions",
		func(s *State) { delete(s.pairs[0].instructed, 6) }, "stop 6 of BTC_USD has other")
	f("a waiting order that was triggered",
		func(s *State) { s.pairs[0].instructed[6].Triggered = true },
		"stop 6 of BTC_USD has other")
	f("another half with another trigger", again(4, func(stop *matching.Stop) {
		stop.Trigger.Price++
	}), "stop 4 of BTC_USD does not rest")
	f("another half of no order in the book", func(s *State) { s.pairs[0].Book.Cancel(4) },
		"stop 4 of BTC_USD does not rest")
	f("another half that does not wait", func(s *State) { s.pairs[0].Stops.Remove(4) },
		"order 4 of BTC_USD waits: false")
	f("instructions of no open order", func(s *State) {
		s.pairs[0].instructed[99] = s.pairs[0].instructed[3]
	}, "order 99 of BTC_USD has instructions")
	f("empty instructions", func(s *State) {
		*s.pairs[0].instructed[3] = trading.Instructed{}
	}, "order 3 of BTC_USD has instructions")
	f("an open order with a reason of its end", func(s *State) {
		s.pairs[0].instructed[3].Cancelled = 1
	}, "order 3 of BTC_USD has instructions")
	f("an iceberg that displays other parts",
		func(s *State) { s.pairs[0].instructed[2].Display++ }, "order 2 of BTC_USD hides")
}

func TestCheckFindsWrongPendingWithdrawals(t *testing.T) {
	f := checkFinds(t, asked)
	unlist := func(s *State, w *Withdrawal) { s.unpend(w); s.withdrawals[w.ID] = w }
	f("a withdrawal of a unit more", func(s *State) { s.withdrawals[1].Amount++ },
		"account alice reserves")
	f("a withdrawal of a unit less", func(s *State) { s.withdrawals[1].Amount-- },
		"account alice reserves")
	f("a withdrawal of another currency", func(s *State) { s.withdrawals[1].Currency = 2 },
		"account alice reserves")
	another := func(s *State, currency uint16) {
		s.lastWithdrawal = 3
		s.pend(s.accounts[0], &Withdrawal{ID: 3, Account: 1, Currency: currency, Amount: 1,
			Status: event.WithdrawalNew})
	}
	f("a withdrawal of a currency that the account never held", func(s *State) { another(s, 3) },
		"account alice reserves 0 of currency 3")
	f("a withdrawal of an unknown currency", func(s *State) { another(s, 4) },
		"account alice reserves 0 of currency 4")
	f("a withdrawal of another account", func(s *State) { s.withdrawals[1].Account = 3 },
		"withdrawal 1 is not pending for account 3")
	f("a withdrawal of an unknown account", func(s *State) { s.withdrawals[1].Account = 4 },
		"withdrawal 1 is not pending for account 4")
	f("a withdrawal that is forgotten", func(s *State) { s.unpend(s.withdrawals[1]) },
		"account alice reserves")
	f("a withdrawal that only its account lists", func(s *State) {
		delete(s.withdrawals, 1)
		change(s, 1, 1, func(h *ledger.Holding) {
			h.Reserve = h.Reserve.Sub(money.Amount(2 * coin).Balance())
		})
	}, "accounts have 2 pending withdrawals, but the state has 1")
	f("a withdrawal that its account does not list", func(s *State) { unlist(s, s.withdrawals[1]) },
		"withdrawal 1 is not pending for account 1")
	f("a withdrawal that another account has", func(s *State) {
		unlist(s, s.withdrawals[1])
		s.pend(s.accounts[2], s.withdrawals[1])
	}, "withdrawal 1 is not pending for account 1")
	f("a withdrawal that its account has twice",
		func(s *State) { s.pend(s.accounts[0], s.withdrawals[1]) },
		"accounts have 3 pending withdrawals, but the state has 2")
	f("a withdrawal under another id", func(s *State) { s.withdrawals[1].ID = 2 },
		"withdrawal 1 is not pending")
	f("a withdrawal above the counter", func(s *State) { s.lastWithdrawal = 1 },
		"withdrawal 2 is not pending for account 2, or above the last id given, 1")
	for _, status := range []uint8{0, event.WithdrawalApproved, event.WithdrawalRefused,
		event.WithdrawalCancelled, 255} {
		f("a closed withdrawal", func(s *State) { s.withdrawals[1].Status = status },
			fmt.Sprintf("withdrawal 1 has status %d", status))
	}
}

func TestCheckFindsWrongApprovals(t *testing.T) {
	f := checkFinds(t, asked)
	f("an approved withdrawal that is not counted", func(s *State) {
		apply(t, s, approve2())
		s.currencies[1].Withdrawn = money.Balance{}
	}, "all balances of USD are 70, but deposits - withdrawals - "+
		"adjustments are 100")
	f("an approved withdrawal that did not leave", func(s *State) {
		apply(t, s, approve2())
		change(s, 2, 2, func(h *ledger.Holding) {
			h.Balance = h.Balance.Add(money.Amount(30 * coin).Balance())
		})
	}, "all balances of USD are 100, but deposits - withdrawals - "+
		"adjustments are 70")
	f("an approved withdrawal that is still reserved", func(s *State) {
		apply(t, s, approve2())
		change(s, 2, 2, func(h *ledger.Holding) {
			h.Reserve = h.Reserve.Add(money.Amount(30 * coin).Balance())
		})
	}, "account bob reserves 48 of currency 2, but its orders and withdrawals hold 18")
}
