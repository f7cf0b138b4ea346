// Package gateway is the edge of HTTP: it listens, authenticates requests, checks their form, makes
// each a call of package api, and writes the answer. It knows no matching and no wallets.
//
// A request goes through the checks in one fixed order, each of which may end it: path, method,
// format, size, for public requests the address's limit, headers and key, the key's addresses, the
// body's coding and form, signature, permission and frozen account, the limit of what is asked for,
// whether the exchange takes writes, the fields, admission. None of these touches a wallet, and
// none of them uses the nonce. What comes after is decided by the wallet's actor: the nonce, then
// the funds.
//
//	gateway.go   servers, routes, the checks that need no account
//	request.go   one request: its call, its answer, its memory
//	auth.go      keys, signatures, nonces, permissions
//	address.go   where a request comes from, behind proxies too
//	rates.go     limits on requests a second
//	listener.go  limits on connections
//	boundary.go  where a request ends
//	certificate.go   TLS: certificates, and how they are renewed
//	operators.go   the operator's listener
//	report.go    failures of ours, in the log
//	meter.go     requests counted by route and status
//	metrics.go   /metrics and profiles, on the operator's listener; metrics_stream.go has the stream's
//	openapi*.go  the OpenAPI document of all this, and its page at /docs
//	sockets.go   the event stream, on its paths
//	api/         the public API without a transport
//	operator/    answers to operators
//	params/      bodies and queries into parameters
//	sign/        signatures
//	ratelimit/   token buckets
//	encode/      JSON
//	stream/      the event stream
//	socketio/    its protocol
package gateway
