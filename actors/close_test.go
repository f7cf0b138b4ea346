package actors

import (
	"fmt"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// closing closes an account.
func (b *teller) closing(account string) string {
	if a, err := b.e.CloseAccount("ops", account); err != nil || a.Repeated {
		return fmt.Sprint(err)
	}
	return "closed"
}

func TestAnEmptyAccountIsClosedPermanently(t *testing.T) {
	onTeller(t, nil, func(t *testing.T, b *teller) {
		must[Admin](t)(b.e.CreateKey("test", "ann", "another-of-ann", "secret", 1, nil))
		must[Admin](t)(b.e.CreateAccount("test", "bob", "bob@example.org"))
		const last = ", so it is not closed"
		b.expect(b.closing("fees"), "there is no account \"fees\"")
		b.expect(b.closing("ann"), "account ann has a balance of 10 BTC"+last)
		b.expect(b.ask(coin), "withdraw 1")
		b.expect(b.closing("ann"), "account ann has pending withdrawals: 1"+last)
		b.expect(outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), 1))), "status 50")
		order := must[*Command](t)(b.e.Place(b.key, b.next(), &OrderRequest{Pair: b.e.Pairs()[0],
			Side: trading.Sell, Price: 1000000000, Amount: 10 * coin}))
		id := order.Record().Order.ID
		order.Free()
		b.expect(b.closing("ann"), "account ann has open orders: 1"+last)
		b.expect(outcomeOf(b.e.Cancel(b.key, b.next(), id)), "accepted")
		b.expect(outcomeOf(b.e.Adjust("ops", b.key.Account.ID, 1, 10*coin, "moved",
			wantID(t, "move-1"))), "accepted")
		b.expect(b.closing("ann"), "closed")
		b.over("ann")
		b.expect(b.closing("bob"), "closed")
		b.restart()
		b.over("ann")
		b.over("bob")
		must[Admin](t)(b.e.CreateAccount("test", "fees", ""))
		b.expect(b.closing("fees"), "account fees gets the fees of all trades, so it is not closed")
	})
}

// over checks that an account is closed, and that nothing changes it.
func (b *teller) over(account string) {
	b.t.Helper()
	const is = "is closed"
	do := func(what, want string, err error) {
		b.t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			b.t.Errorf("%s of %s: %v, want %q", what, account, err, want)
		}
	}
	if a, err := b.e.CloseAccount("ops", account); err != nil || !a.Repeated {
		b.t.Errorf("another end of %s: %+v, %v", account, a, err)
	}
	_, err := b.e.Deposit("ops", account, "BTC", coin, "late")
	do("a deposit", is, err)
	_, err = b.e.CreateKey("ops", account, "late-key", "secret", 1, nil)
	do("a key", is, err)
	_, err = b.e.Freeze("ops", account, false)
	do("the end of a freeze", is, err)
	_, err = b.e.SetEmail("ops", account, "late@example.org")
	do("an address", is, err)
	_, err = b.e.SetFees("ops", account, b.e.Pairs()[0].Name, &state.FeeRates{})
	do("fees", is, err)
	_, err = b.e.CreateAccount("ops", account, "")
	do("its name", "exists already", err)
	if account != "ann" {
		return
	}
	for _, key := range []string{"key-of-ann", "another-of-ann"} {
		if b.e.Key([]byte(key)) != nil {
			b.t.Errorf("key %s is live", key)
		}
		_, err = b.e.RevokeKey("ops", key)
		do("the revocation of a key", "is revoked already", err)
		_, err = b.e.CreateKey("ops", "bob", key, "secret", 1, nil)
		do("a key's name", "", err)
	}
	a, err := b.e.Deposit("ops", account, "BTC", 10*coin, "r")
	if err != nil || !a.Repeated {
		b.t.Errorf("a deposit of before is repeated: %+v, %v", a, err)
	}
}

// ending closes an account.
func (g *gated) ending(account string) func() (*Command, error) {
	return asOperator(func() (Admin, error) { return g.e.CloseAccount("test", account) })
}

func asOperator(do func() (Admin, error)) func() (*Command, error) {
	return func() (*Command, error) {
		_, err := do()
		return nil, err
	}
}

// emptied returns a gated engine in which bob has a key and no money.
func emptied(t *testing.T, fresh places) *gated {
	g := newGated(t, fresh, nil)
	must[Admin](t)(g.e.CreateAccount("test", "bob", ""))
	must[Admin](t)(g.e.CreateKey("test", "bob", "key-of-bob", "secret", 7, nil))
	g.e.probeWallet(g.e.Key([]byte("key-of-bob")).Account, func(*wallet) {})
	return g
}

