package socketio

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
)

// readBuffer is the size of a read buffer in bytes, enough for most messages of clients. Longer
// messages are read past it.
const readBuffer = 512

// lingerTimeout bounds the time in which a client closes after a close frame.
const lingerTimeout = time.Second

// A link is a websocket: the library's reading side, on a connection to which this package writes.
// The library must not write by itself, because its frames would land between others, or wait for a
// client that does not read. The link keeps the library's frames instead.
//
// The HTTP server keeps a hijacked connection together with the buffer of its request. A link reads
// that buffer, and then uses the connection below.
type link struct {
	net.Conn             // nil before take
	raw        rawWriter // raw side of Conn, if it has one
	early      []byte    // bytes that the client sent right after its handshake
	session    *session  // whose bucket counts the bytes; nil: none yet
	ws         *websocket.Conn
	reply      []byte // the answer to the handshake, before it is written
	closeFrame []byte // the close frame written by the library
	frames     frameHeads
}

func newUpgrader() websocket.Upgrader {
	return websocket.Upgrader{
		ReadBufferSize: readBuffer, WriteBufferPool: &sync.Pool{},
		CheckOrigin: func(*http.Request) bool { return true },
		Error:       func(http.ResponseWriter, *http.Request, int, error) {}, // the caller answers
	}
}

// bodyHeaders are headers of the HTTP server that mean nothing in a websocket's handshake.
var bodyHeaders = []string{"Content-Length", "Content-Type", "Connection", "Server", "Date",
	"Transfer-Encoding"}

// newLink makes the websocket's handshake, but does not write the answer. An error is the
// request's.
func newLink(u *websocket.Upgrader, ctx *fasthttp.RequestCtx) (*link, error) {
	l := &link{}
	answer := http.Header{}
	for name, value := range ctx.Response.Header.All() {
		if !slices.Contains(bodyHeaders, string(name)) {
			answer[string(name)] = []string{string(value)}
		}
	}
	ws, err := u.Upgrade(hijacked{link: l},
		&http.Request{Method: http.MethodGet, Header: handshakeHeader(ctx)}, answer)
	if err != nil {
		return nil, err
	}
	l.ws, l.reply, l.closeFrame = ws, l.closeFrame, nil
	ws.SetCloseHandler(func(int, string) error { return nil })
	return l, nil
}

// hijacked passes the library a link instead of the HTTP server's connection. Nothing is answered
// through it.
type hijacked struct{ link *link }

func (hijacked) Header() http.Header         { return http.Header{} }
func (hijacked) Write(p []byte) (int, error) { return len(p), nil }
func (hijacked) WriteHeader(int)             {}

// Hijack implements http.Hijacker.
func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.link, bufio.NewReadWriter(bufio.NewReaderSize(h.link, 0),
		bufio.NewWriterSize(h.link, 0)), nil
}

// take returns the handler that takes the connection, and then calls f.
func (l *link) take(f func()) fasthttp.HijackHandler {
	return func(c net.Conn) {
		l.Conn = c
		if u, ok := c.(interface{ UnsafeConn() net.Conn }); ok {
			if raw := direct(u.UnsafeConn()); raw.ok() {
				l.early = buffered(c)
				l.Conn, l.raw = u.UnsafeConn(), raw
			}
		}
		f()
	}
}

// buffered returns the bytes that were read from a connection and not used. Reading past them
// fails, because the deadline is long over.
func buffered(c net.Conn) (early []byte) {
	c.SetReadDeadline(time.Unix(1, 0))   //nolint:errcheck // if it is gone, reading fails too
	defer c.SetReadDeadline(time.Time{}) //nolint:errcheck
	for b := [readBuffer]byte{}; ; {
		n, err := c.Read(b[:])
		early = append(early, b[:n]...)
		if err != nil {
			return early
		}
	}
}

