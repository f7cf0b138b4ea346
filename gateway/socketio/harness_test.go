package socketio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"exchange/gateway/socketio/sockettest"
)

// The HTTP server writes dates, for which it starts a goroutine that never ends: in no bubble.
var _ = new(fasthttp.ResponseHeader).Header()

// patience is how long a test waits for an event that must come.
const patience = 20 * time.Second

// eventually waits for a condition.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("never: %s", what)
		}
	}
}

// in runs a part of a test in a bubble.
func in(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// A rig is the echo server with its clients.
type rig struct {
	t       testing.TB
	options Options
	server  *Server                // the first
	serving atomic.Pointer[Server] // the first, but for restarts
	address string
	listens *sockettest.Listener
	client  *http.Client
	dialer  websocket.Dialer

	restarts sync.WaitGroup

	mu      sync.Mutex
	joined  []*Socket
	left    map[*Socket]Reason
	inside  map[*Socket]int // hooks of a socket that run
	failure string
}

// A smallListener makes connections with small system buffers: a client that does not read is soon
// noticed.
type smallListener struct{ net.Listener }

func (l smallListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(64 << 10)
	}
	return c, err
}

// A wrappedListener has connections without a raw side.
type wrappedListener struct{ net.Listener }

func wrapped(l net.Listener) net.Listener { return wrappedListener{l} }

func (l wrappedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{c}, nil
}

// echo starts an echo server. It is shut down with the test, and must leave no goroutines or
// sessions.
//
// Namespaces are "/", "/custom", and "/admin" that wants the token "secret". A client that joins
// gets "auth" with its own data. The event "message" comes back as "message-back", binary too, and
// "1" comes back as "1-back". "message-with-ack" is acknowledged with its arguments. "leave" puts
// the client out of the namespace. "close" ends the session, "restart" all sessions.
func echo(t testing.TB, o Options, with ...func(net.Listener) net.Listener) *rig {
	t.Helper()
	r := &rig{t: t, options: o, left: map[*Socket]Reason{}, inside: map[*Socket]int{}}
	r.server = r.newServer()
	r.serving.Store(r.server)
	r.listens = sockettest.Listen(t)
	l := net.Listener(smallListener{r.listens})
	for _, f := range with {
		l = f(l)
	}
	r.address = l.Addr().String()
	handle := func(ctx *fasthttp.RequestCtx) { r.serving.Load().Handle(ctx) }
	web := &fasthttp.Server{Handler: handle, KeepHijackedConns: true, MaxRequestBodySize: 4 << 20,
		NoDefaultContentType: true, Logger: quiet{}, ReadTimeout: patience, WriteTimeout: patience,
		IdleTimeout: patience, MaxIdleWorkerDuration: time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		web.Serve(l) //nolint:errcheck // ends with the listener
	}()
	r.dialer.NetDial = func(string, string) (net.Conn, error) { return r.listens.Dial() }
	transport := &http.Transport{MaxIdleConnsPerHost: 100,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return r.listens.Dial()
		}}
	r.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		r.restarts.Wait()
		r.serving.Load().Shutdown()
		transport.CloseIdleConnections()
		l.Close()
		<-served
		r.check()
		time.Sleep(web.MaxIdleWorkerDuration) // the HTTP server's own goroutines end
	})
	return r
}

// newServer returns a server with the namespaces.
func (r *rig) newServer() *Server {
	server := New(r.options)
	hooks := Namespace{Connect: r.connect, Event: r.event, Disconnect: r.disconnect}
	server.Namespace("/", hooks)
	server.Namespace("/custom", hooks)
	server.Namespace("/silent", Namespace{})
	admin := hooks
	admin.Connect = func(s *Socket, auth json.RawMessage) error {
		var a struct{ Token string }
		switch {
		case auth == nil:
			return errors.New("who is there?")
		case json.Unmarshal(auth, &a) != nil || a.Token != "secret":
			return &refusal{message: "not you", data: map[string]int{"status": 7}}
		}
		return r.connect(s, auth)
	}
	server.Namespace("/admin", admin)
	return server
}

// restart replaces the serving server with a new one.
func (r *rig) restart() {
	old := r.serving.Swap(r.newServer())
	old.Shutdown()
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// check wants every socket that joined to have left.
func (r *rig) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != "" {
		r.t.Error(r.failure)
	}
	if len(r.left) != len(r.joined) {
		r.t.Errorf("%d joined, %d left", len(r.joined), len(r.left))
	}
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) != 0 || len(s.addresses) != 0 || s.tasks.n != 0 {
		r.t.Errorf("%d sessions, %d addresses, %d tasks are left", len(s.sessions),
			len(s.addresses), s.tasks.n)
	}
	for i, x := range s.wheel.slots {
		if x != nil {
			r.t.Errorf("a session is left in slot %d of the wheel", i)
		}
	}
}

