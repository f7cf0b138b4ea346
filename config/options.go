package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

const envPrefix = "EXCHANGE_"

// Option is one option of the configuration.
type Option struct {
	// Key is its place in the YAML file: "listen", "limits.in_flight".
	Key string
	// Flag: `serve` has a flag for it. The others are set in the file or the environment only.
	Flag bool
	// Default is the text of the default; "" is the empty text, no list, or false.
	Default string
	// min and max bound a whole number, both included.
	min, max int
	// choices are the only values a text may have, if there are any.
	choices []string
	// Brief is one line for the help of the command line.
	Brief string
	// Help is a paragraph: meaning, unit, trade-off, and what zero or an empty text means.
	Help string

	at    func(*Config) any                   // *string, *int or *bool; nil for a list
	list  func(*Config, ast.Node) problemList // reads a list
	write func(*Config, *strings.Builder)     // writes a list as YAML; nil: its default is no entry
	// removes the password from the text, if there may be one
	redact func(string) string
	named  bool // Summary names it in words
}

// env is the name of the option's environment variable.
func (o *Option) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(o.Key, ".", "_"))
}

// FlagName is the name of the option's flag, without dashes in front.
func (o *Option) FlagName() string {
	return strings.NewReplacer("_", "-", ".", "-").Replace(o.Key)
}

// Type is what kind of value the option takes: "text", "number", "bool" or "list".
func (o *Option) Type() string {
	if o.list != nil {
		return "list"
	}
	switch o.at(&Config{}).(type) {
	case *int:
		return "number"
	case *bool:
		return "bool"
	}
	return "text"
}

// valueRange says in words which values are possible, "" if any text is.
func (o *Option) valueRange() string {
	switch {
	case len(o.choices) > 0:
		return "one of " + strings.Join(o.choices, ", ")
	case o.max > 0:
		return fmt.Sprintf("from %s to %s", thousands(o.min), thousands(o.max))
	case o.Type() == "bool":
		return "true or false"
	}
	return ""
}

// set reads a value from the text of a flag, a variable or a YAML scalar. Ranges are left to
// validate.
func (o *Option) set(c *Config, text string) error {
	if o.list != nil {
		n, err := parseYAML([]byte(text))
		if err != nil {
			return problemList{err.Error() + "."}
		}
		if n == nil {
			return problemList{"this is empty; leave it out, or write a list."}
		}
		if p := o.list(c, n); len(p) > 0 {
			return p
		}
		return nil
	}
	switch at := o.at(c).(type) {
	case *string:
		*at = text
	case *int:
		v, err := parseInt(text)
		if err != nil {
			return fmt.Errorf("write a whole number %s", o.valueRange())
		}
		*at = v
	case *bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("write true or false")
		}
		*at = v
	}
	return nil
}

// text is the option's value as text, by which it equals Default or not; a list is never asked for.
func (o *Option) text(c *Config) string {
	switch at := o.at(c).(type) {
	case *int:
		return strconv.Itoa(*at)
	case *bool:
		if *at {
			return "true"
		}
		return ""
	case *string:
		return *at
	}
	panic("BUG: " + o.Key + " is of no known type")
}

// show returns text in a form that messages may repeat.
func (o *Option) show(text string) string { return strconv.Quote(o.redacted(text)) }

// redacted returns text without its secret parts.
func (o *Option) redacted(text string) string {
	if o.redact != nil {
		return o.redact(text)
	}
	return text
}

// parseInt reads a whole number; 20_000 is 20000.
func parseInt(s string) (int, error) {
	v, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil {
		return 0, errors.New("write a whole number")
	}
	return int(v), nil
}

// thousands writes 1000000 as 1,000,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// burst is the option beside limits.KIND_rate.
func burst(kind, brief string, at func(*Config) any) Option {
	return Option{
		Key: "limits." + kind + "_burst", Default: "200", min: 1, max: 1_000_000, Brief: brief,
		Help: "How many such requests may come at once after a pause. They are counted back at " +
			"limits." + kind + "_rate a second.",
		at: at,
	}
}

var optionByKey = func() map[string]*Option {
	m := make(map[string]*Option, len(Options))
	for i := range Options {
		m[Options[i].Key] = &Options[i]
	}
	return m
}()

