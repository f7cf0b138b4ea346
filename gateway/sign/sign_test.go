package sign

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"exchange/gateway/params"
)

const (
	demoKey    = "demo-alice"
	demoSecret = "an API secret of no particular meaning"
	orderJSON  = `{"type":"buy","pair":"BTC_USD","amount":0.12345678,"price":50000.12}`
	orderForm  = `type=buy&pair=BTC_USD&amount=0.12345678&price=50000.12`
	orderText  = `demo-aliceamount=0.12345678&pair=BTC_USD&price=50000.12&type=buy`
)

// signature returns the reference: the standard library's HMAC.
func signature(secret, message string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(message))
	return hex.AppendEncode(nil, h.Sum(nil))
}

func parsed(t testing.TB, parse func(*params.Set, []byte) error, text string) *params.Set {
	t.Helper()
	var s params.Set
	if err := parse(&s, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return &s
}

func TestSignIsHMACSHA256(t *testing.T) {
	f := func(secret, message, want string) {
		t.Helper()
		if got := New([]byte(secret)).Sign([]byte("sig="),
			[]byte(message)); string(got) != "sig="+want {
			t.Errorf("got %s, want sig=%s", got, want)
		}
	}
	// RFC 4231, test cases 1, 2 and 6.
	f(strings.Repeat("\x0b", 20), "Hi There",
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
	f("Jefe", "what do ya want for nothing?",
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
	f(strings.Repeat("\xaa", 131), "Test Using Larger Than Block-Size Key - Hash Key First",
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
	for n := range 200 { // around every block boundary of both the secret and the message
		secret, message := strings.Repeat("s", n+1), strings.Repeat("m", n)
		f(secret, message, string(signature(secret, message)))
	}
}

// request is one of the three ways to send parameters.
type request struct {
	parse  func(*params.Set, []byte) error
	verify func(k *Keyed, v *Verifier, key []byte, p *params.Set, text, signature []byte) bool
}

var (
	asJSON = request{(*params.Set).ParseJSON,
		func(k *Keyed, v *Verifier, key []byte, p *params.Set, _, signature []byte) bool {
			return k.Verify(v, key, p, nil, signature)
		}}
	asForm  = request{(*params.Set).ParseForm, (*Keyed).Verify}
	asQuery = request{(*params.Set).ParseQuery, (*Keyed).VerifyGet}
)

func TestVerify(t *testing.T) {
	keyed := New([]byte(demoSecret))
	var v Verifier
	// f signs key+signed and wants it to fit after a number of HMACs, or never if that is 0.
	f := func(r request, text, signed string, tries int) {
		t.Helper()
		got := r.verify(keyed, &v, []byte(demoKey), parsed(t, r.parse, text), []byte(text),
			signature(demoSecret, demoKey+signed))
		if got != (tries > 0) || got && v.tries != tries {
			t.Errorf("%s signed as %q: %v after %d tries, want %d", text, signed, got, v.tries,
				tries)
		}
	}
	plain := orderText[len(demoKey):]

	// JSON: one HMAC, unless there are special characters.
	f(asJSON, orderJSON, plain, 1)
	f(asJSON, ``, ``, 1)
	f(asJSON, `{}`, ``, 1)
	f(asJSON, `{"b":"x y","a":1}`, `a=1&b=x%20y`, 1)
	f(asJSON, `{"b":"x y","a":1}`, `a=1&b=x+y`, 2)
	f(asJSON, `{"b":"(x)","a":1}`, `a=1&b=%28x%29`, 1)
	f(asJSON, `{"b":"(x)","a":1}`, `a=1&b=(x)`, 2)
	f(asJSON, `{"b":"(x y)*!'"}`, `b=%28x%20y%29%2A%21%27`, 1)
	f(asJSON, `{"b":"(x y)*!'"}`, `b=%28x+y%29%2A%21%27`, 2)
	f(asJSON, `{"b":"(x y)*!'"}`, `b=(x%20y)*!'`, 3)
	f(asJSON, `{"b":"(x y)*!'"}`, `b=(x+y)*!'`, 4)
	f(asJSON, `{"a b":1,"c":"d e"}`, `a+b=1&c=d+e`, 2)
	f(asJSON, `{"b":null,"a":"x","c":null}`, `a=x&b=null&c=null`, 1)
	f(asJSON, `{"b":null,"a":"x","c":null}`, `a=x`, 2)

	f(asJSON, orderJSON, ``, 0)        // the signature of a GET
	f(asJSON, orderJSON, orderForm, 0) // not sorted
	f(asJSON, orderJSON, plain+"&", 0)
	f(asJSON, orderJSON, orderJSON, 0)
	f(asJSON, `{"price":0.50}`, `price=0.5`, 0)
	f(asJSON, `{"b":"x y"}`, `b=x y`, 0)
	f(asJSON, `{"b":"x y z"}`, `b=x+y%20z`, 0)
	f(asJSON, `{"b":null,"a":"x","c":null}`, `a=x&b=null`, 0)
	f(asJSON, `{"b":"(x)"}`, `b=(x%29`, 0)
	f(asJSON, `{"b":"\u00e9"}`, `b=%c3%a9`, 0)

	// Forms: sorted, or exactly as sent.
	f(asForm, orderForm, plain, 1)
	f(asForm, orderForm, orderForm, 2)
	f(asForm, plain, plain, 1)
	f(asForm, `b=x+y&a=1`, `a=1&b=x%20y`, 1)
	f(asForm, `b=x+y&a=1`, `b=x+y&a=1`, 2)
	f(asForm, `b=x+y&a=1`, `a=1&b=x+y`, 3)
	f(asForm, `b=(x+y)&a=1`, `a=1&b=(x+y)`, 5)
	f(asForm, `a=1&b=%c3%a9`, `a=1&b=%c3%a9`, 2)
	f(asForm, `&`, `&`, 2)
	f(asForm, ``, ``, 1)

	f(asForm, orderForm, ``, 0)
	f(asForm, `b=x+y&a=1`, `b=x%20y&a=1`, 0)
	f(asForm, `a=1&b=%c3%a9`, `a=1&b=%C3%a9`, 0)

	// GET: the key alone for any query, or any form of the query.
	f(asQuery, ``, ``, 1)
	f(asQuery, orderForm, ``, 1)
	f(asQuery, orderForm, plain, 2)
	f(asQuery, orderForm, orderForm, 3)
	f(asQuery, `b=(x+y)&a=1`, `a=1&b=(x+y)`, 6)
	f(asQuery, `a=1&a=2`, `a=2`, 2)
	f(asQuery, `a=1&a=2`, `a=1&a=2`, 3)
	f(asQuery, `&`, `&`, 2)
	f(asQuery, orderForm, `type=buy`, 0)
}

func TestAFieldThatIsNullAloneMayBeLeftOut(t *testing.T) {
	body := parsed(t, (*params.Set).ParseJSON, `{"b":null,"(c d)":null}`)
	if !New([]byte(demoSecret)).Verify(new(Verifier), []byte(demoKey), body, nil,
		signature(demoSecret, demoKey)) {
		t.Error("the key alone does not fit")
	}
}

func TestEqualTextsAreTriedOnce(t *testing.T) {
	keyed := New([]byte(demoSecret))
	var v Verifier
	f := func(r request, text string, tries int) {
		t.Helper()
		if r.verify(keyed, &v, []byte(demoKey), parsed(t, r.parse, text), []byte(text),
			signature("another", "")) {
			t.Errorf("%s: accepted", text)
		}
		if v.tries != tries {
			t.Errorf("%s: %d tries, want %d", text, v.tries, tries)
		}
	}
	f(asJSON, ``, 1)
	f(asJSON, orderJSON, 1)
	f(asJSON, `{"a":"é"}`, 1)
	f(asJSON, `{"a":"x y"}`, 2)
	f(asJSON, `{"a":"(x)"}`, 2)
	f(asJSON, `{"a b":"(x)"}`, 4)
	f(asForm, ``, 1)
	f(asForm, orderForm, 2)
	f(asForm, orderText[len(demoKey):], 1)
	f(asForm, `a=x%20y`, 2) // as sent is the first text
	f(asForm, `a=x+y`, 2)   // as sent is the one with '+'
	f(asForm, `a=(x%20y)`, 4)
	f(asForm, `a=(x+y)`, 4)
	f(asForm, `b=(x+y)&a`, 5)
	f(asQuery, ``, 1)
	f(asQuery, orderForm, 3)
	f(asQuery, `b=(x+y)&a`, 6)
	f(asJSON, `{"a b":"(x)","c":null}`, maxTries)
	f(asJSON, `{"c":null}`, 2)
}

func TestEachEncodingIsAcceptedAtEachLength(t *testing.T) {
	keyed := New([]byte(demoSecret))
	var v Verifier
	for n := 1; n <= 16<<10; n *= 4 {
		value := strings.Repeat("(x y)*!'", n)
		p := parsed(t, (*params.Set).ParseJSON, `{"a":"`+value+`","b":null}`)
		for s := strict; s <= allStyles; s++ {
			message, _ := appendMessage([]byte(demoKey), nil, p, s)
			if !keyed.Verify(&v, []byte(demoKey), p, nil,
				signature(demoSecret, string(message))) {
				t.Errorf("style %d of %d bytes is refused", s, len(message))
			}
		}
	}
}

func TestOnlySixtyFourHexDigitsAreAccepted(t *testing.T) {
	keyed := New([]byte(demoSecret))
	p := parsed(t, (*params.Set).ParseJSON, orderJSON)
	right := signature(demoSecret, orderText)
	var v Verifier
	f := func(signature []byte, want bool, tries int) {
		t.Helper()
		v.tries = 0
		if got := keyed.Verify(&v, []byte(demoKey), p, nil, signature); got != want ||
			v.tries != tries {
			t.Errorf("%q: %v after %d tries, want %v after %d", signature, got, v.tries, want,
				tries)
		}
	}
	f(right, true, 1)
	f(bytes.ToUpper(right), true, 1)
	f(append(bytes.ToUpper(right[:32]), right[32:]...), true, 1)
	f(nil, false, 0)
	f([]byte{}, false, 0)
	f(right[:63], false, 0)
	f(append(slices.Clone(right), '0'), false, 0)
	f(append(slices.Clone(right), "00"...), false, 0)
	f(append(slices.Clone(right), right...), false, 0)
	f(append([]byte("0x"), right[2:]...), false, 0)
	f(append(slices.Clone(right[:63]), ' '), false, 0)
	f(append(slices.Clone(right[:63]), 'g'), false, 0)
	f(bytes.Repeat([]byte("0"), 64), false, 1)
	for i := range right { // every digit counts
		wrong := slices.Clone(right)
		wrong[i] = "123456789abcdef0"[strings.IndexByte("0123456789abcdef", right[i])]
		f(wrong, false, 1)
	}
}

func TestAnEmptySecretPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an empty secret was taken")
		}
	}()
	New(nil)
}

func TestNothingIsKeptOrChanged(t *testing.T) {
	secret := []byte(demoSecret)
	keyed := New(secret)
	clear(secret)
	key, body, want := []byte(demoKey), []byte(orderForm), signature(demoSecret, orderText)
	var s params.Set
	var v Verifier
	for range 3 { // the same buffers with other requests in between, as a server hands them over
		copy(body, orderForm)
		if err := s.ParseForm(body); err != nil {
			t.Fatal(err)
		}
		if !keyed.Verify(&v, key, &s, body, want) {
			t.Error("not accepted")
		}
		if string(key) != demoKey || string(body) != orderForm ||
			!bytes.Equal(want, signature(demoSecret, orderText)) {
			t.Error("an argument was changed")
		}
		if v.digest != [sha256.Size]byte{} {
			t.Error("the right signature was kept")
		}
		for i := range body {
			body[i] = 'a'
		}
		_ = s.ParseForm(body)
		if keyed.Verify(&v, key, &s, body, want) {
			t.Error("another body was accepted")
		}
	}

	long := parsed(t, (*params.Set).ParseForm, "a="+strings.Repeat("x", maxKeptMessage))
	keyed.Verify(&v, key, long, nil, want)
	if cap(v.message) > maxKeptMessage {
		t.Errorf("%d bytes are kept", cap(v.message))
	}
}

func TestNoVerbPrintsTheSecret(t *testing.T) {
	const secret = "hunter2hunter2hunter2"
	k := New([]byte(secret))
	state := k.states().outer[:]
	outer := fmt.Sprintf("%x", state[8:16])
	f := func(value any) {
		t.Helper()
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
			got := fmt.Sprintf(verb, value)
			for _, bad := range []string{"hunter2", fmt.Sprintf("%x", secret), "104 117 110", outer,
				strings.ToUpper(outer), fmt.Sprint(state[8:16])[1:20]} {
				if strings.Contains(got, bad) {
					t.Errorf("%s of %T gives %s", verb, value, got)
				}
			}
		}
	}
	f(k)
	f(*k)
	f(struct{ K *Keyed }{k})
	f(struct{ k Keyed }{*k}) // fmt may not call the methods of unexported fields
	f(struct{ k *Keyed }{k})
	f(&struct{ k *Keyed }{k})
	f(&struct{ k Keyed }{*k})
	f([]Keyed{*k})
	f(map[string]*Keyed{"a": k})
	if got := fmt.Sprintf("%v %#v %s", k, *k,
		k.GoString()); got != strings.Join(slices.Repeat([]string{"sign.Keyed(hidden)"}, 3), " ") {
		t.Errorf("got %s", got)
	}
}

