package operator_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/actors/node"
	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// ownRoutes are those that the receiving node answers itself, and a part of the answer.
var ownRoutes = map[string]string{"/operator/v1/cluster": `"node":"b"`,
	"/operator/v1/cluster/hash":  `"node":"b"`,
	"/operator/v1/config/reload": "JSON object", operator.DocumentPath: `"openapi":"3.1.0"`}

// Each route answers the same at both nodes, except those about the receiving node.
func TestFollowerRelaysOperatorRequests(t *testing.T) {
	p := harness.NewPassing(t)
	there, here := harness.AsOperator(t, p.Gateway), harness.AsOperator(t, p.Follower)
	a := here("POST", "/operator/v1/deposits",
		`{"account":"alice","currency":"USDT","amount":"5","reference":"x"}`,
		"Authorization: Bearer "+harness.OperatorToken, "X-Operator: carol",
		"X-Operator-Origin: nowhere")
	if a.Status != 200 || !strings.Contains(a.Body, `"balance":5`) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	a = there("GET", "/operator/v1/actions", "")
	if !strings.Contains(a.Body, `"who":"carol from 127.0.0.1 through node b"`) {
		t.Error(a.Body)
	}
	queries := map[string]string{"/operator/v1/account": "?name=alice",
		"/operator/v1/keys": "?account=alice", "/operator/v1/orders": "?account=alice&limit=7",
		"/operator/v1/statement": "?account=alice", "/operator/v1/trades": "?pair=BTC_USDT"}
	changing := regexp.MustCompile(`"paused_ms":\d+|"sequence":\d+|"projections[a-z_]*":\d+|` +
		harness.Progress.String())
	for _, route := range operator.Routes() {
		method, path, _ := strings.Cut(route, " ")
		before, body := p.Dialed.Load(), ""
		if method == "POST" {
			body = "{" // refused by its handler, which changes nothing
		}
		if path == "/operator/v1/audit" {
			body = "{}"
		}
		got := here(method, path+queries[path], body)
		if says := ownRoutes[path]; says != "" {
			if p.Dialed.Load() != before || !strings.Contains(got.Body, says) {
				t.Errorf("%s is passed on: %s", route, got.Body)
			}
			continue
		}
		if p.Dialed.Load() != before+1 {
			t.Errorf("%s is not passed on", route)
		}
		want := there(method, path+queries[path], body)
		same := changing.ReplaceAllString(got.Body, "") == changing.ReplaceAllString(want.Body, "")
		if path == "/operator/v1/backup" { // is sealed again each time
			same = len(got.Body) > 100 && got.Body[:4] == want.Body[:4]
		}
		if got.Status != want.Status || !same || string(got.Header.ContentType()) !=
			string(want.Header.ContentType()) {
			t.Errorf("%s:\n%d %s %.300s, and at the leader\n%d %s %.300s", route,
				got.Status, got.Header.ContentType(), got.Body, want.Status,
				want.Header.ContentType(), want.Body)
		}
	}
	a = here("GET", "/metrics", "")
	if a.Status != 200 || !strings.Contains(a.Body, "exchange_cluster_leads 0") {
		t.Errorf("the metrics of another node are shown: %d", a.Status)
	}
	here("GET", "/operator/v1/none", "").Is(t, 404)
}

// Two kinds of errors: nothing was done, and a retry is safe; or the outcome is unknown.
func TestRelayFailureIsNotDoneOrUnknown(t *testing.T) {
	harness.Bubble(t, testRelayFailureIsNotDoneOrUnknown)
}

