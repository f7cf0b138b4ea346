package gateway

import (
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/gateway/api"
	"exchange/gateway/params"
	"exchange/gateway/ratelimit"
	"exchange/gateway/sign"
)

// A request is one request on its way through the gateway, with the memory it needs. It is pooled;
// its handler's goroutine owns it.
type request struct {
	g      *Gateway
	ctx    *fasthttp.RequestCtx
	engine *actors.Engine
	static *static

	query params.Set // of the address
	form  params.Set // of the body

	from netip.Addr // where it comes from; not valid: not asked for yet
	// when it came, by the gateway's clock, for both its limits and for how long it took
	at   int64
	rate ratelimit.Answer // what the client is told about its limit, if it has one

	key   *directory.Key // of a private request
	nonce uint64

	verifier sign.Verifier
	fields   []fieldError

	private bool   // caches must not keep the answer, whatever it is
	route   int    // number of its route in the meter
	shard   uint32 // of the meter; it stays with this memory
	status  int
	body    []byte   // of the answer
	shared  []byte   // instead of body, if not nil: an answer that others send too
	parts   [][]byte // instead of body, if there are any: pieces of answers that others send too
	written bool     // the answer's type and body are where the server takes them from
	reading bool     // it has a place among the reads in flight, until it is answered
	digits  [20]byte // of a number in a header

	failure *Failure // the newest one that it was answered with
	cause   error    // of a failure that is ours, for the log
	stack   []byte   // of a panic, for the log
}

var requests = sync.Pool{New: func() any { return &request{shard: nextShard.Add(1)} }}

func newRequest(g *Gateway, ctx *fasthttp.RequestCtx) *request {
	r := requests.Get().(*request)
	r.g, r.ctx, r.engine, r.static, r.key, r.nonce = g, ctx, nil, nil, nil, 0
	r.from, r.at, r.rate, r.route, r.private = netip.Addr{}, g.now(),
		ratelimit.Answer{}, unmatched, false
	r.fields, r.status, r.body, r.shared, r.written, r.reading = r.fields[:0], fasthttp.StatusOK,
		r.body[:0], nil, false, false
	r.parts = r.parts[:0]
	r.failure, r.cause, r.stack = nil, nil, nil
	return r
}

// keptBody is the largest answer that is copied, and whose memory is kept for the next request; of
// larger ones there are as many at once as bulk allows.
const keptBody = 64 << 10

// Headers that every answer has.
var (
	headerAllowOrigin = []byte("Access-Control-Allow-Origin")
	anyOrigin         = []byte("*")
	headerExpose      = []byte("Access-Control-Expose-Headers")
	headerRetryAfter  = []byte("Retry-After") // of failures only

	headerCacheControl = []byte("Cache-Control")
	noStore            = []byte("no-store") // of private answers, probes and failures
	noCache            = []byte("no-cache") // of what every client may see: ask again each time

	headerAuthenticate = []byte("WWW-Authenticate") // of 401
	scheme             = []byte("HMAC-SHA256")

	exposedHeaders = []byte(
		"X-Update-Id, X-Request-Id, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, " +
			"X-RateLimit-Reset")
)

// send writes the answer and gives the request back to the pool.
func (r *request) send() {
	if r.reading {
		r.engine.EndRead(false)
	}
	large := r.large()
	// what a POST has done must be told
	if len(large) > 0 && !r.g.bulk.take(large, r.asker(), r.ctx.IsPost() || r.ctx.IsHead()) {
		large = nil
		r.ctx.Response.Header.Del("X-Update-Id")
		r.fail(Overloaded, "")
	}
	took := r.g.now() - r.at
	if r.status >= 500 {
		r.report(took)
	}
	r.g.meter.count(r.shard, r.route, r.status, took)
	resp := &r.ctx.Response
	resp.SetStatusCode(r.status)
	h := &resp.Header
	h.SetCanonical(headerAllowOrigin, anyOrigin)
	h.SetCanonical(headerExpose, exposedHeaders)
	switch {
	case r.private || r.status >= 400:
		h.SetCanonical(headerCacheControl, noStore)
	case r.status != fasthttp.StatusNoContent:
		h.SetCanonical(headerCacheControl, noCache)
	}
	if r.status == fasthttp.StatusUnauthorized {
		h.SetCanonical(headerAuthenticate, scheme)
	}
	r.tellRate()
	if r.status != fasthttp.StatusNoContent && !r.written {
		h.SetContentType("application/json")
	}
	switch {
	case r.written:
	case large != nil:
		resp.SetBodyStream(r.g.bulk.body(large), lengthOf(large))
	case r.shared != nil && r.status < 300:
		resp.SetBodyRaw(r.shared)
	default:
		resp.SetBody(r.body)
	}
	r.query.Reset()
	r.form.Reset()
	r.ctx, r.shared = nil, nil
	clear(r.parts)
	requests.Put(r)
}

