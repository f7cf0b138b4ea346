package edge_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/prove/harness"
)

func TestANonceMustGrowForReadsAndCommandsAlike(t *testing.T) {
	h := harness.Traded(t)
	last := uint64(2) // trading() has used 1 and 2
	f := func(nonce string, post bool, status int) {
		t.Helper()
		p := ""
		if post {
			p = harness.Order("buy", "BTC_USDT", "1", "1")
		}
		s := harness.Signed("bob", 1, p)
		s[5] = nonce
		a := h.Do("GET", "/api/v1/wallets/", "", "", s...)
		if post {
			a = h.Do("POST", "/api/v1/order/", harness.FormType, p, s...)
		}
		if a.Status != status || status == 401 && a.Body != harness.UsedNonce(last) {
			t.Errorf("nonce %s after %d: got %d %s, want %d", nonce, last, a.Status, a.Body, status)
		}
		if status < 400 {
			last, _ = api.Integer([]byte(nonce))
		}
	}
	f("2", false, 401)
	f("3", false, 200)
	f("3", false, 401)
	f("3", true, 401)
	f("4", true, 201)
	f("4", true, 401)
	f("4", false, 401)
	f("2", false, 401)
	f("0000000000000000005", false, 200)
	f("5", false, 401)
	f("9999999999999999998", true, 201)
	f("9999999999999999999", false, 200)
	f("9999999999999999999", true, 401)
	h.Stop()
	h.Start()
	f("9999999999999999999", true, 401)
}

// detailCode is the body of a failure with a code.
func detailCode(f *api.Failure) string {
	return `{"detail":"` + f.Detail + `","code":"` + f.Code + `"}`
}

func TestMalformedNonceIsNamed(t *testing.T) {
	h := harness.Traded(t)
	before := h.Hash()
	f := func(nonce string, headers []string, body string) {
		t.Helper()
		for _, method := range []string{"GET", "POST"} {
			path := map[string]string{"GET": "/api/v1/orders/own/", "POST": "/api/v1/order-cancel/"}
			a := h.Do(method, path[method], "", "", headers...)
			harness.Want(t, method+" with nonce "+nonce, a, 401, body)
		}
	}
	const malformed = `{"detail":"X-NONCE must be 1 to 19 digits, and greater than the last one.",` +
		`"code":"nonce"}`
	f("missing", harness.Signed("bob", 5, "")[:4],
		`{"detail":"X-NONCE is missing.","code":"nonce"}`)
	for _, nonce := range []string{"0", "00000", "1.5", "1e9", "-5", "+5", "0x5", "five", "5 5",
		"10000000000000000000", "12345678901234567890123"} {
		s := harness.Signed("bob", 5, "")
		s[5] = nonce
		f(nonce, s, malformed)
		f(nonce, append([]string{"X-KEY", "key-nobody"}, s[2:]...), harness.Credentials)
		f(nonce, s[2:], harness.Credentials)
	}
	h.StillAt(before)
}

