package edge

import (
	"fmt"
	"net/netip"
	"runtime/debug"
	"sync"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/sign"
)

// An observer forwards requests: it has no key material, so it finds the key of a request, and a
// member verifies the signature, by the same checks and in the same order as for its own requests.
// The followed member answers a read. For any other request the observer reads the fields, and its
// answer goes to the client once the leader has verified the request.

var passedCalls = sync.Pool{New: func() any {
	c := new(passedCall)
	c.Reset()
	return c
}}

type passedCall struct {
	api.Call
	verifier sign.Verifier
	isProven bool // the key has signed it
}

var operations = func() map[string]*api.Operation {
	all := map[string]*api.Operation{}
	for i := range api.Operations {
		o := &api.Operations[i]
		all[o.Method+" "+o.Path] = o
	}
	return all
}()

// Verify implements actors.Edge.
func (e *Edge) Verify(engine *actors.Engine, key *directory.Key, s *directory.Signed) error {
	return e.passed(engine, key, 0, s, nil)
}

// Commands implements actors.Edge.
func (e *Edge) Commands(engine *actors.Engine, key *directory.Key, nonce uint64,
	s *directory.Signed) (list []*actors.Command, err error) {
	err = e.passed(engine, key, nonce, s, func(c *passedCall, o *api.Operation) bool {
		list = c.Derive(o)
		return list != nil
	})
	return list, err
}

// passed runs all checks on a request forwarded by an observer, except a read, and then derive.
func (e *Edge) passed(engine *actors.Engine, key *directory.Key, nonce uint64,
	s *directory.Signed, derive func(*passedCall, *api.Operation) bool) (err error) {
	a := e.api.Load()
	if a == nil || a.Commands() != actors.Commands(engine) {
		return actors.ErrNotConfirmed
	}
	answer := e.call(s, func(c *passedCall) (done bool) {
		c.Begin(a)
		c.Key, c.Nonce = key, nonce
		o, ok := c.checked(e, s)
		return ok && (o == nil || derive == nil || derive(c, o))
	})
	if answer != nil {
		return answer
	}
	return nil
}

// Answer implements actors.Edge.
func (e *Edge) Answer(public []byte, nonce uint64,
	s *directory.Signed) *actors.RemoteAnswer {
	return e.call(s, func(c *passedCall) (done bool) {
		a := e.api.Load()
		if a == nil || a.Commands() == nil {
			e.refuseAbsent(&c.Call)
			return false
		}
		c.Begin(a)
		key, err := keyOf(a.Commands(), public, s.Signature)
		switch {
		case err != nil:
			c.FailWith(err)
			return false
		case key == nil:
			c.Fail(api.Unauthenticated, "")
			return false
		}
		c.Key, c.Nonce, c.Names.Order = key, nonce, s.Order
		if o, ok := c.checked(e, s); ok {
			if err := a.Commands().Confirmed(); err != nil {
				c.FailWith(err)
			} else {
				o.Run(&c.Call)
			}
		}
		return false
	})
}

// call runs a forwarded request. It returns the answer for the observer; nil: the request is done.
func (e *Edge) call(s *directory.Signed,
	run func(c *passedCall) (done bool)) (answer *actors.RemoteAnswer) {
	c := passedCalls.Get().(*passedCall)
	defer func() {
		if p := recover(); p != nil { // its state is the call's own, as that of a request
			c.Cause = fmt.Errorf("a request that an observer has passed on panicked: %v\n%s", p,
				debug.Stack())
			c.Fail(api.InternalError, "")
			answer = c.answer()
		}
		if f := c.Failure; f != nil && f.Ours {
			e.reports.ofStream("passed on: "+s.Path, f, c.Cause)
		}
		c.Reset()
		c.isProven = false
		passedCalls.Put(c)
	}()
	if run(c) {
		return nil
	}
	return c.answer()
}

// checked makes all checks of a forwarded request, and returns its operation; nil: a login, whose
// socket is counted where it is. False: the call is answered.
func (c *passedCall) checked(e *Edge, s *directory.Signed) (o *api.Operation, ok bool) {
	if !c.proven(s) {
		return nil, false
	}
	if s.Form == directory.SignedLogin {
		c.isProven = true
		return nil, true
	}
	o = operations[s.Method+" "+s.Path]
	if o == nil || !o.Private && !o.Signable || s.Reads && !o.Reads ||
		s.Signature == nil && o.Method != "POST" {
		c.Fail(api.NotFound, "")
		return nil, false
	}
	c.isProven = true
	_, ok = e.limits.permit(&c.Call, o, e.now())
	return o, ok
}

