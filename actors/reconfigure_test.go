package actors

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
)

// ratesOf names the rates, of a list, that an order that buys was charged by; -1: none.
func ratesOf(o *event.Order, list []state.FeeRates) int {
	for i, r := range list {
		fits := true
		for _, x := range o.Trades {
			fits = fits && x.TakerFee == r.Taker.FeeRoundedUp(x.Amount.Balance()) &&
				x.MakerFee == r.Maker.FeeRoundedUp(x.Price.Times(x.Amount).Balance())
		}
		if fits {
			return i
		}
	}
	return -1
}

// Fees change while orders trade: each order is charged by the old or the new rates, and its charge
// outlives a crash, under whichever rates come then.
func TestFeesChangeBetweenTwoOrders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGated(t, memoryPlaces, nil)
		list := []state.FeeRates{{}, {Maker: 100_000, Taker: 200_000}, {Maker: 300_000},
			{Taker: 777_777}}
		set := func(rates state.FeeRates) func(*Options) {
			return func(o *Options) { o.Pairs[0].Fees = rates }
		}
		for range 1000 { // an order that buys trades with some of them
			g.rest(g.sell(coin / 100))
		}
		const traders, orders = 4, 45
		var all sync.WaitGroup
		for i := range traders {
			name := fmt.Sprint("ben", i)
			key := fund(t, g.e, name, map[string]money.Amount{"USD": 1000 * coin})
			all.Go(func() {
				for n := range orders {
					c, err := g.e.Place(key, uint64(n+1), g.buy(100e8, coin/20))
					if err != nil || c.Outcome() != Accepted {
						t.Errorf("%s: %v, %v", name, c, err)
						return
					}
					c.Free()
				}
			})
		}
		for i := range 300 {
			g.reloadWith(set(list[i%len(list)]))
		}
		all.Wait()
		g.reloadWith(set(list[2]))
		before := hashAtRest(t, g.e)
		charged := func() (seen []int) {
			for _, r := range written(t, g.Store, 0) {
				if r.Kind != event.KindOrder || len(r.Order.Trades) == 0 {
					continue
				}
				by := ratesOf(&r.Order, list)
				if by < 0 {
					t.Errorf("order %d is charged by no rates: %+v", r.Order.ID, r.Order.Trades)
				}
				seen = append(seen, by)
			}
			return seen
		}
		seen := charged()
		if len(seen) != traders*orders {
			t.Errorf("%d orders have traded, want %d", len(seen), traders*orders)
		}
		auditClean(t, g.e)

		g.crash()
		set(list[3])(&g.o)
		g.again()
		if hashAtRest(t, g.e) != before {
			t.Error("after a crash the state is another")
		}
		ben := &trader{g: g, key: "key-of-ben0", nonce: 1000}
		ben.places(g.buy(100e8, coin/10))
		g.reloadWith(set(list[1]))
		ben.places(g.buy(100e8, coin/10))
		g.reloadWith(set(list[0]))
		ben.places(g.buy(100e8, coin/10))
		if seen := charged()[len(seen):]; fmt.Sprint(seen) != "[3 1 0]" {
			t.Errorf("after the crash, and each change, orders are charged by %v", seen)
		}
		auditClean(t, g.e)
		g.end()
	})
}

// Without room for the fee account nothing changes.
func TestRulesThatCannotBeAppliedChangeNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGated(t, memoryPlaces, func(o *Options) { o.Limits.Accounts = 1 })
		o := g.o
		o.Pairs = append(o.Pairs[:0:0], o.Pairs...)
		o.Pairs[0].Fees.Maker, o.Pairs[0].MinimumOrderSize = 1, 7
		o.Limits.MaxFills = 77
		var refused *RequestError
		if err := g.e.Reconfigure(o.Limits, o.Pairs); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), "the account fees, which fees go to, cannot be opened") {
			t.Errorf("it ends with %v", err)
		}
		if r := g.e.Pairs()[0].Rules(); r.Fees != (state.FeeRates{}) || r.MinimumOrderSize == 7 ||
			g.e.Limits().MaxFills == 77 {
			t.Errorf("there are the rules %+v and the limits %+v", r, g.e.Limits())
		}
		o.Limits.Accounts, o.Limits.Reads, o.Pairs[0].PricePrecision = 2, 1, 1
		o.Pairs[0].Fees.Maker = 0
		succeeds(t, g.e.Reconfigure(o.Limits, o.Pairs))
		o.Pairs[0].Fees.Maker = 1
		succeeds(t, g.e.Reconfigure(o.Limits, o.Pairs))
		p := g.e.Pairs()[0]
		if r, l := p.Rules(), g.e.Limits(); r.Fees.Maker != 1 || r.MinimumOrderSize != 7 ||
			r.PricePrecision != p.PricePrecision || r.PriceTick != p.PriceTick ||
			l.MaxFills != 77 || l.Reads == 1 {
			t.Errorf("there are the rules %+v and the limits %+v", r, g.e.Limits())
		}
		g.end()
	})
}
