package api

import (
	"strconv"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/gateway/encode"
	"exchange/gateway/params"
)

// Failures of a socket's login alone. All others are those of Failures.
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

// LoggedInAs answers with the rights of a key, which a socket now holds, the name of its account,
// and, for a session, the seconds from its end to the cancels.
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

// mostDisconnect is the longest time from the end of a key's last socket to its cancels, in
// seconds.
const mostDisconnect = 60

// Session reads from a login's fields, of the call's key, which orders the end of its socket
// cancels; nil: none. ok is false if the call is answered. A filter without the seconds is refused:
// the client would believe itself protected.
func (c *Call) Session() (s *actors.Session, ok bool) {
	if _, asked := c.Form.Get(cancelOnDisconnect); !asked {
		for _, name := range []string{"pair", "type", clientIDPrefix} {
			if _, given := c.Form.Get(name); given {
				c.bad(name, "Only with "+cancelOnDisconnect+".")
			}
		}
		return nil, !c.badFields()
	}
	if c.Key.Permissions&event.PermissionTrade == 0 {
		c.Fail(NotPermitted, PermissionName(event.PermissionTrade))
		return nil, false
	}
	s = &actors.Session{Filter: c.orderFilter()}
	if text, given := c.field(cancelOnDisconnect); given {
		n, whole := Integer(text)
		if s.Seconds = uint32(n); !whole || n > mostDisconnect {
			c.bad(cancelOnDisconnect, FieldInteger+" It must be 0 to "+
				strconv.Itoa(mostDisconnect)+".")
		}
	}
	return s, !c.badFields()
}

// BeginSession makes the end of a session of the call's key cancel orders from now on. False: the
// call is answered. Its failure may be OutcomeUnknown.
func (c *Call) BeginSession(s *actors.Session, g actors.Gate) bool {
	return c.changed(actors.NewSession(c.Key, s).Through(g), "Log in again.")
}

// LeaveSession makes the end of a session of a key cancel nothing; otherwise as BeginSession.
func (c *Call) LeaveSession(key *directory.Key, s *actors.Session, g actors.Gate) bool {
	return c.changed(actors.NewLeave(key, s.Number).Through(g),
		"This socket is logged out; its orders may be cancelled.")
}

// changed carries out a change of a session. False: the call is answered.
func (c *Call) changed(change *actors.Command, hint string) bool {
	err := c.commands.Confirmed() // another process would not have the session
	var cmd *actors.Command
	if err == nil {
		cmd, err = c.commands.Do(change)
	}
	if err != nil {
		c.settingUnknown(err, hint)
		return false
	}
	defer cmd.Free()
	if cmd.Outcome() == actors.Accepted {
		return true
	}
	for _, f := range cmd.Faults() {
		c.bad(f.Field, f.Text)
	}
	if !c.badFields() {
		c.refused(cmd, orderShape{})
	}
	return false
}

// BadField answers that one field is bad.
func (c *Call) BadField(name, text string) {
	c.bad(name, text)
	c.badFields()
}
