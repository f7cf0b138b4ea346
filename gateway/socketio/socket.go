package socketio

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
)

// A Namespace contains the hooks of one namespace. A nil hook does nothing. The hooks of one
// session are called one at a time; while one runs, the client's next packets wait.
type Namespace struct {
	// Connect is called when a client wants to join; auth is nil if it sent none. An error refuses
	// the client, with the error's text as message, and a *refusal with its data. Deliveries to the
	// socket during Connect are sent after the confirmation of the join.
	Connect func(s *Socket, auth json.RawMessage) error
	// Event gets the client's events in their order.
	Event func(s *Socket, e *Event)
	// Disconnect is called once after a Connect that succeeded, after the last Event. The socket
	// sends nothing after it.
	Disconnect func(s *Socket, reason Reason)
}

// A refusal is an error of Connect with data for the client, sent as JSON.
type refusal struct {
	message string
	data    any
}

func (r *refusal) Error() string { return r.message }

// refusalPacket returns the packet for an error of Connect.
func refusalPacket(namespace string, why error) ([]byte, error) {
	payload := struct {
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{Message: why.Error()}
	var r *refusal
	if errors.As(why, &r) {
		payload.Message, payload.Data = r.message, r.data
	}
	b, err := control(typeConnectError, namespace, payload)
	if err != nil { // the data cannot become JSON
		payload.Data = nil
		b, err = control(typeConnectError, namespace, payload)
	}
	return b, err
}

// Errors of sending.
var (
	ErrGone  = errors.New("socketio: the socket is gone")
	errNoAck = errors.New("socketio: the client asked for no acknowledgement")
	errAcked = errors.New("socketio: the event is acknowledged already")
)

// An Event is an event from a client.
type Event struct {
	Name        string            // text of the name, which may be a number
	Args        []json.RawMessage // each is valid JSON
	attachments [][]byte          // binaries for placeholders in Args, see attachment

	socket *Socket
	id     int64
	acked  atomic.Bool
}

// attachment returns the binary that an argument stands for, if it is a placeholder.
func (e *Event) attachment(arg int) ([]byte, bool) {
	if arg < 0 || arg >= len(e.Args) {
		return nil, false
	}
	n, ok := placeholder(e.Args[arg])
	if !ok || n < 0 || n >= len(e.attachments) {
		return nil, false
	}
	return e.attachments[n], true
}

// WantsAck reports whether the client waits for an acknowledgement.
func (e *Event) WantsAck() bool { return e.id >= 0 }

// Ack acknowledges the event, once. Arguments of type []byte become attachments, others JSON. Any
// goroutine may call it, even after the hook has returned.
func (e *Event) Ack(args ...any) error {
	if e.id < 0 {
		return errNoAck
	}
	frames, err := encode(typeAck, e.socket.namespace, e.id, nil, args)
	if err != nil {
		return err
	}
	return e.ack(frames)
}

// AckJSON is Ack with one argument that is JSON already. Its bytes go out as they are.
func (e *Event) AckJSON(payload []byte) error {
	if e.id < 0 {
		return errNoAck
	}
	return e.ack(ackFrame(e.socket.namespace, e.id, payload))
}

func (e *Event) ack(frames []byte) error {
	if e.acked.Swap(true) {
		return errAcked
	}
	return e.socket.sendKeep(frames)
}

// AppendAck acknowledges the event with one argument in JSON, as it is. It appends the frame to
// dst, for Socket.Deliver, and nothing if the client waits for none or was given one. Any goroutine
// may call it, even after the hook has returned.
func (e *Event) AppendAck(dst, json []byte) []byte {
	if e.id < 0 || e.acked.Swap(true) {
		return dst
	}
	return append(dst, ackFrame(e.socket.namespace, e.id, json)...)
}

// A Socket is a client in one namespace. Any goroutine may use it.
type Socket struct {
	hooks     *Namespace
	namespace string
	// the client's Socket.IO id in this namespace: unguessable, and not the id of Engine.IO, which
	// is the session's password
	id           string
	data         atomic.Pointer[any]
	early        []Delivery // sent during Connect; session.mu guards it and the last two
	session      *session
	state        state
	disconnected bool // Disconnect was called, or is about to be
}

// A state is the relation of a socket to its namespace.
type state uint8

const (
	connecting state = iota // Connect has not returned
	leaving                 // the same, and the socket must leave at once
	joined
	gone
)

// ID returns the client's Socket.IO id, its socket.id. It may be shown to other clients: it is not
// the session's password.
func (s *Socket) ID() string { return s.id }

// Address returns the address of the client at its handshake, as Options.Address has it.
func (s *Socket) Address() netip.Addr { return s.session.address }

// Path returns the path of the client's handshake.
func (s *Socket) Path() string { return s.session.path }

// Hold notes whether the client's connection is needed for events. It calls Options.Hold with the
// websocket, now or when the client has one.
func (s *Socket) Hold(on bool) {
	x := s.session
	if x == nil { // the socket never connected
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.held = on; x.link != nil && !x.closed.Load() {
		x.server.opts.Hold(x.link.Conn, on)
	}
}

// Data returns the value of the last SetData, nil at first.
func (s *Socket) Data() any {
	if p := s.data.Load(); p != nil {
		return *p
	}
	return nil
}

// SetData keeps a value for the owner.
func (s *Socket) SetData(v any) { s.data.Store(&v) }

// emit sends an event to the client, with the policy Keep. Arguments of type []byte become
// attachments, others JSON. It does not block.
func (s *Socket) emit(name string, args ...any) error {
	frames, err := encode(typeEvent, s.namespace, -1, &name, args)
	if err != nil {
		return err
	}
	return s.sendKeep(frames)
}

func (s *Socket) sendKeep(frames []byte) error {
	x := s.session
	x.mu.Lock()
	defer x.unlock()
	ok := !x.closed.Load() && s.state != gone
	switch {
	case !ok:
	case s.state == joined:
		ok = x.say(frames)
	default:
		ok = s.hold([]Delivery{{Frames: frames}})
	}
	if !ok {
		return ErrGone
	}
	return nil
}

// Spend charges the owner's work for a packet to the client's rate of packets; the packet's hook
// calls it. Each of the parts costs one packet, or less, so that most parts, the maximum of one
// request, cost half of MessagesBurst. Beyond the rate it closes the session and returns false.
func (s *Socket) Spend(parts, most int) bool {
	x := s.session
	o := &x.server.opts
	if o.MessagesPerSecond < 0 || parts <= 0 {
		return true
	}
	asOne := max(1, (2*most+o.MessagesBurst-1)/o.MessagesBurst) // parts
	if x.spend(o.interval() * int64(parts) / int64(asOne)) {
		return true
	}
	x.close(TooManyMessages)
	return false
}

// GiveBack undoes the count of a packet of that many bytes, because its owner limits it otherwise.
// Any goroutine may call it, even after the packet's hook.
func (s *Socket) GiveBack(bytes int) {
	if o := &s.session.server.opts; o.MessagesPerSecond >= 0 {
		s.session.nextFull.Add(-o.cost(1, bytes))
	}
}

// Deliver sends frames to the client, in order. It does not keep list. If the queue is empty, it
// writes at once, with as few writes as possible and without an allocation. The rest is queued,
// each delivery by its policy. It never blocks.
//
// A delivery that does not fit into QueueBytes makes room first. All queued deliveries of every
// Resync tag are dropped, except lone snapshots (Shared). Those tags are appended to dropped, and
// their other deliveries in list are left out. The owner then sends the client a new Shared
// snapshot of each tag, and nothing else of the tag before. If that is not enough, the session is
// closed as SlowClient. ok is false if the socket is gone, for this or for another reason.
func (s *Socket) Deliver(list []Delivery, dropped []uint32) (_ []uint32, ok bool) {
	x := s.session
	x.mu.Lock()
	if x.closed.Load() || s.state == gone {
		x.mu.Unlock()
		return dropped, false
	}
	if s.state != joined {
		ok := s.hold(list)
		x.unlock()
		return dropped, ok
	}
	dropped, ok = x.send(list, dropped)
	x.unlock()
	return dropped, ok
}

// hold queues deliveries until Connect has returned.
func (s *Socket) hold(list []Delivery) bool {
	s.early = append(s.early, slices.Clone(list)...)
	size := 0
	for i := range s.early {
		size += cost(&s.early[i])
	}
	if size > s.session.server.opts.QueueBytes {
		s.session.endFor(SlowClient)
		return false
	}
	return true
}

// disconnect removes the client from the namespace, and notifies it. The session continues. The
// hook Disconnect is called a little later.
func (s *Socket) disconnect() {
	x := s.session
	bye, _ := control(typeDisconnect, s.namespace, nil) // without a payload it never fails
	x.mu.Lock()
	defer x.unlock()
	switch {
	case x.closed.Load() || s.state == gone || s.state == leaving:
	case s.state == connecting:
		s.state = leaving
	default:
		s.state = gone
		x.say(bye)
		x.server.tasks.start(func() {
			x.in.Lock()
			defer x.in.Unlock()
			x.leave(s, ServerDisconnect)
		})
	}
}

// Rest runs a function of a hook that waits for something other than the client. The heartbeat is
// suspended meanwhile: the server reads no pong, so the wait must not count as the client's
// silence. The caller bounds the wait.
func (s *Socket) Rest(wait func()) {
	x := s.session
	x.rest(true)
	defer x.rest(false)
	wait()
}

// Close ends the whole session, with all its namespaces. The hook Disconnect of each is called a
// little later. The first two reasons, which belong to one namespace, and unknown ones count as
// ServerClose.
func (s *Socket) Close(r Reason) {
	if r < ServerClose || r >= reasons {
		r = ServerClose
	}
	s.session.close(r)
}
