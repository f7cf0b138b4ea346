// Package generator sends the requests of a Client over HTTP/1.1 or over sockets of Socket.IO, on
// many connections from one thread. A connection has at most one request in flight; a socket may
// have many connections. In a closed loop a connection sends its next request when it has its
// answer. In an open loop requests are due by a schedule, however slow the server is, and a latency
// counts from the moment its request was due.
//
//	client.go       the interface of its client, and the phases of a load
//	schedule.go     stages of rates, and the moment at which each request is due
//	generator.go    the loop: when a connection sends, and how long the loop waits
//	connections.go  answers, and connections that break and are redialed
//	answer.go       one answer over HTTP, parsed from its bytes
//	frames.go       frames of a websocket, and the acknowledgements of Socket.IO in them
//	poller.go       readable sockets; goroutines read them on systems without epoll
//	poller_linux.go, poller_other.go  this system's poller, and the CPU time of its thread
//	testing.go      helpers for tests of other rooms
package generator
