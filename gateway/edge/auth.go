package edge

import (
	"bytes"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/sign"
)

// permitted checks the rights of the key, see rateLimits.permit. False: the request is answered.
func (r *request) permitted(o *api.Operation) (ok bool) {
	r.rate, ok = r.edge.limits.permit(&r.Call, o, r.at)
	return ok
}

// identify finds the key, checks its allow-list, reads the body, and verifies the signature, or
// prepares the forwarded request where it cannot. False: the request is answered. It reads the
// nonce and does not use it: the wallet takes the nonce.
func (r *request) identify(o *api.Operation) bool {
	h := &r.ctx.Request.Header
	public, signature := h.Peek("X-Key"), h.Peek("X-Sign")
	key, err := keyOf(r.Commands(), public, signature)
	switch {
	case err != nil:
		r.FailWith(err)
		return false
	case key == nil:
		r.Fail(api.Unauthenticated, "")
		return false
	}
	nonce, ok := r.nonce()
	if !ok {
		return false
	}
	if len(key.Allow) > 0 && !listen.Within(key.Allow, r.address()) {
		r.Fail(api.AddressNotAllowed, "")
		return false
	}
	var raw []byte
	if r.ctx.IsPost() {
		raw, ok = r.parseBody()
	} else {
		ok = r.parseQuery()
	}
	if !ok {
		return false
	}
	if key.Material == nil {
		r.passOn(o, key, nonce, signature, raw)
		return true
	}
	material, valid := key.Material.(*sign.Keyed), false
	if r.ctx.IsPost() {
		valid = material.Verify(&r.verifier, public, &r.Form, raw, signature)
	} else {
		valid = material.VerifyGet(&r.verifier, public, &r.Query, r.ctx.URI().QueryString(),
			signature)
	}
	if !valid {
		r.Fail(api.WrongSignature, "")
		return false
	}
	listen.Authenticated(r.ctx.Conn())
	r.Key, r.Nonce = key, nonce
	return true
}

// nonce reads the nonce. False: the request is answered.
func (r *request) nonce() (nonce uint64, ok bool) {
	text := r.ctx.Request.Header.Peek("X-Nonce")
	nonce, ok = api.Digits(text)
	switch {
	case len(text) == 0:
		r.Fail(api.MissingNonce, "")
	case !ok || nonce == 0:
		r.Fail(api.MalformedNonce, "")
	default:
		return nonce, true
	}
	return 0, false
}

// keyOf returns the key of that name, nil if there is none, or if the signature is malformed. A key
// unknown here may be a brand-new one: the error says that this process cannot decide.
func keyOf(c actors.Commands, public, signature []byte) (*directory.Key, error) {
	if len(public) == 0 || len(signature) != sign.SignatureLen || !isHex(signature) {
		return nil, nil
	}
	if key := c.Key(public); key != nil {
		return key, nil
	}
	if err := c.AwaitCurrent(); err != nil {
		return nil, err
	}
	return c.Key(public), nil
}

// isHex reports whether all of b are hexadecimal digits: a signature of other characters is
// malformed. It uses a table, because branches on random digits are mispredicted, which would cost
// more than all the rest.
func isHex(b []byte) bool {
	all := true
	for _, c := range b {
		all = all && hexDigits[c]
	}
	return all
}

var hexDigits = func() (is [256]bool) {
	for _, c := range "0123456789abcdefABCDEF" {
		is[c] = true
	}
	return is
}()

// parseBody reads the parameters of a POST. raw is a form's body as sent, nil for JSON. An empty
// body of any type is an empty set of parameters.
func (r *request) parseBody() (raw []byte, ok bool) {
	for coding := range bytes.SplitSeq(listOf(&r.ctx.Request.Header, "Content-Encoding"),
		[]byte{','}) {
		if coding = bytes.TrimSpace(coding); len(coding) > 0 &&
			!bytes.EqualFold(coding, []byte("identity")) {
			r.Fail(api.PackedBody, "")
			return nil, false
		}
	}
	body := r.ctx.PostBody()
	if len(body) == 0 {
		return nil, true
	}
	kind, _, _ := bytes.Cut(r.ctx.Request.Header.ContentType(), []byte{';'})
	kind = bytes.TrimSpace(kind)
	var err error
	switch {
	case bytes.EqualFold(kind, []byte("application/json")):
		err = r.Form.ParseJSON(body)
	case bytes.EqualFold(kind, []byte("application/x-www-form-urlencoded")):
		err = r.Form.ParseForm(body)
		raw = body
	default:
		r.Fail(api.UnknownContentType, "")
		return nil, false
	}
	return raw, r.Parsed(err)
}

// parseQuery reads the parameters of the address; false if the request was answered. A private
// request does so after its key was found.
func (r *request) parseQuery() bool {
	if q := r.ctx.URI().QueryString(); len(q) > 0 {
		if err := r.Query.ParseQuery(q); err != nil {
			r.Fail(api.MalformedQuery, err.Error())
			return false
		}
	}
	return true
}

// identified is identify, and counts a failure, unless the exchange is still starting.
func (r *request) identified(o *api.Operation) bool {
	ok := r.identify(o)
	if !ok {
		r.countFailure()
	}
	return ok
}

// confirmed answers 503 for a private read while another process may own the store.
func (r *request) confirmed() bool {
	if err := r.Commands().Confirmed(); err != nil {
		r.Fail(api.FailureOf(err), "")
		return false
	}
	return true
}