// Options is the table of all options, in the order of the sample file.
var Options = []Option{
	{
		Key: "listen", Flag: true, Default: "127.0.0.1:8080", named: true,
		Brief: "address of the public API",
		Help: `Where the public API and the event stream are served, as host:port. An empty host, as in ":8080", or 0.0.0.0
			is every interface of the machine; port 0 is any free one, and the start-up log says which. Without tls.cert_file
			this is plain HTTP: then a proxy that speaks TLS belongs in front of anything but loopback.`,
		at: func(c *Config) any { return &c.Listen },
	},
	{
		Key: "operator", Flag: true, Default: "unix:operator.sock", named: true,
		Brief: "where operators' commands are served: unix:PATH, or host:port (loopback only " +
			"unless it has TLS)",
		Help: `Where the operator's commands are served. "unix:PATH" is a socket of this machine, for root and the user that
			the exchange runs as: the system tells which user asks, so there is no token that could reach another program. A name
			without a slash lies in the data folder. "host:port" asks for the bearer token of operator_token_file. Without
			operator_tls.cert_file it must be a loopback address, because the token credits accounts and could be read on the
			way. Port 0 is any free one. From another machine, use TLS or an SSH tunnel, or run the command on this machine or
			in the container.`,
		at: func(c *Config) any { return &c.Operator },
	},
	{
		Key: "store", Flag: true, Default: "pebble:./data", named: true, redact: RedactURL,
		Brief: "where everything is kept: pebble:FOLDER, redis://..., rediss://... or " +
			"unix:///SOCKET",
		Help: `What remembers: "pebble:FOLDER" is an embedded store in a folder of this machine, with nothing to install;
			"redis://[user:password@]host:port/db" is a Redis, "rediss://" a Redis over TLS, and
			"unix://[user:password@]/path/of/the/socket?db=0" one behind a socket of this machine. A Redis must write its log
			durably, see accept_redis_durability. Only one running exchange owns a store at a time. A password is best given in
			EXCHANGE_STORE: a command line is seen by everyone on the machine.`,
		at: func(c *Config) any { return &c.Store },
	},
	{
		Key: "data", Flag: true, named: true,
		Brief: "folder of exchange.key and operator.sock (default: the folder of the store, " +
			"./data with a Redis)",
		Help: `The folder of the files that belong to the exchange but not into its store, such as exchange.key and operator.sock.
			It is made at the first start. Empty: the folder of the embedded store, or ./data when the store is a Redis.
			Relative paths are relative to the folder the program is started in.`,
		at: func(c *Config) any { return &c.Data },
	},
	{
		Key: "archive", Flag: true, named: true,
		Brief: "folder that keeps all of the journal (default: none)",
		Help: `A folder where the parts of the journal are kept, compressed and with checksums, before the store forgets them: then
			"exchange audit --archive" can begin at the very first record. For a store that has forgotten its first records, or was
			restored from a backup, an archive begins with the older of the two snapshots instead. One that was left out for a
			while, or belongs to another history, is not continued: the exchange does not start with it. Name an empty folder then.
			Empty: records are not kept, and an audit begins at the older of the two snapshots.`,
		at: func(c *Config) any { return &c.Archive },
	},
	{
		Key: "operator_token_file", Flag: true,
		Brief: "file of the operator's bearer token (default: operator.token in the data folder)",
		Help: `The file that holds the bearer token of the operator's commands, where operator is host:port. It is made at the
			first start with mode 0600 and a random token. One of your own needs 32 characters. Empty: operator.token in the data folder. The variable EXCHANGE_OPERATOR_TOKEN holds a token itself,
			and then no file is read or made.`,
		at: func(c *Config) any { return &c.OperatorTokenFile },
	},
	{
		Key: "secret_key_file", Flag: true,
		Brief: "file of the key that seals API secrets (default: exchange.key in the data folder)",
		Help: `The file that holds the key under which API secrets are sealed before they are stored. It is made at the first
			start with mode 0600. Keep a copy apart from the store's backups: without it no API key can be used again, and with
			both of them every secret can be read. Empty: exchange.key in the data folder. The variable EXCHANGE_SECRET_KEY
			holds a key itself, and then no file is read or made.`,
		at: func(c *Config) any { return &c.SecretKeyFile },
	},
	{
		Key: "demo", Flag: true, named: true,
		Brief: "serve three demo pairs with two funded accounts, on loopback only",
		Help: `Serves the pairs BTC_USDT, ETH_USDT and ETH_BTC with the accounts alice and bob. They are funded once, and their API
			keys are public. So it refuses any address that is not loopback, and takes no currencies and pairs of your own.
			Works with either store and any data folder; a restart keeps the state.`,
		at: func(c *Config) any { return &c.Demo },
	},
	{
		Key: "no_rate_limits", Flag: true,
		Brief: "switch off rate limits, for load tests",
		Help: `Switches off every limit on requests per second, for load tests, as if limits.public_rate, read_rate, command_rate,
			cancel_rate and failure_rate were 0, and those of probes and of the API's pages too. The other limits stay: they
			bound what is in flight, not how often it comes.`,
		at: func(c *Config) any { return &c.NoRateLimits },
	},
	{
		Key: "no_docs", Flag: true,
		Brief: "leave out the page about the API at /docs",
		Help: `Leaves out the page about the API at /docs: its addresses answer 404 then. Without this, its bytes and those of the
			OpenAPI document are counted by client address, 4 MB a second. The document itself, /api/openapi.json, is served
			either way.`,
		at: func(c *Config) any { return &c.NoDocs },
	},
	{
		Key: "synthetic_pairs", Flag: true, Default: "0", min: 0, max: maxSynthetic,
		Brief: "add so many pairs SYN0001_USDT, SYN0002_USDT, ..., for load tests",
		Help: `Adds so many pairs for load tests, named SYN0001_USDT, SYN0002_USDT and so on, behind the configured ones, with the currencies
			that they need. Prices have 2 decimals, amounts 8, from 0.00001 to 1,000,000; there are no fees. One that is configured
			under such a name keeps its rules. They are pairs like all others: as long as accounts hold their currencies or have
			orders in them, the exchange does not start without them. Nothing else is needed to start with: currencies and pairs may
			be left out. 0 adds none.`,
		at: func(c *Config) any { return &c.syntheticPairs },
	},
	{
		Key: "accept_redis_durability", Flag: true,
		Brief: "start although the Redis may lose acknowledged writes",
		Help: `A Redis must run with appendonly yes, appendfsync always and maxmemory-policy noeviction, else a crash of it loses
			orders and trades that clients were told are done, and the exchange refuses to start. True: it starts all the same,
			and says so in every start-up log. Meant for services that do not let their settings be read. Means nothing to the
			embedded store.`,
		at: func(c *Config) any { return &c.AcceptRedisDurability },
	},
	{
		Key: "trusted_proxies", named: true,
		Brief: "networks of the proxies in front",
		Help: `The addresses or networks of the proxies in front of the public listener, if there are any. A request that comes
			from one of them counts as coming from the address that its header X-Forwarded-For names: the rightmost one that is no
			trusted proxy itself. Rate limits and the allow-lists of keys go by that address, so list nothing that clients
			can connect from: a trusted peer can claim any address. Without this, all clients behind a proxy count as one. Empty:
			the header is never looked at.`,
		list: readTrustedProxies,
	},

	{
		Key:   "tls.cert_file",
		Brief: "certificate of the public listener",
		Help: `A file with the certificate of the public listener in PEM form, and behind it those between it and an authority
			that clients trust. With it the listener speaks TLS, 1.2 or newer, and nothing else. Renewed files are taken within ten
			seconds, or at once on SIGHUP; connections stay open. If the new ones cannot be used, the certificate before stays, and
			the log and a metric say so. Empty: plain HTTP.`,
		at: func(c *Config) any { return &c.TLS.CertFile },
	},
	{
		Key:   "tls.key_file",
		Brief: "key of that certificate",
		Help: `The file with the key of tls.cert_file in PEM form. Not all users of the machine may be able to read it: mode 0600,
			or 0640 for a group.`,
		at: func(c *Config) any { return &c.TLS.KeyFile },
	},
	{
		Key:   "operator_tls.cert_file",
		Brief: "certificate of the operator's listener",
		Help: `The same for the operator's listener, which with it may be on any address. Clients write https:// in front of
			that address. It may be the file of tls.cert_file. Empty: plain HTTP, on a loopback address only.`,
		at: func(c *Config) any { return &c.OperatorTLS.CertFile },
	},
	{
		Key:   "operator_tls.key_file",
		Brief: "key of that certificate",
		Help:  `The file with the key of operator_tls.cert_file.`,
		at:    func(c *Config) any { return &c.OperatorTLS.KeyFile },
	},

	{
		Key:   "metrics.listen",
		Brief: "address of a listener that has /metrics alone",
		Help: `Where monitoring reads /metrics without the operator's rights, as host:port: there are no commands and no
			profiles. Without metrics.cert_file it must be a loopback address. Empty: there is no such listener.`,
		at: func(c *Config) any { return &c.Metrics.Listen },
	},
	{
		Key:   "metrics.token_file",
		Brief: "file of the bearer token of that listener",
		Help: `The file of the bearer token that this listener asks for. Not all users of the machine may be able to
			read it. It needs 32 characters, and is read again on SIGHUP. Empty: it asks for none.`,
		at: func(c *Config) any { return &c.Metrics.TokenFile },
	},
	{
		Key:   "metrics.cert_file",
		Brief: "certificate of that listener",
		Help:  `The same as tls.cert_file for metrics.listen, which with it may be on any address.`,
		at:    func(c *Config) any { return &c.Metrics.TLS.CertFile },
	},
	{
		Key:   "metrics.key_file",
		Brief: "key of that certificate",
		Help:  `The file with the key of metrics.cert_file.`,
		at:    func(c *Config) any { return &c.Metrics.TLS.KeyFile },
	},

	{
		Key: "log.level", Flag: true, Default: "info",
		choices: []string{"debug", "info", "warn", "error"},
		Brief:   "how much is logged: debug, info, warn or error",
		Help:    `The least important messages that are still logged. debug is for finding faults: it slows trading down.`,
		at:      func(c *Config) any { return &c.Log.Level },
	},
	{
		Key: "log.format", Flag: true, Default: "text", choices: []string{"text", "json"},
		Brief: "form of the log: text or json",
		Help:  `The form of the log on standard error: text for people, json for machines. One message a line in both.`,
		at:    func(c *Config) any { return &c.Log.Format },
	},

	{
		Key: "currencies", named: true,
		Brief: "the currencies",
		Help: `What accounts can hold, in the order in which it is listed to clients. code: 1 to 12 of A-Z and 0-9. sign: the
			symbol shown to people, at most 8 characters, may be left out. minimum_withdraw: the least amount of a withdraw;
			0, or left out, for any. address_pattern: a regular expression (RE2, at most 512 bytes) from ^ to $ that the
			address of a withdraw must match as a whole, in single quotes; left out, an address is 1 to 256 printable
			ASCII characters without blanks. A currency of which an account still holds something cannot be
			taken out: the start refuses then.`,
		list: readCurrencies,
		write: func(c *Config, b *strings.Builder) {
			for _, x := range c.Currencies {
				fmt.Fprintf(b, "  - code: %s\n    sign: %q\n    minimum_withdraw: %s\n", x.Code,
					x.Sign, x.MinimumWithdrawal)
				fmt.Fprintf(b, "    address_pattern: '%s'\n",
					strings.ReplaceAll(x.addressPattern, "'", "''"))
			}
		},
	},
	{
		Key: "pairs", named: true,
		Brief: "the pairs that are traded",
		Help: `The markets. name: BASE_QUOTE, both of them listed under currencies. price_precision and amount_precision: the
			most decimals of an order's price and amount, 0 to 8. minimum_order_size and maximum_order_size: the bounds of an
			order's amount, in the base currency. minimum_order_value: the least price x amount of an order, in the quote currency;
			0, or left out, for none. maker_fee and taker_fee: the share of what each side of a trade receives that goes to
			the account "fees", rounded up to 1e-16; 0.001 is 0.1 %; 0, or left out, for none. A pair with open orders cannot be taken out: the start refuses then. Other changes hold
			for new orders; open ones stay as they are.`,
		list: readPairs,
		write: func(c *Config, b *strings.Builder) {
			for _, x := range c.Pairs {
				fmt.Fprintf(b, "  - name: %s\n    price_precision: %d\n    amount_precision: %d\n",
					x.Name, x.PricePrecision, x.AmountPrecision)
				fmt.Fprintf(b,
					"    minimum_order_size: %s\n    maximum_order_size: %s\n    "+
						"minimum_order_value: %s\n    maker_fee: %s\n    taker_fee: %s\n",
					x.MinimumOrderSize, x.MaximumOrderSize, x.MinimumOrderValue, x.MakerFee,
					x.TakerFee)
			}
		},
	},

	{
		Key: "history.trades_per_pair", Default: "-1", min: -1, max: 1_000_000_000, named: true,
		Brief: "trades kept per pair",
		Help: `How many of its newest trades a pair keeps in the store; each account keeps as many of its own. More costs disk, or
			the memory of a Redis: about 150 bytes a trade. 0 keeps all. -1 is the store's default: all in the
			embedded store, 1,000,000 in a Redis. What was dropped does not come back when the number is raised.`,
		at: func(c *Config) any { return &c.History.tradesPerPair },
	},
	{
		Key: "history.orders_per_account", Default: "-1", min: -1, max: 1_000_000_000, named: true,
		Brief: "closed orders kept per account",
		Help: `How many of its newest closed orders an account keeps in the store. Open orders do not count and are never
			dropped. 0 keeps all. -1 is the store's default: all in the embedded store, 100,000 in a Redis.`,
		at: func(c *Config) any { return &c.History.ordersPerAccount },
	},
	{
		Key: "history.candles", Default: "50000", min: 0, max: 100_000_000, named: true,
		Brief: "candles kept per pair and timeframe",
		Help: `How many of its newest candles each of the seven timeframes of a pair keeps in the store: 50,000 are a month of
			minutes with trades. About 60 bytes each. 0 keeps all.`,
		at: func(c *Config) any { return &c.History.Candles },
	},

	{
		Key: "withdraw.code_tries", Default: "5", min: 1, max: 100,
		Brief: "wrong codes for one withdraw",
		Help:  `How often a withdraw may be confirmed with a wrong code. After that it can only be cancelled.`,
		at:    func(c *Config) any { return &c.Withdrawal.CodeTries },
	},

	{
		Key: "limits.in_flight", Default: "20000", min: 16, max: 1_000_000,
		Brief: "commands in flight",
		Help: `How many commands (orders, cancels) may be on their way at once: taken in and not yet durable. Beyond it the
			answer is 503. More lets a burst through at the price of memory and of latency: the last one waits for all before
			it. There is no "unlimited".`,
		at: func(c *Config) any { return &c.Limits.InFlight },
	},
	{
		Key: "limits.in_flight_per_account", Default: "256", min: 1, max: 1_000_000,
		Brief: "commands in flight per account",
		Help: `The share of one account in limits.in_flight, so that one client cannot take it all. Beyond it the answer is 503
			for that account alone. An eighth of it is kept for the account's cancels.`,
		at: func(c *Config) any { return &c.Limits.InFlightPerAccount },
	},
	{
		Key: "limits.in_flight_cancels", Default: "2000", min: 0, max: 1_000_000,
		Brief: "part of the commands in flight kept for cancels",
		Help: `The part of limits.in_flight that only cancels may use, so a client can still reduce its risk when new orders
			are refused. Must be below limits.in_flight. 0: cancels have no advantage except
			the eighth of limits.in_flight_per_account.`,
		at: func(c *Config) any { return &c.Limits.InFlightCancels },
	},
	{
		Key: "limits.reads", Default: "4096", min: 1, max: 1_000_000,
		Brief: "reads in flight",
		Help: `How many read requests may be worked on at once, from the question until the store, if it is asked, has answered.
			Beyond it the answer is 503. It has nothing to do with limits.in_flight: reading cannot keep anyone from trading. It
			bounds the queries of a slow store, and the memory that long lists take while they are made. What says why a command
			was refused has as many places of its own. Statements, exports, backups and audits of operators do not count while they
			are written.`,
		at: func(c *Config) any { return &c.Limits.Reads },
	},
	{
		Key: "limits.reads_per_account", Default: "64", min: 0, max: 1_000_000,
		Brief: "private reads in flight per account",
		Help: `The share of one account in limits.reads, so that one client cannot take it all: private reads, from the question until
			the store has answered. Beyond it the answer is 503 for that account alone. 0: one account may have all.`,
		at: func(c *Config) any { return &c.Limits.ReadsPerAccount },
	},
	{
		Key: "limits.connections", Default: "65536", min: 1, max: 4_000_000,
		Brief: "open connections",
		Help: `How many connections the public listener holds at once. For one more, an idle one is closed that never sent a
			request with a right signature and has no subscription of the stream: the oldest of the
			address that has most connections without a right signature, idle or not. If none is
			idle, the new one is answered 503 and closed. Each takes a file descriptor,
			and while it is in use buffers of limits.header_bytes and the length of the answer. Where the system allows too few
			open files (ulimit -n) the start warns and holds fewer: 766 are kept for the store and the operator.`,
		at: func(c *Config) any { return &c.Limits.Connections },
	},
	{
		Key: "limits.connections_per_address", Default: "512", min: 0, max: 4_000_000,
		Brief: "open connections of one client address",
		Help: `How many of them one address may have. For one more, the address loses its oldest idle one, as above, or the new
			one is answered 503 and closed. An IPv6 address counts by its /56 network. Addresses of this machine may have all.
			Connections of trusted_proxies count for no address and are never given up, because behind a proxy there are many
			clients: a proxy has to bound its clients itself. 0: one address may have all.`,
		at: func(c *Config) any { return &c.Limits.ConnectionsPerAddress },
	},
	{
		Key: "limits.public_rate", Default: "100", min: 0, max: 1_000_000,
		Brief: "public requests a second of one client address",
		Help: `How many public requests a client address may make a second in the long run; up to limits.public_burst of them may
			come at once. Requests for a path, a method or a format that there is not count too, and so do heads that are no
			HTTP, browsers' preflights, and handshakes of the stream. Beyond it the answer is 429, which says when to come back. An IPv6 address counts
			by its /56 network. Behind a proxy this needs trusted_proxies. 0: public requests are not limited.`,
		at: func(c *Config) any { return &c.Limits.PublicRate },
	},
	burst("public", "public requests of one client address at once", func(c *Config) any {
		return &c.Limits.PublicBurst
	}),
	{
		Key: "limits.read_rate", Default: "100", min: 0, max: 1_000_000,
		Brief: "private reads a second of one key",
		Help: `How many private GETs may be made with one key a second in the long run. Requests that are refused because the key
			lacks the permission, or because the account is frozen, count here too, whatever they ask for. 0: they are not
			limited.`,
		at: func(c *Config) any { return &c.Limits.ReadRate },
	},
	burst("read", "private reads of one key at once", func(c *Config) any {
		return &c.Limits.ReadBurst
	}),
	{
		Key: "limits.command_rate", Default: "100", min: 0, max: 1_000_000,
		Brief: "orders and other commands a second of one account",
		Help: `How many orders, withdraws and confirmations of withdraws an account may send a second in the long run, over all its
			keys. 0: they are not limited.`,
		at: func(c *Config) any { return &c.Limits.CommandRate },
	},
	burst("command", "commands of one account at once", func(c *Config) any {
		return &c.Limits.CommandBurst
	}),
	{
		Key: "limits.cancel_rate", Default: "100", min: 0, max: 1_000_000,
		Brief: "cancels a second of one account",
		Help: `How many cancels of orders and withdraws an account may send a second in the long run, over all its keys. They are
			counted apart from its commands, so that a flood of orders does not keep it from cancelling. 0: they are not limited.`,
		at: func(c *Config) any { return &c.Limits.CancelRate },
	},
	burst("cancel", "cancels of one account at once", func(c *Config) any {
		return &c.Limits.CancelBurst
	}),
	{
		Key: "limits.failure_rate", Default: "100", min: 0, max: 1_000_000,
		Brief: "private requests a second of one client address that are not signed right",
		Help: `How many private requests of a client address may end a second, in the long run, before their signature was found
			right. Beyond it such a request gets 429 and its connection is closed. Requests that are signed right are not
			counted here and are never refused for it. An IPv6 address counts by its /56 network. 0: the guessing of signatures
			is not limited.`,
		at: func(c *Config) any { return &c.Limits.FailureRate },
	},
	burst("failure", "private requests of one client address at once that are not signed right",
		func(c *Config) any { return &c.Limits.FailureBurst }),
	{
		Key: "limits.rate_entries", Default: "100000", min: 1024, max: 10_000_000,
		Brief: "clients of each kind whose requests are counted at once",
		Help: `How many clients are remembered with the requests that are counted against them, for each of the limits above: keys,
			accounts, or addresses. Each takes about 45 bytes. One that is not counted back to 0 yet is only forgotten when all are so, and then the one that is
			nearest to it. More matters only when more clients than this come within the time in which one request is
			counted back, 10 ms at 100 a second.`,
		at: func(c *Config) any { return &c.Limits.RateEntries },
	},
	{
		Key: "limits.body_bytes", Default: "65536", min: 1024, max: 16 << 20,
		Brief: "length of a request's body, in bytes",
		Help: `The longest body of a request, in bytes. Beyond it the answer is 413. An order takes about 100. A connection that announces
			so much has it in memory until it has come, or for timing.read_timeout_ms: that, limits.header_bytes and an answer are what
			each of limits.connections may take.`,
		at: func(c *Config) any { return &c.Limits.BodyBytes },
	},
	{
		Key: "limits.answers_bytes", Default: "268435456", min: 1 << 20, max: 1 << 40,
		Brief: "memory of large answers, in bytes",
		Help: `How much memory answers above 64 KB (deep books, long lists) may take in all until their clients have taken them. What
			several answers share counts once, for the address that caused it, and one address has a quarter of it. Beyond it such an answer is 503, but for what a command has done.`,
		at: func(c *Config) any { return &c.Limits.AnswersBytes },
	},
	{
		Key: "limits.header_bytes", Default: "8192", min: 1024, max: 1 << 20,
		Brief: "length of a request's headers, in bytes",
		Help: `The longest request line with all headers, in bytes. Beyond it the connection is closed with 431. Every connection
			in use holds a buffer of this size.`,
		at: func(c *Config) any { return &c.Limits.HeaderBytes },
	},
	{
		Key: "limits.max_fills", Default: "10000", min: 1, max: 50_000,
		Brief: "trades of one order at once",
		Help: `How many trades one order may make at the moment it arrives. What remains of it then is cancelled in the same step,
			and the answer says so. An order is one step that is never split, so a larger number lets one order hold up the
			others for longer, and makes a batch of the journal larger: 10,000 trades are some hundred kilobytes.`,
		at: func(c *Config) any { return &c.Limits.MaxFills },
	},
	{
		Key: "limits.open_orders_per_account", Default: "100000", min: 1, max: 10_000_000,
		Brief: "open orders of one account",
		Help: `How many open orders one account may have over all pairs. Beyond it new orders of the account are refused. Open
			orders are kept in memory.`,
		at: func(c *Config) any { return &c.Limits.OpenOrdersPerAccount },
	},
	{
		Key: "limits.open_orders_per_book", Default: "5000000", min: 1, max: 50_000_000,
		Brief: "open orders of one pair",
		Help:  `How many open orders one pair may have. Beyond it new orders for the pair are refused. Open orders are kept in memory.`,
		at:    func(c *Config) any { return &c.Limits.OpenOrdersPerBook },
	},
	{
		Key: "limits.open_orders_per_account_and_book", Default: "5000", min: 1, max: 10_000_000,
		Brief: "open orders of one account in one pair",
		Help: `How many open orders one account may have in one pair. Beyond it new orders of the account
			for the pair are refused. It keeps a single account from filling a book with tiny orders,
			together with the minimum_order_value of each pair.`,
		at: func(c *Config) any { return &c.Limits.OpenOrdersPerAccountAndBook },
	},
	{
		Key: "limits.pending_withdraws", Default: "100", min: 1, max: 10_000,
		Brief: "pending withdraws of one account",
		Help:  `How many withdraws of one account may wait for their code or for approval. Beyond it new ones are refused.`,
		at:    func(c *Config) any { return &c.Limits.PendingWithdrawals },
	},
	{
		Key: "limits.keys_per_account", Default: "100", min: 1, max: 10_000,
		Brief: "API keys of one account",
		Help:  `How many API keys one account may have that are not revoked. Beyond it making one fails.`,
		at:    func(c *Config) any { return &c.Limits.KeysPerAccount },
	},
	{
		Key: "limits.accounts", Default: "1000000", min: 1, max: 10_000_000,
		Brief: "accounts",
		Help:  `How many accounts there may be. Beyond it making one fails. An account at rest takes about 2 KB of memory.`,
		at:    func(c *Config) any { return &c.Limits.Accounts },
	},
	{
		Key: "limits.fold_lag", Default: "200000", min: 1000, max: 10_000_000,
		Brief: "records the committed state may be behind",
		Help: `How many records the committed state, which reads are answered from, may be behind the journal before new orders
			are refused with 503. More rides out longer bursts; then a read after a write waits longer, since it waits for that write.`,
		at: func(c *Config) any { return &c.Limits.FoldLag },
	},
	{
		Key: "limits.projection_lag", Default: "500000", min: 1000, max: 10_000_000,
		Brief: "rows waiting to be written to the store",
		Help: `How many rows (wallets, trades, closed orders) may wait to be written to the store before new orders are refused
			with 503. Rows wait in memory, and are made again by a recovery.`,
		at: func(c *Config) any { return &c.Limits.ProjectionLag },
	},
	{
		Key: "limits.batch_bytes", Default: "262144", min: 4096, max: 16 << 20,
		Brief: "length of one write to the journal, in bytes",
		Help: `The journal writes what has come in while the last write was on its way as one batch, of about this many bytes. A
			single longer command makes a batch of its own. More gives throughput on a slow disk; less gives an even latency.`,
		at: func(c *Config) any { return &c.Limits.BatchBytes },
	},

	{
		Key: "stream.connections", Default: "20000", min: 1, max: 1_000_000,
		Brief: "subscribers at once",
		Help: `How many clients the event stream serves at once. Beyond it a handshake is refused. Each takes a file descriptor, about 16 KB,
			and, if it is slow, up to stream.queue_bytes. They count towards limits.connections too.`,
		at: func(c *Config) any { return &c.Stream.Connections },
	},
	{
		Key: "stream.connections_per_address", Default: "1000", min: 1, max: 1_000_000,
		Brief: "subscribers of one client address at once",
		Help: `How many of them one client address may have, an IPv6 address by its /56 network. Behind a proxy this needs
			trusted_proxies. Handshakes count towards limits.public_rate. Websockets that come without a proxy are
			connections, too: of these an address has limits.connections_per_address (512) at most.`,
		at: func(c *Config) any { return &c.Stream.ConnectionsPerAddress },
	},
	{
		Key: "stream.messages_per_second", Default: "100", min: 1, max: 1_000_000,
		Brief: "messages a second of one subscriber",
		Help: `How many packets a subscriber may send a second in the long run, and five times as many at once; each 4 KiB count as
			one more, limits.body_bytes as half of those at most, and so does what a packet asks for: a name that stands for all pairs counts for
			each of them, up to half of those at once. A subscriber that sends more is disconnected.`,
		at: func(c *Config) any { return &c.Stream.MessagesPerSecond },
	},
	{
		Key: "stream.queue_bytes", Default: "1048576", min: 4096, max: 1 << 30,
		Brief: "what may wait for one subscriber, in bytes",
		Help: `How much may wait for a subscriber that does not keep up. Of ticker and orderbook.20 only the newest waits anyway. Of diff
			a whole book takes the place of what does not fit. Of trades and book_ nothing is ever left out: a subscriber with more than
			this waiting is disconnected. Events that are sent at once while nothing waits do not count.`,
		at: func(c *Config) any { return &c.Stream.QueueBytes },
	},
	{
		Key: "stream.stall_ms", Default: "10000", min: 100, max: 600_000,
		Brief: "how long a subscriber may take nothing, in ms",
		Help:  `A subscriber that takes nothing for so long, while something waits for it, is disconnected. In milliseconds.`,
		at:    func(c *Config) any { return &c.Stream.StallMs },
	},
	{
		Key: "stream.interval_ms", Default: "100", min: 1, max: 60_000,
		Brief: "least time between two states of a pair, in ms",
		Help: `How often ticker and orderbook.20 tell of one pair at most, in milliseconds. diff, trades and book_ tell of everything, as
			soon as it is durable.`,
		at: func(c *Config) any { return &c.Stream.IntervalMs },
	},
	{
		Key: "stream.ping_interval_ms", Default: "25000", min: 100, max: 600_000,
		Brief: "how often subscribers are pinged, in ms",
		Help: `How often the server asks a subscriber whether it is still there, in milliseconds. Proxies in between must allow
			connections that are silent for as long.`,
		at: func(c *Config) any { return &c.Stream.PingIntervalMs },
	},
	{
		Key: "stream.ping_timeout_ms", Default: "20000", min: 100, max: 600_000,
		Brief: "how long the answer to a ping may take, in ms",
		Help:  `After that a subscriber is taken for gone. In milliseconds.`,
		at:    func(c *Config) any { return &c.Stream.PingTimeoutMs },
	},

	{
		Key: "timing.request_timeout_ms", Default: "5000", min: 10, max: 600_000,
		Brief: "how long a request waits for its outcome, in ms",
		Help: `How long the answer to a command waits for the command to be durable, in milliseconds. After it the answer is 503
			"outcome unknown": the command is still under way and may well succeed, so the client must ask. It should be
			longer than a slow write of the store, else clients ask for nothing. An operator's order to cancel all waits for its end.`,
		at: func(c *Config) any { return &c.Timing.RequestTimeoutMs },
	},
	{
		Key: "timing.stall_ms", Default: "250", min: 10, max: 60_000,
		Brief: "silence of the store after which commands are refused, in ms",
		Help: `How long the store may leave a write unanswered before new commands are refused with 503, in milliseconds. They are
			taken again with its first answer. Less keeps fewer clients waiting for an unknown outcome, but refuses during every
			hiccup of the disk. Must be below timing.stall_max_ms.`,
		at: func(c *Config) any { return &c.Timing.StallMs },
	},
	{
		Key: "timing.stall_max_ms", Default: "60000", min: 100, max: 3_600_000,
		Brief: "silence of the store after which the exchange exits, in ms",
		Help: `How long the store may leave a write unanswered before the exchange answers "outcome unknown" to all waiting clients
			and exits with code 75, in milliseconds. A restart finds out what was written.`,
		at: func(c *Config) any { return &c.Timing.StallMaxMs },
	},
	{
		Key: "timing.stop_max_ms", Default: "30000", min: 100, max: 600_000,
		Brief: "how long an orderly stop may take, in ms",
		Help: `How long an orderly stop (SIGTERM, SIGINT) may take, in milliseconds: what is in flight is finished, everything is
			written, a snapshot is made. After it the exchange exits without the snapshot and with a code that is not 0. Nothing
			is lost then; the next start reads more of the journal. Keep it below the patience of what stops the program.`,
		at: func(c *Config) any { return &c.Timing.StopMaxMs },
	},
	{
		Key: "timing.owner_check_ms", Default: "500", min: 10, max: 60_000,
		Brief: "how often an exchange shows the store that it lives, in ms",
		Help: `How often an exchange asks the store whether it still owns it, which leaves a sign of life there, and how often a
			standby looks for one, in milliseconds. At most half of timing.owner_stale_ms.`,
		at: func(c *Config) any { return &c.Timing.OwnerCheckMs },
	},
	{
		Key: "timing.owner_stale_ms", Default: "2000", min: 20, max: 600_000,
		Brief: "age of the last such check after which private reads are refused, in ms",
		Help: `How old the last proof that this exchange owns its store may be, in milliseconds. Beyond it private reads and
			/readyz answer 503, since another exchange may have taken over and know more. Public reads go on.
			A standby takes over after twice that time without a sign of life; of two exchanges the longer time counts.`,
		at: func(c *Config) any { return &c.Timing.OwnerStaleMs },
	},
	{
		Key: "timing.projection_ms", Default: "200", min: 1, max: 60_000,
		Brief: "how often rows are written to the store, in ms",
		Help: `How often wallets and history are written to the store behind the journal, in milliseconds, if there are any.
			Less keeps fewer rows in memory; more writes a busy wallet less often.`,
		at: func(c *Config) any { return &c.Timing.ProjectionMs },
	},
	{
		Key: "timing.code_valid_ms", Default: "3600000", min: 1000, max: 604_800_000,
		Brief: "how long the code of a withdraw is valid, in ms",
		Help: `How long the code that is mailed for a withdraw is valid, in milliseconds. An owner that confirms later gets an
			error, and a new code by mail.`,
		at: func(c *Config) any { return &c.Timing.CodeValidMs },
	},
	{
		Key: "timing.snapshot_min_ms", Default: "60000", min: 0, max: 86_400_000,
		Brief: "least time between two snapshots, in ms",
		Help: `The least time between two snapshots, in milliseconds; a tenth of it when snapshot.max_records is reached, so that a
			store that fails is not asked again at once. 0: only the number of records counts.`,
		at: func(c *Config) any { return &c.Timing.SnapshotMinMs },
	},
	{
		Key: "timing.idle_timeout_ms", Default: "60000", min: 100, max: 3_600_000,
		Brief: "how long a connection may be idle, in ms",
		Help: `How long a connection may stay open without a request, in milliseconds. Less frees descriptors sooner, more saves
			clients new connections. A proxy in front must give up idle connections sooner than this.`,
		at: func(c *Config) any { return &c.Timing.IdleTimeoutMs },
	},
	{
		Key: "timing.read_timeout_ms", Default: "10000", min: 100, max: 600_000,
		Brief: "how long a request may take to arrive, in ms",
		Help: `How long a request may take from its first byte to its last, in milliseconds. It bounds what a client that sends
			very slowly can hold on to.`,
		at: func(c *Config) any { return &c.Timing.ReadTimeoutMs },
	},
	{
		Key: "timing.write_timeout_ms", Default: "10000", min: 100, max: 600_000,
		Brief: "how long an answer may take to be taken, in ms",
		Help: `How long a client may take to receive an answer, in milliseconds. It bounds what a client that reads very slowly can
			hold on to.`,
		at: func(c *Config) any { return &c.Timing.WriteTimeoutMs },
	},

	{
		Key: "snapshot.min_records", Default: "100000", min: 1, max: 100_000_000,
		Brief: "least number of records between two snapshots",
		Help: `A snapshot of the state is made when at least this many records came since the last and timing.snapshot_min_ms has
			passed. The journal before the older of the two kept ones is dropped. More snapshots cost writes, fewer make a start after
			a crash longer, since it reads all records behind the snapshot.`,
		at: func(c *Config) any { return &c.Snapshot.MinRecords },
	},
	{
		Key: "snapshot.max_records", Default: "1000000", min: 1, max: 100_000_000,
		Brief: "number of records after which a snapshot is made sooner",
		Help: `After this many records a snapshot is made as soon as a tenth of timing.snapshot_min_ms has passed since the last. It
			bounds how much a start after a crash must read: this, and what comes in that tenth. Must not be below
			snapshot.min_records.`,
		at: func(c *Config) any { return &c.Snapshot.MaxRecords },
	},

	{
		Key:   "mail.host",
		Brief: "SMTP server of the exchange's mails",
		Help: `The SMTP server that takes the exchange's mails: the codes that confirm withdraws, and word of refused
			ones. A name or an IP address without a port. Empty: no mail is sent, what is still of use waits until a start
			with a server, and no new withdraw is taken.
			With demo mails are written as files under the data folder, and no server is asked.`,
		at: func(c *Config) any { return &c.Mail.Host },
	},
	{
		Key: "mail.port", Default: "0", min: 0, max: 65_535,
		Brief: "port of the SMTP server",
		Help:  `The port of mail.host. 0: the usual one for mail.tls, which is 587 for required, 465 for implicit and 25 for none.`,
		at:    func(c *Config) any { return &c.Mail.Port },
	},
	{
		Key: "mail.tls", Default: "required", choices: []string{"required", "implicit", "none"},
		Brief: "how the connection to the SMTP server is encrypted",
		Help: `How the connection to mail.host is encrypted. required: it begins in clear text and changes to TLS (STARTTLS) before
			anything is said; a server that cannot is not used. implicit: TLS from the first byte. none: no encryption, so everyone on
			the way can read the codes; meant for a server on this machine, and a password is sent to no other.`,
		at: func(c *Config) any { return &c.Mail.TLS },
	},
	{
		Key:   "mail.username",
		Brief: "user name at the SMTP server",
		Help:  `The user name at mail.host; needs mail.password. Empty: the exchange does not authenticate.`,
		at:    func(c *Config) any { return &c.Mail.Username },
	},
	{
		Key:   "mail.password",
		Brief: "password at the SMTP server",
		Help: `The password of mail.username. It is never shown. Best given in EXCHANGE_MAIL_PASSWORD, because a file is copied more
			easily than an environment. If it stands in the file, let no other user read that.`,
		at:     func(c *Config) any { return &c.Mail.Password },
		redact: func(string) string { return "***" },
	},
	{
		Key:   "mail.from",
		Brief: "sender of the exchange's mails",
		Help: `The address that mails come from, such as exchange@example.org or "Example Exchange <exchange@example.org>". Mails
			that cannot be delivered come back to it. Needed with mail.host. Its domain is part of every mail's Message-ID, by which a
			mail that was sent twice is recognised: keep it.`,
		at: func(c *Config) any { return &c.Mail.From },
	},
	{
		Key: "mail.timeout_ms", Default: "30000", min: 100, max: 600_000,
		Brief: "how long sending one mail may take, in ms",
		Help: `How long sending one mail may take in all, in milliseconds. After it the mail counts as not sent and is tried again
			later. Some servers let strangers wait for many seconds on purpose; less than that never gets a mail through.`,
		at: func(c *Config) any { return &c.Mail.TimeoutMs },
	},
	{
		Key:   "mail.ca_file",
		Brief: "certificates of the authorities that the SMTP server is trusted by",
		Help: `A file of certificates in PEM form: the server's certificate must be signed by one of them, or be one of them. For a
			server with a certificate of one's own making. Empty: the authorities that this machine trusts.`,
		at: func(c *Config) any { return &c.Mail.CAFile },
	},
}
