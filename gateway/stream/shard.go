package stream

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"exchange/gateway/socketio"
)

// A shard is a goroutine that owns a part of the clients and their subscriptions. It takes all
// waiting messages at once.
type shard struct {
	hub    *Hub
	number int

	mu   sync.Mutex
	in   []any         // guarded by mu
	soon bool          // guarded by mu: a timer will wake the shard
	wake chan struct{} // capacity 1: the shard has messages

	clients        map[*client]struct{}
	accountClients map[uint32][]*client // subscribed to own, by account
	topics         []*audience          // by topic; nil: no subscriber so far
	active         []topic              // channels with frames to flush
	ready          []*client            // clients with deliveries in out
	out            []socketio.Delivery  // of the channel being flushed
	lost           []place              // subscriptions whose backlog was dropped in this flush
	dropped        []uint32
	flushed        time.Time     // start of the last flush that sent channels' frames
	pause          time.Duration // minimum time to the next flush
}

// An audience holds the subscribers of a channel on one shard.
type audience struct {
	epoch   uint64       // of the channel's actor
	list    []subscriber // may include disconnected clients, removed by a flush
	alive   int
	pending [][]byte  // frames of this flush
	closed  [][]byte  // closed candles of this flush, before pending
	early   []*client // further subscribers, whose frames are held: see client.early
}

// A subscriber is a client in an audience. Its socket is here so that a flush of one channel
// touches nothing else of the client: with thousands of clients memory access dominates.
type subscriber struct {
	client *client
	socket *socketio.Socket
}

// A place is one client's subscription to one channel.
type place struct {
	client *client
	topic  topic
}

// Messages to a shard.
type (
	// connected is a new client; silent ones get book_ of all pairs until their first request.
	connected struct {
		client *client
		silent bool
	}
	disconnected struct{ client *client }
	// request is a client's request.
	request struct {
		client    *client
		subscribe bool
		targets   []target
		event     *socketio.Event // to acknowledge if requested; nil: none
	}
	// changed is a client that has sent its first request, or has logged in or out.
	changed struct{ client *client }
	// loginEnded is a login that a revocation ends.
	loginEnded struct {
		login  *login
		detail string
	}
	// frames are frames of a channel, for all its subscribers.
	frames struct {
		topic  topic
		bytes  []byte
		closed []byte // sent before bytes: final states
	}
	// admitted are new subscribers; first contains their first frames.
	admitted struct {
		topic   topic
		epoch   uint64
		clients []*client
		first   []byte
		shared  bool
	}
	// failed is the restart of a channel, which has lost its subscribers.
	failed struct{ topic topic }
	// closing ends the shard.
	closing struct{}
)

func newShard(h *Hub, number int) *shard {
	return &shard{hub: h, number: number, wake: make(chan struct{}, 1),
		clients: map[*client]struct{}{}, accountClients: map[uint32][]*client{},
		topics: make([]*audience, h.names.topics())}
}

// audience returns the audience of a channel, creating it for the first client.
func (s *shard) audience(t topic) *audience {
	if s.topics[t] == nil {
		s.topics[t] = new(audience)
	}
	return s.topics[t]
}

// post sends the shard a message. Any goroutine may call it. The senders bound the number of
// waiting messages: messagesAtOnce per client (client.post), and the engine limits the events
// between two flushes.
func (s *shard) post(m any) {
	s.mu.Lock()
	s.in = append(s.in, m)
	s.mu.Unlock()
	s.stir()
}

func (s *shard) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// postSoon posts a message that may be delayed by a short pause, to be flushed with others.
func (s *shard) postSoon(m any) {
	s.mu.Lock()
	s.in = append(s.in, m)
	first := !s.soon
	s.soon = true
	s.mu.Unlock()
	if first {
		time.AfterFunc(shortestPause, s.stir)
	}
}

// A pause is the minimum time between the starts of two flushes. The journal releases a thousand
// batches a second and more. Without pauses each subscriber would get as many writes, and orders
// would wait for the processor. After a quiet period the next event is sent at once. While events
// arrive in each pause, pauses get longer.
const (
	shortestPause = 3 * time.Millisecond
	longestPause  = 12 * time.Millisecond
)

// nextPause returns the wait before a flush that is due now, and the next pause.
func nextPause(flushed, now time.Time, pause time.Duration) (wait, next time.Duration) {
	if wait = flushed.Add(pause).Sub(now); wait <= 0 {
		return 0, shortestPause
	}
	return wait, min(2*pause, longestPause)
}

func (s *shard) run() {
	defer s.hub.running.Done()
	var batch []any
	for range s.wake {
		if s.idle() { // the timer fired too late
			continue
		}
		var wait time.Duration
		wait, s.pause = nextPause(s.flushed, time.Now(), s.pause)
		time.Sleep(wait)
		s.mu.Lock()
		batch, s.in, s.soon = s.in, batch[:0], false
		s.mu.Unlock()
		for i, m := range batch {
			batch[i] = nil
			switch f := m.(type) {
			case *frames:
				s.gather(f)
				continue
			case *ownFrames: // not for subscribers of channels
				s.ownEvents(f)
				continue
			}
			s.distribute() // the message may change the subscribers
			if _, ok := m.(closing); ok {
				s.deliverAll()
				return
			}
			s.handle(m)
		}
		s.flush()
		if cap(batch) > keptMessages {
			batch = nil
		}
	}
}

