// Package loadtest drives a server of the exchange's API over HTTP and sockets, as many clients at
// once, and verifies while it loads: every order that was acknowledged is accounted for at the end.
//
//	run.go        the course of a test: prepare, load, verify, report
//	options.go    what it can be told
//	model.go      what is sent: pair, side, price and amount, from a seed
//	accounts.go   the accounts and what each knows of its own orders; prepare.go makes and funds them
//	sender*.go    what the connections of one generator send, and what becomes of their answers;
//	              generator/ has the loop over their sockets
//	stats.go      histograms, errors by kind, and what every second was like
//	ramp.go       the search for the highest rate that holds a bound
//	subscriber.go sockets of the event stream, and local books
//	verify*.go    what was acknowledged against what the server says afterwards
//	report*.go    the result as text, JSON, and one page
//
// # Latency
//
// In a closed loop a connection sends when it has its answer, so a server that stalls is asked
// less: its latencies are those of the requests that were sent. In an open loop request k is due at
// start + k/rate, whatever the server does, and its latency counts from that moment: a stall shows
// in all requests that were due in it. Those that were due and could not be sent before the end
// count with the time that they had waited until then.
//
// # What is known of a request
//
// An answer says that it was done or that it was refused. No answer, a broken connection and
// `outcome_unknown` say nothing: such an order is looked up by its client_order_id at the end, and
// counts as what is found then.
package loadtest
