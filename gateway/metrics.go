package gateway

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http/pprof"
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

	"exchange/actors"
	"exchange/actors/metrics"
	"exchange/gateway/operator"
)

// Monitoring on the operator's listener: /metrics for Prometheus, and Go's profiles below
// /debug/pprof. Both answer before there is an engine, and while the store does not answer.
// docs/operations.md has the signs to watch for.

const (
	metricsPath = "/metrics"
	pprofPath   = "/debug/pprof"
	pprofRoute  = pprofPath + "/{profile}"
)

// watchRoute returns the handler of a path for monitoring, nil for other paths.
func (g *Gateway) watchRoute(ctx *fasthttp.RequestCtx) fasthttp.RequestHandler {
	path := string(ctx.Path())
	switch {
	case !ctx.IsGet():
	case path == metricsPath:
		return g.scrape
	case path == pprofPath+"/profile":
		return cpuProfile
	case path == pprofPath+"/trace":
		return executionTrace
	case strings.HasPrefix(path, pprofPath+"/"):
		return profiles
	}
	return nil
}

// net/http/pprof also has the command line. It is left out because a store's password may be in it.
var (
	profiles       = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Index)
	cpuProfile     = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Profile)
	executionTrace = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Trace)
)

// newOperatorMeter makes the meter of the operator's listener, and the numbers of its routes by
// path.
func newOperatorMeter() (*meter, map[string]int) {
	paths := map[string]int{metricsPath: 0, pprofRoute: 0}
	for _, route := range operator.Routes() {
		_, path, _ := strings.Cut(route, " ")
		paths[path] = 0
	}
	sorted := slices.Sorted(maps.Keys(paths))
	for i, path := range sorted {
		paths[path] = firstRoute + i
	}
	return newMeter(operators, sorted), paths
}

func (g *Gateway) operatorRouteNumber(ctx *fasthttp.RequestCtx) int {
	path := strings.TrimSuffix(string(ctx.Path()), "/")
	if path == pprofPath || strings.HasPrefix(path, pprofPath+"/") {
		path = pprofRoute
	}
	return g.operatorPaths[path] // 0, which is unmatched, if there is none
}

// newScrape makes the handler of /metrics, with a registry of its own, without the metrics that
// libraries register by themselves.
func (g *Gateway) newScrape() fasthttp.RequestHandler {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{g: g},
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(
			collectors.GoRuntimeMetricsRule{Matcher: runtimeMetrics})))
	return fasthttpadaptor.NewFastHTTPHandler(
		promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorLog: scrapeLog{g.log}}))
}

// runtimeMetrics are further metrics of Go's runtime: how long runnable goroutines wait for a
// processor, how long the garbage collector pauses, and how much CPU time it takes.
var runtimeMetrics = regexp.MustCompile(
	`^(/sched/latencies:seconds|/sched/pauses/total/gc:seconds|/cpu/classes/gc/total:cpu-seconds|/cpu/classes/user:cpu-seconds|/cpu/classes/total:cpu-seconds)$`)

type scrapeLog struct{ log *slog.Logger }

func (l scrapeLog) Println(v ...any) {
	l.log.Error("the metrics are not complete", "error", strings.TrimSpace(fmt.Sprintln(v...)))
}

// A family is one metric's description.
type family = *prometheus.Desc

func describe(name, help string, labels ...string) family {
	return prometheus.NewDesc("exchange_"+name, help, labels, nil)
}

