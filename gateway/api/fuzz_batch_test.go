package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"exchange/gateway/params"
	"exchange/gateway/sign"
	"exchange/prove/harness"
)

// A batchBench has two exchanges that get the same commands: one of them one by one, the other one
// in batches. They answer the same, and are the same afterwards. Order 1 exists from the start: no
// client has the id of an order that another item of its batch places.
type batchBench struct {
	single, batched *harness.Exchange
	paths           map[string]string // of the endpoint for each kind of item
}

func newBatchBench(t testing.TB, observed bool) *batchBench {
	b := &batchBench{single: harness.RuledHarness(t), batched: harness.RuledHarnessOf(t, observed),
		paths: map[string]string{"place": "/api/v1/order/", "cancel": "/api/v1/order-cancel/",
			"amend": "/api/v1/order-amend/"}}
	for _, h := range []*harness.Exchange{b.single, b.batched} {
		harness.Want(t, "order 1",
			h.Post("bob", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "1", "1")), 201,
			`{"success":true,"type":"buy","date":T,"oid":1,"price":1,"amount":1,"amount_filled":0,`+
				`"amount_original":1,"trades":[]}`)
	}
	return b
}

// batchItems are items of bob. The names of orders, a to d, are few, so items concern each other.
var batchItems = [...]string{
	`{"do":"place","pair":"BTC_USDT","type":"buy","amount":1,"price":100,"client_order_id":%q}`,
	`{"do":"place","pair":"BTC_USDT","type":"buy","amount":"2","price":"99.5"}`,
	`{"do":"place","pair":"BTC_USDT","type":"buy","amount":1000,"price":900,"clientOrderId":%q}`,
	`{"do":"place","pair":"BTC_USDT","type":"buy","amount":1,"price":98,"post_only":true}`,
	`{"do":"place","pair":"BTC_USDT","type":"buy","amount":1,"price":200,"time_in_force":"ioc"}`,
	`{"do":"place","pair":"BTC_USDT","type":"buy","amount":1.0001,"price":-1}`,
	`{"do":"place","amount":[%q]}`,
	`{"do":"place","pair":"BTC_USDT","type":"sell","amount":1,"price":100}`,
	`{"do":"amend","client_order_id":%q,"amount":0.5}`,
	`{"do":"amend","clientOrderId":%q,"price":101}`,
	`{"do":"amend","client_order_id":%q,"price":100.01}`,
	`{"do":"amend","client_order_id":%q}`,
	`{"do":"cancel","client_order_id":%q}`,
	`{"do":"cancel","order":1}`,
	`{"do":"cancel","order":0,"client_order_id":%q}`,
	`{"do":"cancel","do":%q}`,
}

// itemOf returns an item that a byte chooses.
func itemOf(chosen byte, round int) string {
	item := batchItems[int(chosen)%len(batchItems)]
	if strings.Contains(item, "%q") {
		item = fmt.Sprintf(item, fmt.Sprintf("%c-%d", 'a'+chosen/64, round))
	}
	return item
}

// isComparable reports whether an item means the same alone as before other items. Triggers and
// expiries happen by themselves, and the ids of two pairs come in any order.
func (b *batchBench) isComparable(p *params.Set) bool {
	for _, name := range []string{"trigger_price", "triggerPrice", "stopPrice", "stopLossPrice",
		"takeProfitPrice", "oco_trigger_price", "expire_time"} {
		if _, given := p.Get(name); given {
			return false
		}
	}
	pair, ok := p.Get("pair")
	return !ok || string(pair.Value) == "BTC_USDT" || b.single.Engine.Pair(pair.Value) == nil
}

// alone sends an item to its endpoint, and returns the result that a batch should show. ok is false
// if the item names no endpoint.
func (b *batchBench) alone(item string) (result string, ok bool) {
	var p params.Set
	path := ""
	if err := p.ParseJSON([]byte(item)); err != nil {
		path = b.paths["cancel"] // each endpoint refuses such a body alike
	} else if do, given := p.Get("do"); given && do.Kind == params.String {
		path = b.paths[string(do.Value)]
	}
	if path == "" {
		return "", false
	}
	h := b.single
	a := h.Do("POST", path, harness.JsonType, item, harness.Signed("bob", h.NextNonce("bob"),
		string(sign.AppendMessage(nil, nil, &p, false)))...)
	return fmt.Sprintf(`{"status":%d,"body":%s}`, a.Status, a.Body), true
}

