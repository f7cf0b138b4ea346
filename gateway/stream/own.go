package stream

import (
	"encoding/json"
	"slices"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/gateway/socketio"
)

// The event own: what happens to the account that a client has logged in as. A client joins as it
// joins a channel:
//
//	hook ──ownJoin──▶ desk
//	  └──OwnWatch──▶ committed actor ──OwnWatched──▶ desk ──ownAdmitted──▶ shard ──▶ client
//
// The desk has the events before the turn of the answer for the other clients of the account, and
// all later ones for this client, too.

// Messages about own.
type (
	// ownJoin tells a desk that a client waits for the answer with its token.
	ownJoin struct {
		token  uint64
		client *client
		login  *login
		event  *socketio.Event
	}
	// ownGivenUp tells a desk that the client of a token was answered with a failure.
	ownGivenUp struct{ join *ownJoin }
	// ownLeft tells a desk that an account has one client fewer on a shard.
	ownLeft struct {
		account uint32
		shard   int
	}
	// ownAdmitted gives a shard a client with its first frames, of which the snapshot is one.
	ownAdmitted struct {
		join    *ownJoin
		resumed bool
		first   []*ownFrame
	}
	// ownFrames gives a shard frames for all clients of an account.
	ownFrames struct {
		account uint32
		list    []*ownFrame
	}
	// ownLeaves is a client that gets no more events, because it asks for none, or is not logged in
	// any more. event is its request; nil: there is none.
	ownLeaves struct {
		client *client
		event  *socketio.Event
	}
	// ownFailed is a desk that has forgotten its clients.
	ownFailed struct{ feed int }
)

// readOwn is the operation that a subscription to own is, as permissions and limits see it.
var readOwn = api.Operation{Method: "GET", Private: true, Permission: event.PermissionRead}

// done is the acknowledgement of what has no other answer.
var done = []byte(`{"status":200,"body":{}}`)

// subscribeOwn subscribes the client to own, or answers why not.
func (c *client) subscribeOwn(e *socketio.Event) {
	c.speakUp()
	h, l := c.shard.hub, c.login.Load()
	if l == nil {
		c.notLoggedIn(e)
		return
	}
	var call api.Call
	h.opts.Guard.Begin(&call)
	after, wait := l.checkRead(&call, e.Args)
	if call.Failure != nil || call.Status != 200 {
		e.AckJSON(acknowledgement(&call, wait)) //nolint:errcheck // it may be gone
		return
	}
	j := &ownJoin{h.tokens.Add(1), c, l, e}
	desk := h.feedOf(l.key.Account.ID)
	h.public.Notify(desk, j)
	err := h.public.WatchOwn(committed.Client{Key: l.key},
		&committed.OwnWatch{Channel: desk, Token: j.token, After: after})
	if err == nil {
		return // the shard answers, before the first event
	}
	call.FailRead(err)
	if e.AckJSON(acknowledgement(&call, 0)) != nil && e.WantsAck() {
		return // the shard was faster
	}
	h.public.Notify(desk, &ownGivenUp{j})
}

// checkRead checks that the key of a login may read its account now, and takes a token of its private
// reads. It returns the sequence that the client names; otherwise the call is answered.
func (l *login) checkRead(call *api.Call, args []json.RawMessage) (after uint64, wait int) {
	guard := l.client.shard.hub.opts.Guard
	if wait = guard.Read(call, l.key); wait > 0 {
		return 0, wait
	}
	if f, about := l.refusal(&readOwn); f != nil {
		call.Fail(f, about)
		return 0, 0
	}
	var asked struct{ After json.RawMessage }
	if len(args) > 0 && json.Unmarshal(args[0], &asked) != nil {
		call.BadField("after", api.FieldInteger)
		return 0, 0
	}
	if string(asked.After) == "null" {
		asked.After = nil
	}
	after, _ = call.WholeNumber("after", asked.After)
	return after, 0
}

// unsubscribeOwn ends the client's subscription to own, if it has one or waits for one.
func (c *client) unsubscribeOwn(e *socketio.Event) {
	c.ownUntil.Store(c.shard.hub.tokens.Load())
	c.post(&ownLeaves{c, e})
}

// ownAdmit makes a client a subscriber of its account. The answer goes before the first frames. The
// client may have logged out meanwhile, or have ended the subscription.
func (s *shard) ownAdmit(m *ownAdmitted) {
	c, l := m.join.client, m.join.login
	account := l.key.Account.ID
	known := slices.Contains(s.accountClients[account], c)
	wanted := !c.gone && m.join.token > c.ownUntil.Load()
	if !c.gone {
		s.deliver(c)
		answer := `{"status":200,"body":{"resumed":false}}`
		if m.resumed {
			answer = `{"status":200,"body":{"resumed":true}}`
		}
		if c.login.Load() != l || !l.answer(m.join.event, []byte(answer)) {
			c.notLoggedIn(m.join.event)
			wanted = false
		}
	}
	if known || !wanted {
		s.ownLeft(account) // the desk has counted it for nothing
	}
	if !wanted {
		return
	}
	if !known {
		s.accountClients[account] = append(s.accountClients[account], c)
		c.feedAccount = account
		s.hub.counts.own.Add(1)
	}
	if len(m.first) > 0 {
		s.put(c, ownDelivery(m.first))
	}
}

// notLoggedIn answers what the client asked for as an account.
func (c *client) notLoggedIn(e *socketio.Event) {
	var call api.Call
	c.shard.hub.opts.Guard.Begin(&call)
	call.Fail(api.NotLoggedIn, "")
	e.AckJSON(acknowledgement(&call, 0)) //nolint:errcheck // it may be gone
}

// ownEvents gives the clients of an account its newest events.
func (s *shard) ownEvents(m *ownFrames) {
	for _, c := range s.accountClients[m.account] {
		s.put(c, ownDelivery(m.list))
	}
}

// ownPart takes a client from its account.
func (s *shard) ownPart(c *client) {
	if c.feedAccount == 0 {
		return
	}
	list := s.accountClients[c.feedAccount]
	if list = slices.DeleteFunc(list, func(x *client) bool { return x == c }); len(list) == 0 {
		delete(s.accountClients, c.feedAccount)
	} else {
		s.accountClients[c.feedAccount] = list
	}
	s.hub.counts.own.Add(-1)
	s.ownLeft(c.feedAccount)
	c.feedAccount = 0
}

func (s *shard) ownLeft(account uint32) {
	s.hub.public.Notify(s.hub.feedOf(account), &ownLeft{account, s.number})
}

// ownLeave ends a client's subscription, and answers its request.
func (s *shard) ownLeave(m *ownLeaves) {
	s.deliver(m.client)
	s.ownPart(m.client)
	m.client.hold()
	if m.event != nil {
		m.event.AckJSON(done) //nolint:errcheck // it may be gone, or have asked for none
	}
}

// ownFail disconnects the clients of a desk that has forgotten them, also those that wait for it.
func (s *shard) ownFail(desk int) {
	for c := range s.clients {
		if l := c.login.Load(); l != nil && s.hub.feedNumber(l.key.Account.ID) == desk {
			c.socket.Close(socketio.ServerClose)
		}
	}
}
