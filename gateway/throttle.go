package gateway

import (
	"net"
	"net/netip"
	"strconv"

	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/ratelimit"
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
	return r.takes(&r.edge.limits.public, r.Address)
}

// countFailure counts a private request that was refused before its signature was right. If the
// bucket of its address is empty, the answer becomes 429 and the connection closes.
func (r *request) countFailure() {
	if !r.takes(&r.edge.limits.failures, ratelimit.AddressKey(r.address())) {
		r.ctx.SetConnectionClose()
	}
}

// mayProbe takes a token for a probe. Probes from this machine and from trusted proxies do not
// count. Otherwise a flood from elsewhere could make a supervisor believe that the process is dead.
func (r *request) mayProbe() bool {
	from := r.address()
	if from.IsLoopback() && isLoopback(r.ctx.RemoteIP()) ||
		listen.Within(r.edge.opts.TrustedProxies, from) {
		return true
	}
	return r.takes(&r.edge.limits.probes, ratelimit.AddressKey(from))
}

// mayLoad takes a token for each byte of a page. A page that is sent tells the limit on requests, a
// refusal the limit that it met.
func (r *request) mayLoad(bytes int) bool {
	l := &r.edge.limits.docs
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
