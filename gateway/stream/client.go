package stream

import (
	"errors"
	"strconv"
	"sync/atomic"

	"exchange/gateway/socketio"
)

// A client is one connection. Its shard owns it.
type client struct {
	socket *socketio.Socket
	shard  *shard
	gone   bool
	silent bool // no request yet: the client gets book_ of all pairs
	held   bool // Socket.Hold is on: the client has a subscription or a login

	allPairs     [families]bool // channels of all pairs that the client named
	pairChannels set            // channels of one pair that the client named
	joining      set            // channels that have not admitted the client yet
	member       set            // channels that have admitted the client

	queue *commandQueue // its commands; nil: none yet. The hooks own it

	waits        map[topic]*wait // unanswered names, by number
	openRequests int             // number of unanswered requests
	out          []socketio.Delivery
	// frames held until the answer to a subscription to the whole family
	early [families]*backlog // nil: no answer is due

	login       atomic.Pointer[login] // nil: not logged in
	feedAccount uint32                // account whose events it gets; 0: none
	// token up to which the client has ended its subscriptions to own, pending ones included
	ownUntil atomic.Uint64
	// The client's packet hooks own the rest.
	challenge challenge // for its next login
	spoken    bool      // the client has sent a request

	// an element for each further message allowed in the shard
	turn chan struct{}
}

// A wait is a requested name, until all its channels have admitted the client.
type wait struct {
	text     string
	requests []*openRequest // requests with this name, each once
}

// An openRequest is an unacknowledged request.
type openRequest struct {
	event    *socketio.Event
	channels []string // joined or left names
	open     int      // number of unanswered names
}

// done marks one name as answered.
func (a *openRequest) done(s *shard, c *client) {
	if a.open--; a.open == 0 {
		c.openRequests--
		a.finish(s, c)
	}
}

// finish acknowledges a request, if the client wants that, after all earlier deliveries.
func (a *openRequest) finish(s *shard, c *client) {
	if a.event != nil && a.event.WantsAck() {
		s.deliver(c)
		list := append([]string{}, a.channels...)
		a.event.Ack(map[string][]string{"channels": list}) //nolint:errcheck // it may be gone
	}
}

// wants reports whether a client requested a channel, under either name.
func (c *client) wants(t topic, n *names) bool {
	return c.pairChannels.has(t) || c.allPairs[n.familyOf(t)]
}

// count returns the number of a client's names.
func (c *client) count() int {
	n := c.pairChannels.len()
	for _, all := range c.allPairs {
		if all {
			n++
		}
	}
	return n
}

// hold updates Socket.Hold after a change of subscriptions or login.
func (c *client) hold() {
	if on := c.count() > 0 || c.login.Load() != nil; on != c.held {
		c.held = on
		c.socket.Hold(on)
	}
}

// has reports whether a client requested this name.
func (c *client) has(n *name) bool {
	if n.all {
		return c.allPairs[n.family] && !c.silent
	}
	return c.pairChannels.has(n.topic)
}

func (c *client) set(n *name, on bool) {
	switch {
	case n.all:
		c.allPairs[n.family] = on
	case on:
		c.pairChannels.add(n.topic)
	default:
		c.pairChannels.remove(n.topic)
	}
}

// topicsOf returns the channels of a name.
func (n *names) topicsOf(wanted *name) func(yield func(topic) bool) {
	return func(yield func(topic) bool) {
		if !wanted.all {
			yield(wanted.topic)
			return
		}
		for place := range n.pairs {
			if !yield(n.topic(wanted.family, place)) {
				return
			}
		}
	}
}

// listen subscribes a silent client to the channels that old clients expect.
func (s *shard) listen(c *client) {
	c.silent, c.allPairs[book] = true, true
	s.joinAll(c, &name{family: book, all: true})
}

// speak ends listen at the client's first request. The caller calls the returned function once the
// client's channels are set. Channels that the client keeps lose nothing.
func (s *shard) speak(c *client) (spoken func()) {
	if !c.silent {
		return func() {}
	}
	c.silent, c.allPairs[book] = false, false
	return func() { s.partAll(c, &name{family: book, all: true}) }
}

