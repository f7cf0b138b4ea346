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

// An observer has no keys' secrets, so it forwards signed requests to a member of the cluster,
// which verifies them by the checks of its own requests, in the same order. The followed member
// runs a read. For any other request the observer reads the fields and makes the response, which it
// sends once the leader has verified the request.

var forwardedCalls = sync.Pool{New: func() any {
	c := new(forwardedCall)
	c.Reset()
	return c
}}

type forwardedCall struct {
	api.Call
	verifier   sign.Verifier
	isVerified bool // the signature was verified
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
	return e.checkForwarded(engine, key, 0, s, nil)
}

// Commands implements actors.Edge.
func (e *Edge) Commands(engine *actors.Engine, key *directory.Key, nonce uint64,
	s *directory.Signed) (list []*actors.Command, err error) {
	err = e.checkForwarded(engine, key, nonce, s, func(c *forwardedCall, o *api.Operation) bool {
		list = c.Derive(o)
		return list != nil
	})
	return list, err
}

// checkForwarded runs all checks on a request forwarded by an observer, and then derive; nil: none.
// It is not for reads. The error is the RemoteAnswer, or ErrNotConfirmed.
func (e *Edge) checkForwarded(engine *actors.Engine, key *directory.Key, nonce uint64,
	s *directory.Signed, derive func(*forwardedCall, *api.Operation) bool) (err error) {
	a := e.api.Load()
	if a == nil || a.Commands() != actors.Commands(engine) {
		return actors.ErrNotConfirmed
	}
	answer := e.runForwarded(s, func(c *forwardedCall) (passed bool) {
		c.BindAPI(a)
		c.Key, c.Nonce = key, nonce
		o, ok := c.runChecks(e, s)
		return ok && (o == nil || derive == nil || derive(c, o))
	})
	if answer != nil {
		return answer
	}
	return nil
}

// Answer implements actors.Edge.
func (e *Edge) Answer(keyID []byte, nonce uint64,
	s *directory.Signed) *actors.RemoteAnswer {
	return e.runForwarded(s, func(c *forwardedCall) (passed bool) {
		a := e.api.Load()
		if a == nil || a.Commands() == nil {
			e.refuseNotServing(&c.Call)
			return false
		}
		c.BindAPI(a)
		key, err := keyOf(a.Commands(), keyID, s.Signature)
		switch {
		case err != nil:
			c.FailWith(err)
			return false
		case key == nil:
			c.Fail(api.Unauthenticated, "")
			return false
		}
		c.Key, c.Nonce, c.Path.Order = key, nonce, s.Order
		if o, ok := c.runChecks(e, s); ok {
			if err := a.Commands().Confirmed(); err != nil {
				c.FailWith(err)
			} else {
				o.Run(&c.Call)
			}
		}
		return false
	})
}

// runForwarded runs a forwarded request. It returns nil if run returns true, because the request
// has passed all checks; otherwise the response that run wrote.
func (e *Edge) runForwarded(s *directory.Signed,
	run func(c *forwardedCall) (passed bool)) (answer *actors.RemoteAnswer) {
	c := forwardedCalls.Get().(*forwardedCall)
	defer func() {
		if p := recover(); p != nil { // only this call's state can be broken, as in request.recover
			c.Cause = fmt.Errorf("a request that an observer has forwarded panicked: %v\n%s", p,
				debug.Stack())
			c.Fail(api.InternalError, "")
			answer = c.answer()
		}
		if f := c.Failure; f != nil && f.Ours {
			e.reports.reportStream("forwarded: "+s.Path, f, c.Cause)
		}
		c.Reset()
		c.isVerified = false
		forwardedCalls.Put(c)
	}()
	if run(c) {
		return nil
	}
	return c.answer()
}

// runChecks makes all checks of a forwarded request, and returns its operation; nil: a login, whose
// limits the observer checks. It returns false after writing an error response.
func (c *forwardedCall) runChecks(e *Edge, s *directory.Signed) (o *api.Operation, ok bool) {
	if !c.verify(s) {
		return nil, false
	}
	if s.Form == directory.SignedLogin {
		c.isVerified = true
		return nil, true
	}
	o = operations[s.Method+" "+s.Path]
	if o == nil || !o.Private && !o.Signable || s.Reads && !o.Reads ||
		s.Signature == nil && o.Method != "POST" {
		c.Fail(api.NotFound, "")
		return nil, false
	}
	c.isVerified = true
	_, ok = e.limits.permit(&c.Call, o, e.now())
	return o, ok
}

// verify makes the checks of request.identify, from the allow-list to the signature. It returns
// false after writing an error response. A request over a socket has no signature: its login was
// verified.
func (c *forwardedCall) verify(s *directory.Signed) bool {
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
		if !c.parseBody(s) {
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

func (c *forwardedCall) parseBody(s *directory.Signed) bool {
	var err error
	switch {
	case len(s.Text) == 0:
	case s.Form == directory.SignedForm:
		err = c.Form.ParseForm(s.Text)
	default:
		err = c.Form.ParseJSON(s.Text)
	}
	return c.CheckParse(err)
}

// answer returns the call's response for the observer, with a copy of its body.
func (c *forwardedCall) answer() *actors.RemoteAnswer {
	body, _ := c.Body()
	return &actors.RemoteAnswer{Status: c.Status, Wait: c.RetryAfter(), Unproven: !c.isVerified,
		Body: append([]byte(nil), body...)}
}

// prepareForward attaches the signed request to its key, for another node's verification.
func (r *request) prepareForward(o *api.Operation, key *directory.Key, nonce uint64,
	signature, raw []byte) {
	s := &directory.Signed{Method: o.Method, Path: o.Path, Order: r.Path.Order, Reads: o.Reads,
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
		r.commands, r.cancels = o.Tokens(&r.Call) // which also reads the items
	}
}

// confirmForwarded lets an answer out once another node has verified the request, either with the
// request's commands or on its own.
func (r *request) confirmForwarded(o *api.Operation) {
	if r.Key == nil || r.Key.Signed == nil {
		return
	}
	if !r.Key.Signed.VerificationRequested() {
		if _, err := r.Commands().Verify(r.Key, r.Nonce); err != nil {
			r.FailWith(err)
		}
	}
	if r.Unproven() {
		r.takeFailureToken()
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
