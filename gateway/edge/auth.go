package edge

import (
	"bytes"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/gateway/api"
	"exchange/gateway/listen"
	"exchange/gateway/sign"
)

// checkPermission is rateLimits.permit for the request.
func (r *request) checkPermission(o *api.Operation) (ok bool) {
	r.rate, ok = r.edge.limits.permit(&r.Call, o, r.at)
	return ok
}

// identify finds the key, checks its allow-list, reads the parameters, and verifies the signature.
// Without the key's secret it prepares a forwarded request instead. It returns false after writing
// an error response. It only reads the nonce: the wallet uses it.
func (r *request) identify(o *api.Operation) bool {
	h := &r.ctx.Request.Header
	keyID, signature := h.Peek("X-Key"), h.Peek("X-Sign")
	key, err := keyOf(r.Commands(), keyID, signature)
	switch {
	case err != nil:
		r.FailWith(err)
		return false
	case key == nil:
		r.Fail(api.Unauthenticated, "")
		return false
	}
	nonce, ok := r.readNonce()
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
		r.prepareForward(o, key, nonce, signature, raw)
		return true
	}
	material, valid := key.Material.(*sign.Keyed), false
	if r.ctx.IsPost() {
		valid = material.Verify(&r.verifier, keyID, &r.Form, raw, signature)
	} else {
		valid = material.VerifyGet(&r.verifier, keyID, &r.Query, r.ctx.URI().QueryString(),
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

// readNonce reads the nonce. It returns false after writing an error response.
func (r *request) readNonce() (nonce uint64, ok bool) {
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

// keyOf returns the key with an id; nil: it does not exist, or the signature is malformed. If the
// key is unknown, keyOf waits for newer records. An error: the process cannot tell whether it
// exists.
func keyOf(c actors.Commands, keyID, signature []byte) (*directory.Key, error) {
	if len(keyID) == 0 || len(signature) != sign.SignatureLen || !isHex(signature) {
		return nil, nil
	}
	if key := c.Key(keyID); key != nil {
		return key, nil
	}
	if err := c.AwaitCurrent(); err != nil {
		return nil, err
	}
	return c.Key(keyID), nil
}

// isHex reports whether all of b are hexadecimal digits. It uses a table, because branches on
// random digits are mispredicted, which would cost more than the rest of keyOf.
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
			r.Fail(api.EncodedBody, "")
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
	return raw, r.CheckParse(err)
}

// parseQuery reads the parameters of the URL's query. It returns false after writing an error
// response.
func (r *request) parseQuery() bool {
	if q := r.ctx.URI().QueryString(); len(q) > 0 {
		if err := r.Query.ParseQuery(q); err != nil {
			r.Fail(api.MalformedQuery, err.Error())
			return false
		}
	}
	return true
}

// authenticate is identify. A failure takes a token of the address's failed requests.
func (r *request) authenticate(o *api.Operation) bool {
	ok := r.identify(o)
	if !ok {
		r.takeFailureToken()
	}
	return ok
}

// checkOwner returns false after writing 503, while another process may own the store. It is for
// private reads.
func (r *request) checkOwner() bool {
	if err := r.Commands().Confirmed(); err != nil {
		r.Fail(api.FailureOf(err), "")
		return false
	}
	return true
}
