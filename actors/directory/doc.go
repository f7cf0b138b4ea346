// Package directory has what gateway handlers and actors look up before they do anything else: the
// accounts and their API keys, the pairs and the currencies. Accounts and keys come and go while
// the engine runs; pairs and currencies are as configured, under the numbers that records gave
// them.
//
//	directory.go  accounts and keys, found by id and by name
//	signed.go     what a client has signed, for the node that leads
//	catalogue.go  pairs and currencies
//	rules.go      what a pair's rules forbid
//	testing.go    what tests of other packages need
package directory
