package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
)

// comparison returns one whose parts are small.
func (g *gated) comparison() *comparison { return &comparison{Engine: g.e, orders: 10} }

// comparing begins a part of an audit's comparison.
func (g *gated) comparing(part func(c *comparison) error) (*comparison, <-chan error) {
	c, done := g.comparison(), make(chan error, 1)
	go func() { done <- part(c) }()
	return c, done
}

// queue returns the mailbox of an actor that there is once.
func (g *gated) queue(name string) interface{ UserMessageCount() int } {
	all := slices.Concat(g.e.queues, g.e.work.Queues)
	i := slices.IndexFunc(all, func(q committed.Queue) bool { return q.Name == name })
	return all[i].Mailbox
}

// clean fails the test unless a part has ended, and has found nothing.
func (g *gated) clean(c *comparison, done <-chan error) {
	g.t.Helper()
	if err := <-done; err != nil {
		g.t.Error(err)
	}
	g.none(c)
}

// none fails the test if a comparison has found anything.
func (g *gated) none(c *comparison) {
	g.t.Helper()
	if err := errors.Join(c.found...); err != nil {
		g.t.Error(err)
	}
}

// armed waits until so many looks wait for their records.
func (g *gated) armed(n int) {
	g.t.Helper()
	eventually(g.t, "the look waits", func() (waits bool) {
		g.e.probeFold(func() { waits = committed.Callbacks(g.e.committed) == n })
		return waits
	})
}

func TestABookGoesOnUntilAllThatItHadDecidedIsFolded(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.rest(g.sell(coin))
		g.hold()
		first := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		c, done := g.comparing(func(c *comparison) error {
			return c.book(t.Context(), g.e.Pairs()[0])
		})
		g.armed(1)
		second := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the book has decided on the order behind the comparison", func() bool {
			return g.e.journal.pending.Load() == 2
		})
		select {
		case err := <-done:
			t.Errorf("the comparison ended before the first order was durable: %v", err)
		default:
		}
		g.letGo()
		g.clean(c, done)
		for _, order := range []<-chan string{first, second} {
			isTold(t, "order", <-order, accepted)
		}
	})
}

func TestAComparisonOfABookIsGivenUp(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.hold()
		first := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		ctx, cancel := context.WithCancel(t.Context())
		c, done := g.comparing(func(c *comparison) error { return c.book(ctx, g.e.Pairs()[0]) })
		g.armed(1)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || len(c.found) > 0 {
			t.Errorf("%v, found %v", err, c.found)
		}
		g.letGo()
		isTold(t, "first", <-first, accepted)
		g.armed(0)
		g.ends("an order after it", g.placing(g.sell(coin)), accepted)
	})
}

// A book and a wallet of many orders are compared in parts, between which both go on.
func TestALargeBookAndWalletAreComparedInParts(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		for range 25 {
			g.rest(g.sell(coin / 100))
		}
		stopping, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			for {
				select {
				case <-stopping:
					return
				default:
					if got := outcome(g.placing(g.sell(1e5))); got != accepted {
						t.Error(got)
						return
					}
				}
			}
		}()
		c, done := g.comparing(func(c *comparison) error {
			return c.book(t.Context(), g.e.Pairs()[0])
		})
		g.clean(c, done)
		close(stopping)
		<-over
		v := &visit{account: g.key.Account}
		parts := 1
		for ; !v.settled; parts++ {
			if n, again := c.someWallets([]*visit{v}); len(again) != 0 || (n == 1) != v.settled {
				t.Errorf("part %d: %d, %v, %v", parts, n, again, v.settled)
			}
		}
		if parts < 3 {
			t.Errorf("the wallet was compared in %d parts", parts)
		}
		g.none(c)
	})
}

func TestAComparisonFindsWhatDiffersBehindTheFirstPart(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		last := uint64(0)
		for range 25 {
			last = g.rest(g.sell(coin / 100))
		}
		g.e.probe(g.e.Pairs()[0].Book, func() { g.e.books[0].orders.Cancel(last) })
		c, done := g.comparing(func(c *comparison) error {
			return c.book(t.Context(), g.e.Pairs()[0])
		})
		if err := <-done; err != nil || len(c.found) != 1 {
			t.Errorf("the book lacks its last order, and found is %v: %v", c.found, err)
		}
		g.e.probeWallet(g.key.Account, func(w *wallet) { w.open.Remove(last) })
		c, done = g.comparing(func(c *comparison) error { return c.wallets(t.Context()) })
		if err := <-done; err != nil || len(c.found) != 1 {
			t.Errorf("the wallet lacks its last order, and found is %v: %v", c.found, err)
		}
		g.crash() // no end is in order after that
		g.again()
	})
}

