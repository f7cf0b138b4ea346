package gateway

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
	"github.com/prometheus/common/expfmt"
	prommodel "github.com/prometheus/common/model"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/actors"
	"exchange/actors/metrics"
	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// A scraped has the metrics of one scrape by name.
type scraped map[string]*dto.MetricFamily

// scraping gives a function that scrapes a gateway.
func scraping(t *testing.T, g *Gateway) func() scraped {
	g.Options().PollPatience = time.Minute // no scrape of a test lacks slow values
	ask := asOperator(t, g)
	return func() scraped {
		t.Helper()
		a := ask("GET", "/metrics", "")
		if kind := string(a.header.ContentType()); a.status != 200 ||
			!strings.HasPrefix(kind, "text/plain; version=0.0.4") {
			t.Fatalf("%d %s %.200s", a.status, kind, a.body)
		}
		parser := expfmt.NewTextParser(prommodel.UTF8Validation)
		return must(parser.TextToMetricFamilies(strings.NewReader(a.body)))
	}
}

// series are the metrics of a family that have these labels (name, value ...).
func (s scraped) series(name string, labels ...string) (list []*dto.Metric) {
	for _, m := range s[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i+1 < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			list = append(list, m)
		}
	}
	return list
}

// value is the sum of a family's series with these labels; of histograms, of their counts. NaN:
// there are none.
func (s scraped) value(name string, labels ...string) float64 {
	list := s.series(name, labels...)
	if len(list) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, m := range list {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(
			m.GetHistogram().GetSampleCount())
	}
	return sum
}

// withAll is a scrape with the metrics of two gateways that have a certificate: a leader, and an
// observer.
func (s scraped) withAll(t *testing.T) scraped {
	t.Helper()
	_, _, c := newCertificate(t, time.Now().Add(aDay), quiet())
	leads, observes := newFakeCluster(), newFakeCluster()
	leads.view.Leader, observes.view.Observer = leads.view.Node, true
	for _, cluster := range []operator.Cluster{leads, observes} {
		g := New(edge.Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
			Connections: 10, OperatorToken: operatorToken, Certificate: c, Cluster: cluster,
			Folders: []edge.Folder{{Name: "data", Path: t.TempDir()}}})
		for name, f := range scraping(t, g)() {
			if s[name] == nil {
				s[name] = f
			}
		}
	}
	return s
}

// busyExchange has done a little of everything.
func busyExchange(t *testing.T) *harness {
	h := newHarness(t, nil)
	h.account("alice")
	h.account("bob")
	for _, d := range [][2]string{{"alice", "BTC"}, {"bob", "USDT"}} {
		h.deposit(d[0], "1000", d[1], d[0])
	}
	return h
}

func TestTheScrapeIsCleanAndComplete(t *testing.T) {
	h := busyExchange(t)
	scrape := scraping(t, h.gateway)
	h.get("alice", "/api/v1/wallets")
	s := scrape().withAll(t)
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
	if series := s.series("exchange_http_request_duration_seconds", "listener", "public", "route",
		"/api/v1/wallets"); len(series) != 1 || series[0].GetHistogram().GetSampleSum() <= 0 {
		t.Errorf("%v", series)
	}
	if again := scrape(); again.value("exchange_http_requests_total", "listener", "operator",
		"route", "/metrics", "code", "200") != 1 {
		t.Errorf("a scrape is not counted: %v",
			again.series("exchange_http_requests_total", "route", "/metrics"))
	}
}

func TestBeforeThereIsAnEngineThereIsAScrape(t *testing.T) {
	g := New(edge.Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 10,
		OperatorToken: operatorToken, Build: edge.Build{Version: "v1.2.3", Commit: "abc"}})
	s := scraping(t, g)()
	if s.value("exchange_ready") != 0 ||
		s.value("exchange_build_info", "version", "v1.2.3", "commit", "abc") != 1 ||
		s["exchange_orders_accepted_total"] != nil {
		t.Errorf("ready %v, build %v", s["exchange_ready"], s["exchange_build_info"])
	}
}

func TestTriggersExpiriesAndPreventionsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := ruledHarness(t)
		scrape := scraping(t, h.gateway)
		for i, says := range []string{"type=sell",
			"trigger_price=100&price=90",           // the trade of the next order triggers it
			"amount=0.5&self_trade=none",           // both are bob's
			"self_trade=cancel_oldest&amount=0.25", // it meets what is left of the first
			"expire_time=NEXT&time_in_force=gtd&price=80"} {
			form := strings.ReplaceAll(instructionForm(says), "NEXT",
				fmt.Sprintf("%.3f", float64(time.Now().UnixMilli()+3000)/1000))
			h.post("bob", "/api/v1/order/", form).must(t, 201, "order", i+1)
		}
		for _, name := range []string{"exchange_orders_triggered_total",
			"exchange_self_trades_prevented_total", "exchange_orders_expired_total"} {
			eventually(t, name+" is 1", func() bool { return scrape().value(name) == 1 })
		}
	})
}

func TestCountersFollowEvents(t *testing.T) {
	h := busyExchange(t)
	scrape := scraping(t, h.gateway)
	before := scrape()
	moved := func(what string, by float64, name string, labels ...string) {
		t.Helper()
		was, is := before.value(name, labels...), scrape().value(name, labels...)
		if math.IsNaN(was) { // series of requests begin with the first one
			was = 0
		}
		if is-was != by {
			t.Errorf("%s: %s%v went from %v to %v, want %v more", what, name, labels, was, is, by)
		}
	}
	status := func(a answer, want int) {
		t.Helper()
		if a.status != want {
			t.Fatalf("%d %s, want %d", a.status, a.body, want)
		}
	}
	status(h.post("alice", "/api/v1/order", order("sell", "BTC_USDT", "1", "100")), 201)
	status(h.post("alice", "/api/v1/order/", order("sell", "BTC_USDT", "1", "101")), 201)
	moved("orders", 2, "exchange_orders_accepted_total")
	moved("orders", 2, "exchange_journal_records_total", "kind", "order")
	moved("orders", 2, "exchange_http_requests_total", "listener", "public", "route",
		"/api/v1/order", "code", "201")
	moved("orders", 2, "exchange_http_request_duration_seconds", "route", "/api/v1/order")
	moved("orders", 2, "exchange_journal_batch_records")
	moved("orders", 2, "exchange_store_append_duration_seconds")
	moved("no trade", 0, "exchange_trades_total")
	status(h.post("bob", "/api/v1/order", order("buy", "BTC_USDT", "1", "100")), 201)
	moved("a trade", 1, "exchange_trades_total")
	status(h.post("alice", "/api/v1/order-cancel", "order=2"), 200)
	moved("a cancel", 1, "exchange_orders_cancelled_total")
	status(h.post("alice", "/api/v1/order-cancel", "order=2"), 400)
	moved("a cancel of a cancelled order", 1, "exchange_commands_refused_total", "reason",
		"not_open")
	status(h.post("bob", "/api/v1/order", order("buy", "BTC_USDT", "1000", "100")), 400)
	moved("no funds", 1, "exchange_commands_refused_total", "reason", "funds")
	moved("no funds", 1, "exchange_http_requests_total", "route", "/api/v1/order", "code", "400")
	h.nonces["bob"] = 0
	status(h.post("bob", "/api/v1/order", order("buy", "BTC_USDT", "1", "100")), 401)
	moved("a nonce that was used", 1, "exchange_commands_refused_total", "reason", "nonce")
	moved("all refusals", 3, "exchange_commands_refused_total")
	moved("a bad request is no refusal", 3, "exchange_orders_accepted_total")
	status(h.do("GET", "/api/v1/orderbook/BTC_USDT", "", ""), 200)
	moved("a pattern", 1, "exchange_http_requests_total", "route", "/api/v1/orderbook/{pair}",
		"code", "200")
	status(h.raw("GET", "nonsense\r\n\r\n"), 400)
	moved("bytes that are no request", 1, "exchange_http_requests_total", "listener", "public",
		"route", "malformed", "code", "400")

	admin := asOperator(t, h.gateway)
	admin("POST", "/operator/v1/maintenance", `{"on":true}`)
	moved("maintenance", 1, "exchange_maintenance")
	status(h.post("alice", "/api/v1/order", order("sell", "BTC_USDT", "1", "100")), 503)
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

func TestStagesAreInTheScrape(t *testing.T) { bubble(t, testStagesAreInTheScrape) }

func testStagesAreInTheScrape(t *testing.T) {
	h := busyExchange(t)
	scrape := scraping(t, h.gateway)
	stages := []string{"queue", "match", "gather", "append", "release", "answer"}
	eventually(t, "some command was traced", func() bool { // the clock chooses
		for range metrics.TraceOneIn {
			h.post("alice", "/api/v1/order",
				order("sell", "BTC_USDT", "0.00001", "100")).must(t, 201)
		}
		return scrape().value("exchange_command_stage_duration_seconds", "stage", "match") > 0
	})
	s := scrape()
	for _, stage := range stages {
		if n := s.value("exchange_command_stage_duration_seconds", "stage", stage); !(n > 0) {
			t.Errorf("stage %s: %v", stage, n)
		}
	}
	if n := len(s.series("exchange_command_stage_duration_seconds")); n != len(stages) {
		t.Errorf("%d stages", n)
	}
}

func TestRoutesArePatternsForAnyPath(t *testing.T) {
	h := busyExchange(t)
	scrape := scraping(t, h.gateway)
	scrape()
	before := scrape()
	for i := range 300 {
		h.do("GET", "/unknown/"+strconv.Itoa(i)+"?x="+strconv.Itoa(i), "", "")
		h.do("POST", "/api/v1/orderbook/PAIR_"+strconv.Itoa(i), "", "")
		h.do("GET", "/api/v1/order/"+strconv.Itoa(i), "", "")
		h.do("GET", "/docs/"+strconv.Itoa(i), "", "")
		h.do("GET", "/web/"+strconv.Itoa(i), "", "")
	}
	ask := asOperator(t, h.gateway)
	for i := range 20 {
		ask("GET", "/operator/v1/"+strconv.Itoa(i), "")
		ask("GET", "/debug/pprof/"+strconv.Itoa(i), "")
		ask("GET", "/metrics/"+strconv.Itoa(i), "", "Authorization: none")
	}
	s := scrape()
	if got := s.value("exchange_http_requests_total", "listener", "public", "route", "unmatched",
		"code", "404"); got != 300 {
		t.Errorf("%v requests are unmatched", got)
	}
	routes := map[string]bool{"unmatched": true, "malformed": true, "/metrics": true,
		"/debug/pprof/{profile}": true, "/operator/v1/audit": true}
	for path := range h.gateway.public.Table() {
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
	if was, is := len(before.series("exchange_http_requests_total")),
		len(s.series("exchange_http_requests_total")); is > was+10 {
		t.Errorf("there were %d series and there are %d", was, is)
	}
}

func TestMetricsAndProfilesAreTheOperators(t *testing.T) {
	h := newHarness(t, nil)
	ask := asOperator(t, h.gateway)
	paths := []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap",
		"/debug/pprof/goroutine?debug=2", "/debug/pprof/profile?seconds=1",
		"/debug/pprof/trace?seconds=1"}
	for _, path := range paths {
		if a := ask("GET", path, ""); a.status != 200 || len(a.body) < 100 {
			t.Errorf("%s: %d %d bytes", path, a.status, len(a.body))
		}
		ask("POST", path, "").is(t, 404, "POST", path)
		h.do("GET", path, "", "", "Authorization", "Bearer "+operatorToken).is(t, 404, path,
			"on the public listener")
	}
	// The command line may contain the password of a store.
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/symbol",
		"/debug/pprof/nothing"} {
		if a := ask("GET", path, ""); a.status != 404 || strings.Contains(a.body, os.Args[0]) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// A scrape is wanted most when no other request is answered.
func TestAStalledStoreIsInTheScrape(t *testing.T) { bubble(t, testAStalledStoreIsInTheScrape) }

func testAStalledStoreIsInTheScrape(t *testing.T) {
	h, store := newStubborn(t, func(o *actors.Options) {
		o.Timing.Stall, o.Timing.Request = 20*time.Millisecond, time.Second
	})
	scrape := scraping(t, h.gateway)
	release := store.block()
	h.post("alice", "/api/v1/order", order("buy", "BTC_USDT", "1", "1")).must(t, 503)
	s := scrape()
	for name, want := range map[string]float64{"exchange_store_stalled": 1, "exchange_ready": 0,
		"exchange_commands_in_flight": 1} {
		if got := s.value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if s.value("exchange_unanswered_total", "kind", "command") != 1 ||
		!(s.value("exchange_store_append_waiting_seconds") > 0.02) {
		t.Errorf("unanswered %v, waiting %v", s.value("exchange_unanswered_total"),
			s.value("exchange_store_append_waiting_seconds"))
	}
	release()
	eventually(t, "it is over", func() bool {
		s := scrape()
		return s.value("exchange_store_stalled") == 0 && s.value("exchange_ready") == 1
	})
}

func TestConnectionsAndLimitsOnRatesAreInTheScrape(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h, _ := limited(t, func(o *edge.Options) { o.PublicRate = perSecond(1, 2) })
		scrape := scraping(t, h.gateway)
		for range 5 {
			h.do("GET", "/api/v1/currencies", "", "")
		}
		s := scrape()
		if got := s.value("exchange_http_throttled_requests_total", "limit", "public"); got != 3 ||
			s.value("exchange_http_throttled_requests_total", "limit", "cancels") != 0 {
			t.Errorf("%v were throttled", got)
		}
		if got := s.value("exchange_http_requests_total", "route", "/api/v1/currencies", "code",
			"429"); got != 3 {
			t.Errorf("%v answers of 429", got)
		}
		if got := s.value("exchange_http_open_connections", "listener", "public"); got < 1 {
			t.Errorf("%v connections are open", got)
		}

		g := New(edge.Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
			Connections: 1, OperatorToken: operatorToken})
		l := fasthttputil.NewInmemoryListener()
		go g.Serve(l) //nolint:errcheck // ends with the listener
		defer l.Close()
		scrape = scraping(t, g)
		for range 3 {
			c := must(l.Dial())
			defer c.Close()
		}
		eventually(t, "one connection is open and two were refused", func() bool {
			s := scrape()
			return s.value("exchange_http_open_connections", "listener", "public") == 1 &&
				s.value("exchange_http_refused_connections_total", "listener", "public") == 2
		})
	})
}

