package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"exchange/core/money"
)

// Environment variables that are not options. Secrets are among them, to keep them out of the file
// and the flags. Others concern the operator's commands alone.
const (
	// EnvOperatorToken is the bearer token of the operator's listener, in place of the token file.
	EnvOperatorToken = "EXCHANGE_OPERATOR_TOKEN"
	// EnvOperatorName is the name under which an operator's commands are logged, in place of the
	// user's.
	EnvOperatorName = "EXCHANGE_OPERATOR_NAME"
	// EnvOperatorCA is the file of authorities that an operator's commands trust, in place of the
	// system's.
	EnvOperatorCA = "EXCHANGE_OPERATOR_CA"
	// EnvAPIKeyFile is the file of API keys for `exchange call`, if no flag names one.
	EnvAPIKeyFile = "EXCHANGE_API_KEY_FILE"
	// EnvSecretKey is the key that seals API secrets, in place of the key file.
	EnvSecretKey = "EXCHANGE_SECRET_KEY"
	// envConfig names the configuration file when no --config is given.
	envConfig = "EXCHANGE_CONFIG"
)

// Names of two files in the data folder, unless configured otherwise.
const (
	OperatorTokenName = "operator.token"
	SecretKeyName     = "exchange.key"
)

// Config holds every option of `serve`. The table Options documents the meaning, the unit, the
// range and the effect of zero of each field, under the field's key.
type Config struct {
	Listen            string
	Operator          string
	Store             string // may hold a password: print it through RedactURL
	Data              string // never empty after Finish
	Archive           string // folder of trimmed parts of the journal; "": none
	OperatorTokenFile string // never empty after Finish
	SecretKeyFile     string // never empty after Finish

	Demo                  bool
	NoDemoMarket          bool // only visitors trade on the demo
	NoRateLimits          bool
	NoDocs                bool
	NoPages               bool
	Contact               string // for programmers of clients: an e-mail or https address; "": none
	syntheticPairs        int    // pairs for load tests, added by Finish
	AcceptRedisDurability bool
	TrustedProxies        []netip.Prefix

	TLS         TLS // of the public listener
	OperatorTLS TLS // of the operator's
	Metrics     Metrics

	Cluster    Cluster
	Log        Log
	Currencies []Currency
	Pairs      []Pair
	History    History
	Stream     Stream
	Withdrawal Withdrawal
	Limits     Limits
	Timing     Timing
	Snapshot   Snapshot
	Mail       Mail

	// Ignored are names of environment variables that begin with EXCHANGE_ but name no option: most
	// likely typing errors, so the start-up log shows them.
	Ignored []string

	origin map[string]string // source of a value, by key: "exchange.yaml line 3"
	// the source of the pairs could not be read: do not report them as missing too
	unread bool
}

// Metrics is the listener for /metrics alone.
type Metrics struct {
	Listen    string // host:port; "": none
	TokenFile string // "": no token required
	TLS       TLS
}

// TLS is the certificate of a listener. Without files it speaks plain HTTP.
type TLS struct {
	CertFile string // PEM, followed by the chain
	KeyFile  string // PEM, readable by its owner only
}

// On reports whether the listener speaks TLS.
func (t *TLS) On() bool { return t.CertFile != "" }

// Log is the form of the program's log.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}

// Currency is one currency of the exchange.
type Currency struct {
	Code string // [A-Z0-9]{1,12}
	Sign string // the symbol shown to people, such as "₿"; may be empty

	MinimumWithdrawal money.Amount // lower bound of a withdrawal; 0: any
	addressPattern    string       // of a withdrawal address, from ^ to $; "": any printable ASCII

	// DepositInstructions are customers' instructions for deposits, in lines of text; "": none.
	// They are the node's own, not agreed on by the cluster.
	DepositInstructions string
}

// Addresses returns the pattern of the currency's addresses, nil if it has none. validate has
// compiled it before.
func (c Currency) Addresses() *regexp.Regexp {
	if c.addressPattern == "" {
		return nil
	}
	return regexp.MustCompile(wholeAddress(c.addressPattern))
}

// wholeAddress returns a pattern anchored at both ends of a text, even if the configured one is
// not, such as ^a|b$.
func wholeAddress(pattern string) string { return `\A(?:` + pattern + `)\z` }

// Pair is a market of two currencies with its rules for orders.
type Pair struct {
	Name              string // BASE_QUOTE
	PricePrecision    int    // decimals of a price, 0..8
	AmountPrecision   int    // decimals of an amount, 0..8
	MinimumOrderSize  money.Amount
	MaximumOrderSize  money.Amount
	MinimumOrderValue money.Balance // of price x amount, in the quote currency
	PriceTick         money.Price   // prices are its multiples; 0: one unit of the last decimal
	AmountStep        money.Amount  // amounts are its multiples; 0: one unit of the last decimal
	PriceBand         money.Rate    // largest distance of a price beyond the last trade; 0: any
	MarketCollar      money.Rate    // largest distance of a market order beyond the best price
	StopCollar        money.Rate    // largest distance beyond its trigger of a stop without a price
	MakerFee          money.Rate    // on receipts of the side that was in the book
	TakerFee          money.Rate    // on receipts of the other side
}

