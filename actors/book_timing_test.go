package actors

import (
	"testing"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// BenchmarkBook measures a book's decisions about pairs of orders: one rests, and the other takes
// it, or is the change that is measured. Records are encoded and dropped.
func BenchmarkBook(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkPairs(b, 0) })
	b.Run("plain beside 100,000 stops", func(b *testing.B) { benchmarkPairs(b, 100_000) })
	b.Run("ioc", func(b *testing.B) { benchmarkPairs(b, 0, ioc) })
	b.Run("market", func(b *testing.B) { benchmarkPairs(b, 0, marketOrder) })
	b.Run("post-only", func(b *testing.B) {
		d := newDesk(b, nil)
		rest := d.order(ann, trading.Sell, 1, 100)
		own := d.order(bob, trading.Buy, 1, 99, postOnly)
		cancel := d.command(event.KindCancel, ann)
		for b.Loop() {
			d.again(rest)
			d.cancelOf(cancel, rest)
			d.again(own)
			d.cancelOf(cancel, own)
		}
		d.empty()
	})
	b.Run("amend in place", func(b *testing.B) { benchmarkAmends(b, 100) })
	b.Run("amend to another price", func(b *testing.B) { benchmarkAmends(b, 101) })
}

func benchmarkPairs(b *testing.B, stops int, says ...saying) {
	d := newDesk(b, nil)
	for i := range stops {
		d.b.decide(d.order(cid, trading.Buy, 1, 50, rising(1000)))
		if i%1000 == 0 {
			d.drop()
		}
	}
	d.drop()
	rest, take := d.order(ann, trading.Sell, 1, 100), d.order(bob, trading.Buy, 1, 100, says...)
	b.ReportAllocs()
	for b.Loop() {
		d.again(rest)
		d.again(take)
	}
	d.empty()
}

// benchmarkAmends changes one order again and again, at 100 and another price in turns.
func benchmarkAmends(b *testing.B, other money.Price) {
	d := newDesk(b, nil)
	price := money.Price(100)
	own := d.order(ann, trading.Sell, 1<<40, price)
	d.again(own)
	amend := d.command(event.KindAmended, ann)
	amend.order.id = own.record.Order.ID
	amend.amend = &amendRequest{AmendRequest: AmendRequest{Amount: own.order.amount}}
	b.ReportAllocs()
	for b.Loop() {
		price = 100 + other - price
		amend.amend.Amount, amend.amend.Price = amend.amend.Amount-1, price
		d.again(amend)
	}
	d.empty()
}

// again has the book decide a command that it has decided before.
func (d *desk) again(c *Command) {
	d.b.decide(c)
	d.drop()
}

func (d *desk) cancelOf(cancel, order *Command) {
	cancel.order.id = order.record.Order.ID
	d.again(cancel)
}

// drop forgets what the book has submitted.
func (d *desk) drop() {
	j := d.b.journal
	for b := j.next(); b != nil; b = j.next() {
		j.recycleData(b.data)
		j.recycle(b)
	}
}

// empty makes the desk one whose records were not folded, so that nothing is compared at its end.
func (d *desk) empty() { d.unfolded = true }