// hook marks that a hook of a socket runs, for they run one at a time.
func (r *rig) hook(s *Socket) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside[s]++; r.inside[s] > 1 {
		r.failure = "two hooks of one socket run at once"
	}
	if _, ok := r.left[s]; ok {
		r.failure = "a hook runs after Disconnect"
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.inside[s]--
	}
}

func (r *rig) connect(s *Socket, auth json.RawMessage) error {
	defer r.hook(s)()
	s.SetData("data of " + s.id)
	if auth == nil {
		auth = json.RawMessage("{}")
	}
	if err := s.emit("auth", auth); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joined = append(r.joined, s)
	return nil
}

// arguments returns an event's arguments, with the attachments in their places.
func arguments(e *Event) []any {
	list := []any{}
	for i, a := range e.Args {
		if b, ok := e.attachment(i); ok {
			list = append(list, b)
		} else {
			list = append(list, a)
		}
	}
	return list
}

func (r *rig) event(s *Socket, e *Event) {
	defer r.hook(s)()
	if s.Data() != "data of "+s.id {
		r.mu.Lock()
		r.failure = fmt.Sprint("the owner's data are ", s.Data())
		r.mu.Unlock()
	}
	switch e.Name {
	case "message":
		s.emit("message-back", arguments(e)...) //nolint:errcheck // the client may be gone
	case "message-with-ack":
		if e.WantsAck() {
			e.Ack(arguments(e)...) //nolint:errcheck
		}
	case "leave":
		s.disconnect()
	case "close":
		s.Close(ServerClose)
	case "restart":
		r.restarts.Go(r.restart) // a hook must not wait for itself
	default:
		s.emit(e.Name+"-back", arguments(e)...) //nolint:errcheck
	}
}

func (r *rig) disconnect(s *Socket, reason Reason) {
	defer r.hook(s)()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.left[s]; ok {
		r.failure = "Disconnect runs twice"
	}
	r.left[s] = reason
}

// reasons returns why the sockets left, in the order of joining; "" for a socket that has not left.
func (r *rig) reasons() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.joined {
		text := ""
		if reason, ok := r.left[s]; ok {
			text = reason.String()
		}
		list = append(list, text)
	}
	return list
}

// socket waits for the socket that joined at a place, and is it.
func (r *rig) socket(n int) (s *Socket) {
	r.t.Helper()
	eventually(r.t, fmt.Sprint("socket ", n, " joins"), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.joined) > n {
			s = r.joined[n]
		}
		return s != nil && func() bool {
			s.session.mu.Lock()
			defer s.session.mu.Unlock()
			return s.state != connecting
		}()
	})
	return s
}

// closed waits until a number of sessions were closed for a reason.
func (r *rig) closed(reason Reason, n int) {
	r.t.Helper()
	eventually(r.t, fmt.Sprint(n, " sessions closed by ", reason), func() bool {
		return r.server.Stats().Closed[reason] == uint64(n)
	})
}

func (r *rig) url(query string) string { return "http://" + r.address + "/socket.io/?" + query }

// An answer is one to a request.
type answer struct {
	status int
	body   string
	header http.Header
}

func (r *rig) do(method, query, body string, header ...string) answer {
	r.t.Helper()
	return must(r.try(method, query, body, header...))
}

func (r *rig) try(method, query, body string, header ...string) (answer, error) {
	q, err := http.NewRequest(method, r.url(query), strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	p, err := r.client.Do(q)
	if err != nil {
		return answer{}, err
	}
	defer p.Body.Close()
	b, err := io.ReadAll(p.Body)
	return answer{p.StatusCode, string(b), p.Header}, err
}

// An opening is the server's answer to a handshake.
type opening struct {
	Sid                                   string
	Upgrades                              []string
	PingInterval, PingTimeout, MaxPayload int
}

func (r *rig) opening(packet string) (o opening) {
	r.t.Helper()
	if packet == "" || packet[0] != '0' || json.Unmarshal([]byte(packet[1:]), &o) != nil ||
		len(o.Sid) < 20 {
		r.t.Fatalf("the first packet is %q", packet)
	}
	return o
}

// A polling client.
type polling struct {
	*rig
	sid string
}

// polling opens a session on polling.
func (r *rig) polling() polling {
	r.t.Helper()
	a := r.do("GET", "EIO=4&transport=polling", "")
	if a.status != 200 {
		r.t.Fatalf("handshake: %d %s", a.status, a.body)
	}
	return polling{r, r.opening(a.body).Sid}
}

func (p polling) query() string { return "EIO=4&transport=polling&sid=" + p.sid }

func (p polling) get() answer             { p.t.Helper(); return p.do("GET", p.query(), "") }
func (p polling) post(body string) answer { p.t.Helper(); return p.do("POST", p.query(), body) }

// hold sends a GET that is not answered yet.
func (p polling) hold() <-chan answer {
	p.t.Helper()
	c := make(chan answer, 1)
	go func() {
		a, _ := p.try("GET", p.query(), "")
		c <- a
	}()
	x := p.server.find([]byte(p.sid))
	eventually(p.t, "a poll is held", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.poll != nil && !x.poll.released
	})
	return c
}

