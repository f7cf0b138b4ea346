package actors

import (
	"exchange/core/event"
)

// expire removes the orders that are due at the book's time, up to a turn's limit. It reports
// whether none are left.
func (b *book) expire() bool {
	for n := 0; n < expiredAtOnce && b.lastTimeUs >= b.expiryUs; n++ {
		b.markBusy()
		u := b.newOwnEntry(event.KindExpired)
		r := &u.record
		r.Expired = r.Expired[:0]
		for len(r.Expired) < event.MaxExpired && b.lastTimeUs >= b.expiryUs {
			_, id, _ := b.expirySchedule.First()
			o := b.close(id)
			r.Expired = append(r.Expired, event.Expired{ID: b.ids.order.Add(1), Order: o.ID,
				Account: o.Account, Side: o.Side, Price: o.Price, Open: o.Remaining})
		}
		b.submit(u)
	}
	return b.lastTimeUs < b.expiryUs
}
