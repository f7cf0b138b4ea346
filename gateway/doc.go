// Package gateway is the HTTP edge of the exchange: listeners, TLS, where a request ends, places
// for connections, limits on requests, authentication, meters, and the stream's mount. It hands
// public calls to package api and operators' requests to package operator. It knows no matching and
// no wallets.
//
// A request goes through the checks in one fixed order, and each check may end it. The first are
// path, method, format and size, and for public requests the address's limit. Then come headers and
// key, the key's addresses, the body's coding and form, and the signature. Permission and frozen
// account, and the operation's limit, are next. At last the operation checks whether the exchange
// takes writes, the fields, and admission. No check touches a wallet or uses the nonce. The
// wallet's actor decides the rest: the nonce, then the funds.
//
//	gateway.go         servers, routes, the checks that need no account
//	request.go         one request: its call, its answer, its memory
//	auth.go            keys, signatures, permissions
//	address.go         the client of a request, behind proxies too
//	rates.go           limits on requests a second
//	pages.go           the OpenAPI document and the page at /docs
//	sockets.go         the event stream, on its paths
//	operators.go       the operator's listener
//	socket.go          the operator's socket, whose user the system tells: socket_unix.go,
//	                   socket_linux.go, socket_darwin.go, socket_other.go
//	watch.go           the listener for /metrics alone
//	listener.go        connections beyond the limit
//	places.go          places for connections, and which connection loses its place
//	linger.go          closes that let a client read its answer
//	boundary.go        where a request ends
//	certificate.go     TLS: certificates, and how they are renewed
//	report.go          failures of the exchange, in the log
//	meter.go           requests counted by route and status
//	metrics.go         /metrics and profiles
//	metrics_stream.go  the metrics of the event stream
package gateway
