package socketio

import (
	"cmp"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// A session is one client, on either transport.
//
// Its locks, in the order in which they may be taken together:
//
//	in           packets of the client and their hooks, one at a time
//	mu           the queue, the transport, the due times; never held while a hook runs
//	Server.mu    the map of sessions
//	tasks.mu, wheel.mu, crossings.mu   hold nothing else
//
// A holder of mu releases it by unlock, which also completes the session's end.
type session struct {
	// The fields of a delivery are together, from the end of Socket to the beginning of outbox,
	// because with thousands of clients memory access dominates.
	first      Socket // sockets[0] of the first namespace, if its session is set
	mu         sync.Mutex
	closed     atomic.Bool // set with mu held
	ending     bool        // closed, and still in the server's map
	writerRuns bool        // the writer runs and alone writes to the link
	aborted    bool        // the link is closed
	counted    bool        // the two counts are added to the server's, as are later writes
	raw        rawWriter   // raw side of link, if it has one
	writes     uint64      // as in Stats
	bytesOut   uint64
	out        outbox

	link      *link // nil: the transport is polling
	reason    Reason
	progress  int64 // when the client last read, or the queue became non-empty
	candidate *link // the websocket of an upgrade in progress
	poll      *poll // an unanswered GET
	posting   bool  // a POST is unanswered
	held      bool  // the owner needs the connection

	resting bool // a hook waits for something else, and no pong is read
	excused bool // progress was reset once for a failed upgrade

	// Times at which something is due; 0: never.
	pingAt, pongBy, connectBy, noopAt, partialBy int64

	in      turn
	sockets []*Socket // in a namespace, or before their Disconnect hook has run
	partial *partial  // a packet whose attachments are missing

	nextFull atomic.Int64 // when the bucket of packets is full again, see take

	server  *Server
	id      string
	address netip.Addr // of the handshake's client
	path    string     // of the handshake
	opened  int64
	timer   timer // belongs to the wheel
}

// A turn is a mutex that may be held while waiting, as by a hook.
type turn chan struct{}

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

// A partial is a binary packet and those of its attachments that have arrived.
type partial struct {
	packet      packet
	attachments [][]byte
	bytes       int
}

// unlock releases mu, and removes an ended session from the server.
func (x *session) unlock() {
	ending := x.ending
	x.ending = false
	x.mu.Unlock()
	if ending {
		x.server.forget(x)
	}
}

// close ends the session, if it has not ended.
func (x *session) close(r Reason) {
	x.mu.Lock()
	x.endFor(r)
	x.unlock()
}

// endFor ends the session with the close frame of a reason. mu is held.
func (x *session) endFor(r Reason) {
	var frame []byte
	if code := reasonTable[r].code; code != 0 {
		frame = appendClose(nil, code)
	}
	x.end(r, frame)
}

// end ends the session. On a websocket the queued deliveries and the close frame are still sent,
// within lingerTimeout. Without a frame the connection is closed at once. mu is held.
func (x *session) end(r Reason, frame []byte) {
	if x.closed.Load() {
		return
	}
	x.reason, x.ending = r, true
	if x.candidate != nil {
		x.candidate.Conn.Close() //nolint:errcheck
	}
	x.closed.Store(true)
	switch {
	case x.link == nil:
		x.release()
	case frame == nil:
		x.abort()
	default:
		until := time.Now().Add(lingerTimeout)
		x.link.Conn.SetReadDeadline(until) //nolint:errcheck // the reader closes it
		list, err := x.writeNow([]Delivery{{Frames: frame}})
		if err != nil {
			x.abort()
			return
		}
		for _, d := range list {
			x.out.push(d)
		}
		x.flush()
	}
}

// abort closes the connection without a close frame. mu is held.
func (x *session) abort() {
	x.aborted = true
	x.out = outbox{}
	if x.reason == TransportClose {
		x.link.Conn.Close() //nolint:errcheck
	} else {
		x.link.abort()
	}
}

// finish calls the Disconnect hook of every namespace, after its last event.
func (x *session) finish() {
	x.in.Lock()
	defer x.in.Unlock()
	for _, s := range x.sockets {
		x.leave(s, x.reason)
	}
	x.sockets, x.partial = nil, nil
}

// schedule sets the wheel to the next due time. mu is held.
func (x *session) schedule() {
	if x.closed.Load() {
		return
	}
	next := int64(0)
	pongBy := x.pongBy
	if x.resting {
		pongBy = 0
	}
	for _, at := range [...]int64{x.pingAt, pongBy, x.connectBy, x.noopAt, x.partialBy,
		x.stalledAt()} {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if next != 0 {
		x.server.wheel.set(x, next)
	}
}

// stalledAt returns the time at which a polling client has stalled; 0: nothing waits for it. The
// writer of a websocket watches its own deadline. mu is held.
func (x *session) stalledAt() int64 {
	if x.link != nil || x.candidate != nil || x.out.empty() {
		return 0
	}
	return x.progress + int64(x.server.opts.StallTimeout)
}

var pingFrame = appendFrame(nil, textFrame, []byte{enginePing})

// wake handles everything due. The wheel calls it.
func (x *session) wake() {
	now := x.server.now()
	due := func(at int64) bool { return at != 0 && at <= now }
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.closed.Load():
		return
	case due(x.pongBy) && !x.resting:
		x.endFor(PingTimeout)
	case due(x.connectBy):
		x.endFor(ConnectTimeout)
	case due(x.partialBy):
		x.endFor(ParseError)
	case due(x.stalledAt()):
		x.endFor(StalledClient)
	}
	if !x.closed.Load() && due(x.pingAt) {
		// a late ping moves no deadline
		x.pingAt, x.pongBy = 0, x.pingAt+int64(x.server.opts.PingTimeout)
		x.say(pingFrame)
	}
	if due(x.noopAt) {
		x.noopAt = now + int64(x.server.opts.noopInterval)
		x.release()
	}
	x.schedule()
}

// overdue ends a session whose pong did not come in time. The wheel does so too, but may be late by
// a tick. mu is held.
func (x *session) overdue() {
	if x.pongBy != 0 && !x.resting && x.pongBy <= x.server.now() {
		x.endFor(PingTimeout)
	}
}

// pong handles the answer to a ping. A pong without a ping does nothing.
func (x *session) pong() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pongBy != 0 {
		x.pongBy, x.pingAt = 0, x.server.now()+int64(x.server.opts.PingInterval)
		x.schedule()
	}
}

