package edge_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/listen"
	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// A connection was given up for a newer one, and its listener has not closed it yet. Requests over
// it are not carried out, and no answer looks as if they were.
func TestALostConnectionGetsNoAnswer(t *testing.T) {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	for name, text := range map[string]string{
		"an order":     "POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"a probe":      alive,
		"no request":   "\x00\r\n\r\n",
		"a large body": "POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n",
		"a question": "POST /api/v1/order HTTP/1.1\r\nHost: x\r\nExpect: " +
			"100-continue\r\nContent-Length: 2\r\n\r\n{}",
		"a large one": "POST /api/v1/order HTTP/1.1\r\nHost: x\r\nExpect: " +
			"100-continue\r\nContent-Length: 5000\r\n\r\n",
		"a stream":      "GET /socket.v2/?EIO=4&transport=polling HTTP/1.1\r\nHost: x\r\n\r\n",
		"of two, first": alive + alive,
	} {
		client, server := net.Pipe()
		c, ok := listen.Lost(server, g.Public().Places)
		if !ok {
			t.Fatal("there is no place")
		}
		//nolint:errcheck // the server hangs up before it has read all
		go io.WriteString(client, text)
		ended := make(chan struct{})
		go func() {
			g.Public().Server.ServeConn(c) //nolint:errcheck // writing fails
			c.Close()
			close(ended)
		}()
		got, _ := io.ReadAll(client)
		<-ended
		if got = bytes.TrimPrefix(got, []byte("HTTP/1.1 100 Continue\r\n\r\n")); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
		client.Close()
	}
}

// While the exchange starts, or stands by, private requests are answered 503, and that counts
// against no address.
func TestAStartCountsAgainstNoAddress(t *testing.T) {
	h, _ := harness.Limited(t,
		func(o *edge.Options) { harness.Every(o, edge.Rate{PerSecond: 1, Burst: 3}) })
	answers := h.Gateway.CurrentAPI().Swap(nil)
	for range 20 {
		a := h.Get("bob", privatePath)
		harness.Want(t, "a start", a, 503, harness.Detail(api.Starting.Detail))
		if a.Header.ConnectionClose() {
			t.Error("the connection is closed")
		}
		harness.Want(t, "a start",
			h.Post("bob", "/api/v1/order", harness.Order("buy", "BTC_USDT", "1", "0.01")),
			503, harness.Detail(api.Starting.Detail))
	}
	h.Gateway.CurrentAPI().Store(answers)
	served(t, "no failure was counted", h.Do("GET", privatePath, "", ""), 401, 3, 2, 1)
}

// Preflights, and refused requests of a living session, cost the address as much as all other
// requests.
func TestPreflightsAndRefusalsOfASessionCountAsPublicRequests(t *testing.T) {
	h, clock := harness.Limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 1, Burst: 1} })
	h.Gateway.Options().TrustedProxies = nil // all come from 0.0.0.0
	a := h.Do("GET", edge.StreamPath+"?EIO=4&transport=polling", "", "")
	rated(t, "a handshake", a, 1, 0, 1)
	_, sid, _ := strings.Cut(a.Body, `"sid":"`)
	sid, _, _ = strings.Cut(sid, `"`)
	clock.Pass(time.Second)
	query := edge.StreamPath + "?EIO=4&sid=" + sid
	for _, x := range []struct {
		what, method, path   string
		status, afterwards   int
		limit, remaining, in int
	}{
		{"a preflight", "OPTIONS", publicPath, 204, 429, 1, 0, 1},
		{"of a private path", "OPTIONS", "/api/v1/order/", 204, 429, 1, 0, 1},
		{"of the stream", "OPTIONS", edge.StreamPath, 204, 403, 1, 0, 1},
		{"of a session", "OPTIONS", query + "&transport=polling", 204, 403, 1, 0, 1},
		{"no transport", "GET", query + "&transport=x", 400, 403, 1, 0, 1},
		{"a method", "PUT", query + "&transport=polling", 400, 403, 1, 0, 1},
		{"a version", "GET", edge.StreamPath + "?EIO=3&transport=polling&sid=" + sid, 400, 403, 1,
			0, 1},
		{"a websocket that is none", "GET", query + "&transport=websocket", 400, 403, 1, 0, 1},
	} {
		served(t, x.what, h.Do(x.method, x.path, "", ""), x.status, x.limit, x.remaining, x.in)
		a := h.Do(x.method, x.path, "", "")
		if retry := string(a.Header.Peek("Retry-After")); a.Status != x.afterwards || retry != "1" {
			t.Errorf("%s, again: %d %s, Retry-After %q", x.what, a.Status, a.Body, retry)
		}
		throttled(t, "public after "+x.what, h.Do("GET", publicPath, "", ""), 1, 1)
		clock.Pass(time.Second)
	}
	h.Do("POST", query+"&transport=polling", "text/plain", "40").Is(t, 200, "the session")
	served(t, "a session's requests count nowhere", h.Do("GET", publicPath, "", ""), 200, 1, 0, 1)
}

