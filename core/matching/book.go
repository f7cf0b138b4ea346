package matching

import (
	"fmt"

	"exchange/core/money"
	"exchange/core/trading"
)

// A Book holds the resting orders of one pair. One goroutine at a time may use it.
type Book struct {
	orders slab[order]
	levels slab[level]
	ids    idTable
	sides  [2]ladder // Buy, Sell
	hints  [1 << hintBits]uint32

	freeOrder uint32 // first unused order record, linked by next
	freeLevel uint32 // first unused level record, linked by head

	icebergs map[uint32]Iceberg // hidden parts, by order record; others hide nothing
	parts    []hiddenPart       // scratch of one Fillable
}

// Most orders arrive at a price that has a level. A hint is the level last used for a price with
// this hash. If its record is still that level, the ladder search is skipped.
const hintBits = 10

// An order is the record of a resting order. Its price and side are its level's.
type order struct {
	id        uint64
	amount    money.Amount
	remaining money.Amount // displayed
	timeUs    int64
	account   uint32
	level     uint32
	prev      uint32 // older at the same price
	next      uint32 // younger at the same price
}

// A level is the record of a price level, a queue of orders.
type level struct {
	price  money.Price
	amount money.Total // sum of its orders' remaining amounts, without hidden parts
	head   uint32      // oldest order: trades first
	tail   uint32      // youngest order
	count  uint32      // orders
	side   trading.Side
}

// New returns an empty book.
func New() *Book { return new(Book) }

// Match takes orders of the other side that cross limit: best price first, oldest first at equal
// price, at the makers' prices. It takes at most amount, with at most maxFills fills. It appends
// the fills to dst and returns dst, the unfilled rest of amount, and whether maxFills stopped it
// while more would have crossed. The rest is not added to the book. limit is at least 1, amount and
// maxFills at least 0.
func (b *Book) Match(side trading.Side, limit money.Price, amount money.Amount, maxFills int,
	dst []Fill) (fills []Fill, rest money.Amount, cut bool) {
	if limit < 1 || amount < 0 || maxFills < 0 {
		panic(fmt.Sprintf("BUG: match of amount %d at limit %d with at most %d fills",
			int64(amount), int64(limit), maxFills))
	}
	if len(b.icebergs) > 0 && amount > 0 {
		return b.matchIcebergs(side, limit, amount, maxFills, dst)
	}
	makers := b.side(side.Opposite())
	worst := keyOf(side.Opposite(), limit)
	for amount > 0 && makers.best >= worst {
		if maxFills == 0 {
			return dst, amount, true
		}
		before := len(dst)
		dst, amount = b.matchLevel(makers, amount, maxFills, dst)
		maxFills -= len(dst) - before
	}
	return dst, amount, false
}

// matchLevel takes from the best level until amount, maxFills or the level is used up.
func (b *Book) matchLevel(makers *ladder, amount money.Amount, maxFills int, dst []Fill) ([]Fill,
	money.Amount) {
	ln := makers.bestLevel()
	l := b.levels.at(ln)
	before := amount
	for n := l.head; n != 0 && amount > 0 && maxFills > 0; n = l.head {
		o := b.orders.at(n)
		taken := min(amount, o.remaining)
		amount -= taken
		o.remaining -= taken
		maxFills--
		dst = append(dst, Fill{Maker: o.id, MakerAccount: o.account, Price: l.price, Amount: taken,
			MakerRemaining: o.remaining})
		if o.remaining == 0 {
			at, _ := b.ids.find(o.id, &b.orders)
			b.ids.remove(at)
			b.unlink(l, n)
		}
	}
	l.amount = l.amount.Sub(before - amount)
	if l.head == 0 {
		b.dropLevel(makers, makers.bestPlace(), ln)
	}
	return dst, amount
}

