package gateway

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/gateway/params"
	"exchange/gateway/sign"
)

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// signedJSON are the headers of a JSON body. A body that cannot be parsed is signed by the key
// alone.
func signedJSON(account string, nonce uint64, body string) []string {
	var set params.Set
	if err := set.ParseJSON([]byte(body)); err != nil {
		set.Reset()
	}
	return signed(account, nonce, string(sign.AppendMessage(nil, nil, &set, false)))
}

func (h *harness) postJSON(account string, nonce uint64, path, body string) answer {
	h.t.Helper()
	return h.do("POST", path, jsonType, body, signedJSON(account, nonce, body)...)
}

// hash is the digest of the whole committed state, whose invariants hold.
func (h *harness) hash() [32]byte {
	h.t.Helper()
	q := new(committed.Hash)
	worked(h.t, h.engine.Ask(q, nil, 0))
	return q.Hash
}

// key makes an API key "key-NAME" with the secret "secret-NAME".
func (h *harness) key(account, name string, permissions uint8, allow ...string) {
	h.t.Helper()
	h.done(h.engine.CreateKey("test", account, "key-"+name, "secret-"+name, permissions, allow))
}

var (
	credentials = detail("Incorrect authentication credentials.")
	wrongSign   = detail("Wrong signature")
)

// usedNonce is the refusal of a nonce when the key's last one was another.
func usedNonce(last uint64) string {
	return `{"detail":"Wrong Nonce","code":"nonce","last":` + strconv.FormatUint(last, 10) + `}`
}

