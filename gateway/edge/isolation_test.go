package edge_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fasthttp/router"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/openapi"
	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// An account's own data are reached with its own keys alone. These tests walk the table that the
// router is made from, and the operator's. A route that is not listed here fails them.

// own has alice's data, as she sees them. Her orders 1 to 3 are open, done and cancelled,
// her withdrawals 1 to 4 new, verified, approved and canceled.
var own = []string{"/api/v1/wallets", "/api/v1/orders/own", "/api/v1/order/1", "/api/v1/order/2",
	"/api/v1/order/3", "/api/v1/exchanges/own",
	"/api/v1/deposits", "/api/v1/withdraws", "/api/v1/fees"}

// hers are texts that appear in no private answer but alice's: names and places that she gave, and
// amounts that no other account has. Her names appear in no public answer either; amounts of trades
// and orders are public.
var (
	herNames = []string{"alice", "hers-open", "hers-done", "hers-gone", "bc1-of-hers"}
	hers     = append(slices.Clone(herNames), "1.11111", "2.22222", "3.33333", "7.77777")
)

// victim returns an exchange in which alice has some of everything and bob has traded with her.
// Mallory has only money and an e-mail address.
func victim(t *testing.T) *harness.Exchange {
	h := harness.New(t, nil)
	h.AccountAt("alice", "alice@example.org")
	h.Account("bob")
	h.AccountAt("mallory", "mallory@example.org")
	for _, d := range [][3]string{{"alice", "17.77777", "BTC"}, {"bob", "100000", "USDT"},
		{"mallory", "500", "USDT"}} {
		h.Deposit(d[0], d[1], d[2], "to-"+d[0])
	}
	sell := func(id, amount, price string) string {
		return "amount=" + amount + "&client_order_id=" + id + "&pair=BTC_USDT&price=" + price +
			"&type=sell"
	}
	withdrawal := "address=bc1-of-hers&amount=0.00123&currency=BTC"
	for _, x := range []struct {
		account, path, params string
		status                int
	}{
		{"alice", "/api/v1/order", sell("hers-open", "1.11111", "999"), 201},
		{"alice", "/api/v1/order", sell("hers-done", "2.22222", "100"), 201},
		{"alice", "/api/v1/order", sell("hers-gone", "3.33333", "998"), 201},
		{"bob", "/api/v1/order", harness.Order("buy", "BTC_USDT", "2.22222", "100"), 201},
		{"alice", "/api/v1/order-cancel", "order=3", 200},
		{"alice", "/api/v1/withdraw", withdrawal, 201},
		{"alice", "/api/v1/withdraw", withdrawal, 201},
		{"alice", "/api/v1/withdraw", withdrawal, 201},
		{"alice", "/api/v1/withdraw", withdrawal, 201},
		{"alice", "/api/v1/withdraw-confirm", "code=%s&withdraw=2", 200},
		{"alice", "/api/v1/withdraw-confirm", "code=%s&withdraw=3", 200},
		{"alice", "/api/v1/withdraw-cancel", "withdraw=4", 200},
	} {
		if strings.Contains(x.params, "%s") {
			id, _ := strconv.ParseUint(x.params[len(x.params)-1:], 10, 64)
			x.params = fmt.Sprintf(x.params, h.Code(id))
		}
		if a := h.Post(x.account, x.path, x.params); a.Status != x.status {
			t.Fatalf("%s %s %s: %d %s", x.account, x.path, x.params, a.Status, a.Body)
		}
	}
	c, err := h.Engine.SetWithdrawalStatus("test", 3, event.WithdrawalApproved, "")
	if err != nil || c.Outcome() != actors.Accepted {
		t.Fatal(err)
	}
	c.Free()
	return h
}

// A foreign request targets something of alice's, by every means that its route has.
type foreign struct {
	path   string // with its variable parts filled in
	params string // query of a GET, body of a POST; sorted
	status int
	body   string // of the answer to mallory
}

// askForeign sends a request for something of alice's with the headers.
func askForeign(h *harness.Exchange, method string, f foreign, headers []string) harness.Answer {
	h.T.Helper()
	if method == "POST" {
		return h.Do("POST", f.path, harness.FormType, f.params, headers...)
	}
	path := f.path
	if f.params != "" {
		path += "?" + f.params
	}
	return h.Do(method, path, "", "", headers...)
}

