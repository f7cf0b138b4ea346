package config

// serverOptions configure addresses, files, stores, and the log.
var serverOptions = []Option{
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
			the exchange runs as: the system reports which user asks, so there is no token that could reach another program. A name
			without a slash lies in the data folder. "host:port" asks for the bearer token of operator_token_file. Without
			operator_tls.cert_file it must be a loopback address, because the token credits accounts and could be read in
			transit. Port 0 is any free one. From another machine, use TLS or an SSH tunnel, or run the command on this machine or
			in the container.`,
		at: func(c *Config) any { return &c.Operator },
	},
	{
		Key: "store", Flag: true, Default: "pebble:./data", named: true, redact: RedactURL,
		Brief: "where everything is kept: pebble:FOLDER, redis://..., rediss://... or " +
			"unix:///SOCKET",
		Help: `The store: "pebble:FOLDER" is an embedded store in a folder of this machine, with nothing to install;
			"redis://[user:password@]host:port/db" is a Redis, "rediss://" a Redis over TLS, and
			"unix://[user:password@]/path/of/the/socket?db=0" one at a socket of this machine. A Redis must write its log
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
			Each node of a cluster has a folder of its own, and keeps its log until its archive has it.
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
		Key: "no_demo_market", Flag: true,
		Brief: "leave out the market maker of the demo",
		Help: `Leaves out the market maker of the demo. Otherwise two accounts, market-1 and market-2, quote and trade on all pairs,
			with at most two records a second, so that there is something to see and to trade with. On a new store, also of
			a cluster, they play a day of trades first, which takes some seconds.`,
		at: func(c *Config) any { return &c.NoDemoMarket },
	},
	{
		Key: "no_rate_limits", Flag: true,
		Brief: "switch off rate limits, for load tests",
		Help: `Switches off every limit on requests per second, for load tests, as if limits.public_rate, read_rate, command_rate,
			cancel_rate and failure_rate were 0, and those of probes and of the API's pages too. The other limits stay: they
			bound what is in flight, not how often it comes. A node of a cluster limits nothing then, whatever the nodes have agreed on.`,
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
		Key: "no_pages", Flag: true,
		Brief: "leave out the pages for people: /, /trade, /account, /licenses",
		Help: `Leaves out the pages for people: /, /trade, /account, /licenses, the demo's mails and all below /web/ answer
			404 then, as unknown addresses. For an exchange whose customers have other pages. The API, the stream and the
			page about the API at /docs (no_docs) stay as they are. A change counts from the next start.`,
		at: func(c *Config) any { return &c.NoPages },
	},
	{
		Key: "contact", Flag: true,
		Brief: "e-mail or https address for programmers of clients, in the OpenAPI document",
		Help: `Whom programmers of clients may ask: an e-mail address, or an https address of a page. The OpenAPI document and the
			page at /docs name it. Empty: they name nobody. A change counts from the next start.`,
		at: func(c *Config) any { return &c.Contact },
	},
	{
		Key: "synthetic_pairs", Flag: true, Default: "0", min: 0, max: maxSynthetic,
		Brief: "number of pairs SYN0001_USDT, SYN0002_USDT, ... to add for load tests",
		Help: `Adds this number of pairs for load tests, named SYN0001_USDT, SYN0002_USDT and so on, after the configured ones, with the currencies
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
			orders and trades that were acknowledged to clients, and the exchange refuses to start. True: it starts anyway, and
			every start-up log has a warning. Meant for services that do not let their settings be read. The embedded store
			ignores it.`,
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
		Help: `A file with the certificate of the public listener in PEM form, followed by the intermediate ones up to an authority
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
		Key: "log.level", Flag: true, Default: "info", appliedBy: byEdge,
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
}
