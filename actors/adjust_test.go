package actors

import (
	"strings"
	"sync/atomic"
	"testing"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/persistence"
)

// adjusting takes BTC from the first account.
func (g *gated) adjusting(amount money.Amount, reference string) func() (*Command, error) {
	return func() (*Command, error) {
		return g.e.Adjust("test", g.key.Account.ID, 1, amount, "credited twice",
			wantID(g.t, reference))
	}
}

// What is on its way to a book or to the store is not available, whichever comes first.
func TestAnAdjustmentTakesNothingThatIsInFlight(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.hold()
		order := g.begin(g.placing(g.sell(6 * coin)))
		eventually(t, "the order is at the store", g.held)
		much := g.begin(g.adjusting(4*coin+1, "much"))
		g.inMailbox(2)
		rest := g.begin(g.adjusting(4*coin, "rest"))
		g.inMailbox(3)
		again := g.begin(g.adjusting(1, "rest"))
		g.inMailbox(4)
		silent(t, "what is refused", much)
		silent(t, "what is taken", rest)
		silent(t, "what is repeated", again)
		g.letGo()
		if a, b, c, d := <-order, <-much, <-rest, <-again; a != accepted ||
			b != refusedFor(event.RefusedFunds) || c != accepted ||
			d != refusedFor(event.RefusedWithdrawalID) {
			t.Errorf("the order: %s; too much: %s; the rest: %s; its repeat: %s", a, b, c, d)
		}
		if got := g.funds(1, 1); got != "6/6" {
			t.Errorf("the wallet has %s BTC", got)
		}
		g.ends("an order for what was taken", g.placing(g.sell(1)),
			refusedFor(event.RefusedFunds))
		g.crash()
		g.again()
		g.ends("a repeat behind a crash", g.adjusting(4*coin, "rest"),
			refusedFor(event.RefusedWithdrawalID))
		g.end()
	})
}

// While a member does not read adjustments, none is written, and nothing is taken.
func TestAccountsAreAdjustedOnceAllMembersReadThat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var older atomic.Bool
		older.Store(true)
		c := newCluster(t, func(_ int, o *Options) {
			o.Store = olderMembers{o.Store.(persistence.Replica), &older,
				persistence.FormatCorrections}
		})
		r := c.next()
		key := fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		eventually(t, "all members read the newest format", func() bool {
			return r.node.replica.(olderMembers).Replica.Standing().Format >=
				persistence.FormatCorrections
		})
		adjust := func() string {
			return outcomeOf(r.Adjust("test", key.Account.ID, 1, coin, "why", wantID(t, "one")))
		}
		if got := adjust(); !strings.Contains(got, "not all nodes of the cluster") {
			t.Errorf("while one does not: %s", got)
		}
		older.Store(false)
		if got := adjust(); got != accepted {
			t.Errorf("once all do: %s", got)
		}
	})
}
