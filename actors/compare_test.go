package actors

import (
	"context"
	"errors"
	"testing"

	"exchange/actors/committed"
	"exchange/actors/directory"
)

// comparing begins a part of an audit's comparison.
func (g *gated) comparing(part func(c *comparison) error) (*comparison, <-chan error) {
	c, done := &comparison{Engine: g.e}, make(chan error, 1)
	go func() { done <- part(c) }()
	return c, done
}

// clean fails the test unless a part has ended, and has found nothing.
func (g *gated) clean(c *comparison, done <-chan error) {
	g.t.Helper()
	err := <-done
	if err = errors.Join(append(c.found, err)...); err != nil {
		g.t.Error(err)
	}
}

func TestABookIsComparedWhenAllThatItDecidedIsFolded(t *testing.T) {
	onBothStores(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.rest(g.sell(coin))
		g.hold()
		first := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		c, done := g.comparing(func(c *comparison) error {
			return c.book(t.Context(), g.e.Pairs()[0])
		})
		second := g.begin(g.placing(g.sell(coin)))
		silent(t, "an order behind the comparison", second)
		g.letGo()
		g.clean(c, done)
		for _, order := range []<-chan string{first, second} {
			if got := <-order; got != accepted {
				t.Error(got)
			}
		}
		g.end()
	})
}

func TestABookGoesOnWhenItsComparisonIsGivenUp(t *testing.T) {
	onBothStores(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.hold()
		first := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		ctx, cancel := context.WithCancel(t.Context())
		c, done := g.comparing(func(c *comparison) error { return c.book(ctx, g.e.Pairs()[0]) })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || len(c.found) > 0 {
			t.Errorf("%v, found %v", err, c.found)
		}
		second := g.begin(g.placing(g.sell(coin)))
		g.inMailbox(2)
		g.letGo()
		for _, order := range []<-chan string{first, second} {
			if got := <-order; got != accepted {
				t.Error(got)
			}
		}
		g.end()
	})
}

func TestAWalletThatIsNeverQuietIsComparedWithoutCommands(t *testing.T) {
	onBothStores(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		ben := fund(t, g.e, "ben", nil)
		g.rest(g.sell(coin))
		g.hold()
		order := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		all := []*directory.Account{g.key.Account, ben.Account}
		c := &comparison{Engine: g.e}
		again := c.someWallets(all, false)
		if len(again) != 1 || again[0] != g.key.Account || len(c.found) > 0 {
			t.Errorf("%d are visited again, found %v", len(again), c.found)
		}
		c, done := g.comparing(func(c *comparison) error {
			return c.walletsAtRest(t.Context(), again)
		})
		eventually(t, "no commands are taken", g.e.paused.Load)
		g.turnedAway("an order meanwhile", g.placing(g.sell(coin)), ErrPaused)
		g.letGo()
		g.clean(c, done)
		if got := <-order; got != accepted || c.longest == 0 {
			t.Errorf("%s, and the longest wait was %v", got, c.longest)
		}
		g.ends("an order after it", g.placing(g.sell(coin)), accepted)
		g.end()
	})
}

// The fold waits for the imager while both are compared, so it does not begin that while the
// imager makes an image.
func TestTheFoldWaitsForNoImageToBeCompared(t *testing.T) {
	onBothStores(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		begun, end := make(chan struct{}), make(chan struct{})
		go g.e.probe(g.e.imager, func() { close(begun); <-end }) // as a large image would
		<-begun
		var image <-chan *committed.Image
		g.e.probe(g.e.fold, func() { image = g.e.committed.MakeImage() })
		c, done := g.comparing(func(c *comparison) error { return c.states(t.Context()) })
		id := g.rest(g.buy(1, coin))
		g.ends("a read meanwhile", g.asking(new(committed.NewestTrades), nil, 0), accepted)
		close(end)
		if m := <-image; m.Size == 0 {
			t.Error("the image is empty")
		}
		g.clean(c, done)
		g.ends("a cancel", g.cancelling(id), accepted)
		g.end()
	})
}
