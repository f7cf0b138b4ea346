package matching

import (
	"fmt"
	"math/bits"

	"exchange/core/money"
	"exchange/core/trading"
)

// A Taker is an incoming order with more constraints than side, limit and amount.
type Taker struct {
	Side    trading.Side
	Limit   money.Price
	Amount  money.Amount // at least 1: largest amount to take
	Account uint32
	// SelfTrade decides what happens at each order of the same account.
	SelfTrade trading.SelfTrade
	// Money bounds a buy beside its amount; 0: unbounded. From each maker the order takes at most
	// what the remaining money buys, rounded down to a multiple of Step.
	Money    money.Balance
	Step     money.Amount // at least 1 with Money
	MaxFills int          // fills and prevented orders together
}

// An End is why a taker stopped.
type End uint8

// The ends.
const (
	// EndDone: nothing of the order is left. Money bought something, and the rest buys no step at
	// the last maker's price.
	EndDone End = iota + 1
	// EndNoMaker: no other order crosses the limit, or the money buys nothing at all.
	EndNoMaker
	// EndMaxFills: the maximum of fills was reached, while more would have crossed.
	EndMaxFills
	// EndSelfTrade: the order met one of its own account.
	EndSelfTrade
)

// A Result is the outcome of one MatchWith, which reuses its memory.
type Result struct {
	Fills     []Fill
	Prevented []Prevented
	Rest      money.Amount // of the taker's amount
	//tidy:keep beside Rest: the remaining money of an order that spends a sum
	Money money.Balance // rest of the taker's
	End   End
}

// Prevented is an order removed from the book by its own account's taker.
type Prevented struct {
	Before int           // earlier fills of the same match
	Order  trading.Order // as it was, its hidden part included
}

// MatchWith is Match for an order with self-trade prevention or a budget. The makers in the fills
// are smaller now or gone, and the prevented orders are gone. The rest is not added to the book.
func (b *Book) MatchWith(t *Taker, r *Result) {
	*r = Result{Fills: r.Fills[:0], Prevented: r.Prevented[:0]}
	b.match(t, r)
}

// matchIcebergs is Match in a book with icebergs, for an amount of at least 1. It is separate to
// keep Match small.
func (b *Book) matchIcebergs(side trading.Side, limit money.Price, amount money.Amount,
	maxFills int, dst []Fill) (fills []Fill, rest money.Amount, cut bool) {
	r := Result{Fills: dst}
	b.match(&Taker{Side: side, Limit: limit, Amount: amount, MaxFills: maxFills}, &r)
	return r.Fills, r.Rest, r.End == EndMaxFills
}

// match appends to the result.
func (b *Book) match(t *Taker, r *Result) {
	p := t.start()
	makers := b.side(t.Side.Opposite())
	worst := keyOf(t.Side.Opposite(), t.Limit)
	for r.End == 0 && makers.best >= worst {
		l := b.levels.at(makers.bestLevel())
		o := b.orders.at(l.head)
		most, end := t.meet(&p, l.price, o.account)
		r.End = end
		switch {
		case most > 0:
			taken := min(most, o.remaining)
			p.take(t, taken)
			r.Fills = append(r.Fills, b.fillHead(makers, taken))
		case end == 0, end == EndSelfTrade && t.SelfTrade == trading.SelfTradeCancelBoth:
			own, _ := b.Cancel(o.id)
			r.Prevented = append(r.Prevented, Prevented{Before: p.fills, Order: own})
		}
	}
	if r.End == 0 {
		r.End = t.ended(&p)
	}
	r.Rest, r.Money = p.rest, p.money
}

// Fillable predicts the End of MatchWith, hidden parts and prevented orders included, without a
// change. An all-or-nothing order matches only when that is EndDone.
func (b *Book) Fillable(t *Taker) End {
	p := t.start()
	worst := keyOf(t.Side.Opposite(), t.Limit)
	for ln := range b.side(t.Side.Opposite()).bestFirst {
		l := b.levels.at(ln)
		if keyOf(l.side, l.price) < worst {
			break
		}
		if end := b.walk(t, &p, l); end != 0 {
			return end
		}
	}
	return t.ended(&p)
}