func TestChecksAreMadeInTheirOrder(t *testing.T) {
	h := harness.Traded(t)
	h.Key("bob", "reader", event.PermissionRead)
	h.Key("bob", "elsewhere", event.AllPermissions, "192.0.2.0/24", "2001:db8::/32")
	before := h.Hash()
	const nonce = 500
	good := harness.Order("buy", "BTC_USDT", "1", "1")
	wrong := func(s []string) []string { s[3] = strings.Repeat("ab", 32); return s }
	without := func(s []string) []string { return s[2:] }
	f := func(name string, a harness.Answer, status int, body string) {
		t.Helper()
		harness.Want(t, name, a, status, body)
	}
	do := func(method, path, kind, body string, headers []string) harness.Answer {
		t.Helper()
		return h.Do(method, path, kind, body, headers...)
	}
	malformed := harness.Detail(
		"The body could not be parsed. Malformed at position 1: expected a name in double quotes.")
	f("path before method", do("PUT", "/api/v1/orderr/?format=xml", "", "{", nil), 404,
		harness.Detail("Not found."))
	f("path before format and key", do("GET", "/api/v1/order/abc/?format=xml", "", "", nil), 404,
		harness.Detail("Not found."))
	f("method before format", do("PUT", "/api/v1/order/?format=xml", "", "{", nil), 405,
		harness.Detail(`Method "PUT" not allowed.`))
	f("format before key", do("POST", "/api/v1/order/?format=xml", harness.JsonType, "{", nil), 406,
		harness.Detail(api.NotAcceptable.Detail))
	f("key before address", do("POST", "/api/v1/order/", harness.JsonType, "{",
		without(harness.Signed("elsewhere", nonce, ""))), 401, harness.Credentials)
	f("address before body form", do("POST", "/api/v1/order/", harness.JsonType, "{",
		harness.Signed("elsewhere", nonce, "")), 403, harness.Detail(api.AddressNotAllowed.Detail))
	f("address before signature", do("GET", "/api/v1/wallets/", "", "",
		wrong(harness.Signed("elsewhere", nonce, ""))), 403,
		harness.Detail(api.AddressNotAllowed.Detail))
	f("body form before signature",
		do("POST", "/api/v1/order/", harness.JsonType, "{",
			wrong(harness.Signed("bob", nonce, ""))), 400,
		malformed)
	f("content type before signature",
		do("POST", "/api/v1/order/", "text/plain", "{", wrong(harness.Signed("bob", nonce, ""))),
		400,
		harness.Detail(api.UnknownContentType.Detail))
	f("duplicate before signature",
		do("POST", "/api/v1/order/", harness.FormType, "a=1&a=1",
			wrong(harness.Signed("bob", nonce, ""))), 400,
		`{"a":["This field appears more than once."]}`)
	f("query form before signature",
		do("GET", "/api/v1/wallets/?a=%zz", "", "", wrong(harness.Signed("bob", nonce, ""))), 400,
		harness.Detail(
			"The query could not be parsed. Malformed at position 2: expected '%' and two "+
				"hexadecimal digits."))
	f("body form before permission",
		do("POST", "/api/v1/order/", harness.JsonType, "{", harness.Signed("reader", nonce, "")),
		400, malformed)
	f("signature before permission",
		do("POST", "/api/v1/order/", harness.FormType, good,
			wrong(harness.Signed("reader", nonce, good))), 401,
		harness.WrongSign)
	f("permission before fields", do("POST", "/api/v1/order/", harness.FormType, "amount=x",
		harness.Signed("reader", nonce, "amount=x")), 403,
		harness.Detail("This key lacks the permission trade."))
	f("signature before fields", do("POST", "/api/v1/order/", harness.FormType, "amount=x",
		wrong(harness.Signed("bob", nonce, ""))), 401, harness.WrongSign)
	f("fields before nonce", do("POST", "/api/v1/order-cancel/", harness.FormType, "order=x",
		harness.Signed("bob", 1, "order=x")), 400, `{"order":["A valid integer is required."]}`)
	f("fields of a read before nonce",
		do("GET", "/api/v1/wallets/?currency_id=EUR", "", "", harness.Signed("bob", 1, "")), 400,
		`{"currency_id":["Unknown currency."]}`)
	h.StillAt(before)
}