func TestGoroutinesShareAKeyed(t *testing.T) {
	keyed := New([]byte(demoSecret))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var s params.Set
			var v Verifier
			for range 200 {
				if err := s.ParseJSON([]byte(orderJSON)); err != nil ||
					!keyed.Verify(&v, []byte(demoKey), &s, nil, signature(demoSecret, orderText)) {
					t.Error("not accepted")
					return
				}
			}
		})
	}
	all.Wait()
}

func TestVerifyAllocatesNothing(t *testing.T) {
	keyed := New([]byte(demoSecret))
	var s params.Set
	var v Verifier
	key := []byte(demoKey)
	f := func(r request, text, signed string, want bool) {
		t.Helper()
		body, sig := []byte(text), signature(demoSecret, signed)
		if n := testing.AllocsPerRun(100, func() {
			if err := r.parse(&s, body); err != nil ||
				r.verify(keyed, &v, key, &s, body, sig) != want {
				t.Fatal("wrong answer")
			}
			s.Reset()
		}); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
	f(asJSON, orderJSON, orderText, true)
	f(asJSON, orderJSON, demoKey, false)
	f(asForm, orderForm, orderText, true)
	f(asForm, orderForm, demoKey+orderForm, true)
	f(asQuery, orderForm, demoKey, true)
	f(asQuery, `b=(x+y)&a=1`, "wrong", false)
}

// texts returns all messages that fit a request, made with net/url instead of this package's
// encoder.
func texts(r string, key string, p *params.Set, raw []byte) []string {
	var pairs, present []string
	for _, q := range p.All() {
		pair := url.QueryEscape(string(q.Name)) + "=" + url.QueryEscape(string(q.Value))
		if pairs = append(pairs, pair); q.Kind != params.Null {
			present = append(present, pair)
		}
	}
	marks := strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")
	spaces := strings.NewReplacer("+", "%20")
	var all []string
	for _, list := range [][]string{pairs, present} {
		plus := strings.Join(list, "&")
		all = append(all, key+plus, key+spaces.Replace(plus), key+marks.Replace(plus),
			key+spaces.Replace(marks.Replace(plus)))
	}
	if r != "json" && len(raw) > 0 {
		all = append(all, key+string(raw))
	}
	if r == "query" {
		all = append(all, key)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// FuzzVerify checks that exactly the texts of the reference are accepted, each within as many HMACs
// as there are different texts. Another message is accepted only if it is one of those texts.
func FuzzVerify(f *testing.F) {
	for _, c := range []struct{ body, message string }{
		{orderJSON, orderText}, {orderForm, demoKey + orderForm}, {orderForm, demoKey},
		{``, demoKey},
		{`{"b":"(x y)*!'","a":null}`, demoKey}, {`{"a b":null,"c":1}`, ""},
		{`b=(x+y)&a=%c3%a9`, demoKey + "a"},
		{`{"\u00e9":["\n"]}`, ""}, {`a=1&a=2`, ""}, {`&`, demoKey + "&"},
		{`{"price":0.50,"amount":1e-07,"n":-0,"t":true,"f":false,"z":null}`, "demo-bob"},
		{`{"a":"x y","b c":"+","d":"-._~","e":"\u00e9\n/&=%","f":[1, {"b":"\n"}]}`, "demo-alic"},
	} {
		f.Add([]byte(c.body), []byte(demoKey), []byte(demoSecret), []byte(c.message))
	}
	var s params.Set
	var v Verifier
	f.Fuzz(func(t *testing.T, body, key, secret, message []byte) {
		if len(secret) == 0 {
			return
		}
		keyed := New(secret)
		for name, r := range map[string]request{"json": asJSON, "form": asForm, "query": asQuery} {
			if r.parse(&s, body) != nil {
				continue
			}
			fitting := texts(name, string(key), &s, body)
			bare := string(AppendMessage(nil, key, &s, false))
			plus := AppendMessage(nil, key, &s, true)[len(key):]
			if !slices.Contains(fitting, bare) ||
				strings.ReplaceAll(string(plus), "+", "%20") != bare[len(key):] {
				t.Fatalf("%s %q: the text to be signed is %q, with + %q", name, body, bare, plus)
			}
			for _, text := range append(slices.Clone(fitting), string(message)) {
				got := r.verify(keyed, &v, key, &s, body, signature(string(secret), text))
				if want := slices.Contains(fitting, text); got != want {
					t.Fatalf("%s %q signed as %q: %v, want %v", name, body, text, got, want)
				}
				if v.tries > len(fitting) {
					t.Fatalf("%s %q: %d tries for %d texts", name, body, v.tries, len(fitting))
				}
			}
			if r.verify(keyed, &v, key, &s, body, message) &&
				!slices.ContainsFunc(fitting, func(text string) bool {
					return bytes.EqualFold(message, signature(string(secret), text))
				}) {
				t.Fatalf("%s %q: %q was taken for a signature", name, body, message)
			}
		}
	})
}
