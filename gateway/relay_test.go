package gateway

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
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/node"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// passing is the leader a, and b, a follower that relays operators' requests.
type passing struct {
	*harness
	follower *Gateway
	b        *fakeCluster
	leads    *fakeCluster
	dialed   atomic.Int64
}

func newPassing(t *testing.T) *passing {
	t.Helper()
	h, c := aNode(t)
	c.set(func(s *operator.Standing) { s.Leader = "a" })
	p := &passing{harness: h, leads: c, b: newFakeCluster()}
	p.b.view.Node, p.b.view.Leader, p.b.view.LeaderURL = "b", "a", "https://a.example.org"
	p.b.dial = func(node string) (net.Conn, error) {
		if node != "a" {
			t.Errorf("node %s is dialed", node)
		}
		p.dialed.Add(1)
		here, there := net.Pipe()
		go h.gateway.ServeNode("b", there)
		return here, nil
	}
	p.follower = p.node(operatorToken)
	return p
}

// node makes the gateway of b, with a token of its own.
func (p *passing) node(token string) *Gateway {
	g := New(edge.Options{Log: quiet(), BodyBytes: 64 << 10, HeaderBytes: 8 << 10, Connections: 100,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, OperatorToken: token, Cluster: p.b})
	g.SetFollower(nil, nil)
	return g
}

// ownRoutes are those that the receiving node answers itself, and a part of the answer.
var ownRoutes = map[string]string{"/operator/v1/cluster": `"node":"b"`,
	"/operator/v1/cluster/hash":  `"node":"b"`,
	"/operator/v1/config/reload": "JSON object", operator.DocumentPath: `"openapi":"3.1.0"`}

// Each route answers the same at both nodes, except those about the receiving node.
func TestFollowerRelaysOperatorRequests(t *testing.T) {
	p := newPassing(t)
	there, here := asOperator(t, p.gateway), asOperator(t, p.follower)
	a := here("POST", "/operator/v1/deposits",
		`{"account":"alice","currency":"USDT","amount":"5","reference":"x"}`,
		"Authorization: Bearer "+operatorToken, "X-Operator: carol", "X-Operator-Origin: nowhere")
	if a.status != 200 || !strings.Contains(a.body, `"balance":5`) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	a = there("GET", "/operator/v1/actions", "")
	if !strings.Contains(a.body, `"who":"carol from 127.0.0.1 through node b"`) {
		t.Error(a.body)
	}
	queries := map[string]string{"/operator/v1/account": "?name=alice",
		"/operator/v1/keys": "?account=alice", "/operator/v1/orders": "?account=alice&limit=7",
		"/operator/v1/statement": "?account=alice", "/operator/v1/trades": "?pair=BTC_USDT"}
	changing := regexp.MustCompile(`"paused_ms":\d+|"sequence":\d+|"projections[a-z_]*":\d+|` +
		progress.String())
	for _, route := range operator.Routes() {
		method, path, _ := strings.Cut(route, " ")
		before, body := p.dialed.Load(), ""
		if method == "POST" {
			body = "{" // refused by its handler, which changes nothing
		}
		if path == "/operator/v1/audit" {
			body = "{}"
		}
		got := here(method, path+queries[path], body)
		if says := ownRoutes[path]; says != "" {
			if p.dialed.Load() != before || !strings.Contains(got.body, says) {
				t.Errorf("%s is passed on: %s", route, got.body)
			}
			continue
		}
		if p.dialed.Load() != before+1 {
			t.Errorf("%s is not passed on", route)
		}
		want := there(method, path+queries[path], body)
		same := changing.ReplaceAllString(got.body, "") == changing.ReplaceAllString(want.body, "")
		if path == "/operator/v1/backup" { // is sealed again each time
			same = len(got.body) > 100 && got.body[:4] == want.body[:4]
		}
		if got.status != want.status || !same || string(got.header.ContentType()) !=
			string(want.header.ContentType()) {
			t.Errorf("%s:\n%d %s %.300s, and at the leader\n%d %s %.300s", route,
				got.status, got.header.ContentType(), got.body, want.status,
				want.header.ContentType(), want.body)
		}
	}
	a = here("GET", "/metrics", "")
	if a.status != 200 || !strings.Contains(a.body, "exchange_cluster_leads 0") {
		t.Errorf("the metrics of another node are shown: %d", a.status)
	}
	here("GET", "/operator/v1/none", "").is(t, 404)
}

// Two kinds of errors: nothing was done, and a retry is safe; or the outcome is unknown.
func TestRelayFailureIsNotDoneOrUnknown(t *testing.T) {
	bubble(t, testRelayFailureIsNotDoneOrUnknown)
}

func testRelayFailureIsNotDoneOrUnknown(t *testing.T) {
	p := newPassing(t)
	ask := asOperator(t, p.follower)
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
		"half a body": {answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), false, "off"},
		"a head without an end": {answers("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)),
			false, "off"},
		"a body without an end": {answers("HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n{}"), false,
			"off"},
		"no HTTP": {answers("what?\r\n\r\n"), false, "off"},
	} {
		p.b.dial = x.dial
		for _, method := range []string{"GET", "POST"} {
			a := ask(method, "/operator/v1/accounts", "")
			unknown := method == "POST" && !x.known
			if a.status != 503 || !strings.Contains(a.body, x.says) ||
				unknown != strings.Contains(a.body, "outcome unknown: it may or may not") ||
				unknown == (len(a.header.Peek("Retry-After")) > 0) ||
				x.known != (string(a.header.Peek("X-Leader")) == "https://a.example.org") {
				t.Errorf("%s: %s %d %s\n%s", what, method, a.status, a.header, a.body)
			}
		}
	}
	// a long answer that breaks off does so at the client, too
	p.b.dial = answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n")
	l := p.serves(p.follower)
	c := dialed(t, l)
	io.WriteString(c, "GET /operator/v1/accounts HTTP/1.1\r\nHost: x\r\n"+ //nolint:errcheck // read
		"Authorization: Bearer "+operatorToken+"\r\n\r\n")
	resp := must(http.ReadResponse(bufio.NewReader(c), nil))
	if b, err := io.ReadAll(resp.Body); err == nil || string(b) != `{"a":` {
		t.Errorf("it seems complete: %q", b)
	}
}

