package edge_test

import (
	"crypto/tls"
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
	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// Attacks of strangers that reach the operator's listener.

func TestAClientThatTriesTokensIsLimitedAndKeepsNoOtherOut(t *testing.T) {
	// the public API's limits are none of this listener's
	h, clock := harness.Limited(t, func(*edge.Options) {})
	ask := harness.AsOperator(t, h.Gateway)
	as := func(token, address string) harness.Answer {
		t.Helper()
		return ask("GET", "/operator/v1/accounts", "", "Authorization: Bearer "+token,
			"X-Forwarded-For: "+address)
	}
	want := func(what string, a harness.Answer, status int) {
		t.Helper()
		if a.Status != status {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
		if declared := string(a.Header.Peek("Retry-After")); (status == 429) != (declared == "1") {
			t.Errorf("%s: come again after %q", what, declared)
		}
	}
	const guesser, admin = "192.0.2.1", "198.51.100.1"
	for range 10 {
		want("the right one", as(harness.OperatorToken, guesser), 200) // is no guess
	}
	for range operator.GuessesAtOnce {
		want("a guess", as("wrong", guesser), 401)
	}
	harness.Says(t, "one guess too many", as("wrong", guesser), 429,
		harness.Refusal(api.Throttled.About("1")))
	want("the right one passes all the same", as(harness.OperatorToken, guesser), 200)
	want("the operator", as(harness.OperatorToken, admin), 200)
	want("another one's first", as("wrong", admin), 401)
	for range operator.GuessesAtOnce { // another user of this machine guesses, too
		want("a guess from here", as("wrong", "127.0.0.1"), 401)
	}
	want("one too many from here", as("wrong", "127.0.0.1"), 429)
	want("the operator from here", as(harness.OperatorToken, "127.0.0.1"), 200)
	clock.Pass(time.Second)
	want("a second later", as("wrong", guesser), 401)
	want("and at once", as("wrong", guesser), 429)
	if n := h.Gateway.Operators().Operator.Refused(); n != 3 {
		t.Errorf("%d were counted", n)
	}
	h.Do("GET", publicPath, "", "", harness.From(guesser)...).Is(t, 200, "the API")
}

func TestNoBodyIsReadWithoutTheToken(t *testing.T) {
	harness.Bubble(t, testNoBodyIsReadWithoutTheToken)
}

func testNoBodyIsReadWithoutTheToken(t *testing.T) {
	h := harness.New(t, nil)
	l := harness.NewNetwork(t)
	go h.Gateway.ServeOperator(l) //nolint:errcheck // ends with the listener
	for _, token := range []string{"", "Authorization: Bearer wrong\r\n"} {
		for _, length := range []int{2, 60_000, 1 << 30} { // none of which comes
			statuses, bodies := converse(t, l,
				fmt.Sprintf(
					"POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\n%sContent-Length: "+
						"%d\r\n\r\n", token, length))
			if len(statuses) != 1 || statuses[0] != 401 ||
				bodies[0] != harness.Refusal("the bearer token is missing or wrong")+"\n" {
				t.Errorf("%d bytes: %v %q", length, statuses, bodies)
			}
		}
	}
	statuses, bodies := converse(t, l,
		fmt.Sprintf(
			"POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+
				"%s\r\nContent-Length: %d\r\n\r\n", harness.OperatorToken, 1<<30))
	if len(statuses) != 1 || statuses[0] != 413 {
		t.Errorf("with the token: %v %q", statuses, bodies)
	}
}

// Only a client with the token may take an hour for an answer.
func TestAClientThatTakesNoAnswersOfTheOperatorIsClosed(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		g, _ := slowServer(t, func(o *edge.Options) { o.OperatorToken = harness.OperatorToken })
		l := harness.NewNetwork(t)
		go g.ServeOperator(l) //nolint:errcheck // ends with the listener
		c := harness.Dialed(t, l)
		request := []byte(strings.Repeat("GET /operator/v1/accounts HTTP/1.1\r\nHost: x\r\n\r\n",
			100))
		for {
			if _, err := c.Write(request); err != nil {
				if e, ok := err.(net.Error); ok && e.Timeout() {
					t.Fatal("the server takes requests without end, or keeps the connection")
				}
				break
			}
		}
		harness.Eventually(t, "its connection is given back", func() bool {
			return g.Operators().Places.Open() == 0
		})

		var head fasthttp.RequestHeader
		for token, want := range map[string]time.Duration{"": 0, "wrong": 0,
			harness.OperatorToken: operator.StreamTimeout} {
			head.Set("Authorization", "Bearer "+token)
			if got := g.Operators().Head(&head).WriteTimeout; got != want {
				t.Errorf("with the token %q an answer may take %v", token, got)
			}
		}
	})
}