// signs are the headers for it of a key that may be used.
func (f *foreign) signs(method, account string, nonce uint64) []string {
	if method == "POST" {
		return harness.Signed(account, nonce, f.params)
	}
	return harness.Signed(account, nonce, "")
}

// withdrawalsOf gives one request for each of alice's withdrawals, with the code that would confirm
// the new withdrawal.
func withdrawalsOf(h *harness.Exchange, path string, code bool) (all []foreign) {
	for _, id := range []uint64{1, 2, 3, 4, 9_999_999_999_999_999_999} {
		params := "withdraw=" + strconv.FormatUint(id, 10)
		if code {
			params = "code=" + h.Code(id) + "&" + params
		}
		all = append(all, foreign{path, params, 400, `{"withdraw":["Withdraw not found"]}`})
	}
	return all
}

// spendings are orders, tried or placed. Her money is not there to be spent, and her client order
// ids are hers alone: neither is revealed.
func spendings(path string) (all []foreign) {
	for _, order := range []string{
		"account=alice&amount=1&client_order_id=hers-open&pair=BTC_USDT&price=2000&type=sell" +
			"&user=1",
		"amount=1&client_order_id=hers-done&pair=BTC_USDT&price=2000&type=sell",
		harness.Soon(
			"amount=1&display_amount=0.5&expire_time=SOON&pair=BTC_USDT&post_only=1&price=2000" +
				"&self_trade=none&time_in_force=gtd&type=sell"),
		"amount=1&oco_price=1&oco_trigger_price=2&pair=BTC_USDT&price=2000&type=sell",
		"amount=1&pair=BTC_USDT&price=1&trigger_price=2&trigger_when=fall&type=sell"} {
		all = append(all, foreign{path, order, 400, `{"date":T,"error":"Out of balance -1 BTC"}`})
	}
	return append(all, foreign{path,
		"order_type=market&pair=BTC_USDT&price=1&quote_amount=1000&type=buy", 400,
		`{"date":T,"error":"Out of balance -500 USDT"}`})
}