func TestTheNonceIsCheckedBeforeTheFunds(t *testing.T) {
	h := harness.Traded(t)
	h.Key("bob", "reader", event.PermissionRead)
	const nonce = 500
	good, rich := harness.Order("buy", "BTC_USDT", "1", "1"),
		harness.Order("buy", "BTC_USDT", "1000", "1000")
	place := func(params string, nonce uint64) harness.Answer {
		t.Helper()
		return h.Do("POST", "/api/v1/order/", harness.FormType, params,
			harness.Signed("bob", nonce, params)...)
	}
	harness.Want(t, "nonce before funds", place(rich, 1), 401, harness.UsedNonce(2))
	harness.Want(t, "the nonce is still good", place(good, nonce), 201,
		`{"success":true,"type":"buy","date":T,"oid":4,"price":1,"amount":1,"amount_filled":0,"amount_original":1,"trades":[]}`)
	harness.Want(t, "and now used", place(good, nonce), 401, harness.UsedNonce(nonce))
	harness.Want(t, "of the other key too", h.Do("GET", "/api/v1/wallets?currency_id=ETH", "", "",
		harness.Signed("reader", nonce, "")...), 200,
		`[{"currency":"ETH","balance":0,"reserve":0}]`)
}

// switches is an exchange whose operator switches things off. Requests for them are refused in the
// same order of checks, on every path concerned.
type switches struct {
	*harness.Exchange
	before [32]byte // the state after the last switch
}

// switchedNonce is a good nonce of bob's keys, as long as no command of his is decided.
const switchedNonce = 500

func switchable(t *testing.T) *switches {
	h := harness.Traded(t)
	h.Key("bob", "reader", event.PermissionRead)
	return &switches{Exchange: h}
}

// ask sends a request with parameters as a form. A GET has none.
func (s *switches) ask(method, path, params string, headers []string) harness.Answer {
	s.T.Helper()
	kind := ""
	if method == "POST" {
		kind = harness.FormType
	}
	return s.Do(method, path, kind, params, headers...)
}

// each calls f for every private path, with a bad field for a POST.
func (s *switches) each(f func(method, path, needs, params string)) {
	const bad = "address=&amount=x&code=&order=x&pair=x&withdraw=x" // for every POST
	for _, p := range harness.ApiPaths {
		if method := strings.Split(p.Allow, ",")[0]; method == "POST" {
			f(method, p.Path, p.Needs, bad)
		} else if p.Needs != "" {
			f(method, p.Path, p.Needs, "")
		}
	}
}

// wrongly replaces a signature.
func wrongly(s []string) []string { s[3] = strings.Repeat("ab", 32); return s }

// set checks the error of a switch.
func (s *switches) set(_ actors.Admin, err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
	s.before = s.Hash()
}

func (s *switches) unchanged(what string) {
	s.T.Helper()
	if s.Hash() != s.before {
		s.T.Errorf("%s: a request refused before its wallet changed the state", what)
	}
}

func TestMaintenanceRefusesInTheOrderOfChecks(t *testing.T) {
	h := switchable(t)
	good := harness.Order("buy", "BTC_USDT", "1", "1")
	refused := func(what, path, params string, headers []string) {
		t.Helper()
		a := h.ask("POST", path, params, headers)
		harness.Want(t, what+path, a, 503,
			harness.Detail("The exchange is in maintenance. Back at nine."))
		if got := string(a.Header.Peek("Retry-After")); got != "30" {
			t.Errorf("%s: Retry-After is %q", path, got)
		}
	}
	h.set(h.Engine.Halt("test", "BTC_USDT", true))
	h.set(h.Engine.SetMaintenance(context.Background(), "test",
		event.Maintenance{On: true, Message: "Back at nine."}))
	refused("maintenance before halted", "/api/v1/order", good,
		harness.Signed("bob", switchedNonce, good))
	h.each(func(method, path, needs, params string) {
		if method == "GET" {
			return
		}
		harness.Want(t, "signature before maintenance "+path, h.ask(method, path, params,
			wrongly(harness.Signed("bob", switchedNonce, params))), 401, harness.WrongSign)
		harness.Want(t, "body form before maintenance "+path,
			h.ask(method, path, "a=1&a=1", harness.Signed("bob", switchedNonce, "")), 400,
			`{"a":["This field appears more than once."]}`)
		harness.Want(t, "permission before maintenance "+path,
			h.ask(method, path, params, harness.Signed("reader", switchedNonce, params)), 403,
			harness.Detail("This key lacks the permission "+needs+"."))
		refused("maintenance before fields ", path, params,
			harness.Signed("bob", switchedNonce, params))
		refused("maintenance before nonce ", path, "", harness.Signed("bob", 1, ""))
	})
	h.unchanged("maintenance")
	for _, path := range []string{"/api/v1/ticker", "/api/charts/BTC_USDT/D/chart",
		"/api/v1/orderbook/BTC_USDT", "/readyz"} {
		h.Do("GET", path, "", "").Is(t, 200, path, "in maintenance")
	}
	h.each(func(method, path, _, _ string) {
		if method == "GET" {
			h.Get("reader", path).Is(t, 200, path, "in maintenance")
		}
	})
}