func (g *gated) crediting(reference string) func() (*Command, error) {
	return asOperator(func() (Admin, error) {
		return g.e.Deposit("test", "bob", "BTC", coin, reference)
	})
}

func TestADepositInFlightKeepsItsAccountOpen(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := emptied(t, fresh)
		g.hold()
		deposit := g.begin(g.crediting("first"))
		eventually(t, "the deposit is at the store", g.held)
		end := g.begin(g.ending("bob"))
		silent(t, "the end", end)
		g.letGo()
		if a, b := <-deposit, <-end; a != accepted ||
			!strings.Contains(b, "account bob has a balance of 1 BTC") {
			t.Errorf("the deposit: %s; the end: %s", a, b)
		}
		g.ends("the next deposit", g.crediting("second"), accepted)
		g.end()
	})
}

// A command after a closing in flight is decided once the closing is durable.
func TestCommandsAfterAClosingInFlightWaitForIt(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := emptied(t, fresh)
		key := g.e.Key([]byte("key-of-bob"))
		g.hold()
		end := g.begin(g.ending("bob"))
		eventually(t, "the end is at the store", g.held)
		later := map[string]<-chan string{
			"account bob is closed": g.begin(g.crediting("late")),
			accepted:                g.begin(g.ending("bob")),
			"bob is closed": g.begin(asOperator(func() (Admin, error) {
				return g.e.CreateKey("test", "bob", "late-key", "secret", 7, nil)
			})),
			"revoked already": g.begin(asOperator(func() (Admin, error) {
				return g.e.RevokeKey("test", "key-of-bob")
			})),
			refusedFor(event.RefusedFrozen): g.begin(func() (*Command, error) {
				return g.e.Place(key, 1, g.sell(coin))
			}),
		}
		other := g.begin(asOperator(func() (Admin, error) {
			return g.e.Deposit("test", "ann", "BTC", coin, "anns")
		}))
		silent(t, "the end", end)
		for want, done := range later {
			silent(t, want, done)
		}
		g.letGo()
		if a, b := <-end, <-other; a != accepted || b != accepted {
			t.Errorf("the end: %s; a deposit of another account: %s", a, b)
		}
		for want, done := range later {
			if got := <-done; !strings.Contains(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
		}
		g.end()
	})
}

// Waiting commands are decided together, except those about one account.
func TestCommandsAboutOneAccountAreDecidedOneByOne(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := emptied(t, fresh)
		g.hold()
		other := g.begin(asOperator(func() (Admin, error) {
			return g.e.CreateAccount("test", "cid", "")
		}))
		eventually(t, "the first is at the store", g.held)
		deposit, end := g.begin(g.crediting("one")), g.begin(g.ending("bob"))
		more := g.begin(asOperator(func() (Admin, error) {
			return g.e.CreateAccount("test", "dan", "")
		}))
		eventually(t, "the others wait",
			func() bool { return g.e.registry.UserMessageCount() == 3 })
		silent(t, "a deposit", deposit)
		g.letGo()
		wantOutcome(t, "the first", <-other, accepted)
		wantOutcome(t, "another account", <-more, accepted)
		switch a, b := <-deposit, <-end; {
		case a == accepted && strings.Contains(b, "account bob has a balance of 1 BTC"):
		case b == accepted && strings.Contains(a, "account bob is closed"):
		default:
			t.Errorf("the deposit: %s; the end: %s", a, b)
		}
		if id := must[Admin](t)(g.e.CreateAccount("test", "eve", "")).AccountID; id != 5 {
			t.Errorf("account %d", id)
		}
		g.end()
	})
}

func TestCommandsInFlightKeepTheirAccountOpen(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		for currency, amount := range map[uint16]money.Amount{1: 10 * coin, 2: 1000 * coin} {
			g.ends("an adjustment", func() (*Command, error) {
				return g.e.Adjust("test", g.key.Account.ID, currency, amount, "moved",
					wantID(t, "move-"+g.e.CurrencyCode(currency)))
			}, accepted)
		}
		g.hold()
		refused := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the refusal is at the store", g.held)
		end, got := g.begin(g.ending("ann")), ""
		eventually(t, "the end is decided", func() (decided bool) {
			select {
			case got = <-end:
				return true
			default:
			}
			g.e.probeWallet(g.key.Account, func(w *wallet) { decided = w.frozen })
			return decided
		})
		if want := "account ann has commands in flight (freeze it, and try again), so it is " +
			"not closed"; got != want {
			t.Errorf("an end: %q, want %q", got, want)
		}
		g.letGo()
		wantOutcome(t, "refused", <-refused, refusedFor(event.RefusedFunds))
		g.ends("an end", g.ending("ann"), accepted)
	})
}
