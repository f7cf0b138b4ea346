package config

// timingOptions are timeouts, intervals, and the frequency of snapshots.
var timingOptions = []Option{
	{
		Key: "timing.request_timeout_ms", Default: "5000", min: 10, max: 600_000,
		Brief: "how long a request waits for its outcome, in ms",
		Help: `How long the answer to a command waits for the command to be durable, in milliseconds. After it the answer is 503
			"outcome unknown": the command is still in flight and may well succeed, so the client must ask. It should be
			longer than a slow write of the store, else clients ask for nothing. An operator's order to cancel all waits for its end.`,
		at: func(c *Config) any { return &c.Timing.RequestTimeoutMs },
	},
	{
		Key: "timing.stall_ms", Default: "250", min: 10, max: 60_000,
		must: below, than: "timing.stall_max_ms",
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
			is lost then; the next start reads more of the journal. Keep it below the stop timeout of the supervisor.`,
		at: func(c *Config) any { return &c.Timing.StopMaxMs },
	},
	{
		Key: "timing.owner_check_ms", Default: "500", min: 10, max: 60_000,
		must: atMostHalf, than: "timing.owner_stale_ms",
		Brief: "how often an exchange sends the store a heartbeat, in ms",
		Help: `How often an exchange checks that it still owns the store, which is also its heartbeat there, and how often a standby
			looks for a heartbeat, in milliseconds. At most half of timing.owner_stale_ms.`,
		at: func(c *Config) any { return &c.Timing.OwnerCheckMs },
	},
	{
		Key: "timing.owner_stale_ms", Default: "2000", min: 20, max: 600_000,
		Brief: "age of the last such check after which private reads are refused, in ms",
		Help: `How old the last proof that this exchange owns its store may be, in milliseconds. Beyond it private reads and
			/readyz answer 503, since another exchange may have taken over and have newer data. Public reads
			continue. A standby takes over after twice that time without a heartbeat; of two exchanges the longer time counts.`,
		at: func(c *Config) any { return &c.Timing.OwnerStaleMs },
	},
	{
		Key: "timing.projection_ms", Default: "200", min: 1, max: 60_000,
		Brief: "how often rows are written to the store, in ms",
		Help: `How often wallets and history are written to the store after the journal, in milliseconds, if there are any.
			Less keeps fewer rows in memory; more writes a busy wallet less often.`,
		at: func(c *Config) any { return &c.Timing.ProjectionMs },
	},
	{
		Key: "timing.code_valid_ms", Default: "3600000", min: 1000, max: 604_800_000,
		Brief:  "how long the code of a withdrawal is valid, in ms",
		market: firstMarket,
		Help: `How long the code that is mailed for a withdrawal is valid, in milliseconds. An owner that confirms later gets an
			error, and a new code by mail.`,
		at: func(c *Config) any { return &c.Timing.CodeValidMs },
	},
	{
		Key: "timing.switch_grace_ms", Default: "10000", min: 0, max: 3_600_000,
		Brief:  "how long a dead man's switch waits after a maintenance, in ms",
		market: firstMarket,
		Help: `How long a dead man's switch that came due in a maintenance waits after its end, in milliseconds, because its client
			could not refresh it before. Less cancels the orders of dead clients sooner; more gives living ones time to come back.`,
		at: func(c *Config) any { return &c.Timing.SwitchGraceMs },
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
		must: atMost, than: "snapshot.max_records",
		Brief: "least number of records between two snapshots",
		Help: `A snapshot of the state is made when at least this many records came since the last and timing.snapshot_min_ms has
			passed. The journal before the older of the two kept ones is dropped. More snapshots cost writes, fewer make a start after
			a crash longer, since it reads all records after the snapshot.`,
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
}