// Currencies returns the two halves of the pair's name, empty if it is not a pair's name.
func (p Pair) Currencies() (base, quote string) {
	base, quote, ok := strings.Cut(p.Name, "_")
	if !ok {
		return "", ""
	}
	return base, quote
}

// usualCollar is the default of both collars: 5 %.
const usualCollar money.Rate = 5_000_000

// History bounds the kept history. -1 is the store's own default: see Config.Retention.
type History struct {
	tradesPerPair    int
	ordersPerAccount int
	Candles          int
}

// Limits bound the load of the exchange. Beyond each a client gets a clear refusal.
type Limits struct {
	InFlight              int
	InFlightPerAccount    int
	InFlightCancels       int // share of InFlight that only cancels may use
	Reads                 int
	ReadsPerAccount       int // 0: no limit of its own
	Connections           int
	ConnectionsPerAddress int // 0: no limit
	PublicRate            int // requests a second, as all rates here; 0: no limit
	PublicBurst           int
	ReadRate              int
	ReadBurst             int
	CommandRate           int
	CommandBurst          int
	CancelRate            int
	CancelBurst           int
	FailureRate           int
	FailureBurst          int
	RateEntries           int
	BodyBytes             int
	AnswersBytes          int
	HeaderBytes           int
	MaxFills              int
	OpenOrdersPerAccount  int
	OpenOrdersPerBook     int
	PendingWithdrawals    int
	KeysPerAccount        int
	Accounts              int
	FoldLag               int // records
	ProjectionLag         int // rows
	BatchBytes            int
	Batch                 int // items of one order-batch/

	OpenOrdersPerAccountAndBook int

	StopsPerAccount  int // in one pair
	StopsPerBook     int
	GTDPerAccount    int // in one pair
	GTDPerBook       int
	TriggersInFlight int
}

// Stream bounds the subscribers of the event stream.
type Stream struct {
	Connections           int
	ConnectionsPerAddress int
	MessagesPerSecond     int
	QueueBytes            int
	StallMs               int
	IntervalMs            int
	BBOIntervalMs         int
	OrdersInFlight        int
	OwnBytes              int
	PingIntervalMs        int
	PingTimeoutMs         int
}

// Timing holds every other duration, in milliseconds. Ms converts one to a time.Duration.
type Timing struct {
	RequestTimeoutMs int
	StallMs          int
	StallMaxMs       int
	StopMaxMs        int
	OwnerCheckMs     int
	OwnerStaleMs     int
	ProjectionMs     int
	SnapshotMinMs    int
	CodeValidMs      int
	IdleTimeoutMs    int
	ReadTimeoutMs    int
	WriteTimeoutMs   int
	SwitchGraceMs    int
}

// Withdrawal configures the confirmation of withdrawals.
type Withdrawal struct {
	CodeTries int
}

// Snapshot bounds the records between two images of the state.
type Snapshot struct {
	MinRecords int
	MaxRecords int
}

// Mail configures the sending of mails.
type Mail struct {
	Host      string // of the SMTP server; "" sends no mail
	Port      int    // 0: the usual port of the TLS mode
	TLS       string // required, implicit or none
	Username  string // "": no authentication
	Password  string // a secret
	From      string // address, with or without a name
	TimeoutMs int
	CAFile    string // "": the system's authorities
}

// Ms returns n milliseconds as a duration.
func Ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// Default returns a configuration with every option at its default and nothing to trade. It is not
// valid before it has currencies and pairs.
func Default() *Config {
	c := &Config{origin: map[string]string{}}
	for i := range Options {
		if o := &Options[i]; o.Default != "" {
			if err := o.set(c, o.Default); err != nil {
				panic(fmt.Sprintf("BUG: the default of %s is wrong: %v", o.Key, err))
			}
		}
	}
	return c
}

// UsualData is the default data folder.
const UsualData = "./data"

// Finish fills in values that depend on others, and checks everything. The error lists all
// problems. Load calls it.
func (c *Config) Finish() error {
	if c.Demo && len(c.Pairs) == 0 && len(c.Currencies) == 0 {
		c.Currencies, c.Pairs = demoCurrencies(), demoPairs()
	}
	c.addSynthetic()
	if c.Data == "" {
		c.Data = UsualData
		if folder := c.PebbleFolder(); folder != "" {
			c.Data = folder
		}
	}
	if c.OperatorTokenFile == "" {
		c.OperatorTokenFile = c.usualFile(OperatorTokenName)
	}
	if c.SecretKeyFile == "" {
		c.SecretKeyFile = c.usualKeyFile()
	}
	if err := c.validate(); err != nil || !c.Cluster.On() {
		return err
	}
	return c.checkMarket()
}

