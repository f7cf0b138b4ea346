package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/gateway/api"
	"exchange/gateway/ratelimit"
	"exchange/gateway/socketio"
	"exchange/gateway/stream"
)

// The event stream: Socket.IO below two paths. Package stream makes the events.

// Both paths serve all channels. Below bookPath a client that never asks for anything gets the
// orders of all pairs.
const (
	streamPath = "/socket.v2/"
	bookPath   = "/socket.io/"
)

// StreamOptions bound the clients of the stream. A zero field means the default of socketio or
// stream.
type StreamOptions struct {
	Connections           int // sessions at once
	ConnectionsPerAddress int
	MessagesPerSecond     int // packets from one client
	QueueBytes            int // most bytes that wait for one client
	Stall                 time.Duration
	PingInterval          time.Duration
	PingTimeout           time.Duration
	// least time between two states of ticker or orderbook.20 of one pair
	Interval time.Duration
}

// sockets have the stream of one engine.
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

func (g *Gateway) newSockets(e *actors.Engine) *sockets {
	o := &g.opts.Stream
	s := &sockets{hub: stream.New(e,
		stream.Options{Interval: o.Interval, QueueBytes: o.QueueBytes}),
		server: socketio.New(socketio.Options{
			Log: g.log, Address: g.clientOf, Allow: g.mayAsk, Hold: holdPlace,
			MaxPayload:  g.opts.BodyBytes,
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

// holdPlace keeps the place of a websocket as long as its client has a subscription.
func holdPlace(c net.Conn, on bool) {
	if b := placeOf(c); b != nil {
		b.places.hold(b, on)
	}
}

// mayAsk takes a token of the address's public requests. It is for requests of the stream that
// belong to no session, or that are refused.
func (g *Gateway) mayAsk(ctx *fasthttp.RequestCtx) error {
	a := g.limits.public.buckets.Take(ratelimit.AddressKey(g.clientOf(ctx)), g.now())
	tellRate(&ctx.Response.Header, &a, nil)
	if !a.OK {
		g.limits.public.refused.Add(1)
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(a.RetryAfter))
		return errTooManyRequests
	}
	return nil
}

// clientOf returns the client's address of a request.
func (g *Gateway) clientOf(ctx *fasthttp.RequestCtx) netip.Addr {
	return g.address(ctx)
}

// handleStream answers a request of the stream.
func (g *Gateway) handleStream(ctx *fasthttp.RequestCtx) {
	if s := g.sockets.Load(); s != nil {
		defer g.recoverStream(ctx)
		if ctx.UserValue(tooLarge) != nil {
			s.server.TooLarge(ctx)
		} else {
			s.server.Handle(ctx)
		}
		if ctx.Response.StatusCode() >= 400 {
			ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
		}
		return
	}
	r := newRequest(g, ctx)
	r.route = uncounted
	if r.takesPublic() {
		r.Fail(api.Starting, "")
	}
	r.send()
}

// recoverStream answers 500 for a panic in a request of the stream, as request.recover does.
func (g *Gateway) recoverStream(ctx *fasthttp.RequestCtx) {
	p := recover()
	if p == nil {
		return
	}
	r := newRequest(g, ctx)
	r.route, r.Cause, r.stack = unmatched, fmt.Errorf("a request of the stream panicked: %v", p),
		debug.Stack()
	r.Fail(api.InternalError, "")
	r.send()
}

// close tells the clients and ends.
func (s *sockets) close() {
	s.server.Shutdown()
	s.hub.Close()
}
