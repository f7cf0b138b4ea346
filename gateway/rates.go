package gateway

import (
	"strconv"
	"sync/atomic"

	"exchange/gateway/ratelimit"
)

// Limits on requests a second. An account has a bucket of tokens for its private requests, and a client
// address one for all others: public requests, and private ones that end, for whatever reason, before it
// is known that they are an account's. So whoever guesses signatures, or has a key and not its secret, is
// limited like any stranger, and many accounts behind one address do not share a limit. An address without
// tokens is refused before its key is looked at, with a good signature too.

// addressMay answers 429 if the client's address has no token left: false. A public request takes one. A
// private one only needs it to be there, see chargeAddress.
func (r *request) addressMay(private bool) bool {
	if private {
		r.rate = r.lookAtAddress()
	} else {
		r.rate = r.takeFromAddress()
	}
	return r.unlessThrottled(&r.g.throttled.address)
}

// chargeAddress takes a token for a request that could not be authenticated. It is answered already: if
// another took the last one in the meantime, there is none to take.
func (r *request) chargeAddress() { r.rate = r.takeFromAddress() }

func (r *request) lookAtAddress() ratelimit.Answer {
	return r.g.addresses.Look(ratelimit.AddressKey(r.address()), r.at)
}

func (r *request) takeFromAddress() ratelimit.Answer {
	return r.g.addresses.Take(ratelimit.AddressKey(r.address()), r.at)
}

// accountMay answers 429 if the account has no token left: false. Else it takes one.
func (r *request) accountMay() bool {
	if r.g.accounts == nil {
		return true // what is told is the state of the address
	}
	r.rate = r.g.accounts.Take(uint64(r.key.Account.ID), r.at)
	return r.unlessThrottled(&r.g.throttled.account)
}

func (r *request) unlessThrottled(counter *atomic.Uint64) bool {
	if r.rate.OK {
		return true
	}
	counter.Add(1)
	wait := strconv.Itoa(r.rate.RetryAfter)
	r.fail(Throttled, wait)
	r.ctx.Response.Header.Set("Retry-After", wait)
	return false
}

// The headers, in the letters of their documentation: a name given as text would be changed to X-Ratelimit.
var (
	headerRateLimit     = []byte("X-RateLimit-Limit")
	headerRateRemaining = []byte("X-RateLimit-Remaining")
	headerRateReset     = []byte("X-RateLimit-Reset")
)

// tellRate writes what the client is told about its limit, if it has one: the tokens of a full bucket, how
// many are left, and the seconds until it is full again.
func (r *request) tellRate() {
	if r.rate.Limit == 0 {
		return
	}
	h := &r.ctx.Response.Header
	h.SetCanonical(headerRateLimit, strconv.AppendInt(r.digits[:0], int64(r.rate.Limit), 10))
	h.SetCanonical(headerRateRemaining, strconv.AppendInt(r.digits[:0], int64(r.rate.Remaining), 10))
	h.SetCanonical(headerRateReset, strconv.AppendInt(r.digits[:0], int64(r.rate.Reset), 10))
}
