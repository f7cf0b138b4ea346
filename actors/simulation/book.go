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

// An Order is an accepted order that is open: it rests in its book, or waits for its trigger.
type Order struct {
	ID        uint64
	Account   uint32
	Pair      uint16
	Side      trading.Side
	Price     money.Price
	Amount    money.Amount
	Remaining money.Amount // what the book hides included
	TimeUs    int64
	ClientID  event.ClientID
	By        KeyNonce // the client's command that placed it

	Says      trading.Instructions // zero of a plain order
	trigger   trading.Trigger      // zero: none; an OCO is among the instructions
	waits     bool                 // it waits outside the book
	queued    bool                 // its trigger was reached, and it is in the pair's queue
	triggered bool                 // it has entered the book by its trigger
	Shown     money.Amount         // what the book shows of it
	value     *big.Int             // sum of price x amount of its trades; nil: none or not known

	turn     int  // its place among all orders that ever rested in its book
	unsummed bool // it has traded as a plain order
}

// isPlain reports whether an order never had an instruction.
func (o *Order) isPlain() bool { return o.Says.IsZero() && o.trigger == (trading.Trigger{}) }

// expires reports whether no trade of the order may have a time.
func (o *Order) expires(timeUs int64) bool {
	return o.Says.ExpireUs != 0 && o.Says.ExpireUs <= timeUs
}

// IsInstructed reports whether the order has instructions, or a trigger.
func (o *Order) IsInstructed() bool { return !o.isPlain() }

// IsStop reports whether the order waits for a trigger, in the book or outside.
func (o *Order) IsStop() bool { return o.waits || o.Says.OCO != (trading.OCO{}) && !o.triggered }

// ends notes why an order with instructions was cancelled. Of a plain one nothing says so.
func (o *Order) ends(reason trading.Reason) {
	if !o.isPlain() {
		o.Says.Cancelled = reason
	}
}

// spends adds a trade to the sum of the trades of an order with instructions. That of an order that
// had trades as a plain one is not known.
func (o *Order) spends(p money.Price, n money.Amount) {
	if o.unsummed = o.unsummed || o.isPlain(); o.unsummed {
		return
	}
	sum := valueOf(p, n)
	if o.value != nil {
		sum.Add(sum, o.value)
	}
	o.value = sum
}

// A Closed order is one that is not open any more, as it was just before.
type Closed struct {
	Order
	seq uint64 // of the record that closed it
}

// Closed returns an order that is not open any more.
func (m *Model) Closed(id uint64) (c Closed, done bool) {
	c, done = m.closed[id]
	return c, done
}

// A Level is the amount that rests at one price, without what the book hides.
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

// clone returns a copy with orders of its own.
func (b *Book) clone() *Book {
	c := &Book{turns: b.turns}
	for i, side := range b.sides {
		for _, o := range side {
			copied := *o
			c.sides[i] = append(c.sides[i], &copied)
		}
	}
	return c
}

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

// rest puts an order behind those of its price and before those of worse ones. The book shows all
// of it, or the part that it says.
func (b *Book) rest(o *Order) {
	b.turns++
	o.turn, o.waits = b.turns, false
	if o.Shown = o.Remaining; o.Says.Display > 0 {
		o.Shown = min(o.Remaining, o.Says.Display)
	}
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
		l.Amount.Add(l.Amount, big.NewInt(int64(o.Shown)))
		l.Orders++
	}
	return list
}

// A display is what a book shows: its levels, and its orders by their places.
type display struct {
	levels [2][]Level
	orders [2][]shownOrder
}

type shownOrder struct {
	id     uint64
	price  money.Price
	amount money.Amount
}

func (b *Book) display() (d display) {
	for i, side := range []trading.Side{trading.Buy, trading.Sell} {
		d.levels[i] = b.levels(side)
		for _, o := range *b.side(side) {
			d.orders[i] = append(d.orders[i], shownOrder{o.ID, o.Price, o.Shown})
		}
	}
	return d
}

// crosses reports whether an order of a side would trade with a resting one at a price.
func crosses(side trading.Side, limit, price money.Price) bool {
	return side == trading.Buy && price <= limit || side == trading.Sell && price >= limit
}

// meets reports whether an order would trade at once.
func (b *Book) meets(side trading.Side, limit money.Price) bool {
	others := *b.side(side.Opposite())
	return len(others) > 0 && crosses(side, limit, others[0].Price)
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