func (s *shard) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.in) == 0
}

// keptMessages is the maximum capacity of the message list kept after a burst.
const keptMessages = 1 << 14

func (s *shard) handle(m any) {
	switch m := m.(type) {
	case *connected:
		s.clients[m.client] = struct{}{}
		if m.silent {
			s.listen(m.client)
			m.client.hold()
		}
		for range messagesAtOnce {
			m.client.turn <- struct{}{}
		}
	case *disconnected:
		s.disconnect(m.client)
	case *request:
		switch {
		case m.client.gone:
		case m.subscribe:
			s.subscribe(m)
			m.client.hold()
		default:
			s.unsubscribe(m)
			m.client.hold()
		}
		m.client.turn <- struct{}{}
	case *changed:
		if !m.client.gone {
			s.speak(m.client)()
			m.client.hold()
		}
		m.client.turn <- struct{}{}
	case *loginEnded:
		s.endLogin(m)
	case *ownAdmitted:
		s.ownAdmit(m)
	case *ownLeaves:
		s.ownLeave(m)
		if m.event != nil {
			m.client.turn <- struct{}{}
		}
	case *ownFailed:
		s.ownFail(m.feed)
	case *admitted:
		s.admit(m)
	case *failed:
		s.fail(m.topic)
	}
}

// gather keeps frames until the flush.
func (s *shard) gather(f *frames) {
	a := s.topics[f.topic]
	switch {
	case a == nil || a.alive == 0:
		return
	case len(a.pending) == 0:
		s.active = append(s.active, f.topic)
	case s.hub.names.policyOf(f.topic) == socketio.Latest:
		a.pending = a.pending[:0]
	}
	a.pending = append(a.pending, f.bytes)
	if len(f.closed) > 0 {
		a.closed = append(a.closed, f.closed)
	}
}

// flush sends each client its gathered frames, in one write.
func (s *shard) flush() {
	if len(s.active) == 1 && len(s.ready) == 0 {
		s.flushed = time.Now()
		s.flushOne(s.active[0])
		s.active = s.active[:0]
		return
	}
	s.distribute()
	s.deliverAll()
}

// take moves the gathered frames of a channel into out.
func (s *shard) take(t topic) {
	a := s.topics[t]
	s.takePieces(t, socketio.Final, a.closed)
	s.takePieces(t, s.hub.names.policyOf(t), a.pending)
	a.closed, a.pending = nil, a.pending[:0]
	for _, c := range a.early {
		s.keep(c, s.hub.names.familyOf(t), s.out)
	}
}

func (s *shard) takePieces(t topic, policy socketio.Policy, pieces [][]byte) {
	for rest := pieces; len(rest) > 0; {
		var frames []byte
		frames, rest = joinPieces(rest)
		s.out = append(s.out, socketio.Delivery{Tag: uint32(t), Policy: policy, Frames: frames})
	}
	clear(pieces)
}

// flushOne flushes one channel.
func (s *shard) flushOne(t topic) {
	s.take(t)
	a := s.topics[t]
	n := 0
	for _, m := range a.list {
		var ok bool
		if s.dropped, ok = m.socket.Deliver(s.out, s.dropped[:0]); !ok && m.client.gone {
			continue
		}
		for _, lost := range s.dropped {
			s.lost = append(s.lost, place{m.client, topic(lost)})
		}
		a.list[n] = m
		n++
	}
	clear(a.list[n:])
	a.list = a.list[:n]
	clear(s.out)
	s.out = s.out[:0]
	for i, p := range s.lost { // only now, because it changes the list
		s.resync(p)
		s.lost[i] = place{}
	}
	s.lost = s.lost[:0]
}

// distribute puts the gathered frames into out of each subscriber.
func (s *shard) distribute() {
	if len(s.active) == 0 {
		return
	}
	s.flushed = time.Now()
	for _, t := range s.active {
		s.take(t)
		a := s.topics[t]
		n := 0
		for _, m := range a.list {
			if m.client.gone {
				continue
			}
			a.list[n] = m
			n++
			s.put(m.client, s.out...)
		}
		clear(a.list[n:])
		a.list = a.list[:n]
		clear(s.out)
		s.out = s.out[:0]
	}
	s.active = s.active[:0]
}

// put adds deliveries for a client.
func (s *shard) put(c *client, list ...socketio.Delivery) {
	if len(c.out) == 0 {
		s.ready = append(s.ready, c)
	}
	c.out = append(c.out, list...)
}

// deliverAll sends clients their deliveries.
func (s *shard) deliverAll() {
	for i, c := range s.ready {
		s.ready[i] = nil
		s.deliver(c)
	}
	s.ready = s.ready[:0]
}

// longestJoined is the maximum size of joined pieces, in bytes. A piece whose write has started
// cannot be dropped. If all frames of a busy period were one piece, a slow subscriber would be
// disconnected although a whole book could replace them.
const longestJoined = 16 << 10

