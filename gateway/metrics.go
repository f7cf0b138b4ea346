package gateway

import (
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"exchange/gateway/operator"
)

// The metrics of the edge. A help text has the meaning of the number and the sign to look closer.
var (
	buildInfo = describe("build_info", "What the program was built from; always 1.", "version",
		"commit", "goversion")
	ready = describe("ready",
		"1 while /readyz answers 200: the engine is up and the store confirms that it is ours, "+
			"or this node follows and serves; maintenance does not count. 0 for longer than a "+
			"start takes is an outage, unless this is a standby, or a node that follows.")
	standsBy = describe("standby",
		"1 while this process waits for another one that serves, and would take over from it: on "+
			"a shared store, or as a node that follows.")
	httpRequests = describe("http_requests_total",
		"Requests by pattern of their path and status. Watch the share of code 500 (a fault of "+
			"the program) and 503 (load, or the store); "+
			"route unmatched is paths that there are not, malformed what never became a request.",
		"listener", "route", "code")
	httpDuration = describe("http_request_duration_seconds",
		"From the request being read to its answer being ready to be written. Watch the 99th "+
			"percentile of /api/v1/order: it follows the store's append.",
		"listener", "route")
	httpConnections = describe("http_open_connections",
		"Connections that are open. At exchange_limits{limit=\"connections\"}, on the operator's "+
			"listener at 64, "+
			"a new one takes the place of an idle one that never authenticated, or is refused.",
		"listener")
	httpRefused = describe("http_refused_connections_total",
		"Connections that were refused because there were too many, and idle ones without a "+
			"right signature or token that were closed for newer ones. "+
			"Any is a client that leaks connections, an attack, or a limit that is too low.",
		"listener")
	httpThrottled = describe("http_throttled_requests_total",
		"Requests answered with 429, by the limit that they met: public, failures, probes, "+
			"docs and web of one client address, reads of one key, "+
			"commands and cancels of one account, guesses of the operator's token. Much of "+
			"public or failures is an attack, or a proxy that is not in trusted_proxies.", "limit")
	certificateEnds = describe("tls_certificate_expiry_timestamp_seconds",
		"When the certificate of a listener ends, in Unix time. Less than two weeks from now "+
			"means that nobody renews it.", "listener")
	certificateStale = describe("tls_certificate_stale",
		"1 while a certificate's files have something that cannot be used, and the one before is "+
			"served. The log says why.", "listener")
	configTaken = describe("config_applied_timestamp_seconds",
		"When the configuration was last taken up, by the start or a reload, in Unix time.")
	configStale = describe("config_stale",
		"1 while the last reload of the configuration was refused, and the one before counts. "+
			"The log says why.")
	limits = describe("limits",
		"Limits of the configuration by name, to draw beside what they bound.", "limit")
)

// families are all metrics.
var families = slices.Concat(streamFamilies, engineFamilies, clusterFamilies, watchFamilies,
	[]family{buildInfo, ready, standsBy, httpRequests, httpDuration, httpConnections, httpRefused,
		httpThrottled, certificateEnds, certificateStale, configTaken, configStale, limits})

// newScrape makes the handler of /metrics, with a registry of its own, without the metrics that
// libraries register by themselves.
func newScrape(c *collector, log *slog.Logger) fasthttp.RequestHandler {
	r := prometheus.NewRegistry()
	r.MustRegister(c,
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(
			collectors.GoRuntimeMetricsRule{Matcher: runtimeMetrics})))
	return fasthttpadaptor.NewFastHTTPHandler(
		promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorLog: scrapeLog{log}}))
}

// runtimeMetrics are further metrics of Go's runtime: how long runnable goroutines wait for a
// processor, how long the garbage collector pauses, and how much CPU time it takes.
var runtimeMetrics = regexp.MustCompile(
	`^(/sched/latencies:seconds|/sched/pauses/total/gc:seconds|/cpu/classes/gc/total:cpu-seconds|/cpu/classes/user:cpu-seconds|/cpu/classes/total:cpu-seconds)$`)

type scrapeLog struct{ log *slog.Logger }

func (l scrapeLog) Println(v ...any) {
	l.log.Error("the metrics are not complete", "error", strings.TrimSpace(fmt.Sprintln(v...)))
}

// A collector gives the numbers of a gateway, and of its engine once there is one. It does all work
// at a scrape: the counting code knows nothing of Prometheus.
type collector struct {
	*edge
	listeners []*listener
	meters    []*meter
	operator  *operator.Server
	stream    *mount
	surveys   poll[survey]
	disks     poll[[]disk]
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range families {
		ch <- f
	}
}

// Collect implements prometheus.Collector. It may be called by several goroutines at once.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	out := sink{ch}
	out.gauge(buildInfo, 1, c.opts.Build.Version, c.opts.Build.Commit, runtime.Version())
	for _, m := range c.meters {
		out.meter(m)
	}
	for _, l := range c.listeners {
		out.listener(l)
	}
	for i, l := range c.limits.all() {
		out.counter(httpThrottled, l.refused.Load(), rateNames[i])
	}
	out.counter(httpThrottled, c.operator.Refused(), "guesses")
	out.gauge(configTaken, float64(c.configured.at.Load()))
	out.yes(configStale, c.configured.stale.Load())
	out.gauge(limits, float64(c.opts.Connections), "connections")
	c.watch(out)
	observes := false
	if c.opts.Cluster != nil {
		s := c.opts.Cluster.Standing()
		out.cluster(&s)
		observes = s.Observer
	}
	out.yes(standsBy, c.operator.StandsBy() && !observes)
	if k := c.stream.sockets.Load(); k != nil {
		out.gauge(limits, float64(c.opts.Stream.Connections), "stream_connections")
		out.stream(k.server.Stats(), k.hub.Stats())
	}
	e := c.edge.engine.Load()
	if e == nil {
		a := c.edge.api.Load()
		out.yes(ready, a != nil && a.Ready() == nil)
		return
	}
	s, l := e.Stats(), e.Limits()
	out.yes(ready, s.Ready)
	out.gauge(limits, float64(l.InFlight), "in_flight")
	out.gauge(limits, float64(l.Reads), "reads")
	out.gauge(limits, float64(l.FoldLag), "fold_lag")
	out.gauge(limits, float64(l.ProjectionLag), "projection_lag")
	out.engine(&s)
	c.survey(out, e)
}

// meter gives a listener's requests. A series begins with its first request, except for failures
// that clients see: those exist from the start, because Prometheus sees no increase from nothing.
func (s sink) meter(m *meter) {
	for number, route := range m.routes {
		statuses, took := m.read(number)
		for i, n := range statuses {
			code := "other"
			if i < len(meteredStatuses) {
				code = strconv.Itoa(meteredStatuses[i])
			}
			if n > 0 || m.listener == public && (code == "500" || code == "503") {
				s.counter(httpRequests, n, m.listener, route, code)
			}
		}
		if took.Count() > 0 {
			s.histogram(httpDuration, took, nanoseconds, m.listener, route)
		}
	}
}

// listener gives the connections of a listener, and the state of its certificate if it has one.
func (s sink) listener(l *listener) {
	s.gauge(httpConnections, float64(l.places.Open()), l.name)
	s.counter(httpRefused, l.places.Refused(), l.name)
	if l.certificate == nil {
		return
	}
	s.gauge(certificateEnds, float64(l.certificate.Expires().Unix()), l.name)
	stale := 0.0
	if l.certificate.Stale() {
		stale = 1
	}
	s.gauge(certificateStale, stale, l.name)
}
