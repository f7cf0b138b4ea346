// Package gateway joins the rooms of the HTTP edge of the exchange. A Gateway serves the public
// API, operators and monitoring. It has no matching and no wallets.
//
// A request passes package listen, which has the sockets, and package edge, which checks it.
// Package api carries out a call of the public API without knowing its transport, and package
// operator answers operators. Package stream has the channels of the event stream, and package
// socketio its protocol. Package metrics collects the numbers of all for /metrics, and package
// openapi describes the public API. The scenarios of testdata are tried through all of them.
//
//	gateway.go  what is served, by which listener, and its end
//	testing.go  the listeners, for tests
package gateway
