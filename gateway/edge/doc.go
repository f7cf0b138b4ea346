// Package edge is the HTTP edge: limits on requests, authentication, routes, meters, and the
// stream's mount. Package listen has the sockets below it. The edge hands public calls to package
// api and operators' requests to package operator.
//
// A request goes through the checks in one fixed order, and each check may end it. The first are
// path, method, format and size, and for public requests the address's limit. Then come headers and
// key, the key's addresses, the body's coding and form, and the signature. Permission and frozen
// account, and the operation's limit, are next. Finally the operation checks whether the exchange
// takes writes, the fields, and admission. No check touches a wallet or uses the nonce. The
// wallet's actor decides the rest: the nonce, then the funds.
//
// Each file uses those below it, and none above:
//
//	public.go      the public listener: its routes, and malformed requests
//	operators.go   the operator's listener
//	watch.go       the listener for /metrics alone
//	profiles.go    Go's profiles
//	edge.go        shared state of all listeners' requests, and what is served
//	stats.go       the numbers of the edge, for the metrics
//	sockets.go     the event stream, on its paths
//	logins.go      logins of its clients
//	checks.go      the checks of a public request, in their order
//	auth.go        keys, signatures, permissions
//	passed.go      requests that an observer forwards, at both ends
//	pages.go       the OpenAPI document and the page at /docs
//	site.go        the web pages
//	throttle.go    a request against the limits on requests a second
//	server.go      a listener's server: times, sizes, and unreadable requests
//	head.go        a request head normalised to HTTP's rules
//	request.go     one request: its call, its answer, its memory
//	rates.go       limits on requests a second
//	report.go      failures of the exchange, in the log
//	meter.go       requests counted by route and status
//	address.go     the client of a request, behind proxies too
//	accept.go      the forms that a client takes
//	options.go     options, and the bounds of the listeners
//	testing.go     hooks for tests
package edge