// Add rests an order at the back of its price level. It panics when the order's side, price or
// remaining amount is impossible, or its id is in the book already. It also panics when the order
// crosses the best price of the other side: callers Match first.
func (b *Book) Add(o trading.Order) {
	b.shrink()
	own, other := b.side(o.Side), b.side(o.Side.Opposite())
	switch {
	case o.Price < 1 || o.Remaining < 1 || o.Remaining > o.Amount:
		panic(fmt.Sprintf("BUG: order %d added with price %d and %d remaining of %d", o.ID,
			int64(o.Price), int64(o.Remaining), int64(o.Amount)))
	case other.best >= keyOf(o.Side.Opposite(), o.Price):
		panic(fmt.Sprintf("BUG: order %d added at price %d, where it crosses the book", o.ID,
			int64(o.Price)))
	}
	b.ids.reserve()
	entry, found := b.ids.find(o.ID, &b.orders)
	if found {
		panic(fmt.Sprintf("BUG: order %d added twice", o.ID))
	}
	n := b.takeOrder()
	b.ids.put(entry, o.ID, n)

	ln := b.levelFor(own, o.Side, o.Price)
	l := b.levels.at(ln)
	*b.orders.at(n) = order{
		id: o.ID, amount: o.Amount, remaining: o.Remaining, timeUs: o.TimeUs, account: o.Account,
		level: ln, prev: l.tail,
	}
	if l.tail == 0 {
		l.head = n
	} else {
		b.orders.at(l.tail).next = n
	}
	l.tail = n
	l.count++
	l.amount = l.amount.Add(o.Remaining)
}

// Cancel removes an order from the book and returns it as it was, its hidden part included. ok is
// false when the order is not in the book.
func (b *Book) Cancel(id uint64) (o trading.Order, ok bool) {
	if b.ids.count == 0 {
		return trading.Order{}, false
	}
	entry, found := b.ids.find(id, &b.orders)
	if !found {
		return trading.Order{}, false
	}
	n := uint32(b.ids.entries[entry])
	o = b.displayed(n)
	ln := b.orders.at(n).level
	l := b.levels.at(ln)
	b.ids.remove(entry)
	b.unlink(l, n)
	l.amount = l.amount.Sub(o.Remaining)
	if len(b.icebergs) > 0 {
		o.Remaining += b.uncover(n)
	}
	if l.head == 0 {
		own := b.side(o.Side)
		at, _ := own.find(keyOf(o.Side, o.Price))
		b.dropLevel(own, at, ln)
	}
	b.shrink()
	return o, true
}

// Get returns a copy of a resting order, its hidden part included; the second result is false when
// it is not there.
func (b *Book) Get(id uint64) (trading.Order, bool) {
	n := b.ids.lookup(id, &b.orders)
	if n == 0 {
		return trading.Order{}, false
	}
	return b.order(n), true
}

// Fill applies a recorded fill: amount of the maker id at price. The maker must be the order that
// Match would take next from its side: the oldest of the best level. The amount is at most what the
// order displays. Fill returns the order after the fill, its hidden part included; with nothing
// remaining it has left the book. An error names the mismatch; the book is then unchanged.
func (b *Book) Fill(id uint64, price money.Price, amount money.Amount) (trading.Order, error) {
	n := b.ids.lookup(id, &b.orders)
	if n == 0 {
		return trading.Order{}, fmt.Errorf("fill of order %d: it is not in the book", id)
	}
	o := b.orders.at(n)
	l := b.levels.at(o.level)
	makers := b.side(l.side)
	best := b.levels.at(makers.bestLevel())
	switch {
	case best.head != n:
		return trading.Order{},
			fmt.Errorf("fill of order %d: order %d at price %d is the next to trade on its side",
				id, b.orders.at(best.head).id, int64(best.price))
	case price != l.price:
		return trading.Order{}, fmt.Errorf("fill of order %d at price %d: its price is %d", id,
			int64(price), int64(l.price))
	case amount < 1 || amount > o.remaining:
		return trading.Order{}, fmt.Errorf("fill of order %d by %d: it has %d remaining", id,
			int64(amount),
			int64(o.remaining))
	}
	after := b.order(n)
	after.Remaining -= amount
	if len(b.icebergs) > 0 {
		b.fillHead(makers, amount)
		return after, nil
	}
	var fill [1]Fill
	b.matchLevel(makers, amount, 1, fill[:0])
	return after, nil
}

