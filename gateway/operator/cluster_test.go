package operator_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// A follower refuses each request, names the leader, and serves again when it leads itself.
func TestFollowerNamesLeader(t *testing.T) {
	h, c := harness.ANode(t)
	engine := h.Engine
	const says = "This node is a follower and does not serve this request."
	const polling = "/socket.v2/?EIO=4&transport=polling"
	follows := func(path, about, leader string) {
		t.Helper()
		a := h.Get("alice", path)
		harness.Want(t, path, a, 503, harness.Detail(says+about))
		if got := string(a.Header.Peek("X-Leader")); got != leader {
			t.Errorf("%s: X-Leader is %q", path, got)
		}
		if string(a.Header.Peek("Retry-After")) != "1" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
	for range 2 {
		harness.Want(t, "leads", h.Do("GET", "/leaderz", "", ""), 200, `{"status":"leads"}`)
		harness.Want(t, "ready", h.Do("GET", "/readyz", "", ""), 200, `{"status":"ready"}`)
		if ctx := harness.Answered(h, polling); ctx.Response.StatusCode() != 200 {
			t.Errorf("the stream: %d %s", ctx.Response.StatusCode(), ctx.Response.Body())
		}
		h.Gateway.SetFollower(nil, nil)
		for _, path := range []string{"/api/v1/wallets/", "/api/v1/ticker/", "/readyz", "/leaderz",
			polling} {
			follows(path, " Node b leads.", "https://b.example.org")
		}
		harness.Want(t, "alive", h.Do("GET", "/healthz", "", ""), 200, `{"status":"alive"}`)
		a := h.Post("alice", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "1", "1"))
		harness.Want(t, "an order", a, 503, harness.Detail(says+" Node b leads."))
		c.Set(func(s *operator.Standing) { s.LeaderURL = "" })
		follows("/readyz", " Node b leads.", "")
		c.Set(func(s *operator.Standing) { s.Leader = "" })
		follows("/readyz", " No node is known to lead.", "")
		c.Set(func(s *operator.Standing) { s.Leader = "a" })
		follows("/readyz", " It leads, and does not serve yet, or any more.", "")
		c.Set(func(s *operator.Standing) { *s = harness.NewFakeCluster().View })
		h.Gateway.SetEngine(engine)
	}
	h.Get("alice", "/api/v1/wallets/").Is(t, 200)
}

// A follower answers public requests, and has sockets for them, as soon as it can.
func TestFollowerAnswersPublicRequests(t *testing.T) {
	h, _ := harness.ANode(t)
	engine := h.Engine
	for range 2 {
		h.Gateway.SetFollower(engine.Public, nil)
		for _, path := range []string{"/api/v1/time/", "/api/v1/exchange-info/", "/api/v1/pairs/",
			"/api/v1/currencies/", "/api/v1/ticker/", "/api/v1/orderbook/BTC_USDT/",
			"/api/v1/exchanges/", "/api/charts/BTC_USDT/60/chart/", "/healthz",
			"/socket.v2/?EIO=4&transport=polling"} {
			if ctx := harness.Answered(h, path); ctx.Response.StatusCode() != 200 {
				t.Errorf("%s: %d %s", path, ctx.Response.StatusCode(), ctx.Response.Body())
			}
		}
		for _, path := range []string{"/api/v1/wallets/", "/readyz", "/leaderz"} {
			harness.Want(t, path, h.Get("alice", path), 503,
				harness.Detail("This node is a follower and does not serve this request. "+
					"Node b leads."))
		}
		if ctx := harness.Answered(h,
			"/api/v1/orderbook/BTC_EUR/"); ctx.Response.StatusCode() != 404 {
			t.Error("the book of an unknown pair:", ctx.Response.StatusCode())
		}
		h.Gateway.SetFollower(nil, nil)
		harness.Want(t, "nothing is known", h.Get("alice", "/api/v1/ticker/"), 503,
			harness.Detail("This node is a follower and does not serve this request. "+
				"Node b leads."))
	}
	h.Gateway.SetEngine(engine)
}

