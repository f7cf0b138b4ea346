package stream

import (
	"strings"
	"testing"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
)

// The events of book_ follow the contract, also for orders with instructions.
func TestRemovedOrdersAreSentBeforeTheOrder(t *testing.T) {
	w := writer{pair: "BTC_USDT", event: "book_BTC_USDT"}
	gone := []committed.Gone{{ID: 7, Order: 5, Side: trading.Sell, Price: 100e8, Remaining: 2e8},
		{ID: 8, Order: 6, Side: trading.Sell, Price: 101e8, Remaining: 1e8}}
	got := string(w.orders(nil, []committed.BookUpdate{
		{TimeUs: 1e6, Gone: gone, ID: 9, Side: trading.Buy, Price: 102e8, Remaining: 3e8,
			Trades: []event.Trade{{ID: 4, Maker: 3, Price: 99e8, Amount: 1e8}}},
		{TimeUs: 2e6, Gone: gone[:1], Silent: true}}))
	for _, want := range []string{
		`{"success":true,"date":1,"oid":7,"cancel_order_id":5,"price":100,"type":"sell",` +
			`"amount":2,"pair":"BTC_USDT","cancelled":true}`,
		`{"success":true,"date":1,"oid":8,"cancel_order_id":6,"price":101,"type":"sell",` +
			`"amount":1,"pair":"BTC_USDT","cancelled":true}`,
		`{"success":true,"date":1,"oid":9,"type":"buy","price":102,"amount":3,"trades":[{"tid":4,` +
			`"type":"sell","price":"99","amount":"1","o_id":3}]}`,
		`{"success":true,"date":2,"oid":7,"cancel_order_id":5,"price":100,"type":"sell",` +
			`"amount":2,"pair":"BTC_USDT","cancelled":true}`,
	} {
		before, after, found := strings.Cut(got, want)
		if !found || strings.Contains(before, "success") {
			t.Fatalf("next is not %s, but %q", want, got)
		}
		got = after
	}
	if strings.Contains(got, "success") {
		t.Errorf("%q is sent besides", got)
	}
}
