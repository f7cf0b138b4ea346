package edge_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// The meaning of a head depends neither on the case of its values, nor on the number of a list's
// fields.

func TestAClientThatExpects100ContinueIsAnswered(t *testing.T) {
	for _, value := range []string{"100-continue", "100-Continue", " 100-CONTINUE ",
		"x, 100-Continue"} {
		harness.Bubble(t, func(t *testing.T) {
			h := harness.New(t, nil)
			c := harness.Must(h.Listener.Dial())
			defer c.Close()
			harness.Must(io.WriteString(c,
				"POST /api/v1/order/ HTTP/1.1\r\nHost: x\r\nExpect: "+value+
					"\r\nContent-Length: 2\r\n\r\n"))
			in := bufio.NewReader(c)
			if a := harness.Must(http.ReadResponse(in, nil)); a.StatusCode != 100 {
				t.Fatalf("Expect: %s is answered %d", value, a.StatusCode)
			}
			harness.Must(io.WriteString(c, "{}"))
			if a := harness.Must(http.ReadResponse(in, nil)); a.StatusCode != 401 {
				t.Errorf("Expect: %s: the request is answered %d", value, a.StatusCode)
			}
		})
	}
}

func TestClientCanCloseAfterTheAnswer(t *testing.T) {
	h := harness.New(t, nil)
	ask := func(text string) *http.Response {
		c := harness.Must(h.Listener.Dial())
		defer c.Close()
		harness.Must(io.WriteString(c, text))
		return harness.Must(http.ReadResponse(bufio.NewReader(c), nil))
	}
	for _, c := range []struct {
		version, fields string
		closes          bool
	}{
		{"1.1", "", false}, {"1.1", "Connection: keep-alive\r\n", false},
		{"1.1", "Connection: close\r\n", true}, {"1.1", "Connection: Close\r\n", true},
		{"1.1", "connection: TE , CLOSE\r\n", true},
		{"1.1", "Connection: close\r\nConnection: keep-alive\r\n", true},
		{"1.1", "Connection: TE\r\nConnection: Close\r\n", true},
		{"1.1", "Connection: Keep-Alive\r\nConnection: TE\r\n", false},
		{"1.0", "", true}, {"1.0", "Connection: Keep-Alive\r\n", false},
		{"1.0", "Connection: TE\r\nConnection: keep-alive\r\n", false},
		{"1.0", "Connection: keep-alive\r\nConnection: Close\r\n", true},
	} {
		a := ask("GET /api/v1/time/ HTTP/" + c.version + "\r\nHost: x\r\n" + c.fields + "\r\n")
		kept := map[bool]string{false: "timeout=60"}[c.closes]
		if a.Close != c.closes || a.Header.Get("Keep-Alive") != kept {
			t.Errorf("HTTP/%s %q: closed: %v, %v", c.version, c.fields, a.Close, a.Header)
		}
	}
}

func TestAListIsReadInAllOfItsFields(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("bob")
	const document, key = "/api/openapi.json", "X-KEY: key-bob\r\nX-NONCE: 1\r\nX-SIGN: "
	zeros := strings.Repeat("0", 64) + "\r\nContent-Length: 2\r\n"
	ask := func(method, path, fields, body string) harness.Answer {
		t.Helper()
		return h.Raw(method, method+" "+path+" HTTP/1.1\r\nHost: x\r\n"+fields+"\r\n"+body)
	}
	a := ask("GET", document, "Accept-Encoding: br;q=0\r\nAccept-Encoding: GZIP\r\n", "")
	if coding := string(a.Header.Peek("Content-Encoding")); coding != "gzip" {
		t.Errorf("Accept-Encoding: the coding is %q", coding)
	}
	tag := string(ask("GET", document, "", "").Header.Peek("ETag"))
	ask("GET", document, "If-None-Match: \"a\"\r\nIf-None-Match: W/"+tag+"\r\n", "").Is(t, 304)
	ask("GET", document, "If-None-Match: *\r\n", "").Is(t, 304)
	ask("GET", "/api/v1/time/", "Accept: text/html\r\nAccept: Application/JSON\r\n", "").Is(t, 200)
	ask("POST", "/api/v1/order/", key+zeros+"Content-Encoding: Identity\r\n"+
		"Content-Encoding: gzip\r\n", "{}").Is(t, 415)
	ask("POST", "/api/v1/order/", key+zeros+"Content-Encoding: identity, \r\n", "{}").Is(t, 400)
	a = ask("OPTIONS", "/api/v1/order/", "Access-Control-Request-Headers: x-a\r\n"+
		"Access-Control-Request-Headers: x-b\r\n", "")
	if allowed := string(a.Header.Peek("Access-Control-Allow-Headers")); allowed != "x-a,x-b" {
		t.Errorf("Access-Control-Request-Headers: allowed are %q", allowed)
	}
	ask("GET", "/socket.v2/?EIO=4&transport=websocket", "Connection: keep-alive\r\n"+
		"Connection: upgrade\r\nUpgrade: h2c\r\nUpgrade: x, WebSocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		"").Is(t, 101)
}

func TestABearerTokenIsShownInAnyCaseOfItsScheme(t *testing.T) {
	var token operator.Token
	token.Set("secret")
	for text, shown := range map[string]bool{"Bearer secret": true, "bearer secret": true,
		"BEARER secret": true, "Bearer Secret": false, "Basic secret": false, "Bearersecret": false,
		"secret": false, "": false} {
		var h fasthttp.RequestHeader
		h.Set("Authorization", text)
		if token.Shown(&h) != shown {
			t.Errorf("%q: shown is %v", text, !shown)
		}
	}
}

func TestAHostMayBeEmptyAndIsNamedWhereItIsWrong(t *testing.T) {
	h := harness.New(t, nil)
	const polling = "?EIO=4&transport=polling"
	for _, c := range []struct {
		path, host string
		status     int
	}{
		{"/api/v1/currencies/", "", 200}, {"//api/v1/currencies/", "", 404},
		{"http://x/api/v1/currencies/", "", 200}, {"/socket.v2/" + polling, "", 200},
		{"/api/v1/currencies/", "[::1]:8080", 200},
		{"/socket.v2/" + polling, "::1:8080", 200}, {"/socket.io/" + polling, "::1", 200},
		{"/socket%2Ev2/" + polling, "fe80::1%lo:8080", 200},
		{"/socket.v2/" + polling, "2001:db8:1:2:3:4:5:6:8080", 200},
		{"/socket.v2/" + polling, "a:b:c", 400}, {"/socket.v2/" + polling, "[::1", 400},
		{"/api/v1/currencies/", "::1:8080", 400}, {"/", "::1:8080", 400},
		{"/api/v1/currencies/", "a b", 400}, {"/api/v1/currencies/", "a:b", 400},
	} {
		a := h.Raw("GET", "GET "+c.path+" HTTP/1.1\r\nHost: "+c.host+"\r\n\r\n")
		named := strings.Contains(a.Body, "The header Host ")
		if a.Status != c.status || named != (c.status == 400) {
			t.Errorf("%s at %q: %d %s", c.path, c.host, a.Status, a.Body)
		}
	}
}
