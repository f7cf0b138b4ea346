package metrics_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/actors"
	"exchange/actors/metrics"
	"exchange/gateway"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// busyExchange has done a little of everything.
func busyExchange(t *testing.T) *harness.Exchange {
	h := harness.New(t, nil)
	h.Account("alice")
	h.Account("bob")
	for _, d := range [][2]string{{"alice", "BTC"}, {"bob", "USDT"}} {
		h.Deposit(d[0], "1000", d[1], d[0])
	}
	return h
}

func TestTheScrapeIsCleanAndComplete(t *testing.T) {
	h := busyExchange(t)
	scrape := harness.Scraping(t, h.Gateway)
	h.Get("alice", "/api/v1/wallets")
	s := scrape().WithAll(t)
	var ours []*dto.MetricFamily
	for name, f := range s {
		if strings.HasPrefix(name, "exchange_") {
			ours = append(ours, f)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(ours).Lint()
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{"go_goroutines", "go_memstats_heap_inuse_bytes",
		"go_sched_latencies_seconds", "process_cpu_seconds_total", "process_resident_memory_bytes",
		"go_memstats_mallocs_total", "go_cpu_classes_gc_total_cpu_seconds_total",
		"go_cpu_classes_user_cpu_seconds_total"} {
		if s[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if series := s.Series("exchange_http_request_duration_seconds", "listener", "public", "route",
		"/api/v1/wallets"); len(series) != 1 || series[0].GetHistogram().GetSampleSum() <= 0 {
		t.Errorf("%v", series)
	}
	if again := scrape(); again.Value("exchange_http_requests_total", "listener", "operator",
		"route", "/metrics", "code", "200") != 1 {
		t.Errorf("a scrape is not counted: %v",
			again.Series("exchange_http_requests_total", "route", "/metrics"))
	}
}

func TestBeforeThereIsAnEngineThereIsAScrape(t *testing.T) {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections:   10,
		OperatorToken: harness.OperatorToken, Build: edge.Build{Version: "v1.2.3", Commit: "abc"}})
	s := harness.Scraping(t, g)()
	if s.Value("exchange_ready") != 0 ||
		s.Value("exchange_build_info", "version", "v1.2.3", "commit", "abc") != 1 ||
		s["exchange_orders_accepted_total"] != nil {
		t.Errorf("ready %v, build %v", s["exchange_ready"], s["exchange_build_info"])
	}
}

func TestTriggersExpiriesAndPreventionsAreCounted(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h := harness.RuledHarness(t)
		scrape := harness.Scraping(t, h.Gateway)
		for i, says := range []string{"type=sell",
			"trigger_price=100&price=90",           // the trade of the next order triggers it
			"amount=0.5&self_trade=none",           // both are bob's
			"self_trade=cancel_oldest&amount=0.25", // it meets what is left of the first
			"expire_time=NEXT&time_in_force=gtd&price=80"} {
			form := strings.ReplaceAll(harness.InstructionForm(says), "NEXT",
				fmt.Sprintf("%.3f", float64(time.Now().UnixMilli()+3000)/1000))
			h.Post("bob", "/api/v1/order/", form).Must(t, 201, "order", i+1)
		}
		for _, name := range []string{"exchange_orders_triggered_total",
			"exchange_self_trades_prevented_total", "exchange_orders_expired_total"} {
			harness.Eventually(t, name+" is 1", func() bool { return scrape().Value(name) == 1 })
		}
	})
}

