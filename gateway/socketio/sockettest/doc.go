// Package sockettest has connections for tests in bubbles of testing/synctest. Each is a pair of
// sockets of the system, with its buffers, its errors and its file descriptors, so that writes past
// package net are those of a real connection. No system call blocks: a side waits on a condition
// variable for the other one, which a bubble sees. Nothing listens at an address.
//
//	listener.go    the server's listener
//	conn_unix.go   connections
//	conn_other.go  the same without file descriptors, where the system has no such pairs
package sockettest