// metricName finds the names of metrics in PromQL, with the labels that choose them.
var metricName = regexp.MustCompile(`\b((?:exchange|go|process)_[a-z0-9_]+)(?:\{([^}]*)\})?`)

func TestDashboardUsesExistingMetrics(t *testing.T) {
	h := busyExchange(t)
	scrape := scraping(t, h.gateway)
	h.do("GET", "/api/v1/pairs", "", "")
	scrape() // so that the scrape contains a request
	s := scrape().withAll(t)
	text := must(os.ReadFile("../docs/grafana-dashboard.json"))
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	worked(t, json.Unmarshal(text, &dashboard))
	used := map[string]bool{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			maps.Copy(used, s.usedBy(t, panel.Title, target.Expr))
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

// usedBy returns the metrics that an expression of PromQL names. An unknown metric or label is an
// error of the place that has the expression.
func (s scraped) usedBy(t *testing.T, where, expr string) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	for _, m := range metricName.FindAllStringSubmatch(expr, -1) {
		f := s[m[1]]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(m[1],
				suffix); ok && f == nil && s[base].GetType() == dto.MetricType_HISTOGRAM {
				f = s[base]
			}
		}
		if f == nil {
			t.Errorf("%s: there is no %s in the scrape", where, m[1])
			continue
		}
		used[f.GetName()] = true
		for label := range strings.SplitSeq(m[2], ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(label), "=")
			name = strings.TrimRight(name, "!")
			value = strings.Trim(value, `"`)
			if strings.HasPrefix(value, "~") || name == "code" || name == "route" {
				value = "" // a pattern, or a series without requests in this scrape
			}
			if name != "" && name != "instance" && name != "job" && !hasLabel(f, name, value) {
				t.Errorf("%s: %s has no label %s", where, m[1], label)
			}
		}
	}
	return used
}