// joinPieces returns the first pieces as one; a single piece is not copied.
func joinPieces(pieces [][]byte) (frames []byte, rest [][]byte) {
	n, size := 1, len(pieces[0])
	for n < len(pieces) && size+len(pieces[n]) <= longestJoined {
		size += len(pieces[n])
		n++
	}
	if n == 1 {
		return pieces[0], pieces[1:]
	}
	return bytes.Join(pieces[:n], nil), pieces[n:]
}

// deliver sends a client its deliveries.
func (s *shard) deliver(c *client) {
	if len(c.out) == 0 {
		return
	}
	var ok bool
	s.dropped, ok = c.socket.Deliver(c.out, s.dropped[:0])
	clear(c.out)
	c.out = c.out[:0]
	if !ok {
		return // the session is closed, and its hook follows
	}
	for _, t := range s.dropped {
		s.resync(place{c, topic(t)})
	}
}

// resync handles a dropped backlog: the client leaves the channel and joins it again, for a new
// state.
func (s *shard) resync(p place) {
	s.hub.counts.resyncs.Add(1)
	s.rejoin(p.client, p.topic)
}

// say queues an answer for a client.
func (s *shard) say(c *client, frame []byte) {
	s.put(c, socketio.Delivery{Tag: answers, Policy: socketio.Keep, Frames: frame})
}

// admit makes clients subscribers, and sends them the channel's state.
func (s *shard) admit(m *admitted) {
	a, f := s.audience(m.topic), s.hub.names.familyOf(m.topic)
	a.epoch = m.epoch
	for _, c := range m.clients {
		c.joining.remove(m.topic)
		if c.gone || !c.wants(m.topic, s.hub.names) {
			s.leave(m.topic)
			continue
		}
		c.member.add(m.topic)
		a.alive++
		s.hub.counts.subscriptions[f].Add(1)
		var first []socketio.Delivery
		if len(m.first) > 0 {
			first = append(first, socketio.Delivery{Tag: uint32(m.topic),
				Policy: s.hub.names.policyOf(m.topic), Frames: m.first, Shared: m.shared})
		}
		if c.waits[s.hub.names.numberOfAll(f)] != nil {
			s.holdFrames(c, m.topic)
			s.keep(c, f, first)
			s.admittedTo(c, m.topic)
			continue
		}
		a.list = append(a.list, subscriber{c, c.socket})
		s.admittedTo(c, m.topic)
		if len(first) > 0 {
			s.put(c, first...)
		}
	}
}

// leave reports to a channel that it has one subscriber fewer here.
func (s *shard) leave(t topic) {
	s.hub.public.Notify(s.hub.channel(t), &left{s.number, s.topics[t].epoch})
}

// join asks a channel to admit a client.
func (s *shard) join(c *client, t topic) {
	c.joining.add(t)
	s.hub.public.Notify(s.hub.channel(t), &join{c, s})
}

// part removes a client from a channel.
func (s *shard) part(c *client, t topic) {
	if !c.member.has(t) {
		return
	}
	a := s.topics[t]
	s.dropHeld(c, t)
	for i := range a.list {
		if a.list[i].client == c {
			last := len(a.list) - 1
			a.list[i], a.list[last] = a.list[last], subscriber{}
			a.list = a.list[:last]
			break
		}
	}
	s.forget(c, t)
}

// forget is part without removing the client from the audience's list.
func (s *shard) forget(c *client, t topic) {
	s.strike(c, t)
	s.leave(t)
}

// strike is forget without a message to the channel.
func (s *shard) strike(c *client, t topic) {
	c.member.remove(t)
	s.topics[t].alive--
	s.hub.counts.subscriptions[s.hub.names.familyOf(t)].Add(-1)
}

func (s *shard) rejoin(c *client, t topic) {
	if c.member.has(t) {
		s.part(c, t)
		s.join(c, t)
	}
}

// disconnect removes a client. Flushes remove it from the lists. Quiet lists are cleaned when half
// of their clients are gone.
func (s *shard) disconnect(c *client) {
	c.gone = true
	delete(s.clients, c)
	s.ownPart(c)
	for t := range c.member.all {
		s.dropHeld(c, t)
		s.forget(c, t)
		if a := s.topics[t]; len(a.list) > 2*a.alive+8 || a.alive == 0 {
			if a.list = slices.DeleteFunc(a.list, func(m subscriber) bool {
				return m.client.gone
			}); a.alive == 0 {
				a.list = nil
			}
		}
	}
}

// fail disconnects the subscribers of a restarted channel, which has lost them, and the clients
// waiting for its admission.
func (s *shard) fail(t topic) {
	for c := range s.clients {
		s.unholdFrames(c, t)
		if c.member.has(t) {
			s.strike(c, t)
			c.socket.Close(socketio.ServerClose)
		} else if c.joining.has(t) {
			c.socket.Close(socketio.ServerClose)
		}
	}
	if a := s.topics[t]; a != nil {
		a.list = nil
	}
}

// now returns the time of answers, in microseconds since the Unix epoch.
func now() int64 { return time.Now().UnixMicro() }
