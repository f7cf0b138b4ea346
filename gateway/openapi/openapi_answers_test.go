package openapi_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/edge"
	"exchange/gateway/openapi"
	"exchange/prove/harness"
)

// answers are those of a documented exchange.
type answers struct{ *harness.Documented }

// newDocumented is an exchange with two accounts, alice with an e-mail address and bob without. No
// test meets its limits on rates, and the answers show them.
func newDocumented(t *testing.T) answers {
	h := harness.New(t, nil)
	h.Retune(func(o *edge.Options) {
		harness.Every(o, harness.PerSecond(1000, 100_000))
	})
	for _, name := range []string{"alice", "bob"} {
		email := ""
		if name == "alice" {
			email = "alice@example.com"
		}
		h.Done(h.Engine.CreateAccount("test", name, email))
		h.Key(name, name, event.AllPermissions)
		for _, currency := range []string{"BTC", "USDT"} {
			h.Deposit(name, "1000", currency, name+currency)
		}
	}
	return answers{harness.NewDocumentedOf(t, h)}
}

func (d answers) public(address string, status int) harness.Answer {
	d.T.Helper()
	return d.Fits("GET", address, d.Do("GET", address, "", ""), status)
}

func (d answers) private(account, address string, status int) harness.Answer {
	d.T.Helper()
	return d.Fits("GET", address, d.Get(account, address), status)
}

// send posts a form. A successful form is checked against the document, too.
func (d answers) send(account, address, form string, status int) harness.Answer {
	d.T.Helper()
	a := d.Fits("POST", address, d.Post(account, address, form), status)
	if status < 300 && form != "" {
		body := map[string]any{}
		for _, pair := range strings.Split(form, "&") {
			name, value, _ := strings.Cut(pair, "=")
			body[name] = value
		}
		at := "/paths/" + harness.Escaped(d.PathOf(address)) + "/post/requestBody/content/" +
			harness.Escaped(harness.FormMedia) + "/schema"
		if err := d.Doc.Check(at, body); err != nil {
			d.T.Errorf("%s: %v", form, err)
		}
	}
	return a
}

// sent posts JSON; form is the signed part.
func (d answers) sent(account, address, body, form string, status int) {
	d.T.Helper()
	d.Fits("POST", address, d.Do("POST", address, harness.JsonMedia, body,
		harness.Signed(account, d.NextNonce(account), form)...), status)
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err == nil {
		err = d.Doc.Check("/paths/"+harness.Escaped(d.PathOf(address))+"/post/requestBody/content/"+
			harness.Escaped(harness.JsonMedia)+"/schema", v)
	}
	if err != nil {
		d.T.Errorf("%s: %v", body, err)
	}
}

func TestAnswersFitTheDocument(t *testing.T) {
	d := newDocumented(t)
	d.orders()
	d.instructed()
	d.withdrawals()
	d.reads()
	d.failures()
	d.Doc.Operations(func(method, path, pointer string, _ map[string]any) {
		for status := range d.Doc.At(pointer + "/responses").(map[string]any) {
			if status < "300" && !d.Seen[method+" "+path+" "+status] {
				t.Errorf("%s %s has not answered %s", method, path, status)
			}
		}
	})
	// For these statuses a test would have to break the exchange.
	never := map[int]bool{408: true, 431: true, 500: true}
	for status := range openapi.StatusTexts() {
		seen := false
		for what := range d.Seen {
			seen = seen || strings.HasSuffix(what, fmt.Sprint(" ", status))
		}
		if !seen && !never[status] {
			t.Errorf("nothing has answered %d", status)
		}
	}
}