func TestAMaintenanceWithCancelsTakesCancelsAlone(t *testing.T) {
	h := switchable(t)
	h.set(h.Engine.SetMaintenance(t.Context(), "test", event.Maintenance{On: true, Cancels: true}))
	taken := map[string]bool{
		"order": false, "order-amend": false, "order-test": false, "order-cancel": true,
		"order-batch":      false, // without a cancel
		"order-cancel-all": true, "order-cancel-after": false, "trading-settings": false,
		"withdraw": false, "withdraw-confirm": false, "withdraw-cancel": true,
	}
	h.each(func(method, path, _, params string) {
		if method == "GET" {
			h.Get("bob", path).Is(t, 200, path)
			return
		}
		a := h.ask("POST", path, params, harness.Signed("bob", switchedNonce, params))
		switch takes, known := taken[strings.TrimPrefix(path, "/api/v1/")]; {
		case !known:
			t.Errorf("%s: whether it is taken is not listed", path)
		case takes:
			a.Is(t, 400, path) // for its fields
		default:
			harness.Want(t, path, a, 503,
				harness.Detail("The exchange is in maintenance. Only cancels are accepted."))
		}
	})
	h.unchanged("a maintenance with cancels")
}

func TestFrozenAccountsAreRefusedInTheOrderOfChecks(t *testing.T) {
	h := switchable(t)
	h.set(h.Engine.SetMaintenance(context.Background(), "test",
		event.Maintenance{On: true, Message: "Back at nine."}))
	h.set(h.Engine.Freeze("test", "bob", true))
	frozen := harness.Detail(api.AccountFrozen.Detail)
	check := func(while string) {
		t.Helper()
		h.each(func(method, path, needs, params string) {
			harness.Want(t, "signature before frozen"+while+path, h.ask(method, path, params,
				wrongly(harness.Signed("bob", switchedNonce, params))), 401, harness.WrongSign)
			if needs != "read" {
				harness.Want(t, "permission before frozen"+while+path,
					h.ask(method, path, params, harness.Signed("reader", switchedNonce, params)),
					403,
					harness.Detail("This key lacks the permission "+needs+"."))
			}
			harness.Want(t, "frozen before fields"+while+path,
				h.ask(method, path, params, harness.Signed("bob", switchedNonce, params)), 403,
				frozen)
			harness.Want(t, "frozen before nonce"+while+path,
				h.ask(method, path, "", harness.Signed("bob", 1, "")), 403, frozen)
		})
		harness.Want(t, "a bad field of a read"+while,
			h.ask("GET", "/api/v1/wallets?currency_id=x", "",
				harness.Signed("bob", switchedNonce, "")), 403, frozen)
		h.unchanged("frozen" + while)
	}
	check(" in maintenance ")
	h.set(h.Engine.SetMaintenance(context.Background(), "test", event.Maintenance{}))
	check(" ")
	h.Get("alice", "/api/v1/wallets").Is(t, 200, "another account")
}

