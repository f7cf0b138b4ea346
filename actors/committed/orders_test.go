package committed

import (
	"testing"

	"exchange/core/event"
	"exchange/core/trading"
)

func TestOrderPageAsksOnlyForItsRows(t *testing.T) {
	id, err := event.NewClientID([]byte("mine"))
	if err != nil {
		t.Fatal(err)
	}
	open := func(offset int, side trading.Side) func(Question) bool {
		return func(q Question) bool {
			o, ok := q.(*OpenOrders)
			return ok && o.offset == offset && o.Limit == 10 && o.Side == side
		}
	}
	written := func(q Question) bool { _, ok := q.(*Barrier); return ok }
	for what, c := range map[string]struct {
		query OrderQuery
		asks  func(Question) bool
		left  int // rows that the list itself skips
	}{
		"all": {asks: open(0, 0)},
		"active": {query: OrderQuery{Status: trading.StatusActive, Side: trading.Buy,
			Offset: 100_000}, asks: open(100_000, trading.Buy)},
		"done": {query: OrderQuery{Status: trading.StatusDone, Offset: 7}, asks: written,
			left: 7},
		"cancelled": {query: OrderQuery{Status: trading.StatusCancelled}, asks: written},
		"all after many": {query: OrderQuery{Offset: 100_000}, left: 100_000,
			asks: func(q Question) bool {
				ids, ok := q.(*openIDs)
				return ok && ids.limit == 100_000
			}},
		"one": {query: OrderQuery{ClientID: id, Offset: 1}, left: 1, asks: func(q Question) bool {
			o, ok := q.(*OpenOrders)
			return ok && o.ClientID == id && o.offset == 0
		}},
	} {
		c.query.Limit = 10
		l := orderPage{query: c.query, skip: c.query.Offset}
		if q := l.question(); !c.asks(q) || l.skip != c.left {
			t.Errorf("%s: %T %+v, %d left to skip", what, q, q, l.skip)
		}
	}
}
