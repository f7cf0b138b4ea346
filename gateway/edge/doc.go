// Package edge is the HTTP edge: limits on requests, authentication, routes, meters, and the
// stream's mount. Package listen has the sockets below it. The edge hands public calls to package
// api and operators' requests to package operator.
//
// A request goes through the checks in one fixed order, and each check may end it. The first are
// path, method, format and size, and for public requests the address's limit. Then come headers and
// key, the key's addresses, the body's coding and form, and the signature. Permission and frozen
// account, and the operation's limit, are next. Finally the operation checks that writes are
// accepted, then the fields; then the engine's admission follows. No check touches a wallet or uses
// the nonce. The wallet's actor decides the rest: the nonce, then the funds.
//
// Each file uses those below it, and none above:
//
//	public.go      the public listener: its routes, and malformed requests
//	operators.go   the operator's listener
//	watch.go       the listener that serves only /metrics
//	profiles.go    Go's profiles
//	edge.go        shared state of all listeners' requests, and what is served
//	stats.go       the edge's metrics, for package metrics
//	sockets.go     the paths of the event stream
//	logins.go      logins of the event stream's clients
//	checks.go      the checks of a public request, in their order
//	auth.go        keys, signatures, permissions
//	forwarded.go   requests that an observer forwards, at both ends
//	pages.go       the OpenAPI document and the page at /docs
//	site.go        the web pages
//	throttle.go    applies the rate limits to a request
//	server.go      a listener's server: times, sizes, and unreadable requests
//	head.go        a request head normalised to HTTP's rules
//	request.go     one request: its call, its answer, its memory
//	rates.go       the rate limits themselves
//	report.go      logs server failures
//	meter.go       counts of requests by route and status
//	address.go     the client's address of a request, also behind proxies
//	accept.go      parses Accept and Accept-Encoding
//	options.go     options, and the bounds of the listeners
//	testing.go     hooks for tests
package edge
