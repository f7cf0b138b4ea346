package metrics

import (
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// NewScrape makes the handler of /metrics, with a registry of its own, without the metrics that
// libraries register by themselves.
func NewScrape(c *Collector, log *slog.Logger) fasthttp.RequestHandler {
	r := prometheus.NewRegistry()
	r.MustRegister(c,
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(
			collectors.GoRuntimeMetricsRule{Matcher: runtimeMetrics})))
	return fasthttpadaptor.NewFastHTTPHandler(
		promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorLog: scrapeLog{log}}))
}

// runtimeMetrics are further metrics of Go's runtime: goroutines' waits for a processor, the
// garbage collector's pauses, and its CPU time.
var runtimeMetrics = regexp.MustCompile(
	`^(/sched/latencies:seconds|/sched/pauses/total/gc:seconds|/cpu/classes/gc/total:cpu-seconds|/cpu/classes/user:cpu-seconds|/cpu/classes/total:cpu-seconds)$`)

type scrapeLog struct{ log *slog.Logger }

func (l scrapeLog) Println(v ...any) {
	l.log.Error("the metrics are not complete", "error", strings.TrimSpace(fmt.Sprintln(v...)))
}

// A Collector gives the numbers of a gateway, and of its engine once there is one. It does all work
// at a scrape: the counting code does not depend on Prometheus.
type Collector struct {
	edge      *edge.Edge
	opts      *edge.Options
	Listeners []*edge.Listener
	Meters    []*edge.Meter
	Operator  *operator.Server
	surveys   poll[survey]
	disks     poll[[]disk]
}

// New makes the collector of an edge. The caller sets its listeners, meters and operator.
func New(e *edge.Edge) *Collector {
	return &Collector{edge: e, opts: e.Options(), surveys: poll[survey]{fresh: pollFresh},
		disks: poll[[]disk]{fresh: pollFresh}}
}

// Describe implements prometheus.Collector. Collect gives each metric with its description.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It may be called by several goroutines at once.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	out := sink{ch}
	out.metric("build_info", "What the program was built from; always 1.", "version",
		"commit", "goversion").
		gauge(1, c.opts.Build.Version, c.opts.Build.Commit, runtime.Version())
	for _, m := range c.Meters {
		out.meter(m)
	}
	for _, l := range c.Listeners {
		out.listener(l)
	}
	throttled := out.metric("http_throttled_requests_total",
		"Requests answered with 429, by the limit that they met: public, failures, probes, "+
			"docs and web of one client address, reads of one key, "+
			"commands and cancels of one account, guesses of the operator's token. Much of "+
			"public or failures is an attack, or a proxy that is not in trusted_proxies.", "limit")
	c.edge.Throttled(func(n uint64, limit string) { throttled.counter(n, limit) })
	throttled.counter(c.Operator.Refused(), "guesses")
	at, stale := c.edge.Configuration()
	out.metric("config_applied_timestamp_seconds",
		"When the configuration was last taken up, by the start or a reload, in Unix time.").
		gauge(float64(at))
	out.metric("config_stale",
		"1 while the last reload of the configuration was refused, and the one before counts. "+
			"The log says why.").yes(stale)
	limits := out.metric("limits",
		"Limits of the configuration by name, to draw beside what they bound.", "limit")
	limits.gauge(float64(c.opts.Connections), "connections")
	c.watch(out)
	observes := false
	if c.opts.Cluster != nil {
		s := c.opts.Cluster.Standing()
		out.cluster(&s)
		observes = s.Observer
	}
	out.metric("standby",
		"1 while this process waits for another one that serves, and would take over from it: on "+
			"a shared store, or as a node that follows.").yes(c.Operator.StandsBy() && !observes)
	if server, hub, ok := c.edge.StreamStats(); ok {
		limits.gauge(float64(c.opts.Stream.Connections), "stream_connections")
		out.stream(server, hub)
	}
	ready := out.metric("ready",
		"1 while /readyz answers 200: the engine is up and the store confirms that it is ours, "+
			"or this node follows and serves; maintenance does not count. 0 for longer than a "+
			"start takes is an outage, unless this is a standby, or a node that follows.")
	e := c.edge.Engine()
	if e == nil {
		ready.yes(c.edge.Serves())
		return
	}
	s, l := e.Stats(), e.Limits()
	ready.yes(s.Ready)
	limits.gauge(float64(l.InFlight), "in_flight")
	limits.gauge(float64(l.Reads), "reads")
	limits.gauge(float64(l.FoldLag), "fold_lag")
	limits.gauge(float64(l.ProjectionLag), "projection_lag")
	out.engine(&s)
	c.survey(out, e)
}

// meter gives a listener's requests. A series begins with its first request. Only failures visible
// to clients exist from the start, because Prometheus sees no increase from nothing.
func (s sink) meter(m *edge.Meter) {
	requests := s.metric("http_requests_total",
		"Requests by pattern of their path and status. Watch the share of code 500 (a fault of "+
			"the program) and 503 (load, or the store); "+
			"route unmatched is paths that there are not, malformed what never became a request.",
		"listener", "route", "code")
	duration := s.metric("http_request_duration_seconds",
		"From the request being read to its answer being ready to be written. Watch the 99th "+
			"percentile of /api/v1/order: it follows the store's append.", "listener", "route")
	for number, route := range m.Routes {
		statuses, took := m.Read(number)
		for i, n := range statuses {
			code := "other"
			if i < len(edge.MeteredStatuses) {
				code = strconv.Itoa(edge.MeteredStatuses[i])
			}
			if n > 0 || m.Listener == edge.Public && (code == "500" || code == "503") {
				requests.counter(n, m.Listener, route, code)
			}
		}
		if took.Count() > 0 {
			duration.histogram(took, nanoseconds, m.Listener, route)
		}
	}
}

// listener gives the connections of a listener, and the state of its certificate if it has one.
func (s sink) listener(l *edge.Listener) {
	s.metric("http_open_connections",
		"Connections that are open. At exchange_limits{limit=\"connections\"}, on the operator's "+
			"listener at 64, "+
			"a new one takes the place of an idle one that never authenticated, or is refused.",
		"listener").gauge(float64(l.Places.Open()), l.Name)
	s.metric("http_refused_connections_total",
		"Connections that were refused because there were too many, and idle ones without a "+
			"right signature or token that were closed for newer ones. "+
			"Any is a client that leaks connections, an attack, or a limit that is too low.",
		"listener").counter(l.Places.Refused(), l.Name)
	if l.Certificate == nil {
		return
	}
	s.metric("tls_certificate_expiry_timestamp_seconds",
		"When the certificate of a listener expires, in Unix time. Less than two weeks from now "+
			"means that nobody renews it.", "listener").
		gauge(float64(l.Certificate.Expires().Unix()), l.Name)
	s.metric("tls_certificate_stale",
		"1 while a certificate's files have something that cannot be used, and the one before is "+
			"served. The log says why.", "listener").yes(l.Certificate.Stale(), l.Name)
}