func testRelayFailureIsNotDoneOrUnknown(t *testing.T) {
	p := harness.NewPassing(t)
	ask := harness.AsOperator(t, p.Follower)
	answers := func(text string) func(string) (net.Conn, error) {
		return func(string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				if _, err := http.ReadRequest(bufio.NewReader(there)); err == nil {
					io.WriteString(there, text) //nolint:errcheck // the other end checks
				}
			}()
			return here, nil
		}
	}
	for what, x := range map[string]struct {
		dial  func(string) (net.Conn, error)
		known bool // nothing was done, also for POST
		says  string
	}{
		"cannot be reached": {func(string) (net.Conn, error) {
			return nil, errors.New("node a cannot be reached")
		}, true, "Node a leads. node a cannot be reached"},
		"no answer":   {answers(""), false, "was lost"},
		"half a head": {answers("HTTP/1.1 200 OK\r\nContent-"), false, "was lost"},
		"half a body": {answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), false,
			"was lost"},
		"a head without an end": {answers("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)),
			false, "was lost"},
		"a body without an end": {answers("HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n{}"), false,
			"was lost"},
		"no HTTP": {answers("what?\r\n\r\n"), false, "was lost"},
	} {
		p.B.Dialer = x.dial
		for _, method := range []string{"GET", "POST"} {
			a := ask(method, "/operator/v1/accounts", "")
			unknown := method == "POST" && !x.known
			if a.Status != 503 || !strings.Contains(a.Body, x.says) ||
				unknown != strings.Contains(a.Body, "outcome unknown: it may or may not") ||
				unknown == (len(a.Header.Peek("Retry-After")) > 0) ||
				x.known != (string(a.Header.Peek("X-Leader")) == "https://a.example.org") {
				t.Errorf("%s: %s %d %s\n%s", what, method, a.Status, a.Header, a.Body)
			}
		}
	}
	// a long answer that breaks off does so at the client, too
	p.B.Dialer = answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n")
	l := p.Serves(p.Follower)
	c := harness.Dialed(t, l)
	io.WriteString(c, "GET /operator/v1/accounts HTTP/1.1\r\nHost: x\r\n"+ //nolint:errcheck // read
		"Authorization: Bearer "+harness.OperatorToken+"\r\n\r\n")
	resp := harness.Must(http.ReadResponse(bufio.NewReader(c), nil))
	if b, err := io.ReadAll(resp.Body); err == nil || string(b) != `{"a":` {
		t.Errorf("it seems complete: %q", b)
	}
}