const socketPrefix = "unix:"

// OperatorSocket returns the path of the operator's socket, or "" when its listener has an address.
func (c *Config) OperatorSocket() string { return SocketPath(c.Operator, c.Data) }

// SocketPath returns the path in "unix:PATH", or "" for any other address. A name without a slash
// is in the data folder.
func SocketPath(address, data string) string {
	path, ok := strings.CutPrefix(address, socketPrefix)
	switch {
	case !ok:
		return ""
	case path == "" || strings.ContainsRune(path, '/'):
		return path
	}
	return filepath.Join(data, path)
}

// usualFile returns the default path of a file.
func (c *Config) usualFile(name string) string { return filepath.Join(c.Data, name) }

// usualKeyFile returns the default path of the secret key: in a cluster it comes with the node's
// certificate.
func (c *Config) usualKeyFile() string {
	if c.Cluster.Folder != "" {
		return filepath.Join(c.Cluster.Folder, SecretKeyName)
	}
	return c.usualFile(SecretKeyName)
}

const (
	pebblePrefix = "pebble:"
	unixScheme   = "unix" // of a Redis on a Unix socket
)

// PebbleFolder returns the folder of the embedded store, or "" when the store is a Redis.
func (c *Config) PebbleFolder() string {
	folder, ok := strings.CutPrefix(c.Store, pebblePrefix)
	if !ok {
		return ""
	}
	return folder
}

// isRedis reports whether the store is a Redis.
func (c *Config) isRedis() bool {
	scheme, _, found := strings.Cut(c.Store, "://")
	return found && (scheme == "redis" || scheme == "rediss" || scheme == unixScheme)
}

// Defaults of a Redis, which holds history in memory. An embedded store has it on disk.
const (
	redisTradesPerPair    = 1_000_000
	redisOrdersPerAccount = 100_000
)

// Retention returns the number of newest trades kept per pair, and of newest closed orders kept per
// account, with the store's defaults applied. 0 is everything.
func (c *Config) Retention() (tradesPerPair, ordersPerAccount int) {
	tradesPerPair, ordersPerAccount = c.History.tradesPerPair, c.History.ordersPerAccount
	if tradesPerPair < 0 {
		tradesPerPair = 0
		if c.isRedis() {
			tradesPerPair = redisTradesPerPair
		}
	}
	if ordersPerAccount < 0 {
		ordersPerAccount = 0
		if c.isRedis() {
			ordersPerAccount = redisOrdersPerAccount
		}
	}
	return tradesPerPair, ordersPerAccount
}

// maxNamed bounds the pairs that Summary names.
const maxNamed = 12

// Summary returns the configuration in one line for the start-up log: the addresses, the store, the
// market, the retention, and each other option that differs from its default. It holds no secrets.
func (c *Config) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen %s, operator %s, store %s, data %s", c.Listen, c.Operator,
		RedactURL(c.Store), c.Data)
	if c.Demo {
		b.WriteString(", demo")
	}
	names := make([]string, 0, maxNamed)
	for _, p := range c.Pairs[:min(len(c.Pairs), maxNamed)] {
		names = append(names, p.Name)
	}
	if more := len(c.Pairs) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	fmt.Fprintf(&b, ", pairs %s", strings.Join(names, " "))
	trades, orders := c.Retention()
	fmt.Fprintf(&b, ", keeps %s per pair and %s per account", keeps(trades, "trades"),
		keeps(orders, "closed orders"))
	if c.AcceptRedisDurability && c.isRedis() {
		b.WriteString(
			", the durability of Redis is NOT checked: a crash of Redis may lose what was " +
				"acknowledged")
	}
	for i, p := range c.TrustedProxies {
		b.WriteString([]string{", trusted proxies ", " "}[min(i, 1)] + p.String())
	}
	for i := range Options {
		o := &Options[i]
		if o.named {
			continue
		}
		if v := o.text(c); v != o.Default && !c.filledIn(o) {
			fmt.Fprintf(&b, ", %s=%s", o.Key, o.redacted(v))
		}
	}
	return b.String()
}

// filledIn reports whether an option has the value that Finish derives when nothing is configured.
func (c *Config) filledIn(o *Option) bool {
	switch o.at(c) {
	case &c.OperatorTokenFile:
		return c.OperatorTokenFile == c.usualFile(OperatorTokenName)
	case &c.SecretKeyFile:
		return c.SecretKeyFile == c.usualKeyFile()
	}
	return false
}

func keeps(n int, what string) string {
	if n == 0 {
		return "all " + what
	}
	return fmt.Sprintf("%s %s", Thousands(n), what)
}
