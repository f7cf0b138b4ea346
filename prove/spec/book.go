package spec

import (
	"math/big"
	"math/bits"
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
	Remaining money.Amount // including the hidden part
	TimeUs    int64
	ClientID  event.ClientID
	By        KeyNonce // the client's command that placed it

	Says      trading.Instructions // zero of a plain order
	Trigger   trading.Trigger      // zero: none; an OCO is among the instructions
	Waits     bool                 // it waits outside the book
	Queued    bool                 // its trigger was reached, and it is in the market's queue
	Triggered bool                 // it has entered the book by its trigger
	Shown     money.Amount         // displayed part
	value     *big.Int             // sum of price x amount of its trades; nil: none or unknown
	unsummed  bool                 // it has traded as a plain order
}

// isPlain reports whether an order never had an instruction.
func (o *Order) isPlain() bool { return o.Says.IsZero() && o.Trigger == (trading.Trigger{}) }

// expires reports whether no trade of the order may have a time.
func (o *Order) expires(timeUs int64) bool {
	return o.Says.ExpireUs != 0 && o.Says.ExpireUs <= timeUs
}

// IsInstructed reports whether the order has instructions, or a trigger.
func (o *Order) IsInstructed() bool { return !o.isPlain() }

// IsStop reports whether the order waits for a trigger, in the book or outside.
func (o *Order) IsStop() bool { return o.Waits || o.Says.OCO != (trading.OCO{}) && !o.Triggered }

// Packed returns an order's instructions and their outcome, as stored; "" of a plain order.
func (o *Order) Packed() trading.Packed {
	if o.isPlain() {
		return ""
	}
	x := trading.Instructed{Instructions: o.Says, Trigger: o.Trigger, Triggered: o.Triggered}
	if o.value != nil {
		x.Value = money.BalanceFromBits(halves(o.value))
	}
	return x.Pack()
}

// instruct gives an order other instructions. One that becomes plain drops the sum of its trades.
func (o *Order) instruct(is *trading.Instructions) {
	if o.Says = *is; o.isPlain() && o.value != nil {
		o.value, o.unsummed = nil, true
	}
}

// setCancelled records why an order with instructions was cancelled. A plain one has no reason.
func (o *Order) setCancelled(reason trading.Reason) {
	if !o.isPlain() {
		o.Says.Cancelled = reason
	}
}

// spends adds a trade to the sum of an order with instructions. The sum is unknown once the order
// has traded as a plain one.
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

// A Book holds the resting orders of one pair. On each side the order that trades next is first.
type Book struct {
	sides [2][]*Order // buy, sell
}

func (b *Book) side(s trading.Side) *[]*Order { return &b.sides[s-1] }

// Orders returns a side, the order that trades next first.
func (b *Book) Orders(s trading.Side) []*Order { return *b.side(s) }

// clone returns a copy with orders of its own.
func (b *Book) clone() (c Book) {
	for i, side := range b.sides {
		c.sides[i] = cloneOrders(side)
	}
	return c
}

func cloneOrders(list []*Order) (cloned []*Order) {
	for _, o := range list {
		copied := *o
		cloned = append(cloned, &copied)
	}
	return cloned
}

// Find returns a resting order, or nil.
func (b *Book) Find(id uint64) *Order {
	for _, side := range b.sides {
		for _, o := range side {
			if o.ID == id {
				return o
			}
		}
	}
	return nil
}

// Rest inserts an order after those of its price and before those of worse ones. The book displays
// all of it, or the part that it names.
func (b *Book) Rest(o *Order) {
	o.Waits = false
	if o.Shown = o.Remaining; o.Says.Display > 0 {
		o.Shown = min(o.Remaining, o.Says.Display)
	}
	list, at := b.side(o.Side), 0
	for at < len(*list) && crosses(o.Side.Opposite(), o.Price, (*list)[at].Price) {
		at++
	}
	*list = slices.Insert(*list, at, o)
}

// Remove removes an order, if it rests in the book.
func (b *Book) Remove(o *Order) {
	list := b.side(o.Side)
	*list = slices.DeleteFunc(*list, func(other *Order) bool { return other == o })
}

// Levels returns up to most of the best prices of a side, best first; -1: all. A level is the
// displayed amount at one price.
func (b *Book) Levels(s trading.Side, most int) (list []trading.Level) {
	var high, low, carry uint64 // of the sum at a price
	for _, o := range *b.side(s) {
		if n := len(list); n == 0 || list[n-1].Price != o.Price {
			if n == most {
				break
			}
			list = append(list, trading.Level{Price: o.Price})
			high, low = 0, 0
		}
		low, carry = bits.Add64(low, uint64(o.Shown), 0)
		high += carry
		l := &list[len(list)-1]
		l.Amount = money.TotalFromBits(high, low)
		l.Orders++
	}
	return list
}

// crosses reports whether an order of a side would trade with a resting one at a price.
func crosses(side trading.Side, limit, price money.Price) bool {
	return side == trading.Buy && price <= limit || side == trading.Sell && price >= limit
}

// Meets reports whether an order would trade at once.
func (b *Book) Meets(side trading.Side, limit money.Price) bool {
	others := *b.side(side.Opposite())
	return len(others) > 0 && crosses(side, limit, others[0].Price)
}

