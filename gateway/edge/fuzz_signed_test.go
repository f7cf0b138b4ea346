package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
	"exchange/gateway/params"
	"exchange/gateway/sign"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/prove/harness"
)

// A bench answers each fuzzed input with a fresh engine in memory behind one gateway. So the
// outcome of an input does not depend on earlier inputs.
type bench struct{ *harness.Documented }

func newBench(t testing.TB,
	tune ...func(*edge.Options)) bench {
	return newBenchOf(t, false, tune...)
}

// shortTick is that of a bench's node: each input begins with another one.
const shortTick = 10 * time.Millisecond

// newBenchOf is newBench with clients that may use an observer.
func newBenchOf(t testing.TB, observed bool, tune ...func(*edge.Options)) bench {
	h := harness.New(t, nil)
	h.Stop()
	// with limits that no input meets, because the answers would show them
	h.Tune = func(o *edge.Options) {
		harness.Every(o, harness.PerSecond(1_000_000, 1_000_000))
		for _, f := range tune {
			f(o)
		}
	}
	h.Open = func() persistence.Store {
		return memory.Open(memory.NewDisk(), persistence.Retention{})
	}
	if observed {
		h.Observe(shortTick)
		h.Serve()
	} else {
		h.Start()
	}
	return bench{harness.NewDocumentedOf(t, h)}
}

// fresh replaces the engine of the gateway. The new one has the accounts alice, with an e-mail
// address, and bob, with 1000 of BTC and of USDT each. Order 1, of alice, rests, and withdrawal 1,
// of alice, is new.
func (b bench) fresh(t testing.TB) {
	t.Helper()
	b.T, b.Doc.T = t, t
	b.end(t)
	if b.Observed != nil {
		b.Observe(shortTick)
		a := b.Observed.Follower
		b.Gateway.SetAPI(nil, api.New(a.Public, a.Commands()))
	} else {
		b.Store = b.Open()
		engine := harness.Must(actors.Start(context.Background(), b.Options()))
		b.Engine = engine
		b.Gateway.SetAPI(engine, api.New(engine.Public, engine).Lead(engine.Ready))
	}
	clear(b.Nonces)
	b.AccountAt("alice", "alice@example.com")
	b.Account("bob")
	for _, name := range []string{"alice", "bob"} {
		for _, currency := range []string{"BTC", "USDT"} {
			b.Deposit(name, "1000", currency, name+currency)
		}
	}
	for _, x := range [][2]string{{"/api/v1/order", harness.Order("sell", "BTC_USDT", "1", "100")},
		{"/api/v1/withdraw", "address=there&amount=1&currency=BTC"}} {
		b.Post("alice", x[0], x[1]).Must(t, 201, x[0])
	}
}

// end stops the engine in use.
func (b bench) end(t testing.TB) {
	t.Helper()
	b.Halt()
	harness.Worked(t, b.Store.Close())
}

// totals are the money of alice and bob together, by currency.
func (b bench) totals() map[uint16]money.Balance {
	b.T.Helper()
	sums := map[uint16]money.Balance{}
	for account := range uint32(2) {
		r := &committed.Wallet{Account: account + 1}
		harness.Worked(b.T, b.Engine.Ask(r, nil, 0))
		for _, held := range r.Holdings {
			sums[held.Currency] = sums[held.Currency].Add(held.Balance)
		}
	}
	return sums
}

// A byte that has no place in a form or in JSON separates the steps of an input.
const (
	stepSeparator = "\x1e"
	maxSteps      = 8
)

// Bits of the byte that selects how a step is sent.
const (
	byBob      = 1 << iota
	asJSON     // a body, instead of a form
	keyAlone   // signs a GET
	howChoices // all of them lie below
)

// parseAs reads the parameters of a request as the gateway should.
func parseAs(set *params.Set, get bool, how byte, text string) error {
	switch {
	case get:
		return set.ParseQuery([]byte(text))
	case text == "":
		return nil
	case how&asJSON != 0:
		return set.ParseJSON([]byte(text))
	}
	return set.ParseForm([]byte(text))
}

