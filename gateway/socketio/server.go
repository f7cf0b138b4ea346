package socketio

import (
	"crypto/rand"
	"encoding/base64"
	"net/netip"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"exchange/gateway/ratelimit"
)

// A Server owns the sessions of one path and their goroutines: one for timers, one reader per
// websocket, one writer per client with queued frames, and short ones that end sessions. Shutdown
// ends them all.
type Server struct {
	opts       Options
	node       string // prefix of session ids
	namespaces map[string]*Namespace
	started    time.Time
	upgrader   websocket.Upgrader
	wheel      *wheel
	tasks      tasks
	counters   counters
	crossings  crossings
	stop       chan struct{} // closed by Shutdown

	mu        sync.RWMutex // may be taken while a session's lock is held, not the other way
	down      bool         // after Shutdown
	running   bool         // the wheel runs, from the first session on
	sessions  map[string]*session
	addresses map[netip.Addr]int // number of sessions of each, as ratelimit.Network has it
}

// New makes a server. It starts nothing before the first session.
func New(o Options) *Server {
	s := &Server{opts: o.withDefaults(), namespaces: map[string]*Namespace{}, started: time.Now(),
		upgrader: newUpgrader(),
		stop:     make(chan struct{}), sessions: map[string]*session{},
		addresses: map[netip.Addr]int{}}
	s.wheel = newWheel(&s.opts)
	if o.Node != "" {
		s.node = o.Node + "."
	}
	return s
}

// Namespace sets the hooks of a namespace, before the first Handle. The main namespace is "/".
func (s *Server) Namespace(name string, n Namespace) { s.namespaces[name] = &n }

// now returns the time of the package's clock: nanoseconds since the start, at least 1.
func (s *Server) now() int64 { return int64(time.Since(s.started)) + 1 }

// open makes a session, or returns the failure. A nil link is polling.
func (s *Server) open(address netip.Addr, path string, l *link) (*session, failure) {
	x := &session{server: s, id: s.node + newID(), address: address, path: path, opened: s.now(),
		in: make(turn, 1)}
	x.pingAt = x.opened + int64(s.opts.PingInterval)
	x.connectBy = x.opened + int64(s.opts.ConnectTimeout)
	s.mu.Lock()
	defer s.mu.Unlock()
	network := ratelimit.Network(address)
	if f := s.full(network); f != none {
		return nil, f
	}
	// The session is not in the map yet, so no other goroutine has it, and its end waits for mu.
	if l != nil {
		x.attach(l)
		x.out.push(Delivery{Frames: appendFrame(l.reply, textFrame, x.openPacket(false))})
		x.progress, l.reply, l.session = x.opened, nil, x
	}
	if !s.running {
		s.running = true
		s.tasks.start(func() { s.wheel.run(s.now, s.stop) })
	}
	s.tasks.add() // until the session is removed and its Disconnect hooks have run
	s.sessions[x.id] = x
	s.addresses[network]++
	s.counters.handshakes.Add(1)
	s.wheel.set(x, min(x.pingAt, x.connectBy))
	return x, none
}

// full returns the failure of one more session from an address, or none. mu is held.
func (s *Server) full(address netip.Addr) failure {
	switch o := &s.opts; {
	case s.down:
		return shuttingDown
	case o.Connections > 0 && len(s.sessions) >= o.Connections:
		return tooManySessions
	case o.ConnectionsPerAddress > 0 && s.addresses[address] >= o.ConnectionsPerAddress:
		return tooManyOfAddress
	}
	return none
}

// find returns the session with an id, nil if there is none.
func (s *Server) find(id []byte) *session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sessions[string(id)]
}

// all returns the sessions of this moment.
func (s *Server) all() []*session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.list()
}

// list does the same as all, with mu held.
func (s *Server) list() []*session {
	list := make([]*session, 0, len(s.sessions))
	for _, x := range s.sessions {
		list = append(list, x)
	}
	return list
}

// forget removes an ended session, and calls its Disconnect hooks.
func (s *Server) forget(x *session) {
	x.mu.Lock()
	s.mu.Lock()
	x.counted = true
	s.counters.writes.Add(x.writes)
	s.counters.bytesOut.Add(x.bytesOut)
	x.mu.Unlock()
	delete(s.sessions, x.id)
	network := ratelimit.Network(x.address)
	if n := s.addresses[network]; n > 1 {
		s.addresses[network] = n - 1
	} else {
		delete(s.addresses, network)
	}
	s.mu.Unlock()
	go func() {
		defer s.tasks.done()
		x.finish()
	}()
	s.wheel.unset(x)
	s.counters.closed[x.reason].Add(1)
	s.opts.Log.Debug("session closed", "reason", x.reason.String(), "address", x.address)
}

// Shutdown refuses new sessions and closes all others: websockets with code 1001, polls with a
// close packet. Clients see a lost connection, and reconnect by themselves. It returns after every
// session's Disconnect, so a hook must not call it.
func (s *Server) Shutdown() {
	s.mu.Lock()
	if !s.down {
		s.down = true
		close(s.stop)
	}
	s.mu.Unlock()
	for _, x := range s.all() {
		x.close(ServerShutdown)
	}
	s.tasks.wait()
}

// tasks counts the sessions and goroutines for which Shutdown waits. Once the server is down, only
// a task adds another one.
type tasks struct {
	mu      sync.Mutex // innermost
	n       int
	waiting []chan struct{}
}

func (t *tasks) add() {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
}

func (t *tasks) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 {
		for _, c := range t.waiting {
			close(c)
		}
		t.waiting = nil
	}
}

// start runs f in a goroutine.
func (t *tasks) start(f func()) {
	t.add()
	go func() {
		defer t.done()
		f()
	}()
}

// wait returns when no task is left.
func (t *tasks) wait() {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return
	}
	c := make(chan struct{})
	t.waiting = append(t.waiting, c)
	t.mu.Unlock()
	<-c
}

// newID returns an unguessable id of 120 random bits.
func newID() string {
	var b [15]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// peer returns the address at the other end of a request's connection.
func peer(ctx *fasthttp.RequestCtx) netip.Addr {
	a, _ := netip.AddrFromSlice(ctx.RemoteIP())
	return a.Unmap()
}
