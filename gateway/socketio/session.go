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
//	in           packets of the client and the hooks they lead to, one at a time
//	mu           what goes out, the transport, what is due; never held while a hook runs
//	Server.mu    the map of sessions
//	tasks.mu, wheel.mu, crossings.mu   hold nothing else
//
// Whoever holds mu lets go of it by unlock, which does what is left to do when the session has
// ended.
type session struct {
	// What a delivery touches is together, from the end of Socket to the beginning of outbox: with
	// thousands of clients it is memory that takes the time.
	first    Socket // sockets[0] of the first namespace, if its session is set
	mu       sync.Mutex
	closed   atomic.Bool // set with mu held
	ending   bool        // closed, and the server does not know
	writing  bool        // the writer runs, and nobody else writes to the link
	aborted  bool        // the link is closed
	counted  bool        // the server has the two counts, and what comes is its own
	raw      rawWriter   // of link, if that has one
	writes   uint64      // as in Stats
	bytesOut uint64
	out      outbox

	link      *link // nil: the transport is polling
	reason    Reason
	progress  int64 // when the client last took something, or something began to wait
	candidate *link // a websocket that is to take the place of polling
	poll      *poll // a GET that is not answered yet
	posting   bool  // a POST is not answered yet
	held      bool  // its connection is needed

	excused bool // progress was set without any, since the last

	// When things are due; 0: not.
	pingAt, pongBy, connectBy, noopAt, partialBy int64

	in      sync.Mutex
	sockets []*Socket // those that are in a namespace, or were and are not told yet
	partial *partial  // a packet whose attachments are still to come

	nextFull atomic.Int64 // when the bucket of packets is full again, see take

	server  *Server
	id      string
	address netip.Addr // as it is counted
	path    string     // of the handshake
	opened  int64
	timer   timer // the wheel's
}

// A partial is a binary packet and the attachments of it that have arrived.
type partial struct {
	packet      packet
	attachments [][]byte
	bytes       int
}

// unlock lets go of mu.
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

// end ends the session. On a websocket what waits and then the close frame still go out, for a
// short time; without a frame the connection is closed at once. mu is held.
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
		x.link.Conn.SetReadDeadline(time.Now().Add(lingerTimeout)) //nolint:errcheck // its reader closes it
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

// abort closes the connection without a word. mu is held.
func (x *session) abort() {
	x.aborted = true
	x.out = outbox{}
	if x.reason == TransportClose {
		x.link.Conn.Close() //nolint:errcheck
	} else {
		x.link.abort()
	}
}

// finish tells every namespace that the session has ended, after its last event.
func (x *session) finish() {
	x.in.Lock()
	defer x.in.Unlock()
	for _, s := range x.sockets {
		x.leave(s, x.reason)
	}
	x.sockets, x.partial = nil, nil
}

