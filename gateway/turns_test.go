package gateway

import (
	"strconv"
	"sync"
	"testing"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/persistence"
)

// A query that examines many rows waits for its turn, even if few pass the filter; other queries do
// not wait.
func TestOnlyLongQueriesOfTheHistoryWaitForTheirTurn(t *testing.T) {
	h := newHarness(t, nil)
	h.toPebble(&persistence.Retention{})
	const orders, keys = 1200, 10
	h.account("alice")
	h.account("bob")
	for name, currency := range map[string]string{"alice": "BTC", "bob": "USDT"} {
		h.deposit(name, "100000", currency, name)
	}
	var placing sync.WaitGroup
	for i := range keys {
		h.key("alice", strconv.Itoa(i), event.AllPermissions)
		placing.Go(func() {
			key := h.engine.Key([]byte("key-" + strconv.Itoa(i)))
			for n := range uint64(orders / keys) {
				c, err := h.engine.Place(key, n+1,
					&actors.OrderRequest{Pair: h.engine.Pairs()[0], Side: trading.Sell, Price: 1e8,
						Amount: 1e8})
				if err != nil {
					t.Error(err)
					return
				}
				c.Free()
			}
		})
	}
	placing.Wait()
	h.post("bob", "/api/v1/order/",
		order("buy", "BTC_USDT", strconv.Itoa(orders), "1")).must(t, 201)
	free := committed.OccupyLongQueries(h.engine.Door) // others are at work
	long := make(chan answer, 1)
	go func() {
		long <- h.do("GET", "/api/v1/orders/own/?status=2", "", "", signed("alice", 1, "")...)
	}()
	spin(func() bool { return committed.LongQueries(h.engine.Door) == 1 })
	for _, key := range []string{"0", "bob"} { // of the same account, and of another
		h.do("GET", "/api/v1/orders/own/?limit=5&status=3", "", "",
			signed(key, 1000, "")...).is(t, 200, "a short query")
	}
	if len(long) != 0 {
		t.Error("the long query did not wait")
	}
	free()
	want(t, "the long query", <-long, 200, "[]")
	if n := committed.LongQueries(h.engine.Door); n != 0 {
		t.Errorf("%d long queries are left", n)
	}
}