// joinAll joins the remaining channels of a name. It reports whether any channel has not admitted
// the client yet.
func (s *shard) joinAll(c *client, n *name) (open bool) {
	for t := range s.hub.names.topicsOf(n) {
		switch {
		case c.member.has(t):
		case c.joining.has(t):
			open = true
		default:
			s.join(c, t)
			open = true
		}
	}
	return open
}

// partAll leaves the channels of a name that the client does not want under another name.
func (s *shard) partAll(c *client, n *name) {
	for t := range s.hub.names.topicsOf(n) {
		if !c.wants(t, s.hub.names) {
			s.part(c, t)
		}
	}
}

// Errors for the client. errWaiting bounds the requests waiting for admission.
var (
	errNames   = errors.New("too many channels: a client may have " + strconv.Itoa(maxNames))
	errRequest = errors.New(
		"too many channels in one request: this one and those after it were ignored, for " +
			"it may have " + strconv.Itoa(maxNames))
	errWaiting = errors.New("too many requests wait for their answers: a client may have " +
		strconv.Itoa(maxNames))
)

// subscribe answers each name with success, once all of its channels have admitted the client, or
// with an error.
func (s *shard) subscribe(m *request) {
	c, a := m.client, &openRequest{event: m.event}
	defer s.speak(c)()
	for i := range m.targets {
		n, err := &m.targets[i].name, m.targets[i].err
		switch {
		case m.targets[i].again:
			if err == nil && c.has(n) {
				a.channels = append(a.channels, n.text)
			}
			continue
		case err != nil:
		case c.openRequests == maxNames:
			err = errWaiting
		case !c.has(n) && c.count() == maxNames:
			err = errNames
		}
		if err != nil {
			s.say(c, failure(shown(n.text), err))
			continue
		}
		// A client that is subscribed by another name, or repeats a request because it lost the
		// state, gets the state again.
		if kinds[n.family].stateFirst {
			for t := range s.hub.names.topicsOf(n) {
				s.rejoin(c, t)
			}
		}
		c.set(n, true)
		a.channels = append(a.channels, n.text)
		if s.joinAll(c, n) {
			a.open++
			c.addWait(s.hub.names.number(n), n.text, a)
			continue
		}
		s.say(c, success(n.text, now()))
	}
	if a.open == 0 {
		a.finish(s, c)
		return
	}
	c.openRequests++
}

// addWait adds a request to an unanswered name.
func (c *client) addWait(number topic, text string, a *openRequest) {
	w := c.waits[number]
	if w == nil {
		if c.waits == nil {
			c.waits = map[topic]*wait{}
		}
		w = &wait{text: text}
		c.waits[number] = w
	}
	w.requests = append(w.requests, a)
}

// shown returns the part of a name that an answer repeats.
func shown(text string) string { return text[:min(len(text), longestShown)] }

// admittedTo answers the names completed by a channel, which belongs to two names.
func (s *shard) admittedTo(c *client, t topic) {
	if len(c.waits) == 0 {
		return
	}
	n := s.hub.names
	s.answer(c, t)
	if f := n.familyOf(t); c.waits[n.numberOfAll(f)] != nil &&
		c.member.hasAll(n.topic(f, 0), len(n.pairs)) {
		s.answer(c, n.numberOfAll(f))
		s.release(c, f)
	}
}

// answer ends a wait with success, if there is one.
func (s *shard) answer(c *client, number topic) {
	w := c.waits[number]
	if w == nil {
		return
	}
	delete(c.waits, number)
	for _, a := range w.requests {
		s.say(c, success(w.text, now()))
		a.done(s, c)
	}
}

func (s *shard) unsubscribe(m *request) {
	c, a := m.client, &openRequest{event: m.event}
	defer s.speak(c)()
	for i := range m.targets {
		n, err := &m.targets[i].name, m.targets[i].err
		switch {
		case m.targets[i].again:
			if err == nil {
				a.channels = append(a.channels, n.text)
			}
			continue
		case err != nil:
			s.say(c, failure(shown(n.text), err))
			continue
		}
		a.channels = append(a.channels, n.text)
		c.set(n, false)
		s.partAll(c, n)
		if w := c.waits[s.hub.names.number(n)]; w != nil {
			delete(c.waits, s.hub.names.number(n))
			for _, waiting := range w.requests {
				waiting.done(s, c)
			}
			if n.all {
				s.release(c, n.family)
			}
		}
	}
	a.finish(s, c)
}
