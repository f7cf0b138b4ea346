package edge_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/gateway/ratelimit"
	"exchange/gateway/sign"
	"exchange/prove/harness"
)

// challenged asks for a challenge.
func (w *wild) challenged() string {
	w.b.T.Helper()
	var a struct{ Challenge string }
	ack := w.ask(lastID, `["challenge"]`)
	if json.Unmarshal([]byte(ack), &a) != nil || len(a.Challenge) != 64 {
		w.b.T.Fatalf("a challenge is %q", ack)
	}
	return a.Challenge
}

// loginSign signs a login for the account whose key is "key-NAME".
func loginSign(name, challenge string) string {
	return string(sign.New([]byte("secret-"+name)).Sign(nil,
		[]byte("login\nkey-"+name+"\n"+challenge)))
}

// logIn logs the client in. It has no acknowledgements afterwards.
func (w *wild) logIn(name string) {
	w.b.T.Helper()
	ack := w.ask(lastID, fmt.Sprintf(`["login",{"key":"key-%s","sign":"%s"}]`, name,
		loginSign(name, w.challenged())))
	if !strings.HasPrefix(ack, `{"status":200,`) {
		w.b.T.Fatal(ack)
	}
	clear(w.acks)
}

// Bits of the byte that selects the state before the login of an input of FuzzLogins.
const (
	usedUp       = 1 << iota // another login has used up the newest challenge
	loggedBefore             // the client is logged in
)

// loginPayloads are arguments of a login. See loginWords for the words with a dollar.
var loginPayloads = []string{
	`{"key":"key-bob","sign":"$bob"}`,
	`{"key":"key-bob","sign":"$bob"},7`,
	`{"sign":"$bob","ends":"$other","key":"key-bob"}`,
	`{"key":"key-bob","sign":"$bob","ends":"$self"}`,
	`{"key":"key-bob","sign":"$bob","ends":7}`,
	`{"key":"key-bob","sign":"$bob","cancel_on_disconnect":5}`,
	`{"key":"key-bob","sign":"$bob","cancel_on_disconnect":-1}`,
	`{"key":"key-bob","sign":"$bob","cancel_on_disconnect":60,"pair":"BTC_USDT","type":"buy"}`,
	`{"key":"key-bob","sign":"$bob","cancel_on_disconnect":"0","client_order_id_prefix":"q-"}`,
	`{"key":"key-bob","sign":"$bob","cancel_on_disconnect":60,"ends":"$other","pair":["x"]}`,
	`{"key":"key-bob","sign":"$old","cancel_on_disconnect":60}`,
	`{"key":"key-bob","sign":"$bob","key":"key-alice"}`,
	`{"Key":"key-bob","SIGN":"$bob"}`,
	`{"key":"key-alice","sign":"$bob"}`,
	`{"key":"key-bob","sign":"$alice"}`,
	`{"key":"key-bob","sign":"$old"}`,
	`{"key":"key-bob","sign":"$request"}`,
	`{"key":"key-far","sign":"$far"}`,
	`{"key":"key-frozen","sign":"$frozen"}`,
	`{"key":"key-frozen","sign":"$bob"}`,
	`{"key":"key-bob","sign":""}`,
	`{"key":"\u006bey-bob","sign":"$bob"}`,
	`{"key":"key-bob\u0000","sign":"$bob"}`,
	`{"key":{"key":"key-bob"},"sign":["$bob"]}`,
	`null`, `[]`, `"key-bob","$bob"`, `{}`, `1e400`, `[{"key":"key-bob","sign":"$bob"}]`,
	`{"key":"key-bob","sign":"$bob"`, ``,
	`{"_placeholder":true,"num":0}`,
}

// Any arguments of a login are answered, as described, and only a proof of the newest challenge by
// its secret logs a client in. A login that fails for its proof counts as a failure of the address.
func FuzzLogins(f *testing.F) {
	benches := harness.BenchesOf(f,
		func(observed bool) *socketBench { return newLoginBench(f, observed) })
	for i, payload := range loginPayloads {
		f.Add(payload, byte(0))
		f.Add(payload, byte(1<<(i%2)))
	}
	spoilt := false
	f.Fuzz(func(t *testing.T, payload string, before byte) {
		if strings.Contains(payload, "\x1e") || len(payload) > 20_000 {
			return // several packets are for FuzzSocketPackets
		}
		defer func() { spoilt = spoilt || t.Failed() }()
		for i, bench := range benches {
			if spoilt {
				bench = newLoginBench(t, i > 0)
			}
			bench.logins(t, payload, before)
		}
	})
}

// newLoginBench has one engine for all inputs, because they change only switches without orders.
func newLoginBench(t testing.TB, observed bool) *socketBench {
	b := newSocketBench(t, observed)
	b.begins(t, 64)
	b.Key("alice", "far", event.AllPermissions, "10.0.0.0/8")
	b.Account("frozen")
	b.Done(b.Engine.Freeze("test", "frozen", true))
	return b
}

