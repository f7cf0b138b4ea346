package socketio

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/ratelimit"
)

// A failure is an error answer of Engine.IO.
type failure uint8

const (
	unknownTransport failure = iota
	unknownSession
	badMethod
	badRequest
	forbidden
	unsupportedVersion
	tooManySessions
	tooManyOfAddress
	shuttingDown
	bodyTooLarge
	failures // number of failures
	none     = failures
)

// failureTable has the codes and texts of Engine.IO.
var failureTable = [failures]struct {
	status, code int
	message      string
}{
	unknownTransport:   {400, 0, "Transport unknown"},
	unknownSession:     {400, 1, "Session ID unknown"},
	badMethod:          {400, 2, "Bad handshake method"},
	badRequest:         {400, 3, "Bad request"},
	forbidden:          {403, 4, "Forbidden"},
	unsupportedVersion: {400, 5, "Unsupported protocol version"},
	tooManySessions:    {403, 4, "Too many connections"},
	tooManyOfAddress:   {403, 4, "Too many connections from this address"},
	shuttingDown:       {503, 4, "Server is shutting down"},
	bodyTooLarge:       {413, 0, "Payload too large"}, // answered without a body
}

var (
	origin  = []byte("Origin")
	upgrade = []byte("5")
)

// Handle answers a request. It returns when the request is answered; a poll may take as long as
// PingInterval. The HTTP server has KeepHijackedConns set, a WriteTimeout, and takes bodies of
// MaxPayload bytes.
func (s *Server) Handle(ctx *fasthttp.RequestCtx) {
	allowOrigin(ctx)
	x := s.find(ctx.QueryArgs().Peek("sid"))
	asked := x == nil || ctx.IsOptions()
	if asked && !s.allowed(ctx) {
		return
	}
	if ctx.IsOptions() {
		s.preflight(ctx)
		return
	}
	if f := s.route(ctx, x); f != none && (asked || s.allowed(ctx)) {
		s.fail(ctx, f, failureTable[f].message)
	}
}

// allowed reports whether a request is admitted, and answers it otherwise.
func (s *Server) allowed(ctx *fasthttp.RequestCtx) bool {
	if s.opts.Allow == nil {
		return true
	}
	err := s.opts.Allow(ctx)
	if err != nil {
		s.fail(ctx, forbidden, err.Error())
	}
	return err == nil
}

// route checks a request of a session, or of none, and answers it. The checks have the order of the
// Engine.IO server.
func (s *Server) route(ctx *fasthttp.RequestCtx, x *session) failure {
	query := ctx.QueryArgs()
	id := query.Peek("sid")
	socket := false
	switch string(query.Peek("transport")) {
	case "polling":
	case "websocket":
		socket = true
	default:
		return unknownTransport
	}
	known := string(query.Peek("EIO")) == "4"
	if len(id) == 0 {
		switch {
		case !ctx.IsGet():
			return badMethod
		case socket && !isUpgrade(ctx):
			return badRequest
		case !known:
			return unsupportedVersion
		}
		return s.handshake(ctx, socket)
	}
	switch {
	case x == nil && known && !socket && ctx.IsGet():
		return s.afterClose(ctx, string(id))
	case x == nil:
		return unknownSession
	case !known:
		return badRequest
	case socket && isUpgrade(ctx):
		return s.acceptUpgrade(ctx, x)
	case socket:
		return badRequest
	case ctx.IsGet():
		return x.get(ctx)
	case ctx.IsPost():
		return x.post(ctx)
	}
	return badRequest
}

// handshake opens a session.
func (s *Server) handshake(ctx *fasthttp.RequestCtx, socket bool) failure {
	address := s.opts.Address(ctx)
	s.mu.RLock()
	f := s.full(ratelimit.Network(address))
	s.mu.RUnlock()
	if f != none {
		return f
	}
	if socket {
		return s.acceptWebSocket(ctx, address, string(ctx.Path()))
	}
	return s.openPolling(ctx, address, string(ctx.Path()))
}

func (s *Server) openPolling(ctx *fasthttp.RequestCtx, address netip.Addr, path string) failure {
	x, f := s.open(address, path, nil)
	if f != none {
		return f
	}
	answerPoll(ctx, x.openPacket(true))
	return none
}

