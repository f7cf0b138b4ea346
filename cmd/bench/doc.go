// Command bench measures the exchange and prints one table: each value beside its aim and, where
// there is one, its ratio to a yardstick of the same run. The parts, Go benchmarks of the packages,
// are first. Then come signed durable orders over HTTP, on Pebble and on Redis, beside a fasthttp
// handler that does nothing. The load tester's generator drives them all. A round measures
// everything once, in turns, and values are medians over the rounds. On a shared machine absolute
// rates say little; ratios, and CPU per order, say more.
//
// Last are orders that come at half of the highest rate, however slow the exchange is. In the whole
// table their measurement is short. If -only asks for it, it takes a minute of each side:
//
//	go run ./cmd/bench -only 'open loop' -rounds 1
//
// A missed aim is a line of the report, not an error. A value that cannot be measured is an error.
//
//	go run ./cmd/bench [-rounds 7] [-seconds 2] [-connections 64] [-only REGEXP] [-json FILE]
//	    [-svg FILE]
//
// The files:
//
//	main.go       flags, and the rounds
//	table.go      rows, aims, verdicts, and the report
//	picture.go    how far the rows are from their aims, as a picture
//	parts.go      Go benchmarks of the packages
//	subjects.go   servers under load, and the exchange as one
//	yardstick.go  the servers that exchanges are compared with
//	datasync_linux.go, datasync_other.go  how the yardstick makes bytes durable on this system
//	clients.go    requests and answers of the load, on the load tester's generator
//	variants.go   kinds of orders on one exchange: client order ids, market, ioc, post-only ...
//	stops.go      orders beside waiting stops, and a cascade of stops
//	reads.go      public answers, beside fixed bodies of the same lengths
//	process.go    the exchange's process: allocations, collections, bytes of the journal
//	tester.go     `exchange loadtest` beside the bare generator
//	ways.go       orders of `exchange loadtest`: one by one, in batches, and over sockets
//	cluster.go    three nodes: orders at the one that leads, and fail-overs
//	entering.go   orders at a node that follows
//	observed.go   orders beside subscribers of an observer
//	asking.go     clients that look for the node that leads
//	start.go      the start of a large exchange, which large.go makes
//	images.go     what requests wait for while snapshots of such an exchange are made
//	open.go       orders in an open loop
//	overload.go   more orders than the exchange can take
//	fairness.go   one account that floods, beside many
//	stream.go     what subscribers cost; stream_orders.go measures orders beside them,
//	              stream_source.go makes the events, stream_subscribers.go reads them,
//	              stream_helper.go runs both as processes
package main