// Read implements net.Conn for the library.
func (l *link) Read(p []byte) (int, error) {
	if len(l.early) > 0 {
		n := copy(p, l.early)
		if l.early = l.early[n:]; len(l.early) == 0 {
			l.early = nil
		}
		l.frames.follow(p[:n])
		return n, nil
	}
	n, err := l.Conn.Read(p)
	l.frames.follow(p[:n])
	if x := l.session; x != nil && !x.take(0, n) {
		return n, violation(TooManyMessages)
	}
	return n, err
}

// Write implements net.Conn for the library. It keeps the answer to the handshake, or a close
// frame.
func (l *link) Write(p []byte) (int, error) {
	l.closeFrame = bytes.Clone(p)
	return len(p), nil
}

// SetDeadline and SetWriteDeadline implement net.Conn for the library, which sets them for writes
// alone.
func (l *link) SetDeadline(time.Time) error      { return nil }
func (l *link) SetWriteDeadline(time.Time) error { return nil }

// write writes to a connection that belongs to no session yet, from its reader.
func (l *link) write(b []byte) bool {
	until := time.Now().Add(lingerTimeout)
	l.Conn.SetWriteDeadline(until) //nolint:errcheck // then writing fails too
	_, err := l.Conn.Write(b)
	l.Conn.SetWriteDeadline(time.Time{}) //nolint:errcheck
	return err == nil
}

// refuse closes a websocket that belongs to no session with a close frame.
func (l *link) refuse() {
	if l.write(appendClose(l.reply, 1008)) {
		l.closeWrite()
		l.SetReadDeadline(time.Now().Add(lingerTimeout)) //nolint:errcheck // then reading fails too
		l.linger()
	}
	l.Conn.Close() //nolint:errcheck
}

// closeWrite ends the writing side.
func (l *link) closeWrite() {
	if l.raw.ok() {
		l.raw.closeWrite()
	} else if c, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite() //nolint:errcheck // the peer may be gone already
	}
}

// abort closes the connection at once, and drops bytes in flight.
func (l *link) abort() {
	if l.raw.ok() {
		l.raw.reset()
	}
	l.Conn.Close() //nolint:errcheck
}

// linger waits for the client to close its side, until the read deadline. A connection that is
// closed while the client still sends is reset, and the client would not see the close frame.
func (l *link) linger() {
	for b := [readBuffer]byte{}; ; {
		if _, err := l.Conn.Read(b[:]); err != nil {
			return
		}
	}
}

// serve runs f, which reads the session's websocket. If f panics, the session ends.
func (x *session) serve(l *link, f func()) {
	if x.guard("the reader of a websocket", f) != nil {
		x.close(ServerClose)
		l.Conn.Close() //nolint:errcheck
	}
}

// read is the websocket's reader. The connection is closed when it returns.
func (x *session) read(l *link) {
	defer l.Conn.Close() //nolint:errcheck
	l.ws.SetReadLimit(int64(x.server.opts.MaxPayload))
	control := func(kind byte) func(string) error {
		return func(data string) error { return x.control(kind, data) }
	}
	l.ws.SetPingHandler(control(pongFrame))
	l.ws.SetPongHandler(control(0))
	for !x.closed.Load() {
		p, err := x.next(l)
		if err != nil {
			x.broken(l, err)
			break
		}
		if err := x.receive(p); err != nil {
			x.close(reasonOf(err))
		}
	}
	l.linger() // the session's end has set the deadline
}

// next reads a message. StallTimeout bounds the time from its first part to its last.
func (x *session) next(l *link) (p enginePacket, err error) {
	kind, r, err := l.ws.NextReader()
	if err != nil {
		return p, err
	}
	until := func(t time.Time) {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !x.closed.Load() { // otherwise there is a deadline already
			l.SetReadDeadline(t) //nolint:errcheck // then reading fails too
		}
	}
	until(time.Now().Add(x.server.opts.StallTimeout))
	p.binary = kind == websocket.BinaryMessage
	switch p.data, err = io.ReadAll(r); {
	case err == nil:
		until(time.Time{})
	case timedOut(err):
		err = errPacket
	}
	return p, err
}