func TestAWalletThatIsNeverQuietIsComparedWithoutCommands(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		ben := fund(t, g.e, "ben", nil)
		g.rest(g.sell(coin))
		g.hold()
		order := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		all := []*visit{{account: g.key.Account}, {account: ben.Account}}
		c := g.comparison()
		n, again := c.someWallets(all)
		if n != 2 || len(again) != 1 || again[0] != all[0] || len(c.found) > 0 {
			t.Errorf("%d are visited again, found %v", len(again), c.found)
		}
		c, done := g.comparing(func(c *comparison) error {
			_, _, err := c.walletsAtRest(t.Context(), again)
			return err
		})
		eventually(t, "no commands are taken", g.e.paused.Load)
		g.turnedAway("an order meanwhile", g.placing(g.sell(coin)), ErrPaused)
		g.letGo()
		g.clean(c, done)
		if got := <-order; got != accepted || c.longest == 0 {
			t.Errorf("%s, and the longest wait was %v", got, c.longest)
		}
		g.ends("an order after it", g.placing(g.sell(coin)), accepted)
	})
}

// The fold waits for the imager while both are compared, so it does not begin that while the
// imager makes an image.
func TestTheFoldWaitsForNoImageToBeCompared(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		begun, end := make(chan struct{}), make(chan struct{})
		go g.e.probe(g.e.work.Imager, func() { close(begun); <-end }) // as a large image would
		<-begun
		var image <-chan *committed.Image
		g.e.probe(g.e.work.Fold, func() { image = g.e.committed.MakeImage() })
		c, done := g.comparing(func(c *comparison) error { return c.states(t.Context()) })
		id := g.rest(g.buy(1, coin))
		g.ends("a read meanwhile", g.asking(new(committed.NewestTrades), nil, 0), accepted)
		close(end)
		if m := <-image; m.Size == 0 {
			t.Error("the image is empty")
		}
		g.clean(c, done)
		g.ends("a cancel", g.cancelling(id), accepted)
	})
}

// A freeze leaves nothing in flight that a look at the wallet could see.
func TestADecisionThatIsNotDurableIsNoDifference(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.rest(g.sell(coin))
		g.hold()
		frozen := make(chan error, 1)
		go func() {
			_, err := g.e.Freeze("test", g.key.Account.Name, true)
			frozen <- err
		}()
		eventually(t, "the freeze is at the store", g.held)
		c := g.comparison()
		_, again := c.someWallets([]*visit{{account: g.key.Account}})
		if len(again) != 1 || len(c.found) > 0 {
			t.Errorf("%d are visited again, found %v", len(again), c.found)
		}
		g.letGo()
		if err := <-frozen; err != nil {
			t.Error(err)
		}
		if _, again = c.someWallets([]*visit{{account: g.key.Account}}); len(again) > 0 {
			t.Error("a wallet at rest is visited again")
		}
		g.none(c)
	})
}

// The next part of a book waits for no read.
func TestTheLookAtABookOvertakesReads(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.rest(g.sell(coin))
		g.folded()
		begun, first, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go g.e.probe(g.e.work.Fold, func() { close(begun); <-first })
		<-begun
		waiting := func() int { return g.queue("committed").UserMessageCount() }
		go g.e.probe(g.e.work.Fold, func() { <-second }) // as a long read would
		eventually(t, "a read waits", func() bool { return waiting() > 0 })
		looked := make(chan struct{})
		g.e.committed.AfterRecord(g.e.journal.submitted(), func() { close(looked) })
		close(first)
		eventually(t, "the look is done", func() bool {
			select {
			case <-looked:
				return true
			default:
				return false
			}
		})
		close(second)
	})
}

// Operators' commands reach wallets, fold and directory at different moments: new accounts and
// keys, freezes, halts, cancels of all, and the ends of keys.
func TestAuditsBesideOperatorsAreClean(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.set(func() { g.takes = time.Millisecond })
		stopping := make(chan struct{})
		var busy sync.WaitGroup
		again := func(do func(i int) error) {
			busy.Go(func() {
				for i := 1; ; i++ {
					select {
					case <-stopping:
						return
					default:
					}
					if err := do(i); err != nil && !errors.Is(err, ErrPaused) {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond / 10)
				}
			})
		}
		admin := func(_ Admin, err error) error { return err }
		again(func(i int) error { // accounts, and keys that read at once and end
			name, key := fmt.Sprint("new-", i), fmt.Sprint("key-new-", i)
			if err := admin(g.e.CreateAccount("test", name, "")); err != nil {
				return err
			}
			err := admin(g.e.CreateKey("test", name, key, "secret", event.AllPermissions, nil))
			if err != nil {
				return err
			}
			if err := g.e.Ask(new(committed.Wallet), g.e.Key([]byte(key)), 1); err != nil {
				return err
			}
			return admin(g.e.RevokeKey("test", key))
		})
		again(func(i int) error { return admin(g.e.Freeze("test", "ann", i%2 == 1)) })
		again(func(i int) error { return admin(g.e.Halt("test", "BTC_USD", i%2 == 1)) })
		again(func(i int) error {
			_, err := g.e.OperatorCancelAll(t.Context(), "test", "ann", "")
			return err
		})
		nonce := uint64(100)
		again(func(int) error {
			nonce++
			c, err := g.e.Place(g.key, nonce, g.sell(1e5))
			if err == nil {
				c.Free()
			}
			return err
		})
		for range 5 {
			c, done := g.comparing(func(c *comparison) error { return c.run(t.Context()) })
			g.clean(c, done)
		}
		close(stopping)
		busy.Wait()
	})
}
