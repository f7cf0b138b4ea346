package operator_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/actors"
	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

func TestTheOperatorNeedsItsToken(t *testing.T) {
	h := harness.New(t, nil)
	h.Gateway.Operators().Operator.AllowGuesses() // as many guesses as there are headers
	ask := harness.AsOperator(t, h.Gateway)
	for _, header := range []string{"", "Authorization: ", "Authorization: Bearer",
		"Authorization: Bearer ", "Authorization: Bearer wrong",
		"Authorization: " + harness.OperatorToken,
		"Authorization: Basic " + harness.OperatorToken,
		"Authorization: Bearer " + harness.OperatorToken + "x",
		"Authorization: Bearer " + harness.OperatorToken[1:],
		"Authorization: Bearer  " + harness.OperatorToken,
		"X-Token: " + harness.OperatorToken} {
		for _, path := range []string{"/operator/v1/accounts", "/unknown", "/"} {
			harness.Says(t, header, ask("GET", path, "", header), 401,
				harness.Refusal("the bearer token is missing or wrong"))
		}
	}
	harness.Says(t, "the right one", ask("GET", "/operator/v1/accounts", ""), 200,
		`{"accounts":[]}`)

	// without a token no client is the operator
	open := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10})
	open.SetEngine(h.Engine)
	harness.Says(t, "no token", harness.AsOperator(t, open)("GET", "/operator/v1/accounts", "",
		"Authorization: Bearer "), 401, harness.Refusal("the bearer token is missing or wrong"))
}

func TestOperatorGets404ForUnknownPaths(t *testing.T) {
	h := harness.New(t, nil)
	ask := harness.AsOperator(t, h.Gateway)
	for _, p := range []string{"GET /", "GET /operator/v1/", "GET /api/v1/pairs/",
		"PUT /operator/v1/accounts", "DELETE /operator/v1/keys", "GET /operator/v1/deposits",
		"GET /operator/v1/keys/revoke", "HEAD /operator/v1/accounts",
		"POST /operator/v1/accounts/x"} {
		method, path, _ := strings.Cut(p, " ")
		a := ask(method, path, "{}")
		if method == "HEAD" {
			if a.Status != http.StatusNotFound {
				t.Errorf("%s: %d", p, a.Status)
			}
			continue
		}
		harness.Says(t, p, a, 404, harness.Refusal("there is no "+p))
	}
	harness.Says(t, "a slash", ask("GET", "/operator/v1/accounts/", ""), 200, `{"accounts":[]}`)
	a := ask("POST", "/operator/v1/accounts", strings.Repeat(" ", 64<<10)+"{}")
	harness.Says(t, "too large", a, 413, harness.Refusal("The body is larger than 65536 bytes."))
}

func TestMemberOfWrongTypeIsNamedInJSONTerms(t *testing.T) {
	h := harness.New(t, nil)
	ask := harness.AsOperator(t, h.Gateway)
	const not = "the body is not the JSON object that is expected: "
	for body, want := range map[string]string{
		`{"account":1,"on":true}`: "account has to be text, and is of the type number",
		`{"account":"alice","on":"yes"}`: "on has to be true or false, and is of the type " +
			"string",
		`[]`: "it has to be an object, and is of the type array",
	} {
		harness.Says(t, body, ask("POST", "/operator/v1/accounts/freeze", body), 400,
			harness.Refusal(not+want))
	}
	harness.Says(t, "a list", ask("POST", "/operator/v1/keys", `{"account":"alice","allow":"::1"}`),
		400, harness.Refusal(not+"allow has to be a list, and is of the type string"))
	harness.Says(t, "a number", ask("POST", "/operator/v1/withdraws/approve", `{"withdraw":-1}`),
		400,
		harness.Refusal(not+"withdraw has to be a whole number of its range, and is of the type "+
			"number -1"))
}

