package gateway

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

// An observer forwards requests: it has no key material, so it finds the key of a request and reads
// its fields, and the leader verifies the signature, by the same checks and in the same order as
// for its own requests. An answer goes to the client once the leader has verified the request.

var passedCalls = sync.Pool{New: func() any {
	c := new(passedCall)
	c.Reset()
	return c
}}

type passedCall struct {
	api.Call
	verifier sign.Verifier
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
func (g *Gateway) Verify(e *actors.Engine, key *directory.Key, s *directory.Signed) error {
	_, err := g.passed(e, key, 0, s, false)
	return err
}

// Commands implements actors.Edge.
func (g *Gateway) Commands(e *actors.Engine, key *directory.Key, nonce uint64,
	s *directory.Signed) ([]*actors.Command, error) {
	return g.passed(e, key, nonce, s, true)
}

// passed runs all checks on a request forwarded by an observer, and derives its commands.
func (g *Gateway) passed(e *actors.Engine, key *directory.Key, nonce uint64,
	s *directory.Signed, derive bool) (_ []*actors.Command, err error) {
	a := g.api.Load()
	if a == nil || a.Commands() != actors.Commands(e) {
		return nil, actors.ErrNotConfirmed
	}
	c := passedCalls.Get().(*passedCall)
	defer func() {
		if p := recover(); p != nil { // its state is the call's own, as that of a request
			c.Fail(api.InternalError, "")
			err = c.refusal(true)
			g.reports.ofStream("passed on: "+s.Path, api.InternalError,
				fmt.Errorf("a request that an observer has passed on panicked: %v\n%s", p,
					debug.Stack()))
		}
		c.Reset()
		passedCalls.Put(c)
	}()
	c.Begin(a)
	c.Key, c.Nonce = key, nonce
	if !c.proven(s) {
		return nil, c.refusal(true)
	}
	if s.Form == directory.SignedLogin {
		return nil, nil // its socket is counted where it is
	}
	o := operations[s.Method+" "+s.Path]
	if o == nil || !o.Private && !o.Signable || s.Signature == nil && o.Method != "POST" {
		c.Fail(api.NotFound, "")
		return nil, c.refusal(true)
	}
	if _, ok := g.limits.permit(&c.Call, o, g.now()); !ok {
		return nil, c.refusal(false)
	}
	if !derive {
		return nil, nil
	}
	list := c.Derive(o)
	if list == nil {
		return nil, c.refusal(false)
	}
	return list, nil
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

// refusal returns the call's answer for the observer. A body of the call is copied.
func (c *passedCall) refusal(unproven bool) error {
	body, _ := c.Body()
	return &actors.LeaderAnswer{Status: c.Status, Wait: c.RetryAfter(), Unproven: unproven,
		Body: append([]byte(nil), body...)}
}

// passOn prepares a forwarded request: this process cannot verify its key's signatures.
func (r *request) passOn(o *api.Operation, key *directory.Key, nonce uint64,
	signature, raw []byte) {
	s := &directory.Signed{Method: o.Method, Path: o.Path, Address: r.address(),
		Signature: append([]byte(nil), signature...)}
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

// confirmPassed lets an answer out once the leader has verified the request, either with the
// request's query or on its own.
func (r *request) confirmPassed(o *api.Operation) {
	if r.Key == nil || r.Key.Signed == nil {
		return
	}
	if !r.Key.Signed.Asked() {
		if err := r.Commands().Verify(r.Key, r.Nonce); err != nil {
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
	return c.Commands().Verify(key.With(s), 0)
}
