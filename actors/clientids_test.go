package actors

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
)

// named returns a sell order of ann's with a client order id.
func (g *gated) named(id string) *OrderRequest {
	g.t.Helper()
	w := g.sell(coin)
	w.ClientID = must[event.ClientID](g.t)(event.NewClientID(id))
	return w
}

// closedOrder places an order with a client order id, and cancels it.
func (g *gated) closedOrder(id string) (order uint64) {
	g.t.Helper()
	order = g.rest(g.named(id))
	g.ends("the cancel of "+id, g.cancelling(order), accepted)
	return order
}

// The list of an id contains its open order, orders that the store does not have yet, and the
// others.
func TestTheOrdersOfAClientOrderIDAreFoundEverywhere(t *testing.T) {
	keepFewIDs(t)
	onEachStore(t, func(t *testing.T, fresh places) {
		var late atomic.Int64 // so that the id is free again
		g := newGated(t, fresh, func(o *Options) {
			o.ClockError = func() time.Duration { return time.Duration(late.Load()) }
		})
		var want []uint64
		list := func(when string, status uint8, want ...uint64) {
			t.Helper()
			g.nonce++
			q := committed.OrderQuery{Limit: 10, Status: status}
			q.ClientID = g.named("mine").ClientID
			l, err := g.e.Orders(committed.Client{Key: g.key, Nonce: g.nonce}, q)
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			defer l.Free()
			var got []uint64
			for i := range l.Rows {
				got = append(got, l.Rows[i].ID)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, of status %d: orders %v, want %v", when, status, got, want)
			}
		}
		next := func(id uint64) { want = append([]uint64{id}, want...) }
		list("at first", 0)
		closed := func() {
			t.Helper()
			next(g.closedOrder("mine"))
			g.closedOrder(fmt.Sprint("another-", len(want))) // the newest keeps its id
			late.Add(int64(3 * time.Minute))
		}
		closed()
		list("one that closed", 0, want...)
		g.projected()
		list("one in the store", 0, want...)
		closed()
		closed()
		list("two more that closed", 0, want...)
		open := g.rest(g.named("mine"))
		list("none that is done", trading.StatusDone)
		list("the cancelled ones", trading.StatusCancelled, want...)
		list("the open one", trading.StatusActive, open)
		next(open)
		list("one is open", 0, want...)
		g.end()
	})
}
