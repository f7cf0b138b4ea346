package actors

import (
	"errors"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
)

// blocked keeps the committed side from its mailbox until the returned function is called.
func (g *gated) blocked() (goOn func()) {
	begun, end := make(chan struct{}), make(chan struct{})
	go g.e.probe(g.e.work.Fold, func() {
		close(begun)
		<-end
	})
	<-begun
	return func() {
		close(end)
		g.e.probe(g.e.work.Fold, func() {}) // it has gone through what was there
	}
}

func TestAReadThatItsHandlerHasLeftIsNotAnsweredAndHoldsItsSlotsUntilItsTurn(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Limits.Reads, o.Limits.ReadsPerAccount = 4, 2
	}, func(t *testing.T, g *gated) {
		ben := fund(t, g.e, "ben", nil)
		g.rest(g.sell(1e5))
		for round := range uint64(2) { // the second proves that the first gave all places back
			patience := g.e.opts.Timing.Request
			g.e.setPatience(time.Millisecond)
			goOn := g.blocked()
			leave := func(q committed.Question, key *directory.Key, nonce uint64) {
				t.Helper()
				if err := g.e.Ask(q, key, nonce); !errors.Is(err, committed.ErrTimeout) {
					t.Fatalf("a read of what is blocked: %v", err)
				}
			}
			var wallet committed.Wallet
			var written committed.Barrier
			var hash committed.Hash
			orders := committed.OpenOrders{Account: 1, Limit: 10}
			leave(&wallet, g.key, 1000*(round+1))
			leave(&written, g.key, 1001*(round+1))
			g.ends("a third of the account", g.asking(new(committed.Wallet), g.key, 1002*(round+1)),
				ErrAccountBusy.Error())
			leave(&hash, nil, 0)
			leave(&orders, nil, 0)
			g.ends("a fifth of all", g.asking(new(committed.Hash), nil, 0), ErrBusy.Error())
			if n := g.e.Stats().ReadsInFlight; n != 4 {
				t.Errorf("%d reads are in flight instead of 4", n)
			}
			goOn()
			g.e.setPatience(patience)
			eventually(t, "none is in flight", func() bool {
				return g.e.Stats().ReadsInFlight == 0
			})
			if wallet.Seq|written.Seq|hash.Seq|orders.Seq != 0 {
				t.Errorf("reads that were left are answered: %+v %+v %+v %+v", wallet, written,
					hash, orders)
			}
			var nonce uint64
			if g.e.probe(g.e.work.Fold, func() {
				nonce = g.e.committed.Nonce(g.key.Number)
			}); nonce != 1001*(round+1) {
				t.Errorf("nonce %d is the key's highest instead of %d", nonce, 1001*(round+1))
			}
			g.ends("another account", g.asking(new(committed.Wallet), ben, round+1), accepted)
		}
		g.nonce = 1e6
	})
}

func TestAReadThatWaitsForTheHistoryGivesItsSlotsBackWhenItIsLeft(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Limits.Reads, o.Limits.ReadsPerAccount = 8, 1
	}, func(t *testing.T, g *gated) {
		g.set(func() { g.applying = true })
		g.rest(g.sell(1e5))
		waits := func(n int) func() bool {
			return func() bool {
				var waiting int
				g.e.probe(g.e.work.Fold, func() { waiting = committed.Waiting(g.e.committed) })
				return waiting == n
			}
		}
		first := g.begin(g.asking(new(committed.Barrier), g.key, 100))
		eventually(t, "a read waits", waits(1))
		g.ends("one more of the account", g.asking(new(committed.Wallet), g.key, 101),
			ErrAccountBusy.Error())
		g.set(func() { g.applying = false })
		isTold(t, "the first", <-first, accepted)
		g.nonce = 1000
	})
}

// A question for an order by its client order id waits in its wallet for the store. When its
// handler has left, it holds no slot until the store answers.
func TestAReadThatItsWalletHoldsGivesItsSlotsBackWhenItIsLeft(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Limits.Reads, o.Limits.ReadsPerAccount = 1, 1
	}, func(t *testing.T, g *gated) {
		ben := fund(t, g.e, "ben", map[string]money.Amount{"BTC": coin})
		g.hold()
		order := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		id, _ := event.NewClientID("mine")
		for i := range uint64(2) { // one more than there are places
			r := &committed.OpenOrders{ClientID: id, Limit: 1}
			committed.SetPatience(g.e.Door, 50*time.Millisecond)
			g.ends("a question for an order",
				func() (*Command, error) { return nil, g.e.Ask(r, g.key, 100+i) },
				committed.ErrTimeout.Error())
			committed.SetPatience(g.e.Door, time.Minute)
			g.ends("another account", g.asking(new(committed.Wallet), ben, i+1), accepted)
		}
		if n := g.e.ReadsInFlight(); n != 0 {
			t.Errorf("%d reads are in flight", n)
		}
		g.letGo()
		isTold(t, "the order", <-order, accepted)
		eventually(t, "all nonces are known to the committed side", func() (so bool) {
			g.e.probe(g.e.work.Fold, func() { so = g.e.committed.Nonce(g.key.Number) == 101 })
			return so
		})
		g.nonce = 1000
	})
}

func TestTheAnswerToACommandWaitsForNoOtherRead(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		waiting := func(n int) {
			t.Helper()
			eventually(t, "messages wait for the committed side", func() bool {
				return g.queue("committed").UserMessageCount() >= n
			})
		}
		begun, first, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go g.e.probe(g.e.work.Fold, func() { close(begun); <-first })
		<-begun
		go g.e.probe(g.e.work.Fold, func() { <-second }) // as a long read would
		waiting(1)
		id := g.rest(g.sell(1e5))
		answered := make(chan error, 1)
		go func() {
			q := &committed.OneOrder{Account: g.key.Account.ID, ID: id}
			err := g.e.FollowUp(q)
			if err == nil && !q.Found {
				err = errors.New("the order is not there")
			}
			answered <- err
		}()
		waiting(3) // the batch, too
		close(first)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		close(second)
	})
}
