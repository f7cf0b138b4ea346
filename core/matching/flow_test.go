package matching

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
)

// A message is one call of a book: a cancel when limit is 0, otherwise an order that matches and
// rests.
type message struct {
	id     uint64
	limit  money.Price
	amount money.Amount
	side   trading.Side
}

// A shape is a kind of market. New orders and cancels of random live orders alternate to keep the
// book at its size.
type shape struct {
	name      string
	resting   int                        // orders in the book
	away      func(r *rand.Rand) float64 // distance of a resting order from the mid price, in ticks
	amountMax int64                      // of an order
	// A crossing order takes exactly one whole order.
	exact     bool
	crossing  float64   // share of new orders that cross
	immediate float64   // share of new orders that are cancelled at once
	reprice   float64   // share of cancels followed by an order near the present mid price
	walk      float64   // standard deviation of the mid price's step at each new order, in ticks
	trend     []float64 // of the mid price, at equal distances in time
	run       int       // new orders from the trend's start to its end; then it goes back
}

const (
	flowMid  = 1_000_000 // ticks, at 1 in a trend
	flowTick = 1_000_000
)

// exponential distances have this mean.
func exponential(mean float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean * r.ExpFloat64() }
}

// powerLaw distances are below 2.2 scales in half of all cases, and above 2,150 in one of a
// hundred. This is the tail of real books (Bouchaud, Mézard and Potters, 2002). It is cut at a
// tenth of the mid price.
func powerLaw(scale float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		return min(scale*(math.Pow(1-r.Float64(), -1/0.6)-1), flowMid/10)
	}
}

// mixed has 50 % of messages that rest, 45 % cancels and 5 % that cross, around a fixed price.
func mixed(resting int, depth float64) shape {
	return shape{resting: resting, away: exponential(depth), amountMax: 1e8, exact: true,
		crossing: 1. / 11, trend: []float64{1, 1}, run: 1}
}

// markets returns a costly flow: about 95 of 100 orders are cancelled. After run new orders a price
// has moved by the distance in the name.
func markets(run int) []shape {
	list := []shape{
		{name: "quiet book", resting: 200, away: powerLaw(2), walk: 0.05, trend: []float64{1, 1}},
		{name: "fixed mid", resting: 100_000, away: powerLaw(20), trend: []float64{1, 1}},
		{name: "trending by 25 %", resting: 10_000, away: powerLaw(5), walk: 0.5,
			trend: []float64{1, 1.25}},
		{name: "trending by 40 %", resting: 10_000, away: powerLaw(5), walk: 0.5,
			trend: []float64{1, 1.40}},
		{name: "a 60 % crash", resting: 10_000, away: powerLaw(5), walk: 2,
			trend: []float64{1, 1, 0.95, 0.4, 0.5, 0.4}},
	}
	for i := range list {
		s := &list[i]
		s.amountMax, s.crossing, s.immediate, s.reprice, s.run = 100, 0.025, 0.15, 0.2, run
	}
	return list
}

// mid returns the trend's mid price at a new order, in ticks.
func (s *shape) mid(order int) float64 {
	at := order % (2 * s.run)
	if at >= s.run {
		at = 2*s.run - 1 - at
	}
	step, part := math.Modf(float64(at) / float64(s.run) * float64(len(s.trend)-1))
	from, to := s.trend[int(step)], s.trend[int(step)+1]
	return flowMid * (from + part*(to-from))
}

// A flow makes the messages of a shape. To cancel only live ids, it runs every message on its own
// book.
type flow struct {
	shape
	rng      *rand.Rand
	twin     *Book
	fills    []Fill
	top      []trading.Order
	live     []uint64 // and ids filled since: looked up when picked
	id       uint64
	orders   int     // new ones so far
	walked   float64 // from the trend, in ticks
	messages []message
}

func newFlow(s shape, seed uint64) *flow {
	return &flow{shape: s, rng: rand.New(rand.NewPCG(seed, 2)), twin: New()}
}

// next makes the next n messages, or a few more. The next call overwrites them.
func (f *flow) next(n int) []message {
	f.messages = f.messages[:0]
	for len(f.messages) < n {
		if size := f.twin.Len(); size < f.resting ||
			f.rng.IntN(100) < 55 && size < f.resting*101/100 {
			f.place()
			continue
		}
		f.cancel(f.anyLive())
		if f.rng.Float64() < f.reprice {
			f.place()
		}
	}
	if len(f.live) > 2*f.twin.Len()+1000 {
		f.live = slices.DeleteFunc(f.live, func(id uint64) bool {
			_, ok := f.twin.Get(id)
			return !ok
		})
	}
	return f.messages
}

// place sends a new order. After a price move, orders in its way are re-priced by their owners.
func (f *flow) place() {
	m, crosses := f.newOrder()
	moved := 0
	for id := f.inTheWay(m); id != 0 && !crosses; id = f.inTheWay(m) {
		f.cancel(id)
		moved++
	}
	f.send(m)
	for range moved {
		if m, crosses = f.newOrder(); crosses || f.inTheWay(m) == 0 {
			f.send(m)
		}
	}
}

