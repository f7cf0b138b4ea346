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

// take takes n tokens from a client's bucket. It returns false after writing 429 if the bucket has
// fewer.
func (l *rateLimit) take(c *api.Call, client uint64, n int, at int64) (ratelimit.Answer, bool) {
	a := l.buckets.Load().TakeMany(client, n, at)
	return a, l.checkToken(c, &a)
}

// checkToken returns false after writing 429, if the bucket had too few tokens.
func (l *rateLimit) checkToken(c *api.Call, a *ratelimit.Answer) bool {
	if !a.OK {
		l.throttled.Add(1)
		c.Throttle(a.RetryAfter)
	}
	return a.OK
}

// permit checks that the call's key has the operation's permission and that the account is not
// frozen, and takes the operation's tokens. It returns false after writing an error response. A
// refusal is charged to the key's own read bucket, so a key without a permission does not use up
// the tokens of the account's other keys.
func (l *rateLimits) permit(c *api.Call, o *api.Operation, at int64) (a ratelimit.Answer, ok bool) {
	key, account := uint64(c.Key.Number), uint64(c.Key.Account.ID)
	if f, _ := o.Refusal(c.Key); f != nil {
		if a, ok = l.reads.take(c, key, 1, at); !ok || c.RecheckRefusal(o) {
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

// takePermitted takes the tokens of a call that the leader has permitted, so that the client sees
// this process's bucket. It refuses nothing. commands and cancels are a batch's tokens, otherwise
// 0.
func (l *rateLimits) takePermitted(key *directory.Key, o *api.Operation, commands, cancels int,
	at int64) ratelimit.Answer {
	n, limit, client := 1, &l.commands, uint64(key.Account.ID)
	switch {
	case o.Method == fasthttp.MethodGet:
		limit, client = &l.reads, uint64(key.Number)
	case commands > 0:
		n = commands
	case cancels > 0:
		n, limit = cancels, &l.cancels
	case o.Cancels:
		limit = &l.cancels
	}
	return limit.buckets.Load().TakeMany(client, n, at)
}

// permitMany takes the tokens of all items of a batch, or none.
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

// takeToken takes a token from a client's bucket. It returns false after writing 429.
func (r *request) takeToken(l *rateLimit, client uint64) (ok bool) {
	r.rate, ok = l.take(&r.Call, client, 1, r.at)
	return ok
}

// takePublicToken takes a token of public requests of the client's address. It returns false after
// writing 429.
func (r *request) takePublicToken() bool {
	r.Address = ratelimit.AddressKey(r.address())
	return r.takeToken(&r.edge.limits.public, r.Address)
}

// takeFailureToken takes a token for a private request that failed before its signature was
// verified. If the address has none, the response becomes 429 and the connection closes.
func (r *request) takeFailureToken() {
	if !r.takeToken(&r.edge.limits.failures, ratelimit.AddressKey(r.address())) {
		r.ctx.SetConnectionClose()
	}
}

// takeProbeToken takes a token for a probe. It returns false after writing 429. Probes from this
// machine and from trusted proxies take none, so that no flood from other addresses can make a
// supervisor believe that the process is dead.
func (r *request) takeProbeToken() bool {
	from := r.address()
	if from.IsLoopback() && isLoopback(r.ctx.RemoteIP()) ||
		listen.Within(r.edge.opts.TrustedProxies, from) {
		return true
	}
	return r.takeToken(&r.edge.limits.probes, ratelimit.AddressKey(from))
}

// takePageTokens takes a token for each byte of a page. It returns false after writing 429, whose
// headers show this bucket; a sent page shows the one of public requests.
func (r *request) takePageTokens(bytes int) bool {
	l := &r.edge.limits.docs
	a := l.buckets.Load().TakeMany(ratelimit.AddressKey(r.address()), bytes, r.at)
	if !a.OK {
		r.rate = a
	}
	return l.checkToken(&r.Call, &a)
}

func isLoopback(ip net.IP) bool {
	a, ok := netip.AddrFromSlice(ip)
	return ok && a.Unmap().IsLoopback()
}
