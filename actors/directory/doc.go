// Package directory holds the first lookups of gateway handlers and actors: accounts and their API
// keys, pairs and currencies. Accounts and keys come and go while the engine runs; pairs and
// currencies are as configured, under the numbers assigned by records.
//
//	directory.go  accounts and keys, found by id and by name
//	signed.go     a client's signed request, for the leading node
//	catalogue.go  pairs and currencies
//	rules.go      a pair's limits on orders
//	testing.go    helpers for tests of other packages
package directory