func TestHaltsRefuseInTheOrderOfChecks(t *testing.T) {
	h := switchable(t)
	h.set(h.Engine.Halt("test", "BTC_USDT", true))
	halted := harness.Detail("Trading on BTC_USDT is halted.")
	good, rich := harness.Order("buy", "BTC_USDT", "1", "1"),
		harness.Order("buy", "BTC_USDT", "1000", "1000")
	worse := harness.Order("buy", "BTC_USDT", "1000", "0.001")
	bobs := func(path, params string, nonce uint64) harness.Answer {
		t.Helper()
		return h.ask("POST", path, params, harness.Signed("bob", nonce, params))
	}
	harness.Want(t, "fields before halted", bobs("/api/v1/order", worse, switchedNonce), 400,
		`{"price":["At most 2 fractional digits are possible."]}`)
	harness.Want(t, "halted before nonce", bobs("/api/v1/order", good, 1), 403, halted)
	harness.Want(t, "halted before funds", bobs("/api/v1/order", rich, switchedNonce), 403, halted)
	harness.Want(t, "fields before e-mail",
		bobs("/api/v1/withdraw", "address=x&amount=0&currency=BTC", switchedNonce), 400,
		`{"amount":["A number above 0 is required."]}`)
	harness.Want(t, "e-mail before nonce and funds",
		bobs("/api/v1/withdraw", "address=x&amount=1&currency=BTC", 1), 400,
		harness.Detail(api.NoEmail.Detail))
	h.unchanged("halted")
	harness.Want(t, "a cancel works, with the nonce that nothing has used",
		bobs("/api/v1/order-cancel", "order=3", switchedNonce), 200, `{"order":3}`)
	harness.Want(t, "another pair works", h.Post("alice", "/api/v1/order",
		harness.Order("sell", "ETH_BTC", "1", "1")), 400,
		`{"date":T,"error":"Out of balance -1 ETH"}`)
	harness.Want(t, "a cancel of all works", h.Post("alice", "/api/v1/order-cancel-all", "all=1"),
		200, `{"orders":[1]}`)
	h.Verify()
}

// A query may be unsigned; otherwise it is signed as sent or with its parameters sorted.
func TestAGETIsSignedByItsKeyAloneOrWithItsQuery(t *testing.T) {
	h := harness.Traded(t)
	nonce := uint64(100)
	f := func(query, message string, status int) {
		t.Helper()
		nonce++
		a := h.Do("GET", "/api/v1/orders/own/"+query, "", "",
			harness.Signed("bob", nonce, message)...)
		if a.Status != status || status == 401 && a.Body != harness.WrongSign {
			t.Errorf("%s signed as %q: %d %s", query, message, a.Status, a.Body)
		}
	}
	f("", "", 200)
	f("?pair=BTC_USDT&limit=5", "", 200)
	f("?pair=BTC_USDT&limit=5", "limit=5&pair=BTC_USDT", 200)
	f("?pair=BTC_USDT&limit=5", "pair=BTC_USDT&limit=5", 200)
	f("?x=a%20b", "x=a%20b", 200)
	f("?x=a+b", "x=a%20b", 200)
	f("?x=a%20b", "x=a+b", 200)
	f("?pair=BTC_USDT&limit=5", "limit=6&pair=BTC_USDT", 401)
	f("?pair=BTC_USDT&limit=5", "limit=5", 401)
	f("?pair=BTC_USDT", "?pair=BTC_USDT", 401)
	f("", "limit=5", 401)
	// A client that signs a query gives its content away, whatever it is.
	f("?all=1", "", 200)
	f("?all=1&limit=5", "all=1&limit=5", 200)
	f("?all=", "all=", 200)
	f("?a%6Cl=1", "all=1", 200)
	f("?a%6Cl=1", "a%6Cl=1", 200)
}