// try sends items to both exchanges.
func (b *batchBench) try(t testing.TB, items []string) {
	t.Helper()
	defer func(of testing.TB) { b.single.T, b.batched.T = of, of }(b.single.T)
	b.single.T, b.batched.T = t, t
	wants := make([]string, 0, len(items))
	for _, item := range items {
		want, ok := b.alone(item)
		if !ok {
			want = `{"status":400,"body":{"do":`
		}
		wants = append(wants, asCompared(want))
	}
	h := b.batched
	form := "orders=" + strings.ReplaceAll(url.QueryEscape("["+strings.Join(items, ",")+"]"), "+",
		"%20")
	a := h.Do("POST", "/api/v1/order-batch/", harness.FormType, form,
		harness.Signed("bob", h.NextNonce("bob"), form)...)
	body := asCompared(a.Body)
	rest, ok := strings.CutPrefix(body, `{"results":[`)
	for i, want := range wants {
		if ok = ok && strings.HasPrefix(rest, want); !ok {
			t.Fatalf("%s\nis answered with %d %s\nitem %d should be %s", items, a.Status, body, i,
				want)
		}
		if rest = rest[len(want):]; strings.HasSuffix(want, `{"do":`) { // its text is the batch's
			_, rest, ok = strings.Cut(rest, "}}")
		}
		rest = strings.TrimPrefix(rest, ",")
	}
	if a.Status != 200 || rest != "]}" {
		t.Fatalf("%s\nis answered with %d %s", items, a.Status, body)
	}
	b.compare(t, items)
}

// compare compares bob's balances and orders on both exchanges, and cancels his orders.
func (b *batchBench) compare(t testing.TB, items []string) {
	t.Helper()
	for _, path := range []string{"/api/v1/wallets/", "/api/v1/orders/own/?limit=100"} {
		one := harness.Dates.ReplaceAllString(b.single.Get("bob", path).Body, `"$1":T`)
		all := harness.Dates.ReplaceAllString(b.batched.Get("bob", path).Body, `"$1":T`)
		if one != all {
			t.Fatalf("%s\nalone leaves   %s\na batch leaves %s", items, one, all)
		}
	}
	for _, h := range []*harness.Exchange{b.single, b.batched} {
		h.Post("bob", "/api/v1/order-cancel-all/", "all=1").Must(t, 200)
	}
}

func TestRandomBatchesAreAnsweredAsTheirItemsAlone(t *testing.T) {
	b := newBatchBench(t, false)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, seed))
	for round := range 60 {
		var items []string
		for range 1 + r.IntN(20) {
			items = append(items, itemOf(byte(r.IntN(256)), round))
		}
		b.try(t, items)
	}
	for _, h := range []*harness.Exchange{b.single, b.batched} {
		if err := harness.AtRest(h.Engine); err != nil {
			t.Error(err)
		}
	}
}

// Any items of a batch are answered as alone, and do the same: those chosen by bytes, after one of
// any text.
func FuzzBatches(f *testing.F) {
	benches := harness.BenchesOf(f,
		func(observed bool) *batchBench { return newBatchBench(f, observed) })
	round, differ := 0, false
	f.Add([]byte{0, 64, 8, 12, 12, 9}, `{"do":"place","order_type":"market"}`)
	f.Add([]byte{0, 0, 2, 4, 5, 6, 7, 10, 11, 13, 14, 15}, `7`)
	f.Add([]byte{1, 3, 72, 76, 128, 136, 140}, `{"do":"amend","order":1,"price":"1"}`)
	f.Add([]byte{}, `{"do":"batch","orders":[]}`)
	f.Add([]byte{12}, `{"do":"cancel","client_order_id":"\u0061","\u006frder":1e0}`)
	f.Add([]byte{}, `{"do":"place","pair":"BTC_USDT","type":"buy","amount":1,"price":1,"price":2}`)
	f.Fuzz(func(t *testing.T, chosen []byte, text string) {
		round++
		var items []string
		var p params.Set
		if isElement(text) && (p.ParseJSON([]byte(text)) != nil || benches[0].isComparable(&p)) {
			items = append(items, text)
		}
		for _, c := range chosen[:min(len(chosen), 20)] {
			items = append(items, itemOf(c, round))
		}
		for i, bench := range benches {
			if differ { // they may since the first fault, so the next tries are independent
				bench = newBatchBench(t, i > 0)
			}
			if len(items) > 0 {
				defer func() { differ = differ || t.Failed() }()
				bench.try(t, items)
			}
		}
	})
}

// shortfalls match the missing amounts. The reserves of earlier items may still count there.
var shortfalls = regexp.MustCompile(`Out of balance -[0-9.]+`)

// asCompared returns a body without the parts that may differ.
func asCompared(body string) string {
	return shortfalls.ReplaceAllString(harness.Dates.ReplaceAllString(body, `"$1":T`),
		"Out of balance -N")
}

// isElement reports whether a text is one value of JSON, as it stands in an array.
func isElement(text string) bool {
	n := 0
	err := params.Elements([]byte("["+text+"]"), func(e []byte) bool {
		if string(e) == text {
			n++
		}
		return true
	})
	return err == nil && n == 1 && len(text) < 4000
}