// orders makes trades, open, cancelled and refused orders.
func (d answers) orders() {
	d.T.Helper()
	d.send("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1.5", "100.5"), 201)
	d.sent("bob", "/api/v1/order", `{"type":"buy","pair":"BTC_USDT","amount":1,"price":"101"}`,
		"amount=1&pair=BTC_USDT&price=101&type=buy", 201)
	d.send("bob", "/api/v1/order/",
		"amount=0.00001&client_order_id=bid-1&pair=BTC_USDT&price=0.01&type=buy", 201)
	d.send("bob", "/api/v1/order/",
		"amount=0.00001&client_order_id=bid-1&pair=BTC_USDT&price=0.01&type=buy", 400)
	d.send("bob", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "0.1", "0.02"), 201)
	d.send("bob", "/api/v1/order-cancel", "order=4", 200)
	d.send("bob", "/api/v1/order-cancel/", "order=4", 400)
	d.send("bob", "/api/v1/order-cancel/", "", 400)
	d.send("bob", "/api/v1/order-cancel/", "client_order_id=bid-1", 200)
	d.send("bob", "/api/v1/order-cancel/", "client_order_id=bid-1", 400)
	d.send("bob", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "0.1", "0.02")+"&stopLoss=1",
		400)
	d.send("bob", "/api/v1/order-cancel-all/", "client_order_id_prefix=x&type=sell", 200)
	d.send("bob", "/api/v1/order-cancel-all/", "type=all", 400)
	d.send("bob", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "100", "100"), 400)
	d.send("bob", "/api/v1/order/", harness.Order("by", "BTC_EUR", "x", "1.2345"), 400)
	d.send("bob", "/api/v1/order/", "amount=1&amount=2", 400)
	for range 2 {
		d.send("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "0.1", "200"), 201)
	}
	d.sent("alice", "/api/v1/order-cancel-all/", `{"pair":"ETH_USDT"}`, "pair=ETH_USDT", 200)
	d.send("alice", "/api/v1/order-cancel-all/", "pair=EUR_USDT", 400)
	d.send("alice", "/api/v1/order-cancel-all/", "all=1", 200)
	d.sent("alice", "/api/v1/order-cancel-all/", `{"all":1}`, "all=1", 200)
	d.send("alice", "/api/v1/order-cancel-all/", "", 400)
	d.send("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "0.5", "100.5"), 201)
}

// instructed makes orders with instructions, changes and tries some, and sets all settings.
func (d answers) instructed() {
	d.T.Helper()
	place := func(status int, form string) {
		d.T.Helper()
		d.send("alice", "/api/v1/order/", form, status)
	}
	place(201, harness.Order("sell", "BTC_USDT", "1", "300")+"&post_only=slide&display_amount=0.25")
	place(201,
		harness.Order("sell", "BTC_USDT", "1", "301")+"&self_trade=cancel_both&time_in_force=ioc")
	place(201, "amount=1&order_type=market&pair=BTC_USDT&price=310&self_trade=cancel_oldest"+
		"&type=buy")
	place(201, "order_type=market&pair=BTC_USDT&price=310&quote_amount=50&type=buy")
	place(201, harness.Soon(harness.Order("sell", "BTC_USDT", "1",
		"302")+"&expire_time=SOON&time_in_force=gtd"))
	place(201, harness.Order("sell", "BTC_USDT", "1", "303")+"&oco_price=1&oco_trigger_price=2")
	place(201, "amount=1&client_order_id=stop&order_type=market&pair=BTC_USDT&trigger_price=2"+
		"&trigger_when=fall&type=sell")
	place(201, harness.Order("buy", "BTC_USDT", "0.1", "1")+"&client_order_id=plain")
	place(400, "amount=1&order_type=market&pair=ETH_USDT&type=buy")
	place(400, harness.Order("buy", "BTC_USDT", "0.1", "302")+"&post_only=1")
	place(400, harness.Order("sell", "BTC_USDT", "1", "90")+"&trigger_price=5000")
	d.sent("alice", "/api/v1/order-amend/", `{"client_order_id":"plain","price":"1.1"}`,
		"client_order_id=plain&price=1.1", 200)
	d.send("alice", "/api/v1/order-amend/", "client_order_id=stop&trigger_price=1.9", 200)
	d.send("alice", "/api/v1/order-amend/", "client_order_id=stop&post_only=1", 400)
	d.send("alice", "/api/v1/order-amend/", "client_order_id=plain&price=1.111", 400)
	d.send("alice", "/api/v1/order-amend/", "amount=1&order=99", 400)
	d.send("alice", "/api/v1/order-test/", harness.Order("buy", "BTC_USDT", "0.1", "302"), 200)
	d.send("alice", "/api/v1/order-test/", harness.Order("buy", "BTC_USDT", "1000", "302"), 400)
	d.sent("alice", "/api/v1/order-batch/", `{"orders":[{"do":"place","pair":"BTC_USDT",`+
		`"type":"buy","amount":"0.1","price":"1"},{"do":"cancel","order":99}]}`,
		`orders=`+url.QueryEscape(`[{"do":"place","pair":"BTC_USDT",`+
			`"type":"buy","amount":"0.1","price":"1"},{"do":"cancel","order":99}]`), 200)
	d.send("alice", "/api/v1/order-batch/", "orders=%5B%5D", 400)
	d.private("alice", "/api/v1/trading-settings/", 200)
	d.send("alice", "/api/v1/trading-settings/", "self_trade=cancel_newest", 200)
	d.send("alice", "/api/v1/trading-settings/", "self_trade=never", 400)
	d.send("alice", "/api/v1/order-cancel-after/", "pair=BTC_USDT&timeout=60&type=buy", 200)
	d.private("alice", "/api/v1/order-cancel-after/", 200)
	d.sent("alice", "/api/v1/order-cancel-after/", `{"timeout":0}`, "timeout=0", 200)
	d.send("alice", "/api/v1/order-cancel-after/", "timeout=1", 400)
	if a := d.private("alice", "/api/v1/orders/own/?waiting=1", 200); a.Body == "[]" {
		d.T.Error("no order waits, which proves nothing")
	}
	d.private("alice", "/api/v1/orders/own/?status=2", 200)
}

// withdrawals come to every end.
func (d answers) withdrawals() {
	d.T.Helper()
	code := d.Code
	const ask = "address=bc1qexample&amount=0.25&currency=BTC"
	for range 4 {
		d.send("alice", "/api/v1/withdraw/", ask, 201)
	}
	d.send("alice", "/api/v1/withdraw/", "address=bc1qexample&amount=5000&currency=BTC", 400)
	d.send("alice", "/api/v1/withdraw/", "amount=0&currency=EUR", 400)
	d.send("bob", "/api/v1/withdraw/", ask, 400) // no e-mail address
	d.sent("alice", "/api/v1/withdraw-confirm/", `{"withdraw":1,"code":"`+code(1)+`"}`,
		"code="+code(1)+"&withdraw=1", 200)
	d.send("alice", "/api/v1/withdraw-confirm/", "code="+code(2)+"&withdraw=2", 200)
	d.send("alice", "/api/v1/withdraw-confirm/", "code=wrong&withdraw=3", 400)
	d.send("alice", "/api/v1/withdraw-confirm/", "code=wrong&withdraw=1", 400)
	d.send("alice", "/api/v1/withdraw-cancel/", "withdraw=3", 200)
	d.send("alice", "/api/v1/withdraw-cancel/", "withdraw=33", 400)
	for id, to := range map[uint64]uint8{1: event.WithdrawalApproved, 2: event.WithdrawalRefused} {
		c := harness.Must(d.Engine.SetWithdrawalStatus("test", id, to,
			map[bool]string{true: "unknown address"}[to == event.WithdrawalRefused]))
		c.Free()
	}
	reference := harness.Must(event.NewClientID("wire-7"))
	c := harness.Must(d.Engine.Adjust("test", d.Engine.Key([]byte("key-alice")).Account.ID, 1, 1,
		"twice", reference))
	c.Free()
}

func (d answers) reads() {
	d.T.Helper()
	for _, address := range []string{"/api/v1/time", "/api/v1/exchange-info/",
		"/api/v1/exchanges?pair=BTC_USDT&after=0&since=1.5&until=1e10", "/api/v1/currencies/",
		"/api/v1/pairs/?currency1=ETH",
		"/api/v1/ticker/", "/api/v1/ticker?pair=BTC_USDT", "/api/charts/BTC_USDT/1/chart",
		"/api/charts/BTC_USDT/D/chart/?limit=5&since=0.5&until=1e10", "/api/v1/orderbook/BTC_USDT",
		"/api/v1/orderbook/BTC_USDT/?group=1&limit_sell=1", "/api/v1/exchanges/?ordering=id",
		"/healthz", "/readyz/", "/api/openapi.json", "/docs", "/docs/swagger-ui.css"} {
		if a := d.public(address, 200); a.Body == "[]" {
			d.T.Errorf("%s is empty, which proves nothing", address)
		}
	}
	for _, address := range []string{"/api/v1/wallets/", "/api/v1/wallets?currency_id=BTC",
		"/api/v1/orders/own/", "/api/v1/orders/own?status=2", "/api/v1/order/1/",
		"/api/v1/exchanges/own/",
		"/api/v1/exchanges/own?my_side=sell", "/api/v1/fees/", "/api/v1/deposits/",
		"/api/v1/withdraws/", "/api/v1/withdraws?status=10", "/api/v1/withdraws?status=40"} {
		if a := d.private("alice", address, 200); a.Body == "[]" {
			d.T.Errorf("%s is empty, which proves nothing", address)
		}
	}
	d.private("bob", "/api/v1/orders/own/?client_order_id=bid-1", 200)
	tag := string(d.public("/api/openapi.json", 200).Header.Peek("ETag"))
	d.Do("GET", "/api/openapi.json", "", "", "If-None-Match", tag).Is(d.T, 304, "with its ETag")
	d.Seen["GET /api/openapi.json 304"] = true
}

func (d answers) failures() {
	d.T.Helper()
	for _, address := range []string{"/api/v1/pairs/?currency1=X", "/api/v1/ticker/?pair=X",
		"/api/charts/BTC_USDT/60/chart?limit=0&since=x", "/api/v1/orderbook/BTC_USDT/?group=2",
		"/api/v1/exchanges/?offset=100001&ordering=up", "/api/v1/currencies/?%zz"} {
		d.public(address, 400)
	}
	for _, address := range []string{"/api/v1/wallets/?currency_id=X",
		"/api/v1/orders/own/?status=4", "/api/v1/exchanges/own/?type=x",
		"/api/v1/exchanges/own/?after=1",
		"/api/v1/deposits/?before=0", "/api/v1/withdraws/?status=11"} {
		d.private("alice", address, 400)
	}
	for _, address := range []string{"/api/v1/orderbook/X/", "/api/charts/BTC_USDT/2/chart",
		"/docs/x"} {
		d.public(address, 404)
	}
	d.private("bob", "/api/v1/order/1/", 404)
	d.public("/api/v1/wallets/", 401)
	d.Fits("POST", "/api/v1/order/",
		d.Do("POST", "/api/v1/order/", harness.FormMedia, "a=1",
			harness.Signed("alice", 1, "a=1")...), 400)
	// an old nonce
	d.Fits("POST", "/api/v1/order-cancel/",
		d.Do("POST", "/api/v1/order-cancel/", harness.FormMedia, "order=1",
			harness.Signed("alice", 1, "order=1")...), 401)
	d.Fits("POST", "/api/v1/order/",
		d.Do("POST", "/api/v1/order/", "text/plain", "a=1", harness.Signed("alice", 1, "a=1")...),
		400)
	d.Fits("PUT", "/api/v1/order/", d.Do("PUT", "/api/v1/order/", "", ""), 405)
	d.public("/api/v1/pairs/?format=xml", 406)
	// The request is written while the answer is read, because the server hangs up before it has
	// the whole request.
	large := "POST /api/v1/order/ HTTP/1.1\r\nHost: x\r\nContent-Type: " + harness.FormMedia +
		"\r\nContent-Length: 66560\r\n\r\n" + strings.Repeat("a", 65<<10)
	d.Fits("POST", "/api/v1/order/", d.Raw("POST", large), 413)
	packed := append(harness.Signed("alice", 1, "a=1"), "Content-Encoding", "gzip")
	for _, e := range openapi.Descriptions() {
		if e.Method == "POST" {
			d.Fits("POST", e.DocumentPath(),
				d.Do("POST", e.DocumentPath(), harness.FormMedia, "a=1", packed...), 415)
		}
	}
	d.Key("bob", "reader", event.PermissionRead)
	d.Fits("POST", "/api/v1/order/",
		d.Do("POST", "/api/v1/order/", harness.FormMedia, "a=1",
			harness.Signed("reader", 1, "a=1")...), 403)
	d.Done(d.Engine.Halt("test", "BTC_USDT", true))
	d.send("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "100"), 403)
	d.Done(d.Engine.SetMaintenance(context.Background(), "test", event.Maintenance{On: true,
		Message: "Back soon."}))
	d.send("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "100"), 503)
	d.public("/readyz", 200) // maintenance does not count
	d.public("/leaderz", 200)
	d.Done(d.Engine.SetMaintenance(context.Background(), "test", event.Maintenance{}))
	d.Stop()
	d.Change = func(o *actors.Options) { o.Mail = nil }
	d.Start()
	d.send("alice", "/api/v1/withdraw/", "address=bc1qexample&amount=0.25&currency=BTC", 503)
	d.Retune(func(o *edge.Options) {
		o.PublicRate, o.RateEntries, o.Clock = harness.PerSecond(1, 1), 100,
			func() int64 { return 1 }
	})
	d.public("/api/v1/pairs/", 200)
	d.public("/api/v1/pairs/", 429)
}

func TestEveryDescribedPathAnswersWithAndWithoutItsLastSlash(t *testing.T) {
	d := newDocumented(t)
	d.send("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "100"), 201)
	fill := strings.NewReplacer("{pair}", "BTC_USDT", "{timeframe}", "60", "{pk}", "1", "{file}",
		openapi.Files()[0])
	for _, e := range openapi.Descriptions() {
		path := fill.Replace(strings.TrimSuffix(e.DocumentPath(), "/"))
		var answers []harness.Answer
		for _, address := range []string{path, path + "/"} {
			var a harness.Answer
			if e.Method == "POST" {
				a = d.Post("bob", address, "x=1")
			} else {
				a = d.Get("alice", address)
			}
			a.Body = harness.Times.ReplaceAllString(a.Body, `"$1":T`)
			answers = append(answers, a)
		}
		if a, b := answers[0], answers[1]; a.Status != b.Status || a.Body != b.Body ||
			a.Status == 404 || a.Status == 405 {
			t.Errorf("%s: %d %.100s, and with a slash %d %.100s", path, a.Status, a.Body, b.Status,
				b.Body)
		}
	}
}