// newOrder returns an order that rests, or one that crosses: at the best price of the other side.
func (f *flow) newOrder() (m message, crosses bool) {
	if f.rng.Float64() < f.crossing {
		m = f.order(0)
		if o, ok := f.best(m.side.Opposite()); ok {
			m.limit = o.Price
			if f.exact {
				m.amount = o.Remaining
			}
			return m, true
		}
	}
	return f.order(f.away(f.rng)), false
}

// order returns an order of a random side and amount, at a distance on its side of the mid price.
func (f *flow) order(away float64) message {
	f.id += 1 + f.rng.Uint64N(5)
	f.walked += f.walk * f.rng.NormFloat64()
	m := message{id: f.id, side: trading.Buy + trading.Side(f.rng.IntN(2)),
		amount: money.Amount(1 + f.rng.Int64N(f.amountMax))}
	away++
	if m.side == trading.Buy {
		away = -away
	}
	ticks := max(1, math.Round(f.mid(f.orders)+f.walked+away))
	m.limit = money.Price(ticks) * flowTick
	return m
}

// inTheWay returns the id of an order that m would trade with, 0 if none.
func (f *flow) inTheWay(m message) uint64 {
	o, ok := f.best(m.side.Opposite())
	if ok && (m.side == trading.Buy && o.Price <= m.limit ||
		m.side == trading.Sell && o.Price >= m.limit) {
		return o.ID
	}
	return 0
}

// best returns the order that is the next to trade.
func (f *flow) best(side trading.Side) (trading.Order, bool) {
	if f.top = f.twin.AppendOrders(f.top[:0], side, 1); len(f.top) == 0 {
		return trading.Order{}, false
	}
	return f.top[0], true
}

// anyLive returns a random live order.
func (f *flow) anyLive() uint64 {
	for {
		i := f.rng.IntN(len(f.live))
		id := f.live[i]
		f.live[i] = f.live[len(f.live)-1]
		f.live = f.live[:len(f.live)-1]
		if _, ok := f.twin.Get(id); ok {
			return id
		}
	}
}

func (f *flow) cancel(id uint64) { f.play(message{id: id}) }

func (f *flow) send(m message) {
	f.orders++
	f.play(m)
	if _, rests := f.twin.Get(m.id); !rests {
		return
	}
	if f.rng.Float64() < f.immediate {
		f.cancel(m.id)
	} else {
		f.live = append(f.live, m.id)
	}
}

func (f *flow) play(m message) {
	f.fills, _ = play(f.twin, m, f.fills[:0])
	f.messages = append(f.messages, m)
}

// play passes a message to a book. It returns false for a cancel of an order that is not there.
func play(b *Book, m message, fills []Fill) ([]Fill, bool) {
	if m.limit == 0 {
		_, ok := b.Cancel(m.id)
		return fills, ok
	}
	fills, rest, cut := b.Match(m.side, m.limit, m.amount, 10_000, fills)
	if rest > 0 && !cut {
		b.Add(trading.Order{ID: m.id, Side: m.side, Price: m.limit, Amount: m.amount,
			Remaining: rest})
	}
	return fills, true
}

func TestFlowsHaveTheShapeOfTheirMarket(t *testing.T) {
	f := func(s shape, first, last float64) {
		t.Helper()
		s.resting = min(s.resting, 1000)
		flow := newFlow(s, 1)
		for flow.orders < 2*s.resting { // fill the book before the price has gone far
			flow.next(100)
		}
		middle := func() float64 {
			bid, _ := flow.twin.Best(trading.Buy)
			ask, _ := flow.twin.Best(trading.Sell)
			return float64(bid+ask) / 2 / flowTick / flowMid
		}
		atFirst := middle()
		var orders, cancels, atOnce float64
		var before message
		for flow.orders < s.run {
			for _, m := range flow.next(1) {
				switch {
				case m.limit != 0:
					orders++
					if m.amount < 1 || m.amount > 100 || m.limit%flowTick != 0 {
						t.Fatalf("%s: %+v", s.name, m)
					}
				case m.id == before.id:
					atOnce++
					fallthrough
				default:
					cancels++
				}
				before = m
			}
		}
		if cancels < 0.93*orders || cancels > 0.98*orders {
			t.Errorf("%s: %v cancels of %v orders, want 95 %%", s.name, cancels, orders)
		}
		if atOnce < 0.13*orders || atOnce > 0.17*orders {
			t.Errorf("%s: %v of %v orders cancelled at once, want 15 %%", s.name, atOnce, orders)
		}
		if math.Abs(atFirst-first) > 0.02 || math.Abs(middle()-last) > 0.02 {
			t.Errorf("%s: the mid price goes from %.3f to %.3f, want %v to %v", s.name, atFirst,
				middle(), first, last)
		}
		if flow.twin.Len() < s.resting*9/10 || flow.twin.Len() > s.resting*11/10 {
			t.Errorf("%s: %d orders rest, want %d", s.name, flow.twin.Len(), s.resting)
		}
	}
	list := markets(50_000)
	f(list[0], 1, 1)
	f(list[1], 1, 1)
	f(list[2], 1, 1.25)
	f(list[3], 1, 1.4)
	f(list[4], 1, 0.4)
}
