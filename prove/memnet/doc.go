// Package memnet is a network in memory, for tests: in a bubble of testing/synctest, whose clock
// stands still while a goroutine waits for a socket, a Network has the place of the loopback.
//
//	network.go  listeners, and connections to them
//	conn.go     one connection
package memnet