// signedMessage is the signed text of parameters, made by other code than the gateway's own.
func signedMessage(key string, set *params.Set) string {
	var parts []string
	for _, p := range set.All() {
		parts = append(parts, strings.ReplaceAll(
			url.QueryEscape(string(p.Name))+"="+url.QueryEscape(string(p.Value)), "+", "%20"))
	}
	return key + strings.Join(parts, "&")
}

// inAddress escapes bytes that cannot stand in the address of a request, or would end its query.
func inAddress(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c == '#' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

var printable = regexp.MustCompile(`^[!-~]{1,256}$`)

// signed sends a private request whose parameters are signed, and checks its answer against the
// document.
func (b bench) signed(path string, get bool, how byte, text string) {
	b.T.Helper()
	for id := range uint64(3) { // values that an input cannot know
		if of := fmt.Sprint("code-of-", id); strings.Contains(text, of) {
			text = strings.ReplaceAll(text, of, b.Code(id))
		}
	}
	account, method, address, kind, body := "alice", "POST", path, harness.FormMedia, text
	if how&byBob != 0 {
		account = "bob"
	}
	if how&asJSON != 0 {
		kind = harness.JsonMedia
	}
	if get {
		method, kind, body = "GET", "", ""
		if pk, query, ok := strings.Cut(text, "?"); strings.Contains(path, "{pk}") && ok {
			text, address = query, strings.Replace(path, "{pk}", url.PathEscape(pk), 1)
		}
		text = inAddress(text)
		address += "?" + text
	}
	var set params.Set
	unread := parseAs(&set, get, how, text)
	message := signedMessage("key-"+account, &set)
	if unread != nil || get && how&keyAlone != 0 {
		message = "key-" + account
	}
	mac := sign.New([]byte("secret-"+account)).Sign(nil, []byte(message))
	if err := harness.AtRest(b.Engine); err != nil { // a stop order may trade after the last answer
		b.T.Fatal(err)
	}
	before := harness.Holdings(b.T, b.Exchange)
	a := b.Do(method, address, kind, body, "X-KEY", "key-"+account, "X-SIGN", string(mac),
		"X-NONCE", strconv.FormatUint(b.NextNonce(account), 10))
	what := fmt.Sprintf("%s %s %q of %s", method, address, body, account)
	switch {
	case a.Status >= 500 && a.Status != 503, a.Status == 401, a.Status == 403:
		b.T.Fatalf("%s is answered with %d %s", what, a.Status, a.Body)
	case unread != nil && a.Status < 400:
		b.T.Fatalf("%s cannot be read, %v, and is answered with %d %s", what, unread, a.Status,
			a.Body)
	}
	b.Fits(method, address, a, a.Status)
	var made struct{ Address string }
	if asks := strings.HasPrefix(path, "/api/v1/withdraw") && a.Status == 201; asks &&
		(json.Unmarshal([]byte(a.Body), &made) != nil || !printable.MatchString(made.Address)) {
		b.T.Fatalf("%s is answered with %s: a reader may see another address", what, a.Body)
	}
	if after := harness.Holdings(b.T, b.Exchange); (get || a.Status >= 400) && after != before {
		b.T.Fatalf("%s is answered with %d %s, and changed what there is from %s to %s", what,
			a.Status, a.Body, before, after)
	}
}

// A privateRoute is a path that needs a signature.
type privateRoute struct {
	path string
	get  bool
}

// Paths of the inputs.
const (
	place, amend, cancel = "/api/v1/order", "/api/v1/order-amend", "/api/v1/order-cancel"
	all1, cancelAfter    = "/api/v1/order-cancel-all", "/api/v1/order-cancel-after"
	withdrawal, confirm  = "/api/v1/withdraw", "/api/v1/withdraw-confirm"
)

// loneRequests are requests of each route alone, with all its parameters.
func loneRequests() map[string][]string {
	return map[string][]string{
		place: {harness.Order("buy", "BTC_USDT", "1", "100"),
			harness.Order("buy", "BTC_USDT", "1", "100") + "&time_in_force=ioc",
			"amount=1&orderType=market&pair=BTC_USDT&type=buy",
			"order_type=market&pair=BTC_USDT&price=200&quote_amount=150.5&type=buy",
			harness.Order("buy", "BTC_USDT", "2", "100") + "&postOnly=slide",
			harness.Order("buy", "BTC_USDT", "2", "100") + "&timeInForce=FOK",
			harness.Order("sell", "BTC_USDT", "2", "90") + "&stopPrice=95&self_trade=cancel_both",
			harness.Order("sell", "BTC_USDT", "2", "90") +
				"&oco_trigger_price=80&display_amount=0.5",
			harness.Order("buy", "BTC_USDT", "2", "90") + "&time_in_force=gtd&expire_time=1e10",
			`{"amount":1,"pair":"BTC_USDT","type":"sell","order_type":"market","takeProfitPrice":99}`,
			"amount=0.00001&client_order_id=a-1&pair=BTC_USDT&price=99999999999.99&type=sell",
			"amount=1e-9&pair=&price=-1&type=x", "",
			"amount=1&amount=2", "%zz",
			`{"amount":1.50,"pair":"BTC_USDT","price":"1e2","type":"buy","client_order_id":"\u0061"}`,
			`{"amount":null,"pair":[],"price":{},"type":true}`,
			`{"amount":1,"amount":2}`, `{"a":`,
			"price=92233720368.54775807&amount=92233720368.54775807&pair=BTC_USDT&type=buy"},
		cancel: {"order=1", `{"order":1}`, `{"order":"1"}`, "order=0",
			"order=99999999999999999999", `{"order":1e0}`},
		all1: {"", "all=1", "pair=BTC_USDT", `{"pair":"ETH_USDT"}`, "pair=x"},
		withdrawal: {"address=bc1q&amount=1&currency=BTC",
			`{"address":"\n","amount":0.00000001,"currency":"USDT"}`,
			"address=%ff&amount=5000&currency=EUR", "address=%C3%A9+x&amount=1e3&currency=BTC",
			"address=a+b&amount=1&currency=BTC", "address=a%E2%80%AEb&amount=1&currency=BTC",
			`{"address":"a\u200bb","amount":1,"currency":"BTC"}`,
			"address=%21~&amount=1&currency=BTC"},
		confirm: {"code=code-of-1&withdraw=1", `{"withdraw":1,"code":"0"}`,
			"code=&withdraw=-1"},
		"/api/v1/order-test": {harness.Order("buy", "BTC_USDT", "1", "100"),
			"order_type=market&pair=BTC_USDT&quote_amount=50&type=buy", "type=buy"},
		"/api/v1/order-batch": {`{"orders":[{"do":"place","pair":"BTC_USDT","type":"buy",` +
			`"price":"1e2","amount":1},{"do":"cancel","order":1},{"do":"amend","order":"2",` +
			`"price":99.5}]}`, `{"orders":"[{},7,null,[]]"}`, "orders=%5B%7B%22do%22%3A1%7D%5D",
			"orders=%5B", `{"orders":[{"do":"cancel","do":"place"}]}`, `{"orders":{}}`},
		amend: {"order=1&price=101", `{"order":1,"amount":0.5,"post_only":true}`, "order=1",
			"clientOrderId=a&expire_time=1e10&post_only=slide", "order=1&trigger_price=5"},
		cancelAfter: {"", "x=1"},
		"POST " + cancelAfter: {"timeout=60", `{"timeout":0}`,
			"pair=BTC_USDT&timeout=5&type=sell&client_order_id_prefix=a", "timeout=4"},
		"/api/v1/trading-settings":      {""},
		"POST /api/v1/trading-settings": {"self_trade=cancel_newest", `{"self_trade":null}`, ""},
		"/api/v1/withdraw-cancel":       {"withdraw=1", `{"withdraw":"1"}`, "withdraw=2"},
		"/api/v1/wallets":               {"", "currency_id=BTC", "currency_id=EUR"},
		"/api/v1/orders/own": {
			"status=1&type=sell&pair=BTC_USDT&client_order_id=%61&before=9&limit=5&offset=1",
			"status=4", "limit=0", "limit=2001&offset=100001", "a=1&a=2", "type=+&pair=%"},
		"/api/v1/order/{pk}": {"1?", "01?x=1", "%31?", "x?", "99999999999999999999?"},
		"/api/v1/exchanges/own": {
			"pair=BTC_USDT&limit=5&offset=0&my_side=buy&type=sell&ordering=id", "ordering=x",
			"before=0"},
		"/api/v1/deposits": {"", "currency_id=BTC&before=3&offset=1&limit=1000", "limit=x"},
		"/api/v1/withdraws": {"", "status=10&currency_id=BTC&before=5&offset=0&limit=1",
			"status=11", "status=50"},
		"/api/v1/fees": {"", "x=y"},
	}
}

// privateRoutes are the private operations in the order of their paths.
func privateRoutes(h *harness.Exchange) (routes []privateRoute) {
	all := h.Gateway.Public().Table()
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if list := all[path]; list[0].Private {
			routes = append(routes, privateRoute{path, list[0].Method == "GET"})
			if len(list) > 1 {
				routes = append(routes, privateRoute{path, false})
			}
		}
	}
	return routes
}

