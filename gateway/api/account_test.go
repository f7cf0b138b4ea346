package api

import (
	"testing"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/persistence"
)

func TestAListOfOrdersAsksTheStateForNoMoreThanItShows(t *testing.T) {
	id, err := event.NewClientID([]byte("mine"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what          string
		filter        orderFilter
		skip          int
		kind          committed.ReadKind
		offset, limit int
		left          int // rows that the list itself skips
	}{
		{what: "all", kind: committed.ReadOrders, limit: 10},
		{what: "active", filter: orderFilter{status: persistence.StatusActive, side: trading.Buy},
			skip: 100_000, kind: committed.ReadOrders, offset: 100_000, limit: 10},
		{what: "done", filter: orderFilter{status: persistence.StatusDone}, skip: 7,
			kind: committed.ReadHistory, limit: 10, left: 7},
		{what: "cancelled", filter: orderFilter{status: persistence.StatusCancelled},
			kind: committed.ReadHistory, limit: 10},
		{what: "all after many", skip: 100_000, kind: committed.ReadOpenIDs, limit: 100_000,
			left: 100_000},
		{what: "one", filter: orderFilter{id: id}, skip: 1, kind: committed.ReadOrders, limit: 10,
			left: 1},
	} {
		l := orderList{skip: c.skip, left: 10}
		q := l.question(&c.filter)
		if q.Kind != c.kind || q.Offset != c.offset || q.Limit != c.limit ||
			q.Side != c.filter.side || l.skip != c.left {
			t.Errorf("%s: kind %d, offset %d, limit %d, %d left to skip", c.what, q.Kind, q.Offset,
				q.Limit, l.skip)
		}
		q.Free()
	}
}