// openPacket returns the first packet of a session.
func (x *session) openPacket(upgrades bool) []byte {
	o := &x.server.opts
	b := append([]byte(`0{"sid":"`), x.id...)
	b = append(b, `","upgrades":[`...)
	if upgrades {
		b = append(b, `"websocket"`...)
	}
	number := func(name string, n int64) {
		b = strconv.AppendInt(append(b, name...), n, 10)
	}
	number(`],"pingInterval":`, o.PingInterval.Milliseconds())
	number(`,"pingTimeout":`, o.PingTimeout.Milliseconds())
	number(`,"maxPayload":`, int64(o.MaxPayload))
	return append(b, '}')
}

// TooLarge answers a request whose body the HTTP server has refused. The session continues.
func (s *Server) TooLarge(ctx *fasthttp.RequestCtx) {
	allowOrigin(ctx)
	if s.allowed(ctx) {
		s.fail(ctx, bodyTooLarge, "")
	}
}

// fail answers with an error, and counts it.
func (s *Server) fail(ctx *fasthttp.RequestCtx, f failure, message string) {
	s.counters.refused[f].Add(1)
	t := &failureTable[f]
	ctx.SetStatusCode(t.status)
	if f == bodyTooLarge {
		return
	}
	body, _ := json.Marshal(struct { // these never fail
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{t.code, message})
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(body)
}

// allowOrigin lets pages of any origin read the answer, with credentials too if the request names
// an origin, because no answer depends on credentials.
func allowOrigin(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	if from := ctx.Request.Header.PeekBytes(origin); len(from) > 0 {
		h.SetBytesV("Access-Control-Allow-Origin", from)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Vary", "Origin")
	} else {
		h.Set("Access-Control-Allow-Origin", "*")
	}
}

func (s *Server) preflight(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Access-Control-Allow-Methods", "GET,HEAD,PUT,PATCH,POST,DELETE")
	if asked := ctx.Request.Header.PeekAll("Access-Control-Request-Headers"); len(asked) > 0 {
		h.SetBytesV("Access-Control-Allow-Headers", bytes.Join(asked, []byte{','}))
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

// isUpgrade reports whether a request asks for a websocket.
func isUpgrade(ctx *fasthttp.RequestCtx) bool {
	if !ctx.IsGet() {
		return false
	}
	for _, line := range ctx.Request.Header.PeekAll("Upgrade") {
		for protocol := range bytes.SplitSeq(line, []byte{','}) {
			if bytes.EqualFold(bytes.TrimSpace(protocol), []byte("websocket")) {
				return true
			}
		}
	}
	return false
}

// acceptWebSocket opens a session on a websocket. The session begins after the connection was
// hijacked, because a connection that breaks before must leave nothing behind.
func (s *Server) acceptWebSocket(ctx *fasthttp.RequestCtx, address netip.Addr,
	path string) failure {
	return s.hijack(ctx, func(l *link) {
		x, f := s.open(address, path, l)
		if f != none { // the bound was reached meanwhile
			s.counters.refused[f].Add(1)
			l.refuse()
			return
		}
		x.serve(l, func() {
			x.begin()
			x.read(l)
		})
	})
}

// begin writes the packets queued since the handshake.
func (x *session) begin() {
	x.mu.Lock()
	defer x.unlock()
	x.flush()
}

// acceptUpgrade moves a session from polling to a websocket.
func (s *Server) acceptUpgrade(ctx *fasthttp.RequestCtx, x *session) failure {
	return s.hijack(ctx, func(l *link) {
		l.session = x
		x.serve(l, func() {
			until := time.Now().Add(s.opts.UpgradeTimeout)
			l.SetReadDeadline(until) //nolint:errcheck // then reading fails too
			if x.probing(l) && l.write(l.reply) {
				l.reply = nil
				if x.probe(l) {
					x.read(l)
					return
				}
			}
			x.unprobe(l)
			l.refuse()
		})
	})
}

// hijack answers with 101, and runs f on the connection in a goroutine of its own, so that the HTTP
// server gets the memory of the request back.
func (s *Server) hijack(ctx *fasthttp.RequestCtx, f func(*link)) failure {
	l, err := newLink(&s.upgrader, ctx)
	if err != nil {
		return badRequest
	}
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(l.take(func() {
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.down {
			l.Conn.Close() //nolint:errcheck // no client waits for the answer
			return
		}
		s.tasks.start(func() { f(l) })
	}))
	return none
}

// handshakeHeader returns the headers that the websocket library needs of a request.
func handshakeHeader(ctx *fasthttp.RequestCtx) http.Header {
	h := http.Header{}
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Version",
		"Sec-Websocket-Key"} {
		for _, line := range ctx.Request.Header.PeekAll(name) {
			h.Add(name, string(line))
		}
	}
	return h
}
