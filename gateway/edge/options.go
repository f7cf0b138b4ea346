package edge

import (
	"log/slog"
	"net/netip"
	"time"

	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/operator"
	"exchange/web"
)

// Options are the parameters of a Gateway.
type Options struct {
	Log       *slog.Logger
	BodyBytes int // largest body
	// AnswersBytes bounds the memory, in bytes, of all large answers until clients have taken them;
	// 0: 256 MiB.
	AnswersBytes int64
	HeaderBytes  int // largest head of a request
	// most connections at once on each listener; the operator's never has more than
	// OperatorConnections
	Connections int
	// ConnectionsPerAddress is the maximum of connections of one client address; 0: no bound.
	ConnectionsPerAddress int
	IdleTimeout           time.Duration
	ReadTimeout           time.Duration // bound for reading a whole request
	WriteTimeout          time.Duration // bound for writing an answer
	// bearer token of the operator's listener; SetOperatorToken changes it
	OperatorToken string
	// bearer token of the metrics' listener; SetMetricsToken changes it; "": none required
	MetricsToken string
	// The listeners' certificates. nil: plain HTTP, which all but the public one speak on loopback
	// addresses only.
	Certificate, OperatorCertificate, MetricsCertificate *listen.Certificate

	Archive operator.Archive   // of the journal; nil: none
	Tasks   operator.TaskStore // of the last backup and the last audit
	Folders []Folder           // whose disks the metrics show; names are unique
	Cluster operator.Cluster   // nil: the exchange runs on one machine
	Reload  operator.Reloader  // of the configuration; nil: none
	LogLost func() uint64      // count of lost log lines; nil: none are lost
	Build   Build              // source of the program, for monitoring
	Node    string             // prefix of the stream's session ids; "": none

	Demo []DemoKey // public keys of the demo; none: this is no demo

	// DemoMails returns the demo's newest mails; nil: they are not shown. Any goroutine calls it.
	DemoMails func() ([]DemoMail, error)

	// DepositInstructions are texts by currency, for keys with the permission to read.
	DepositInstructions map[string]string

	Limits                        // initial ones; SetLimits changes them
	NoDocs         bool           // there is no page at /docs
	NoPages        bool           // there are no pages for people
	Contact        string         // e-mail or https address in the OpenAPI document; "": none
	RateEntries    int            // maximum of buckets of each kind
	TrustedProxies []netip.Prefix // proxies whose X-Forwarded-For is believed
	// PollPatience bounds a scrape's wait for slow lookups; 0: half a second.
	PollPatience time.Duration
	ForTests
}

// A DemoMail is a mail that the demo shows instead of sending it.
type DemoMail = web.Mail

// A DemoKey is a public API key.
type DemoKey = api.DemoKey

// Limits may change while the Gateway serves, because the nodes of a cluster agree on most of them.
type Limits struct {
	// Limits on requests a second, each of one kind: see rates.go. DocsRate limits bytes of the
	// API's pages, WebRate bytes of the web pages.
	PublicRate, ReadRate, CommandRate, CancelRate, FailureRate, ProbeRate, DocsRate, WebRate Rate

	Stream StreamOptions // of streams opened afterwards
}

// A Folder is a folder that the process writes to.
type Folder struct{ Name, Path string }

// A Build names the version and the commit that a program was built from.
type Build struct{ Version, Commit string }

// A Rate is a limit on requests: a steady rate and a burst. The zero Rate is no limit.
type Rate struct{ PerSecond, Burst int }

// StreamOptions bound the clients of the stream. A zero field means the default of socketio or
// stream.
type StreamOptions struct {
	Connections           int // sessions at once
	ConnectionsPerAddress int
	MessagesPerSecond     int // packets from one client
	QueueBytes            int // maximum of queued bytes for one client
	Stall                 time.Duration
	PingInterval          time.Duration
	PingTimeout           time.Duration
	// least time between two states of ticker, orderbook.20 or open candles of one pair
	Interval time.Duration
	// least time between two states of bbo of one pair
	BBOInterval time.Duration
	// maximum of unanswered commands of one client
	OrdersInFlight int
}

// Default limits: DefaultProbeRate in probes; DefaultDocsRate in bytes of the API's pages, whose
// burst holds the largest page; DefaultWebRate in bytes of the web pages, enough for hundreds of
// browsers behind one address.
var (
	DefaultProbeRate = Rate{PerSecond: 100, Burst: 200}
	DefaultDocsRate  = Rate{PerSecond: 4_000_000, Burst: 8_000_000}
	DefaultWebRate   = Rate{PerSecond: 8_000_000, Burst: 32_000_000}
)

// Bounds of the operator's listener, which has few clients. This machine's own addresses may use
// all connections.
const (
	OperatorConnections           = 64
	operatorConnectionsPerAddress = OperatorConnections / 4
)

// metricsConnections is the maximum of connections of the metrics' listener.
const metricsConnections = 16

// SpareConnections are connections of the public listener above its limit, for loopback addresses.
const SpareConnections = 8
