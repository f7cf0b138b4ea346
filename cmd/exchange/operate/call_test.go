package operate

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/cmd/exchange/cli"
	"exchange/gateway/params"
	"exchange/gateway/sign"
)

// A publicFake answers like the public listener, and verifies signatures of alice's newest key.
type publicFake struct {
	*httptest.Server
	t      *testing.T
	status int
	header http.Header
	body   string

	mu    sync.Mutex // held while a request is answered
	asked []string   // "METHOD /path form", and whether it was signed
	nonce uint64
	// last returns the key's last nonce when a request with a nonce arrives; nil: the fake's own
	last func(nonce uint64) uint64
}

const (
	olderKey  = `{"key":"older","secret":"of-before","account":"alice","permissions":["read"]}`
	newestKey = `{"key":"newest","secret":"of-now","account":"alice","permissions":["read"]}`
	otherKey  = `{"key":"other","secret":"of-bob","account":"bob","permissions":["read"]}`
	textKey   = "account      alice\nkey          newest\nsecret       of-now\n" +
		"permissions  read,trade\nfrom         anywhere\n\nThe secret is shown only now: keep it.\n"
)

func newPublicFake(t *testing.T) *publicFake {
	f := &publicFake{t: t, status: 200, body: `{"a":1.50}`}
	f.Server = startServer(t, f, nil)
	return f
}

func (f *publicFake) address() string { return strings.TrimPrefix(f.URL, "http://") }