// The metrics. A help text has the meaning of the number and the sign to look closer.
var (
	buildInfo = describe("build_info", "What the program was built from; always 1.", "version",
		"commit", "goversion")
	ready = describe("ready",
		"1 while the engine is up and the store confirms that it is ours, as /readyz tells; "+
			"maintenance does not count. 0 for longer than a start takes is an outage, unless "+
			"this is a standby.")
	standsBy = describe("standby",
		"1 while this process waits for another one that owns the store, and would take over "+
			"from it. A standby is not ready.")

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
		"Requests answered with 429, by the limit that they met: public, failures, probes and "+
			"docs of one client address, reads of one key, "+
			"commands and cancels of one account, guesses of the operator's token. Much of "+
			"public or failures is an attack, or a proxy that is not in trusted_proxies.", "limit")

	certificateEnds = describe("tls_certificate_expiry_timestamp_seconds",
		"When the certificate of a listener ends, in Unix time. Less than two weeks from now "+
			"means that nobody renews it.", "listener")
	certificateStale = describe("tls_certificate_stale",
		"1 while a certificate's files have something that cannot be used, and the one before is "+
			"served. The log says why.", "listener")

	ordersAccepted = describe("orders_accepted_total",
		"Orders whose records are durable. No change while requests come in is an outage.")
	ordersCancelled = describe("orders_cancelled_total",
		"Orders that were cancelled, each order of a cancel-all counted.")
	tradesDone = describe("trades_total", "Trades whose records are durable.")
	refusals   = describe("commands_refused_total",
		"Commands that were refused in the journal, after their nonce was used. funds and "+
			"not_open are everyday; nonce in numbers is a client with a broken clock, "+
			"or somebody who replays; book_limit and account_limit say that a limit was met.",
		"reason")
	turnedAway = describe("requests_turned_away_total",
		"Commands and private reads that were turned away before they did anything, with a 503. "+
			"busy and account_busy: too much in flight; behind: the store's projections or the "+
			"committed state lag; stalled and not_confirmed: the store does not answer.", "reason")
	unanswered = describe("unanswered_total",
		"Commands and reads whose handler stopped waiting. Of a command the client was told that "+
			"its outcome is unknown: any is worth a look at the store.", "kind")
	records = describe("journal_records_total", "Durable records by kind.", "kind")

	stages = describe("command_stage_duration_seconds",
		"Where a command's time goes, of one command in "+strconv.Itoa(metrics.TraceOneIn)+
			". queue: to its decision, through the mailboxes of wallet and book; match: the "+
			"book's decision; "+
			"gather: in the forming batch, while the append before is on its way; append: in the "+
			"store; release: until it is answered; answer: until its handler runs again. "+
			"queue and answer growing alone means that the processors are full.", "stage")
	batchRecords = describe("journal_batch_records",
		"Records of each append. Growing batches mean that orders come faster than the store "+
			"syncs: throughput is fine, latency grows.")
	batchBytes = describe("journal_batch_bytes",
		"Bytes of each append. At limits.batch_bytes a batch is cut.")

	appendDuration = describe("store_append_duration_seconds",
		"Until a batch was durable, all tries included: the floor of an order's latency. Watch "+
			"the 99th percentile; seconds are a sick disk or Redis.")
	applyDuration = describe("store_apply_duration_seconds",
		"Until the store had taken a step of projections, all tries included. It is behind the "+
			"journal and in nobody's way until exchange_projection_lag_rows nears its limit.")
	snapshotTime = describe("store_snapshot_duration_seconds",
		"Uploads of snapshots that succeeded. It grows with the state.")
	storeFailures = describe("store_failures_total",
		"Calls of the store that failed and are tried again; of reference by operators, for a "+
			"deposit was not made. Any growth is worth a look at the log.", "operation")
	rowsDamaged = describe("history_damaged_total",
		"Reads of the history that ended at a damaged row, by list; the client got 503, and the "+
			"log names the row. Any is a reason to run exchange audit, and to restore a backup.",
		"list")
	storeStalled = describe("store_stalled",
		"1 while the store does not take writes; new commands are refused. After "+
			"timing.stall_max_ms the process ends.")
	storeWaiting = describe("store_append_waiting_seconds",
		"How long the append in flight has been waiting; 0 if there is none.")
	storeConfirmed = describe("store_confirmation_age_seconds",
		"Since the store last confirmed that this process owns it. Above timing.owner_stale_ms "+
			"private reads are refused.")

	mailboxes = describe("mailbox_messages",
		"Messages waiting for an actor; all books are one. committed growing steadily means that "+
			"the fold cannot follow.", "mailbox")
	commands = describe("commands_in_flight",
		"Commands between admission and release. At exchange_limits{limit=\"in_flight\"}, less a "+
			"share for cancels, new ones are turned away.")
	reading = describe("reads_in_flight",
		"Reads that wait for their answer, the store's included, and look-ups of why a command "+
			"was refused. Of each kind no more than exchange_limits{limit=\"reads\"} are taken.")
	limits = describe("limits",
		"Limits of the configuration by name, to draw beside what they bound.", "limit")

	foldLag = describe("fold_lag_records",
		"Durable records that reads do not see yet. Beyond exchange_limits{limit=\"fold_lag\"} "+
			"commands are refused.")
	projectionLag = describe("projection_lag_records",
		"Durable records that the store's history does not have yet.")
	projectionRows = describe("projection_lag_rows",
		"Rows that the store's history does not have yet. Beyond "+
			"exchange_limits{limit=\"projection_lag\"} commands are refused.")
	outbox = describe("outbox_mails",
		"Mails that are to be sent. Growing means that the mail server does not take them: "+
			"withdraws cannot be confirmed.")

	snapshotAge = describe("snapshot_age_seconds",
		"Age of the newest snapshot, or of the process if there is none. An idle exchange takes "+
			"none: watch exchange_snapshot_lag_records with it.")
	snapshotLag = describe("snapshot_lag_records",
		"Records after the newest snapshot: what a start has to fold. Far above "+
			"snapshot.max_records means that snapshots fail.")
	snapshotBytes = describe("snapshot_bytes", "Size of the newest snapshot; 0 if there is none.")

	recoveryDuration = describe("recovery_duration_seconds",
		"How long the last start took, until commands were taken.")
	recoveryRecords = describe("recovery_records",
		"Records that the last start folded from the journal.")
	inMaintenance = describe("maintenance",
		"1 while clients' commands are refused by an operator's wish. Watch that it is not "+
			"forgotten.")
)

