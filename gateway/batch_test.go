package gateway

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"exchange/gateway/edge"
)

// batch sends a batch as a form, and returns its results one on a line.
func (h *harness) batch(account string, items ...string) answer {
	h.t.Helper()
	return h.batchText(account, "["+strings.Join(items, ",")+"]")
}

func (h *harness) batchText(account, text string) answer {
	h.t.Helper()
	form := "orders=" + strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	return h.do("POST", "/api/v1/order-batch/", formType, form,
		signed(account, h.nextNonce(account), form)...)
}

// results are the statuses and bodies of a batch.
func results(t testing.TB, a answer) (list []struct {
	Status int
	Body   json.RawMessage
}) {
	t.Helper()
	var all struct {
		Results []struct {
			Status int
			Body   json.RawMessage
		}
	}
	if a.status != 200 || json.Unmarshal([]byte(a.body), &all) != nil {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return all.Results
}

// volatile matches the texts that differ from run to run.
var volatile = regexp.MustCompile(`("date":|"oid":|"order":|order |balance -)[0-9][0-9.]*`)

func masked(body string) string { return volatile.ReplaceAllString(body, "${1}N") }

// An item names its operation, and cannot name an order of a later item.
func TestEachItemOfABatchIsAnswered(t *testing.T) {
	h := traded(t)
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
	got := results(t, h.batch("bob", texts...))
	if len(got) != len(items) {
		t.Fatalf("%d results", len(got))
	}
	for i, r := range got {
		if line := fmt.Sprint(r.Status, " ", masked(string(r.Body))); line != items[i][1] {
			t.Errorf("%s:\n%s, want\n%s", items[i][0], line, items[i][1])
		}
	}
}

func TestABatchThatIsBadAsAWholeChangesNothing(t *testing.T) {
	h := traded(t)
	f := func(text, want string) {
		t.Helper()
		if a := h.batchText("bob", text); a.status != 400 || a.body != want {
			t.Errorf("%.40s: %d %s, want %s", text, a.status, a.body, want)
		}
	}
	cancel := `{"do":"cancel","order":1}`
	f("[]", `{"orders":["At least one item is required."]}`)
	f("{}", `{"orders":["A JSON array of objects is required. Malformed at position 0: expected '['."]}`)
	f("["+cancel, `{"orders":["A JSON array of objects is required. Malformed at position 26: expected `+
		`',' or ']'."]}`)
	f("["+strings.Repeat(cancel+",", 50)+cancel+"]",
		`{"orders":["At most 50 items are possible."]}`)
	if a := h.post("bob", "/api/v1/order-batch/", ""); a.status != 400 ||
		a.body != `{"orders":["This field is required."]}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := results(t, h.batchText("bob", "["+strings.Repeat(cancel+",", 49)+cancel+
		"]")); len(got) != 50 {
		t.Errorf("%d results", len(got))
	}
}

func TestABatchTakesOneNonceAndNoneIfAllItemsAreBad(t *testing.T) {
	h := traded(t)
	send := func(nonce uint64, items string) answer {
		form := "orders=" + url.QueryEscape(items)
		return h.do("POST", "/api/v1/order-batch/", formType, form,
			signed("bob", nonce, form)...)
	}
	place := `{"do":"place","pair":"BTC_USDT","type":"buy","price":"7","amount":"1"}`
	n := h.nextNonce("bob") + 1000
	h.nonces["bob"] = n + 1000
	bad := `[{"do":"cancel"},{"do":"place"}]`
	for range 2 {
		if got := results(t, send(n, bad)); got[0].Status != 400 || got[1].Status != 400 {
			t.Error(got)
		}
	}
	for i, r := range results(t, send(n, "["+place+","+place+"]")) {
		if r.Status != 201 {
			t.Errorf("item %d: %d %s", i, r.Status, r.Body)
		}
	}
	for range 2 {
		want(t, "again", send(n, "["+place+","+place+"]"), 401, usedNonce(n))
		h.crash()
		h.start()
	}
}

func TestABatchTakesATokenForEachItemFromItsOwnBucket(t *testing.T) {
	h, clock := limited(t, func(o *edge.Options) {
		every(o, edge.Rate{PerSecond: 1000, Burst: 1000})
		o.CommandRate, o.CancelRate = edge.Rate{PerSecond: 1, Burst: 4},
			edge.Rate{PerSecond: 1, Burst: 3}
	})
	place := `{"do":"place","pair":"BTC_USDT","type":"buy","price":"7","amount":"1"}`
	cancel := `{"do":"cancel","order":1}`
	f := func(what string, want int, items ...string) {
		t.Helper()
		if a := h.batch("bob", items...); a.status != want {
			t.Errorf("%s: %d %s, want %d", what, a.status, a.body, want)
		}
	}
	f("more than a bucket holds", 400, cancel, cancel, cancel, cancel)
	clock.pass(1e9)
	clock.pass(10e9)
	f("two cancels", 200, place, cancel, cancel)
	f("one cancel too many", 429, place, cancel, cancel)
	f("its order had its token back", 200, place, place, place)
	f("no token for an order is left", 429, cancel, place)
	f("the cancel had its token back", 200, cancel)
	f("none is left", 429, cancel)
}