// serves lets operators reach a gateway.
func (p *passing) serves(g *Gateway) *network {
	l := newNetwork(p.t)
	p.t.Cleanup(func() { l.Close() })
	go g.ServeOperator(l) //nolint:errcheck // ends with the listener
	return l
}

// Both nodes check the token, and the leader counts its refusals.
func TestLeaderChecksTokenAgain(t *testing.T) {
	p := newPassing(t)
	const other = "another-token-of-the-tests"
	here := asOperator(t, p.node(other))
	says := refusal("node a refuses the operator's token that node b has forwarded: give " +
		"all nodes the same token")
	if a := here("GET", "/operator/v1/accounts", ""); a.status != 401 || p.dialed.Load() > 0 {
		t.Errorf("an unknown token is relayed: %d", a.status)
	}
	for range operator.GuessesAtOnce {
		a := here("POST", "/operator/v1/accounts", `{"name":"mallory"}`,
			"Authorization: Bearer "+other)
		if a.status != 401 || a.body != says+"\n" {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	a := here("POST", "/operator/v1/accounts", `{"name":"mallory"}`, "Authorization: Bearer "+other)
	if a.status != 429 || string(a.header.Peek("Retry-After")) == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if n := p.gateway.operators.Operator.Refused(); n != 1 {
		t.Errorf("%d refusals are counted", n)
	}
	a = asOperator(t, p.follower)("GET", "/operator/v1/accounts", "")
	if a.status != 200 || strings.Contains(a.body, "mallory") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A request is relayed once: a node mistaken for the leader refuses it.
func TestNoRequestIsPassedOnTwice(t *testing.T) {
	p := newPassing(t)
	p.gateway.SetFollower(nil, nil)
	p.leads.set(func(s *operator.Standing) { s.Leader, s.LeaderURL = "c", "https://c.example.org" })
	p.leads.dial = func(node string) (net.Conn, error) {
		t.Errorf("it is passed on to %s", node)
		return nil, errors.New("no")
	}
	for _, path := range []string{"/operator/v1/accounts", "/operator/v1/cluster/transfer"} {
		a := asOperator(t, p.follower)("POST", path, `{"name":"mallory","to":"b"}`)
		if a.status != 503 || string(a.header.Peek("Retry-After")) == "" ||
			string(a.header.Peek("X-Leader")) != "https://c.example.org" ||
			!strings.Contains(a.body, "Node c leads.") {
			t.Errorf("%d %s %s", a.status, a.header, a.body)
		}
	}
	p.gateway.SetEngine(p.engine)
	if a := asOperator(t, p.gateway)("GET", "/operator/v1/accounts", ""); strings.Contains(a.body,
		"mallory") || len(p.leads.asked) > 0 {
		t.Error(a.body, p.leads.asked)
	}
}

// A node relays a bounded number of requests at a time. One more is refused, and is not sent.
func TestRelayedRequestsAreBounded(t *testing.T) {
	p := newPassing(t)
	ask, dial := asOperator(t, p.follower), p.b.dial
	came, release := make(chan struct{}, node.OperatorsAtOnce), make(chan struct{})
	p.b.dial = func(node string) (net.Conn, error) {
		came <- struct{}{}
		<-release
		return dial(node)
	}
	var all sync.WaitGroup
	for range node.OperatorsAtOnce {
		all.Go(func() {
			ask("GET", "/operator/v1/accounts", "").is(t, 200)
		})
	}
	for range node.OperatorsAtOnce {
		<-came
	}
	a := ask("GET", "/operator/v1/accounts", "")
	if a.status != 503 || string(a.header.Peek("Retry-After")) == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	close(release)
	all.Wait()
	ask("GET", "/operator/v1/accounts", "").is(t, 200)
}

// Garbage from another node instead of an operator's request changes nothing, and ends its
// connection.
func TestNonsenseOfANodeChangesNothing(t *testing.T) {
	p := newPassing(t)
	const post = "POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\n"
	const body = "Content-Length: 18\r\n\r\n" + `{"name":"mallory"}`
	// unlike the other one it is read before the token is checked
	const chunks = "Transfer-Encoding: chunked\r\n\r\n12\r\n" + `{"name":"mallory"}` + "\r\n0\r\n\r\n"
	const http1 = " HTTP/1.1\r\nHost: x\r\n"
	right := "Authorization: Bearer " + operatorToken + "\r\n"
	for what, x := range map[string]struct {
		sent   string
		status string // "": no answer
	}{
		"no token":            {post + body, "401"},
		"chunks and no token": {post + chunks, "401"},
		"a token in the query": {"POST /operator/v1/accounts?token=" + operatorToken + http1 +
			chunks, "401"},
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
			p.gateway.ServeNode("b", there)
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
		if x.status == "" && answered != "" || strings.Contains(answered, operatorToken) ||
			x.status != "" && (!strings.HasPrefix(answered, "HTTP/1.1 "+x.status) ||
				strings.Count(answered, "HTTP/1.1") != 1) {
			t.Errorf("%s: %.300s", what, answered)
		}
	}
	a := asOperator(t, p.gateway)("GET", "/operator/v1/accounts", "")
	if a.status != 200 || strings.Contains(a.body, "mallory") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
