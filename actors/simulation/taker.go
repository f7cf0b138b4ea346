package simulation

import (
	"math/big"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// A taker is an order that enters its book.
type taker struct {
	account uint32
	side    trading.Side
	limit   money.Price
	amount  money.Amount // most that it takes
	mode    trading.SelfTrade
	money   *big.Int     // that it may spend; nil: its amount alone bounds it
	step    money.Amount // of which each amount that it buys for its money is a multiple
	most    int          // trades and preventions together
}

// An end says why a taker takes no more.
type end string

const (
	endFilled    end = "nothing of it is left"
	endNoMaker   end = "no other order crosses it"
	endMaxFills  end = "it has had as many trades as there may be"
	endSelfTrade end = "it has met an order of its own account"
)

// A taking is what has become of a taker.
type taking struct {
	trades    []event.Trade       // as their records must read, but for ids and fees
	prevented []trading.Prevented // as their records must read, but for the cancels' ids
	rest      money.Amount        // of the taker's amount
	end       end
	done, out []*Order // makers that are filled; own orders that were taken out
}

// bought returns the amount that the taker has taken.
func (k *taking) bought() (n money.Amount) {
	for _, t := range k.trades {
		n += t.Amount
	}
	return n
}

// match fills an order from the other side, one resting order after the other.
func (b *Book) match(t taker) taking {
	k := taking{rest: t.amount}
	left := t.money
	var last money.Price // of the order that it met last
	wants := func() money.Amount { return k.rest }
	if left != nil {
		wants = func() money.Amount { return min(k.rest, buys(left, last, t.step)) }
	}
	makers := b.side(t.side.Opposite())
	for k.rest > 0 && len(*makers) > 0 && crosses(t.side, t.limit, (*makers)[0].Price) {
		m := (*makers)[0]
		last = m.Price
		n := min(wants(), m.Shown)
		if n == 0 {
			break
		}
		if len(k.trades)+len(k.prevented) == t.most {
			k.end = endMaxFills
			return k
		}
		if t.mode != trading.SelfTradeNone && m.Account == t.account {
			if t.mode != trading.SelfTradeCancelNewest {
				k.prevented = append(k.prevented, trading.Prevented{Before: uint32(len(k.trades)),
					Order: m.ID, Price: m.Price, Amount: m.Remaining})
				b.remove(m)
				k.out = append(k.out, m)
			}
			if t.mode != trading.SelfTradeCancelOldest {
				k.end = endSelfTrade
				return k
			}
			continue
		}
		k.rest -= n
		if left != nil {
			left = new(big.Int).Sub(left, valueOf(m.Price, n))
		}
		b.fill(m, n, &k)
	}
	if k.end = endNoMaker; k.rest == 0 || left != nil && len(k.trades) > 0 && wants() == 0 {
		k.end = endFilled
	}
	return k
}

// fill takes an amount of the order that is first. When the part of it that the book shows is used
// up, the next part follows, behind all other orders at its price.
func (b *Book) fill(m *Order, n money.Amount, k *taking) {
	m.Remaining -= n
	m.Shown -= n
	m.spends(m.Price, n)
	k.trades = append(k.trades, event.Trade{Maker: m.ID, MakerAccount: m.Account, Price: m.Price,
		Amount: n, MakerRemaining: m.Remaining})
	if m.Shown > 0 {
		return
	}
	b.remove(m)
	if m.Remaining > 0 {
		b.rest(m)
	} else {
		k.done = append(k.done, m)
	}
}

// buys returns the amount that money buys at a price, a multiple of a step.
func buys(left *big.Int, price money.Price, step money.Amount) money.Amount {
	n := new(big.Int).Div(left, big.NewInt(int64(price)))
	if most := big.NewInt(int64(money.MaxAmount)); n.Cmp(most) > 0 {
		n = most
	}
	return money.Amount(n.Int64() - n.Int64()%int64(step))
}

// slide returns the price next to the best one of the other side, where a post-only order rests
// that would trade at its own price.
func (b *Book) slide(side trading.Side, price, tick money.Price) (slid money.Price, ok bool) {
	if !b.meets(side, price) {
		return price, true
	}
	best := (*b.side(side.Opposite()))[0].Price
	n := new(big.Int).Div(big.NewInt(int64(best)), big.NewInt(int64(tick))).Int64()
	if side == trading.Buy {
		if int64(best)%int64(tick) == 0 {
			n--
		}
		return money.Price(n) * tick, n > 0
	}
	up := new(big.Int).Mul(big.NewInt(n+1), big.NewInt(int64(tick)))
	return money.Price(up.Int64()), up.IsInt64()
}