// hasLabel reports whether a metric has a label with a value, with any value if none is given.
func hasLabel(f *dto.MetricFamily, name, value string) bool {
	return slices.ContainsFunc(f.GetMetric(), func(m *dto.Metric) bool {
		return name == "quantile" && m.GetSummary() != nil ||
			slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
				return l.GetName() == name && (value == "" || l.GetValue() == value)
			})
	})
}

// Each metric says in the scrape what it is, and the operators' pages name none that there is not.
func TestEveryMetricIsDescribedForOperators(t *testing.T) {
	files := must(filepath.Glob("../docs/operations/*.md"))
	files = append(files, "../docs/runbook.md")
	scrape := scraping(t, newHarness(t, nil).gateway)
	scrape() // so that the scrape contains a request
	s := scrape().withAll(t)
	known := regexp.MustCompile(`exchange_[a-z_]+[a-z]`)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if len(s[name].GetHelp()) < 20 {
			t.Errorf("%s is not described: %q", name, s[name].GetHelp())
		}
	}
	named := 0
	for _, file := range files {
		text := must(os.ReadFile(file))
		for _, name := range known.FindAllString(string(text), -1) {
			if named++; s[strings.TrimSuffix(name, "_bucket")] == nil {
				t.Errorf("%s names %s, which there is not", file, name)
			}
		}
	}
	if len(files) < 8 || named < 40 {
		t.Errorf("%d pages name %d metrics: are they read rightly?", len(files), named)
	}
}