func TestTheOperatorsBodiesAreTakenLiterally(t *testing.T) {
	h := harness.New(t, nil)
	ask := harness.AsOperator(t, h.Gateway)
	for _, path := range []string{"accounts", "accounts/freeze",
		"accounts/email", "accounts/close", "keys", "keys/revoke", "deposits",
		"adjustments", "withdraws/approve", "withdraws/refuse", "orders/cancel",
		"orders/cancel-all", "pairs/halt", "fees", "maintenance", "audit"} {
		for _, body := range []string{`{"":1,"":1}`, `null null`, `{"on":tru}`, `{"\ud800":1}`,
			"\ufeff{}", strings.Repeat("[", 20_000), "", " ", "{", "[]", `"x"`, "1",
			`{"nane":"alice"}`, `{"account":1}`, `{"name":["alice"]}`, `{"key":{}}`, `{}{}`, `{}x`,
			`{}}`, `{}]`, `{"amount":"one"}`, "name=alice"} {
			a := ask("POST", "/operator/v1/"+path, body)
			var got map[string]string
			if err := json.Unmarshal([]byte(a.Body), &got); err != nil || a.Status != 400 ||
				len(got) != 1 || len(got["error"]) < 20 {
				t.Errorf("%s %s: %d %s", path, body, a.Status, a.Body)
			}
		}
	}
	harness.Says(t, "nothing was done", ask("GET", "/operator/v1/accounts", ""), 200,
		`{"accounts":[]}`)
}

func TestAccountsAreOpenedAndListed(t *testing.T) {
	h := harness.New(t, nil)
	ask := harness.AsOperator(t, h.Gateway)
	f := func(body string, status int, answer string) {
		t.Helper()
		harness.Says(t, body, ask("POST", "/operator/v1/accounts", body), status, answer)
	}
	f(`{"name":"alice","email":"alice@example.org"}`, 200,
		`{"account":"alice","id":1,"email":"alice@example.org"}`)
	f(`{"name":"alice"}`, 400, harness.Refusal("account alice exists already"))
	f(`{"name":"bob"}`, 200, `{"account":"bob","id":2,"email":""}`)
	long := "0" + strings.Repeat("z", 63)
	f(`{"name":"`+long+`"}`, 200, `{"account":"`+long+`","id":3,"email":""}`)
	for _, name := range []string{"", "Alice", ".a", "-a", "_a", "a b", "a/b", "\u00e9", "a\n",
		long + "z", "<b>"} {
		f(`{"name":`+harness.Quote(name)+`}`, 400,
			harness.Refusal(
				fmt.Sprintf(
					"account name %.80q: 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a "+
						"letter or a digit", name)))
	}
	for _, email := range []string{"x", "@", "a@", "@b", "a@b@c", "a b@c", "a@b c",
		"a@b\r\nBcc: c@d", strings.Repeat("a", 65) + "@b"} {
		f(`{"name":"carol","email":`+harness.Quote(email)+`}`, 400,
			harness.Refusal(fmt.Sprintf("%.80q is not an e-mail address", email)))
	}
	f(`{"name":"a.b_c-1","email":"`+"\u00fc@b"+`"}`, 200,
		`{"account":"a.b_c-1","id":4,"email":"`+"\u00fc@b"+`"}`)
	harness.Says(t, "list", ask("GET", "/operator/v1/accounts", ""), 200,
		`{"accounts":[{"account":"alice","id":1,"email":"alice@example.org","frozen":false},{"account":"bob","id":2,"email":"","frozen":false},`+
			`{"account":"`+long+`","id":3,"email":"","frozen":false},{"account":"a.b_c-1","id":4,"email":"`+
			"\u00fc@b"+`","frozen":false}]}`)
	page := func(query string, status int, answer string) {
		t.Helper()
		harness.Says(t, query, ask("GET", "/operator/v1/accounts"+query, ""), status, answer)
	}
	page("?limit=1", 200,
		`{"accounts":[{"account":"alice","id":1,"email":"alice@example.org","frozen":false}],"next":1}`)
	page("?limit=1&after=1", 200, `{"accounts":[{"account":"bob","id":2,"email":"","frozen":false}],"next":2}`)
	page("?after=3", 200, `{"accounts":[{"account":"a.b_c-1","id":4,"email":"`+"\u00fc@b"+`","frozen":false}]}`)
	page("?after=4", 200, `{"accounts":[]}`)
	page("?after=9999999999999999999", 200, `{"accounts":[]}`)
	page("?after=-1", 400, harness.Refusal("after: the id of an account"))
	page("?limit=0", 400, harness.Refusal("limit: 1 to 100000"))
}

