// Package loadtest drives a server of the exchange's API over HTTP and sockets, as many clients at
// once, and verifies its answers. At the end every acknowledged order is accounted for.
//
//	run.go           the course of a test: prepare, load, verify, report
//	options.go       its options
//	market.go, model.go  the pairs, and the orders that a model chooses from a seed
//	accounts.go      the accounts and what each knows of its own orders
//	prepare.go       makes and funds the accounts; rest.go asks the server outside of the load
//	instructed.go    orders with instructions, and changes of orders
//	witness.go       acknowledged orders, read at another address while the load runs
//	addresses.go     several addresses, as of a cluster: connections, outages, what is read where
//	sender.go, sender_answers.go  requests of one generator's connections, and their answers
//	request.go, signer.go, scan.go, amounts.go  requests over HTTP and over sockets, alone and in
//	                 batches; signatures, JSON, amounts
//	stats.go         histograms, errors by kind, and the course of every second
//	minutes.go       the table over time, and the bounds that a soak must hold
//	watch.go         what the server tells of itself meanwhile; banker.go: deposits meanwhile
//	server.go        what it is, and what the load has cost it
//	stages.go        rates that change by a list of stages, and what each of them came to
//	ramp.go          the search for the highest rate that holds a bound
//	login.go         websockets of the event stream, and logins with a key
//	subscriber.go, book.go, own.go  sockets of the event stream, local books, and what happens to
//	                 an account
//	verify.go, verify_account.go, verify_lists.go, verify_stream.go
//	                 acknowledged outcomes against the server's state afterwards
//	silence.go       the wait for an exchange that answers nothing
//	machine.go       how busy the load tester's machine was
//	progress.go      a line on the terminal while a test runs
//	report.go, report_text.go, report_html.go, plot.go  the result: JSON, text, a page with plots
//	compare.go       two reports beside each other
//	process_unix.go, process_other.go  the CPU time of the program
//
// The package generator has the loop over the sockets.
//
// # Latency
//
// In a closed loop a connection sends its next request after an answer. So a stalled server is
// asked less, and the latencies are only those of the sent requests. In an open loop request k is
// due when the integral of the rate comes to k, however slow the server is. Its latency counts from
// that moment, so a stall shows in all requests due during it. Requests that were due and could not
// be sent before the end count with the time that they had waited. Each item of a batch counts as a
// request.
//
// # Outcome of a request
//
// An answer says that the request was done or refused. A missing answer, a broken connection and
// `outcome_unknown` say nothing. The test looks up such an order by its client_order_id at the end,
// and the order counts as it is found then.
//
// # Several addresses
//
// Each connection goes to one of the addresses, and dials that one again when it breaks. Each
// account is verified at an address that its orders were not sent to. If they were sent to all,
// then the account is verified at two, so that each order is read elsewhere at least once.
package loadtest
