package socketio

import (
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
)

// A Namespace is the hooks of one namespace. A hook that is nil does nothing. Those of one session
// are called one at a time; while one runs, the client's next packets wait.
type Namespace struct {
	// Connect is asked when a client wants to join; auth is nil if it sent none. An error refuses
	// it, with the error's text as message, a *Refusal with data too. What is sent to the socket
	// before Connect returns goes out after the client was told that it is in.
	Connect func(s *Socket, auth json.RawMessage) error
	// Event gets the client's events in their order.
	Event func(s *Socket, e *Event)
	// Disconnect is called once after a Connect that succeeded, after the last Event. Nothing can
	// be sent any more.
	Disconnect func(s *Socket, reason Reason)
}

// A Refusal is an error of Connect with data for the client, which are made JSON.
type Refusal struct {
	Message string
	Data    any
}

func (r *Refusal) Error() string { return r.Message }

// refusal is the packet for an error of Connect.
func refusal(namespace string, why error) ([]byte, error) {
	payload := struct {
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{Message: why.Error()}
	var r *Refusal
	if errors.As(why, &r) {
		payload.Message, payload.Data = r.Message, r.Data
	}
	b, err := control(typeConnectError, namespace, payload)
	if err != nil { // the data are no JSON
		payload.Data = nil
		b, err = control(typeConnectError, namespace, payload)
	}
	return b, err
}

// Errors of sending.
var (
	ErrGone  = errors.New("socketio: the socket is gone")
	ErrNoAck = errors.New("socketio: the client asked for no acknowledgement")
	ErrAcked = errors.New("socketio: the event is acknowledged already")
)

// An Event is what a client emitted.
type Event struct {
	Name        string            // of a name that is a number, its text
	Args        []json.RawMessage // each is valid JSON
	Attachments [][]byte          // that Args have placeholders for, see Attachment

	socket *Socket
	id     int64
	acked  atomic.Bool
}

// Attachment is the binary that an argument stands for; nil, false if it is none.
func (e *Event) Attachment(arg int) ([]byte, bool) {
	if arg < 0 || arg >= len(e.Args) {
		return nil, false
	}
	n, ok := placeholder(e.Args[arg])
	if !ok || n < 0 || n >= len(e.Attachments) {
		return nil, false
	}
	return e.Attachments[n], true
}

// WantsAck is true if the client waits for an acknowledgement.
func (e *Event) WantsAck() bool { return e.id >= 0 }

// Ack acknowledges the event, once. Arguments are made JSON; those that are []byte go as
// attachments. It may be called after the hook has returned, from any goroutine.
func (e *Event) Ack(args ...any) error {
	if e.id < 0 {
		return ErrNoAck
	}
	frames, err := encode(typeAck, e.socket.namespace, e.id, nil, args)
	if err != nil {
		return err
	}
	if e.acked.Swap(true) {
		return ErrAcked
	}
	return e.socket.sendKeep(frames)
}

// A Socket is a client in one namespace. Any goroutine may use it.
type Socket struct {
	hooks     *Namespace
	namespace string
	id        string
	data      atomic.Pointer[any]
	early     []Delivery // what was sent during Connect; of session.mu, as the last two
	session   *session
	state     state
	told      bool // Disconnect is called, or about to be
}

// A state is where a socket stands to its namespace.
type state uint8

const (
	connecting state = iota // Connect has not returned
	leaving                 // the same, and it is to leave at once
	joined
	gone
)

// ID is the client's Socket.IO id in this namespace. It is unguessable, and another one than that
// of Engine.IO, which is the session's password.
func (s *Socket) ID() string { return s.id }

// Namespace is the name of the socket's namespace.
func (s *Socket) Namespace() string { return s.namespace }

// Path is the path under which the client shook hands.
func (s *Socket) Path() string { return s.session.path }

// Hold says whether the client's connection is needed, because events are to come over it.
// Options.Hold is told so of the websocket, now or when the client has one.
func (s *Socket) Hold(on bool) {
	x := s.session
	if x == nil { // it never connected
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.held = on; x.link != nil && !x.closed.Load() {
		x.server.opts.Hold(x.link.Conn, on)
	}
}

// Data is what SetData set last, nil at first.
func (s *Socket) Data() any {
	if p := s.data.Load(); p != nil {
		return *p
	}
	return nil
}

// SetData keeps a value for the owner.
func (s *Socket) SetData(v any) { s.data.Store(&v) }

// Emit sends an event to the client, with the policy Keep. Arguments are made JSON; those that are
// []byte go as attachments. It does not block.
func (s *Socket) Emit(name string, args ...any) error {
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

// Spend counts what a packet makes the owner do as if it were packets, from its hook: each part of
// the most that one packet can ask for as one, but all of it as half of MessagesBurst at most. If
// that is too much the session is closed, as for too many packets, and it answers false.
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

// Deliver sends frames to the client, in order; list is not kept. If nothing waits for the client
// they are written at once, with as few writes as there can be, without an allocation; what the
// system does not take waits, each delivery by its policy. It never blocks.
//
// A delivery that does not fit into QueueBytes makes room first: what waits of every Resync tag is
// dropped, but for snapshots that are alone (Shared), and those tags are appended to dropped; the
// rest of them in list is left out. The owner owes the client a new snapshot of each, Shared, and
// until then nothing of it. If that is not enough the session is closed as SlowClient. ok is false
// if the socket is gone, for this or for another reason.
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

// hold keeps deliveries until Connect has returned.
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

// Disconnect takes the client out of the namespace and tells it so. The session stays. Disconnect
// of the namespace is called a little later.
func (s *Socket) Disconnect() {
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

// Close ends the whole session, of every namespace. Disconnect of each is called a little later.
// The reason is any but the first two, which are of a namespace alone: they and unknown ones are
// taken for ServerClose.
func (s *Socket) Close(r Reason) {
	if r < ServerClose || r >= reasons {
		r = ServerClose
	}
	s.session.close(r)
}
