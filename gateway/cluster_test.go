package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/metrics"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// A fakeCluster is a node whose view a test sets.
type fakeCluster struct {
	mu    sync.Mutex
	view  operator.Standing
	fails error    // of Transfer
	asked []string // nodes that should become leader
	dial  func(node string) (net.Conn, error)
}

func (c *fakeCluster) Standing() operator.Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view
}

func (c *fakeCluster) Hash(context.Context) (seq uint64, hash [32]byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view.Folded, [32]byte{0xab, 31: 0xcd}, c.fails
}

func (c *fakeCluster) Dial(_ context.Context, node string) (net.Conn, error) {
	if c.dial == nil {
		return nil, fmt.Errorf("node %s cannot be reached", node)
	}
	return c.dial(node)
}

func (c *fakeCluster) Transfer(_ context.Context, to string, begins func()) error {
	begins()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, to)
	if c.fails == nil {
		c.view.Leader = to
	}
	return c.fails
}

// change records the changes, and fails if set to.
func (c *fakeCluster) change(what ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, strings.Join(what, " "))
	return c.fails
}

func (c *fakeCluster) Add(_ context.Context, name, address string) error {
	return c.change("add", name, address)
}

func (c *fakeCluster) Promote(_ context.Context, name string) error {
	return c.change("promote", name)
}

func (c *fakeCluster) Remove(_ context.Context, name string) error {
	return c.change("remove", name)
}

func (c *fakeCluster) Replace(_ context.Context, old, name, address string) error {
	return c.change("replace", old, name, address)
}

// Apply accepts a market part, which is one key.
func (c *fakeCluster) Apply(_ context.Context, packed []byte) ([]string, error) {
	if len(packed) == 0 {
		return nil, c.change("apply", "nothing")
	}
	return []string{string(packed)}, c.change("apply", string(packed))
}

// set changes the node's view.
func (c *fakeCluster) set(change func(*operator.Standing)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.view)
}

// newFakeCluster is the node a, a follower of b.
func newFakeCluster() *fakeCluster {
	return &fakeCluster{view: operator.Standing{Node: "a", Leader: "b",
		LeaderURL: "https://b.example.org", Term: 7, Elections: 2, Applied: 40, Committed: 50,
		Folded: 30, LogBytes: 4096, Format: 2, Differs: []string{"pairs"},
		Tick: 50 * time.Millisecond, Links: new(metrics.Links),
		Nodes: []operator.NodeStanding{
			{Name: "a", Role: operator.Voter, Match: 45, Reads: 3,
				OwnMarket: true, Differs: true},
			{Name: "b", Role: operator.Voter, Silent: 1, Reads: 2, OwnMarket: true},
			{Name: "c", Role: operator.Voter, Silent: 9}}}}
}

// aNode is a harness whose exchange is a node.
func aNode(t *testing.T) (*harness, *fakeCluster) {
	c := newFakeCluster()
	h := newHarness(t, nil)
	// guesses of the token are counted by a clock that stands still
	h.retune(func(o *edge.Options) { o.Cluster, o.Clock = c, new(testClock).ns.Load })
	h.account("alice")
	return h, c
}