// rest stops the wait for a pong, or restarts it.
func (x *session) rest(on bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.resting = on; x.pongBy != 0 && !on {
		x.pongBy = x.server.now() + int64(x.server.opts.PingTimeout)
		x.schedule()
	}
}

// take counts packets and bytes from the client. It returns false if that is too much.
func (x *session) take(packets, bytes int) bool {
	o := &x.server.opts
	if o.MessagesPerSecond < 0 {
		return true
	}
	return x.spend(o.cost(packets, bytes))
}

// spend takes nanoseconds from the client's bucket, and returns false if it has too few. nextFull
// is the time at which the bucket will be full again. Each packet moves it by one packet's time,
// and it may be as far ahead as the whole bucket.
func (x *session) spend(cost int64) bool {
	o := &x.server.opts
	interval, now := o.interval(), x.server.now()
	for {
		before := x.nextFull.Load()
		full := max(before, now) + cost
		// half a packet more, for the bytes of small packets
		if full-now > interval*int64(o.MessagesBurst)+interval/2 {
			return false
		}
		if x.nextFull.CompareAndSwap(before, full) {
			return true
		}
	}
}

// packet handles a packet of the client. An error ends the session. in is held.
func (x *session) packet(p enginePacket) error {
	if x.closed.Load() {
		return nil
	}
	x.server.counters.packetsIn.Add(1)
	x.server.counters.bytesIn.Add(uint64(len(p.data)))
	switch {
	case !x.take(1, 0):
		return violation(TooManyMessages)
	case p.binary:
		return x.attachment(p.data)
	case len(p.data) == 0:
		return errPacket
	}
	switch p.data[0] {
	case engineMessage:
		return x.message(p.data[1:])
	case enginePong:
		x.pong()
	case engineClose:
		return violation(ClientClose)
	case engineNoop:
	default:
		return errPacket
	}
	return nil
}

// message handles a Socket.IO packet. in is held.
func (x *session) message(text []byte) error {
	if x.partial != nil {
		return errPacket
	}
	p, err := decode(text, x.server.opts.arguments)
	if err != nil || p.attachments > x.server.opts.attachments {
		return errPacket
	}
	if p.attachments > 0 {
		if x.socket(p.namespace) == nil { // nothing is kept for a client outside the namespace
			return errPacket
		}
		x.await(&partial{packet: p})
		return nil
	}
	return x.dispatch(p, nil)
}

// await keeps a packet until its attachments have come; nil ends the wait. in is held.
func (x *session) await(p *partial) {
	x.partial = p
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.partialBy = 0; p != nil {
		x.partialBy = x.server.now() + int64(x.server.opts.StallTimeout)
		x.schedule()
	}
}

// attachment handles a binary message. in is held.
func (x *session) attachment(b []byte) error {
	a := x.partial
	if a == nil {
		return errPacket
	}
	if a.bytes += len(b); a.bytes > x.server.opts.attachmentBytes {
		return violation(PayloadTooLarge)
	}
	if a.attachments = append(a.attachments, b); len(a.attachments) < a.packet.attachments {
		return nil
	}
	x.await(nil)
	return x.dispatch(a.packet, a.attachments)
}

