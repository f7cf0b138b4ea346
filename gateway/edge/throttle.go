package edge

import (
	"net"
	"net/netip"

	"github.com/valyala/fasthttp"

	"exchange/actors/directory"
	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/ratelimit"
)

// take takes tokens from a client's bucket. Without them it answers the call with 429: false.
func (l *rateLimit) take(c *api.Call, client uint64, n int, at int64) (ratelimit.Answer, bool) {
	a := l.buckets.Load().TakeMany(client, n, at)
	return a, l.unlessThrottled(c, &a)
}

// unlessThrottled answers 429 and returns false if a bucket had no token.
func (l *rateLimit) unlessThrottled(c *api.Call, a *ratelimit.Answer) bool {
	if !a.OK {
		l.refused.Add(1)
		c.Throttle(a.RetryAfter)
	}
	return a.OK
}

// permit checks that the call's key has the operation's permission, that the account may act now,
// and that the operation's bucket has a token. False: the call is answered. A refusal counts for
// the key alone, so a key without a permission does not use up the tokens of the account's other
// keys.
func (l *rateLimits) permit(c *api.Call, o *api.Operation, at int64) (a ratelimit.Answer, ok bool) {
	key, account := uint64(c.Key.Number), uint64(c.Key.Account.ID)
	if f, _ := o.Refusal(c.Key); f != nil {
		if a, ok = l.reads.take(c, key, 1, at); !ok || c.Refused(o) {
			return a, false
		}
	}
	switch {
	case o.Method == fasthttp.MethodGet:
		return l.reads.take(c, key, 1, at)
	case o.Tokens != nil:
		return l.permitMany(c, o, at)
	case o.Cancels:
		return l.cancels.take(c, account, 1, at)
	}
	return l.commands.take(c, account, 1, at)
}

// takePermitted takes the tokens of a call that the leader has permitted, so that its client sees
// the limit as counted by this process. It refuses nothing. commands or cancels are a batch's
// tokens.
func (l *rateLimits) takePermitted(key *directory.Key, o *api.Operation, commands, cancels int,
	at int64) ratelimit.Answer {
	n, of, client := 1, &l.commands, uint64(key.Account.ID)
	switch {
	case o.Method == fasthttp.MethodGet:
		of, client = &l.reads, uint64(key.Number)
	case commands > 0:
		n = commands
	case cancels > 0:
		n, of = cancels, &l.cancels
	case o.Cancels:
		of = &l.cancels
	}
	return of.buckets.Load().TakeMany(client, n, at)
}

// permitMany takes the tokens of all parts of a call, or none.
func (l *rateLimits) permitMany(c *api.Call, o *api.Operation, at int64) (a ratelimit.Answer,
	ok bool) {
	account := uint64(c.Key.Account.ID)
	commands, cancels := o.Tokens(c)
	if commands > 0 {
		if a, ok = l.commands.take(c, account, commands, at); !ok || cancels == 0 {
			return a, ok
		}
	}
	ofCancels, ok := l.cancels.take(c, account, cancels, at)
	if !ok && commands > 0 {
		l.commands.buckets.Load().GiveBack(account, commands, at)
	}
	if !ok || commands == 0 {
		a = ofCancels
	}
	return a, ok
}

// mayTake takes a token from a client's bucket, as take.
func (r *request) mayTake(l *rateLimit, client uint64) (ok bool) {
	r.rate, ok = l.take(&r.Call, client, 1, r.at)
	return ok
}

// mayTakePublic takes a token from the bucket of public requests of the client's address.
func (r *request) mayTakePublic() bool {
	r.Address = ratelimit.AddressKey(r.address())
	return r.mayTake(&r.edge.limits.public, r.Address)
}

// countFailure counts a private request that was refused before its signature was right. If the
// bucket of its address is empty, the answer becomes 429 and the connection closes.
func (r *request) countFailure() {
	if !r.mayTake(&r.edge.limits.failures, ratelimit.AddressKey(r.address())) {
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
	return r.mayTake(&r.edge.limits.probes, ratelimit.AddressKey(from))
}

// mayLoad takes a token for each byte of a page. A sent page shows the limit on requests, a refusal
// the exceeded limit.
func (r *request) mayLoad(bytes int) bool {
	l := &r.edge.limits.docs
	a := l.buckets.Load().TakeMany(ratelimit.AddressKey(r.address()), bytes, r.at)
	if !a.OK {
		r.rate = a
	}
	return l.unlessThrottled(&r.Call, &a)
}

func isLoopback(ip net.IP) bool {
	a, ok := netip.AddrFromSlice(ip)
	return ok && a.Unmap().IsLoopback()
}