func TestCountersFollowEvents(t *testing.T) {
	h := busyExchange(t)
	scrape := harness.Scraping(t, h.Gateway)
	before := scrape()
	moved := func(what string, by float64, name string, labels ...string) {
		t.Helper()
		was, is := before.Value(name, labels...), scrape().Value(name, labels...)
		if math.IsNaN(was) { // series of requests begin with the first one
			was = 0
		}
		if is-was != by {
			t.Errorf("%s: %s%v went from %v to %v, want %v more", what, name, labels, was, is, by)
		}
	}
	status := func(a harness.Answer, want int) {
		t.Helper()
		if a.Status != want {
			t.Fatalf("%d %s, want %d", a.Status, a.Body, want)
		}
	}
	status(h.Post("alice", "/api/v1/order", harness.Order("sell", "BTC_USDT", "1", "100")), 201)
	status(h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "101")), 201)
	moved("orders", 2, "exchange_orders_accepted_total")
	moved("orders", 2, "exchange_journal_records_total", "kind", "order")
	moved("orders", 2, "exchange_http_requests_total", "listener", "public", "route",
		"/api/v1/order", "code", "201")
	moved("orders", 2, "exchange_http_request_duration_seconds", "route", "/api/v1/order")
	moved("orders", 2, "exchange_journal_batch_records")
	moved("orders", 2, "exchange_store_append_duration_seconds")
	moved("no trade", 0, "exchange_trades_total")
	status(h.Post("bob", "/api/v1/order", harness.Order("buy", "BTC_USDT", "1", "100")), 201)
	moved("a trade", 1, "exchange_trades_total")
	status(h.Post("alice", "/api/v1/order-cancel", "order=2"), 200)
	moved("a cancel", 1, "exchange_orders_cancelled_total")
	status(h.Post("alice", "/api/v1/order-cancel", "order=2"), 400)
	moved("a cancel of a cancelled order", 1, "exchange_commands_refused_total", "reason",
		"not_open")
	status(h.Post("bob", "/api/v1/order", harness.Order("buy", "BTC_USDT", "1000", "100")), 400)
	moved("no funds", 1, "exchange_commands_refused_total", "reason", "funds")
	moved("no funds", 1, "exchange_http_requests_total", "route", "/api/v1/order", "code", "400")
	h.Nonces["bob"] = 0
	status(h.Post("bob", "/api/v1/order", harness.Order("buy", "BTC_USDT", "1", "100")), 401)
	moved("a nonce that was used", 1, "exchange_commands_refused_total", "reason", "nonce")
	moved("all refusals", 3, "exchange_commands_refused_total")
	moved("a bad request is no refusal", 3, "exchange_orders_accepted_total")
	status(h.Do("GET", "/api/v1/orderbook/BTC_USDT", "", ""), 200)
	moved("a pattern", 1, "exchange_http_requests_total", "route", "/api/v1/orderbook/{pair}",
		"code", "200")
	status(h.Raw("GET", "nonsense\r\n\r\n"), 400)
	moved("bytes that are no request", 1, "exchange_http_requests_total", "listener", "public",
		"route", "malformed", "code", "400")

	admin := harness.AsOperator(t, h.Gateway)
	admin("POST", "/operator/v1/maintenance", `{"on":true}`)
	moved("maintenance", 1, "exchange_maintenance")
	status(h.Post("alice", "/api/v1/order", harness.Order("sell", "BTC_USDT", "1", "100")), 503)
	moved("an order in maintenance", 1, "exchange_requests_turned_away_total", "reason",
		"maintenance")
	moved("an order in maintenance", 1, "exchange_http_requests_total", "listener", "public",
		"route", "/api/v1/order", "code", "503")
	moved("it is ready, for operators", 0, "exchange_ready")
	admin("POST", "/operator/v1/maintenance", `{"on":false}`)
	moved("operators' actions", 2, "exchange_journal_records_total", "kind", "maintenance")
	moved("operators' queries", 2, "exchange_http_requests_total", "listener", "operator", "route",
		"/operator/v1/maintenance", "code", "200")
}

func TestStagesAreInTheScrape(t *testing.T) { harness.Bubble(t, testStagesAreInTheScrape) }

func testStagesAreInTheScrape(t *testing.T) {
	h := busyExchange(t)
	scrape := harness.Scraping(t, h.Gateway)
	stages := []string{"queue", "match", "gather", "append", "release", "answer"}
	harness.Eventually(t, "some command was traced", func() bool { // the clock chooses
		for range metrics.TraceOneIn {
			h.Post("alice", "/api/v1/order",
				harness.Order("sell", "BTC_USDT", "0.00001", "100")).Must(t, 201)
		}
		return scrape().Value("exchange_command_stage_duration_seconds", "stage", "match") > 0
	})
	s := scrape()
	for _, stage := range stages {
		if n := s.Value("exchange_command_stage_duration_seconds", "stage", stage); !(n > 0) {
			t.Errorf("stage %s: %v", stage, n)
		}
	}
	if n := len(s.Series("exchange_command_stage_duration_seconds")); n != len(stages) {
		t.Errorf("%d stages", n)
	}
}