// failuresLeft counts a failure of the clients' address, and returns the number left.
func (b *socketBench) failuresLeft() int {
	buckets := b.Gateway.FailureBuckets()
	return buckets.Take(ratelimit.AddressKey(netip.IPv4Unspecified()), b.clock.Ns.Load()).Remaining
}

// logins tries an input of FuzzLogins.
func (b *socketBench) logins(t testing.TB, payload string, before byte) {
	t.Helper()
	defer func(of testing.TB) { b.T, b.Doc.T = of, of }(b.T)
	b.T, b.Doc.T = t, t
	b.clock.Pass(time.Hour) // all buckets are full
	w, other := b.wild(), (*wild)(nil)
	if before&loggedBefore != 0 {
		w.logIn("bob")
	}
	old, challenge := w.challenged(), w.challenged()
	if before&usedUp != 0 {
		w.ask(lastID, `["login"]`)
	}
	words := []string{"$old", loginSign("bob", old), "$self", w.id,
		"$request", string(sign.New([]byte("secret-bob")).Sign(nil, []byte("key-bob")))}
	for _, name := range []string{"alice", "bob", "far", "frozen"} {
		words = append(words, "$"+name, loginSign(name, challenge))
	}
	if strings.Contains(payload, "$other") {
		other = b.wild()
		other.logIn("bob")
		words = append(words, "$other", other.id)
	}
	text := strings.NewReplacer(words...).Replace(payload)
	if text != "" {
		text = "," + text
	}
	left := b.failuresLeft()
	ack := w.ask(7, `["login"`+text+`]`)
	failures := left - b.failuresLeft() - 1
	b.loginAnswered(w, text, ack, challenge, before, failures)
	for _, x := range []*wild{w, other} {
		if x != nil {
			x.leave()
		}
	}
	b.rests()
}

// loginAnswered checks the answer to a login against its proof; "": the session has ended.
func (b *socketBench) loginAnswered(w *wild, text, ack, challenge string, before byte,
	failures int) {
	b.T.Helper()
	what := fmt.Sprintf("%q after %b is answered with %s, and counts as %d failures: ", text,
		before, ack, failures)
	if ack == "" {
		readable := utf8.ValidString(text) && json.Valid([]byte(`["login"`+text+`]`)) &&
			strings.Count(text, ",") < 1000 // arguments that an event may have
		if readable || failures != 0 {
			b.T.Fatal(what, "it must be answered")
		}
		return
	}
	r := b.replyOf(ack, "")
	var body struct{ Detail string }
	json.Unmarshal(r.Body, &body) //nolint:errcheck // wrong fields have none
	is := func(list ...*api.Failure) bool {
		return slices.ContainsFunc(list, func(f *api.Failure) bool {
			return f.Status == r.Status && f.Detail == body.Detail
		})
	}
	right := before&usedUp == 0 && isProven(text, challenge)
	logged := before&loggedBefore != 0
	switch {
	case logged && !is(api.LoggedIn):
		b.T.Fatal(what, "the client is logged in already")
	case r.Status == 200 && !right:
		b.T.Fatal(what, "there is no proof")
	case r.Status != 200 && right && text == `,{"key":"key-bob","sign":"`+
		loginSign("bob", challenge)+`"}` && !logged:
		b.T.Fatal(what, "there is a proof")
	case r.Status == 200 && !strings.HasPrefix(string(r.Body), `{"permissions":["read","trade","`):
		b.T.Fatal(what, "it lists the permissions")
	case r.Status == 401 && !is(api.Unauthenticated, api.WrongSignature, api.NoChallenge,
		api.LoginEnded), r.Status == 403 && !is(api.AddressNotAllowed, api.AccountFrozen),
		!slices.Contains([]int{200, 400, 401, 403}, r.Status):
		b.T.Fatal(what, "that is no answer to a login")
	case is(api.Unauthenticated, api.WrongSignature, api.NoChallenge, api.AddressNotAllowed) !=
		(failures == 1), failures > 1:
		b.T.Fatal(what, "that is the wrong number")
	}
	if !w.ended && (r.Status == 200 || logged) !=
		!strings.HasPrefix(w.ask(8, `["order-test",{}]`), `{"status":401,`) {
		b.T.Fatal(what, "a command of the client shows the contrary")
	}
}

// isProven reports whether the first argument of a login, which comes after a comma, has a key and
// the signature of a challenge by its secret among its members.
func isProven(text, challenge string) bool {
	var list []json.RawMessage
	if text == "" || json.Unmarshal([]byte("["+text[1:]+"]"), &list) != nil ||
		len(list) == 0 {
		return false
	}
	d := json.NewDecoder(strings.NewReader(string(list[0])))
	var words []string
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		if word, ok := token.(string); ok {
			words = append(words, strings.ToLower(word))
		}
	}
	return slices.ContainsFunc([]string{"alice", "bob"}, func(name string) bool {
		return slices.Contains(words, "key-"+name) &&
			slices.Contains(words, loginSign(name, challenge))
	})
}
