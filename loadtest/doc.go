// Package loadtest drives a server of the exchange's API over HTTP and sockets, as many concurrent
// clients, and verifies its answers. At the end every acknowledged order is accounted for.
//
//	run.go           the course of a test: prepare, load, verify, report
//	options.go       its options
//	market.go, model.go  the pairs, and the orders that a model chooses from a seed
//	accounts.go      the accounts and their own orders
//	prepare.go       makes and funds the accounts; rest.go sends requests outside of the load
//	instructed.go    orders with instructions, and changes of orders
//	witness.go       acknowledged orders, read at another address while the load runs
//	addresses.go     several addresses, as of a cluster: connections, outages, places of reads
//	sender.go, sender_answers.go  requests of one generator's connections, and their answers
//	request.go, signer.go, scan.go, amounts.go  requests over HTTP and over sockets, alone and in
//	                 batches; signatures, JSON, amounts
//	stats.go         histograms, errors by kind, and the course of every second
//	minutes.go       the table over time, and the bounds that a soak must hold
//	watch.go         the server's metrics meanwhile; banker.go: deposits meanwhile
//	server.go        the server's identity, and the cost of the load on it
//	stages.go        rates that change by a list of stages, and the results of each
//	ramp.go          the search for the highest rate that holds a bound
//	login.go         websockets of the event stream, and logins with a key
//	subscriber.go, book.go, own.go  sockets of the event stream, local books, and events of an
//	                 account
//	verify.go, verify_account.go, verify_lists.go, verify_stream.go
//	                 acknowledged outcomes against the server's state afterwards
//	silence.go       the wait for an exchange that does not answer
//	machine.go       the load of the load tester's machine
//	progress.go      a line on the terminal while a test runs
//	report.go, report_text.go, report_html.go, plot.go  the result: JSON, text, a page with plots
//	compare.go       two reports side by side
//	process_unix.go, process_other.go  the CPU time of the program
//
// The package generator is the loop over the sockets.
//
// # Latency
//
// In a closed loop a connection sends its next request after an answer. So a stalled server
// receives fewer requests, and the latencies are only those of the sent ones. In an open loop
// request k is due when the integral of the rate reaches k, however slow the server is. Its latency
// counts from that moment, so a stall shows in all requests due during it. Requests that were due
// and could not be sent before the end count with their waiting time. Each item of a batch counts
// as a request.
//
// # Outcome of a request
//
// An answer reports the request as done or refused. After a missing answer, a broken connection or
// `outcome_unknown` the outcome is unknown. The test looks up such an order by its client_order_id
// at the end, and the order counts as found then.
//
// # Several addresses
//
// Each connection goes to one of the addresses, and redials that one when it breaks. Each account
// is verified at an address that its orders were not sent to. If they were sent to all, then the
// account is verified at two, so that each order is read elsewhere at least once.
package loadtest