func TestRoutesArePatternsForAnyPath(t *testing.T) {
	h := busyExchange(t)
	scrape := harness.Scraping(t, h.Gateway)
	scrape()
	before := scrape()
	for i := range 300 {
		h.Do("GET", "/unknown/"+strconv.Itoa(i)+"?x="+strconv.Itoa(i), "", "")
		h.Do("POST", "/api/v1/orderbook/PAIR_"+strconv.Itoa(i), "", "")
		h.Do("GET", "/api/v1/order/"+strconv.Itoa(i), "", "")
		h.Do("GET", "/docs/"+strconv.Itoa(i), "", "")
		h.Do("GET", "/web/"+strconv.Itoa(i), "", "")
	}
	ask := harness.AsOperator(t, h.Gateway)
	for i := range 20 {
		ask("GET", "/operator/v1/"+strconv.Itoa(i), "")
		ask("GET", "/debug/pprof/"+strconv.Itoa(i), "")
		ask("GET", "/metrics/"+strconv.Itoa(i), "", "Authorization: none")
	}
	s := scrape()
	if got := s.Value("exchange_http_requests_total", "listener", "public", "route", "unmatched",
		"code", "404"); got != 300 {
		t.Errorf("%v requests are unmatched", got)
	}
	routes := map[string]bool{"unmatched": true, "malformed": true, "/metrics": true,
		"/debug/pprof/{profile}": true, "/operator/v1/audit": true}
	for path := range h.Gateway.Public().Table() {
		routes[path] = true
	}
	for _, path := range edge.SiteRoutes() {
		routes[path] = true
	}
	for _, route := range operator.Routes() {
		_, path, _ := strings.Cut(route, " ")
		routes[path] = true
	}
	for _, m := range s["exchange_http_requests_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "route" && !routes[l.GetValue()] {
				t.Errorf("route %q", l.GetValue())
			}
		}
	}
	// 404 of four public routes, 401 of one; 404 and 401 of unmatched and 404 of profiles on the
	// operator's listener.
	if was, is := len(before.Series("exchange_http_requests_total")),
		len(s.Series("exchange_http_requests_total")); is > was+10 {
		t.Errorf("there were %d series and there are %d", was, is)
	}
}

func TestMetricsAndProfilesAreTheOperators(t *testing.T) {
	h := harness.New(t, nil)
	ask := harness.AsOperator(t, h.Gateway)
	paths := []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap",
		"/debug/pprof/goroutine?debug=2", "/debug/pprof/profile?seconds=1",
		"/debug/pprof/trace?seconds=1"}
	for _, path := range paths {
		if a := ask("GET", path, ""); a.Status != 200 || len(a.Body) < 100 {
			t.Errorf("%s: %d %d bytes", path, a.Status, len(a.Body))
		}
		ask("POST", path, "").Is(t, 404, "POST", path)
		h.Do("GET", path, "", "", "Authorization", "Bearer "+harness.OperatorToken).Is(t, 404, path,
			"on the public listener")
	}
	// The command line may contain the password of a store.
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/symbol",
		"/debug/pprof/nothing"} {
		if a := ask("GET", path, ""); a.Status != 404 || strings.Contains(a.Body, os.Args[0]) {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

// A scrape is wanted most when no other request is answered.
func TestAStalledStoreIsInTheScrape(t *testing.T) {
	harness.Bubble(t,
		testAStalledStoreIsInTheScrape)
}

func testAStalledStoreIsInTheScrape(t *testing.T) {
	h, store := harness.NewStubborn(t, func(o *actors.Options) {
		o.Timing.Stall, o.Timing.Request = 20*time.Millisecond, time.Second
	})
	scrape := harness.Scraping(t, h.Gateway)
	release := store.Block()
	h.Post("alice", "/api/v1/order", harness.Order("buy", "BTC_USDT", "1", "1")).Must(t, 503)
	s := scrape()
	for name, want := range map[string]float64{"exchange_store_stalled": 1, "exchange_ready": 0,
		"exchange_commands_in_flight": 1} {
		if got := s.Value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if s.Value("exchange_unanswered_total", "kind", "command") != 1 ||
		!(s.Value("exchange_store_append_waiting_seconds") > 0.02) {
		t.Errorf("unanswered %v, waiting %v", s.Value("exchange_unanswered_total"),
			s.Value("exchange_store_append_waiting_seconds"))
	}
	release()
	harness.Eventually(t, "it is over", func() bool {
		s := scrape()
		return s.Value("exchange_store_stalled") == 0 && s.Value("exchange_ready") == 1
	})
}

func TestConnectionsAndLimitsOnRatesAreInTheScrape(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h, _ := harness.Limited(t, func(o *edge.Options) { o.PublicRate = harness.PerSecond(1, 2) })
		scrape := harness.Scraping(t, h.Gateway)
		for range 5 {
			h.Do("GET", "/api/v1/currencies", "", "")
		}
		s := scrape()
		if got := s.Value("exchange_http_throttled_requests_total", "limit", "public"); got != 3 ||
			s.Value("exchange_http_throttled_requests_total", "limit", "cancels") != 0 {
			t.Errorf("%v were throttled", got)
		}
		if got := s.Value("exchange_http_requests_total", "route", "/api/v1/currencies", "code",
			"429"); got != 3 {
			t.Errorf("%v answers of 429", got)
		}
		if got := s.Value("exchange_http_open_connections", "listener", "public"); got < 1 {
			t.Errorf("%v connections are open", got)
		}

		g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10,
			HeaderBytes: 1 << 10, Connections: 1, OperatorToken: harness.OperatorToken})
		l := fasthttputil.NewInmemoryListener()
		go g.Serve(l) //nolint:errcheck // ends with the listener
		defer l.Close()
		scrape = harness.Scraping(t, g)
		for range 3 {
			c := harness.Must(l.Dial())
			defer c.Close()
		}
		harness.Eventually(t, "one connection is open and two were refused", func() bool {
			s := scrape()
			return s.Value("exchange_http_open_connections", "listener", "public") == 1 &&
				s.Value("exchange_http_refused_connections_total", "listener", "public") == 2
		})
	})
}

