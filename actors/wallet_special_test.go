package actors

import (
	"strings"
	"testing"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
)

// amending is a change of an open order of the account.
func (g *gated) amending(a AmendRequest) func() (*Command, error) {
	g.nonce++
	nonce := g.nonce
	return func() (*Command, error) { return g.e.Amend(g.key, nonce, &a) }
}

// setting sets the account's self-trade mode.
func (g *gated) setting(mode trading.SelfTrade) func() (*Command, error) {
	g.nonce++
	nonce := g.nonce
	return func() (*Command, error) { return g.e.Do(NewSettings(g.key, nonce, mode)) }
}

// special adds instructions to an order.
func special(w *OrderRequest, s SpecialRequest) *OrderRequest {
	w.Special = &s
	return w
}

// stopBuy is a buy that waits for the price to rise to 200.
func (g *gated) stopBuy(price money.Price, amount money.Amount) *OrderRequest {
	return special(g.buy(price, amount),
		SpecialRequest{Trigger: trading.Trigger{Price: 200e8, When: trading.Rise}})
}

// gtd is an order that expires in an hour.
func gtd(w *OrderRequest) *OrderRequest {
	return special(w, SpecialRequest{Instructions: trading.Instructions{
		ExpireUs: time.Now().Add(time.Hour).UnixMicro()}})
}

// wantFunds wants the account's committed funds: "balance/reserve".
func (g *gated) wantFunds(what, btc, usd string) {
	g.t.Helper()
	if b, u := g.funds(g.key.Account.ID, 1), g.funds(g.key.Account.ID, 2); b != btc || u != usd {
		g.t.Errorf("%s: %s BTC and %s USD, want %s and %s", what, b, u, btc, usd)
	}
}

func TestAnAmendReservesTheMostItCanNeed(t *testing.T) {
	pair := &directory.Pair{BaseNumber: 1, QuoteNumber: 2}
	was := ledger.Terms{Price: 10, Amount: 100}
	for _, c := range []struct {
		what   string
		side   trading.Side
		change AmendRequest
		flags  orderFlags
		want   int64 // units of price x amount; of a sell units of amount
	}{
		{"nothing", trading.Buy, AmendRequest{}, 0, 0},
		{"less", trading.Buy, AmendRequest{Amount: 50}, 0, 0},
		{"more", trading.Buy, AmendRequest{Amount: 150}, 0, 500},
		{"a higher price", trading.Buy, AmendRequest{Price: 12}, 0, 200},
		{"more at a lower price, when it is filled", trading.Buy,
			AmendRequest{Price: 5, Amount: 150}, 0, 250},
		{"less at a higher price, when it is not", trading.Buy,
			AmendRequest{Price: 20, Amount: 60}, 0, 200},
		{"another price of one that may slide before", trading.Buy, AmendRequest{Price: 12},
			flagStop | flagSlides, 1200},
		{"more to sell", trading.Sell, AmendRequest{Price: 1, Amount: 130}, 0, 30},
		{"more to sell of one that may slide before", trading.Sell,
			AmendRequest{Price: 1, Amount: 130}, flagStop | flagSlides, 30},
		{"less to sell", trading.Sell, AmendRequest{Price: 99, Amount: 30}, 0, 0},
	} {
		a := &amendRequest{AmendRequest: c.change}
		currency, need := a.need(c.side, was, c.flags, pair)
		want, in := money.Price(1).Times(money.Amount(c.want)).Balance(), uint16(2)
		if c.side == trading.Sell {
			want, in = money.Amount(c.want).Balance(), 1
		}
		if currency != in || need != want {
			t.Errorf("%s: %v of currency %d, want %v of %d", c.what, need, currency, want, in)
		}
	}
}

