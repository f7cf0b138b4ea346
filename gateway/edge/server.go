package edge

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
	"exchange/gateway/listen"
)

// A Listener is one of the listeners of the edge.
type Listener struct {
	*Edge
	Name        string // label in the metrics
	Server      *fasthttp.Server
	Places      *listen.Places
	Certificate *listen.Certificate // nil: plain HTTP
}

// serve serves until the server ends. refuse writes the response to a connection above the limit.
func (l *Listener) serve(on net.Listener, refuse func(*fasthttp.RequestCtx)) error {
	return l.Server.Serve(listen.New(on, l.Places, l.Certificate, func(w io.Writer) {
		var ctx fasthttp.RequestCtx
		refuse(&ctx)
		ctx.Response.SetConnectionClose()
		ctx.Response.WriteTo(w) //nolint:errcheck // the client may be gone
	}, l.log))
}

// server makes the server of a listener. broken writes the response to a request that cannot be
// read completely. limit returns the maximum length of a body after a head, in bytes.
func (e *Edge) server(h fasthttp.RequestHandler, broken func(*fasthttp.RequestCtx, error),
	limit func(*fasthttp.RequestHeader) int,
) *fasthttp.Server {
	refuse := func(ctx *fasthttp.RequestCtx, err error) {
		e.mayWrite(ctx)
		c := listen.Of(ctx.Conn())
		if !occupy(ctx, c) {
			return
		}
		broken(ctx, err)
		if isTimeout(err) { // the read timeout has passed
			ctx.SetConnectionClose()
			return
		}
		lingerAfter(ctx)
	}
	return &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			if c := listen.Of(ctx.Conn()); occupy(ctx, c) {
				h(ctx)
				endUpgrade(ctx, c)
				e.writeKeepAlive(ctx)
			}
		}, ErrorHandler: refuse, HeaderReceived: asMeant,
		// A client that expects 100 Continue learns before sending that its body is too long.
		ExpectHandler: func(ctx *fasthttp.RequestCtx) int {
			if ctx.Request.Header.ContentLength() > limit(&ctx.Request.Header) {
				refuse(ctx, fasthttp.ErrBodyTooLarge)
				return ctx.Response.StatusCode()
			}
			e.mayWrite(ctx)
			return fasthttp.StatusContinue
		}, Logger: serverLog{e.log},
		// The listener bounds connections. This leaves room for closed connections not yet cleaned
		// up.
		Concurrency: 2*e.opts.Connections + 1024, ReadBufferSize: e.opts.HeaderBytes,
		MaxRequestBodySize: e.opts.BodyBytes,
		ReadTimeout:        e.opts.ReadTimeout, WriteTimeout: e.opts.WriteTimeout,
		IdleTimeout:           e.opts.IdleTimeout,
		NoDefaultServerHeader: true, NoDefaultContentType: true, DisablePreParseMultipartForm: true,
		CloseOnShutdown: true, KeepHijackedConns: true,
		// or a broken request is logged with its signature or bearer token
		SecureErrorLogMessage: true,
	}
}

// writeKeepAlive writes how long the connection may be idle after the answer, so that a client does
// not send a request while it is being closed.
func (e *Edge) writeKeepAlive(ctx *fasthttp.RequestCtx) {
	seconds := int64(e.opts.IdleTimeout / time.Second)
	if seconds == 0 || ctx.Request.Header.ConnectionClose() || ctx.Response.ConnectionClose() ||
		ctx.Hijacked() {
		return
	}
	var b [32]byte
	ctx.Response.Header.SetCanonical(headerKeepAlive,
		strconv.AppendInt(append(b[:0], "timeout="...), seconds, 10))
}

// mayWrite renews the write deadline for an answer to a request that was never read. The current
// deadline belongs to the connection's previous answer and may have passed. Of pipelined requests,
// that answer may still be unwritten too.
func (e *Edge) mayWrite(ctx *fasthttp.RequestCtx) {
	if c := ctx.Conn(); c != nil && e.opts.WriteTimeout > 0 {
		//nolint:errcheck // then writing fails too
		c.SetWriteDeadline(time.Now().Add(e.opts.WriteTimeout))
	}
}

// occupy marks a connection as busy with a request. It returns false if the connection was given up
// for a newer one. Then occupy closes the connection, so that the request is neither executed nor
// answered.
func occupy(ctx *fasthttp.RequestCtx, c *listen.Conn) bool {
	if c == nil || c.Occupy() {
		return true
	}
	c.Cut()
	ctx.SetStatusCode(api.TooManyConnections.Status)
	ctx.Response.Header.SetCanonical(headerRetryAfter,
		strconv.AppendInt(nil, int64(api.TooManyConnections.RetryAfter), 10))
	ctx.SetConnectionClose()
	return false
}

// endUpgrade closes a connection whose websocket upgrade failed, because the bytes after the
// request were not parsed.
func endUpgrade(ctx *fasthttp.RequestCtx, c *listen.Conn) {
	if c != nil && c.AskedForUpgrade() && !ctx.Hijacked() {
		ctx.SetConnectionClose()
	}
}

// serverLog logs the server's own messages, which come from clients' broken requests, at debug
// level.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Printf(format string, args ...any) {
	l.log.Debug("http server", "text", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// lingerAfter closes the connection after the answer, and lets the client read the answer first.
func lingerAfter(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c := listen.Of(ctx.Conn()); c != nil {
		c.Linger()
	}
}

// isSpoken reports whether a head has a supported version of HTTP.
func isSpoken(h *fasthttp.RequestHeader) bool { return listen.Speaks(h.Protocol()) }

// classify returns the failure of an unreadable request, and its about. h is its head, as far as it
// was read.
func (e *Edge) classify(h *fasthttp.RequestHeader, err error) (*api.Failure, string) {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return api.BodyTooLarge, strconv.Itoa(e.opts.BodyBytes)
	case errors.As(err, &small):
		return api.HeaderTooLarge, strconv.Itoa(e.opts.HeaderBytes)
	case isTimeout(err):
		return api.RequestTimeout, ""
	case !isHost(h.Host()):
		return api.MalformedHost, ""
	}
	return api.MalformedRequest, ""
}

// isTimeout reports whether a request did not arrive in time.
func isTimeout(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Timeout()
}
