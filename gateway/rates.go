package gateway

import (
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/ratelimit"
)

// Limits on requests a second. Each kind of request has its own token buckets, so no kind uses up
// the tokens of another:
//
//	public    by client address: public requests, preflights, every 404, 405, 406 and malformed
//	          head, and the stream's handshakes, preflights and refusals
//	reads     by key: private GETs, and refusals for a permission or a frozen account
//	commands  by account: POSTs that ask for something
//	cancels   by account: POSTs that take something back
//	failures  by client address: private requests that ended before their signature was right
//	probes    by client address: /healthz and /readyz, except from this machine and trusted proxies
//	docs      by client address, in bytes: /docs and the OpenAPI document
//
// A request with a right signature takes from the buckets of its key or account alone. So no
// neighbour at its address, no reading key and no flood of orders keeps an owner from cancelling.
type rateLimits struct {
	public, reads, commands, cancels, failures, probes, docs rateLimit
}

// A rateLimit is one kind of bucket. The zero rateLimit limits nothing.
type rateLimit struct {
	name    string // its label in the metrics
	buckets *ratelimit.Limiter
	refused atomic.Uint64 // answers with 429
}

func (l *rateLimits) all() []*rateLimit {
	return []*rateLimit{&l.public, &l.reads, &l.commands, &l.cancels, &l.failures,
		&l.probes, &l.docs}
}

func (l *rateLimits) init(o *Options) {
	for i, rate := range []struct {
		name string
		Rate
	}{
		{"public", o.PublicRate}, {"reads", o.ReadRate}, {"commands", o.CommandRate},
		{"cancels", o.CancelRate}, {"failures", o.FailureRate}, {"probes", o.ProbeRate},
		{"docs", o.DocsRate},
	} {
		at := l.all()[i]
		at.name, at.buckets = rate.name, ratelimit.New(rate.PerSecond, rate.Burst, o.RateEntries)
	}
}

// DefaultProbeRate is the rate of probes, and DefaultDocsRate the rate of the API's pages in bytes.
// The largest page fits into the burst of DefaultDocsRate.
var (
	DefaultProbeRate = Rate{PerSecond: 100, Burst: 200}
	DefaultDocsRate  = Rate{PerSecond: 4_000_000, Burst: 8_000_000}
)

// takes takes a token from a client's bucket. Without a token it answers with 429 and returns
// false.
func (r *request) takes(l *rateLimit, client uint64) bool {
	r.rate = l.buckets.Take(client, r.at)
	return r.unlessThrottled(l, r.rate)
}

// takesPublic takes a token from the bucket of public requests of the client's address.
func (r *request) takesPublic() bool {
	r.Address = ratelimit.AddressKey(r.address())
	return r.takes(&r.g.limits.public, r.Address)
}

// countFailure counts a private request that was refused before its signature was right. If the
// bucket of its address is empty, the answer becomes 429 and the connection closes.
func (r *request) countFailure() {
	if !r.takes(&r.g.limits.failures, ratelimit.AddressKey(r.address())) {
		r.ctx.SetConnectionClose()
	}
}

// mayProbe takes a token for a probe. Probes from this machine and from trusted proxies do not
// count. Otherwise a flood from elsewhere could make a supervisor believe that the process is dead.
func (r *request) mayProbe() bool {
	from := r.address()
	if from.IsLoopback() && isLoopback(r.ctx.RemoteIP()) || within(r.g.opts.TrustedProxies, from) {
		return true
	}
	return r.takes(&r.g.limits.probes, ratelimit.AddressKey(from))
}

// mayLoad takes a token for each byte of a page. A page that is sent tells the limit on requests, a
// refusal the limit that it met.
func (r *request) mayLoad(bytes int) bool {
	l := &r.g.limits.docs
	a := l.buckets.TakeMany(ratelimit.AddressKey(r.address()), bytes, r.at)
	if !a.OK {
		r.rate = a
	}
	return r.unlessThrottled(l, a)
}

func isLoopback(ip net.IP) bool {
	a, ok := netip.AddrFromSlice(ip)
	return ok && a.Unmap().IsLoopback()
}

// unlessThrottled answers 429 and returns false if a bucket had no token.
func (r *request) unlessThrottled(l *rateLimit, a ratelimit.Answer) bool {
	if a.OK {
		return true
	}
	l.refused.Add(1)
	wait := strconv.Itoa(a.RetryAfter)
	r.Fail(api.Throttled, wait)
	r.ctx.Response.Header.Set("Retry-After", wait)
	return false
}

// The headers, in the letters of their documentation. A name given as text would be changed to
// X-Ratelimit.
var (
	headerRateLimit     = []byte("X-RateLimit-Limit")
	headerRateRemaining = []byte("X-RateLimit-Remaining")
	headerRateReset     = []byte("X-RateLimit-Reset")
)

// tellRate writes the limit that counted the request, if one did. The headers are the tokens of a
// full bucket, the tokens left, and the seconds until the bucket is full again.
func (r *request) tellRate() { tellRate(&r.ctx.Response.Header, &r.rate, r.digits[:0]) }

// tellRate writes a limit into any answer. digits is room for a number.
func tellRate(h *fasthttp.ResponseHeader, a *ratelimit.Answer, digits []byte) {
	if a.Limit == 0 {
		return
	}
	h.SetCanonical(headerRateLimit, strconv.AppendInt(digits, int64(a.Limit), 10))
	h.SetCanonical(headerRateRemaining, strconv.AppendInt(digits, int64(a.Remaining), 10))
	h.SetCanonical(headerRateReset, strconv.AppendInt(digits, int64(a.Reset), 10))
}
