package demomarket

import (
	"math/rand/v2"
	"testing"

	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/trading"
)

// A fair price stays in its band, from any begin, and returns to its mean.
func TestAFairPriceStaysInItsBand(t *testing.T) {
	for name, a := range assets {
		r := rand.New(rand.NewPCG(1, 2))
		for _, fair := range []float64{a.low, a.mean(), a.high, 1, 10 * a.high} {
			above, below := false, false
			for range 200_000 { // more than a day
				fair = a.next(r, fair)
				if fair < a.low || fair > a.high {
					t.Fatalf("%s is at %v, its band is %v to %v", name, fair, a.low, a.high)
				}
				above, below = above || fair > a.mean(), below || fair < a.mean()
			}
			if !above || !below {
				t.Errorf("%s does not come back to its mean", name)
			}
		}
	}
}

// A book holds the maker's quotes after actions, for a test: each take succeeds.
type book struct {
	t    *testing.T
	open []committed.Order
	next uint64
}

func (b *book) does(a action) {
	switch a.kind {
	case quote:
		for _, o := range b.open {
			if o.Side != a.side && (a.side == trading.Buy) == (o.Price <= a.price) {
				b.t.Fatalf("the maker's %v at %v meets its own %v at %v", a.side, a.price, o.Side,
					o.Price)
			}
		}
		b.next++
		b.open = append(b.open, committed.Order{ID: b.next, Side: a.side, Price: a.price,
			Amount: a.amount, Remaining: a.amount})
	case cancel:
		b.remove(a.order)
	case take:
		for i := range b.open {
			if o := &b.open[i]; o.Side == opposite(a.side) && o.Price == a.price {
				if o.Remaining -= min(a.amount, o.Remaining); o.Remaining == 0 {
					b.remove(o.ID)
				}
				return
			}
		}
		b.t.Fatal("the taker takes at a price that the maker does not quote")
	}
}

func (b *book) remove(id uint64) {
	for i := range b.open {
		if b.open[i].ID == id {
			b.open = append(b.open[:i], b.open[i+1:]...)
			return
		}
	}
	b.t.Fatalf("order %d is cancelled and not open", id)
}

// The book follows the fair price for a day. It never has more quotes than there are levels, is
// never empty for long, and the maker does not meet its own.
func TestTheBookFollowsTheFairPrice(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a := assets["BTC"]
	v := &view{fair: a.mean(), tick: money.PriceUnit(2), usual: a.usual, buys: 0.5}
	b := &book{t: t}
	var did [take + 1]int
	thin := 0
	for n := range 100_000 {
		v.fair = a.next(r, v.fair)
		if n%2 > 0 { // half of the turns are of other pairs
			continue
		}
		v.quotes = b.open
		action := v.choose(r)
		did[action.kind]++
		b.does(action)
		if len(b.open) > 2*levels {
			t.Fatalf("%d quotes are open", len(b.open))
		}
		bid, ask := v.best(trading.Buy), v.best(trading.Sell)
		if n > 100 && (bid == nil || ask == nil || len(b.open) < levels) {
			thin++
		}
	}
	if thin > 500 {
		t.Errorf("the book was thin after %d of 50,000 actions", thin)
	}
	for k, n := range did {
		if kind(k) != nothing && n < 1000 {
			t.Errorf("an action of kind %d was chosen %d times", k, n)
		}
	}
	t.Logf("actions by kind: %v; thin after %d", did, thin)
}

// The taker spends what it has more of.
func TestTheTakerKeepsBoth(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, buys := range []float64{0, 1} {
		v := &view{buys: buys}
		want := trading.Buy
		if buys == 1 {
			want = trading.Sell
		}
		for range 100 {
			if got := v.takeSide(r); got != want {
				t.Fatalf("with a chance of %v to buy it takes from the side %v", buys, got)
			}
		}
	}
}
