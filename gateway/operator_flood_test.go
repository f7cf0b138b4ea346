package gateway

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// Attacks of strangers that reach the operator's listener.

func TestAClientThatTriesTokensIsLimitedAndKeepsNoOtherOut(t *testing.T) {
	// the public API's limits are none of this listener's
	h, clock := limited(t, func(*edge.Options) {})
	ask := asOperator(t, h.gateway)
	as := func(token, address string) answer {
		t.Helper()
		return ask("GET", "/operator/v1/accounts", "", "Authorization: Bearer "+token,
			"X-Forwarded-For: "+address)
	}
	want := func(what string, a answer, status int) {
		t.Helper()
		if a.status != status {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
		if declared := string(a.header.Peek("Retry-After")); (status == 429) != (declared == "1") {
			t.Errorf("%s: come again after %q", what, declared)
		}
	}
	const guesser, admin = "192.0.2.1", "198.51.100.1"
	for range 10 {
		want("the right one", as(operatorToken, guesser), 200) // is no guess
	}
	for range operator.GuessesAtOnce {
		want("a guess", as("wrong", guesser), 401)
	}
	says(t, "one guess too many", as("wrong", guesser), 429, refusal(api.Throttled.About("1")))
	want("the right one passes all the same", as(operatorToken, guesser), 200)
	want("the operator", as(operatorToken, admin), 200)
	want("another one's first", as("wrong", admin), 401)
	for range operator.GuessesAtOnce { // another user of this machine guesses, too
		want("a guess from here", as("wrong", "127.0.0.1"), 401)
	}
	want("one too many from here", as("wrong", "127.0.0.1"), 429)
	want("the operator from here", as(operatorToken, "127.0.0.1"), 200)
	clock.pass(time.Second)
	want("a second later", as("wrong", guesser), 401)
	want("and at once", as("wrong", guesser), 429)
	if n := h.gateway.operators.Operator.Refused(); n != 3 {
		t.Errorf("%d were counted", n)
	}
	h.do("GET", publicPath, "", "", from(guesser)...).is(t, 200, "the API")
}

func TestNoBodyIsReadWithoutTheToken(t *testing.T) { bubble(t, testNoBodyIsReadWithoutTheToken) }

func testNoBodyIsReadWithoutTheToken(t *testing.T) {
	h := newHarness(t, nil)
	l := newNetwork(t)
	go h.gateway.ServeOperator(l) //nolint:errcheck // ends with the listener
	for _, token := range []string{"", "Authorization: Bearer wrong\r\n"} {
		for _, length := range []int{2, 60_000, 1 << 30} { // none of which comes
			statuses, bodies := converse(t, l,
				fmt.Sprintf(
					"POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\n%sContent-Length: "+
						"%d\r\n\r\n", token, length))
			if len(statuses) != 1 || statuses[0] != 401 ||
				bodies[0] != refusal("the bearer token is missing or wrong")+"\n" {
				t.Errorf("%d bytes: %v %q", length, statuses, bodies)
			}
		}
	}
	statuses, bodies := converse(t, l,
		fmt.Sprintf(
			"POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+
				"%s\r\nContent-Length: %d\r\n\r\n", operatorToken, 1<<30))
	if len(statuses) != 1 || statuses[0] != 413 {
		t.Errorf("with the token: %v %q", statuses, bodies)
	}
}

// Only a client with the token may take an hour for an answer.
func TestAClientThatTakesNoAnswersOfTheOperatorIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g, _ := slowServer(t, func(o *edge.Options) { o.OperatorToken = operatorToken })
		l := newNetwork(t)
		go g.ServeOperator(l) //nolint:errcheck // ends with the listener
		c := dialed(t, l)
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
		eventually(t, "its connection is given back", func() bool {
			return g.operators.Places.Open() == 0
		})

		var head fasthttp.RequestHeader
		for token, want := range map[string]time.Duration{"": 0, "wrong": 0,
			operatorToken: operator.StreamTimeout} {
			head.Set("Authorization", "Bearer "+token)
			if got := g.operators.Head(&head).WriteTimeout; got != want {
				t.Errorf("with the token %q an answer may take %v", token, got)
			}
		}
	})
}

// reachedFrom is an operator's listener that accepts connections of any address.
func reachedFrom(t *testing.T) *network {
	g := New(edge.Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10_000, OperatorToken: operatorToken})
	t.Cleanup(func() { g.Shutdown(time.Minute) })
	l := newNetwork(t)
	go g.ServeOperator(l) //nolint:errcheck // ends with the listener
	return l
}

func TestTheOperatorsListenerHasPlacesOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reachedFrom(t)
		in := func(address string) {
			t.Helper()
			c := dialedFrom(t, address, l)
			// starting
			if a := talk(t, c, "GET", operating); a.status != 503 ||
				strings.Contains(a.body, api.TooManyConnections.Detail) {
				t.Errorf("%s: %d %s", address, a.status, a.body)
			}
		}
		out := func(address string) {
			t.Helper()
			c := dialedFrom(t, address, l)
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
			bubble(t, func(t *testing.T) { keepsOperatorsIn(t, secure) })
		})
	}
}

func keepsOperatorsIn(t *testing.T, secure bool) {
	a, _, c := newCertificate(t, time.Now().Add(30*aDay), quiet())
	if !secure {
		c = nil
	}
	g := New(edge.Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10_000, OperatorToken: operatorToken, OperatorCertificate: c})
	t.Cleanup(func() { g.Shutdown(time.Minute) })
	l := newNetwork(t)
	go g.ServeOperator(l) //nolint:errcheck // ends with the listener
	asked := func(c net.Conn, token string, status int) net.Conn {
		t.Helper()
		a := talk(t, c, "GET",
			"GET /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+
				"\r\n\r\n")
		if a.status != status || strings.Contains(a.body, api.TooManyConnections.Detail) {
			t.Errorf("%d %s", a.status, a.body)
		}
		return c
	}
	dial := func() net.Conn {
		t.Helper()
		raw := dialed(t, l)
		if c == nil {
			return raw
		}
		return tls.Client(raw, &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1"})
	}
	const starting, wrong = 503, 401
	served := []net.Conn{asked(dial(), operatorToken, starting)}
	closedAfter(t, asked(dial(), "a guess", wrong))
	eventually(t, "the guessing client has given its place back", func() bool {
		return g.operators.Places.Open() == 1
	})
	oldest := dialed(t, l)
	for range edge.OperatorConnections - 2 {
		dialed(t, l)
	}
	for range edge.OperatorConnections - 1 {
		served = append(served, asked(dial(), operatorToken, starting))
	}
	if _, err := oldest.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger keeps its place")
	}
	for _, c := range served {
		asked(c, operatorToken, starting)
	}
	if n := g.operators.Places.Refused(); n != edge.OperatorConnections-1 {
		t.Errorf("%d were closed", n)
	}
	dialed(t, l) // all earlier connections have shown the token
	eventually(t, "one more is refused", func() bool {
		return g.operators.Places.Refused() == edge.OperatorConnections
	})
	asked(served[0], operatorToken, starting)
	g.SetOperatorToken("another")
	closedAfter(t, asked(served[0], operatorToken, wrong))
	asked(dial(), "another", starting)
}
