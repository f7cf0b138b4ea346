package actors

import (
	"math/rand/v2"
	"strings"
	"testing"

	"exchange/actors/directory"
	"exchange/core/money"
	"exchange/core/trading"
)

// A gambler does at random what clients, the ticker, the journal and operators do to a book.
type gambler struct {
	*desk
	*rand.Rand
	seen map[string]int // words of what happened
}

const randomSeeds = uint64(40)

// Whatever is decided, the fold takes each record, and both sides are equal then, also behind a
// restart. The numbers are small, so that orders meet.
func TestWhatIsDecidedAtRandomFolds(t *testing.T) {
	seeds, steps := randomSeeds, 400
	seen := map[string]int{}
	for seed := range seeds {
		g := &gambler{Rand: rand.New(rand.NewPCG(seed, 1)), seen: seen}
		g.desk = newDesk(t, func(r *directory.PairRules, l *Limits) {
			r.StopCollar, r.PriceTick = money.MaxRate/50, priceUnit*money.Price(1+seed%2)
			r.AmountStep = money.Amount(1 + seed%3)
			l.MaxFills = 4
			switch seed % 5 {
			case 0:
				l.OpenOrdersPerBook = 6
			case 1:
				l.StopsPerBook, l.GTDPerBook = 3, 1
			}
			if seed%4 == 0 {
				r.PriceBand = money.MaxRate / 30
			}
		})
		g.slots = int64(seed % 3)
		for range steps {
			if g.step(); t.Failed() {
				t.Fatalf("seed %d: %s", seed, strings.Join(g.told, " | "))
			}
		}
		g.held = false
		if g.b.halted {
			g.halt(false)
		}
		g.b.tick(g.nowUs)
		g.note(g.settle())
	}
	for _, word := range []string{"order", "special", "stop", "triggered", "kept", "lost",
		"expired", "cancel", "halt", "-#", "(ioc)", "(fok)", "(max_fills)", "(self_trade)",
		"(post_only)", "(expired)", "(amended)", "would_trade", "would_trigger", "price_band",
		"too_many_stops", "too_many_gtd", "book_limit", "not_open", "halted"} {
		if seen[word] == 0 {
			t.Errorf("%q never happened", word)
		}
	}
}

func (g *gambler) note(news string) {
	for _, f := range strings.Fields(news) {
		if strings.HasPrefix(f, "-#") {
			f = "-#"
		}
		g.seen[f]++
	}
}

func (g *gambler) step() {
	g.nowUs += int64(g.IntN(30))
	switch n := g.IntN(40); {
	case n < 18:
		g.note(g.send(g.any()))
	case n < 24:
		g.note(g.send(g.change()))
	case n < 28:
		g.note(g.cancel(g.one()))
	case n < 32:
		if g.fold(); g.IntN(2) == 0 {
			g.release()
		}
	case n < 35:
		if g.called {
			g.call()
		}
	case n < 37:
		g.b.tick(g.nowUs)
	case n == 37:
		g.held = !g.held
	case n == 38:
		g.note(g.halt(!g.b.halted))
	default:
		g.restart()
	}
	g.fold()
}

// restart ends the book and begins another one from the state, once nothing waits in it.
func (g *gambler) restart() {
	held := g.held
	for g.held = true; g.b.waiting.Len() > 0 || len(g.units) > 0 || g.called; g.fold() {
		g.release()
		g.call()
	}
	g.compare(g.b)
	before := g.b
	g.b = newBook(before.pair, g.s, before.bookShares)
	g.compare(g.b)
	g.held = held
}

// one returns the id of an order, mostly an open one.
func (g *gambler) one() uint64 {
	var ids []uint64
	for a := uint32(ann); a <= cid; a++ {
		for o := range g.s.Account(a).Open.Newest() {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) == 0 || g.IntN(10) == 0 {
		return 1 + g.Uint64N(g.b.ids.order.Load()+1)
	}
	return ids[g.IntN(len(ids))]
}

// priceUnit is such that an amount of 1 costs about a unit of a sum.
const priceUnit money.Price = 1e6

// price returns one near 100 units, a multiple of the tick.
func (g *gambler) price() money.Price {
	tick := g.b.pair.PriceTick
	return money.Price(96+g.IntN(9)) * priceUnit / tick * tick
}

// soonUs returns a time that comes soon, or has come.
func (g *gambler) soonUs() int64 { return g.nowUs + int64(max(0, g.IntN(700)-100)) }

func (g *gambler) amount() money.Amount { return money.Amount(1 + g.IntN(12)) }

// any returns an order, with or without instructions that go together.
func (g *gambler) any() *Command {
	side := trading.Side(1 + g.IntN(2))
	c := g.order(uint32(ann+g.IntN(3)), side, g.amount(), g.price())
	if g.IntN(4) == 0 {
		return c
	}
	s := new(SpecialRequest)
	c.special = s
	s.SelfTrade = trading.SelfTrade(max(0, g.IntN(6)-2))
	switch g.IntN(8) {
	case 0:
		s.IOC = true
	case 1:
		s.FOK = true
	case 2:
		s.Market, s.IOC = true, true
		if side == trading.Buy && g.IntN(2) == 0 {
			s.Quote, c.order.amount = money.Amount(1+g.IntN(12)), 0
		}
	case 3:
		s.PostOnly = true
		if g.IntN(2) == 0 {
			s.Asked = c.order.price
		}
	case 4:
		if c.order.amount > 1 {
			s.Display = 1 + money.Amount(g.IntN(int(c.order.amount)-1))
		}
	case 5:
		if side == trading.Sell && c.order.price > 98*priceUnit {
			s.OCO = trading.OCO{
				Trigger: c.order.price - 2*priceUnit, Price: g.price() * money.Price(g.IntN(2)),
			}
			return c
		}
	}
	if mayRest(&s.Instructions) && g.IntN(4) == 0 {
		s.ExpireUs = g.soonUs()
	}
	if s.Quote == 0 && g.IntN(3) == 0 {
		s.Trigger = trading.Trigger{Price: g.price(), When: trading.Direction(1 + g.IntN(2))}
	}
	return c
}

// change returns an amend.
func (g *gambler) change() *Command {
	a := AmendRequest{PostOnly: g.IntN(9) == 0, Slide: g.IntN(9) == 0}
	if g.IntN(2) == 0 {
		a.Amount = g.amount()
	}
	if g.IntN(2) == 0 {
		a.Price = g.price()
	}
	if g.IntN(6) == 0 {
		a.Display = 1 + money.Amount(g.IntN(5))
	}
	if g.IntN(4) == 0 {
		a.Trigger = g.price()
	}
	if g.IntN(6) == 0 {
		a.ExpireUs = g.soonUs()
	}
	c := g.amending(g.one(), a)
	c.amend.selfTrade = trading.SelfTrade(g.IntN(4))
	return c
}