func TestKeysAreMadeListedAndRevoked(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("alice") // with one key
	h.Account("bob")
	h.Done(h.Engine.RevokeKey("test", "key-bob"))
	ask := harness.AsOperator(t, h.Gateway)
	var keys, secrets []string
	f := func(body string, status int, text string) {
		t.Helper()
		a := ask("POST", "/operator/v1/keys", body)
		harness.Says(t, body, a, status, text)
		if m := harness.MadeKey.FindStringSubmatch(a.Body); m != nil {
			keys, secrets = append(keys, m[1]), append(secrets, m[3])
		}
	}
	f(`{"account":"alice","permissions":["read","trade"]}`, 200,
		`{"account":"alice","key":"K","permissions":["read","trade"],"allow":[],"secret":"S"}`)
	f(
		`{"account":"alice","permissions":["withdraw","read","read"],"allow":["10.0.0.0/8","192.0.2.7","2001:db8::/32","0.0.0.0"]}`,
		200,
		`{"account":"alice","key":"K","permissions":["read","withdraw"],"allow":["10.0.0.0/8","192.0.2.7/32","2001:db8::/32","0.0.0.0/32"],"secret":"S"}`)

	revoke := func(key string, status int, text string) {
		t.Helper()
		harness.Says(t, "revoke "+key,
			ask("POST", "/operator/v1/keys/revoke", `{"key":`+harness.Quote(key)+`}`), status, text)
	}
	revoke(keys[0], 200, `{"key":"`+keys[0]+`","account":"alice","revoked":true}`)
	revoke(keys[0], 400, harness.Refusal("key "+keys[0]+" is revoked already"))
	revoke("nothing", 400, harness.Refusal(`there is no key "nothing"`))
	revoke("", 400, harness.Refusal(`there is no key ""`))

	list := func() {
		t.Helper()
		a := ask("GET", "/operator/v1/keys?account=alice", "")
		harness.Says(t, "list", a, 200,
			`{"keys":[{"account":"alice","key":"key-alice","permissions":["read","trade","withdraw"],"allow":[],"revoked":false},`+
				`{"account":"alice","key":"`+keys[0]+
				`","permissions":[],"allow":[],"revoked":true},`+
				`{"account":"alice","key":"`+keys[1]+
				`","permissions":["read","withdraw"],"allow":["10.0.0.0/8","192.0.2.7/32","2001:db8::/32","0.0.0.0/32"],"revoked":false}]}`)
	}
	list()
	harness.Says(t, "bob's", ask("GET", "/operator/v1/keys?account=bob", ""), 200,
		`{"keys":[{"account":"bob","key":"key-bob","permissions":[],"allow":[],"revoked":true}]}`)
	for _, query := range []string{"", "?account=", "?account=carol"} {
		harness.Says(t, query, ask("GET", "/operator/v1/keys"+query, ""), 400,
			harness.Refusal(fmt.Sprintf("there is no account %q",
				strings.TrimPrefix(strings.TrimPrefix(query, "?"), "account="))))
	}
	if keys[0] == keys[1] || secrets[0] == secrets[1] {
		t.Error("two keys are the same")
	}
	h.Crash()
	h.Start()
	ask = harness.AsOperator(t, h.Gateway)
	list()
}