func (f *publicFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	line := strings.TrimSpace(r.Method + " " + r.RequestURI + " " + string(form))
	if key := r.Header.Get("X-KEY"); key != "" {
		line += " signed"
		f.verify(key, r, form)
	}
	f.asked = append(f.asked, line)
	if f.last != nil && f.last(f.nonce) >= f.nonce {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"detail":"Wrong Nonce","code":"nonce","last":%d}`, f.last(f.nonce))
		return
	}
	for name, values := range f.header {
		w.Header()[name] = values
	}
	w.WriteHeader(f.status)
	_, _ = io.WriteString(w, f.body)
}

func (f *publicFake) verify(key string, r *http.Request, form []byte) {
	var set params.Set
	var v sign.Verifier
	keyed, mac := sign.New([]byte("of-now")), []byte(r.Header.Get("X-SIGN"))
	var fits bool
	if r.Method == http.MethodPost {
		if err := set.ParseForm(form); err != nil {
			f.t.Error(err)
		}
		fits = keyed.Verify(&v, []byte(key), &set, form, mac)
	} else {
		if err := set.ParseQuery([]byte(r.URL.RawQuery)); err != nil {
			f.t.Error(err)
		}
		fits = keyed.VerifyGet(&v, []byte(key), &set, []byte(r.URL.RawQuery), mac)
	}
	nonce, err := strconv.ParseUint(r.Header.Get("X-NONCE"), 10, 64)
	// two calls in one millisecond have one nonce: the exchange refuses it, and the call is
	// repeated
	if !fits || key != "newest" || err != nil || nonce < f.nonce {
		f.t.Errorf("key %q, nonce %d after %d (%v), the signature fits: %v", key, nonce, f.nonce,
			err, fits)
	}
	f.nonce = nonce
}

func (f *publicFake) wantAsked(want ...string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := strings.Join(f.asked, "\n"); got != strings.Join(want, "\n") {
		f.t.Errorf("asked\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	f.asked = nil
}

// keyFile writes a file of keys that only its owner may read.
func keyFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	worked(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestACallIsSignedAsTheAccountsClientSignsIt(t *testing.T) {
	f := newPublicFake(t)
	for _, text := range []string{newestKey, textKey, olderKey + "\n" + newestKey + otherKey,
		textKey + strings.ReplaceAll(textKey, "alice", "bob")} {
		environ := []string{"EXCHANGE_LISTEN=" + f.address(), "EXCHANGE_API_KEY_FILE=" +
			keyFile(t, text)}
		runLine(environ, words("call alice /api/v1/wallets/")...).Want(t, 0,
			"200 OK\n{\n  \"a\": 1.50\n}\n", "")
		runLine(environ, words("call alice /api/v1/order type=buy pair=BTC_USDT 'note=a b&c=(é)'"+
			" --json")...).Want(t, 0, `{"status":200,"body":{"a":1.50}}`+"\n", "")
		runLine(environ, words("call alice /api/v1/orders/own/?status=1 pair=BTC_USDT")...).Want(t,
			0, "200 OK\n{\n  \"a\": 1.50\n}\n", "")
		f.wantAsked("GET /api/v1/wallets/ signed",
			"POST /api/v1/order note=a%20b%26c%3D%28%C3%A9%29&pair=BTC_USDT&type=buy signed",
			"GET /api/v1/orders/own/?status=1&pair=BTC_USDT signed")
	}
}

// A nonce is the time in milliseconds. If the key has used a greater one, the call is repeated with
// a greater one; but not a POST whose own nonce may have been used.
func TestCallSkipsNoncesOfOtherPrograms(t *testing.T) {
	const nanoseconds, wallets, cancel = 1_900_000_000_000_000_000, "/api/v1/wallets/",
		"/api/v1/order-cancel-all/ all=1"
	same := func(nonce uint64) uint64 { return min(nonce, nanoseconds) }
	always := func(nonce uint64) uint64 { return nonce + 7 }
	for _, x := range []struct {
		name, line  string
		last        func(nonce uint64) uint64
		asked, code int
	}{
		{"no other", wallets, nil, 1, cli.ExitDone},
		{"greater", wallets, func(uint64) uint64 { return nanoseconds }, 2, cli.ExitDone},
		{"greater, a POST", cancel, func(uint64) uint64 { return nanoseconds }, 2, cli.ExitDone},
		{"always greater", wallets, always, 2, cli.ExitUsage},
		{"its own, a POST", cancel, same, 1, cli.ExitUsage},
		{"its own", wallets, same, 2, cli.ExitUsage},
	} {
		f := newPublicFake(t)
		f.last = x.last
		began := uint64(time.Now().UnixMilli())
		r := runLine(nil, words("call alice "+x.line+" --address "+f.address()+" --key-file "+
			keyFile(t, newestKey))...)
		if r.Code != x.code || len(f.asked) != x.asked {
			t.Errorf("%s: asked %q: %+v", x.name, f.asked, r)
		}
		switch ended := uint64(time.Now().UnixMilli()); {
		case x.last == nil && (f.nonce < began || f.nonce > ended):
			t.Errorf("%s: the nonce is %d, the time %d to %d", x.name, f.nonce, began, ended)
		case x.code == cli.ExitDone && x.last != nil && f.nonce != nanoseconds+1:
			t.Errorf("%s: the nonce is %d", x.name, f.nonce)
		}
	}
}

// The method is that of the API's table. If a path has both, or is unknown, fields make it a POST.
func TestACallHasTheMethodOfItsPath(t *testing.T) {
	f := newPublicFake(t)
	environ := []string{"EXCHANGE_LISTEN=" + f.address()}
	for _, x := range []struct{ line, want string }{
		{"/api/v1/time", "GET /api/v1/time"},
		{"/api/v1/exchanges/ pair=BTC_USDT", "GET /api/v1/exchanges/?pair=BTC_USDT"},
		{"/api/v1/order/7/", "GET /api/v1/order/7/"},
		{"/api/v1/order-cancel-all/", "POST /api/v1/order-cancel-all/"},
		{"/api/v1/order-cancel-after/", "GET /api/v1/order-cancel-after/"},
		{"/api/v1/order-cancel-after/ seconds=9", "POST /api/v1/order-cancel-after/ seconds=9"},
		{"/api/v1/nothing a=", "POST /api/v1/nothing a="},
		{"/api/v1/nothing a= --method GET", "GET /api/v1/nothing?a="},
		{"/api/v1/time --method POST", "POST /api/v1/time"},
	} {
		if r := runLine(environ, words("call - "+x.line)...); r.Code != 0 || r.ErrOut != "" {
			t.Errorf("%s: %+v", x.line, r)
		}
		f.wantAsked(x.want)
	}
}

func TestTheExitCodeOfACallIsThatOfItsStatus(t *testing.T) {
	for _, x := range []struct {
		status     int
		retryAfter string
		path       string
		code       int
		want       string
	}{
		{201, "", "/api/v1/order/", cli.ExitDone, ""},
		{304, "", "/api/v1/time", cli.ExitUsage, "the API answered 304 Not Modified"},
		{400, "", "/api/v1/order/", cli.ExitUsage, "the API answered 400 Bad Request"},
		{429, "1", "/api/v1/order/", cli.ExitUnavailable, "nothing was done, try again"},
		{503, "1", "/api/v1/order/", cli.ExitUnavailable, "nothing was done, try again"},
		{503, "", "/api/v1/order/", cli.ExitUnavailable, "whether it was done is unknown"},
		{500, "", "/api/v1/order/", cli.ExitUnavailable, "whether it was done is unknown"},
		{500, "", "/api/v1/time", cli.ExitUnavailable, "answered 500 Internal Server Error\n"},
	} {
		f := newPublicFake(t)
		f.status, f.body = x.status, "no \x1b[2J JSON\n"
		switch x.status {
		case 201:
			f.body = "{\"json\":\"\u009b2J\"}" // clears some terminals, too
		case 304:
			f.body = ""
		}
		f.header = http.Header{"X-Request-Id": {"0f"}}
		if x.retryAfter != "" {
			f.header["Retry-After"] = []string{x.retryAfter}
		}
		r := runLine(nil, "call", "-", x.path, "--address", f.address())
		if r.Code != x.code || !strings.Contains(r.ErrOut, x.want) ||
			(r.ErrOut == "") != (x.want == "") ||
			!strings.Contains(r.Out, "\nX-Request-Id: 0f\n") ||
			strings.ContainsAny(r.Out, "\x1b\u009b") {
			t.Errorf("%+v: %+v", x, r)
		}
	}
}

func TestWrongCallsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	f := newPublicFake(t)
	keys := keyFile(t, newestKey)
	open := keyFile(t, newestKey)
	worked(t, os.Chmod(open, 0o644))
	for _, x := range []struct{ line, want string }{
		{"call", "call needs ACCOUNT PATH"},
		{"call alice", "call needs PATH"},
		{"call Alice /x", `the account name "Alice" must be`},
		{"call alice api/v1/wallets", `PATH is "api/v1/wallets": write a path of the API`},
		{"call alice http://x/", `PATH is "http://x/"`},
		{"call alice ''", `PATH is ""`},
		{"call alice /x#y", `PATH is "/x#y"`},
		{"call alice /x amount", `"amount" is no field: write its name and value`},
		{"call alice /x =1", `"=1" is no field`},
		{"call alice /x a=1 a=2", "the fields cannot be sent: "},
		{"call alice /x --method DELETE", `--method is "DELETE": write GET or POST`},
		{"call alice /x", "call needs --key-file FILE"},
		{"call carol /x --demo", `the demo has no account "carol", only alice and bob`},
		{"call bob /x --key-file " + keys, "has no key of account bob"},
		{"call alice /x --key-file " + open, "has mode 0644 and can be read by others"},
		{"call alice /x --key-file /nowhere/keys", "/nowhere/keys"},
		{"call alice /x --key-file " + keyFile(t, `{"key":"k"}`), "is not the output of"},
		{"call alice /x --key-file " + keyFile(t, `{"secret":"hidden"`), "is not the output of"},
		{"call alice /x --key-file " + keyFile(t, "secret hidden"), "is not the output of"},
		{"call alice /x --key-file " + keyFile(t, ""), "is not the output of"},
		{"call alice /x --address http://127.0.0.1 --key-file " + keys,
			"write host:port, such as 127.0.0.1:8080"},
		{"call alice /x --address example.org:80 --key-file " + keys,
			"would cross the network in clear text: write https://example.org:80"},
	} {
		args := words(x.line)
		if !strings.Contains(x.line, "--address") {
			args = append(args, "--address", f.address())
		}
		r := runLine(nil, args...)
		r.WantError(t, cli.ExitUsage, x.want)
		if strings.Contains(r.ErrOut, "hidden") {
			t.Errorf("%s: a secret is shown: %s", x.line, r.ErrOut)
		}
	}
	f.wantAsked()
	runLine(nil, "call", "-", "/api/v1/time", "--address", closedPort).WantError(t,
		cli.ExitUnavailable, "connection refused; is `exchange serve` running?")
}
