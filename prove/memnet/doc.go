// Package memnet is a network in memory, for tests: it replaces the loopback in a bubble of
// testing/synctest, whose clock stands still while a goroutine waits for a socket.
//
//	network.go  listeners, and connections to them
//	conn.go     one connection
package memnet
