package matching

import (
	"fmt"

	"exchange/core/money"
	"exchange/core/trading"
)

// An Iceberg is the part of a resting order that the book does not display. When the displayed part
// is used up, the next part joins the queue after all other orders at its price. The zero Iceberg
// hides nothing.
type Iceberg struct {
	Display money.Amount // largest amount of a next part
	Hidden  money.Amount
}

// next takes the next part to display from the hidden one.
func (i *Iceberg) next() money.Amount {
	part := min(i.Display, i.Hidden)
	i.Hidden -= part
	return part
}

// hiddenPart is the hidden part of an order seen by Fillable.
type hiddenPart struct {
	account uint32
	Iceberg
}

// AddIceberg is Add for an order with a hidden part, which its remaining amount includes. With a
// zero Iceberg it is Add.
func (b *Book) AddIceberg(o trading.Order, i Iceberg) {
	if i.Hidden == 0 {
		b.Add(o)
		return
	}
	if i.Display < 1 || i.Hidden < 0 || i.Hidden >= o.Remaining || o.Remaining > o.Amount {
		panic(fmt.Sprintf("BUG: order %d added with %d remaining of %d, %d hidden, %d displayed",
			o.ID, int64(o.Remaining), int64(o.Amount), int64(i.Hidden), int64(i.Display)))
	}
	o.Remaining -= i.Hidden
	b.Add(o)
	if b.icebergs == nil {
		b.icebergs = map[uint32]Iceberg{}
	}
	b.icebergs[b.ids.lookup(o.ID, &b.orders)] = i
}

// Iceberg returns the hidden part of an order, the zero Iceberg when it has none or is not in the
// book.
func (b *Book) Iceberg(id uint64) Iceberg {
	if len(b.icebergs) == 0 {
		return Iceberg{}
	}
	return b.icebergs[b.ids.lookup(id, &b.orders)]
}

// A Displayed order is the book's public view of a resting order, comparable with a later one. The
// zero Displayed is of an order that is not in the book.
type Displayed struct {
	price  money.Price
	amount money.Amount // without the hidden part
	last   bool         // last in the queue at its price
}

// Displayed returns the public view of an order.
func (b *Book) Displayed(id uint64) Displayed {
	n := b.ids.lookup(id, &b.orders)
	if n == 0 {
		return Displayed{}
	}
	o := b.orders.at(n)
	return Displayed{b.levels.at(o.level).price, o.remaining, o.next == 0}
}

// Next returns the order of a side that trades next; false when the side is empty.
func (b *Book) Next(side trading.Side) (trading.Order, bool) {
	l := b.side(side)
	if l.count == 0 {
		return trading.Order{}, false
	}
	return b.order(b.levels.at(l.bestLevel()).head), true
}

// Amend changes an order that keeps its priority, and returns the result; false when it is not in
// the book. amount becomes the requested amount: it is at most the one before, and above the filled
// amount. The hidden part shrinks first. display is the most that its next parts display; 0 keeps
// the present value, and an order without a hidden part has none.
func (b *Book) Amend(id uint64, amount, display money.Amount) (trading.Order, bool) {
	n := b.ids.lookup(id, &b.orders)
	if n == 0 {
		return trading.Order{}, false
	}
	o := b.orders.at(n)
	iceberg := b.icebergs[n]
	filled := o.amount - o.remaining - iceberg.Hidden
	if amount > o.amount || amount <= filled || display < 0 {
		panic(fmt.Sprintf("BUG: order %d amended to amount %d and display %d, with %d filled of %d",
			id, int64(amount), int64(display), int64(filled), int64(o.amount)))
	}
	less := o.amount - amount
	o.amount = amount
	if iceberg.Hidden > 0 {
		hidden := min(less, iceberg.Hidden)
		less -= hidden
		iceberg.Hidden -= hidden
		if display > 0 {
			iceberg.Display = display
		}
		b.hide(n, iceberg)
	}
	o.remaining -= less
	l := b.levels.at(o.level)
	l.amount = l.amount.Sub(less)
	return b.order(n), true
}

// fillHead takes an amount of the order that trades next, at most what it displays, and queues its
// next part at the end of its level.
func (b *Book) fillHead(makers *ladder, taken money.Amount) Fill {
	ln := makers.bestLevel()
	l := b.levels.at(ln)
	n := l.head
	o := b.orders.at(n)
	iceberg := b.icebergs[n]
	o.remaining -= taken
	l.amount = l.amount.Sub(taken)
	f := Fill{Maker: o.id, MakerAccount: o.account, Price: l.price, Amount: taken,
		MakerRemaining: o.remaining + iceberg.Hidden}
	switch {
	case o.remaining > 0:
	case iceberg.Hidden > 0:
		o.remaining = iceberg.next()
		l.amount = l.amount.Add(o.remaining)
		b.hide(n, iceberg)
		b.toTail(l, n)
	default:
		at, _ := b.ids.find(o.id, &b.orders)
		b.ids.remove(at)
		b.unlink(l, n)
		if l.head == 0 {
			b.dropLevel(makers, makers.bestPlace(), ln)
		}
	}
	return f
}

// hide notes the hidden part of an order record.
func (b *Book) hide(n uint32, i Iceberg) {
	if i.Hidden == 0 {
		delete(b.icebergs, n)
	} else {
		b.icebergs[n] = i
	}
}

// uncover removes the hidden part of an order record, and returns its amount. It is not inlined, to
// keep Cancel small.
//
//go:noinline
//go:noinline
func (b *Book) uncover(n uint32) money.Amount {
	hidden := b.icebergs[n].Hidden
	delete(b.icebergs, n)
	return hidden
}

// toTail moves the oldest order of a level to the end of the queue.
func (b *Book) toTail(l *level, n uint32) {
	if l.tail == n {
		return
	}
	o := b.orders.at(n)
	l.head = o.next
	b.orders.at(l.head).prev = 0
	o.prev, o.next = l.tail, 0
	b.orders.at(l.tail).next = n
	l.tail = n
}
