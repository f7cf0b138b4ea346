package gateway

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
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

func TestABatchIsAnsweredAsItsItemsWouldBe(t *testing.T) {
	h := traded(t)
	a := h.batch("bob",
		`{"do":"place","pair":"BTC_USDT","type":"buy","price":"7","amount":"2","client_order_id":"a"}`,
		`{"do":"place","pair":"BTC_USDT","type":"buy","price":8,"amount":"x"}`,
		`{"do":"Amend","client_order_id":"a","amount":1}`,
		`{"do":"cancel","client_order_id":"a"}`,
		`{"do":"CANCEL","client_order_id":"a"}`,
		`{"do":"cancel","order":99999}`,
		`{"do":"place","pair":"BTC_USDT","type":"buy","price":"7","amount":"2","client_order_id":"a"}`,
		`{"do":"place","pair":"BTC_USDT","type":"buy","price":"10000000","amount":"1000000"}`,
		`{"do":"swim"}`, `{}`, `7`, `{"do":"cancel"}`)
	want := []string{
		`201 {"success":true,"type":"buy","date":D,"oid":N,"price":7,"amount":2,"amount_filled":0,` +
			`"amount_original":2,"client_order_id":"a","trades":[]}`,
		`400 {"amount":["A valid number is required."]}`,
		`200 {"success":true,"type":"buy","date":D,"oid":N,"price":7,"amount":1,"amount_filled":0,` +
			`"amount_original":1,"client_order_id":"a","trades":[],"priority":"kept"}`,
		`200 {"order":N}`,
		`400 {"client_order_id":["Order already cancelled"]}`,
		`400 {"order":["Order not found"]}`,
		`400 {"client_order_id":["Already used by order N"]}`,
		`400 {"date":D,"error":"Out of balance -N USDT"}`,
		`400 {"do":["Not a valid choice. It must be place, cancel or amend."]}`,
		`400 {"do":["This field is required."]}`,
		`400 {"detail":"The body could not be parsed. Malformed at position 0: expected '{'."}`,
		`400 {"order":["This field is required."]}`,
	}
	got := results(t, a)
	if len(got) != len(want) {
		t.Fatalf("%d results: %s", len(got), a.body)
	}
	for i, r := range got {
		if line := fmt.Sprint(r.Status, " ", masked(string(r.Body))); line != want[i] {
			t.Errorf("item %d:\n%s, want\n%s", i, line, want[i])
		}
	}
}

// masked replaces what differs from run to run.
func masked(body string) string {
	var b strings.Builder
	for rest := body; rest != ""; {
		at := -1
		word := ""
		for _, w := range []string{`"date":`, `"oid":`, `"order":`, "order ", "balance -"} {
			if i := strings.Index(rest, w); i >= 0 && (at < 0 || i < at) &&
				i+len(w) < len(rest) && rest[i+len(w)] >= '0' && rest[i+len(w)] <= '9' {
				at, word = i, w
			}
		}
		if at < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:at+len(word)])
		rest = strings.TrimLeft(rest[at+len(word):], "0123456789.")
		if word == `"date":` {
			b.WriteString("D")
		} else {
			b.WriteString("N")
		}
	}
	return b.String()
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
	want := fmt.Sprintf(`{"detail":"Wrong Nonce","code":"nonce","last":%d}`, n)
	if a := send(n, "["+place+","+place+"]"); a.status != 401 || a.body != want {
		t.Errorf("%d %s", a.status, a.body)
	}
	h.crash()
	h.start()
	if a := send(n, "["+place+"]"); a.status != 401 || a.body != want {
		t.Errorf("after a crash: %d %s", a.status, a.body)
	}
}

func TestABatchTakesATokenForEachItemFromItsOwnBucket(t *testing.T) {
	h, clock := limited(t, func(o *Options) {
		every(o, Rate{PerSecond: 1000, Burst: 1000})
		o.CommandRate, o.CancelRate = Rate{PerSecond: 1, Burst: 4}, Rate{PerSecond: 1, Burst: 3}
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
