package edge

import (
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"exchange/gateway/ratelimit"
)

// Limits on requests a second. Each kind of request has its own token buckets, so no kind uses up
// the tokens of another:
//
//	public    by client address: public requests, preflights, every 404, 405, 406 and malformed
//	          head, and the stream's handshakes, preflights and refusals
//	reads     by key: private GETs, and refusals for a permission or a frozen account
//	commands  by account: POSTs that request something
//	cancels   by account: POSTs that take something back
//	failures  by client address: private requests that failed before their signature was verified
//	probes    by client address: /healthz, /readyz, /leaderz, except from this machine and proxies
//	docs      by client address, in bytes: /docs and the OpenAPI document
//	web       by client address, in bytes: the web pages and their files
//
// A verified request takes tokens only from the buckets of its key or account. So no neighbour at
// its address, no reading key and no flood of orders keeps an owner from cancelling.
type rateLimits struct {
	public, reads, commands, cancels, failures, probes, docs, web rateLimit
}

// A rateLimit is one kind of bucket. The zero rateLimit limits nothing.
type rateLimit struct {
	rate      Rate // of the buckets; guarded by Gateway.mu
	buckets   atomic.Pointer[ratelimit.Limiter]
	throttled atomic.Uint64 // count of answers with 429
}

// rateNames are their labels in the metrics.
var rateNames = [...]string{"public", "reads", "commands", "cancels", "failures", "probes", "docs",
	"web"}

func (l *rateLimits) all() []*rateLimit {
	return []*rateLimit{&l.public, &l.reads, &l.commands, &l.cancels, &l.failures,
		&l.probes, &l.docs, &l.web}
}

// set changes the limits, at a time. Clients still owe the tokens that they have taken.
func (l *rateLimits) set(o *Limits, entries int, at int64) {
	for i, rate := range []Rate{o.PublicRate, o.ReadRate, o.CommandRate, o.CancelRate,
		o.FailureRate, o.ProbeRate, o.DocsRate, o.WebRate} {
		if x := l.all()[i]; x.rate != rate {
			x.rate = rate
			x.buckets.Store(x.buckets.Load().Changed(rate.PerSecond, rate.Burst, entries, at))
		}
	}
}

// The headers, in the letters of their documentation. A name given as text would be changed to
// X-Ratelimit.
var (
	headerRateLimit     = []byte("X-RateLimit-Limit")
	headerRateRemaining = []byte("X-RateLimit-Remaining")
	headerRateReset     = []byte("X-RateLimit-Reset")
)

// writeRate writes the bucket's headers: the tokens of a full bucket, the tokens left, and the
// seconds until the bucket is full. digits is a buffer for a number.
func writeRate(h *fasthttp.ResponseHeader, a *ratelimit.Answer, digits []byte) {
	if a.Limit == 0 {
		return
	}
	h.SetCanonical(headerRateLimit, strconv.AppendInt(digits, int64(a.Limit), 10))
	h.SetCanonical(headerRateRemaining, strconv.AppendInt(digits, int64(a.Remaining), 10))
	h.SetCanonical(headerRateReset, strconv.AppendInt(digits, int64(a.Reset), 10))
}
