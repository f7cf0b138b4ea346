package config

// limitOptions bound concurrency and request rates.
var limitOptions = []Option{
	{
		Key: "limits.in_flight", Default: "20000", min: 16, max: 1_000_000, appliedBy: byEngine,
		Brief: "commands in flight",
		Help: `How many commands (orders, cancels) may be in flight at once: accepted and not yet durable. Beyond it the
			answer is 503. More lets a burst through at the price of memory and of latency: the last one waits for all before
			it. There is no "unlimited".`,
		at: func(c *Config) any { return &c.Limits.InFlight },
	},
	{
		Key: "limits.in_flight_per_account", Default: "256", min: 1, max: 1_000_000,
		must: atMost, than: "limits.in_flight",
		Brief:  "commands in flight per account",
		market: firstMarket, appliedBy: byEngine,
		Help: `The share of one account in limits.in_flight, so that one client cannot take it all. Beyond it the answer is 503
			for that account alone. An eighth of it is kept for the account's cancels.`,
		at: func(c *Config) any { return &c.Limits.InFlightPerAccount },
	},
	{
		Key: "limits.in_flight_cancels", Default: "2000", min: 0, max: 1_000_000,
		appliedBy: byEngine, must: below, than: "limits.in_flight",
		Brief: "part of the commands in flight kept for cancels",
		Help: `The part of limits.in_flight that only cancels may use, and changes that only lower an order's amount, so a client can still reduce its risk when new orders
			are refused. Must be below limits.in_flight. 0: cancels have no advantage except
			the eighth of limits.in_flight_per_account.`,
		at: func(c *Config) any { return &c.Limits.InFlightCancels },
	},
	{
		Key: "limits.reads", Default: "4096", min: 1, max: 1_000_000,
		Brief: "reads in flight",
		Help: `How many read requests may be worked on at once, from the question until the store, if it is asked, has answered.
			Beyond it the answer is 503. It has nothing to do with limits.in_flight: reading cannot keep anyone from trading. It
			bounds the queries of a slow store, and the memory that long lists take while they are made. Lookups of why a command was
			refused have the same number of slots of their own. Statements, exports, backups and audits of operators do not count while they
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
		Help: `How many connections the public listener holds at once. Above this limit the server closes the
			oldest idle unauthenticated connection of the busiest address; a
			subscription of the stream counts as authentication. If none is idle, the
			new one is answered 503 and closed. Each takes a file descriptor,
			and while it is in use buffers of limits.header_bytes and the length of the answer. Where the system allows too few
			open files (ulimit -n) the start warns and holds fewer: 766 are kept for the store and the operator.`,
		at: func(c *Config) any { return &c.Limits.Connections },
	},
	{
		Key: "limits.connections_per_address", Default: "512", min: 0, max: 4_000_000,
		Brief: "open connections of one client address",
		Help: `How many of them one address may have. Above this limit the address loses its oldest idle one, as above, or the
			new one is answered 503 and closed. An IPv6 address counts by its /56 network. Addresses of this machine may have all.
			Connections of trusted_proxies count for no address and are never given up, because behind a proxy there are many
			clients: a proxy has to bound its clients itself. 0: one address may have all.`,
		at: func(c *Config) any { return &c.Limits.ConnectionsPerAddress },
	},
	{
		Key: "limits.public_rate", Default: "100", min: 0, max: 1_000_000,
		Brief:  "public requests a second of one client address",
		market: firstMarket, appliedBy: byMarket,
		Help: `How many public requests a client address may make a second in the long run; up to limits.public_burst of them may
			come at once. Requests for an unknown path, method or format count too, and so do heads that are no
			HTTP, browsers' preflights, and handshakes of the stream. Beyond it the answer is 429, which says when to come back. An IPv6 address counts
			by its /56 network. Behind a proxy this needs trusted_proxies. 0: public requests are not limited.`,
		at: func(c *Config) any { return &c.Limits.PublicRate },
	},
	burst("public", "public requests of one client address at once", func(c *Config) any {
		return &c.Limits.PublicBurst
	}),
	{
		Key: "limits.read_rate", Default: "100", min: 0, max: 1_000_000,
		Brief:  "private reads a second of one key",
		market: firstMarket, appliedBy: byMarket,
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
		Brief:  "orders and other commands a second of one account",
		market: firstMarket, appliedBy: byMarket,
		Help: `How many orders, changes and trials of orders, settings, withdrawals and confirmations of withdrawals an account may send
			a second in the long run, over all its keys. 0: they are not limited.`,
		at: func(c *Config) any { return &c.Limits.CommandRate },
	},
	burst("command", "commands of one account at once", func(c *Config) any {
		return &c.Limits.CommandBurst
	}),
	{
		Key: "limits.cancel_rate", Default: "100", min: 0, max: 1_000_000,
		Brief:  "cancels a second of one account",
		market: firstMarket, appliedBy: byMarket,
		Help: `How many cancels of orders and withdrawals, and settings of dead man's switches, an account may send a second in the long
			run, over all its keys. They are
			counted apart from its commands, so that a flood of orders does not keep it from cancelling. 0: they are not limited.`,
		at: func(c *Config) any { return &c.Limits.CancelRate },
	},
	burst("cancel", "cancels of one account at once", func(c *Config) any {
		return &c.Limits.CancelBurst
	}),
	{
		Key: "limits.failure_rate", Default: "100", min: 0, max: 1_000_000,
		Brief:  "private requests a second of one client address that are not signed right",
		market: firstMarket, appliedBy: byMarket,
		Help: `How many private requests of a client address may end a second, in the long run, before their signature was
			verified. Beyond it such a request gets 429 and its connection is closed. Requests that are signed right are not
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
			accounts, or addresses. Each takes about 45 bytes. One that is not counted back to 0 yet is only forgotten when all are in that state, and then the
			one nearest to 0. More matters only when more clients than this come within the time in which one request is
			counted back, 10 ms at 100 a second.`,
		at: func(c *Config) any { return &c.Limits.RateEntries },
	},
	{
		Key: "limits.body_bytes", Default: "65536", min: 1024, max: 16 << 20,
		Brief: "length of a request's body, in bytes",
		Help: `The longest body of a request, in bytes. Beyond it the answer is 413. An order takes about 100. A connection that announces
			this length has it in memory until it has arrived, or for timing.read_timeout_ms: that, limits.header_bytes and an answer are what
			each of limits.connections may take. Only what ` + "`exchange config apply`" + ` sends may be longer, up to 6 MiB.`,
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
		Key: "limits.batch", Default: "50", min: 1, max: 1_000,
		Brief:  "items of a batch",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many orders, cancels and changes of orders one order-batch/ may have. It is lowered to what an account could
			ever get at once: its places for orders in limits.in_flight_per_account, limits.command_burst, limits.cancel_burst.
			exchange-info/ shows the effective bound.`,
		at: func(c *Config) any { return &c.Limits.Batch },
	},
	{
		Key: "limits.max_fills", Default: "10000", min: 1, max: 50_000,
		Brief:  "trades of one order at once",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many trades one order may make at the moment it arrives. What remains of it then is cancelled in the same step,
			and the answer says so. An order is one step that is never split, so a larger number lets one order hold up the
			others for longer, and makes a batch of the journal larger: 10,000 trades are some hundred kilobytes.`,
		at: func(c *Config) any { return &c.Limits.MaxFills },
	},
	{
		Key: "limits.open_orders_per_account", Default: "100000", min: 1, max: 10_000_000,
		Brief:  "open orders of one account",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many open orders one account may have over all pairs. Beyond it new orders of the account are refused. Open
			orders are kept in memory.`,
		at: func(c *Config) any { return &c.Limits.OpenOrdersPerAccount },
	},
	{
		Key: "limits.open_orders_per_book", Default: "5000000", min: 1, max: 50_000_000,
		Brief:  "open orders of one pair",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many open orders one pair may have. Beyond it new orders for the pair are refused. Open orders are kept in memory.`,
		at:   func(c *Config) any { return &c.Limits.OpenOrdersPerBook },
	},
	{
		Key: "limits.open_orders_per_account_and_book", Default: "5000", min: 1, max: 10_000_000,
		Brief:  "open orders of one account in one pair",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many open orders one account may have in one pair. Beyond it new orders of the account
			for the pair are refused. It keeps a single account from filling a book with tiny orders,
			together with the minimum_order_value of each pair.`,
		at: func(c *Config) any { return &c.Limits.OpenOrdersPerAccountAndBook },
	},
	{
		Key: "limits.stops_per_account", Default: "200", min: 1, max: 1_000_000,
		Brief:  "orders of one account in one pair that wait for a trigger",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many orders with a trigger price one account may have in one pair, those that rest in the book and have another half
			(oco_trigger_price) included. Beyond it new ones are refused. They count as open orders, too.`,
		at: func(c *Config) any { return &c.Limits.StopsPerAccount },
	},
	{
		Key: "limits.stops_per_book", Default: "100000", min: 1, max: 10_000_000,
		Brief:  "orders of one pair that wait for a trigger",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many orders with a trigger price one pair may have. Beyond it new ones are refused. A single trade may trigger
			them all, one after the other: each then takes its turn in the pair's book, between the orders of others.`,
		at: func(c *Config) any { return &c.Limits.StopsPerBook },
	},
	{
		Key: "limits.gtd_per_account", Default: "1000", min: 1, max: 1_000_000,
		Brief:  "orders of one account in one pair that expire",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many orders with an end (expire_time) one account may have in one pair. Beyond it new ones are refused. They
			count as open orders, too.`,
		at: func(c *Config) any { return &c.Limits.GTDPerAccount },
	},
	{
		Key: "limits.gtd_per_book", Default: "100000", min: 1, max: 10_000_000,
		Brief:  "orders of one pair that expire",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many orders with an end one pair may have. Beyond it new ones are refused. All may end at the same moment: those
			that are due go before the next order of the pair is decided.`,
		at: func(c *Config) any { return &c.Limits.GTDPerBook },
	},
	{
		Key: "limits.triggers_in_flight", Default: "4096", min: 1, max: 1_000_000,
		appliedBy: byEngine, Brief: "triggered orders in flight at once",
		Help: `How many orders that were triggered may be in flight to the store at once, over all pairs, beside one of each
			pair. The others wait in their pair's queue. More ends a cascade sooner; less leaves more of the store to other orders.`,
		at: func(c *Config) any { return &c.Limits.TriggersInFlight },
	},
	{
		Key: "limits.pending_withdraws", Default: "100", min: 1, max: 10_000,
		Brief:  "pending withdrawals of one account",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many withdraws of one account may wait for their code or for approval. Beyond it new ones are refused.`,
		at:   func(c *Config) any { return &c.Limits.PendingWithdrawals },
	},
	{
		Key: "limits.keys_per_account", Default: "100", min: 1, max: 10_000,
		Brief:  "API keys of one account",
		market: firstMarket, appliedBy: byEngine,
		Help: `How many API keys one account may have that are not revoked. Beyond it making one fails.`,
		at:   func(c *Config) any { return &c.Limits.KeysPerAccount },
	},
	{
		Key: "limits.accounts", Default: "1000000", min: 1, max: 10_000_000, appliedBy: byEngine,
		Brief: "accounts",
		Help:  `How many accounts there may be. Beyond it making one fails. An account at rest takes about 2 KB of memory.`,
		at:    func(c *Config) any { return &c.Limits.Accounts },
	},
	{
		Key: "limits.fold_lag", Default: "200000", min: 1000, max: 10_000_000, appliedBy: byEngine,
		Brief: "records the committed state may lag",
		Help: `How many records the committed state, which answers reads, may lag the journal before new orders
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
		Help: `The journal writes what has come in while the last write was in flight as one batch, of about this many bytes. A
			single longer command makes a batch of its own. More gives throughput on a slow disk; less gives an even latency.`,
		at: func(c *Config) any { return &c.Limits.BatchBytes },
	},
}

// burst returns the option beside limits.KIND_rate.
func burst(kind, brief string, at func(*Config) any) Option {
	return Option{
		Key: "limits." + kind + "_burst", Default: "200", min: 1, max: 1_000_000, Brief: brief,
		Help: "How many such requests may come at once after a pause. They are counted back at " +
			"limits." + kind + "_rate a second.",
		at: at, market: firstMarket, appliedBy: byMarket,
	}
}