// Each node answers operators about the cluster, and the leader everything else.
func TestOperatorsAskEachNodeForTheCluster(t *testing.T) {
	h, c := harness.ANode(t)
	h.Gateway.SetFollower(nil, nil)
	ask := func(method, path, body string) (int, string) {
		a := harness.AsOperator(t, h.Gateway)(method, path, body)
		return a.Status, a.Body
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
	if status != 503 || !strings.Contains(body, "does not serve this request. Node b "+
		"leads. node b cannot be reached") {
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
	c.Set(func(s *operator.Standing) { s.Leader = "" })
	transfer("c", 503, "No node is known to lead.")
	c.Set(func(s *operator.Standing) { s.Leader = "a" })
	h.Gateway.SetEngine(h.Engine)
	transfer("a", 400, "node a leads already")
	transfer("d", 400, `there is no node \"d\"`)
	if len(c.Asked) > 0 {
		t.Fatal(c.Asked)
	}
	c.Fails = errors.New("the node lacks too much of the log")
	transfer("c", 503, "the node lacks too much of the log")
	status, body = ask("GET", "/operator/v1/cluster/hash", "")
	if status != 503 || !strings.Contains(body, "this node has no state to hash: the node lacks") {
		t.Errorf("%d %s", status, body)
	}
	c.Fails = nil
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
	other := harness.New(t, nil)
	for _, x := range [][2]string{{"GET", "/operator/v1/cluster"},
		{"GET", "/operator/v1/cluster/hash"},
		{"POST", "/operator/v1/cluster/transfer"}, {"POST", "/operator/v1/cluster/remove"}} {
		a := harness.AsOperator(t, other.Gateway)(x[0], x[1], "{}")
		if a.Status != 400 || !strings.Contains(a.Body, "it runs on one machine") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
}

// A change of the membership goes one step further with each request: the calls to the node, and
// the answer, for each standing.
func TestMembershipChangeProceedsStepByStep(t *testing.T) {
	h, c := harness.ANode(t)
	ask := harness.AsOperator(t, h.Gateway)
	with := func(more ...operator.NodeStanding) operator.Standing {
		s := harness.NewFakeCluster().View
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
	const dBegun = `{"node":"d","address":"h:1","begun":true}`
	const cc = `{"node":"c","address":"h:1","old":"c"`
	refused, unknown := actors.NewRequestError("it lags"), errors.New("no answer")
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
		{add, d, gone, nil, "", 200, `"done":true,"role":"voter","lag":0,"says":"node d is a voter, ` +
			`and was one before: nothing was done"`},
		{add, dBegun, gone, nil, "", 200, `"says":"node d is a voter"`},
		{add, `{"node":"c","address":"h:1"}`, lost, nil, "", 400, "replace c c=h:1"},
		{replace, bd, with(), nil, "replace b d h:1", 200, "node d is awaited"},
		{replace, bd, with(), refused, "replace b d h:1", 400, "it lags"},
		{replace, bd, with(replacing), nil, "", 200, "node d is awaited"},
		{replace, bd, with(awaited), nil, "", 400, "is not replacing b"},
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
		c.Set(func(s *operator.Standing) { *s = x.view })
		c.Asked, c.Fails = nil, x.fails
		a := ask("POST", "/operator/v1/cluster/"+x.what, x.body)
		if got := strings.Join(c.Asked, ", "); a.Status != x.status || got != x.asked ||
			!strings.Contains(a.Body, x.says) {
			t.Errorf("%s %s: it asks %q, want %q; %d %s, want %d %s", x.what, x.body, got, x.asked,
				a.Status, a.Body, x.status, x.says)
		}
	}
	for _, x := range []struct {
		view operator.Standing
		want string
	}{{with(), ""}, {with(replacing), "node d is replacing b"},
		{with(learner), "node d is joining"}, {leaving, "node b leaves"}} {
		c.Set(func(s *operator.Standing) { *s = x.view })
		a := ask("GET", "/operator/v1/cluster", "")
		if !strings.Contains(a.Body, `"change":"`+x.want+`"`) {
			t.Errorf("%s, want %q", a.Body, x.want)
		}
	}
}

// A dyingCluster no longer receives messages of its third node.
type dyingCluster struct{ *harness.FakeCluster }

func (c dyingCluster) Standing() operator.Standing {
	c.Set(func(s *operator.Standing) {
		s.Nodes = slices.Clone(s.Nodes)
		s.Nodes[2].Silent++
	})
	return c.FakeCluster.Standing()
}

// A member that has only just ended still counts as alive when the request comes. It is replaced
// nevertheless.
func TestAMemberThatHasJustEndedIsReplaced(t *testing.T) {
	for _, newest := range []bool{false, true} {
		c := dyingCluster{harness.NewFakeCluster()}
		h := harness.New(t, nil)
		h.Retune(func(o *edge.Options) { o.Cluster = c })
		c.Set(func(s *operator.Standing) {
			s.Leader, s.Tick = "a", time.Millisecond
			s.Nodes[2].Newest, s.Nodes[2].Silent = newest, 0
		})
		a := harness.AsOperator(t, h.Gateway)("POST", "/operator/v1/cluster/replace",
			`{"node":"c","address":"h:1","old":"c"}`)
		if a.Status != 200 || !slices.Equal(c.Asked, []string{"replace c c h:1"}) {
			t.Errorf("newest %t: it asks %q: %d %s", newest, c.Asked, a.Status, a.Body)
		}
	}
}

// A market part is applied at the leader, and the answer has the changed keys. It may be longer
// than the bodies of other requests, and has a bound of its own.
func TestAMarketPartIsApplied(t *testing.T) {
	h, c := harness.ANode(t)
	ask := harness.AsOperator(t, h.Gateway)
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
		{"a", apply, "pairs", actors.NewRequestError("orders are open"), "apply pairs", 400,
			"orders are open"},
		{"a", apply, "pairs", errors.New("no answer"), "apply pairs", 503, "outcome unknown"},
		{"a", apply, long, nil, "apply " + long, 200, ""},
		{"a", apply + "/", long, nil, "apply " + long, 200, ""},
		{"a", apply, long + long[:1<<20], nil, "", 413, ""},
		{"a", other, long[:64<<10], nil, "", 413, ""},
	} {
		c.Set(func(s *operator.Standing) { s.Leader = x.leader })
		c.Asked, c.Fails = nil, x.fails
		a := ask("POST", x.path,
			`{"market":"`+base64.StdEncoding.EncodeToString([]byte(x.market))+`"}`)
		if got := strings.Join(c.Asked, ", "); a.Status != x.status || got != x.asked ||
			!strings.Contains(a.Body, x.says) {
			t.Errorf("%.20s at %s: it asks %.20q; %d %.100s, want %d %s", x.market, x.path, got,
				a.Status, a.Body, x.status, x.says)
		}
	}
	if a := ask("POST", apply, `{"market":"no base64"}`); a.Status != 400 ||
		!strings.Contains(a.Body, "not the JSON object") {
		t.Errorf("no base64: %d %s", a.Status, a.Body)
	}
	ask("POST", apply, `{"market":"`+long[:1<<20]+`"}`, "Authorization: Bearer x").Is(t, 401,
		"without the token")
}

// Each node has the metrics of the cluster; the leader has the progress of the others.
func TestEachNodeShowsTheCluster(t *testing.T) {
	h, c := harness.ANode(t)
	scrape := harness.Scraping(t, h.Gateway)
	h.Gateway.SetFollower(nil, nil)
	s := scrape()
	for name, want := range map[string]float64{"exchange_cluster_leads": 0,
		"exchange_cluster_term": 7, "exchange_cluster_elections_total": 2,
		"exchange_cluster_applied_index": 40, "exchange_cluster_committed_index": 50,
		"exchange_cluster_folded_sequence": 30, "exchange_cluster_log_bytes": 4096,
		"exchange_cluster_fault": 0, "exchange_ready": 0, "exchange_standby": 1} {
		if got := s.Value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := s.Value("exchange_cluster_peer_silent_seconds", "node", "b"); got != 0.05 {
		t.Error(got)
	}
	if s.Series("exchange_cluster_peer_silent_seconds", "node", "c") != nil {
		t.Error("followers send nothing to each other")
	}
	if s["exchange_cluster_peer_lag_entries"] != nil {
		t.Error("a follower shows the others' progress")
	}
	links := c.View.Links
	c.Set(func(s *operator.Standing) { s.Impossible = 11 })
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
	if s.Value("exchange_cluster_links", "direction", "to") != 1 ||
		s.Value("exchange_cluster_impossible_total") != 11 ||
		s.Value("exchange_cluster_links", "direction", "from") != 0 ||
		s.Value("exchange_cluster_link_requests_in_flight", "direction", "to") != 2 ||
		s.Value(requests, "direction", "to", "outcome", "answered") != 3 ||
		s.Value(requests, "direction", "to", "outcome", "full") != 4 ||
		s.Value(requests, "direction", "to", "outcome", "unknown") != 5 ||
		s.Value(requests, "direction", "from", "outcome", "answered") != 6 ||
		s.Value("exchange_cluster_observer_requests_total", "outcome", "verified") != 7 ||
		s.Value("exchange_cluster_observer_requests_total", "outcome", "refused") != 8 {
		t.Error("a counted value is not shown")
	}
	if s["exchange_cluster_feed_bytes_total"] != nil {
		t.Error("a node that has a store shows what observers are sent")
	}
	c.Set(func(s *operator.Standing) { s.Observer, s.FedBatches, s.FedBytes = true, 9, 10 })
	s = scrape()
	if s.Value("exchange_cluster_feed_batches_total") != 9 ||
		s.Value("exchange_cluster_feed_bytes_total") != 10 {
		t.Error("the messages to an observer are not shown")
	}
	c.Set(func(s *operator.Standing) {
		s.Observer, s.Leader, s.Fault = false, "a", "a record of a kind"
	})
	h.Gateway.SetEngine(h.Engine)
	s = scrape()
	if s.Value("exchange_cluster_leads") != 1 || s.Value("exchange_cluster_fault") != 1 ||
		s.Value("exchange_standby") != 0 ||
		s.Value("exchange_cluster_peer_silent_seconds", "node", "c") != 0.45 ||
		s.Value("exchange_cluster_peer_lag_entries", "node", "b") != 50 {
		t.Errorf("%v", s.Series("exchange_cluster_peer_lag_entries"))
	}
}

// While the exchange creates its first state, each node is starting, whichever one leads.
func TestANodeIsStartingUntilTheExchangeHasBegun(t *testing.T) {
	h, c := harness.ANode(t)
	engine := h.Engine
	h.Gateway.CurrentAPI().Store(nil) // it is not yet clear whether it leads
	harness.Want(t, "a start", h.Do("GET", "/leaderz", "", ""), 503,
		harness.Detail(api.Starting.Detail))
	for _, leader := range []string{"a", "b", ""} {
		c.Set(func(s *operator.Standing) { s.Leader, s.Starting = leader, true })
		h.Gateway.SetFollower(nil, nil)
		for _, path := range []string{"/readyz", "/leaderz", "/api/v1/ticker/"} {
			a := h.Get("alice", path)
			harness.Want(t, path, a, 503, harness.Detail(api.Starting.Detail))
			if named := a.Header.Peek("X-Leader"); len(named) > 0 {
				t.Errorf("%s: X-Leader is %q", path, named)
			}
		}
		harness.Want(t, "alive", h.Do("GET", "/healthz", "", ""), 200, `{"status":"alive"}`)
	}
	c.Set(func(s *operator.Standing) { s.Starting = false })
	h.Gateway.SetEngine(engine)
	harness.Want(t, "ready", h.Do("GET", "/readyz", "", ""), 200, `{"status":"ready"}`)
}