// families are all metrics.
var families = slices.Concat(streamFamilies,
	[]family{buildInfo, ready, standsBy, httpRequests, httpDuration, httpConnections, httpRefused,
		certificateEnds, certificateStale, httpThrottled, ordersAccepted,
		ordersCancelled, tradesDone,
		refusals, turnedAway, unanswered, records, stages, batchRecords, batchBytes, appendDuration,
		applyDuration, snapshotTime, storeFailures, rowsDamaged, storeStalled,
		storeWaiting, storeConfirmed, mailboxes, commands, reading, limits, foldLag, projectionLag,
		projectionRows, outbox, snapshotAge, snapshotLag,
		snapshotBytes, recoveryDuration, recoveryRecords, inMaintenance})

// A collector gives the numbers of a gateway, and of its engine once there is one. It does all work
// at a scrape: the counting code knows nothing of Prometheus.
type collector struct{ g *Gateway }

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range families {
		ch <- f
	}
}

// Collect implements prometheus.Collector. It may be called by several goroutines at once.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	out, g := sink{ch}, c.g
	out.gauge(buildInfo, 1, g.opts.Build.Version, g.opts.Build.Commit, runtime.Version())
	for _, m := range []*meter{g.meter, g.operatorMeter} {
		out.meter(m)
	}
	out.connections(public, &g.publicConnections)
	out.connections(operators, &g.operatorConnections)
	out.certificate(public, g.opts.Certificate)
	out.connections(watchers, &g.metricsConnections)
	out.certificate(operators, g.opts.OperatorCertificate)
	out.certificate(watchers, g.opts.MetricsCertificate)
	for _, l := range g.limits.all() {
		out.counter(httpThrottled, l.refused.Load(), l.name)
	}
	out.counter(httpThrottled, g.operator.Refused(), "guesses")
	out.gauge(limits, float64(g.opts.Connections), "connections")
	out.yes(standsBy, g.operator.StandsBy())
	e := g.engine()
	if e == nil {
		out.gauge(ready, 0)
		return
	}
	s, l := e.Stats(), e.Limits()
	out.gauge(limits, float64(l.InFlight), "in_flight")
	out.gauge(limits, float64(l.Reads), "reads")
	out.gauge(limits, float64(l.FoldLag), "fold_lag")
	out.gauge(limits, float64(l.ProjectionLag), "projection_lag")
	out.commands(&s)
	out.store(&s)
	out.state(&s)
	out.gauge(limits, float64(g.opts.Stream.Connections), "stream_connections")
	if k := g.sockets.Load(); k != nil {
		out.stream(k)
	}
}