// A follower refuses each request, names the leader, and serves again when it leads itself.
func TestFollowerNamesLeader(t *testing.T) {
	h, c := aNode(t)
	engine := h.engine
	const says = "This node is a follower and does not serve this request."
	const polling = "/socket.v2/?EIO=4&transport=polling"
	follows := func(path, about, leader string) {
		t.Helper()
		a := h.get("alice", path)
		want(t, path, a, 503, detail(says+about))
		if got := string(a.header.Peek("X-Leader")); got != leader {
			t.Errorf("%s: X-Leader is %q", path, got)
		}
		if string(a.header.Peek("Retry-After")) != "1" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
	for range 2 {
		want(t, "leads", h.do("GET", "/leaderz", "", ""), 200, `{"status":"leads"}`)
		want(t, "ready", h.do("GET", "/readyz", "", ""), 200, `{"status":"ready"}`)
		if ctx := answered(h, polling); ctx.Response.StatusCode() != 200 {
			t.Errorf("the stream: %d %s", ctx.Response.StatusCode(), ctx.Response.Body())
		}
		h.gateway.SetFollower(nil, nil)
		for _, path := range []string{"/api/v1/wallets/", "/api/v1/ticker/", "/readyz", "/leaderz",
			polling} {
			follows(path, " Node b leads.", "https://b.example.org")
		}
		want(t, "alive", h.do("GET", "/healthz", "", ""), 200, `{"status":"alive"}`)
		a := h.post("alice", "/api/v1/order/", order("buy", "BTC_USDT", "1", "1"))
		want(t, "an order", a, 503, detail(says+" Node b leads."))
		c.set(func(s *operator.Standing) { s.LeaderURL = "" })
		follows("/readyz", " Node b leads.", "")
		c.set(func(s *operator.Standing) { s.Leader = "" })
		follows("/readyz", " No node is known to lead.", "")
		c.set(func(s *operator.Standing) { s.Leader = "a" })
		follows("/readyz", " It leads, and does not serve yet, or any more.", "")
		c.set(func(s *operator.Standing) { *s = newFakeCluster().view })
		h.gateway.SetEngine(engine)
	}
	h.get("alice", "/api/v1/wallets/").is(t, 200)
}

// A follower answers public requests, and has sockets for them, as soon as it can.
func TestFollowerAnswersPublicRequests(t *testing.T) {
	h, _ := aNode(t)
	engine := h.engine
	for range 2 {
		h.gateway.SetFollower(engine.Public, nil)
		for _, path := range []string{"/api/v1/time/", "/api/v1/exchange-info/", "/api/v1/pairs/",
			"/api/v1/currencies/", "/api/v1/ticker/", "/api/v1/orderbook/BTC_USDT/",
			"/api/v1/exchanges/", "/api/charts/BTC_USDT/60/chart/", "/healthz",
			"/socket.v2/?EIO=4&transport=polling"} {
			if ctx := answered(h, path); ctx.Response.StatusCode() != 200 {
				t.Errorf("%s: %d %s", path, ctx.Response.StatusCode(), ctx.Response.Body())
			}
		}
		for _, path := range []string{"/api/v1/wallets/", "/readyz", "/leaderz"} {
			want(t, path, h.get("alice", path), 503,
				detail("This node is a follower and does not serve this request. Node b leads."))
		}
		if ctx := answered(h, "/api/v1/orderbook/BTC_EUR/"); ctx.Response.StatusCode() != 404 {
			t.Error("the book of an unknown pair:", ctx.Response.StatusCode())
		}
		h.gateway.SetFollower(nil, nil)
		want(t, "nothing is known", h.get("alice", "/api/v1/ticker/"), 503,
			detail("This node is a follower and does not serve this request. Node b leads."))
	}
	h.gateway.SetEngine(engine)
}

// Each node answers operators about the cluster, and the leader everything else.
func TestOperatorsAskEachNodeForTheCluster(t *testing.T) {
	h, c := aNode(t)
	h.gateway.SetFollower(nil, nil)
	ask := func(method, path, body string) (int, string) {
		a := asOperator(t, h.gateway)(method, path, body)
		return a.status, a.body
	}
	status, body := ask("GET", "/operator/v1/cluster", "")
	const follower = `{"node":"a","role":"follower","serves":false,"leader":"b",` +
		`"leader_url":"https://b.example.org","term":7,"elections":2,"applied":40,"committed":50,` +
		`"folded":30,"log_bytes":4096,"format":2,"change":"","fault":"","config_differs":["pairs"],` +
		`"clock_ahead_ms":0,"clock_wrong":false,"tick_ms":50,"nodes":[` +
		`{"name":"a","role":"voter","replaces":"","match":45,"lag":5,"silent_ticks":0,` +
		`"reads":3,"config_differs":true},` +
		`{"name":"b","role":"voter","replaces":"","match":null,"lag":null,"silent_ticks":1,` +
		`"reads":2,"config_differs":false},` +
		`{"name":"c","role":"voter","replaces":"","match":null,"lag":null,"silent_ticks":null,` +
		`"reads":null,"config_differs":null}]}`
	if status != 200 || strings.TrimSpace(body) != follower {
		t.Errorf("%d %s", status, body)
	}
	status, body = ask("GET", "/operator/v1/accounts", "")
	if status != 503 || !strings.Contains(body, "does not answer this. Node b leads. node b "+
		"cannot be reached") {
		t.Errorf("%d %s", status, body)
	}
	transfer := func(to string, want int, text string) {
		t.Helper()
		status, body := ask("POST", "/operator/v1/cluster/transfer", `{"to":"`+to+`"}`)
		if status != want || !strings.Contains(body, text) {
			t.Errorf("to %q: %d %s", to, status, body)
		}
	}
	transfer("c", 503, "Node b leads. node b cannot be reached")
	c.set(func(s *operator.Standing) { s.Leader = "" })
	transfer("c", 503, "No node is known to lead.")
	c.set(func(s *operator.Standing) { s.Leader = "a" })
	h.gateway.SetEngine(h.engine)
	transfer("a", 400, "node a leads already")
	transfer("d", 400, `there is no node \"d\"`)
	if len(c.asked) > 0 {
		t.Fatal(c.asked)
	}
	c.fails = errors.New("the node lacks too much of the log")
	transfer("c", 503, "the node lacks too much of the log")
	status, body = ask("GET", "/operator/v1/cluster/hash", "")
	if status != 503 || !strings.Contains(body, "this node has no state to hash: the node lacks") {
		t.Errorf("%d %s", status, body)
	}
	c.fails = nil
	status, body = ask("GET", "/operator/v1/cluster/hash", "")
	if want := `{"node":"a","sequence":30,"hash":"ab` + strings.Repeat("0", 60) +
		`cd"}`; status != 200 || strings.TrimSpace(body) != want {
		t.Errorf("%d %s", status, body)
	}
	status, body = ask("GET", "/operator/v1/cluster", "")
	if status != 200 || !strings.Contains(body, `"role":"leader","serves":true`) ||
		!strings.Contains(body, `{"name":"c","role":"voter","replaces":"",`+
			`"match":0,"lag":50,"silent_ticks":9,"reads":null,"config_differs":null}`) {
		t.Errorf("%d %s", status, body)
	}
	transfer("c", 200, `{"from":"a","to":"c"}`)
	other := newHarness(t, nil)
	for _, x := range [][2]string{{"GET", "/operator/v1/cluster"},
		{"GET", "/operator/v1/cluster/hash"},
		{"POST", "/operator/v1/cluster/transfer"}, {"POST", "/operator/v1/cluster/remove"}} {
		a := asOperator(t, other.gateway)(x[0], x[1], "{}")
		if a.status != 400 || !strings.Contains(a.body, "it runs on one machine") {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

// A change of the membership goes one step further with each request: the calls to the node, and
// the answer, for each standing.
func TestMembershipChangeProceedsStepByStep(t *testing.T) {
	h, c := aNode(t)
	ask := asOperator(t, h.gateway)
	with := func(more ...operator.NodeStanding) operator.Standing {
		s := newFakeCluster().view
		s.Leader, s.Nodes = "a", append(s.Nodes, more...)
		return s
	}
	lost := with()
	lost.Nodes[2].Silent = 99
	joined := with()
	joined.Nodes[2].Newest, joined.Nodes[2].Address = true, "h:1"
	leaving := with(operator.NodeStanding{Name: "d", Role: operator.Voter})
	leaving.Nodes[1].Role = operator.Leaving
	gone := with(operator.NodeStanding{Name: "d", Role: operator.Voter, Match: 50})
	gone.Nodes = append(gone.Nodes[:1], gone.Nodes[2:]...)
	awaited := operator.NodeStanding{Name: "d", Role: operator.Awaited, Address: "h:1"}
	replacing := awaited
	replacing.Replaces = "b"
	learner := operator.NodeStanding{Name: "d", Role: operator.Learner, Match: 20}
	following := with()
	following.Leader = "b"
	const add, replace, remove = "add", "replace", "remove"
	const d, bd = `{"node":"d","address":"h:1"}`, `{"node":"d","address":"h:1","old":"b"}`
	const cc = `{"node":"c","address":"h:1","old":"c"`
	refused, unknown := actors.Refuse("it lags"), errors.New("no answer")
	for _, x := range []struct {
		what, body string
		view       operator.Standing
		fails      error
		asked      string
		status     int
		says       string
	}{
		{add, d, following, nil, "", 503, "has not confirmed lately"},
		{add, `{}`, with(), nil, "", 400, "node: the name"},
		{add, d, with(), nil, "add d h:1", 200, "node d is awaited: start it"},
		{add, d, with(), refused, "add d h:1", 400, "it lags"},
		{add, d, with(), unknown, "add d h:1", 503, "outcome unknown"},
		{add, d, with(awaited), nil, "", 200, `"done":false,"role":"awaited","lag":null`},
		{add, `{"node":"d","address":"h:2"}`, with(awaited), nil, "", 400, "a member at h:1"},
		{add, d, with(replacing), nil, "", 400, "cluster replace b d=h:1"},
		{add, d, with(learner), refused, "promote d", 200, `"lag":30,"says":"it lags"`},
		{add, d, gone, nil, "", 200, `"done":true,"role":"voter","lag":0,"says":"node d is a voter"`},
		{replace, bd, with(), nil, "replace b d h:1", 200, "node d is awaited"},
		{replace, bd, with(), refused, "replace b d h:1", 400, "it lags"},
		{replace, bd, with(replacing), nil, "", 200, "node d is awaited"},
		{replace, bd, with(awaited), nil, "", 400, "does not take the place of b"},
		{replace, bd, leaving, nil, "", 200, "node b leaves"},
		{replace, bd, gone, nil, "", 200, `"done":true,"role":"voter"`},
		{replace, `{"node":"d","address":"h:1","old":"a"}`, with(), nil, "", 400,
			"node a leads: hand the lead over first"},
		{replace, cc + "}", with(), nil, "", 400, "node c lives and has its log"},
		{replace, cc + "}", lost, nil, "replace c c h:1", 200, `"done":false`},
		{replace, cc + `,"begun":true}`, with(), nil, "", 200, `"done":true`},
		{replace, cc + "}", joined, nil, "", 200, `"done":true,"role":"voter","lag":50,"says":` +
			`"node c is a voter, and joined last: it is not replaced once more"`},
		{replace, `{"node":"c","address":"h:9","old":"c"}`, joined, nil, "", 400, "at h:1"},
		{remove, `{"node":"c"}`, with(), nil, "remove c", 200, `"done":true`},
		{remove, `{"node":"c"}`, with(), refused, "remove c", 400, "it lags"},
		{remove, `{"node":"d","begun":true}`, with(), nil, "", 200, "node d is no member"},
	} {
		c.set(func(s *operator.Standing) { *s = x.view })
		c.asked, c.fails = nil, x.fails
		a := ask("POST", "/operator/v1/cluster/"+x.what, x.body)
		if got := strings.Join(c.asked, ", "); a.status != x.status || got != x.asked ||
			!strings.Contains(a.body, x.says) {
			t.Errorf("%s %s: it asks %q, want %q; %d %s, want %d %s", x.what, x.body, got, x.asked,
				a.status, a.body, x.status, x.says)
		}
	}
	for _, x := range []struct {
		view operator.Standing
		want string
	}{{with(), ""}, {with(replacing), "node d is replacing b"},
		{with(learner), "node d is joining"}, {leaving, "node b leaves"}} {
		c.set(func(s *operator.Standing) { *s = x.view })
		a := ask("GET", "/operator/v1/cluster", "")
		if !strings.Contains(a.body, `"change":"`+x.want+`"`) {
			t.Errorf("%s, want %q", a.body, x.want)
		}
	}
}

// A dyingCluster no longer receives messages of its third node.
type dyingCluster struct{ *fakeCluster }

func (c dyingCluster) Standing() operator.Standing {
	c.set(func(s *operator.Standing) {
		s.Nodes = slices.Clone(s.Nodes)
		s.Nodes[2].Silent++
	})
	return c.fakeCluster.Standing()
}

// A member that has only just ended still counts as alive when the request comes. It is replaced
// nevertheless.
func TestAMemberThatHasJustEndedIsReplaced(t *testing.T) {
	for _, newest := range []bool{false, true} {
		c := dyingCluster{newFakeCluster()}
		h := newHarness(t, nil)
		h.retune(func(o *edge.Options) { o.Cluster = c })
		c.set(func(s *operator.Standing) {
			s.Leader, s.Tick = "a", time.Millisecond
			s.Nodes[2].Newest, s.Nodes[2].Silent = newest, 0
		})
		a := asOperator(t, h.gateway)("POST", "/operator/v1/cluster/replace",
			`{"node":"c","address":"h:1","old":"c"}`)
		if a.status != 200 || !slices.Equal(c.asked, []string{"replace c c h:1"}) {
			t.Errorf("newest %t: it asks %q: %d %s", newest, c.asked, a.status, a.body)
		}
	}
}

// A market part is applied at the leader, and the answer has the changed keys. It may be longer
// than the bodies of other requests, and has a bound of its own.
func TestAMarketPartIsApplied(t *testing.T) {
	h, c := aNode(t)
	ask := asOperator(t, h.gateway)
	const apply, other = "/operator/v1/cluster/apply", "/operator/v1/cluster/transfer"
	long := strings.Repeat("x", 4<<20)
	for _, x := range []struct {
		leader, path, market string
		fails                error
		asked                string
		status               int
		says                 string
	}{
		{"b", apply, "pairs", nil, "", 503, "has not confirmed lately"},
		{"a", apply, "pairs", nil, "apply pairs", 200, `{"keys":["pairs"]}`},
		{"a", apply, "", nil, "apply nothing", 200, `{"keys":[]}`},
		{"a", apply, "pairs", actors.Refuse("orders are open"), "apply pairs", 400,
			"orders are open"},
		{"a", apply, "pairs", errors.New("no answer"), "apply pairs", 503, "outcome unknown"},
		{"a", apply, long, nil, "apply " + long, 200, ""},
		{"a", apply + "/", long, nil, "apply " + long, 200, ""},
		{"a", apply, long + long[:1<<20], nil, "", 413, ""},
		{"a", other, long[:64<<10], nil, "", 413, ""},
	} {
		c.set(func(s *operator.Standing) { s.Leader = x.leader })
		c.asked, c.fails = nil, x.fails
		a := ask("POST", x.path,
			`{"market":"`+base64.StdEncoding.EncodeToString([]byte(x.market))+`"}`)
		if got := strings.Join(c.asked, ", "); a.status != x.status || got != x.asked ||
			!strings.Contains(a.body, x.says) {
			t.Errorf("%.20s at %s: it asks %.20q; %d %.100s, want %d %s", x.market, x.path, got,
				a.status, a.body, x.status, x.says)
		}
	}
	if a := ask("POST", apply, `{"market":"no base64"}`); a.status != 400 ||
		!strings.Contains(a.body, "not the JSON object") {
		t.Errorf("no base64: %d %s", a.status, a.body)
	}
	ask("POST", apply, `{"market":"`+long[:1<<20]+`"}`, "Authorization: Bearer x").is(t, 401,
		"without the token")
}

// Each node has the metrics of the cluster; the leader has the progress of the others.
func TestEachNodeShowsTheCluster(t *testing.T) {
	h, c := aNode(t)
	scrape := scraping(t, h.gateway)
	h.gateway.SetFollower(nil, nil)
	s := scrape()
	for name, want := range map[string]float64{"exchange_cluster_leads": 0,
		"exchange_cluster_term": 7, "exchange_cluster_elections_total": 2,
		"exchange_cluster_applied_index": 40, "exchange_cluster_committed_index": 50,
		"exchange_cluster_folded_sequence": 30, "exchange_cluster_log_bytes": 4096,
		"exchange_cluster_fault": 0, "exchange_ready": 0, "exchange_standby": 1} {
		if got := s.value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := s.value("exchange_cluster_peer_silent_seconds", "node", "b"); got != 0.05 {
		t.Error(got)
	}
	if s.series("exchange_cluster_peer_silent_seconds", "node", "c") != nil {
		t.Error("followers send nothing to each other")
	}
	if s["exchange_cluster_peer_lag_entries"] != nil {
		t.Error("a follower shows the others' progress")
	}
	links := c.view.Links
	c.set(func(s *operator.Standing) { s.Impossible = 11 })
	links.To.Up.Add(1)
	links.To.InFlight.Add(2)
	links.To.Answered.Add(3)
	links.To.Full.Add(4)
	links.To.Unknown.Add(5)
	links.From.Answered.Add(6)
	links.Verified.Add(7)
	links.Refused.Add(8)
	s = scrape()
	const requests = "exchange_cluster_link_requests_total"
	if s.value("exchange_cluster_links", "direction", "to") != 1 ||
		s.value("exchange_cluster_impossible_total") != 11 ||
		s.value("exchange_cluster_links", "direction", "from") != 0 ||
		s.value("exchange_cluster_link_requests_in_flight", "direction", "to") != 2 ||
		s.value(requests, "direction", "to", "outcome", "answered") != 3 ||
		s.value(requests, "direction", "to", "outcome", "full") != 4 ||
		s.value(requests, "direction", "to", "outcome", "unknown") != 5 ||
		s.value(requests, "direction", "from", "outcome", "answered") != 6 ||
		s.value("exchange_cluster_observer_requests_total", "outcome", "verified") != 7 ||
		s.value("exchange_cluster_observer_requests_total", "outcome", "refused") != 8 {
		t.Error("a counted value is not shown")
	}
	if s["exchange_cluster_feed_bytes_total"] != nil {
		t.Error("a node that has a store shows what observers are sent")
	}
	c.set(func(s *operator.Standing) { s.Observer, s.FedBatches, s.FedBytes = true, 9, 10 })
	s = scrape()
	if s.value("exchange_cluster_feed_batches_total") != 9 ||
		s.value("exchange_cluster_feed_bytes_total") != 10 {
		t.Error("the messages to an observer are not shown")
	}
	c.set(func(s *operator.Standing) {
		s.Observer, s.Leader, s.Fault = false, "a", "a record of a kind"
	})
	h.gateway.SetEngine(h.engine)
	s = scrape()
	if s.value("exchange_cluster_leads") != 1 || s.value("exchange_cluster_fault") != 1 ||
		s.value("exchange_standby") != 0 ||
		s.value("exchange_cluster_peer_silent_seconds", "node", "c") != 0.45 ||
		s.value("exchange_cluster_peer_lag_entries", "node", "b") != 50 {
		t.Errorf("%v", s.series("exchange_cluster_peer_lag_entries"))
	}
}

// While the exchange creates its first state, each node is starting, whichever one leads.
func TestANodeIsStartingUntilTheExchangeHasBegun(t *testing.T) {
	h, c := aNode(t)
	engine := h.engine
	h.gateway.CurrentAPI().Store(nil) // it is not yet clear whether it leads
	want(t, "a start", h.do("GET", "/leaderz", "", ""), 503, detail(api.Starting.Detail))
	for _, leader := range []string{"a", "b", ""} {
		c.set(func(s *operator.Standing) { s.Leader, s.Starting = leader, true })
		h.gateway.SetFollower(nil, nil)
		for _, path := range []string{"/readyz", "/leaderz", "/api/v1/ticker/"} {
			a := h.get("alice", path)
			want(t, path, a, 503, detail(api.Starting.Detail))
			if named := a.header.Peek("X-Leader"); len(named) > 0 {
				t.Errorf("%s: X-Leader is %q", path, named)
			}
		}
		want(t, "alive", h.do("GET", "/healthz", "", ""), 200, `{"status":"alive"}`)
	}
	c.set(func(s *operator.Standing) { s.Starting = false })
	h.gateway.SetEngine(engine)
	want(t, "ready", h.do("GET", "/readyz", "", ""), 200, `{"status":"ready"}`)
}