// schedule asks the wheel for the next thing that is due. mu is held.
func (x *session) schedule() {
	if x.closed.Load() {
		return
	}
	next := int64(0)
	for _, at := range [...]int64{x.pingAt, x.pongBy, x.connectBy, x.noopAt, x.partialBy,
		x.stalledAt()} {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if next != 0 {
		x.server.wheel.set(x, next)
	}
}

// stalledAt is when a polling client will have left something lying for too long; 0: nothing waits.
// The writer of a websocket looks after its own. mu is held.
func (x *session) stalledAt() int64 {
	if x.link != nil || x.candidate != nil || x.out.empty() {
		return 0
	}
	return x.progress + int64(x.server.opts.StallTimeout)
}

var pingFrame = appendFrame(nil, textFrame, []byte{enginePing})

// wake does what is due. The wheel calls it.
func (x *session) wake() {
	now := x.server.now()
	due := func(at int64) bool { return at != 0 && at <= now }
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.closed.Load():
		return
	case due(x.pongBy):
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

// overdue ends a session whose pong did not come in time, before the wheel does, which may be late
// by a tick. mu is held.
func (x *session) overdue() {
	if x.pongBy != 0 && x.pongBy <= x.server.now() {
		x.endFor(PingTimeout)
	}
}

// pong is the answer to a ping. Nobody minds one too many.
func (x *session) pong() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pongBy != 0 {
		x.pongBy, x.pingAt = 0, x.server.now()+int64(x.server.opts.PingInterval)
		x.schedule()
	}
}

// take counts what the client has sent, and is false of what is too much.
func (x *session) take(packets, bytes int) bool {
	o := &x.server.opts
	if o.MessagesPerSecond < 0 {
		return true
	}
	interval := o.interval()
	return x.spend(interval*int64(packets) +
		interval*int64(bytes)/int64(max(4<<10, 2*o.MaxPayload/o.MessagesBurst)))
}

// spend is take of nanoseconds. nextFull is when the bucket will be full again: each packet moves
// it by the time that one packet has, and it may be as far ahead as the whole bucket.
func (x *session) spend(cost int64) bool {
	o := &x.server.opts
	interval, now := o.interval(), x.server.now()
	for {
		before := x.nextFull.Load()
		full := max(before, now) + cost
		// the half is for the bytes of small packets
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
	p, err := decode(text, x.server.opts.Arguments)
	if err != nil || p.attachments > x.server.opts.Attachments {
		return errPacket
	}
	if p.attachments > 0 {
		if x.socket(p.namespace) == nil { // strangers have nothing kept for them
			return errPacket
		}
		x.await(&partial{packet: p})
		return nil
	}
	return x.dispatch(p, nil)
}

// await keeps a packet until its attachments have come, nil: no more. in is held.
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
	if a.bytes += len(b); a.bytes > x.server.opts.AttachmentBytes {
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
		// What a client says while it is being put out of the namespace is nobody's.
		if hook := s.hooks.Event; hook != nil && x.inside(s) {
			return x.guard("a hook", func() {
				hook(s, &Event{Name: p.name, Args: p.args, Attachments: attachments, socket: s,
					id: p.id})
			})
		}
	}
	return nil // we ask for no acknowledgements: one that comes is for nobody
}

// socket is the one of a namespace, nil if the client is not in it. in is held.
func (x *session) socket(namespace string) *Socket {
	for _, s := range x.sockets {
		if s.namespace == namespace {
			return s
		}
	}
	return nil
}

// remove is for one that was told. in is held.
func (x *session) remove(s *Socket) {
	for i, y := range x.sockets {
		if y == s {
			x.sockets = append(x.sockets[:i], x.sockets[i+1:]...)
			return
		}
	}
}

// inside is true of a socket that is in its namespace.
func (x *session) inside(s *Socket) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return s.state == joined && !x.closed.Load()
}

// connect lets the client into a namespace, or tells it why not. in is held.
func (x *session) connect(p packet) error {
	hooks, ok := x.server.namespaces[p.namespace]
	if !ok {
		return x.refuse(p.namespace, &Refusal{Message: "Invalid namespace"})
	}
	s := &x.first
	if s.session != nil {
		s = &Socket{}
	}
	s.session, s.hooks, s.namespace, s.id = x, hooks, p.namespace, newID()
	if hooks.Connect != nil {
		refused := error(&Refusal{Message: "internal error"})
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
		s.Disconnect()
	}
	return nil
}

// admit tells the client that it is in, and then what it was sent meanwhile. It may be that it is
// to leave at once.
func (x *session) admit(s *Socket, answer []byte) (leaves bool) {
	x.mu.Lock()
	defer x.unlock()
	early, leaves := s.early, s.state == leaving
	s.state, s.early, x.connectBy = joined, nil, 0
	if !x.closed.Load() && x.say(answer) && len(early) > 0 {
		if dropped, ok := x.send(early, nil); ok && len(dropped) > 0 {
			x.endFor(SlowClient) // nobody is there to hear what was dropped
		}
	}
	return leaves
}

// refuse answers that the client may not be in a namespace.
func (x *session) refuse(namespace string, why error) error {
	answer, err := refusal(namespace, why)
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

// leave takes a socket out of its namespace and tells the owner, once. in is held.
func (x *session) leave(s *Socket, r Reason) {
	x.mu.Lock()
	told := s.told
	s.told, s.state = true, gone
	x.mu.Unlock()
	if !told && s.hooks.Disconnect != nil {
		x.guard("a hook", func() { s.hooks.Disconnect(s, r) }) //nolint:errcheck // it is out already
	}
}

// guard runs a hook, or whatever else belongs to this session alone. What panics has failed a
// single client: the error ends its session, and it is not the process that is in doubt. So whoever
// holds mu in it lets go of it by defer.
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

// handle runs what handles packets, one at a time. in is taken for it.
func (x *session) handle(f func() error) error {
	var err error
	failed := x.guard("the handling of a packet", func() {
		x.in.Lock()
		defer x.in.Unlock()
		err = f()
	})
	return cmp.Or(failed, err)
}

// reasonOf is why an error ends a session. One that is no violation is a fault of ours.
func reasonOf(err error) Reason {
	if v, ok := err.(violation); ok {
		return Reason(v)
	}
	return ServerClose
}