func TestDashboardUsesExistingMetrics(t *testing.T) {
	h := busyExchange(t)
	scrape := harness.Scraping(t, h.Gateway)
	h.Do("GET", "/api/v1/pairs", "", "")
	scrape() // so that the scrape contains a request
	s := scrape().WithAll(t)
	text := harness.Must(os.ReadFile("../../docs/grafana-dashboard.json"))
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	harness.Worked(t, json.Unmarshal(text, &dashboard))
	used := map[string]bool{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			maps.Copy(used, s.UsedBy(t, panel.Title, target.Expr))
		}
	}
	if len(used) < 40 {
		t.Errorf("the dashboard uses %d metrics: is it read rightly?", len(used))
	}
	for name := range s {
		if strings.HasPrefix(name, "exchange_") && !used[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// Each metric says in the scrape what it is, and the operators' pages name none that there is not.
func TestEveryMetricIsDescribedForOperators(t *testing.T) {
	files := harness.Must(filepath.Glob("../../docs/operations/*.md"))
	files = append(files, "../../docs/runbook.md")
	scrape := harness.Scraping(t, harness.New(t, nil).Gateway)
	scrape() // so that the scrape contains a request
	s := scrape().WithAll(t)
	known := regexp.MustCompile(`exchange_[a-z_]+[a-z]`)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if len(s[name].GetHelp()) < 20 {
			t.Errorf("%s is not described: %q", name, s[name].GetHelp())
		}
	}
	named := 0
	for _, file := range files {
		text := harness.Must(os.ReadFile(file))
		for _, name := range known.FindAllString(string(text), -1) {
			if named++; s[strings.TrimSuffix(name, "_bucket")] == nil {
				t.Errorf("%s names %s, which there is not", file, name)
			}
		}
	}
	if len(files) < 8 || named < 30 {
		t.Errorf("%d pages name %d metrics: are they read rightly?", len(files), named)
	}
}

func TestServerFailureIsLoggedWithoutSecrets(t *testing.T) {
	logged := &harness.Captured{}
	h, store := harness.NewStubborn(t, func(o *actors.Options) {
		o.Timing.Stall, o.Timing.Request = 20*time.Millisecond, time.Second
	})
	h.Retune(func(o *edge.Options) {
		all := &slog.HandlerOptions{Level: slog.LevelDebug}
		o.Log = slog.New(slog.NewTextHandler(logged, all))
	})
	defer store.Block()()
	form := harness.Order("buy", "BTC_USDT", "1", "1")
	headers := harness.Signed("alice", 1, form)
	unknown := h.Do("POST", "/api/v1/order/?secret=1", harness.FormType, form, headers...)
	ready := h.Do("GET", "/readyz", "", "")
	outside := h.Do("GET", "/api/v1/order/1/?secret=1", "", "", "X-KEY", "none")
	for _, c := range []struct {
		a    harness.Answer
		line []string
	}{
		{unknown, []string{"level=ERROR", "method=POST", "route=/api/v1/order ",
			"path=/api/v1/order/ ", "status=503", "took=", "failure=OutcomeUnknown"}},
		{ready, []string{"level=DEBUG", "method=GET", "route=/readyz", "status=503", "took=",
			"failure=StoreUnavailable", `error="` + actors.ErrStalled.Error()}},
	} {
		id := string(c.a.Header.Peek("X-Request-Id"))
		line := logged.Line("request=" + id)
		if c.a.Status != 503 || len(id) != 24 || line == "" {
			t.Errorf("%d %s: id %q, log %q", c.a.Status, c.a.Body, id, line)
			continue
		}
		for _, part := range c.line {
			if !strings.Contains(line, part) {
				t.Errorf("%q is missing in %s", part, line)
			}
		}
	}
	if id := outside.Header.Peek("X-Request-Id"); outside.Status != 401 || len(id) > 0 ||
		strings.Contains(logged.String(), "{pk}") {
		t.Errorf("a failure that is not ours: %d, id %q", outside.Status, id)
	}
	for _, secret := range []string{headers[1], headers[3], "secret", "amount"} {
		if strings.Contains(logged.String(), secret) {
			t.Errorf("%s is in the log:\n%s", secret, logged.String())
		}
	}
}

func TestAnOperatorsFailureIsNamedInTheLog(t *testing.T) {
	logged := &harness.Captured{}
	h, store := harness.NewStubborn(t, func(o *actors.Options) { o.Timing.Request = time.Second })
	h.Retune(func(o *edge.Options) { o.Log = slog.New(slog.NewTextHandler(logged, nil)) })
	ask := harness.AsOperator(t, h.Gateway)
	defer store.Block()()
	a := ask("POST", "/operator/v1/deposits",
		`{"account":"alice","currency":"BTC","amount":1,"reference":"x"}`)
	id := string(a.Header.Peek("X-Request-Id"))
	line := logged.Line("request=" + id)
	if a.Status != 503 || len(id) != 24 ||
		!strings.Contains(line,
			"method=POST route=/operator/v1/deposits path=/operator/v1/deposits "+
				"status=503 took=") ||
		strings.Contains(line, harness.OperatorToken) {
		t.Errorf("%d %s: id %q, log %q", a.Status, a.Body, id, line)
	}
	if a := ask("POST", "/operator/v1/deposits", `{"account":"nobody"}`); a.Status != 400 ||
		len(a.Header.Peek("X-Request-Id")) > 0 {
		t.Errorf("a failure that is not ours: %d %s", a.Status, a.Body)
	}
}

func TestAFloodOfFailuresIsLoggedInPart(t *testing.T) {
	logged, now := &harness.Captured{}, int64(0)
	g := gateway.New(edge.Options{Log: slog.New(slog.NewTextHandler(logged, nil)), BodyBytes: 1,
		HeaderBytes: 1,
		Connections: 1, ForTests: edge.ForTests{Clock: func() int64 { return now }}})
	fails := func(n int, f func(*api.Call)) (ids map[string]bool) {
		ids = map[string]bool{}
		for range n {
			ctx := &fasthttp.RequestCtx{}
			ctx.Request.SetRequestURI("/healthz")
			g.HandlerOf(&api.Operation{Method: "GET", Early: true, Run: f})(ctx)
			ids[string(ctx.Response.Header.Peek("X-Request-Id"))] = true
		}
		return ids
	}
	unavailable := func(c *api.Call) {
		c.Cause = errors.New("on purpose")
		c.Fail(api.StoreUnavailable, "")
	}
	if ids := fails(100, unavailable); len(ids) != 100 || ids[""] {
		t.Errorf("%d answers of 100 are named", len(ids))
	}
	if n := strings.Count(logged.String(), "status=503"); n != edge.FailuresPerSecond {
		t.Errorf("%d of 100 are logged", n)
	}
	// These failures do not hide worse ones.
	id := slices.Collect(maps.Keys(fails(1, func(*api.Call) { panic("on purpose") })))[0]
	if line := logged.Line(id); !strings.Contains(line, "status=500") ||
		!strings.Contains(line, "stack=") ||
		!strings.Contains(line, `error="a handler panicked: on purpose"`) {
		t.Errorf("a panic: %s", line)
	}
	now += int64(time.Second)
	id = slices.Collect(maps.Keys(fails(1, unavailable)))[0]
	if line, want := logged.Line(id),
		fmt.Sprintf("not_logged_before=%d", 100-edge.FailuresPerSecond); !strings.Contains(line,
		want) {
		t.Errorf("the next second: %s, want %s", line, want)
	}
}