func (p polling) sent(body string) {
	p.t.Helper()
	if a := p.post(body); a.status != 200 || a.body != "ok" {
		p.t.Fatalf("POST %q: %d %s", body, a.status, a.body)
	}
}

// gone expects the session to be unknown.
func (p polling) gone() {
	p.t.Helper()
	eventually(p.t, "the session is gone", func() bool {
		return p.server.find([]byte(p.sid)) == nil
	})
	for _, a := range []answer{p.get(), p.post("3")} {
		if a.status != 400 || a.body != `{"code":1,"message":"Session ID unknown"}` {
			p.t.Fatalf("a closed session answers %d %s", a.status, a.body)
		}
	}
}

// leaves closes the session, like a client with a poll in flight.
func (p polling) leaves() {
	p.t.Helper()
	p.sent("1")
	if a := p.get(); a.status != 200 || a.body != "6" {
		p.t.Fatalf("the poll that crossed the close: %d %q", a.status, a.body)
	}
	p.gone()
}

// join lets a client into the main namespace.
func (p polling) join() {
	p.t.Helper()
	p.sent("40")
	if a := p.get(); !strings.HasPrefix(a.body, `40{"sid":"`) ||
		!strings.HasSuffix(a.body, "\x1e"+`42["auth",{}]`) {
		p.t.Fatalf("joining: %q", a.body)
	}
}

// A socket is a websocket client.
type socket struct {
	*websocket.Conn
	rig *rig
}

// wire opens a connection, without sending anything.
func (r *rig) wire() *sockettest.Conn {
	r.t.Helper()
	return must(r.listens.Dial())
}

func (r *rig) dial(query string) socket {
	r.t.Helper()
	c, p, err := r.dialer.Dial("ws"+r.url(query)[4:], nil)
	if err != nil {
		status := 0
		if p != nil {
			status = p.StatusCode
		}
		r.t.Fatalf("%v, %d", err, status)
	}
	r.t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(patience))
	return socket{c, r}
}

// open opens a session on a websocket.
func (r *rig) open() (socket, opening) {
	r.t.Helper()
	c := r.dial("EIO=4&transport=websocket")
	return c, r.opening(c.text())
}

// ws returns a session on a websocket that has joined the main namespace.
func (r *rig) ws() socket {
	r.t.Helper()
	c, _ := r.open()
	c.join()
	return c
}

func (c socket) join() {
	c.rig.t.Helper()
	c.send("40")
	if s := c.text(); !strings.HasPrefix(s, `40{"sid":"`) {
		c.rig.t.Fatalf("joining: %q", s)
	}
	c.want(`42["auth",{}]`)
}

func (c socket) send(text string) {
	c.rig.t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.rig.t.Fatal(err)
	}
}

func (c socket) sendBinary(b string) {
	c.rig.t.Helper()
	if err := c.WriteMessage(websocket.BinaryMessage, []byte(b)); err != nil {
		c.rig.t.Fatal(err)
	}
}

// text returns the next message, which is text.
func (c socket) text() string {
	c.rig.t.Helper()
	kind, b, err := c.ReadMessage()
	if err != nil || kind != websocket.TextMessage {
		c.rig.t.Fatalf("no text but %d %q, %v", kind, b, err)
	}
	return string(b)
}

func (c socket) want(text string) {
	c.rig.t.Helper()
	if s := c.text(); s != text {
		c.rig.t.Fatalf("got %q, want %q", s, text)
	}
}

func (c socket) wantBinary(text string) {
	c.rig.t.Helper()
	kind, b, err := c.ReadMessage()
	if err != nil || kind != websocket.BinaryMessage || string(b) != text {
		c.rig.t.Fatalf("got %d %q, %v", kind, b, err)
	}
}

// closedWith reads until the websocket is closed, and wants a code; 0: a connection that ends
// without.
func (c socket) closedWith(code int) {
	c.rig.t.Helper()
	for {
		_, _, err := c.ReadMessage()
		var closed *websocket.CloseError
		switch {
		case err == nil:
			continue
		case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
			if closed.Code != code {
				c.rig.t.Fatalf("closed with %d, want %d", closed.Code, code)
			}
		case code != 0:
			c.rig.t.Fatalf("%v, want a close with %d", err, code)
		}
		return
	}
}

// masked returns a frame of a client with a mask of zeros.
func masked(kind byte, payload string) []byte {
	b := appendHeader(nil, kind, len(payload))
	b[1] |= 0x80
	return append(append(b, 0, 0, 0, 0), payload...)
}

// raw writes bytes as they are.
func (c socket) raw(b ...[]byte) {
	c.rig.t.Helper()
	var all []byte
	for _, x := range b {
		all = append(all, x...)
	}
	if _, err := c.NetConn().Write(all); err != nil {
		c.rig.t.Fatal(err)
	}
}

// must returns what came without an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// worked ends the test at an error.
func worked(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
