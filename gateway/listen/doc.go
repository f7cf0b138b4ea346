// Package listen holds the sockets of the HTTP edge: connection limits, TLS, request boundaries,
// and how a connection is closed. It carries requests and answers none.
//
//	boundary.go     where a request ends
//	places.go       places for connections, and which connection loses its place
//	linger.go       closes that let a client read its answer
//	certificate.go  certificates from files, and how they are renewed
//	tls.go          TLS on a listener, and its goodbye
//	listener.go     a listener with all of these, and connections beyond its limit
//	socket.go       the operator's socket, whose user the kernel reports: socket_unix.go,
//	                socket_linux.go, socket_darwin.go, socket_other.go
//	testing.go      the places as tests see them
package listen
