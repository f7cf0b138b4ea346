package operator

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/ratelimit"
)

// A Token is the hash of a bearer token. The zero Token is none.
type Token struct {
	hash atomic.Pointer[[sha256.Size]byte]
}

// Set replaces the token: the previous one is invalid from now on. "" is none.
func (t *Token) Set(token string) {
	if token == "" {
		t.hash.Store(nil)
		return
	}
	hash := sha256.Sum256([]byte(token))
	t.hash.Store(&hash)
}

// IsNone reports whether there is no token.
func (t *Token) IsNone() bool { return t.hash.Load() == nil }

// Shown reports whether a request carries the token. It compares hashes in constant time, so that
// not even the token's length leaks.
func (t *Token) Shown(h *fasthttp.RequestHeader) bool {
	scheme, token, _ := strings.Cut(string(h.Peek("Authorization")), " ")
	ok := strings.EqualFold(scheme, "Bearer")
	got, want := sha256.Sum256([]byte(token)), t.hash.Load()
	return ok && want != nil && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// SetToken replaces the operator's bearer token: the previous one is invalid from now on. With ""
// no token is accepted.
func (s *Server) SetToken(token string) {
	s.token.Set(token)
	s.relayToken.Store(&token)
}

// ShowsToken reports whether a request carries the operator's token.
func (s *Server) ShowsToken(h *fasthttp.RequestHeader) bool { return s.token.Shown(h) }

// Limits on wrong tokens of one address, independent of the public API's limits, and the number of
// addresses counted.
const (
	guessesPerSecond  = 1
	guessesAtOnce     = 10
	guessingAddresses = 10_000
)

// guesses limits wrong tokens by address.
type guesses struct {
	buckets   *ratelimit.Limiter
	clock     func() int64
	throttled atomic.Uint64
}

func newGuesses(clock func() int64) *guesses {
	return &guesses{buckets: ratelimit.New(guessesPerSecond, guessesAtOnce, guessingAddresses),
		clock: clock}
}

// RefuseToken writes 401 with a text for a missing or wrong token, or 429 if the address has tried
// too often. The connection closes after the answer.
func (s *Server) RefuseToken(ctx *fasthttp.RequestCtx, from netip.Addr, text string) {
	ctx.SetConnectionClose()
	rate := s.guesses.buckets.Take(ratelimit.AddressKey(from), s.guesses.clock())
	if rate.OK {
		refuse(ctx, fasthttp.StatusUnauthorized, text)
		return
	}
	s.guesses.throttled.Add(1)
	throttled := *api.Throttled
	throttled.RetryAfter = rate.RetryAfter
	Fail(ctx, &throttled, strconv.Itoa(rate.RetryAfter))
}

// Refused returns the number of wrong tokens answered with 429.
func (s *Server) Refused() uint64 { return s.guesses.throttled.Load() }