// A sink takes the metrics of one scrape.
type sink struct{ ch chan<- prometheus.Metric }

func (s sink) gauge(f family, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(f, prometheus.GaugeValue, v, labels...)
}

func (s sink) counter(f family, n uint64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(f, prometheus.CounterValue, float64(n), labels...)
}

func (s sink) yes(f family, yes bool) {
	v := 0.0
	if yes {
		v = 1
	}
	s.gauge(f, v)
}

// Units of distributions: parts of a metric's own unit.
const (
	nanoseconds = 1e9
	ones        = 1
)

func (s sink) histogram(f family, d metrics.Distribution, unit float64, labels ...string) {
	buckets, n := make(map[float64]uint64, len(d.Bounds)), uint64(0)
	for i, bound := range d.Bounds {
		n += d.Counts[i]
		buckets[float64(bound)/unit] = n
	}
	s.ch <- prometheus.MustNewConstHistogram(f, d.Count(), float64(d.Sum)/unit, buckets, labels...)
}

func (s sink) counts(f family, list []actors.Count) {
	for _, c := range list {
		s.counter(f, c.N, c.Name)
	}
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

func (s sink) connections(listener string, m *connectionMeter) {
	s.gauge(httpConnections, float64(m.open.Load()), listener)
	s.counter(httpRefused, m.refused.Load(), listener)
}

// certificate gives the state of a listener's certificate, if it has one.
func (s sink) certificate(listener string, c *Certificate) {
	if c == nil {
		return
	}
	s.gauge(certificateEnds, float64(c.expires().Unix()), listener)
	stale := 0.0
	if c.isStale() {
		stale = 1
	}
	s.gauge(certificateStale, stale, listener)
}

// commands gives the engine's work.
func (s sink) commands(e *actors.Stats) {
	s.counter(ordersAccepted, e.Orders)
	s.counter(ordersCancelled, e.Cancels)
	s.counts(records, e.Records)
	s.counter(tradesDone, e.Trades)
	s.counts(refusals, e.Refused)
	s.counts(turnedAway, e.TurnedAway)
	s.counter(unanswered, e.UnknownOutcomes, "command")
	s.counter(unanswered, e.UnansweredReads, "read")
	s.gauge(commands, float64(e.CommandsInFlight))
	s.gauge(reading, float64(e.ReadsInFlight))
	for _, c := range e.Mailboxes {
		s.gauge(mailboxes, float64(c.N), c.Name)
	}
	for i := range e.Stages {
		s.histogram(stages, e.Stages[i], nanoseconds, metrics.Stage(i).String())
	}
	s.histogram(batchRecords, e.BatchRecords, ones)
	s.histogram(batchBytes, e.BatchBytes, ones)
}

// store gives the store's state.
func (s sink) store(e *actors.Stats) {
	s.histogram(appendDuration, e.Append, nanoseconds)
	s.histogram(applyDuration, e.Apply, nanoseconds)
	s.histogram(snapshotTime, e.Snapshot, nanoseconds)
	for i, n := range e.Failures {
		s.counter(storeFailures, n, metrics.Operation(i).String())
	}
	for i, n := range e.Damaged {
		s.counter(rowsDamaged, n, metrics.List(i).String())
	}
	s.yes(storeStalled, e.Stalled)
	s.gauge(storeWaiting, e.AppendWaiting.Seconds())
	s.gauge(storeConfirmed, e.Confirmed.Seconds())
}

// state gives the engine's progress and its lags.
func (s sink) state(e *actors.Stats) {
	s.yes(ready, e.Ready)
	s.yes(inMaintenance, e.Maintenance)
	s.gauge(foldLag, float64(e.FoldLag))
	s.gauge(projectionLag, float64(e.ProjectionLag))
	s.gauge(projectionRows, float64(e.ProjectionRows))
	s.gauge(outbox, float64(e.Outbox))
	s.gauge(snapshotAge, e.SnapshotAge.Seconds())
	s.gauge(snapshotLag, float64(e.SnapshotLag))
	s.gauge(snapshotBytes, float64(e.SnapshotBytes))
	s.gauge(recoveryDuration, e.Recovery.Seconds())
	s.gauge(recoveryRecords, float64(e.RecoveryRecords))
}