// foreigns are the requests for each private route, by its pattern.
func foreigns(h *harness.Exchange) map[string][]foreign {
	const nothing = "[]"
	gone := harness.Detail("Not found.")
	noOrder := `{"order":["Order not found"]}`
	var orders []foreign
	for _, filter := range []string{"client_order_id=hers-open", "client_order_id=hers-done",
		"client_order_id=hers-gone", "pair=BTC_USDT", "type=sell", "type=buy",
		"status=1", "status=2", "status=3", "waiting=1", "before=2&limit=2000", "limit=1&offset=1",
		"account=alice&user=1"} {
		orders = append(orders, foreign{"/api/v1/orders/own", filter, 200, nothing})
	}
	var trades []foreign
	for _, filter := range []string{"pair=BTC_USDT", "type=sell", "type=buy", "my_side=sell",
		"both_sides=1", "my_side=buy", "before=1000", "limit=1000", "offset=1", "ordering=id",
		"after=0&pair=BTC_USDT", "pair=BTC_USDT&since=1&until=1e10", "account=alice&user=1"} {
		trades = append(trades, foreign{"/api/v1/exchanges/own", filter, 200, nothing})
	}
	var transfers []foreign
	for _, filter := range []string{"currency_id=BTC", "limit=1000", "offset=0", "before=1000",
		"account=alice&user=1"} {
		transfers = append(transfers, foreign{"/api/v1/withdraws", filter, 200, nothing})
	}
	for _, status := range []string{"10", "20", "30", "40", "50"} {
		transfers = append(transfers, foreign{"/api/v1/withdraws", "status=" + status, 200,
			nothing})
	}
	deposits := []foreign{{"/api/v1/deposits", "currency_id=BTC", 200, nothing},
		{"/api/v1/deposits", "before=2", 200, nothing},
		{"/api/v1/deposits", "limit=1000&offset=1", 200, nothing},
		{"/api/v1/deposits", "account=alice&currency_id=BTC&user=1", 200, nothing}}
	return map[string][]foreign{
		"/api/v1/wallets": {{"/api/v1/wallets", "currency_id=BTC", 200,
			`[{"currency":"BTC","balance":0,"reserve":0}]`},
			{"/api/v1/wallets", "account=alice&currency_id=BTC&user=1", 200,
				`[{"currency":"BTC","balance":0,"reserve":0}]`}},
		"/api/v1/orders/own":    orders,
		"/api/v1/exchanges/own": trades,
		"/api/v1/withdraws":     transfers,
		"/api/v1/deposits":      deposits,
		"/api/v1/order/{pk}": {{"/api/v1/order/1", "", 404, gone},
			{"/api/v1/order/2", "", 404, gone}, {"/api/v1/order/3", "", 404, gone},
			{"/api/v1/order/1", "account=alice&user=1", 404, gone}},
		"/api/v1/fees": {{"/api/v1/fees", "account=alice&user=1", 200,
			`[{"pair":"BTC_USDT","maker":0,"taker":0},{"pair":"ETH_USDT","maker":0,"taker":0},{"pair":"ETH_BTC","maker":0,"taker":0}]`}},
		"/api/v1/order-cancel": {{"/api/v1/order-cancel", "order=1", 400, noOrder},
			{"/api/v1/order-cancel", "order=2", 400, noOrder},
			{"/api/v1/order-cancel", "order=9999999999999999999", 400, noOrder},
			{"/api/v1/order-cancel", "order=3", 400, noOrder},
			{"/api/v1/order-cancel", "client_order_id=hers-open", 400,
				`{"client_order_id":["Order not found"]}`},
			{"/api/v1/order-cancel", "account=alice&order=1&user=1", 400, noOrder}},
		"/api/v1/order-batch": {{"/api/v1/order-batch",
			`orders=[{"do":"cancel","order":1},{"do":"amend","order":2,"amount":1},` +
				`{"do":"cancel","client_order_id":"hers-open"}]`, 200,
			`{"results":[{"status":400,"body":` + noOrder + `},{"status":400,"body":` + noOrder +
				`},{"status":400,"body":{"client_order_id":["Order not found"]}}]}`}},
		"/api/v1/order-cancel-all": {{"/api/v1/order-cancel-all", "all=1", 200, `{"orders":[]}`},
			{"/api/v1/order-cancel-all", "pair=BTC_USDT&type=sell", 200, `{"orders":[]}`},
			{"/api/v1/order-cancel-all", "client_order_id_prefix=hers", 200, `{"orders":[]}`},
			{"/api/v1/order-cancel-all", "account=alice&all=1&user=1", 200, `{"orders":[]}`}},
		"/api/v1/order":      spendings("/api/v1/order"),
		"/api/v1/order-test": spendings("/api/v1/order-test"),
		"/api/v1/order-amend": {{"/api/v1/order-amend", "amount=1&order=1", 400, noOrder},
			{"/api/v1/order-amend", "account=alice&order=1&price=1&user=1", 400, noOrder},
			{"/api/v1/order-amend", harness.Soon("client_order_id=hers-open&display_amount=1" +
				"&expire_time=SOON&post_only=1&trigger_price=1"), 400,
				`{"client_order_id":["Order not found"]}`}},
		"/api/v1/trading-settings": {{"/api/v1/trading-settings", "account=alice&user=1", 200,
			`{"self_trade":"none"}`}},
		"POST /api/v1/trading-settings": {{"/api/v1/trading-settings",
			"account=alice&self_trade=none&user=1", 200, `{"self_trade":"none"}`}},
		"/api/v1/order-cancel-after": {{"/api/v1/order-cancel-after", "account=alice&user=1", 200,
			`{"timeout":0,"cancel_at":null}`}},
		"POST /api/v1/order-cancel-after": {{"/api/v1/order-cancel-after",
			"account=alice&client_order_id_prefix=hers&pair=BTC_USDT&timeout=0&type=sell&user=1",
			200, `{"timeout":0,"cancel_at":null}`}},
		"/api/v1/withdraw": {{"/api/v1/withdraw",
			"account=alice&address=x&amount=1&client_id=hers-open&currency=BTC&user=1", 400,
			`{"date":T,"error":"Out of balance -1 BTC"}`}},
		"/api/v1/withdraw-confirm": withdrawalsOf(h, "/api/v1/withdraw-confirm", true),
		"/api/v1/withdraw-cancel":  withdrawalsOf(h, "/api/v1/withdraw-cancel", false),
	}
}

