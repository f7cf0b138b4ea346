package config

// clusterOptions make the exchange one node of several that share a journal.
var clusterOptions = []Option{
	{
		Key: "cluster.node", Flag: true, flag: "node",
		Brief: "name of this node, of those in --nodes",
		Help: `The name of this node among those of cluster.nodes, which identifies it permanently: 1 to 63 characters of
			a-z, 0-9 and '-'. Empty: the exchange runs on this machine alone.`,
		at: func(c *Config) any { return &c.Cluster.Node },
	},
	{
		Key: "cluster.nodes", Flag: true, flag: "nodes",
		Brief: "all nodes that share one journal, as a=HOST:PORT,b=HOST:PORT,c=HOST:PORT",
		Help: `All nodes that keep one journal together, this one among them, as a=HOST:PORT,b=HOST:PORT,c=HOST:PORT, the same
			text on each node. One of them leads and serves, the others follow and take over when it dies. The ports are for the
			nodes alone. Three nodes keep serving when one is gone, five when two are; an even number tolerates no more failures than
			one node less. Each node keeps its part in an embedded store. Empty: the exchange runs on this machine
			alone.`,
		at: func(c *Config) any { return &c.Cluster.nodes },
	},
	{
		Key: "cluster.observer", Flag: true, flag: "observer",
		Brief: "follow the nodes in --follow and serve, without a store and without a vote",
		Help: `This process is an observer of a cluster: it serves clients and the stream as a node does, and is none. It has no vote,
			no store and no secret key, so any number of them can be added for clients to share. cluster.node is its name, which
			the nodes must have in their cluster.observers.`,
		at: func(c *Config) any { return &c.Cluster.Observer },
	},
	{
		Key: "cluster.follow", Flag: true, flag: "follow",
		Brief: "nodes that an observer follows, as a=HOST:PORT,b=HOST:PORT,c=HOST:PORT",
		Help: `The nodes that an observer calls, as in their cluster.nodes: name all of them. It follows one that does not lead, and
			another one when that is gone. It forwards its clients' commands to the leader.`,
		at: func(c *Config) any { return &c.Cluster.follow },
	},
	{
		Key:   "cluster.observers",
		Brief: "names of the observers that this node takes, as o1,o2",
		Help: `The names of the observers that may follow this node, separated by commas; the same on all nodes. Who holds an
			observer's key sees what all accounts have and do, and sends nothing that no client has signed. Take a name out and
			restart the nodes, one after the other, to remove an observer. Empty: none.`,
		at: func(c *Config) any { return &c.Cluster.observers },
	},
	{
		Key:   "cluster.folder",
		Brief: "folder of this node's certificate, as `exchange cluster init` has made it",
		Help: `The folder with this node's part of what "exchange cluster init" has written: cluster.id, ca.crt, node.crt,
			node.key, exchange.key and operator.token. The nodes prove their names to each other with it. The secret key in it is used
			unless secret_key_file names another one: all nodes need the same. A data folder without a token takes the one in it. Empty: the nodes believe each other's names, so all their
			addresses must be loopback addresses.`,
		at: func(c *Config) any { return &c.Cluster.Folder },
	},
	{
		Key: "cluster.tick_ms", Default: "50", min: 10, max: 10_000,
		Brief: "unit of the nodes' time, in ms",
		Help: `The unit of time of the nodes, in milliseconds, the same on all of them. The leader sends a heartbeat each
			tick. A node that received none for 10 to 19 ticks starts an election: so after the leader's death clients
			wait for 0.5 to 1 s at 50. Write more where the network or the machines regularly stall for longer than
			that, because each needless election ends the requests in flight with an unknown outcome.`,
		at: func(c *Config) any { return &c.Cluster.TickMs },
	},
	{
		Key: "cluster.log_max", Default: "17179869184", min: 256 << 20, max: 1 << 50,
		Brief: "log that a node keeps for nodes that lack it, in bytes",
		Help: `The bytes of its log that a node keeps, at most, for other nodes that lack them: those that are down, and those that
			join. What it needs itself it keeps in any case. A node that lacks more when it comes back says so in its log, and is
			replaced by itself: "exchange cluster replace". One that joins gets another copy of a store then. So write less than
			the disks have room for, and more than what the load writes in the time that a node may be down. The node that leads
			decides, so write the same on all of them.`,
		at: func(c *Config) any { return &c.Cluster.LogMax },
	},
	{
		Key: "cluster.public_url", Flag: true, flag: "public-url",
		Brief: "where clients reach this node, such as https://a.example.org",
		Help: `Where clients reach the public listener of this node, such as https://a.example.org or http://10.0.0.1:8080,
			without a path. While this node leads, the others name it in the header X-Leader of the requests that they refuse.
			Empty: they refuse without that header.`,
		at: func(c *Config) any { return &c.Cluster.PublicURL },
	},
}
