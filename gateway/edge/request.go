package edge

import (
	"fmt"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/ratelimit"
	"exchange/gateway/sign"
)

// A request is one request in the gateway, with its memory. It is pooled. The goroutine of the
// handler owns it.
type request struct {
	api.Call
	edge *Edge
	ctx  *fasthttp.RequestCtx

	from netip.Addr // address of the client; invalid: not looked up yet
	// time of arrival by the gateway's clock, for limits and to time the request
	at   int64
	rate ratelimit.Answer // bucket shown in the rate headers; zero: none
	// tokens of a forwarded batch
	commands, cancels int

	verifier sign.Verifier

	noStore bool // caches must not keep the answer
	probe   bool // the operation is a probe
	// the answer is for pages of this origin only, and sets its own Cache-Control
	sameOrigin bool
	route      int      // number of its route in the meter
	shard      uint32   // of the meter; it stays with this memory
	written    bool     // the answer's type and body are already the server's
	digits     [20]byte // of a number in a header

	stack []byte // of a panic, for the log
}

var requests = sync.Pool{New: func() any {
	r := &request{shard: nextShard.Add(1)}
	r.Reset()
	return r
}}

func newRequest(e *Edge, ctx *fasthttp.RequestCtx) *request {
	r := requests.Get().(*request)
	r.edge, r.ctx = e, ctx
	r.from, r.at, r.rate, r.route, r.noStore = netip.Addr{}, e.now(),
		ratelimit.Answer{}, unmatched, false
	r.written, r.sameOrigin, r.probe, r.stack = false, false, false, nil
	return r
}

// Headers of every answer of the API.
var (
	headerAllowOrigin = []byte("Access-Control-Allow-Origin")
	anyOrigin         = []byte("*")
	headerExpose      = []byte("Access-Control-Expose-Headers")
	headerRetryAfter  = []byte("Retry-After") // of failures only
	headerKeepAlive   = []byte("Keep-Alive")

	headerCacheControl = []byte("Cache-Control")
	// of private answers, probes, failures and momentary data
	cacheNoStore = []byte("no-store")
	// of answers that every client may see: revalidate each time
	cacheNoCache = []byte("no-cache")

	headerAuthenticate = []byte("WWW-Authenticate") // of 401
	scheme             = []byte(sign.Scheme)

	exposedHeaders = []byte(
		"X-Update-Id, X-Request-Id, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, " +
			"X-RateLimit-Reset, X-Leader")
)

// send writes the answer and gives the request back to the pool.
func (r *request) send() {
	packed := r.pack()
	large := r.End(r.edge.budget, r.ctx.IsPost() || r.ctx.IsHead())
	resp := &r.ctx.Response
	h := &resp.Header
	if packed && r.Status == fasthttp.StatusOK { // there is room for it
		h.Set("Content-Encoding", "gzip")
	}
	if id, ok := r.UpdateID(); ok {
		h.SetBytesV("X-Update-Id", strconv.AppendUint(r.digits[:0], id, 10))
	}
	if seconds := r.RetryAfter(); seconds > 0 {
		h.SetCanonical(headerRetryAfter, strconv.AppendInt(r.digits[:0], int64(seconds), 10))
	}
	took := r.edge.now() - r.at
	if f := r.Failure; r.Status >= 500 && f != nil && f.Ours && f.Status == r.Status {
		r.report(f, r.Cause, took)
	} else if f, cause := r.FailedItem(); f != nil {
		r.report(f, cause, took)
	}
	r.edge.Meter.count(r.shard, r.route, r.Status, took)
	resp.SetStatusCode(r.Status)
	if !r.sameOrigin {
		h.SetCanonical(headerAllowOrigin, anyOrigin)
		h.SetCanonical(headerExpose, exposedHeaders)
	}
	switch {
	case r.sameOrigin:
	case r.noStore || r.Status >= 400:
		h.SetCanonical(headerCacheControl, cacheNoStore)
	case r.Status != fasthttp.StatusNoContent:
		h.SetCanonical(headerCacheControl, cacheNoCache)
	}
	if r.Status == fasthttp.StatusUnauthorized {
		h.SetCanonical(headerAuthenticate, scheme)
	}
	writeRate(h, &r.rate, r.digits[:0])
	if r.Status != fasthttp.StatusNoContent && !r.written {
		h.SetContentType("application/json")
	}
	switch {
	case r.written:
	case large != nil:
		resp.SetBodyStream(large, large.Length)
	default:
		if body, shared := r.Body(); shared {
			resp.SetBodyRaw(body)
		} else {
			resp.SetBody(body)
		}
	}
	r.ctx = nil
	r.Reset()
	requests.Put(r)
}

// pack compresses a large public answer for a client that takes gzip; false: the answer stays
// plain.
func (r *request) pack() bool {
	if r.written || !r.IsBulky() {
		return false
	}
	r.ctx.Response.Header.Set("Vary", "Accept-Encoding")
	if !accepts(string(listOf(&r.ctx.Request.Header, "Accept-Encoding")), "gzip") {
		return false
	}
	r.Pack()
	return true
}

// refuseNotServing writes the response of a process that is starting, or is a follower.
func (r *request) refuseNotServing() {
	if leader := r.edge.refuseNotServing(&r.Call); leader != "" {
		r.ctx.Response.Header.Set("X-Leader", leader)
	}
}

// refuseNotServing writes the response of a process that is starting, or is a follower. It returns
// the leader's URL; "": unknown.
func (e *Edge) refuseNotServing(c *api.Call) (leader string) {
	s, follows := e.following()
	if !follows || s.Starting {
		c.Fail(api.Starting, "")
		return ""
	}
	c.Fail(api.Following, s.About())
	return s.OtherLeaderURL()
}

// report sets the request id of an answer that is, or contains, a server failure, and logs it.
func (r *request) report(f *api.Failure, cause error, took int64) {
	route := r.edge.Meter.Routes[r.route]
	if r.probe && f.Status == fasthttp.StatusServiceUnavailable {
		r.edge.reports.reportProbe(r.ctx, route, f, took, cause)
		return
	}
	r.edge.reports.report(r.ctx, route, f.Status, took,
		"failure", f.Name, "address", r.address().String(),
		"error", cause, "stack", string(r.stack))
}

// address returns the client's address. Rate limits, the allow-lists of keys and the log use it.
func (r *request) address() netip.Addr {
	if !r.from.IsValid() {
		r.from = r.edge.address(r.ctx)
	}
	return r.from
}

// recover writes 500 for a panic in a handler. The process continues, because a handler changes
// only the request's own state.
func (r *request) recover() {
	p := recover()
	if p == nil {
		return
	}
	r.Cause, r.stack = fmt.Errorf("a handler panicked: %v", p), debug.Stack()
	r.Fail(api.InternalError, "")
	r.send()
}

// tooLarge is the user value that marks an unread body, and holds its limit.
const tooLarge = "body too large"