// routeOf returns the index of a path among the routes. For a POST on a path that is also a GET,
// POST precedes the path.
func routeOf(f *testing.F, routes []privateRoute, path string) int {
	f.Helper()
	name, post := strings.CutPrefix(path, "POST ")
	i := slices.IndexFunc(routes, func(r privateRoute) bool {
		return r.path == name && (!post || !r.get)
	})
	if i < 0 {
		f.Fatalf("%s is no private route", path)
	}
	return i
}

// For every request with a valid signature, the answer fits the document. A refused client keeps
// its money, and no money is made or lost. In the end both sides of the engine agree.
func FuzzSignedRequests(f *testing.F) {
	benches := harness.BenchesOf(f, func(observed bool) bench { return newBenchOf(f, observed) })
	routes := privateRoutes(benches[0].Exchange)
	step := func(path string, how byte, text string) string {
		return string([]byte{byte(routeOf(f, routes, path)), how}) + text
	}
	seed := func(steps ...string) { f.Add(strings.Join(steps, stepSeparator)) }
	for _, path := range slices.Sorted(maps.Keys(loneRequests())) {
		for i, text := range loneRequests()[path] {
			how := byte(0)
			if strings.HasPrefix(text, "{") {
				how = asJSON
			} else if i%2 == 1 {
				how = keyAlone
			}
			seed(step(path, how, text))
		}
	}
	// Consequences of one request for the next.
	seed(step(place, byBob, harness.Order("buy", "BTC_USDT", "3", "100")),
		step("/api/v1/exchanges/own", byBob, "my_side=buy"),
		step("/api/v1/order/{pk}", byBob, "2?"), step(cancel, byBob, "order=2"),
		step(cancel, 0, "order=2"), step("/api/v1/orders/own", byBob, "status=3"))
	seed(step(place, 0, "amount=1&client_order_id=x&pair=BTC_USDT&price=90&type=buy"),
		step(place, asJSON,
			`{"amount":1,"client_order_id":"x","pair":"BTC_USDT","price":90,"type":"buy"}`),
		step("/api/v1/orders/own", 0, "client_order_id=x"), step(all1, 0, "pair=BTC_USDT"),
		step(place, 0, harness.Order("buy", "BTC_USDT", "1", "100")))
	seed(step(withdrawal, 0, "address=a&amount=999&currency=BTC"),
		step(place, 0, harness.Order("sell", "BTC_USDT", "1", "1")),
		step(confirm, 0, "code=code-of-2&withdraw=2"),
		step("/api/v1/withdraw-cancel", asJSON, `{"withdraw":2}`),
		step("/api/v1/withdraws", 0, "status=50"),
		step(withdrawal, byBob, "address=a&amount=1&currency=BTC"))
	seed(step(place, 0, harness.Order("buy", "BTC_USDT", "1", "90")+"&post_only=1"),
		step(amend, 0, "order=2&price=91&amount=2"), step(amend, 0, "amount=0.5&order=2"),
		step(place, byBob, harness.Order("sell", "BTC_USDT", "1", "80")+"&trigger_price=91"),
		step(place, byBob, harness.Order("sell", "BTC_USDT", "0.1", "90")),
		step("/api/v1/orders/own", byBob, "waiting=0"),
		step(amend, byBob, "order=3&trigger_price=1"))
	seed(step("POST /api/v1/trading-settings", 0, "self_trade=cancel_oldest"),
		step(place, 0, harness.Order("buy", "BTC_USDT", "1", "100")),
		step("POST "+cancelAfter, 0, "timeout=5"), step(cancelAfter, 0, ""))

	f.Fuzz(func(t *testing.T, input string) {
		for i, b := range benches {
			// an observer takes long to begin, and each input has a new one: it gets an eighth
			if i == 0 || crc32.ChecksumIEEE([]byte(input))%8 == 0 {
				b.requests(t, routes, input)
			}
		}
	})
}