// walk simulates taking a level. The parts of icebergs come in turns after everything displayed at
// first.
func (b *Book) walk(t *Taker, p *progress, l *level) End {
	parts := b.parts[:0]
	for n := l.head; n != 0; n = b.orders.at(n).next {
		o := b.orders.at(n)
		most, end := t.meet(p, l.price, o.account)
		if end != 0 {
			return end
		}
		if most == 0 {
			continue // its own, removed with its hidden part
		}
		p.take(t, min(most, o.remaining))
		if len(b.icebergs) > 0 && b.icebergs[n].Hidden > 0 {
			parts = append(parts, hiddenPart{o.account, b.icebergs[n]})
		}
	}
	b.parts = parts[:0]
	for len(parts) > 0 {
		left := parts[:0]
		for _, part := range parts {
			most, end := t.meet(p, l.price, part.account)
			if end != 0 {
				return end
			}
			displayed := part.next()
			p.take(t, min(most, displayed))
			if part.Hidden > 0 {
				left = append(left, part)
			}
		}
		parts = left
	}
	return 0
}

// progress is a taker's progress.
type progress struct {
	rest      money.Amount
	money     money.Balance
	price     money.Price // of the last maker met; 0: none yet
	fills     int
	prevented int
}

func (t *Taker) start() progress {
	if t.Limit < 1 || t.Amount < 1 || t.MaxFills < 0 ||
		!t.Money.IsZero() && (t.Side != trading.Buy || t.Step < 1) ||
		t.SelfTrade > trading.SelfTradeCancelBoth {
		panic(fmt.Sprintf("BUG: match of %+v", *t))
	}
	return progress{rest: t.Amount, money: t.Money}
}

// meet decides about the next maker: take at most an amount of it, or end. With neither the maker
// is an order of the same account, which is removed, and the taker continues.
func (t *Taker) meet(p *progress, price money.Price, maker uint32) (most money.Amount, end End) {
	p.price = price
	most = t.wants(p)
	switch {
	case most == 0:
		return 0, t.ended(p)
	case p.fills+p.prevented == t.MaxFills:
		return 0, EndMaxFills
	case t.SelfTrade == trading.SelfTradeNone || maker != t.Account:
		return most, 0
	}
	p.prevented++
	if t.SelfTrade == trading.SelfTradeCancelOldest {
		return 0, 0
	}
	return 0, EndSelfTrade
}

// wants returns the most that the taker takes at the last maker's price.
func (t *Taker) wants(p *progress) money.Amount {
	if t.Money.IsZero() {
		return p.rest
	}
	return min(p.rest, buys(p.money, p.price, t.Step))
}

// take counts a fill at the last maker's price.
func (p *progress) take(t *Taker, taken money.Amount) {
	p.fills++
	p.rest -= taken
	if !t.Money.IsZero() {
		p.money = p.money.Sub(p.price.Times(taken).Balance())
	}
}

// ended returns the end of a taker that stops before its maximum of fills.
func (t *Taker) ended(p *progress) End {
	switch {
	case p.fills == 0:
		return EndNoMaker
	case t.Money.IsZero() && p.rest == 0, !t.Money.IsZero() && buys(p.money, p.price, t.Step) == 0:
		return EndDone
	}
	return EndNoMaker
}

// buys returns how much money buys at a price, a multiple of step, capped at money.MaxAmount.
func buys(left money.Balance, price money.Price, step money.Amount) money.Amount {
	hi, lo := left.Bits()
	if hi >= uint64(price) {
		return money.MaxAmount // 2^64 units or more
	}
	n, _ := bits.Div64(hi, lo, uint64(price))
	n -= n % uint64(step)
	return money.Amount(min(n, uint64(money.MaxAmount)))
}

// Crosses reports whether an order of that side and limit would trade at once, its own account's
// orders included.
func (b *Book) Crosses(side trading.Side, limit money.Price) bool {
	return b.side(side.Opposite()).best >= keyOf(side.Opposite(), limit)
}

// Slide returns the limit with which a post-only order rests: its own, or if that crosses, the
// multiple of tick next to the best opposite price. ok is false when no price is left.
func (b *Book) Slide(side trading.Side, limit, tick money.Price) (slid money.Price, ok bool) {
	if !b.Crosses(side, limit) {
		return limit, true
	}
	best, _ := b.Best(side.Opposite())
	if side == trading.Buy {
		slid = (best - 1) / tick * tick
		return slid, slid > 0
	}
	slid = best / tick * tick
	if slid > money.MaxPrice-tick {
		return 0, false
	}
	return slid + tick, true
}
