package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// An item names its operation, and cannot name an order of a later item.
func TestEachItemOfABatchIsAnswered(t *testing.T) {
	h := harness.Traded(t)
	const place, named = `"pair":"BTC_USDT","type":"buy","price":"7","amount":"2"`,
		`"client_order_id":"a"`
	items := [][2]string{
		{`{"do":"Amend",` + named + `,"amount":1}`, `400 {"client_order_id":["Order not found"]}`},
		{`{"do":"cancel",` + named + `}`, `400 {"client_order_id":["Order not found"]}`},
		{`{"do":"Place",` + place + `,` + named + `}`, `201 {"success":true,"type":"buy","date":N,` +
			`"oid":N,"price":7,"amount":2,"amount_filled":0,"amount_original":2,` +
			`"client_order_id":"a","trades":[]}`},
		{`{"do":"place",` + place + `,` + named + `}`,
			`400 {"client_order_id":["Already used by order N"]}`},
		{`{"do":"amend",` + named + `,"amount":1}`, `200 {"success":true,"type":"buy","date":N,` +
			`"oid":N,"price":7,"amount":1,"amount_filled":0,"amount_original":1,` +
			`"client_order_id":"a","trades":[],"priority":"kept"}`},
		{`{"do":"CANCEL",` + named + `}`, `200 {"order":N}`},
		{`{"do":"cancel",` + named + `}`, `400 {"client_order_id":["Order already cancelled"]}`},
		{`{"do":"swim"}`,
			`400 {"do":["Not a valid choice. It must be place, cancel or amend."]}`},
		{`{}`, `400 {"do":["This field is required."]}`},
		{`7`, `400 {"detail":"The body could not be parsed. Malformed at position 0: ` +
			`expected '{'."}`},
	}
	var texts []string
	for _, item := range items {
		texts = append(texts, item[0])
	}
	got := harness.Results(t, h.Batch("bob", texts...))
	if len(got) != len(items) {
		t.Fatalf("%d results", len(got))
	}
	for i, r := range got {
		if line := fmt.Sprint(r.Status, " ", harness.Masked(string(r.Body))); line != items[i][1] {
			t.Errorf("%s:\n%s, want\n%s", items[i][0], line, items[i][1])
		}
	}
}

func TestABatchThatIsBadAsAWholeChangesNothing(t *testing.T) {
	h := harness.Traded(t)
	f := func(text, want string) {
		t.Helper()
		if a := h.BatchText("bob", text); a.Status != 400 || a.Body != want {
			t.Errorf("%.40s: %d %s, want %s", text, a.Status, a.Body, want)
		}
	}
	cancel := `{"do":"cancel","order":1}`
	f("[]", `{"orders":["At least one item is required."]}`)
	f("{}", `{"orders":["A JSON array of objects is required. Malformed at position 0: expected '['."]}`)
	f("["+cancel, `{"orders":["A JSON array of objects is required. Malformed at position 26: expected `+
		`',' or ']'."]}`)
	f("["+strings.Repeat(cancel+",", 50)+cancel+"]",
		`{"orders":["At most 50 items are possible."]}`)
	if a := h.Post("bob", "/api/v1/order-batch/", ""); a.Status != 400 ||
		a.Body != `{"orders":["This field is required."]}` {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if got := harness.Results(t, h.BatchText("bob", "["+strings.Repeat(cancel+",", 49)+cancel+
		"]")); len(got) != 50 {
		t.Errorf("%d results", len(got))
	}
}

func TestABatchTakesOneNonceAndNoneIfAllItemsAreBad(t *testing.T) {
	h := harness.Traded(t)
	send := func(nonce uint64, items string) harness.Answer {
		form := "orders=" + url.QueryEscape(items)
		return h.Do("POST", "/api/v1/order-batch/", harness.FormType, form,
			harness.Signed("bob", nonce, form)...)
	}
	place := `{"do":"place","pair":"BTC_USDT","type":"buy","price":"7","amount":"1"}`
	n := h.NextNonce("bob") + 1000
	h.Nonces["bob"] = n + 1000
	bad := `[{"do":"cancel"},{"do":"place"}]`
	for range 2 {
		if got := harness.Results(t, send(n, bad)); got[0].Status != 400 || got[1].Status != 400 {
			t.Error(got)
		}
	}
	for i, r := range harness.Results(t, send(n, "["+place+","+place+"]")) {
		if r.Status != 201 {
			t.Errorf("item %d: %d %s", i, r.Status, r.Body)
		}
	}
	for range 2 {
		harness.Want(t, "again", send(n, "["+place+","+place+"]"), 401, harness.UsedNonce(n))
		h.Crash()
		h.Start()
	}
}

func TestABatchTakesATokenForEachItemFromItsOwnBucket(t *testing.T) {
	h, clock := harness.Limited(t, func(o *edge.Options) {
		harness.Every(o, edge.Rate{PerSecond: 1000, Burst: 1000})
		o.CommandRate, o.CancelRate = edge.Rate{PerSecond: 1, Burst: 4},
			edge.Rate{PerSecond: 1, Burst: 3}
	})
	place := `{"do":"place","pair":"BTC_USDT","type":"buy","price":"7","amount":"1"}`
	cancel := `{"do":"cancel","order":1}`
	f := func(what string, want int, items ...string) {
		t.Helper()
		if a := h.Batch("bob", items...); a.Status != want {
			t.Errorf("%s: %d %s, want %d", what, a.Status, a.Body, want)
		}
	}
	f("more than a bucket holds", 400, cancel, cancel, cancel, cancel)
	clock.Pass(1e9)
	clock.Pass(10e9)
	f("two cancels", 200, place, cancel, cancel)
	f("one cancel too many", 429, place, cancel, cancel)
	f("its order had its token back", 200, place, place, place)
	f("no token for an order is left", 429, cancel, place)
	f("the cancel had its token back", 200, cancel)
	f("none is left", 429, cancel)
}
