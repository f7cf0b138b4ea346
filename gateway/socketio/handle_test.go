package socketio

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/valyala/fasthttp"
)

func TestHandshakeReturnsProtocolFields(t *testing.T) {
	synctest.Test(t, testHandshakeReturnsProtocolFields)
}

func testHandshakeReturnsProtocolFields(t *testing.T) {
	r := echo(t, Options{})
	a := r.do("GET", "EIO=4&transport=polling&t=abc&b64=1", "")
	want := regexp.MustCompile(
		`^0\{"sid":"[\w-]{20}","upgrades":\["websocket"\],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000\}$`)
	if a.status != 200 || !want.MatchString(a.body) {
		t.Errorf("polling: %d %s", a.status, a.body)
	}
	if h := a.header; h.Get("Content-Type") != "text/plain; charset=UTF-8" ||
		h.Get("Cache-Control") != "no-store" || h.Get("Set-Cookie") != "" {
		t.Errorf("polling: %v", h)
	}
	c := r.dial("EIO=4&transport=websocket")
	want = regexp.MustCompile(
		`^0\{"sid":"[\w-]{20}","upgrades":\[\],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000\}$`)
	if s := c.text(); !want.MatchString(s) {
		t.Errorf("websocket: %s", s)
	}
	if s := r.server.Stats(); s.Handshakes != 2 || s.Polling != 1 || s.WebSocket != 1 {
		t.Errorf("%+v", s)
	}
}

func TestEveryBadRequestGetsTheErrorOfTheProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{Allow: func(ctx *fasthttp.RequestCtx) error {
			if string(ctx.Request.Header.Peek("X-Bad")) != "" {
				return errors.New("too \"bad\"")
			}
			return nil
		}})
		p := r.polling()
		ws, o := r.open()
		defer ws.Close()
		f := func(method, query string, status int, body string, header ...string) {
			t.Helper()
			a := r.do(method, query, "", header...)
			if a.status != status || a.body != body {
				t.Errorf("%s %s: %d %s, want %s", method, query, a.status, a.body, body)
			}
			if h := a.header; h.Get("Access-Control-Allow-Origin") != "*" ||
				h.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: %v", method, query, h)
			}
		}
		const (
			transport = `{"code":0,"message":"Transport unknown"}`
			session   = `{"code":1,"message":"Session ID unknown"}`
			method    = `{"code":2,"message":"Bad handshake method"}`
			request   = `{"code":3,"message":"Bad request"}`
			version   = `{"code":5,"message":"Unsupported protocol version"}`
		)
		f("GET", "transport=polling", 400, version)
		f("GET", "EIO=3&transport=polling", 400, version)
		f("GET", "EIO=abc&transport=polling", 400, version)
		f("GET", "EIO=4", 400, transport)
		f("GET", "", 400, transport)
		f("GET", "EIO=4&transport=abc", 400, transport)
		f("GET", "EIO=4&transport=polling&sid=abc", 400, session)
		f("POST", "EIO=4&transport=polling&sid=abc", 400, session)
		f("GET", "EIO=4&transport=websocket&sid=abc", 400, session)
		f("POST", "EIO=4&transport=polling", 400, method)
		f("PUT", "EIO=4&transport=polling", 400, method)
		f("GET", "EIO=4&transport=websocket", 400, request)
		f("GET", "EIO=4&transport=websocket&sid="+p.sid, 400, request)
		f("GET", "EIO=3&transport=polling&sid="+p.sid, 400, request)
		f("GET", "transport=polling&sid="+p.sid, 400, request)
		f("PUT", p.query(), 400, request)
		f("GET", "EIO=4&transport=polling&sid="+o.Sid, 400, request)
		f("POST", "EIO=4&transport=polling&sid="+o.Sid, 400, request)
		f("GET", "EIO=4&transport=polling", 403, `{"code":4,"message":"too \"bad\""}`, "X-Bad", "1")
		p.sent("3") // nothing of this has touched the sessions
		ws.join()
		if n := r.server.Stats().Refused["Bad request"]; n != 7 {
			t.Errorf("%d were counted", n)
		}
	})
}

func TestABadWebSocketHandshakeIsAPlainError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		f := func(query string, status int, header ...string) {
			t.Helper()
			h := append([]string{"Connection", "Upgrade", "Upgrade", "websocket",
				"Sec-WebSocket-Version", "13",
				"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}, header...)
			if a := r.do("GET", query, "", h...); a.status != status {
				t.Errorf("%s %q: %d %s", query, header, a.status, a.body)
			}
		}
		f("EIO=3&transport=websocket", 400)
		f("EIO=abc&transport=websocket", 400)
		f("transport=websocket", 400)
		f("EIO=4&transport=abc", 400)
		f("EIO=4&transport=websocket&sid=abc", 400)
		f("EIO=4&transport=websocket", 400, "Sec-WebSocket-Version", "12")
		f("EIO=4&transport=websocket", 400, "Sec-WebSocket-Key", "short")
		f("EIO=4&transport=websocket", 400, "Connection", "keep-alive")
		if s := r.server.Stats(); s.Handshakes != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestPagesOfEveryOriginMayRead(t *testing.T) { synctest.Test(t, testPagesOfEveryOriginMayRead) }

func testPagesOfEveryOriginMayRead(t *testing.T) {
	r := echo(t, Options{})
	p := r.polling()
	origin := []string{"Origin", "https://page.example"}
	f := func(a answer, status int) {
		t.Helper()
		h := a.header
		if a.status != status || h.Get("Access-Control-Allow-Origin") != origin[1] ||
			h.Get("Access-Control-Allow-Credentials") != "true" ||
			!strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
			t.Errorf("%d %s %v", a.status, a.body, h)
		}
	}
	f(r.do("GET", "EIO=4&transport=polling", "", origin...), 200)
	f(r.do("POST", p.query(), "40", origin...), 200)
	f(r.do("GET", p.query(), "", origin...), 200)
	f(r.do("GET", "EIO=3&transport=polling", "", origin...), 400)
	f(r.do("GET", "EIO=4&transport=polling&sid=x", "", origin...), 400)
	a := r.do("OPTIONS", p.query(), "",
		append(origin, "Access-Control-Request-Headers", "x-a, x-b",
			"Access-Control-Request-Method", "POST")...)
	f(a, 204)
	if h := a.header; h.Get("Access-Control-Allow-Methods") != "GET,HEAD,PUT,PATCH,POST,DELETE" ||
		h.Get("Access-Control-Allow-Headers") != "x-a, x-b" || a.body != "" {
		t.Errorf("%v %s", h, a.body)
	}
	c, answer, err := r.dialer.Dial("ws"+r.url("EIO=4&transport=websocket")[4:],
		http.Header{"Origin": {origin[1]}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if answer.Header.Get("Access-Control-Allow-Origin") != origin[1] {
		t.Errorf("%v", answer.Header)
	}
}