func TestServerFailureIsLoggedWithoutSecrets(t *testing.T) {
	logged := &captured{}
	h, store := newStubborn(t, func(o *actors.Options) {
		o.Timing.Stall, o.Timing.Request = 20*time.Millisecond, time.Second
	})
	h.retune(func(o *edge.Options) {
		all := &slog.HandlerOptions{Level: slog.LevelDebug}
		o.Log = slog.New(slog.NewTextHandler(logged, all))
	})
	defer store.block()()
	form := order("buy", "BTC_USDT", "1", "1")
	headers := signed("alice", 1, form)
	unknown := h.do("POST", "/api/v1/order/?secret=1", formType, form, headers...)
	ready := h.do("GET", "/readyz", "", "")
	outside := h.do("GET", "/api/v1/order/1/?secret=1", "", "", "X-KEY", "none")
	for _, c := range []struct {
		a    answer
		line []string
	}{
		{unknown, []string{"level=ERROR", "method=POST", "route=/api/v1/order ",
			"path=/api/v1/order/ ", "status=503", "took=", "failure=OutcomeUnknown"}},
		{ready, []string{"level=DEBUG", "method=GET", "route=/readyz", "status=503", "took=",
			"failure=StoreUnavailable", `error="` + actors.ErrStalled.Error()}},
	} {
		id := string(c.a.header.Peek("X-Request-Id"))
		line := logged.line("request=" + id)
		if c.a.status != 503 || len(id) != 24 || line == "" {
			t.Errorf("%d %s: id %q, log %q", c.a.status, c.a.body, id, line)
			continue
		}
		for _, part := range c.line {
			if !strings.Contains(line, part) {
				t.Errorf("%q is missing in %s", part, line)
			}
		}
	}
	if id := outside.header.Peek("X-Request-Id"); outside.status != 401 || len(id) > 0 ||
		strings.Contains(logged.String(), "{pk}") {
		t.Errorf("a failure that is not ours: %d, id %q", outside.status, id)
	}
	for _, secret := range []string{headers[1], headers[3], "secret", "amount"} {
		if strings.Contains(logged.String(), secret) {
			t.Errorf("%s is in the log:\n%s", secret, logged.String())
		}
	}
}

// line is the first line that has a text, "" if there is none.
func (c *captured) line(text string) string {
	for line := range strings.Lines(c.String()) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

func TestAnOperatorsFailureIsNamedInTheLog(t *testing.T) {
	logged := &captured{}
	h, store := newStubborn(t, func(o *actors.Options) { o.Timing.Request = time.Second })
	h.retune(func(o *edge.Options) { o.Log = slog.New(slog.NewTextHandler(logged, nil)) })
	ask := asOperator(t, h.gateway)
	defer store.block()()
	a := ask("POST", "/operator/v1/deposits",
		`{"account":"alice","currency":"BTC","amount":1,"reference":"x"}`)
	id := string(a.header.Peek("X-Request-Id"))
	line := logged.line("request=" + id)
	if a.status != 503 || len(id) != 24 ||
		!strings.Contains(line,
			"method=POST route=/operator/v1/deposits path=/operator/v1/deposits "+
				"status=503 took=") ||
		strings.Contains(line, operatorToken) {
		t.Errorf("%d %s: id %q, log %q", a.status, a.body, id, line)
	}
	if a := ask("POST", "/operator/v1/deposits", `{"account":"nobody"}`); a.status != 400 ||
		len(a.header.Peek("X-Request-Id")) > 0 {
		t.Errorf("a failure that is not ours: %d %s", a.status, a.body)
	}
}

func TestAFloodOfFailuresIsLoggedInPart(t *testing.T) {
	logged, now := &captured{}, int64(0)
	g := New(edge.Options{Log: slog.New(slog.NewTextHandler(logged, nil)), BodyBytes: 1,
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
	if line := logged.line(id); !strings.Contains(line, "status=500") ||
		!strings.Contains(line, "stack=") ||
		!strings.Contains(line, `error="a handler panicked: on purpose"`) {
		t.Errorf("a panic: %s", line)
	}
	now += int64(time.Second)
	id = slices.Collect(maps.Keys(fails(1, unavailable)))[0]
	if line, want := logged.line(id),
		fmt.Sprintf("not_logged_before=%d", 100-edge.FailuresPerSecond); !strings.Contains(line,
		want) {
		t.Errorf("the next second: %s, want %s", line, want)
	}
}