// A Taker is an order that enters its book.
type Taker struct {
	Side   trading.Side
	Limit  money.Price
	Amount money.Amount // the most it takes
	Most   int          // trades and preventions together

	account   uint32
	selfTrade trading.SelfTrade
	money     *big.Int     // budget; nil: only its amount bounds it
	step      money.Amount // of amounts bought with the budget
}

// An End is the reason why a taker stopped.
type End string

// The ends.
const (
	Filled    End = "nothing of it is left"
	NoMaker   End = "no other order crosses it"
	MaxFills  End = "it has reached the maximum of trades"
	SelfTrade End = "it has met an order of its own account"
)

// A MatchResult is the outcome of a taker.
type MatchResult struct {
	Trades    []event.Trade       // as their records must read, but for ids and fees
	Prevented []trading.Prevented // as their records must read, but for the cancels' ids
	Rest      money.Amount        // of the taker's amount
	Money     *big.Int            // rest of the taker's budget; nil: it had none
	End       End
	// Gone are the orders that left the book, in order. Their Remaining is 0, except for the
	// account's own prevented orders.
	Gone []*Order
}

// bought returns the amount that the taker has bought.
func (k *MatchResult) bought() (n money.Amount) {
	for _, t := range k.Trades {
		n += t.Amount
	}
	return n
}

// Match fills an order from the other side, one resting order after the other.
func (b *Book) Match(t Taker) MatchResult {
	k := MatchResult{Rest: t.Amount, Money: t.money}
	var last money.Price // of the last order met
	wants := func() money.Amount {
		if k.Money == nil {
			return k.Rest
		}
		return min(k.Rest, buys(k.Money, last, t.step))
	}
	makers := b.side(t.Side.Opposite())
	for k.Rest > 0 && len(*makers) > 0 && crosses(t.Side, t.Limit, (*makers)[0].Price) {
		m := (*makers)[0]
		last = m.Price
		n := min(wants(), m.Shown)
		if n == 0 {
			break
		}
		if len(k.Trades)+len(k.Prevented) == t.Most {
			k.End = MaxFills
			return k
		}
		if t.selfTrade != trading.SelfTradeNone && m.Account == t.account {
			if t.selfTrade != trading.SelfTradeCancelNewest {
				k.Prevented = append(k.Prevented, trading.Prevented{Before: uint32(len(k.Trades)),
					Order: m.ID, Price: m.Price, Amount: m.Remaining})
				b.Remove(m)
				k.Gone = append(k.Gone, m)
			}
			if t.selfTrade != trading.SelfTradeCancelOldest {
				k.End = SelfTrade
				return k
			}
			continue
		}
		k.Rest -= n
		if k.Money != nil {
			k.Money = new(big.Int).Sub(k.Money, valueOf(m.Price, n))
		}
		b.fill(m, n, &k)
	}
	switch k.End = NoMaker; {
	case k.Money == nil && k.Rest == 0,
		k.Money != nil && len(k.Trades) > 0 && k.Rest > 0 && wants() == 0: // the budget is used up
		k.End = Filled
	}
	return k
}

// fill takes an amount of the first order. When its displayed part is used up, the next part
// follows, after all other orders at its price.
func (b *Book) fill(m *Order, n money.Amount, k *MatchResult) {
	m.Remaining -= n
	m.Shown -= n
	m.spends(m.Price, n)
	k.Trades = append(k.Trades, event.Trade{Maker: m.ID, MakerAccount: m.Account, Price: m.Price,
		Amount: n, MakerRemaining: m.Remaining})
	if m.Shown > 0 {
		return
	}
	b.Remove(m)
	if m.Remaining > 0 {
		b.Rest(m)
	} else {
		k.Gone = append(k.Gone, m)
	}
}

// buys returns the amount that a budget buys at a price, a multiple of a step.
func buys(left *big.Int, price money.Price, step money.Amount) money.Amount {
	n := new(big.Int).Div(left, big.NewInt(int64(price)))
	if most := big.NewInt(int64(money.MaxAmount)); n.Cmp(most) > 0 {
		n = most
	}
	return money.Amount(n.Int64() - n.Int64()%int64(step))
}

// slide returns the price next to the best one of the other side, for a post-only order that would
// trade at its own price.
func (b *Book) slide(side trading.Side, price, tick money.Price) (slid money.Price, ok bool) {
	if !b.Meets(side, price) {
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

// A display is a book's visible state: its levels, and its orders in queue order.
type display struct {
	levels [2][]trading.Level
	orders [2][]shownOrder
}

type shownOrder struct {
	id     uint64
	price  money.Price
	amount money.Amount
}

func (b *Book) display() (d display) {
	for i, side := range []trading.Side{trading.Buy, trading.Sell} {
		d.levels[i] = b.Levels(side, -1)
		for _, o := range *b.side(side) {
			d.orders[i] = append(d.orders[i], shownOrder{o.ID, o.Price, o.Shown})
		}
	}
	return d
}

// levelChanges returns the prices of a side whose amount changed.
func levelChanges(side trading.Side, before, after []trading.Level) (list []Change) {
	for _, l := range slices.Concat(before, after) {
		was, is := amountAt(before, l.Price), amountAt(after, l.Price)
		if c := (Change{side, l.Price, is}); was != is && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

func amountAt(levels []trading.Level, p money.Price) (amount money.Total) {
	for _, l := range levels {
		if l.Price == p {
			amount = l.Amount
		}
	}
	return amount
}