// side returns the ladder of a side.
func (b *Book) side(s trading.Side) *ladder {
	switch s {
	case trading.Buy:
		return &b.sides[0]
	case trading.Sell:
		return &b.sides[1]
	}
	panic(fmt.Sprintf("BUG: side %d is neither buy nor sell", s))
}

// order returns a copy of a record for the outside, its hidden part included.
func (b *Book) order(n uint32) trading.Order {
	o := b.displayed(n)
	if len(b.icebergs) > 0 {
		o.Remaining += b.icebergs[n].Hidden
	}
	return o
}

// displayed returns a copy of a record as the public sees it.
func (b *Book) displayed(n uint32) trading.Order {
	o := b.orders.at(n)
	l := b.levels.at(o.level)
	return trading.Order{
		ID: o.id, Account: o.account, Side: l.side, Price: l.price,
		Amount: o.amount, Remaining: o.remaining, TimeUs: o.timeUs,
	}
}

// level returns a copy of a record for the outside.
func (b *Book) level(n uint32) trading.Level {
	l := b.levels.at(n)
	return trading.Level{Price: l.price, Amount: l.amount, Orders: int(l.count)}
}

// levelFor returns the number of the level at a price, creating it if necessary.
func (b *Book) levelFor(own *ladder, side trading.Side, p money.Price) uint32 {
	key := keyOf(side, p)
	if key == own.best {
		return own.bestLevel()
	}
	hint := &b.hints[key*0x9e3779b97f4a7c15>>(64-hintBits)]
	if n := *hint; n != 0 {
		if l := b.levels.at(n); l.price == p && l.side == side && l.count > 0 {
			return n
		}
	}
	at, n := own.find(key)
	if n == 0 {
		n = b.takeLevel()
		*b.levels.at(n) = level{price: p, side: side}
		own.insert(at, key, n)
	}
	*hint = n
	return n
}

// unlink removes an order from the queue of its level and frees its record. The caller updates the
// amount of the level, and drops it when it is empty.
func (b *Book) unlink(l *level, n uint32) {
	o := b.orders.at(n)
	if o.prev == 0 {
		l.head = o.next
	} else {
		b.orders.at(o.prev).next = o.next
	}
	if o.next == 0 {
		l.tail = o.prev
	} else {
		b.orders.at(o.next).prev = o.prev
	}
	l.count--
	o.next = b.freeOrder
	b.freeOrder = n
}

// dropLevel removes an empty level from its ladder and frees its record.
func (b *Book) dropLevel(own *ladder, at place, n uint32) {
	own.remove(at)
	b.levels.at(n).head = b.freeLevel
	b.freeLevel = n
}

// A book releases the memory of a burst when it has room for shrinkFrom orders or more, and at most
// shrinkTo are left: adding these to a new book takes a millisecond or two.
const (
	shrinkFrom = 1 << 16
	shrinkTo   = 1 << 14
)

// shrink releases the memory of a burst.
func (b *Book) shrink() {
	if b.orders.used < shrinkFrom || b.ids.count > shrinkTo {
		return
	}
	small := New()
	for o := range b.Open(nil) {
		small.AddIceberg(o.Order, o.Iceberg)
	}
	*b = *small
}

// takeOrder returns the number of an order record for the caller to fill in.
func (b *Book) takeOrder() uint32 {
	n := b.freeOrder
	if n == 0 {
		return b.orders.grow()
	}
	b.freeOrder = b.orders.at(n).next
	return n
}

// takeLevel returns the number of a level record for the caller to fill in.
func (b *Book) takeLevel() uint32 {
	n := b.freeLevel
	if n == 0 {
		return b.levels.grow()
	}
	b.freeLevel = b.levels.at(n).head
	return n
}