// privateOperations are the private operations of a gateway, each under its path, or for a POST
// beside a GET under "POST" and the path.
func privateOperations(g *gateway.Gateway) map[string]*api.Operation {
	all := map[string]*api.Operation{}
	for path, list := range g.Public().Table() {
		if list[0].Private {
			all[path] = list[0]
		}
		if len(list) > 1 && list[1].Private {
			all["POST "+path] = list[1]
		}
	}
	return all
}

// parametersOf are the documented parameters of a private operation;
// TestEveryRouteAndMethodIsDescribedOnceAndNothingElse keeps them complete.
func parametersOf(t *testing.T, o *api.Operation) (names []string) {
	t.Helper()
	for _, d := range openapi.Descriptions() {
		if d.Path == o.Path && d.Method == o.Method {
			return d.Parameters
		}
	}
	t.Fatalf("%s %s is not described", o.Method, o.Path)
	return nil
}

func tellsNothing(t *testing.T, what, text string) {
	t.Helper()
	for _, s := range hers {
		if strings.Contains(text, s) {
			t.Errorf("%s reveals %q:\n%s", what, s, text)
		}
	}
}

// permissions are all permissions that a key may have.
var permissions = map[uint8]string{event.PermissionRead: "read", event.PermissionTrade: "trade",
	event.PermissionWithdraw: "withdraw"}

// Mallory asks with keys that have the one permission that a route needs, and an allow-list.
func TestNoRouteShowsOrChangesAnotherAccount(t *testing.T) {
	h := victim(t)
	for p, name := range permissions {
		h.Key("mallory", "mallory-"+name, p, "192.0.2.7", "0.0.0.0/8")
	}
	see := func() (all []string) {
		for _, path := range own {
			a := h.Get("alice", path)
			if a.Status != 200 {
				t.Fatalf("%s: %d %s", path, a.Status, a.Body)
			}
			all = append(all, path+": "+a.Body)
		}
		return all
	}
	before := see()
	// the name of her account appears in no answer of the API, not even her own
	for _, s := range hers[1:] {
		if !strings.Contains(strings.Join(before, "\n"), s) {
			t.Errorf("alice has no %q: that no other client sees it proves nothing", s)
		}
	}
	rules := foreigns(h)
	for path, e := range privateOperations(h.Gateway) {
		if len(rules[path]) == 0 {
			t.Errorf("%s: no list describes how it isolates accounts", path)
			continue
		}
		method, parameters := e.Method, parametersOf(t, e)
		for _, name := range parameters {
			if !slices.ContainsFunc(rules[path], func(f foreign) bool {
				return strings.Contains("&"+f.params, "&"+name+"=")
			}) {
				t.Errorf("%s: its parameter %s is not tried with alice's data", path, name)
			}
		}
		for _, f := range rules[path] {
			key := "mallory-" + permissions[e.Permission]
			a := askForeign(h, method, f, f.signs(method, key, h.NextNonce(key)))
			harness.Want(t, path+" "+f.params, a, f.status, f.body)
			tellsNothing(t, path+" "+f.params, a.Body+a.Header.String())
		}
		delete(rules, path)
	}
	for path := range rules {
		t.Errorf("%s is no private route", path)
	}
	if after := see(); !slices.Equal(before, after) {
		t.Errorf("alice had\n%s\nand has\n%s", strings.Join(before, "\n"),
			strings.Join(after, "\n"))
	}
	h.Verify()
}

