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

// A login authorizes one socket to act for an account, without a signature and a nonce for each
// request. It starts with the answer 200. It ends with a logout, with its socket, or with its key:
// see committed.Revocation. Any goroutine may use it.
//
// The packet hooks find it in client.login; nil: the socket is not logged in, and the packet is
// answered with api.NotLoggedIn. A packet with commands takes these steps, in this order:
//
//	l.refusal(operation)   each use: the key, its permission, and its account, as of now
//	l.begin()              the packet is accepted; false: the login has ended
//	l.Pass(func() {...})   sends one command to its wallet; false: the packet was dropped
//	l.answer(event, json)  false: the login has ended, and the client gets no answer
//	l.finish()             all commands of the packet are at their wallets, or dropped
//
// The end of the socket drops no accepted packet. Only another login of the key does, if it names
// the socket in "ends": cut closes the fence. From then on Pass returns false, and all commands
// that Pass let through are at their wallets.
type login struct {
	key      *directory.Key // with account and permissions
	client   *client
	replaces string // id of the socket that this login replaces; "": none

	session *actors.Session // session whose end cancels orders; nil: none

	mu           sync.Mutex
	stage        loginStage // guarded by mu
	open         int        // guarded by mu: packets between begin and finish
	sessionBegun bool       // guarded by mu: the wallet may have the session

	fence sync.RWMutex // read-held while a command is sent to its wallet
	cutUp bool         // guarded by fence
}

// A loginStage is a stage of a login.
type loginStage uint8

const (
	loginAsked loginStage = iota // not answered yet
	loginLives
	loginOver
)

// refusal returns the failure of an operation for the login's key now, and its about; nil: the key
// may use it. The directory may have a revocation before the login ends.
func (l *login) refusal(o *api.Operation) (f *api.Failure, about string) {
	if l.key.Revoked() {
		return api.Unauthenticated, ""
	}
	return o.Refusal(l.key)
}

// begin registers a packet with commands in flight to wallets. It returns false if the login has
// ended.
func (l *login) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stage != loginLives {
		return false
	}
	l.open++
	return true
}

// finish unregisters a packet of begin.
func (l *login) finish() {
	l.mu.Lock()
	l.open--
	over := l.open == 0 && l.stage == loginOver
	l.mu.Unlock()
	if over {
		l.client.shard.hub.logins.remove(l)
	}
}

// Pass implements actors.Gate: it calls give, which sends one command to its wallet without waiting
// for its outcome. It returns false, and does not call give, if another login has replaced this
// one.
func (l *login) Pass(give func()) bool {
	l.fence.RLock()
	defer l.fence.RUnlock()
	if !l.cutUp {
		give()
	}
	return !l.cutUp
}

// cut closes the socket permanently: see login.
func (l *login) cut() {
	l.fence.Lock()
	l.cutUp = true
	l.fence.Unlock()
	l.client.socket.Close(socketio.ServerClose)
}

// answer acknowledges an event with an answer to the account, unless the login has ended. Nothing
// is sent for the account after the event login.end.
func (l *login) answer(e *socketio.Event, payload []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stage == loginOver {
		return false
	}
	l.stage = loginLives // the first answer is that of the login
	e.AckJSON(payload)   //nolint:errcheck // the client may be gone
	return true
}

// beginSession starts the login's session at the wallet, if it has one. It returns false after
// writing an error response. If the login ends meanwhile, the session ends after its begin.
func (l *login) beginSession(call *api.Call) (ok bool) {
	if l.session == nil {
		return true
	}
	begun := true // in case of a panic
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

// leaveSession ends the login's session without cancelling orders. It returns false after writing
// an error response.
func (l *login) leaveSession(call *api.Call) (ok bool) {
	if l.session == nil {
		return true
	}
	l.client.socket.Rest(func() { ok = call.LeaveSession(l.key, l.session, l) })
	return ok
}

// loseSession reports the session's end to the wallet, with no effect after leaveSession.
func (l *login) loseSession() { l.client.shard.hub.commands.SessionLost(l.key, l.session.Number) }

// end ends the login; false: it had ended before. If the login was answered, the client gets
// detail; "": nothing. For a revocation the client's shard calls end, after all earlier deliveries
// for the account.
func (l *login) end(detail string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	answered := l.stage == loginLives
	if l.stage == loginOver {
		return false
	}
	l.stage = loginOver
	if l.sessionBegun {
		l.loseSession()
	}
	if answered && detail != "" {
		b := append(encode.Text([]byte(`{"detail":`), detail), '}')
		l.client.socket.Deliver([]socketio.Delivery{{Tag: answers, Policy: socketio.Keep,
			Frames: socketio.AppendFrame(nil, "/", "login.end", b)}}, nil)
	}
	return true
}

// isOver reports whether the login has ended, and whether it has no packets in flight.
func (l *login) isOver() (ended, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stage == loginOver, l.open == 0
}

// acknowledgement returns a call's answer in the form of all private events: status and body of
// REST, and the seconds until a retry, if any.
func acknowledgement(c *api.Call, wait int) []byte {
	body, _ := c.Body()
	b := strconv.AppendInt([]byte(`{"status":`), int64(c.Status), 10)
	b = append(append(b, `,"body":`...), body...)
	if wait = max(wait, c.RetryAfter()); wait > 0 {
		b = strconv.AppendInt(append(b, `,"retry_after":`...), int64(wait), 10)
	}
	return append(b, '}')
}
