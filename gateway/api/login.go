package api

import (
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/gateway/encode"
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
		Detail: "This key is logged in on as many sockets as it may be: log out on one first."}
	LoginEnded = &Failure{Name: "LoginEnded", Status: 401,
		Detail: "Another socket of the key has ended this one."}
)

// LoggedInAs answers with the rights of a key, which a socket has from now on.
func (c *Call) LoggedInAs(key *directory.Key) {
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
	c.body = append(b, `]}`...)
}

// BadField answers that one field is wrong.
func (c *Call) BadField(name, text string) {
	c.bad(name, text)
	c.badFields()
}