// Every way to ask for alice's data without a permitted key of hers is refused on every private
// route, before anything happens.
func TestNoPrivateRouteAnswersWithoutAKeyThatMay(t *testing.T) {
	h := victim(t)
	for p := range permissions {
		h.Key("alice", "all-but-"+permissions[p], event.AllPermissions&^p)
	}
	// the harness's clients are at 0.0.0.0
	h.Key("alice", "elsewhere", event.AllPermissions, "192.0.2.0/24", "::/0")
	h.Key("alice", "ended", event.AllPermissions)
	h.Done(h.Engine.RevokeKey("test", "key-ended"))
	rules, before := foreigns(h), h.Hash()
	const nonce = 1_000_000 // above all used nonces
	n := 0
	for path, e := range privateOperations(h.Gateway) {
		if permissions[e.Permission] == "" {
			t.Errorf("%s needs the permission %d, which is no single one", path, e.Permission)
		}
		method := e.Method
		for _, f := range rules[path] {
			try := func(what string, status int, body string, headers []string) {
				t.Helper()
				n++
				a := askForeign(h, method, f, headers)
				harness.Want(t, fmt.Sprintf("%s: %s %s", what, path, f.params), a, status, body)
				tellsNothing(t, what, a.Body+a.Header.String())
			}
			may := func(name string) []string { return f.signs(method, name, nonce) }
			change := func(s []string, at int, value string) []string { s[at] = value; return s }
			try("no key", 401, harness.Credentials, nil)
			try("an unknown key", 401, harness.Credentials, may("nobody"))
			try("a key that has ended", 401, harness.Credentials, may("ended"))
			try("no signature", 401, harness.Credentials, may("alice")[:2])
			try("no nonce", 401, detailCode(api.MissingNonce), may("alice")[:4])
			try("no name of a key", 401, harness.Credentials, may("alice")[2:])
			for _, headers := range misshapen(may("alice")) {
				body := harness.Credentials
				if headers[5] != may("alice")[5] {
					body = detailCode(api.MalformedNonce)
				}
				try("a malformed header of a key", 401, body, headers)
			}
			try("her key under another's secret", 401, harness.WrongSign,
				change(may("mallory"), 1, "key-alice"))
			try("another's key under her secret", 401, harness.WrongSign,
				change(may("alice"), 1, "key-mallory"))
			try("her signature of something else", 401, harness.WrongSign,
				change(may("alice"), 3, harness.Signed("alice", nonce, "x=1")[3]))
			try("a key without the permission", 403,
				harness.Detail("This key lacks the permission "+permissions[e.Permission]+"."),
				may("all-but-"+permissions[e.Permission]))
			try("a key of another address", 403, harness.Detail(api.AddressNotAllowed.Detail),
				may("elsewhere"))
			try("a key of another address that is claimed", 403,
				harness.Detail(api.AddressNotAllowed.Detail),
				append(may("elsewhere"), "X-Forwarded-For", "192.0.2.1"))
			try("the operator's token", 401, harness.Credentials,
				[]string{"Authorization", "Bearer " + harness.OperatorToken})
		}
	}
	if n == 0 || h.Hash() != before {
		t.Errorf("%d requests that were refused before their wallet changed the state", n)
	}
	h.Do("GET", "/api/v1/wallets", "", "", harness.Signed("alice", nonce, "")...).Is(t, 200,
		"the nonce of a refused request was used up")
}

// misshapen are the headers of a key, each with one malformed.
func misshapen(good []string) (all [][]string) {
	name, sign := good[1], good[3]
	for at, list := range map[int][]string{
		1: {"KEY-ALICE", name + "," + name, strings.Repeat("k", 5000), name + "\u00e9"},
		3: {sign[:63], sign + "0", sign[:63] + "g", "0x" + sign[:62], strings.Repeat("\u00e9", 32)},
		5: {"0", "00", "-1", "+1", "1.0", "1e3", "0x1", "ten", "12345678901234567890",
			"99999999999999999999", "9 9", "1,2", "\u0661"},
	} {
		for _, value := range list {
			headers := slices.Clone(good)
			headers[at] = value
			all = append(all, headers)
		}
	}
	return all
}

// publicRoutes are open to any client, because nothing there belongs to an account; each has its
// reason beside it.
var publicRoutes = map[string]string{
	"/api/v1/time":                         "/api/v1/time?account=alice",
	"/api/v1/exchange-info":                "/api/v1/exchange-info?account=alice",
	"/api/v1/currencies":                   "/api/v1/currencies",
	"/api/v1/pairs":                        "/api/v1/pairs",
	"/api/v1/orderbook/{pair}":             "/api/v1/orderbook/BTC_USDT?group=0&account=alice",
	"/api/v1/exchanges":                    "/api/v1/exchanges?pair=BTC_USDT&account=alice",
	"/api/v1/ticker":                       "/api/v1/ticker?account=alice",
	"/api/charts/{pair}/{timeframe}/chart": "/api/charts/BTC_USDT/60/chart?account=alice",
	"/api/openapi.json":                    "",
	"/docs":                                "",
	"/docs/{file}":                         "",
	"/healthz":                             "/healthz",
	"/readyz":                              "/readyz",
	"/leaderz":                             "/leaderz",
}