// requests tries an input of FuzzSignedRequests.
func (b bench) requests(t testing.TB, routes []privateRoute, input string) {
	t.Helper()
	b.fresh(t)
	before := b.totals()
	for i, s := range strings.SplitN(input, stepSeparator, maxSteps+1) {
		if i == maxSteps || len(s) < 2 {
			break
		}
		r := routes[int(s[0])%len(routes)]
		b.signed(r.path, r.get, s[1]%howChoices, s[2:])
	}
	if after := b.totals(); !maps.Equal(after, before) {
		t.Fatalf("together they had %v and have %v", before, after)
	}
	harness.Worked(t, harness.AtRest(b.Engine))
}

// For every body of the operator with the token, the answer is JSON of a documented status, and a
// refusal changes nothing. No money is made or lost but by a deposit or a withdrawal. In the end
// both sides of the engine agree.
func FuzzOperatorBodies(f *testing.F) {
	b := newBench(f)
	var routes []string
	for _, route := range operator.Routes() {
		if method, path, _ := strings.Cut(route, " "); method == "POST" {
			routes = append(routes, path)
		}
	}
	slices.Sort(routes)
	step := func(path string, text string) string {
		i := slices.Index(routes, "/operator/v1/"+path)
		if i < 0 {
			f.Fatalf("%s is no route of the operator with a body", path)
		}
		return string([]byte{byte(i)}) + text
	}
	seed := func(steps ...string) { f.Add(strings.Join(steps, stepSeparator)) }
	alone := map[string][]string{
		"audit": {``, `{}`, `null`, `{"archive":"x"}`},
		"accounts": {`{"name":"carol","email":"carol@example.com"}`, `{"name":"alice"}`,
			`{"Name":"x","name":"y"}`, `{"name":"a","email":"x y"}`},
		"accounts/close": {`{"account":"bob"}`, `{"account":"alice"}`, `{"account":1}`},
		"accounts/email": {`{"account":"bob","email":"new@example.com"}`,
			`{"account":"alice","email":"x y"}`, `{"account":"alice"}`},
		"accounts/freeze": {`{"account":"alice","on":true}`, `{"account":"alice","on":null}`,
			`{"on":1}`},
		"keys": {
			`{"account":"bob","permissions":["read","trade","withdraw"],"allow":["10.0.0.0/8","::1"]}`,
			`{"account":"bob","permissions":["x"]}`, `{"account":"bob","allow":["x"]}`},
		"keys/revoke": {`{"key":"key-alice"}`, `{"key":""}`},
		"deposits": {`{"account":"bob","currency":"ETH","amount":"1.5","reference":"r"}`,
			`{"account":"bob","currency":"BTC","amount":1e3}`,
			`{"account":"bob","currency":"BTC","amount":[1]}`,
			`{"amount":92233720368.54775807,"account":"bob","currency":"BTC"}`},
		"adjustments": {
			`{"account":"alice","currency":"BTC","amount":"-1.5","reason":"x","reference":"r"}`,
			`{"account":"alice","currency":"BTC","amount":-1e-8,"reason":"x"}`,
			`{"account":"bob","currency":"BTC","amount":"1","reason":"x"}`,
			`{"account":"bob","currency":"ETH","amount":"--1","reason":"\n"}`},
		"withdraws/approve": {`{"withdraw":1}`, `{"withdraw":1,"reference":"tx"}`,
			`{"withdraw":2,"details":"x"}`,
			`{"withdraw":18446744073709551616}`},
		"withdraws/refuse": {`{"withdraw":1,"details":"no"}`, `{"withdraw":1}`,
			`{"withdraw":1,"details":"\u0000"}`},
		"orders/cancel": {`{"order":1}`, `{"order":0}`, `{"order":"1"}`, `{"order":-1}`},
		"orders/cancel-all": {`{"account":"alice"}`, `{"account":"alice","pair":"BTC_USDT"}`,
			`{"pair":"x","account":"bob"}`},
		"pairs/halt": {`{"pair":"BTC_USDT","on":true}`, `{"pair":"X","on":false}`,
			`{"pair":"BTC_USDT"}`},
		"fees": {`{"account":"alice","pair":"BTC_USDT","maker":"0.001","taker":0.002}`,
			`{"account":"alice","pair":"BTC_USDT","usual":true}`,
			`{"account":"alice","pair":"BTC_USDT","maker":1.1,"taker":-0}`},
		"maintenance": {`{"on":true,"message":"back soon"}`, `{"on":false}`,
			`{"on":true,"message":"\n"}`},
	}
	for _, path := range slices.Sorted(maps.Keys(alone)) {
		for _, text := range alone[path] {
			seed(step(path, text))
		}
	}
	for _, text := range []string{``, `{`, `{} x`, `[]`, `{"unknown":1}`,
		`{"account":"a","ACCOUNT":"b"}`, "\xff", `{"account":"\ud800"}`, `{}{}`, `"x"`} {
		for _, path := range []string{"deposits", "audit"} {
			seed(step(path, text))
		}
	}
	seed(step("pairs/halt", `{"pair":"BTC_USDT","on":true}`), step("maintenance", `{"on":true}`),
		step("orders/cancel", `{"order":1}`),
		step("deposits", `{"account":"bob","currency":"BTC","amount":1}`),
		step("maintenance", `{"on":false}`), step("audit", `{}`))
	seed(step("accounts", `{"name":"carol"}`), step("keys", `{"account":"carol"}`),
		step("accounts/close", `{"account":"carol"}`), step("keys", `{"account":"carol"}`),
		step("deposits", `{"account":"carol","currency":"BTC","amount":1,"reference":"r"}`))
	seed(step("accounts/email", `{"account":"alice","email":"new@example.com"}`),
		step("withdraws/approve", `{"withdraw":1}`), step("audit", `{}`))
	seed(step("withdraws/approve", `{"withdraw":1}`), step("withdraws/approve", `{"withdraw":1}`),
		step("withdraws/refuse", `{"withdraw":1,"details":"late"}`),
		step("accounts/freeze", `{"account":"alice","on":true}`),
		step("orders/cancel-all", `{"account":"alice"}`), step("audit", ``))
	seed(step("deposits", `{"account":"bob","currency":"BTC","amount":1,"reference":"once"}`),
		step("deposits", `{"account":"bob","currency":"BTC","amount":1,"reference":"once"}`),
		step("deposits", `{"account":"bob","currency":"BTC","amount":2,"reference":"once"}`))
	const adjusts = `{"account":"alice","currency":"BTC","reason":"x","reference":"once","amount":`
	seed(step("adjustments", adjusts+`-1}`), step("adjustments", adjusts+`-1}`),
		step("adjustments", adjusts+`-2}`), step("audit", `{}`))

	f.Fuzz(func(t *testing.T, input string) {
		b.fresh(t)
		b.Post("alice", "/api/v1/withdraw-confirm", "code="+b.Code(1)+"&withdraw=1").Must(t, 200)
		for i, s := range strings.SplitN(input, stepSeparator, maxSteps+1) {
			if i == maxSteps || s == "" {
				break
			}
			b.operate(routes[int(s[0])%len(routes)], s[1:])
		}
		harness.Worked(t, harness.AtRest(b.Engine))
	})
}