// large is what an answer is written from that is larger than keptBody, nil if it is not. Of
// smaller parts it makes one body.
func (r *request) large() [][]byte {
	switch {
	case r.written || r.status >= 300:
		return nil
	case len(r.shared) > keptBody:
		return [][]byte{r.shared}
	case lengthOf(r.parts) > keptBody:
		return slices.Clone(r.parts)
	case len(r.body) > keptBody:
		body := r.body
		r.body = nil
		return [][]byte{body}
	}
	for _, part := range r.parts {
		r.body = append(r.body, part...)
	}
	return nil
}

func lengthOf(texts [][]byte) (n int) {
	for _, t := range texts {
		n += len(t)
	}
	return n
}

// Limits of list parameters.
const maxOffset = 100_000

// The functions below read one parameter of the query each, and note it as bad where it is.

// limit is a count above 0; what is above most is lowered to it.
func (r *request) limit(name string, unset, most int) int {
	p, ok := r.query.Get(name)
	if !ok {
		return unset
	}
	n, ok := api.Integer(p.Value)
	if !ok || n == 0 {
		r.bad(name, fieldInteger+" It must be above 0.")
		return unset
	}
	return int(min(n, uint64(most)))
}

func (r *request) offset() int {
	p, ok := r.query.Get("offset")
	if !ok {
		return 0
	}
	n, ok := api.Integer(p.Value)
	if !ok || n > maxOffset {
		r.bad("offset", fieldInteger+" It must be 0 to "+strconv.Itoa(maxOffset)+".")
		return 0
	}
	return int(n)
}

// before is the exclusive upper bound of ids, 0 if there is none.
func (r *request) before() uint64 {
	p, ok := r.query.Get("before")
	if !ok {
		return 0
	}
	n, ok := api.Integer(p.Value)
	if !ok || n == 0 {
		r.bad("before", fieldInteger+" It must be above 0.")
	}
	return n
}

// side is buy or sell, 0 if the parameter is not there.
func (r *request) side(name string) trading.Side {
	p, ok := r.query.Get(name)
	if !ok {
		return 0
	}
	s := sideOf(p.Value)
	if s == 0 {
		r.bad(name, fieldChoice+" It must be buy or sell.")
	}
	return s
}

// pair is the number of a pair, 0 if the parameter is not there.
func (r *request) pair() uint16 {
	p, ok := r.query.Get("pair")
	if !ok {
		return 0
	}
	pair := r.engine.Pair(p.Value)
	if pair == nil {
		r.bad("pair", fieldPair)
		return 0
	}
	return pair.Number
}

// currency is a configured one, nil if the parameter is not there.
func (r *request) currency(name string) *directory.Currency {
	p, ok := r.query.Get(name)
	if !ok {
		return nil
	}
	c := r.engine.Currency(p.Value)
	if c == nil {
		r.bad(name, fieldCurrency)
	}
	return c
}

// currencyNumber is the number of the currency that a filter names, 0 if it is not there.
func (r *request) currencyNumber(name string) uint16 {
	if c := r.currency(name); c != nil {
		return c.Number
	}
	return 0
}

// ascending is true for ordering=id, false for -id and when it is not there.
func (r *request) ascending() bool {
	p, ok := r.query.Get("ordering")
	if !ok || string(p.Value) == "-id" {
		return false
	}
	if string(p.Value) != "id" {
		r.bad("ordering", fieldChoice+" It must be id or -id.")
	}
	return true
}

// clientID is the parameter client_order_id of the query or the body, a zero one if it is not
// there.
func (r *request) clientID(from *params.Set) event.ClientID {
	p, ok := from.Get("client_order_id")
	if !ok {
		return event.ClientID{}
	}
	var id event.ClientID
	err := error(event.ErrClientID)
	if isScalar(p) {
		id, err = event.NewClientID(p.Value)
	}
	if err != nil {
		r.bad("client_order_id", "A text of 1 to 36 of A-Z, a-z, 0-9, _ and - is required.")
	}
	return id
}

func sideOf(text []byte) trading.Side {
	switch string(text) {
	case "buy":
		return trading.Buy
	case "sell":
		return trading.Sell
	}
	return 0
}

// isScalar is true of what can be a number or a text: not of true, null, objects and arrays.
func isScalar(p *params.Param) bool {
	return p.Kind == params.String || p.Kind == params.Number || p.Kind == params.Form
}
