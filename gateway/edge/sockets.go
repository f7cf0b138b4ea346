package edge

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/ratelimit"
	"exchange/gateway/socketio"
	"exchange/gateway/stream"
)

// The event stream: Socket.IO below two paths. Package stream makes the events.

// Both paths serve all channels. Below bookPath a client without subscriptions gets the orders of
// all pairs.
const (
	streamPath = "/socket.v2/"
	bookPath   = "/socket.io/"
)

// A mount serves the event stream on its paths.
type mount struct {
	*Edge
	sockets atomic.Pointer[sockets] // nil: nothing to serve
}

// sockets serve the stream of one engine, or of one follower.
type sockets struct {
	server *socketio.Server
	hub    *stream.Hub
}

// isStream reports whether a path is the stream's. As everywhere, the last slash may be missing.
func isStream(path []byte) bool { return isBelow(path, streamPath) || isBelow(path, bookPath) }

func isBelow(path []byte, folder string) bool {
	return bytes.HasPrefix(path, []byte(folder)) || string(path) == folder[:len(folder)-1]
}

var errTooManyRequests = errors.New("too many requests, come back later")

func (m *mount) newSockets(a *api.API) *sockets {
	o := &m.agreed.Stream
	options := stream.Options{Interval: o.Interval, BBOInterval: o.BBOInterval,
		QueueBytes: o.QueueBytes, OrdersInFlight: o.OrdersInFlight}
	if a.Commands() != nil {
		options.Guard = guard{m.Edge, a}
	} else {
		options.Absent = m.refuseNotServing
	}
	s := &sockets{hub: stream.New(a, options),
		server: socketio.New(socketio.Options{
			Log: m.log, Node: m.opts.Node, Address: m.address, Allow: m.takeStreamToken,
			Hold: listen.Hold, MaxPayload: m.opts.BodyBytes,
			Connections: o.Connections, ConnectionsPerAddress: o.ConnectionsPerAddress,
			MessagesPerSecond: o.MessagesPerSecond,
			QueueBytes:        o.QueueBytes, StallTimeout: o.Stall, PingInterval: o.PingInterval,
			PingTimeout: o.PingTimeout,
		})}
	s.server.Namespace("/", s.hub.Hooks(func(c *socketio.Socket) bool {
		return c.Path() == bookPath || c.Path() == bookPath[:len(bookPath)-1]
	}))
	return s
}

// takeStreamToken takes a token of the address's public requests, for a request of the stream that
// belongs to no session, or that is refused.
func (m *mount) takeStreamToken(ctx *fasthttp.RequestCtx) error {
	a := m.limits.public.buckets.Load().Take(ratelimit.AddressKey(m.address(ctx)), m.now())
	writeRate(&ctx.Response.Header, &a, nil)
	if !a.OK {
		m.limits.public.throttled.Add(1)
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(a.RetryAfter))
		return errTooManyRequests
	}
	return nil
}

// handle serves a request of the stream.
func (m *mount) handle(ctx *fasthttp.RequestCtx) {
	if s := m.sockets.Load(); s != nil {
		defer m.recover(ctx)
		if ctx.UserValue(tooLarge) != nil {
			s.server.TooLarge(ctx)
		} else {
			s.server.Handle(ctx)
		}
		if ctx.Response.StatusCode() >= 400 {
			ctx.Response.Header.SetCanonical(headerCacheControl, cacheNoStore)
		}
		return
	}
	r := newRequest(m.Edge, ctx)
	r.route = uncounted
	if r.takePublicToken() {
		r.refuseNotServing()
	}
	r.send()
}

// recover writes 500 for a panic in a request of the stream, as request.recover does.
func (m *mount) recover(ctx *fasthttp.RequestCtx) {
	p := recover()
	if p == nil {
		return
	}
	r := newRequest(m.Edge, ctx)
	r.route, r.Cause, r.stack = unmatched, fmt.Errorf("a request of the stream panicked: %v", p),
		debug.Stack()
	r.Fail(api.InternalError, "")
	r.send()
}

// end closes the sockets of an ended engine or follower, without waiting for slow clients.
func (m *mount) end() {
	if s := m.sockets.Swap(nil); s != nil {
		go s.close()
	}
}

// close notifies the clients and ends.
func (m *mount) close() {
	if s := m.sockets.Load(); s != nil {
		s.close()
	}
}

func (s *sockets) close() {
	s.server.Shutdown()
	s.hub.Close()
}