func TestAKeyWithABadPermissionOrAddressIsNotMade(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("alice")
	ask := harness.AsOperator(t, h.Gateway)
	f := func(body string, status int, text string) {
		t.Helper()
		harness.Says(t, body, ask("POST", "/operator/v1/keys", body), status, text)
	}
	none := harness.Refusal("a key needs at least one of the permissions read, trade and withdraw")
	f(`{"account":"alice"}`, 400, none)
	f(`{"account":"alice","permissions":[]}`, 400, none)
	for _, p := range []string{"Read", "", "all", "read,trade"} {
		f(`{"account":"alice","permissions":["read",`+harness.Quote(p)+`]}`, 400,
			harness.Refusal(
				fmt.Sprintf("there is no permission %q: there are read, trade and withdraw", p)))
	}
	for _, cidr := range []string{"", "x", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "::/129",
		"example.org", "10.0.0.1:80"} {
		f(`{"account":"alice","permissions":["read"],"allow":[`+harness.Quote(cidr)+`]}`,
			400,
			harness.Refusal(
				fmt.Sprintf("%.80q is not an address or a CIDR prefix such as 10.0.0.0/8", cidr)))
	}
	for cidr, want := range map[string][2]string{"10.0.0.5/8": {"10.0.0.0/8", "10.0.0.5"},
		"2001:db8::1/32":      {"2001:db8::/32", "2001:db8::1"},
		"::ffff:10.0.0.5/104": {"10.0.0.0/8", "10.0.0.5"}} {
		f(`{"account":"alice","permissions":["read"],"allow":["192.0.2.7",`+harness.Quote(cidr)+`]}`,
			400,
			harness.Refusal(
				fmt.Sprintf("%q has bits set after its prefix: write %s, or %s for the one address",
					cidr, want[0], want[1])))
	}
	f(`{"account":"carol","permissions":["read"]}`, 400,
		harness.Refusal(`there is no account "carol"`))
	f(`{"account":"","permissions":["read"]}`, 400, harness.Refusal(`there is no account ""`))
}

func TestAKeyThatWasMadeWorksUntilItIsRevoked(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("alice")
	ask := harness.AsOperator(t, h.Gateway)
	m := harness.MadeKey.FindStringSubmatch(
		ask("POST", "/operator/v1/keys",
			`{"account":"alice","permissions":["read"],"allow":["0.0.0.0/32"]}`).Body)
	if m == nil {
		t.Fatal("no key")
	}
	wallets := func(nonce string) int {
		mac := gateway.KeyMaterial([]byte(m[3])).(interface {
			Sign(dst, message []byte) []byte
		}).Sign(nil, []byte(m[1]))
		return h.Do("GET", "/api/v1/wallets", "", "", "X-KEY", m[1], "X-SIGN", string(mac),
			"X-NONCE", nonce).Status
	}
	if got := wallets("1"); got != 200 {
		t.Errorf("a new key: %d", got)
	}
	ask("POST", "/operator/v1/keys/revoke", `{"key":"`+m[1]+`"}`)
	if got := wallets("2"); got != 401 {
		t.Errorf("a revoked key: %d", got)
	}
}