// operate sends a body to a route of the operator's, with the token, and wants a reliable answer.
func (b bench) operate(path, body string) {
	b.T.Helper()
	w := &wire{}
	w.in.Reset([]byte("POST " + path + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " +
		harness.OperatorToken + "\r\nContent-Length: " + jsonNumber(len(body)) +
		"\r\nConnection: close\r\n\r\n" + body))
	before := harness.Holdings(b.T, b.Exchange)
	b.Gateway.Operators().Server.ServeConn(w) //nolint:errcheck // it answers with its faults
	a := readAnswer(b.T, w.out.Bytes())
	harness.OperatorDocument().Fits(b.T, "POST", path, "", a)
	what := fmt.Sprintf("POST %s %q", path, body)
	var last map[string]any
	for line := range bytes.Lines([]byte(a.Body)) { // several are of an answer that is streamed
		last = nil
		if err := json.Unmarshal(line, &last); err != nil {
			b.T.Fatalf("%s is answered with %d %q: %v", what, a.Status, a.Body, err)
		}
	}
	text, failed := last["error"].(string)
	switch {
	case a.Status != 200 && a.Status != 400 && a.Status != 503:
		b.T.Fatalf("%s is answered with %d %s", what, a.Status, a.Body)
	case len(last) == 0, failed != (a.Status != 200), failed && text == "":
		b.T.Fatalf("%s is answered with %d %s", what, a.Status, a.Body)
	case a.Status == 200 && (!json.Valid([]byte(body)) || repeats(body)):
		b.T.Fatalf("%s is no JSON, or has a member twice, and is answered with %s", what, a.Body)
	}
	if after := harness.Holdings(b.T, b.Exchange); a.Status != 200 && after != before {
		b.T.Fatalf("%s is answered with %d %s, and changed what there is from %s to %s", what,
			a.Status, a.Body, before, after)
	}
}

// repeats reports whether a JSON object has a member twice, regardless of the case of their names.
func repeats(object string) bool {
	d := json.NewDecoder(strings.NewReader(object))
	var names []string
	var value json.RawMessage
	for start, _ := d.Token(); start == json.Delim('{') && d.More(); {
		name, err := d.Token()
		if err != nil || d.Decode(&value) != nil {
			return false
		}
		text := strings.ToLower(name.(string))
		if slices.Contains(names, text) {
			return true
		}
		names = append(names, text)
	}
	return false
}

// readAnswer parses one answer.
func readAnswer(t testing.TB, got []byte) harness.Answer {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), nil)
	if err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	a := harness.Answer{Status: resp.StatusCode, Body: string(body),
		Header: new(fasthttp.ResponseHeader)}
	a.Header.SetContentType(resp.Header.Get("Content-Type"))
	return a
}
