package stream

import (
	"encoding/json"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/gateway/api"
	"exchange/gateway/socketio"
)

// A Guard is the part of the edge that logins need. It has the secrets of keys, and the limits of
// failures per address.
type Guard interface {
	// Challenge returns an unguessable text.
	Challenge() string
	// Begin prepares a fresh call.
	Begin(c *api.Call)
	// Login verifies the proof of a client at an address. It sets the call's key, or writes an
	// error response; wait is then the number of seconds until a retry; 0: unspecified.
	Login(c *api.Call, from netip.Addr, p *Proof) (wait int)
	// Read takes a token of a key's private reads, or writes 429 and returns the seconds to wait.
	Read(c *api.Call, key *directory.Key) (wait int)
	// Permit checks that the call's key may use an operation now, and takes the operation's tokens.
	// It returns false after writing an error response.
	Permit(c *api.Call, o *api.Operation) bool
	// Report logs an answer with a failure of the server; event is the client's.
	Report(c *api.Call, event string)
}

// A Proof proves that a client has the secret of a key: the signature of a challenge.
type Proof struct{ Key, Sign, Challenge string }

// Bounds of logins.
const (
	challengeLife = 30 * time.Second
	loginsPerKey  = 16
)

// A challenge is the text that the next login of a socket must sign, once.
type challenge struct {
	text  string // "": none
	until time.Time
}

// logins holds the logins of a hub.
type logins struct {
	mu    sync.Mutex
	byKey map[uint32][]*login // by key number; guarded by mu
	n     int                 // number of logins; guarded by mu

	sessions atomic.Uint64 // sessions so far
}

// add adds a login, or returns why it is refused. earlier is the login that the new one replaces,
// nil if none.
func (s *logins) add(l *login) (earlier *login, f *api.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, live := l.client.socket.ID(), 0
	for _, x := range s.byKey[l.key.Number] {
		switch ended, _ := x.isOver(); {
		case x.replaces == id:
			return nil, api.LoginEnded
		case x.client.socket.ID() == l.replaces:
			earlier = x
		case !ended:
			live++
		}
	}
	if live >= loginsPerKey {
		return nil, api.TooManyLogins
	}
	if s.byKey == nil {
		s.byKey = map[uint32][]*login{}
	}
	s.byKey[l.key.Number] = append(s.byKey[l.key.Number], l)
	s.n++
	return earlier, nil
}

// remove removes an ended login, once all its commands have reached the wallets.
func (s *logins) remove(l *login) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.byKey[l.key.Number]
	at := slices.Index(list, l)
	if ended, idle := l.isOver(); at < 0 || !ended || !idle {
		return
	}
	s.n--
	if list = slices.Delete(list, at, at+1); len(list) == 0 {
		delete(s.byKey, l.key.Number)
		return
	}
	s.byKey[l.key.Number] = list
}

// endedBy returns the logins that a revocation ends.
func (s *logins) endedBy(x committed.Revocation) []*login {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.Key != 0 {
		return slices.Clone(s.byKey[x.Key])
	}
	var list []*login
	for _, of := range s.byKey { // freezes are rare
		if of[0].key.Account.ID == x.Account {
			list = append(list, of...)
		}
	}
	return list
}

func (s *logins) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// detailOf returns the text about a revocation for clients.
func detailOf(x committed.Revocation) string {
	if x.Key != 0 {
		return "The key is revoked."
	}
	if x.Closed {
		return "The account is closed."
	}
	return api.AccountFrozen.Detail
}

// sendChallenge sends the client a challenge, which replaces an earlier one.
func (c *client) sendChallenge(e *socketio.Event) {
	c.speakUp()
	guard := c.shard.hub.opts.Guard
	c.challenge = challenge{guard.Challenge(), time.Now().Add(challengeLife)}
	e.Ack(map[string]string{"challenge": c.challenge.text}) //nolint:errcheck // it may be gone
}

// handleLogin handles a login.
func (c *client) handleLogin(e *socketio.Event) {
	c.speakUp()
	var call api.Call
	c.shard.hub.opts.Guard.Begin(&call)
	l, wait := c.verifyLogin(&call, e.Args)
	if l != nil && c.startLogin(l, &call) {
		if call.LoggedInAs(l.key, l.session); l.answer(e, acknowledgement(&call, 0)) {
			c.post(&changed{c})
			return
		}
		call.Fail(api.Unauthenticated, "") // the key was revoked just now
	}
	if l != nil {
		c.dropLogin()
	}
	c.shard.hub.opts.Guard.Report(&call, e.Name)
	e.AckJSON(acknowledgement(&call, wait)) //nolint:errcheck // it may be gone
}