// An amend without money is first refused for its other faults. It reserves nothing, and uses its
// nonce.
func TestAnAmendIsRefusedForItsMoneyLast(t *testing.T) {
	onGated(t, func(o *Options) {
		p := &o.Pairs[0]
		p.PriceTick, p.AmountStep, p.PriceBand = 5e7, coin/10, money.MaxRate/10
		p.MinimumOrderSize, p.MinimumOrderValue = coin/2, coin.Balance()
		o.Limits.GTDPerAccountAndBook = 1
	}, func(t *testing.T, g *gated) {
		g.rest(g.sell(coin))
		g.ends("a trade at 100", g.placing(g.buy(100e8, coin)), accepted)
		buy, sell := g.rest(g.buy(50e8, 2*coin)), g.rest(special(g.sell(coin),
			SpecialRequest{Instructions: trading.Instructions{Display: coin / 2}}))
		first := g.rest(gtd(g.buy(1e8, coin)))
		later := time.Now().Add(time.Hour).UnixMicro()
		g.wantFunds("placed", "10/1", "1000/101")
		for _, c := range []struct {
			what   string
			change AmendRequest
			reason uint8
			fields string
		}{
			{"a price off the tick", AmendRequest{Order: buy, Price: 90_25e6, Amount: 90 * coin},
				event.RefusedRules, "price"},
			{"a price with too many digits", AmendRequest{Order: buy, Price: 90e8 + 1,
				Amount: 90 * coin}, event.RefusedRules, "price"},
			{"an amount off the step", AmendRequest{Order: buy, Amount: 90*coin + 1},
				event.RefusedRules, "amount"},
			{"both", AmendRequest{Order: buy, Price: 90_25e6, Amount: 90*coin + 1},
				event.RefusedRules, "price amount"},
			{"too small an amount", AmendRequest{Order: buy, Price: 90000e8, Amount: coin / 10},
				event.RefusedRules, "amount"},
			{"too many parts", AmendRequest{Order: sell, Amount: 90 * coin}, event.RefusedRules,
				"amount"},
			{"a part larger than the order", AmendRequest{Order: sell, Amount: 10 * coin,
				Display: 11 * coin}, event.RefusedRules, "display_amount"},
			{"a trigger of an order that waits for none", AmendRequest{Order: buy,
				Amount: 90 * coin, Trigger: 200e8}, event.RefusedRules, "trigger_price"},
			{"a price beyond the band", AmendRequest{Order: buy, Price: 111e8, Amount: 90 * coin},
				event.RefusedPriceBand, ""},
			{"too small an amount, and one more that expires", AmendRequest{Order: buy,
				Amount: coin / 10, ExpireUs: later}, event.RefusedRules, "amount"},
			{"one more that expires", AmendRequest{Order: buy, ExpireUs: later},
				event.RefusedGTDLimit, ""},
			{"the money alone", AmendRequest{Order: buy, Price: 110e8, Amount: 90 * coin},
				event.RefusedFunds, ""},
			{"an order that is over", AmendRequest{Order: 1, Price: 90_25e6, Amount: 90 * coin},
				event.RefusedNotOpen, ""},
		} {
			change := must[*Command](t)(g.amending(c.change)())
			var fields []string
			for _, f := range change.Faults() {
				fields = append(fields, f.Field)
			}
			if reason := change.Record().Refusal.Reason; change.Outcome() != Refused ||
				reason != c.reason || strings.Join(fields, " ") != c.fields {
				t.Errorf("%s: refused for %q, fields %q, want %q, %q", c.what,
					event.RefusalName(reason), fields, event.RefusalName(c.reason), c.fields)
			}
			nonce := change.Record().Refusal.Nonce
			change.Free()
			g.ends("its nonce again", func() (*Command, error) {
				return g.e.Amend(g.key, nonce, &c.change)
			}, refusedFor(event.RefusedNonce))
			g.wantFunds(c.what, "10/1", "1000/101")
		}
		for _, id := range []uint64{buy, sell, first} {
			g.ends("its cancel", g.cancelling(id), accepted)
		}
	})
}

// Commands in flight may be why a change lacks money, or may bring that money. So the change waits
// for them.
func TestAnAmendWithoutMoneyWaitsForCommandsInFlight(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		id := g.rest(g.buy(50e8, coin))
		g.hold()
		order := g.begin(g.placing(g.buy(90e8, 10*coin)))
		eventually(t, "it is at the store", g.held)
		change := g.begin(g.amending(AmendRequest{Order: id, Amount: 3 * coin}))
		g.inMailbox(2)
		waiting := 0
		g.e.probeWallet(g.key.Account, func(w *wallet) { waiting = w.queue.Len() })
		if waiting != 1 {
			t.Fatalf("%d commands wait: the change does not", waiting)
		}
		later := g.begin(g.cancelling(id)) // the account's commands keep their order
		g.queued(2)
		g.letGo()
		wantOutcome(t, "the order", <-order, accepted)
		wantOutcome(t, "the change", <-change, refusedFor(event.RefusedFunds))
		wantOutcome(t, "its cancel", <-later, accepted)
		g.wantFunds("the order rests", "10/0", "1000/900")

		large := g.openIDs()[0]
		id = g.rest(g.buy(50e8, coin))
		unblock := g.block(g.e.Pairs()[0])
		gives := g.begin(g.cancelling(large))
		g.inMailbox(1)
		change = g.begin(g.amending(AmendRequest{Order: id, Amount: 3 * coin}))
		g.queued(1)
		unblock()
		wantOutcome(t, "the cancel", <-gives, accepted)
		wantOutcome(t, "the change", <-change, accepted)
		g.wantFunds("there was money in the end", "10/0", "1000/150")
	})
}

// The terms of an order are certain once the change before is released. So the second change
// reserves on top of the first, and is refused if the first took the money.
func TestAnAmendWaitsForTheAmendBefore(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		one, two := g.rest(g.buy(50e8, coin)), g.rest(g.buy(50e8, coin))
		g.hold()
		first := g.begin(g.amending(AmendRequest{Order: one, Amount: 10 * coin}))
		eventually(t, "it is at the store", g.held)
		second := g.begin(g.amending(AmendRequest{Order: one, Amount: 19 * coin}))
		g.queued(1)
		other := g.begin(g.amending(AmendRequest{Order: two, Amount: 2 * coin}))
		g.queued(2) // the account's commands keep their order
		g.letGo()
		wantOutcome(t, "first", <-first, accepted)
		wantOutcome(t, "second", <-second, accepted)
		wantOutcome(t, "of another order", <-other, refusedFor(event.RefusedFunds))
		g.wantFunds("amended", "10/0", "1000/1000")
	})
}

func TestAnAmendByClientIDWaitsForThePlacement(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		id, _ := event.NewClientID("mine")
		w := g.buy(50e8, coin)
		w.ClientID = id
		g.ends("one that was never placed", g.amending(AmendRequest{ClientID: id, Amount: coin}),
			refusedFor(event.RefusedNotOpen))
		g.hold()
		placed := g.begin(g.placing(w))
		eventually(t, "the order is at the store", g.held)
		change := g.begin(g.amending(AmendRequest{ClientID: id, Amount: 3 * coin}))
		g.queued(1)
		g.letGo()
		wantOutcome(t, "placed", <-placed, accepted)
		wantOutcome(t, "amended", <-change, accepted)
		g.wantFunds("amended", "10/0", "1000/150")
	})
}