// The parts that a signature does not cover. Because of them the API is to be used over TLS only
// (docs/security.md). Clients rely on it.
func TestASignatureCoversNeitherNonceNorPath(t *testing.T) {
	h := harness.Traded(t)
	p := harness.Order("buy", "BTC_USDT", "1", "1")
	for nonce := uint64(100); nonce < 102; nonce++ {
		s := harness.Signed("bob", 100, p)
		s[5] = strconv.FormatUint(nonce, 10)
		h.Do("POST", "/api/v1/order/", harness.FormType, p, s...).Is(t, 201, "nonce", nonce)
	}
	s := harness.Signed("bob", 200, p) // of an order, which names a pair
	if a := h.Do("POST", "/api/v1/order-cancel-all/", harness.FormType, p, s...); a.Status != 200 ||
		strings.Count(a.Body, ",") < 2 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// A signature of no parameters is that of every GET of its key. A thief that has seen one changes
// nothing with it.
func TestTheSignatureOfAGETDoesNothingElse(t *testing.T) {
	h := harness.Traded(t)
	before := h.Hash()
	for _, p := range harness.ApiPaths {
		if !strings.HasPrefix(p.Allow, "POST") {
			continue
		}
		for _, body := range []struct{ kind, text string }{{"", ""}, {harness.FormType, ""},
			{harness.JsonType, ""}, {harness.JsonType, "{}"}, {harness.FormType, "&"}} {
			a := h.Do("POST", p.Path, body.kind, body.text, harness.Signed("bob", 1000, "")...)
			if a.Status != 400 || !strings.Contains(a.Body, api.FieldRequired) {
				t.Errorf("%s with %q: %d %s", p.Path, body.text, a.Status, a.Body)
			}
		}
	}
	harness.Want(t, "cancel all", h.Post("bob", "/api/v1/order-cancel-all/", ""), 400,
		`{"all":["This field is required."]}`)
	h.StillAt(before)
}

// The parameters are signed, in JSON as in a form, and none of them may be another.
func TestSignedParametersAreAcceptedInJSONAndInForms(t *testing.T) {
	h := harness.Traded(t)
	const sorted = "amount=1&note=a%20b%2B%28c%29%21%2A%27~%2F%C3%A9&pair=BTC_USDT&price=0.50" +
		"&type=buy"
	const body = `{"type":"buy","price":0.50,"pair":"BTC_USDT","note":"a b+(c)!*'~\/\u00e9",` +
		`"amount":"1"}`
	// as no library writes it
	const form = "type=buy&price=0.50&pair=%42TC_USDT&note=a+b%2b(c)%21*%27~/%c3%a9&amount=1"
	f := func(what, kind, body, message string, ok bool) {
		t.Helper()
		n := h.NextNonce("bob")
		a := h.Do("POST", "/api/v1/order/", kind, body, harness.Signed("bob", n, message)...)
		if ok && a.Status != 201 || !ok && (a.Status != 401 || a.Body != harness.WrongSign) {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	f("JSON", harness.JsonType, body, sorted, true)
	f("JSON with charset", "Application/JSON ; charset=UTF-8", body, sorted, true)
	f("form", harness.FormType, form, sorted, true)
	f("sorted form", harness.FormType+"; charset=utf-8", sorted, sorted, true)
	f("form as sent", harness.FormType, form, form, true)
	f("one value is another", harness.JsonType, strings.Replace(body, "0.50", "0.5", 1), sorted,
		false)
	f("one parameter more", harness.JsonType, strings.Replace(body, "{", `{"x":"",`, 1), sorted,
		false)
	f("form as sent by another", harness.FormType, strings.Replace(form, "amount=1", "amount=2", 1),
		form, false)
	f("JSON as sent", harness.JsonType, body, body, false)
	f("the key alone", harness.JsonType, body, "", false)
	f("the key alone", harness.FormType, form, "", false)
	f("unknown nested values", harness.JsonType,
		`{"amount":1,"extra":{"b":[1, 2],"a":null},"flag":true,`+
			`"none":null,"pair":"BTC_USDT","price":1,"type":"buy"}`,
		"amount=1&extra=%7B%22b%22%3A%5B1%2C%202%5D%2C%22a%22%3Anull%7D"+
			"&flag=true&none=null&pair=BTC_USDT&price=1&type=buy", true)
}
