package stream

import (
	"strconv"
	"sync"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/gateway/api"
	"exchange/gateway/encode"
	"exchange/gateway/socketio"
)

// A login is the right of one socket to act for an account, without a signature and a nonce for
// each request. It begins with the login that is answered with 200. It ends with a logout, with its
// socket, or with its key: see committed.End. Any goroutine may use it.
//
// The hook of a client's packet finds it in client.login; nil: the socket is not logged in, and the
// packet is answered with api.NotLoggedIn. A packet with commands goes these steps, in this order:
//
//	l.refusal(operation)   each use: the key, its permission, and its account, as of now
//	l.begin()              the packet is taken; false: an answer to it would come too late
//	l.Pass(func() {...})   gives one command to its wallet; false: the packet was dropped
//	l.answer(event, json)  false: the login has ended, and the client gets no answer
//	l.finish()             all commands of the packet are with their wallets, or dropped
//
// The end of the socket takes back nothing that was begun. Only another login of the key does so,
// if it names the socket in "ends": cut closes the fence. From then on Pass returns false, and no
// command that Pass lets through is on its way any more, but all of them are with their wallets.
type login struct {
	key      *directory.Key // its account and permissions, too
	client   *client
	replaces string // id of a socket that may log in with the key no more; "": none

	session *actors.Session // whose end cancels orders; nil: that of this login cancels none

	mu           sync.Mutex
	stage        loginStage // guarded by mu
	open         int        // guarded by mu: packets that have begun and not finished
	sessionBegun bool       // guarded by mu: the wallet may know the session

	fence sync.RWMutex // held for reading while a command is given to its wallet
	cutUp bool         // guarded by fence
}

// A loginStage is a stage of a login.
type loginStage uint8

const (
	loginAsked loginStage = iota // not answered yet
	loginLives
	loginOver
)

// refusal returns the failure of an operation for the key of the login now, and its about; nil: the
// key may use it. The directory may know of the end of a key before the login has heard of it.
func (l *login) refusal(o *api.Operation) (f *api.Failure, about string) {
	if l.key.Revoked() {
		return api.Unauthenticated, ""
	}
	return o.Refusal(l.key)
}

// begin notes that a packet has commands which are not with their wallets yet. It returns false if
// the login has ended.
func (l *login) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stage != loginLives {
		return false
	}
	l.open++
	return true
}

// finish ends what begin began.
func (l *login) finish() {
	l.mu.Lock()
	l.open--
	over := l.open == 0 && l.stage == loginOver
	l.mu.Unlock()
	if over {
		l.client.shard.hub.logins.remove(l)
	}
}

// Pass implements actors.Gate: it calls give, which gives one command to its wallet and does not
// wait for its outcome. It returns false, and calls nothing, if another login has ended the socket.
func (l *login) Pass(give func()) bool {
	l.fence.RLock()
	defer l.fence.RUnlock()
	if !l.cutUp {
		give()
	}
	return !l.cutUp
}

// cut closes the socket for good: see login.
func (l *login) cut() {
	l.fence.Lock()
	l.cutUp = true
	l.fence.Unlock()
	l.client.socket.Close(socketio.ServerClose)
}

// answer acknowledges an event with an answer to the account, unless the login has ended. Nothing
// goes out as the account behind the event login.end.
func (l *login) answer(e *socketio.Event, payload []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stage == loginOver {
		return false
	}
	l.stage = loginLives // the first answer is that to the login
	e.AckJSON(payload)   //nolint:errcheck // the client may be gone, or have asked for none
	return true
}

// beginSession tells the wallet of the login's session, if it has one. False: the call is answered. The
// login may end meanwhile: then the session ends behind its begin.
func (l *login) beginSession(call *api.Call) (ok bool) {
	if l.session == nil {
		return true
	}
	begun := true // for what a panic leaves behind
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.sessionBegun = begun; begun && l.stage == loginOver {
			l.loseSession()
		}
	}()
	l.client.socket.Rest(func() { ok = call.BeginSession(l.session, l) })
	begun = ok || call.Failure == api.OutcomeUnknown
	return ok
}

// leaveSession has the end of the login's session cancel nothing. False: the call is answered.
func (l *login) leaveSession(call *api.Call) (ok bool) {
	if l.session == nil {
		return true
	}
	l.client.socket.Rest(func() { ok = call.LeaveSession(l.key, l.session, l) })
	return ok
}

// loseSession tells the wallet of the session's end, which changes nothing if the client has left.
func (l *login) loseSession() { l.client.shard.hub.commands.SessionLost(l.key, l.session.Number) }

// over ends the login. If the client knows of the login, a detail tells it the end; "": it is told
// nothing. False: the login had ended before. The shard of the client calls it for the end of a
// key, behind all deliveries for the account until then.
func (l *login) over(detail string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := l.stage == loginLives
	if l.stage == loginOver {
		return false
	}
	l.stage = loginOver
	if l.sessionBegun {
		l.loseSession()
	}
	if told && detail != "" {
		b := append(encode.Text([]byte(`{"detail":`), detail), '}')
		l.client.socket.Deliver([]socketio.Delivery{{Tag: answers, Policy: socketio.Keep,
			Frames: socketio.AppendFrame(nil, "/", "login.end", b)}}, nil)
	}
	return true
}

// isOver reports whether the login has ended, and whether nothing of it is on its way any more.
func (l *login) isOver() (ended, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stage == loginOver, l.open == 0
}

// acknowledgement returns a call's answer in the form of all private events: status and body of
// REST, and the seconds until the client may come back, if there are any.
func acknowledgement(c *api.Call, wait int) []byte {
	body, _ := c.Body()
	b := strconv.AppendInt([]byte(`{"status":`), int64(c.Status), 10)
	b = append(append(b, `,"body":`...), body...)
	if wait = max(wait, c.RetryAfter()); wait > 0 {
		b = strconv.AppendInt(append(b, `,"retry_after":`...), int64(wait), 10)
	}
	return append(b, '}')
}