// A websocket's handshake shows its limit, too.
func TestHandshakeHasRateHeaders(t *testing.T) {
	h, _ := harness.Limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 1, Burst: 5} })
	a := h.Raw("GET", "GET "+edge.StreamPath+
		"?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "+
		"websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	served(t, "a websocket", a, 101, 5, 4, 1)
}

// The size comes before the limit of the address, and takes from it.
func TestTheSizeOfAPublicRequestComesBeforeItsLimit(t *testing.T) {
	h, _ := harness.Limited(t,
		func(o *edge.Options) { o.PublicRate = edge.Rate{PerSecond: 1, Burst: 2} })
	h.Gateway.Options().TrustedProxies = nil
	large := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
		publicPath, 64<<10+1)
	for i, remaining := range []int{1, 0, 0, 0} {
		served(t, fmt.Sprint("a large body, ", i), h.Raw("GET", large), 413, 2,
			remaining, min(1+i, 2))
	}
	throttled(t, "the token", h.Do("GET", publicPath, "", ""), 2, 2)
}

// Answers of the operator's and the metrics' listeners are in no cache, and neither are their
// refusals.
func TestNothingOfOperatorsIsCached(t *testing.T) {
	harness.Bubble(t,
		testNothingOfOperatorsIsCached)
}

func testNothingOfOperatorsIsCached(t *testing.T) {
	for _, name := range []string{"operator", "metrics"} {
		// no guess is forgotten while others are made
		h, _ := harness.Limited(t, func(*edge.Options) {})
		g := h.Gateway
		g.SetMetricsToken(strings.Repeat("m", 32))
		serve, right := g.ServeOperator, harness.OperatorToken
		if name == "metrics" {
			serve, right = g.ServeMetrics, strings.Repeat("m", 32)
		}
		l := harness.NewNetwork(t)
		t.Cleanup(func() { l.Close() })
		go serve(l) //nolint:errcheck // ends with the listener
		seen := map[int]bool{}
		ask := func(text string) {
			t.Helper()
			a := harness.Talk(t, harness.Dialed(t, l), "GET", text)
			if seen[a.Status] = true; string(a.Header.Peek("Cache-Control")) != "no-store" {
				t.Errorf("%s: %d\n%s", name, a.Status, a.Header)
			}
		}
		get := func(path, token string) {
			t.Helper()
			ask("GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token +
				"\r\n\r\n")
		}
		get(edge.MetricsPath, right)
		get("/nothing", right)
		for range operator.GuessesAtOnce + 1 {
			get(edge.MetricsPath, "wrong")
		}
		ask("\x00\r\n\r\n")
		ask("GET / HTTP/9.9\r\nHost: x\r\n\r\n")
		for _, status := range []int{200, 400, 401, 404, 429} {
			if !seen[status] {
				t.Errorf("%s: no answer was %d", name, status)
			}
		}
	}
	var ctx fasthttp.RequestCtx
	if operator.Fail(&ctx, api.TooManyConnections, ""); string(
		ctx.Response.Header.Peek("Cache-Control")) != "no-store" {
		t.Errorf("one connection too many: %s", &ctx.Response.Header)
	}
}

// A connection without a byte is no request: it takes no token, and closing it waits for no client.
func TestSilenceIsNoRequest(t *testing.T) { harness.Bubble(t, testSilenceIsNoRequest) }

func testSilenceIsNoRequest(t *testing.T) {
	g, l := slowServer(t, func(o *edge.Options) {
		o.ReadTimeout, o.PublicRate, o.RateEntries = 5*time.Second,
			edge.Rate{PerSecond: 1, Burst: 1}, 10
		o.Clock = func() int64 { return 0 }
	})
	g.Public().Places.SetPatience(time.Hour)
	silent := []net.Conn{harness.Dialed(t, l), harness.Dialed(t, l), harness.Dialed(t, l)}
	for _, c := range silent {
		harness.Talk(t, c, "GET", "").Is(t, 408)
	}
	harness.Eventually(t, "their places are free",
		func() bool { return g.Public().Places.Open() == 0 })
	// a part of one
	harness.Talk(t, harness.Dialed(t, l), "GET", "GET / HTTP/1.1\r\nX-A: ").Is(t, 408)
	harness.Talk(t, harness.Dialed(t, l), "GET", "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n").Is(t,
		429, "the token")
}
