package edge

import (
	"errors"
	"net/netip"
	"sync"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/ratelimit"
	"exchange/gateway/sign"
	"exchange/gateway/stream"
)

// A guard checks logins of the stream's clients, in the order of signed requests. It implements
// stream.Guard. It belongs to one stream, with the keys and commands of one API.
type guard struct {
	*Edge
	streamAPI *api.API
}

var loginVerifiers = sync.Pool{New: func() any { return new(sign.Verifier) }}

// Challenge implements stream.Guard.
func (g guard) Challenge() string { return g.streamAPI.Commands().Challenge() }

// Begin implements stream.Guard.
func (g guard) Begin(c *api.Call) {
	c.Reset()
	c.BindAPI(g.streamAPI)
}

// Login implements stream.Guard. As for a request, a login that fails before its signature is
// verified takes a token of its address's failures. A verified one takes a token of the account's
// cancels or, if the account is frozen, of the key's reads.
func (g guard) Login(c *api.Call, from netip.Addr, p *stream.Proof) (wait int) {
	key, f := g.prove(c, from, p)
	if f != nil {
		c.Fail(f, "")
		return g.takeToken(c, &g.limits.failures, ratelimit.AddressKey(from))
	}
	if key.Account.Frozen() {
		c.Fail(api.AccountFrozen, "")
		return g.takeToken(c, &g.limits.reads, uint64(key.Number))
	}
	if wait = g.takeToken(c, &g.limits.cancels, uint64(key.Account.ID)); wait == 0 {
		c.Key = key
	}
	return wait
}

// Read implements stream.Guard.
func (g guard) Read(c *api.Call, key *directory.Key) (wait int) {
	return g.takeToken(c, &g.limits.reads, uint64(key.Number))
}

// Permit implements stream.Guard.
func (g guard) Permit(c *api.Call, o *api.Operation) bool {
	_, ok := g.limits.permit(c, o, g.now())
	return ok
}

// Report implements stream.Guard.
func (g guard) Report(c *api.Call, event string) {
	f, cause := c.Failure, c.Cause
	if f == nil || !f.Ours {
		f, cause = c.FailedItem()
	}
	if f != nil {
		g.reports.reportStream(event, f, cause)
	}
}

// prove returns the key that signed a proof, or the reason why none did.
func (g guard) prove(c *api.Call, from netip.Addr, p *stream.Proof) (*directory.Key,
	*api.Failure) {
	key, err := keyOf(c.Commands(), []byte(p.Key), []byte(p.Sign))
	switch {
	case err != nil:
		return nil, api.FailureOf(err)
	case key == nil:
		return nil, api.Unauthenticated
	case len(key.Allow) > 0 && !listen.Within(key.Allow, from):
		return nil, api.AddressNotAllowed
	case p.Challenge == "":
		return nil, api.NoChallenge
	}
	if f := provesLogin(c, key, from, p); f != nil {
		return nil, f
	}
	if err := c.Commands().AwaitCurrent(); err != nil {
		return nil, api.FailureOf(err)
	}
	if key = c.Commands().Key([]byte(key.Public)); key == nil {
		return nil, api.Unauthenticated
	}
	return key, nil
}

// provesLogin returns nil if the key signed the challenge; otherwise the failure.
func provesLogin(c *api.Call, key *directory.Key, from netip.Addr, p *stream.Proof) *api.Failure {
	material, verifies := key.Material.(*sign.Keyed)
	if !verifies {
		err := verifyLogin(c, key, from, p.Challenge, []byte(p.Sign))
		a, answered := errors.AsType[*actors.RemoteAnswer](err)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, actors.ErrNotLoggedIn):
			return api.NoChallenge // of another connection to the leader
		case answered && a.Status == api.AddressNotAllowed.Status:
			return api.AddressNotAllowed
		case answered:
			return api.WrongSignature
		}
		return api.FailureOf(err)
	}
	v := loginVerifiers.Get().(*sign.Verifier)
	defer loginVerifiers.Put(v)
	if !material.VerifyLogin(v, p.Key, p.Challenge, []byte(p.Sign)) {
		return api.WrongSignature
	}
	return nil
}

// takeToken takes a token from a client's bucket. Without one it writes 429, and returns the
// seconds until the next token; 0: it took one.
func (g guard) takeToken(c *api.Call, l *rateLimit, client uint64) (wait int) {
	if a, ok := l.take(c, client, 1, g.now()); !ok {
		return a.RetryAfter
	}
	return 0
}
