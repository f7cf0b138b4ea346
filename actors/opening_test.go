package actors

import (
	"errors"
	"testing"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
)

// coldAccounts are two accounts after a start: ann has an order of 2 BTC at 100 with a client order
// id, and ben has the money to buy it. Only ben's wallet has started.
func coldAccounts(t *testing.T, fresh places) (g *gated, ben *directory.Key, named *OrderRequest) {
	g = newGated(t, fresh, nil)
	ben = fund(t, g.e, "ben", map[string]money.Amount{"USD": 1000 * coin})
	named = g.sell(2 * coin)
	named.ClientID, _ = event.NewClientID("once")
	g.rest(named)
	g.restart("stop")
	named.Pair = g.e.Pairs()[0]
	ben = g.e.Key([]byte(ben.Public))
	g.e.probeWallet(ben.Account, func(*wallet) {})
	return g, ben, named
}

func (g *gated) orderOf(key *directory.Key, nonce uint64, w *OrderRequest) func() (*Command,
	error) {
	return func() (*Command, error) { return g.e.Place(key, nonce, w) }
}

// A wallet needed while the fold lags starts with everything released before, and gets the rest. No
// wallet starts without a need.
func TestAWalletStartsWithEarlierReleases(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g, ben, _ := coldAccounts(t, fresh)
		spend := g.buy(1e8, 1100*coin) // ann's 1,000 USD, and 100 that she gets for 1 BTC
		unblock := g.blocked()
		g.ends("a trade", g.orderOf(ben, 1, g.buy(100e8, coin)), accepted)
		if g.key.Account.Wallet() != nil {
			t.Error("a trade of a resting order has started its owner's wallet")
		}
		spent := g.begin(g.placing(spend))
		eventually(t, "the wallet is there", func() bool { return g.key.Account.Wallet() != nil })
		g.ends("another trade", g.orderOf(ben, 2, g.buy(100e8, coin)), accepted)
		if g.key.Account.WalletBegan() != 0 {
			t.Error("the wallet has begun without the fold")
		}
		unblock()
		wantOutcome(t, "an order for all that ann had and got before", <-spent, accepted)
		g.ends("an order for what she got later", g.placing(g.buy(1e8, 100*coin)), accepted)
		g.ends("one for more", g.placing(g.buy(1e8, coin)), refusedFor(event.RefusedFunds))
		g.end()
	})
}

// The wallet of an account with many open orders starts with the engine, so that it does not block
// the fold later.
func TestALargeWalletStartsWithTheEngine(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g, _, _ := coldAccounts(t, fresh)
		for range openAtOnce / 50 {
			list, errs := make([]*Command, 50), make([]error, 50)
			g.nonce++
			for i := range list {
				list[i] = NewOrder(g.key, g.nonce, g.buy(1e8, 1e5))
			}
			succeeds(t, errors.Join(g.e.DoAll(list, errs), errors.Join(errs...)))
			for _, c := range list {
				if c.Outcome() != Accepted {
					t.Fatal("an order is refused")
				}
				c.Free()
			}
		}
		g.restart("crash")
		if at := g.key.Account.WalletBegan(); at == 0 {
			t.Errorf("with %d open orders the wallet has yet to begin", openAtOnce+1)
		}
		g.end()
	})
}

// A wallet opened while the journal's writer sends settlements starts after all of these.
func TestAWalletStartsAfterTheBatchBeingReleased(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g, ben, _ := coldAccounts(t, fresh)
		next := g.e.committed.Released() + 1
		g.e.opener.settlingSeq.Store(next) // as the writer does, before it looks up wallets
		g.e.openWallet(g.key.Account)
		g.e.probeFold(func() {})
		if at := g.key.Account.WalletBegan(); at != 0 {
			t.Errorf("the wallet has begun at %d, before record %d", at, next)
		}
		g.ends("a trade", g.orderOf(ben, 1, g.buy(100e8, coin)), accepted)
		g.e.probeWallet(g.key.Account, func(*wallet) {})
		if at := g.key.Account.WalletBegan(); at < next {
			t.Errorf("the wallet has begun at %d, without record %d", at, next)
		}
		g.end()
	})
}

// The client order id of an order closed just before its wallet started is taken.
func TestAWalletStartsWithTheClientOrderIDsOfClosedOrders(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g, ben, named := coldAccounts(t, fresh)
		unblock := g.blocked()
		g.ends("a trade", g.orderOf(ben, 1, g.buy(100e8, 2*coin)), accepted)
		again := g.begin(g.placing(named))
		eventually(t, "the wallet is there", func() bool { return g.key.Account.Wallet() != nil })
		unblock()
		wantOutcome(t, "an order with the same client order id", <-again,
			refusedFor(event.RefusedClientID))
		g.end()
	})
}

// A client that asks for an order which waits for its wallet receives it once the wallet has
// started.
func TestAnOrderThatWaitsForItsWalletIsNotMissing(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g, _, named := coldAccounts(t, fresh)
		named.ClientID, _ = event.NewClientID("new")
		named.Amount = coin
		account := g.key.Account.ID
		unblock := g.blocked()
		sent := g.begin(g.placing(named))
		eventually(t, "the wallet is there", func() bool { return g.key.Account.Wallet() != nil })
		nonce := g.nonce + 1
		q := &committed.OpenOrders{Account: account, ClientID: named.ClientID, Limit: 1}
		asked := make(chan error, 1)
		go func() { asked <- g.e.Ask(q, g.key, nonce) }()
		eventually(t, "the question is asked", func() bool { return g.e.ReadsInFlight() == 1 })
		unblock()
		wantOutcome(t, "the order", <-sent, accepted)
		if err := <-asked; err != nil || len(q.Orders) != 1 {
			t.Errorf("the order is there: %v, %v", q.Orders, err)
		}
		g.nonce = nonce
		g.end()
	})
}

// A starting wallet's mailbox contains some settlements that its state already includes.
func TestASettlementInAWalletsFirstStateCountsOnce(t *testing.T) {
	var settler ledger.Settler
	deposit := &event.Record{Kind: event.KindDeposit,
		Deposit: event.Deposit{ID: 1, Account: 1, Currency: 1, Amount: coin}}
	account := &directory.Account{ID: 1, Name: "ann"}
	w := &wallet{account: account, early: new(mailbox.FIFO[any])}
	for seq := range uint64(5) {
		m := settlements.Get().(*settled)
		*m = settled{seq: seq + 1}
		settler.Settle(deposit, 0, 0)[0].CopyTo(&m.settlement)
		w.receiveEarly(m)
	}
	w.receiveEarly(&wallet{account: account, applied: 3})
	want := money.Amount(2 * coin).Balance()
	if got := w.balances.Get(1).Balance; got.Cmp(want) != 0 || w.applied != 5 ||
		account.WalletBegan() != 3 {
		t.Errorf("the wallet has %v at %d, and began at %d", got, w.applied, account.WalletBegan())
	}
}