// dispatch handles a whole Socket.IO packet. in is held.
func (x *session) dispatch(p packet, attachments [][]byte) error {
	s := x.socket(p.namespace)
	if p.kind == typeConnect {
		if s != nil {
			if x.inside(s) {
				return errPacket
			}
			x.leave(s, ServerDisconnect)
			x.remove(s)
		}
		return x.connect(p)
	}
	if s == nil {
		return errPacket
	}
	switch p.kind {
	case typeDisconnect:
		x.leave(s, ClientDisconnect)
		x.remove(s)
	case typeEvent, typeBinaryEvent:
		// An event during a disconnect from the namespace is dropped.
		if hook := s.hooks.Event; hook != nil && x.inside(s) {
			return x.guard("a hook", func() {
				hook(s, &Event{Name: p.name, Args: p.args, attachments: attachments, socket: s,
					id: p.id})
			})
		}
	}
	return nil // the server asks for no acknowledgements, and ignores them
}

// socket returns the socket of a namespace, nil if the client is not in it. in is held.
func (x *session) socket(namespace string) *Socket {
	for _, s := range x.sockets {
		if s.namespace == namespace {
			return s
		}
	}
	return nil
}

// remove removes a socket after its Disconnect hook. in is held.
func (x *session) remove(s *Socket) {
	for i, y := range x.sockets {
		if y == s {
			x.sockets = append(x.sockets[:i], x.sockets[i+1:]...)
			return
		}
	}
}

// inside reports whether a socket is in its namespace.
func (x *session) inside(s *Socket) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return s.state == joined && !x.closed.Load()
}

// connect admits the client to a namespace, or answers with the refusal. in is held.
func (x *session) connect(p packet) error {
	hooks, ok := x.server.namespaces[p.namespace]
	if !ok {
		return x.refuse(p.namespace, &refusal{message: "Invalid namespace"})
	}
	s := &x.first
	if s.session != nil {
		s = &Socket{}
	}
	s.session, s.hooks, s.namespace, s.id = x, hooks, p.namespace, newID()
	if hooks.Connect != nil {
		refused := error(&refusal{message: "internal error"})
		failed := x.guard("a hook", func() { refused = hooks.Connect(s, p.auth) })
		if refused != nil {
			x.mu.Lock()
			s.state, s.early = gone, nil
			x.mu.Unlock()
			if err := x.refuse(p.namespace, refused); err != nil {
				return err
			}
			return failed
		}
	}
	x.sockets = append(x.sockets, s)
	answer, err := control(typeConnect, p.namespace, struct {
		ID string `json:"sid"`
	}{s.id})
	if err != nil {
		return err
	}
	if x.admit(s, answer) {
		s.disconnect()
	}
	return nil
}

// admit confirms the join to the client, and then sends the deliveries made during Connect. It
// returns true if the client must leave at once.
func (x *session) admit(s *Socket, answer []byte) (leaves bool) {
	x.mu.Lock()
	defer x.unlock()
	early, leaves := s.early, s.state == leaving
	s.state, s.early, x.connectBy = joined, nil, 0
	if !x.closed.Load() && x.say(answer) && len(early) > 0 {
		if dropped, ok := x.send(early, nil); ok && len(dropped) > 0 {
			x.endFor(SlowClient) // no owner can receive the dropped tags
		}
	}
	return leaves
}

// refuse answers that the client may not join a namespace.
func (x *session) refuse(namespace string, why error) error {
	answer, err := refusalPacket(namespace, why)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.unlock()
	if !x.closed.Load() {
		x.say(answer)
	}
	return nil
}

// leave removes a socket from its namespace and calls Disconnect, once. in is held.
func (x *session) leave(s *Socket, r Reason) {
	x.mu.Lock()
	called := s.disconnected
	s.disconnected, s.state = true, gone
	x.mu.Unlock()
	if !called && s.hooks.Disconnect != nil {
		//nolint:errcheck // the socket is out already
		x.guard("a hook", func() { s.hooks.Disconnect(s, r) })
	}
}

// guard runs a hook, or other code of this session alone. A panic affects a single client: the
// returned error ends its session, and the process continues. So f releases mu by defer.
func (x *session) guard(what string, f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			x.server.opts.Log.Error(what+" panicked", "panic", p, "address", x.address, "stack",
				string(debug.Stack()))
			err = violation(ServerClose)
		}
	}()
	f()
	return nil
}

// handle runs f, which handles packets, one at a time. It takes in.
func (x *session) handle(f func() error) error {
	var err error
	failed := x.guard("the handling of a packet", func() {
		x.in.Lock()
		defer x.in.Unlock()
		err = f()
	})
	return cmp.Or(failed, err)
}

// reasonOf returns the reason for an error that ends a session. An error that is no violation is a
// fault of the server.
func reasonOf(err error) Reason {
	if v, ok := err.(violation); ok {
		return Reason(v)
	}
	return ServerClose
}
