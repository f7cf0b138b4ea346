package api_test

import (
	"strconv"
	"sync"
	"testing"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/prove/harness"
)

// A query that examines many rows waits for its turn, even if few pass the filter; other queries do
// not wait.
func TestOnlyLongQueriesOfTheHistoryWaitForTheirTurn(t *testing.T) {
	h := harness.New(t, nil)
	h.ToPebble(&persistence.Retention{})
	const orders, keys = 1200, 10
	h.Account("alice")
	h.Account("bob")
	for name, currency := range map[string]string{"alice": "BTC", "bob": "USDT"} {
		h.Deposit(name, "100000", currency, name)
	}
	var placing sync.WaitGroup
	for i := range keys {
		h.Key("alice", strconv.Itoa(i), event.AllPermissions)
		placing.Go(func() {
			key := h.Engine.Key([]byte("key-" + strconv.Itoa(i)))
			for n := range uint64(orders / keys) {
				c, err := h.Engine.Place(key, n+1,
					&actors.OrderRequest{Pair: h.Engine.Pairs()[0], Side: trading.Sell, Price: 1e8,
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
	h.Post("bob", "/api/v1/order/",
		harness.Order("buy", "BTC_USDT", strconv.Itoa(orders), "1")).Must(t, 201)
	free := committed.OccupyLongQueries(h.Engine.Door) // others are at work
	long := make(chan harness.Answer, 1)
	go func() {
		long <- h.Do("GET", "/api/v1/orders/own/?status=2", "", "",
			harness.Signed("alice", 1, "")...)
	}()
	harness.Spin(func() bool { return committed.LongQueries(h.Engine.Door) == 1 })
	for _, key := range []string{"0", "bob"} { // of the same account, and of another
		h.Do("GET", "/api/v1/orders/own/?limit=5&status=3", "", "",
			harness.Signed(key, 1000, "")...).Is(t, 200, "a short query")
	}
	if len(long) != 0 {
		t.Error("the long query did not wait")
	}
	free()
	harness.Want(t, "the long query", <-long, 200, "[]")
	if n := committed.LongQueries(h.Engine.Door); n != 0 {
		t.Errorf("%d long queries are left", n)
	}
}