// verifyLogin verifies a proof, and returns a new login; nil: it wrote an error response.
func (c *client) verifyLogin(call *api.Call, args []json.RawMessage) (l *login, wait int) {
	if c.login.Load() != nil {
		call.Fail(api.LoggedIn, "")
		return nil, 0
	}
	p := Proof{Challenge: c.challenge.text}
	if !time.Now().Before(c.challenge.until) {
		p.Challenge = ""
	}
	c.challenge = challenge{}
	var fields []byte
	if len(args) > 0 {
		fields = args[0]
	}
	if call.Form.ParseJSON(fields) == nil {
		p.Key, p.Sign = call.Text("key"), call.Text("sign")
	}
	if wait = c.shard.hub.opts.Guard.Login(call, c.socket.Address(), &p); call.Key == nil {
		return nil, wait
	}
	session, ok := call.Session()
	if !ok {
		return nil, 0
	}
	if session != nil {
		session.Number = c.shard.hub.logins.sessions.Add(1)
	}
	return &login{key: call.Key, client: c, replaces: call.Text("ends"), session: session}, 0
}

// startLogin registers a login and begins its session. It returns false after writing an error
// response. It checks for revocations only after add, from which on the login receives them.
func (c *client) startLogin(l *login, call *api.Call) bool {
	h := c.shard.hub
	earlier, f := h.logins.add(l)
	if f != nil {
		call.Fail(f, "")
		return false
	}
	c.login.Store(l)
	standing := committed.KeyStatus{Key: l.key.Number}
	switch err := h.public.Ask(&standing, nil, 0); {
	case err != nil:
		call.FailWith(err)
	case standing.Revoked:
		call.Fail(api.Unauthenticated, "")
	case standing.Frozen:
		call.Fail(api.AccountFrozen, "")
	default:
		if l.session != nil && earlier != nil && earlier.session != nil {
			l.session.Instead = earlier.session.Number
		}
		begun := l.beginSession(call)
		if earlier != nil && (begun || call.Failure == api.OutcomeUnknown) {
			earlier.cut() // its session may be over
			if err := h.commands.DrainGates(l.key); err != nil && begun {
				call.FailWith(err) // its commands may still be in flight
				begun = false
			}
		}
		return begun
	}
	return false
}

// dropLogin ends the client's login, if any, without a message to the client.
func (c *client) dropLogin() bool {
	l := c.login.Swap(nil)
	if l == nil || !l.end("") {
		return false
	}
	c.shard.hub.logins.remove(l)
	return true
}

// logOut handles a logout. It succeeds if the session was left, so that the end of the socket
// cancels nothing. After a failure the client stays logged in, unless the outcome is unknown.
func (c *client) logOut(e *socketio.Event) {
	var call api.Call
	c.shard.hub.opts.Guard.Begin(&call)
	l := c.login.Load()
	switch {
	case l != nil && !l.leaveSession(&call):
		if call.Failure == api.OutcomeUnknown && c.dropLogin() {
			c.shard.post(&ownLeaves{client: c})
		}
	case c.dropLogin():
		c.post(&ownLeaves{c, e})
		return
	default:
		call.Fail(api.NotLoggedIn, "")
	}
	c.shard.hub.opts.Guard.Report(&call, e.Name)
	e.AckJSON(acknowledgement(&call, 0)) //nolint:errcheck // it may be gone
}

// speakUp ends the default subscription of a silent client, at its first request.
func (c *client) speakUp() {
	if !c.spoken {
		c.spoken = true
		c.post(&changed{c})
	}
}

// endLogin ends a client's login, and notifies the client after all earlier deliveries.
func (s *shard) endLogin(m *loginEnded) {
	c := m.login.client
	s.deliver(c)
	if c.login.Load() == m.login {
		s.ownPart(c)
	}
	c.login.CompareAndSwap(m.login, nil) // before the client is notified, and logs in again
	if m.login.end(m.detail) {
		s.hub.logins.remove(m.login)
	}
	c.hold()
}