// proven makes the checks of request.identify, from the allow-list to the signature. False: the
// call is answered. A request over a socket has no signature: its login was verified.
func (c *passedCall) proven(s *directory.Signed) bool {
	if len(c.Key.Allow) > 0 && !listen.Within(c.Key.Allow, s.Address) {
		c.Fail(api.AddressNotAllowed, "")
		return false
	}
	valid := true
	public := []byte(c.Key.Public)
	material := c.Key.Material.(*sign.Keyed)
	switch s.Form {
	case directory.SignedLogin:
		valid = material.VerifyLogin(&c.verifier, c.Key.Public, string(s.Text), s.Signature)
	case directory.SignedQuery:
		if len(s.Text) > 0 {
			if err := c.Query.ParseQuery(s.Text); err != nil {
				c.Fail(api.MalformedQuery, err.Error())
				return false
			}
		}
		valid = s.Method == "GET" &&
			material.VerifyGet(&c.verifier, public, &c.Query, s.Text, s.Signature)
	default:
		if !c.parsedBody(s) {
			return false
		}
		var raw []byte
		if s.Form == directory.SignedForm {
			raw = s.Text
		}
		valid = s.Method == "POST" && (s.Signature == nil ||
			material.Verify(&c.verifier, public, &c.Form, raw, s.Signature))
	}
	if !valid {
		c.Fail(api.WrongSignature, "")
	}
	return valid
}

func (c *passedCall) parsedBody(s *directory.Signed) bool {
	var err error
	switch {
	case len(s.Text) == 0:
	case s.Form == directory.SignedForm:
		err = c.Form.ParseForm(s.Text)
	default:
		err = c.Form.ParseJSON(s.Text)
	}
	return c.Parsed(err)
}

// answer returns the call's answer for the observer. A body of the call is copied.
func (c *passedCall) answer() *actors.RemoteAnswer {
	body, _ := c.Body()
	return &actors.RemoteAnswer{Status: c.Status, Wait: c.RetryAfter(), Unproven: !c.isProven,
		Body: append([]byte(nil), body...)}
}

// passOn prepares a forwarded request: this process cannot verify its key's signatures.
func (r *request) passOn(o *api.Operation, key *directory.Key, nonce uint64,
	signature, raw []byte) {
	s := &directory.Signed{Method: o.Method, Path: o.Path, Order: r.Names.Order, Reads: o.Reads,
		Address: r.address(), Signature: append([]byte(nil), signature...)}
	switch {
	case !r.ctx.IsPost():
		s.Form, s.Text = directory.SignedQuery, r.ctx.URI().QueryString()
	case raw != nil:
		s.Form, s.Text = directory.SignedForm, raw
	default:
		s.Form, s.Text = directory.SignedJSON, r.ctx.PostBody()
	}
	s.Text = append([]byte(nil), s.Text...)
	r.Key, r.Nonce = key.With(s), nonce
	if r.commands, r.cancels = 0, 0; o.Tokens != nil {
		r.commands, r.cancels = o.Tokens(&r.Call) // the operation needs its items
	}
}

// confirmPassed lets an answer out once another node has verified the request, either with the
// request's commands or on its own.
func (r *request) confirmPassed(o *api.Operation) {
	if r.Key == nil || r.Key.Signed == nil {
		return
	}
	if !r.Key.Signed.Asked() {
		if _, err := r.Commands().Verify(r.Key, r.Nonce); err != nil {
			r.FailWith(err)
		}
	}
	if r.Unproven() {
		r.countFailure()
		return
	}
	listen.Authenticated(r.ctx.Conn())
	r.rate = r.edge.limits.takePermitted(r.Key, o, r.commands, r.cancels, r.at)
}

// verifyLogin returns nil if the signature of a login's challenge is right.
func verifyLogin(c *api.Call, key *directory.Key, from netip.Addr, challenge string,
	signature []byte) error {
	s := &directory.Signed{Address: from, Form: directory.SignedLogin, Text: []byte(challenge),
		Signature: signature}
	_, err := c.Commands().Verify(key.With(s), 0)
	return err
}