// reachedFrom is an operator's listener that accepts connections of any address.
func reachedFrom(t *testing.T) *harness.Network {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10_000, OperatorToken: harness.OperatorToken})
	t.Cleanup(func() { g.Shutdown(time.Minute) })
	l := harness.NewNetwork(t)
	go g.ServeOperator(l) //nolint:errcheck // ends with the listener
	return l
}

func TestTheOperatorsListenerHasPlacesOfItsOwn(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		l := reachedFrom(t)
		in := func(address string) {
			t.Helper()
			c := harness.DialedFrom(t, address, l)
			// starting
			if a := harness.Talk(t, c, "GET", operating); a.Status != 503 ||
				strings.Contains(a.Body, api.TooManyConnections.Detail) {
				t.Errorf("%s: %d %s", address, a.Status, a.Body)
			}
		}
		out := func(address string) {
			t.Helper()
			c := harness.DialedFrom(t, address, l)
			if text, err := io.ReadAll(c); err != nil ||
				!strings.Contains(string(text), api.TooManyConnections.Detail) {
				t.Errorf("%s: %q, %v", address, text, err)
			}
		}
		for range edge.OperatorConnectionsPerAddress {
			in("192.0.2.1")
		}
		out("192.0.2.1")
		for range edge.OperatorConnections - edge.OperatorConnectionsPerAddress {
			in("127.0.0.1")
		}
		out("127.0.0.1")
		out("192.0.2.2")
	})
}

// Every user of this machine can open as many connections as the operator's listener has places.
func TestConnectionsWithoutTheTokenKeepNoOperatorOut(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, func(t *testing.T) { keepsOperatorsIn(t, secure) })
		})
	}
}

func keepsOperatorsIn(t *testing.T, secure bool) {
	a, _, c := harness.NewCertificate(t, time.Now().Add(30*harness.ADay), harness.Quiet())
	if !secure {
		c = nil
	}
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10_000, OperatorToken: harness.OperatorToken, OperatorCertificate: c})
	t.Cleanup(func() { g.Shutdown(time.Minute) })
	l := harness.NewNetwork(t)
	go g.ServeOperator(l) //nolint:errcheck // ends with the listener
	asked := func(c net.Conn, token string, status int) net.Conn {
		t.Helper()
		a := harness.Talk(t, c, "GET",
			"GET /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+
				"\r\n\r\n")
		if a.Status != status || strings.Contains(a.Body, api.TooManyConnections.Detail) {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		return c
	}
	dial := func() net.Conn {
		t.Helper()
		raw := harness.Dialed(t, l)
		if c == nil {
			return raw
		}
		return tls.Client(raw, &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1"})
	}
	const starting, wrong = 503, 401
	served := []net.Conn{asked(dial(), harness.OperatorToken, starting)}
	closedAfter(t, asked(dial(), "a guess", wrong))
	harness.Eventually(t, "the guessing client has given its place back", func() bool {
		return g.Operators().Places.Open() == 1
	})
	oldest := harness.Dialed(t, l)
	for range edge.OperatorConnections - 2 {
		harness.Dialed(t, l)
	}
	for range edge.OperatorConnections - 1 {
		served = append(served, asked(dial(), harness.OperatorToken, starting))
	}
	if _, err := oldest.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger keeps its place")
	}
	for _, c := range served {
		asked(c, harness.OperatorToken, starting)
	}
	if n := g.Operators().Places.Refused(); n != edge.OperatorConnections-1 {
		t.Errorf("%d were closed", n)
	}
	harness.Dialed(t, l) // all earlier connections have shown the token
	harness.Eventually(t, "one more is refused", func() bool {
		return g.Operators().Places.Refused() == edge.OperatorConnections
	})
	asked(served[0], harness.OperatorToken, starting)
	g.SetOperatorToken("another")
	closedAfter(t, asked(served[0], harness.OperatorToken, wrong))
	asked(dial(), "another", starting)
}
