package simulation

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// An Order is an accepted order that rests.
type Order struct {
	ID        uint64
	Account   uint32
	Pair      uint16
	Side      trading.Side
	Price     money.Price
	Amount    money.Amount
	Remaining money.Amount
	TimeUs    int64
	ClientID  event.ClientID
	turn      int // its place among all orders that ever rested in its book
}

// A Level is the amount that rests at one price.
type Level struct {
	Price  money.Price
	Amount *big.Int // units of 1e-8
	Orders int
}

// A Book has the resting orders of one pair. On each side the order that trades next is first.
type Book struct {
	sides [2][]*Order // buy, sell
	turns int
}

func (b *Book) side(s trading.Side) *[]*Order { return &b.sides[s-1] }

// Orders returns a side, the order that trades next first.
func (b *Book) Orders(s trading.Side) []*Order { return *b.side(s) }

// Len returns the number of resting orders.
func (b *Book) Len() int { return len(b.sides[0]) + len(b.sides[1]) }

// find returns a resting order, or nil.
func (b *Book) find(id uint64) *Order {
	for _, side := range b.sides {
		for _, o := range side {
			if o.ID == id {
				return o
			}
		}
	}
	return nil
}

// rest puts an order behind those of its price and before those of worse ones.
func (b *Book) rest(o *Order) {
	b.turns++
	o.turn = b.turns
	list := b.side(o.Side)
	*list = append(*list, o)
	slices.SortStableFunc(*list, func(a, b *Order) int {
		byPrice := cmp.Compare(a.Price, b.Price)
		if o.Side == trading.Buy {
			byPrice = -byPrice
		}
		return cmp.Or(byPrice, cmp.Compare(a.turn, b.turn))
	})
}

func (b *Book) remove(o *Order) {
	list := b.side(o.Side)
	*list = slices.DeleteFunc(*list, func(other *Order) bool { return other == o })
}

// levels returns the prices of a side, best first.
func (b *Book) levels(s trading.Side) (list []Level) {
	for _, o := range *b.side(s) {
		if n := len(list); n == 0 || list[n-1].Price != o.Price {
			list = append(list, Level{Price: o.Price, Amount: new(big.Int)})
		}
		l := &list[len(list)-1]
		l.Amount.Add(l.Amount, big.NewInt(int64(o.Remaining)))
		l.Orders++
	}
	return list
}

// at returns the amount at a price.
func (b *Book) at(s trading.Side, p money.Price) *big.Int {
	sum := new(big.Int)
	for _, o := range *b.side(s) {
		if o.Price == p {
			sum.Add(sum, big.NewInt(int64(o.Remaining)))
		}
	}
	return sum
}

// match fills an order from the other side, one resting order after the other. It returns the
// trades as their records must read, but for ids and fees. done are the makers that are filled, and
// cut reports that only the limit of trades has ended the matching.
func (b *Book) match(o *event.Order, most int) (trades []event.Trade, remaining money.Amount,
	cut bool, done []*Order) {
	makers := b.side(o.Side.Opposite())
	for remaining = o.Amount; remaining > 0 && len(*makers) > 0; {
		m := (*makers)[0]
		if o.Side == trading.Buy && m.Price > o.Price ||
			o.Side == trading.Sell && m.Price < o.Price {
			break
		}
		if len(trades) == most {
			return trades, remaining, true, done
		}
		n := min(remaining, m.Remaining)
		remaining -= n
		m.Remaining -= n
		trades = append(trades, event.Trade{Maker: m.ID, MakerAccount: m.Account, Price: m.Price,
			Amount: n, MakerRemaining: m.Remaining})
		if m.Remaining == 0 {
			b.remove(m)
			done = append(done, m)
		}
	}
	return trades, remaining, false, done
}

// sameTrades compares the trades of a record with those that match returned.
func sameTrades(got, want []event.Trade) error {
	if len(got) != len(want) {
		return fmt.Errorf("it has %d trades, not %d", len(got), len(want))
	}
	for i, t := range got {
		t.ID, t.TakerFee, t.MakerFee = 0, money.Balance{}, money.Balance{}
		if t != want[i] {
			return fmt.Errorf("trade %d is %+v, not %+v", i+1, t, want[i])
		}
	}
	return nil
}
