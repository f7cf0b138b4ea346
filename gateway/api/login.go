package api

import (
	"strconv"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/gateway/encode"
	"exchange/gateway/params"
)

// Failures that only a socket's login has. All others are in Failures.
var (
	NoChallenge = &Failure{Name: "NoChallenge", Status: 401,
		Detail: "There is no challenge for this socket, or it is too old: ask for one."}
	NotLoggedIn = &Failure{Name: "NotLoggedIn", Status: 401,
		Detail: "This socket is not logged in."}
	LoggedIn = &Failure{Name: "LoggedIn", Status: 400,
		Detail: "This socket is logged in already: log out first."}
	TooManyLogins = &Failure{Name: "TooManyLogins", Status: 400,
		Detail: "This key is logged in on too many sockets: log out on one first."}
	LoginEnded = &Failure{Name: "LoginEnded", Status: 401,
		Detail: "Another socket of the key has ended this one."}
)

// LoggedInAs writes the answer of a login: the key's rights, its account's name and, with a
// session, the seconds from the session's end to its cancels.
func (c *Call) LoggedInAs(key *directory.Key, s *actors.Session) {
	b := append(c.body[:0], `{"permissions":[`...)
	first := true
	for p := event.PermissionRead; p <= event.PermissionWithdraw; p <<= 1 {
		if key.Permissions&p == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = encode.Text(b, PermissionName(p))
	}
	b = encode.Text(append(b, `],"account":`...), key.Account.Name)
	if s != nil {
		b = strconv.AppendUint(append(b, `,"cancel_on_disconnect":`...), uint64(s.Seconds), 10)
	}
	c.body = append(b, '}')
}

// Text returns a field of a login; "": missing or not a text.
func (c *Call) Text(name string) string {
	if p, ok := c.Form.Get(name); ok && p.Kind == params.String {
		return string(p.Value)
	}
	return ""
}

const cancelOnDisconnect = "cancel_on_disconnect"

// mostDisconnect is the maximum of cancel_on_disconnect, in seconds from the end of a key's last
// socket to the cancels.
const mostDisconnect = 60

// Session reads from a login's fields which orders the end of the socket cancels; nil: none. It
// returns false after writing an error response. A filter without cancel_on_disconnect is refused,
// because its client would believe itself protected.
func (c *Call) Session() (s *actors.Session, ok bool) {
	if _, asked := c.Form.Get(cancelOnDisconnect); !asked {
		for _, name := range []string{"pair", "type", clientIDPrefix} {
			if _, given := c.Form.Get(name); given {
				c.addError(name, "Only with "+cancelOnDisconnect+".")
			}
		}
		return nil, !c.failOnBadFields()
	}
	if c.Key.Permissions&event.PermissionTrade == 0 {
		c.Fail(NotPermitted, PermissionName(event.PermissionTrade))
		return nil, false
	}
	s = &actors.Session{Filter: c.orderFilter()}
	if text, given := c.field(cancelOnDisconnect); given {
		n, whole := Integer(text)
		if s.Seconds = uint32(n); !whole || n > mostDisconnect {
			c.addError(cancelOnDisconnect, FieldInteger+" It must be 0 to "+
				strconv.Itoa(mostDisconnect)+".")
		}
	}
	return s, !c.failOnBadFields()
}

// BeginSession begins a session of the call's key, whose end will cancel orders. It returns false
// after writing an error response, which may be OutcomeUnknown.
func (c *Call) BeginSession(s *actors.Session, g actors.Gate) bool {
	return c.finishSession(actors.NewSession(c.Key, s).Through(g), "Log in again.")
}

// LeaveSession ends a session of a key without cancels. Errors are those of BeginSession.
func (c *Call) LeaveSession(key *directory.Key, s *actors.Session, g actors.Gate) bool {
	return c.finishSession(actors.NewLeave(key, s.Number).Through(g),
		"This socket is logged out; its orders may be cancelled.")
}

// finishSession executes a command about a session. It returns false after writing an error
// response.
func (c *Call) finishSession(change *actors.Command, hint string) bool {
	err := c.commands.Confirmed() // another process would not have the session
	var cmd *actors.Command
	if err == nil {
		cmd, err = c.commands.Do(change)
	}
	if err != nil {
		c.failSetting(err, hint)
		return false
	}
	defer cmd.Free()
	if cmd.Outcome() == actors.Accepted {
		return true
	}
	for _, f := range cmd.Faults() {
		c.addError(f.Field, f.Text)
	}
	if !c.failOnBadFields() {
		c.failRefused(cmd, orderShape{})
	}
	return false
}

// BadField writes the response for one bad field.
func (c *Call) BadField(name, text string) {
	c.addError(name, text)
	c.failOnBadFields()
}
