package config

// streamOptions bound the event stream.
var streamOptions = []Option{
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
		Brief:  "messages a second of one subscriber",
		market: firstMarket,
		Help: `How many packets a subscriber may send a second in the long run, and five times as many at once; each 4 KiB count as
			one more, limits.body_bytes as half of those at most, and so does what a packet asks for: a name that stands for all pairs counts for
			each of them, up to half of those at once. A subscriber that sends more is disconnected. Orders and cancels of a client that has
			logged in count only if its account's rates (limits.command_rate, limits.cancel_rate) refuse them.`,
		at: func(c *Config) any { return &c.Stream.MessagesPerSecond },
	},
	{
		Key: "stream.queue_bytes", Default: "1048576", min: 4096, max: 1 << 30,
		Brief: "what may wait for one subscriber, in bytes",
		Help: `How much may wait for a subscriber that does not keep up. Of ticker, orderbook.20, bbo and open candles only the newest waits
			anyway. Of diff and depth a whole book takes the place of what does not fit. Of all else nothing is ever left out: a subscriber
			with more than this waiting is disconnected. Events that are sent at once while nothing waits do not count.`,
		at: func(c *Config) any { return &c.Stream.QueueBytes },
	},
	{
		Key: "stream.stall_ms", Default: "10000", min: 100, max: 600_000,
		Brief: "how long a subscriber may receive nothing, in ms",
		Help:  `A subscriber that receives nothing for this long, while events wait for it, is disconnected. In milliseconds.`,
		at:    func(c *Config) any { return &c.Stream.StallMs },
	},
	{
		Key: "stream.interval_ms", Default: "100", min: 1, max: 60_000,
		Brief:  "least time between two states of a pair, in ms",
		market: firstMarket,
		Help: `How often ticker, orderbook.20 and candles send updates of one pair at most, in milliseconds. diff, depth, trades, trades.full and
			book_ send every change as soon as it is durable.`,
		at: func(c *Config) any { return &c.Stream.IntervalMs },
	},
	{
		Key: "stream.bbo_interval_ms", Default: "10", min: 1, max: 60_000,
		Brief:  "least time between two events of bbo, in ms",
		market: firstMarket,
		Help: `How often bbo, the best price of each side and the amount there, is sent for one pair at most, in milliseconds. The first change
			after a silence is sent at once.`,
		at: func(c *Config) any { return &c.Stream.BBOIntervalMs },
	},
	{
		Key: "stream.orders_in_flight", Default: "64", min: 1, max: 10_000,
		Brief:  "commands of one socket that have no answer",
		market: firstMarket,
		Help: `How many orders, cancels and other commands one socket may have in flight. Further ones wait, at most 64 of them; beyond
			these the server reads nothing more from the socket until one has its answer. limits.in_flight_per_account holds, too.`,
		at: func(c *Config) any { return &c.Stream.OrdersInFlight },
	},
	{
		Key: "stream.own_bytes", Default: "268435456", min: 0, max: 1 << 40,
		Brief: "what is kept of accounts' events, in bytes",
		Help: `How much of what happened to accounts is kept in memory, so that clients of the event own that lost their connection
			can resume. Of each account with such a client, and for 5 minutes after its last one, that is at most the newest 4,096 events
			or 1 MiB. Beyond it the accounts that were unused for longest are forgotten first. A client whose events are not kept any more gets
			all that its account has, as at its beginning.`,
		at: func(c *Config) any { return &c.Stream.OwnBytes },
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
		Help:  `After that a subscriber is disconnected. In milliseconds.`,
		at:    func(c *Config) any { return &c.Stream.PingTimeoutMs },
	},
}