func TestANonceMustGrowForReadsAndCommandsAlike(t *testing.T) {
	h := traded(t)
	last := uint64(2) // trading() has used 1 and 2
	f := func(nonce string, post bool, status int) {
		t.Helper()
		p := ""
		if post {
			p = order("buy", "BTC_USDT", "1", "1")
		}
		s := signed("bob", 1, p)
		s[5] = nonce
		a := h.do("GET", "/api/v1/wallets/", "", "", s...)
		if post {
			a = h.do("POST", "/api/v1/order/", formType, p, s...)
		}
		if a.status != status || status == 401 && a.body != usedNonce(last) {
			t.Errorf("nonce %s after %d: got %d %s, want %d", nonce, last, a.status, a.body, status)
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
	h.stop()
	h.start()
	f("9999999999999999999", true, 401)
}

// detailCode is the body of a failure with a code.
func detailCode(f *api.Failure) string {
	return `{"detail":"` + f.Detail + `","code":"` + f.Code + `"}`
}

func TestMalformedNonceIsNamed(t *testing.T) {
	h := traded(t)
	before := h.hash()
	f := func(nonce string, headers []string, body string) {
		t.Helper()
		for _, method := range []string{"GET", "POST"} {
			path := map[string]string{"GET": "/api/v1/orders/own/", "POST": "/api/v1/order-cancel/"}
			a := h.do(method, path[method], "", "", headers...)
			want(t, method+" with nonce "+nonce, a, 401, body)
		}
	}
	const malformed = `{"detail":"X-NONCE must be 1 to 19 digits, and greater than the last one.",` +
		`"code":"nonce"}`
	f("missing", signed("bob", 5, "")[:4], `{"detail":"X-NONCE is missing.","code":"nonce"}`)
	for _, nonce := range []string{"0", "00000", "1.5", "1e9", "-5", "+5", "0x5", "five", "5 5",
		"10000000000000000000", "12345678901234567890123"} {
		s := signed("bob", 5, "")
		s[5] = nonce
		f(nonce, s, malformed)
		f(nonce, append([]string{"X-KEY", "key-nobody"}, s[2:]...), credentials)
		f(nonce, s[2:], credentials)
	}
	h.stillAt(before)
}

func TestChecksAreMadeInTheirOrder(t *testing.T) {
	h := traded(t)
	h.key("bob", "reader", event.PermissionRead)
	h.key("bob", "elsewhere", event.AllPermissions, "192.0.2.0/24", "2001:db8::/32")
	before := h.hash()
	const nonce = 500
	good := order("buy", "BTC_USDT", "1", "1")
	wrong := func(s []string) []string { s[3] = strings.Repeat("ab", 32); return s }
	without := func(s []string) []string { return s[2:] }
	f := func(name string, a answer, status int, body string) {
		t.Helper()
		want(t, name, a, status, body)
	}
	do := func(method, path, kind, body string, headers []string) answer {
		t.Helper()
		return h.do(method, path, kind, body, headers...)
	}
	malformed := detail(
		"The body could not be parsed. Malformed at position 1: expected a name in double quotes.")
	f("path before method", do("PUT", "/api/v1/orderr/?format=xml", "", "{", nil), 404,
		detail("Not found."))
	f("path before format and key", do("GET", "/api/v1/order/abc/?format=xml", "", "", nil), 404,
		detail("Not found."))
	f("method before format", do("PUT", "/api/v1/order/?format=xml", "", "{", nil), 405,
		detail(`Method "PUT" not allowed.`))
	f("format before key", do("POST", "/api/v1/order/?format=xml", jsonType, "{", nil), 406,
		detail(api.NotAcceptable.Detail))
	f("key before address", do("POST", "/api/v1/order/", jsonType, "{",
		without(signed("elsewhere", nonce, ""))), 401, credentials)
	f("address before body form", do("POST", "/api/v1/order/", jsonType, "{",
		signed("elsewhere", nonce, "")), 403, detail(api.AddressNotAllowed.Detail))
	f("address before signature", do("GET", "/api/v1/wallets/", "", "",
		wrong(signed("elsewhere", nonce, ""))), 403, detail(api.AddressNotAllowed.Detail))
	f("body form before signature",
		do("POST", "/api/v1/order/", jsonType, "{", wrong(signed("bob", nonce, ""))), 400,
		malformed)
	f("content type before signature",
		do("POST", "/api/v1/order/", "text/plain", "{", wrong(signed("bob", nonce, ""))), 400,
		detail(api.UnknownContentType.Detail))
	f("duplicate before signature",
		do("POST", "/api/v1/order/", formType, "a=1&a=1", wrong(signed("bob", nonce, ""))), 400,
		`{"a":["This field appears more than once."]}`)
	f("query form before signature",
		do("GET", "/api/v1/wallets/?a=%zz", "", "", wrong(signed("bob", nonce, ""))), 400,
		detail(
			"The query could not be parsed. Malformed at position 2: expected '%' and two "+
				"hexadecimal digits."))
	f("body form before permission",
		do("POST", "/api/v1/order/", jsonType, "{", signed("reader", nonce, "")), 400, malformed)
	f("signature before permission",
		do("POST", "/api/v1/order/", formType, good, wrong(signed("reader", nonce, good))), 401,
		wrongSign)
	f("permission before fields", do("POST", "/api/v1/order/", formType, "amount=x",
		signed("reader", nonce, "amount=x")), 403, detail("This key lacks the permission trade."))
	f("signature before fields", do("POST", "/api/v1/order/", formType, "amount=x",
		wrong(signed("bob", nonce, ""))), 401, wrongSign)
	f("fields before nonce", do("POST", "/api/v1/order-cancel/", formType, "order=x",
		signed("bob", 1, "order=x")), 400, `{"order":["A valid integer is required."]}`)
	f("fields of a read before nonce",
		do("GET", "/api/v1/wallets/?currency_id=EUR", "", "", signed("bob", 1, "")), 400,
		`{"currency_id":["Unknown currency."]}`)
	h.stillAt(before)
}

func TestTheNonceIsCheckedBeforeTheFunds(t *testing.T) {
	h := traded(t)
	h.key("bob", "reader", event.PermissionRead)
	const nonce = 500
	good, rich := order("buy", "BTC_USDT", "1", "1"), order("buy", "BTC_USDT", "1000", "1000")
	place := func(params string, nonce uint64) answer {
		t.Helper()
		return h.do("POST", "/api/v1/order/", formType, params, signed("bob", nonce, params)...)
	}
	want(t, "nonce before funds", place(rich, 1), 401, usedNonce(2))
	want(t, "the nonce is still good", place(good, nonce), 201,
		`{"success":true,"type":"buy","date":T,"oid":4,"price":1,"amount":1,"amount_filled":0,"amount_original":1,"trades":[]}`)
	want(t, "and now used", place(good, nonce), 401, usedNonce(nonce))
	want(t, "of the other key too", h.do("GET", "/api/v1/wallets?currency_id=ETH", "", "",
		signed("reader", nonce, "")...), 200, `[{"currency":"ETH","balance":0,"reserve":0}]`)
}

// switches is an exchange whose operator switches things off. Requests for them are refused in the
// same order of checks, on every path concerned.
type switches struct {
	*harness
	before [32]byte // the state after the last switch
}

// switchedNonce is a good nonce of bob's keys, as long as no command of his is decided.
const switchedNonce = 500

func switchable(t *testing.T) *switches {
	h := traded(t)
	h.key("bob", "reader", event.PermissionRead)
	return &switches{harness: h}
}

// ask sends a request with parameters as a form. A GET has none.
func (s *switches) ask(method, path, params string, headers []string) answer {
	s.t.Helper()
	kind := ""
	if method == "POST" {
		kind = formType
	}
	return s.do(method, path, kind, params, headers...)
}

// each calls f for every private path, with a bad field for a POST.
func (s *switches) each(f func(method, path, needs, params string)) {
	const bad = "address=&amount=x&code=&order=x&pair=x&withdraw=x" // for every POST
	for _, p := range apiPaths {
		if method := strings.Split(p.allow, ",")[0]; method == "POST" {
			f(method, p.path, p.needs, bad)
		} else if p.needs != "" {
			f(method, p.path, p.needs, "")
		}
	}
}

// wrongly replaces a signature.
func wrongly(s []string) []string { s[3] = strings.Repeat("ab", 32); return s }

// set checks the error of a switch.
func (s *switches) set(_ actors.Admin, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.before = s.hash()
}

func (s *switches) unchanged(what string) {
	s.t.Helper()
	if s.hash() != s.before {
		s.t.Errorf("%s: a request refused before its wallet changed the state", what)
	}
}

func TestMaintenanceRefusesInTheOrderOfChecks(t *testing.T) {
	h := switchable(t)
	good := order("buy", "BTC_USDT", "1", "1")
	refused := func(what, path, params string, headers []string) {
		t.Helper()
		a := h.ask("POST", path, params, headers)
		want(t, what+path, a, 503, detail("The exchange is in maintenance. Back at nine."))
		if got := string(a.header.Peek("Retry-After")); got != "30" {
			t.Errorf("%s: Retry-After is %q", path, got)
		}
	}
	h.set(h.engine.Halt("test", "BTC_USDT", true))
	h.set(h.engine.SetMaintenance(context.Background(), "test",
		event.Maintenance{On: true, Message: "Back at nine."}))
	refused("maintenance before halted", "/api/v1/order", good, signed("bob", switchedNonce, good))
	h.each(func(method, path, needs, params string) {
		if method == "GET" {
			return
		}
		want(t, "signature before maintenance "+path, h.ask(method, path, params,
			wrongly(signed("bob", switchedNonce, params))), 401, wrongSign)
		want(t, "body form before maintenance "+path,
			h.ask(method, path, "a=1&a=1", signed("bob", switchedNonce, "")), 400,
			`{"a":["This field appears more than once."]}`)
		want(t, "permission before maintenance "+path,
			h.ask(method, path, params, signed("reader", switchedNonce, params)), 403,
			detail("This key lacks the permission "+needs+"."))
		refused("maintenance before fields ", path, params, signed("bob", switchedNonce, params))
		refused("maintenance before nonce ", path, "", signed("bob", 1, ""))
	})
	h.unchanged("maintenance")
	for _, path := range []string{"/api/v1/ticker", "/api/charts/BTC_USDT/D/chart",
		"/api/v1/orderbook/BTC_USDT", "/readyz"} {
		h.do("GET", path, "", "").is(t, 200, path, "in maintenance")
	}
	h.each(func(method, path, _, _ string) {
		if method == "GET" {
			h.get("reader", path).is(t, 200, path, "in maintenance")
		}
	})
}

func TestAMaintenanceWithCancelsTakesCancelsAlone(t *testing.T) {
	h := switchable(t)
	h.set(h.engine.SetMaintenance(t.Context(), "test", event.Maintenance{On: true, Cancels: true}))
	taken := map[string]bool{
		"order": false, "order-amend": false, "order-test": false, "order-cancel": true,
		"order-batch":      false, // without a cancel
		"order-cancel-all": true, "order-cancel-after": false, "trading-settings": false,
		"withdraw": false, "withdraw-confirm": false, "withdraw-cancel": true,
	}
	h.each(func(method, path, _, params string) {
		if method == "GET" {
			h.get("bob", path).is(t, 200, path)
			return
		}
		a := h.ask("POST", path, params, signed("bob", switchedNonce, params))
		switch takes, known := taken[strings.TrimPrefix(path, "/api/v1/")]; {
		case !known:
			t.Errorf("%s: whether it is taken is not listed", path)
		case takes:
			a.is(t, 400, path) // for its fields
		default:
			want(t, path, a, 503,
				detail("The exchange is in maintenance. Cancels alone are taken."))
		}
	})
	h.unchanged("a maintenance with cancels")
}

func TestFrozenAccountsAreRefusedInTheOrderOfChecks(t *testing.T) {
	h := switchable(t)
	h.set(h.engine.SetMaintenance(context.Background(), "test",
		event.Maintenance{On: true, Message: "Back at nine."}))
	h.set(h.engine.Freeze("test", "bob", true))
	frozen := detail(api.AccountFrozen.Detail)
	check := func(while string) {
		t.Helper()
		h.each(func(method, path, needs, params string) {
			want(t, "signature before frozen"+while+path, h.ask(method, path, params,
				wrongly(signed("bob", switchedNonce, params))), 401, wrongSign)
			if needs != "read" {
				want(t, "permission before frozen"+while+path,
					h.ask(method, path, params, signed("reader", switchedNonce, params)), 403,
					detail("This key lacks the permission "+needs+"."))
			}
			want(t, "frozen before fields"+while+path,
				h.ask(method, path, params, signed("bob", switchedNonce, params)), 403, frozen)
			want(t, "frozen before nonce"+while+path,
				h.ask(method, path, "", signed("bob", 1, "")), 403, frozen)
		})
		want(t, "a bad field of a read"+while, h.ask("GET", "/api/v1/wallets?currency_id=x", "",
			signed("bob", switchedNonce, "")), 403, frozen)
		h.unchanged("frozen" + while)
	}
	check(" in maintenance ")
	h.set(h.engine.SetMaintenance(context.Background(), "test", event.Maintenance{}))
	check(" ")
	h.get("alice", "/api/v1/wallets").is(t, 200, "another account")
}

func TestHaltsRefuseInTheOrderOfChecks(t *testing.T) {
	h := switchable(t)
	h.set(h.engine.Halt("test", "BTC_USDT", true))
	halted := detail("Trading on BTC_USDT is halted.")
	good, rich := order("buy", "BTC_USDT", "1", "1"), order("buy", "BTC_USDT", "1000", "1000")
	worse := order("buy", "BTC_USDT", "1000", "0.001")
	bobs := func(path, params string, nonce uint64) answer {
		t.Helper()
		return h.ask("POST", path, params, signed("bob", nonce, params))
	}
	want(t, "fields before halted", bobs("/api/v1/order", worse, switchedNonce), 400,
		`{"price":["At most 2 fractional digits are possible."]}`)
	want(t, "halted before nonce", bobs("/api/v1/order", good, 1), 403, halted)
	want(t, "halted before funds", bobs("/api/v1/order", rich, switchedNonce), 403, halted)
	want(t, "fields before e-mail",
		bobs("/api/v1/withdraw", "address=x&amount=0&currency=BTC", switchedNonce), 400,
		`{"amount":["A number above 0 is required."]}`)
	want(t, "e-mail before nonce and funds",
		bobs("/api/v1/withdraw", "address=x&amount=1&currency=BTC", 1), 400,
		detail(api.NoEmail.Detail))
	h.unchanged("halted")
	want(t, "a cancel works, with the nonce that nothing has used",
		bobs("/api/v1/order-cancel", "order=3", switchedNonce), 200, `{"order":3}`)
	want(t, "another pair works", h.post("alice", "/api/v1/order",
		order("sell", "ETH_BTC", "1", "1")), 400, `{"date":T,"error":"Out of balance -1 ETH"}`)
	want(t, "a cancel of all works", h.post("alice", "/api/v1/order-cancel-all", "all=1"), 200,
		`{"orders":[1]}`)
	h.verify()
}

// A query may be unsigned; otherwise it is signed as sent or with its parameters sorted.
func TestAGETIsSignedByItsKeyAloneOrWithItsQuery(t *testing.T) {
	h := traded(t)
	nonce := uint64(100)
	f := func(query, message string, status int) {
		t.Helper()
		nonce++
		a := h.do("GET", "/api/v1/orders/own/"+query, "", "", signed("bob", nonce, message)...)
		if a.status != status || status == 401 && a.body != wrongSign {
			t.Errorf("%s signed as %q: %d %s", query, message, a.status, a.body)
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
	h := traded(t)
	p := order("buy", "BTC_USDT", "1", "1")
	for nonce := uint64(100); nonce < 102; nonce++ {
		s := signed("bob", 100, p)
		s[5] = strconv.FormatUint(nonce, 10)
		h.do("POST", "/api/v1/order/", formType, p, s...).is(t, 201, "nonce", nonce)
	}
	s := signed("bob", 200, p) // of an order, which names a pair
	if a := h.do("POST", "/api/v1/order-cancel-all/", formType, p, s...); a.status != 200 ||
		strings.Count(a.body, ",") < 2 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A signature of no parameters is that of every GET of its key. A thief that has seen one changes
// nothing with it.
func TestTheSignatureOfAGETDoesNothingElse(t *testing.T) {
	h := traded(t)
	before := h.hash()
	for _, p := range apiPaths {
		if !strings.HasPrefix(p.allow, "POST") {
			continue
		}
		for _, body := range []struct{ kind, text string }{{"", ""}, {formType, ""}, {jsonType, ""},
			{jsonType, "{}"}, {formType, "&"}} {
			a := h.do("POST", p.path, body.kind, body.text, signed("bob", 1000, "")...)
			if a.status != 400 || !strings.Contains(a.body, api.FieldRequired) {
				t.Errorf("%s with %q: %d %s", p.path, body.text, a.status, a.body)
			}
		}
	}
	want(t, "cancel all", h.post("bob", "/api/v1/order-cancel-all/", ""), 400,
		`{"all":["This field is required."]}`)
	h.stillAt(before)
}

// The parameters are signed, in JSON as in a form, and none of them may be another.
func TestSignedParametersAreAcceptedInJSONAndInForms(t *testing.T) {
	h := traded(t)
	const sorted = "amount=1&note=a%20b%2B%28c%29%21%2A%27~%2F%C3%A9&pair=BTC_USDT&price=0.50" +
		"&type=buy"
	const body = `{"type":"buy","price":0.50,"pair":"BTC_USDT","note":"a b+(c)!*'~\/\u00e9",` +
		`"amount":"1"}`
	// as no library writes it
	const form = "type=buy&price=0.50&pair=%42TC_USDT&note=a+b%2b(c)%21*%27~/%c3%a9&amount=1"
	f := func(what, kind, body, message string, ok bool) {
		t.Helper()
		n := h.nextNonce("bob")
		a := h.do("POST", "/api/v1/order/", kind, body, signed("bob", n, message)...)
		if ok && a.status != 201 || !ok && (a.status != 401 || a.body != wrongSign) {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	f("JSON", jsonType, body, sorted, true)
	f("JSON with charset", "Application/JSON ; charset=UTF-8", body, sorted, true)
	f("form", formType, form, sorted, true)
	f("sorted form", formType+"; charset=utf-8", sorted, sorted, true)
	f("form as sent", formType, form, form, true)
	f("one value is another", jsonType, strings.Replace(body, "0.50", "0.5", 1), sorted, false)
	f("one parameter more", jsonType, strings.Replace(body, "{", `{"x":"",`, 1), sorted, false)
	f("form as sent by another", formType, strings.Replace(form, "amount=1", "amount=2", 1), form,
		false)
	f("JSON as sent", jsonType, body, body, false)
	f("the key alone", jsonType, body, "", false)
	f("the key alone", formType, form, "", false)
	f("unknown nested values", jsonType, `{"amount":1,"extra":{"b":[1, 2],"a":null},"flag":true,`+
		`"none":null,"pair":"BTC_USDT","price":1,"type":"buy"}`,
		"amount=1&extra=%7B%22b%22%3A%5B1%2C%202%5D%2C%22a%22%3Anull%7D"+
			"&flag=true&none=null&pair=BTC_USDT&price=1&type=buy", true)
}