// receive handles one message.
func (x *session) receive(p enginePacket) error {
	if !p.binary && !utf8.Valid(p.data) {
		return violation(InvalidText)
	}
	return x.handle(func() error { return x.packet(p) })
}

// control answers a control frame of the websocket with a frame of a kind; 0 is no answer.
func (x *session) control(kind byte, data string) error {
	if !x.take(1, 0) {
		return violation(TooManyMessages)
	}
	if kind != 0 {
		x.mu.Lock()
		defer x.unlock()
		if !x.closed.Load() {
			x.say(appendFrame(nil, kind, []byte(data)))
		}
	}
	return nil
}

// broken ends a session whose websocket failed.
func (x *session) broken(l *link, err error) {
	reason, frame := TransportClose, l.closeFrame
	var v violation
	var closed *websocket.CloseError
	switch {
	case errors.As(err, &v):
		x.close(Reason(v))
		return
	// an abnormal closure is the end without a frame
	case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		code := uint16(closed.Code)
		switch {
		case code == websocket.CloseNoStatusReceived && l.frames.half:
			reason, code = ParseError, websocket.CloseProtocolError
		case code == websocket.CloseNoStatusReceived:
			code = 0
		}
		frame = appendClose(nil, code)
	case errors.Is(err, websocket.ErrReadLimit):
		x.close(PayloadTooLarge)
		return
	case frame != nil:
		reason = ParseError
	}
	x.mu.Lock()
	defer x.unlock()
	x.end(reason, frame)
}

// probing makes a link the candidate of an upgrade, if there is no other.
func (x *session) probing(l *link) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed.Load() || x.link != nil || x.candidate != nil {
		return false
	}
	if at := x.stalledAt(); x.excused && at != 0 && at <= x.server.now() {
		return false
	}
	x.candidate = l
	return true
}

// unprobe abandons the upgrade.
func (x *session) unprobe(l *link) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.candidate == l {
		x.candidate, x.noopAt = nil, 0
		if !x.excused { // the upgrade may have kept the client from polling, but only once
			x.progress, x.excused = x.server.now(), true
		}
		x.schedule()
	}
}

// probe performs the handshake of an upgrade. It returns true after it has moved the session to the
// websocket, before the next frame is read, because that frame may be there already.
func (x *session) probe(l *link) bool {
	control := func(string) error { return errPacket }
	l.ws.SetPingHandler(control)
	l.ws.SetReadLimit(int64(len(probePing)))
	kind, data, err := l.ws.ReadMessage()
	if err != nil || kind != websocket.TextMessage || string(data) != probePing ||
		!l.write(probePong) {
		return false
	}
	x.awaitUpgrade()
	kind, data, err = l.ws.ReadMessage()
	if err != nil || kind != websocket.TextMessage || !bytes.Equal(data, upgrade) {
		return false
	}
	l.SetReadDeadline(time.Time{}) //nolint:errcheck // then reading fails too
	x.mu.Lock()
	defer x.unlock()
	if x.closed.Load() {
		return false
	}
	x.candidate, x.noopAt = nil, 0
	x.attach(l)
	x.server.counters.upgrades.Add(1)
	x.release()
	x.flush()
	return true
}

// awaitUpgrade releases polls from now on, because the client waits for its poll to return before
// it upgrades. The first poll returns at once, and others after Options.noopInterval.
func (x *session) awaitUpgrade() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed.Load() {
		x.noopAt = x.server.now() + int64(x.server.opts.noopInterval)
		if x.poll != nil && !x.poll.late {
			x.release()
		}
		x.schedule()
	}
}

// The handshake of an upgrade.
const probePing = "2probe"

var probePong = appendFrame(nil, textFrame, []byte("3probe"))
