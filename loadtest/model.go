package loadtest

import (
	"math"
	"math/rand/v2"
)

// Models are how prices move and orders are chosen.
var Models = []string{"random-walk", "market-making", "crossing-storm", "hot-pair"}

// usualMix returns a model's mix, for options without one.
func usualMix(model string) Mix {
	switch model {
	case "market-making":
		return Mix{Place: 50, Cancel: 48, Read: 2}
	case "crossing-storm":
		return Mix{Place: 95, Cancel: 5}
	}
	return Mix{Place: 60, Cancel: 40}
}

// A request is an order that a model chose.
type request struct {
	pair  *pair
	buy   bool
	ticks int64
	lots  int64
}

// A model makes requests. Equal seeds make equal models.
type model struct {
	kind string
	rand *rand.Rand
	mids []int64 // by pair, in ticks
	side []bool  // by pair: market makers alternate sides
}

func newModel(kind string, pairs []*pair, seed, stream uint64) *model {
	m := &model{kind: kind, rand: rand.New(rand.NewPCG(seed, stream)),
		mids: make([]int64, len(pairs)), side: make([]bool, len(pairs))}
	for i, p := range pairs {
		m.mids[i] = p.mid
	}
	return m
}

// hotShare is the percentage of orders of the model hot-pair for the first pair.
const hotShare = 90

// choose returns one of the pairs that an account trades; the first is the hot one.
func (m *model) choose(of []*pair) *pair {
	if len(of) == 1 || m.kind == "hot-pair" && m.rand.IntN(100) < hotShare {
		return of[0]
	}
	return of[m.rand.IntN(len(of))]
}

// next returns an order of one of the pairs.
func (m *model) next(of []*pair) request {
	p := m.choose(of)
	mid := m.walk(p)
	w := request{pair: p, lots: 1 + m.rand.Int64N(p.maxLots)}
	switch m.kind {
	case "market-making": // quotes on both sides in turn, close to the mid; a few takers
		m.side[p.index] = !m.side[p.index]
		w.buy = m.side[p.index]
		distance := 1 + m.rand.Int64N(10)
		if m.rand.IntN(100) < 3 {
			distance = -12
		}
		w.ticks = away(mid, w.buy, distance)
	case "crossing-storm": // every order reaches across the book
		w.buy = m.rand.IntN(2) == 0
		w.ticks = away(mid, w.buy, -m.rand.Int64N(50))
	default: // a book that is dense at its mid and thin far away; one in ten orders crosses
		w.buy = m.rand.IntN(2) == 0
		distance := m.power()
		if m.rand.IntN(10) == 0 {
			distance = -min(distance, 6)
		}
		w.ticks = away(mid, w.buy, distance)
	}
	return w
}

// away returns the price at a distance from the mid on the order's own side; a negative distance
// crosses.
func away(mid int64, buy bool, distance int64) int64 {
	if buy {
		return mid - distance
	}
	return mid + distance
}

// power returns a distance of at least three ticks, up to farthest. The chance of a distance falls
// with its square.
func (m *model) power() int64 {
	return min(int64(3/math.Sqrt(1-m.rand.Float64())), farthest)
}

const farthest = 2000

// walk moves a pair's mid by at most a tick, between half and twice its first value, and returns
// the mid.
func (m *model) walk(p *pair) int64 {
	mid := &m.mids[p.index]
	if r := m.rand.IntN(40); r < 2 {
		step := int64(2*r - 1)
		if next := *mid + step; next >= p.mid*6/10 && next <= p.mid*2 {
			*mid = next
		}
	}
	return *mid
}
