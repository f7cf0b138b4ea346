// Package gateway composes the packages below it into the exchange's HTTP server. A Gateway serves
// the public API, operators and monitoring. It has no matching and no wallets.
//
// A request passes package listen, which has the sockets, and package edge, which checks it.
// Package api carries out a call of the public API without knowing its transport, and package
// operator the operator's API. Package stream has the channels of the event stream, and package
// socketio its protocol. Package metrics collects metrics of all packages for /metrics, and package
// openapi describes the public API. The scenarios of testdata run through all of them.
//
//	gateway.go  the listeners, what each serves, and shutdown
//	testing.go  the listeners, for tests
package gateway