func TestDepositsAreMadeOnceForEachReference(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("alice")
	h.Account("bob")
	ask := harness.AsOperator(t, h.Gateway)
	f := func(body string, status int, text string) {
		t.Helper()
		harness.Says(t, body, ask("POST", "/operator/v1/deposits", body), status, text)
	}
	f(`{"account":"alice","currency":"BTC","amount":1.50,"reference":"wire 1"}`, 200,
		`{"deposit":1,"account":"alice","currency":"BTC","amount":1.5,"balance":1.5,"reference":"wire 1"}`)
	f(`{"account":"alice","currency":"BTC","amount":"1e-7","reference":"wire 2"}`, 200,
		`{"deposit":2,"account":"alice","currency":"BTC","amount":0.0000001,"balance":1.5000001,"reference":"wire 2"}`)
	f(`{"account":"alice","currency":"BTC","amount":"1.5","reference":"wire 1"}`, 200,
		`{"deposit":1,"account":"alice","currency":"BTC","amount":1.5,"balance":1.5000001,"reference":"wire 1","repeated":true}`)
	conflict := harness.Refusal(
		`reference "wire 1" belongs to deposit 1, which is another one: 1.5 BTC to alice`)
	f(`{"account":"alice","currency":"BTC","amount":1.6,"reference":"wire 1"}`, 400, conflict)
	f(`{"account":"alice","currency":"ETH","amount":1.5,"reference":"wire 1"}`, 400, conflict)
	f(`{"account":"bob","currency":"BTC","amount":1.5,"reference":"wire 1"}`, 400, conflict)
	f(`{"account":"carol","currency":"BTC","amount":1,"reference":"r"}`, 400,
		harness.Refusal(`there is no account "carol"`))
	f(`{"account":"alice","currency":"btc","amount":1,"reference":"r"}`, 400,
		harness.Refusal(`there is no currency "btc"`))
	f(`{"account":"alice","amount":1,"reference":"r"}`, 400,
		harness.Refusal(`there is no currency ""`))
	f(`{"account":"alice","currency":"BTC","amount":0,"reference":"r"}`, 400,
		harness.Refusal("the amount of a deposit is above 0"))
	f(`{"account":"alice","currency":"BTC","reference":"r"}`, 400,
		harness.Refusal("amount: A valid number is required."))
	f(`{"account":"alice","currency":"BTC","amount":-1,"reference":"r"}`, 400,
		harness.Refusal("amount: A valid number is required."))
	f(`{"account":"alice","currency":"BTC","amount":0.000000001,"reference":"r"}`, 400,
		harness.Refusal("amount: At most 8 fractional digits are possible."))
	f(`{"account":"alice","currency":"BTC","amount":1e30,"reference":"r"}`, 400,
		harness.Refusal("amount: The number is too large."))
	f(`{"account":"alice","currency":"BTC","amount":1,"reference":"`+strings.Repeat("r", 129)+`"}`,
		400, harness.Refusal("a reference has 1 to 128 bytes"))
	f(`{"account":"alice","currency":"BTC","amount":1,"reference":"`+strings.Repeat("r", 128)+`"}`,
		200,
		`{"deposit":3,"account":"alice","currency":"BTC","amount":1,"balance":2.5000001,"reference":"`+
			strings.Repeat("r", 128)+
			`"}`)
	// Without a reference each is a deposit of its own, and the answer names the reference.
	own := regexp.MustCompile(
		`^\{"deposit":([45]),"account":"bob","currency":"ETH","amount":2,"balance":[24],"reference":"([0-9a-f]{36})"\}\n$`)
	for range 2 {
		if a := ask("POST", "/operator/v1/deposits",
			`{"account":"bob","currency":"ETH","amount":2}`); a.Status != 200 ||
			!own.MatchString(a.Body) {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	h.Crash()
	h.Start()
	ask = harness.AsOperator(t, h.Gateway)
	f(`{"account":"alice","currency":"BTC","amount":"1.5","reference":"wire 1"}`, 200,
		`{"deposit":1,"account":"alice","currency":"BTC","amount":1.5,"balance":2.5000001,"reference":"wire 1","repeated":true}`)
	f(`{"account":"alice","currency":"BTC","amount":1.6,"reference":"wire 1"}`, 400, conflict)
}

func TestDepositOfUnknownOutcomeNamesItsReference(t *testing.T) {
	harness.Bubble(t, testDepositOfUnknownOutcomeNamesItsReference)
}

func testDepositOfUnknownOutcomeNamesItsReference(t *testing.T) {
	h, store := harness.NewStubborn(t, func(o *actors.Options) {
		o.Timing.Request, o.Timing.Stall = time.Second, 20*time.Millisecond
	})
	ask := harness.AsOperator(t, h.Gateway)
	release := store.Block()
	a := ask("POST", "/operator/v1/deposits", `{"account":"bob","currency":"ETH","amount":2}`)
	m := regexp.MustCompile(
		`^\{"error":"outcome unknown: .* repeat it with the reference \\"([0-9a-f]{36})\\", which is safe"\}\n$`).
		FindStringSubmatch(
			a.Body)
	if a.Status != 503 || m == nil || len(a.Header.Peek("Retry-After")) > 0 {
		t.Fatalf("%d %s%s", a.Status, a.Header, a.Body)
	}
	a = ask("POST", "/operator/v1/accounts", `{"name":"carol"}`)
	harness.Says(t, "the next", a, 503, harness.Refusal("the store does not take writes"))
	if got := string(a.Header.Peek("Retry-After")); got != "1" { // nothing was done
		t.Errorf("the next: Retry-After is %q", got)
	}
	release()
	harness.Eventually(t, "the deposit can be repeated", func() bool {
		a = ask("POST", "/operator/v1/deposits",
			`{"account":"bob","currency":"ETH","amount":2,"reference":"`+m[1]+`"}`)
		return a.Status == 200
	})
	harness.Says(t, "repeated", a, 200,
		`{"deposit":3,"account":"bob","currency":"ETH","amount":2,"balance":2,"reference":"`+m[1]+
			`","repeated":true}`)
}

func TestDepositWithUnreadableBalanceIsReportedAsMade(t *testing.T) {
	h := harness.New(t, func(o *actors.Options) { o.Limits.Reads = 0 })
	h.Account("bob")
	a := harness.AsOperator(t, h.Gateway)("POST", "/operator/v1/deposits",
		`{"account":"bob","currency":"ETH","amount":2,"reference":"r"}`)
	harness.Says(t, "deposit", a, 503, harness.Refusal(
		`deposit 1 was made, with the reference "r", but its balance cannot be read: too many requests are in flight`))
	if got := a.Header.Peek("Retry-After"); len(got) > 0 {
		t.Errorf("a completed action is answered with Retry-After %s", got)
	}
}

func TestSecretsAppearInTheAnswerToKeyCreationAndNowhereElse(t *testing.T) {
	logged := &harness.Captured{}
	log := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := harness.New(t, func(o *actors.Options) { o.Log = log })
	h.Account("alice")
	g := gateway.New(edge.Options{Log: log, BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 100, OperatorToken: harness.OperatorToken})
	g.SetEngine(h.Engine)
	l := fasthttputil.NewInmemoryListener()
	go g.Serve(l) //nolint:errcheck // ends with the listener
	defer l.Close()
	public, ask := &harness.Exchange{T: t, Listener: l}, harness.AsOperator(t, g)

	m := harness.MadeKey.FindStringSubmatch(
		ask("POST", "/operator/v1/keys", `{"account":"alice","permissions":["read","trade"]}`).Body)
	if m == nil {
		t.Fatal("no key")
	}
	mac := string(gateway.KeyMaterial([]byte(m[3])).(interface {
		Sign(dst, message []byte) []byte
	}).Sign(nil, []byte(m[1])))
	auth := "Authorization: Bearer " + harness.OperatorToken
	var shown strings.Builder
	show := func(a harness.Answer) { shown.WriteString(a.Header.String() + a.Body) }
	show(ask("GET", "/operator/v1/keys?account=alice", ""))
	show(ask("GET", "/operator/v1/accounts", ""))
	show(ask("GET", "/nothing", ""))
	show(ask("POST", "/operator/v1/keys", "{", auth))
	show(ask("POST", "/operator/v1/keys", `{"secret":"`+m[3]+`"}`))
	show(ask("POST", "/operator/v1/accounts", strings.Repeat("x", 2000), auth))
	show(ask("POST", "/operator/v1/accounts", "", auth+strings.Repeat("x", 2000)))
	show(ask("POST", "/operator/v1/keys/revoke", `{"key":"x"}`))
	show(ask("GET", "/operator/v1/accounts", "", auth, "broken"))
	head := "X-Key: " + m[1] + "\r\nX-Sign: " + mac + "\r\nX-Nonce: "
	show(public.Raw("GET", "GET /api/v1/wallets/ HTTP/1.1\r\nHost: x\r\n"+head+"1\r\n\r\n"))
	show(public.Raw("GET", "GET /api/v1/wallets/ HTTP/1.1\r\nHost: x\r\n"+head+"1\r\n\r\n"))
	show(public.Raw("GET", "GET /api/v1/wallets/ HTTP/1.1\r\nHost: x\r\n"+head+
		"0\r\nbroken\r\n\r\n"))
	show(public.Raw("GET", "GET /api/v1/wallets/ HTTP/1.1\r\nHost: x\r\n"+head+"2\r\nX-Pad: "+
		strings.Repeat("x", 2000)+"\r\n\r\n"))
	show(public.Raw("POST", "POST /api/v1/order/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n"+
		head+"2\r\n\r\n"))
	show(ask("POST", "/operator/v1/keys/revoke", `{"key":"`+m[1]+`"}`))
	h.Crash()
	h.Start()
	for name, secret := range map[string]string{"the secret": m[3],
		"the operator's token": harness.OperatorToken, "a signature": mac} {
		if strings.Contains(shown.String(), secret) && name != "the secret" ||
			strings.Count(shown.String(), secret) > 1 {
			t.Errorf("%s was answered:\n%s", name, shown.String())
		}
		if strings.Contains(logged.String(), secret) {
			t.Errorf("%s was logged:\n%s", name, logged.String())
		}
	}
	if !strings.Contains(logged.String(), "recovered") {
		t.Error("nothing was logged at all")
	}
}