func TestPublicAnswersRevealNoAccounts(t *testing.T) {
	h := victim(t)
	for path, list := range h.Gateway.Public().Table() {
		if list[0].Private {
			continue
		}
		ask, known := publicRoutes[path]
		if !known {
			t.Errorf("%s is public, and no list says that it may be", path)
		}
		if ask == "" { // the document and its page have examples of the API's, not of accounts'
			continue
		}
		a := h.Do("GET", ask, "", "")
		if a.Status != 200 {
			t.Errorf("%s: %d %s", ask, a.Status, a.Body)
		}
		for _, s := range append(slices.Clone(herNames), "bob", "mallory") {
			if strings.Contains(a.Body, s) {
				t.Errorf("%s reveals %q: %s", ask, s, a.Body)
			}
		}
		if list[0].Method != "GET" {
			t.Errorf("%s takes changes without a key", path)
		}
	}
}

// The router has exactly the routes of the table, in any method.
func TestTheRouterHasTheRoutesOfTheTableAndNoOther(t *testing.T) {
	g := gateway.New(edge.Options{Log: harness.Quiet()})
	for method, paths := range g.Public().RouterPaths() {
		if method != router.MethodWild {
			t.Errorf("there are routes of the method %s alone: %v", method, paths)
		}
		if got, want := slices.Sorted(slices.Values(paths)),
			slices.Sorted(maps.Keys(g.Public().Table())); !slices.Equal(got, want) {
			t.Errorf("the router has %q, the table %q", got, want)
		}
	}
}

func TestNoRouteOfTheOperatorAnswersWithoutItsToken(t *testing.T) {
	h := victim(t)
	h.Gateway.Operators().Operator.AllowGuesses() // one guess for each route, and more
	ask := harness.AsOperator(t, h.Gateway)
	routes := append(operator.Routes(),
		"GET "+edge.MetricsPath, "GET "+edge.PprofPath, "GET "+edge.PprofPath+"/",
		"GET "+edge.PprofPath+"/goroutine", "GET "+edge.PprofPath+"/heap",
		"GET "+edge.PprofPath+"/cmdline",
		"GET "+edge.PprofPath+"/profile", "GET "+edge.PprofPath+"/trace",
		"GET "+edge.PprofPath+"/symbol")
	known := map[string]bool{}
	for path := range h.Gateway.Operators().Paths() {
		known[path] = false
	}
	before := h.Hash()
	body := `{"account":"alice","permissions":["read"],"currency":"BTC","amount":"1","reference":"x","withdraw":1,"order":1,"on":true,"key":"key-alice","name":"eve"}`
	headers := func(list []string) (lines []string) {
		for i := 0; i+1 < len(list); i += 2 {
			lines = append(lines, list[i]+": "+list[i+1])
		}
		return lines
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		for pattern := range known {
			if pattern == path || pattern == edge.PprofRoute &&
				strings.HasPrefix(path, edge.PprofPath) {
				known[pattern] = true
			}
		}
		for what, lines := range map[string][]string{"nothing": {""},
			"a wrong token":               {"Authorization: Bearer wrong"},
			"a part of the token":         {"Authorization: Bearer " + harness.OperatorToken[:10]},
			"the token of another scheme": {"Authorization: Basic " + harness.OperatorToken},
			"an API key":                  headers(harness.Signed("alice", 1_000_000, "")),
			"an API key as token":         {"Authorization: Bearer key-alice"},
			"a secret as token":           {"Authorization: Bearer secret-alice"}} {
			a := ask(method, path+"?account=alice&token="+harness.OperatorToken, body, lines...)
			harness.Says(t, what+" "+route, a, 401,
				harness.Refusal("the bearer token is missing or wrong"))
		}
	}
	for pattern, tried := range known {
		if !tried {
			t.Errorf("%s was not tried", pattern)
		}
	}
	h.StillAt(before)
	// Neither listener has the other's routes, for a client with all credentials.
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		harness.Want(t, "on the public listener: "+route,
			h.Do(method, path, "", "", "Authorization", "Bearer "+harness.OperatorToken), 404,
			harness.Detail("Not found."))
	}
	for path := range h.Gateway.Public().Table() {
		for _, method := range []string{"GET", "POST"} {
			harness.Says(t, "on the operator's listener: "+path,
				ask(method, path, "", append(headers(harness.Signed("alice", 1_000_000, "")),
					"Authorization: Bearer "+harness.OperatorToken)...), 404,
				harness.Refusal("there is no "+method+" "+path))
		}
	}
}