// Both nodes check the token, and the leader counts its refusals.
func TestLeaderChecksTokenAgain(t *testing.T) {
	p := harness.NewPassing(t)
	const other = "another-token-of-the-tests"
	here := harness.AsOperator(t, p.Node(other))
	says := harness.Refusal("node a refuses the operator's token that node b has forwarded: give " +
		"all nodes the same token")
	if a := here("GET", "/operator/v1/accounts", ""); a.Status != 401 || p.Dialed.Load() > 0 {
		t.Errorf("an unknown token is relayed: %d", a.Status)
	}
	for range operator.GuessesAtOnce {
		a := here("POST", "/operator/v1/accounts", `{"name":"mallory"}`,
			"Authorization: Bearer "+other)
		if a.Status != 401 || a.Body != says+"\n" {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	a := here("POST", "/operator/v1/accounts", `{"name":"mallory"}`, "Authorization: Bearer "+other)
	if a.Status != 429 || string(a.Header.Peek("Retry-After")) == "" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if n := p.Gateway.Operators().Operator.Refused(); n != 1 {
		t.Errorf("%d refusals are counted", n)
	}
	a = harness.AsOperator(t, p.Follower)("GET", "/operator/v1/accounts", "")
	if a.Status != 200 || strings.Contains(a.Body, "mallory") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// A request is relayed once: a node mistaken for the leader refuses it.
func TestNoRequestIsPassedOnTwice(t *testing.T) {
	p := harness.NewPassing(t)
	p.Gateway.SetFollower(nil, nil)
	p.Leads.Set(func(s *operator.Standing) { s.Leader, s.LeaderURL = "c", "https://c.example.org" })
	p.Leads.Dialer = func(node string) (net.Conn, error) {
		t.Errorf("it is passed on to %s", node)
		return nil, errors.New("no")
	}
	for _, path := range []string{"/operator/v1/accounts", "/operator/v1/cluster/transfer"} {
		a := harness.AsOperator(t, p.Follower)("POST", path, `{"name":"mallory","to":"b"}`)
		if a.Status != 503 || string(a.Header.Peek("Retry-After")) == "" ||
			string(a.Header.Peek("X-Leader")) != "https://c.example.org" ||
			!strings.Contains(a.Body, "Node c leads.") {
			t.Errorf("%d %s %s", a.Status, a.Header, a.Body)
		}
	}
	p.Gateway.SetEngine(p.Engine)
	if a := harness.AsOperator(t, p.Gateway)("GET", "/operator/v1/accounts",
		""); strings.Contains(a.Body, "mallory") || len(p.Leads.Asked) > 0 {
		t.Error(a.Body, p.Leads.Asked)
	}
}

// A node relays a bounded number of requests at a time. One more is refused, and is not sent.
func TestRelayedRequestsAreBounded(t *testing.T) {
	p := harness.NewPassing(t)
	ask, dial := harness.AsOperator(t, p.Follower), p.B.Dialer
	came, release := make(chan struct{}, node.OperatorsAtOnce), make(chan struct{})
	p.B.Dialer = func(node string) (net.Conn, error) {
		came <- struct{}{}
		<-release
		return dial(node)
	}
	var all sync.WaitGroup
	for range node.OperatorsAtOnce {
		all.Go(func() {
			ask("GET", "/operator/v1/accounts", "").Is(t, 200)
		})
	}
	for range node.OperatorsAtOnce {
		<-came
	}
	a := ask("GET", "/operator/v1/accounts", "")
	if a.Status != 503 || string(a.Header.Peek("Retry-After")) == "" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	close(release)
	all.Wait()
	ask("GET", "/operator/v1/accounts", "").Is(t, 200)
}

// Garbage from another node instead of an operator's request changes nothing, and ends its
// connection.
func TestNonsenseOfANodeChangesNothing(t *testing.T) {
	p := harness.NewPassing(t)
	const post = "POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\n"
	const body = "Content-Length: 18\r\n\r\n" + `{"name":"mallory"}`
	// unlike the other one it is read before the token is checked
	const chunks = "Transfer-Encoding: chunked\r\n\r\n12\r\n" + `{"name":"mallory"}` + "\r\n0\r\n\r\n"
	const http1 = " HTTP/1.1\r\nHost: x\r\n"
	right := "Authorization: Bearer " + harness.OperatorToken + "\r\n"
	for what, x := range map[string]struct {
		sent   string
		status string // "": no answer
	}{
		"no token":            {post + body, "401"},
		"chunks and no token": {post + chunks, "401"},
		"a token in the query": {"POST /operator/v1/accounts?token=" + harness.OperatorToken +
			http1 + chunks, "401"},
		"an endless body":  {post + "Content-Length: 9999999999\r\n\r\n{}", "401"},
		"a long body":      {post + right + "Content-Length: 70000\r\n\r\n{}", "413"},
		"an endless head":  {post + "X: " + strings.Repeat("x", 1<<20), "431"},
		"no HTTP":          {"\x00\x01\x02\x03 and more\r\n\r\n", "400"},
		"another version":  {"POST /operator/v1/accounts HTTP/3.0\r\n\r\n", "400"},
		"another kind":     {"PATCH /operator/v1/accounts" + http1 + right + body, "404"},
		"the metrics":      {"GET /metrics" + http1 + right + "\r\n", "404"},
		"the memory":       {"GET /debug/pprof/heap" + http1 + right + "\r\n", "404"},
		"a second request": {"GET /x" + http1 + right + "\r\n" + post + right + body, "404"},
		"nothing":          {"", ""},
	} {
		here, there := net.Pipe()
		over := make(chan struct{})
		go func() {
			defer close(over)
			p.Gateway.ServeNode("b", there)
		}()
		go func() {
			io.WriteString(here, x.sent) //nolint:errcheck // it may end in the middle of it
			if x.status == "" {
				here.Close()
			}
		}()
		here.SetReadDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // a pipe's
		got, err := io.ReadAll(here)
		if here.Close(); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays open", what)
		}
		<-over
		answered := string(got)
		if x.status == "" && answered != "" || strings.Contains(answered, harness.OperatorToken) ||
			x.status != "" && (!strings.HasPrefix(answered, "HTTP/1.1 "+x.status) ||
				strings.Count(answered, "HTTP/1.1") != 1) {
			t.Errorf("%s: %.300s", what, answered)
		}
	}
	a := harness.AsOperator(t, p.Gateway)("GET", "/operator/v1/accounts", "")
	if a.Status != 200 || strings.Contains(a.Body, "mallory") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
