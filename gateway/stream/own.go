package stream

import (
	"encoding/json"
	"slices"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/gateway/socketio"
)

// The event own: events of the account that a client is logged in to. A client joins it like a
// channel:
//
//	hook ──ownJoin──▶ feed
//	  └──OwnWatch──▶ committed actor ──OwnWatched──▶ feed ──ownAdmitted──▶ shard ──▶ client
//
// Events before the answer go only to the account's other clients, later ones to this client, too.

// Messages about own.
type (
	// ownJoin registers a client at a feed, for the answer with its token.
	ownJoin struct {
		token  uint64
		client *client
		login  *login
		event  *socketio.Event
	}
	// ownGivenUp reports to a feed that a joining client was answered with a failure.
	ownGivenUp struct{ join *ownJoin }
	// ownLeft reports to a feed that an account has one client fewer on a shard.
	ownLeft struct {
		account uint32
		shard   int
	}
	// ownAdmitted admits a client on its shard, with its first frames, including the snapshot.
	ownAdmitted struct {
		join    *ownJoin
		resumed bool
		first   []*ownFrame
	}
	// ownFrames are frames for all clients of an account on a shard.
	ownFrames struct {
		account uint32
		list    []*ownFrame
	}
	// ownLeaves is a client that unsubscribes, or is no longer logged in. event is its request;
	// nil: none.
	ownLeaves struct {
		client *client
		event  *socketio.Event
	}
	// ownFailed is the restart of a feed, which has lost its clients.
	ownFailed struct{ feed int }
)

// readOwn is the operation that permissions and limits see for a subscription to own.
var readOwn = api.Operation{Method: "GET", Private: true, Permission: event.PermissionRead}

// done is the acknowledgement of requests without another answer.
var done = []byte(`{"status":200,"body":{}}`)

// subscribeOwn handles a subscription to own.
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
	feed := h.feedOf(l.key.Account.ID)
	h.public.Notify(feed, j)
	err := h.public.WatchOwn(committed.Client{Key: l.key},
		&committed.OwnWatch{Channel: feed, Token: j.token, After: after})
	if err == nil {
		return // the shard answers, before the first event
	}
	call.FailRead(err)
	if e.AckJSON(acknowledgement(&call, 0)) != nil && e.WantsAck() {
		return // the shard was faster
	}
	h.public.Notify(feed, &ownGivenUp{j})
}

// checkRead checks that the login's key may read its account now, and takes a token of its private
// reads. It returns the requested sequence; otherwise the call is answered.
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

// unsubscribeOwn ends the client's subscription to own, including a pending one.
func (c *client) unsubscribeOwn(e *socketio.Event) {
	c.ownUntil.Store(c.shard.hub.tokens.Load())
	c.post(&ownLeaves{c, e})
}

// ownAdmit subscribes a client to its account. The answer precedes the first frames. The client may
// have logged out or unsubscribed meanwhile.
func (s *shard) ownAdmit(m *ownAdmitted) {
	c, l := m.join.client, m.join.login
	account := l.key.Account.ID
	subscribed := slices.Contains(s.accountClients[account], c)
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
	if subscribed || !wanted {
		s.ownLeft(account) // undo the feed's count
	}
	if !wanted {
		return
	}
	if !subscribed {
		s.accountClients[account] = append(s.accountClients[account], c)
		c.feedAccount = account
		s.hub.counts.own.Add(1)
	}
	if len(m.first) > 0 {
		s.put(c, ownDelivery(m.first))
	}
}

// notLoggedIn answers an account request of a client that is not logged in.
func (c *client) notLoggedIn(e *socketio.Event) {
	var call api.Call
	c.shard.hub.opts.Guard.Begin(&call)
	call.Fail(api.NotLoggedIn, "")
	e.AckJSON(acknowledgement(&call, 0)) //nolint:errcheck // it may be gone
}

// ownEvents sends the clients of an account its newest events.
func (s *shard) ownEvents(m *ownFrames) {
	for _, c := range s.accountClients[m.account] {
		s.put(c, ownDelivery(m.list))
	}
}

// ownPart removes a client from its account.
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
		m.event.AckJSON(done) //nolint:errcheck // the client may be gone
	}
}

// ownFail disconnects the clients of a restarted feed, pending ones included.
func (s *shard) ownFail(feed int) {
	for c := range s.clients {
		if l := c.login.Load(); l != nil && s.hub.feedNumber(l.key.Account.ID) == feed {
			c.socket.Close(socketio.ServerClose)
		}
	}
}
