package node

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/wire"
	"exchange/persistence/line"
)

var errNoEdge = errors.New("BUG: this node has no edge to verify observers' requests")

// A challenger makes the challenges of one connection of an observer; both sides have the seed. So
// a login signed for one connection is invalid over another.
type challenger [sha256.Size]byte

// challenge returns the one with a number.
func (c *challenger) challenge(number uint64) string {
	b := binary.BigEndian.AppendUint64(nil, number)
	sum := sha256.Sum256(append(c[:], b...))
	return hex.EncodeToString(append(b, sum[:actors.ChallengeBytes-len(b)]...))
}

// made reports whether a challenge is one of this connection's.
func (c *challenger) made(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == actors.ChallengeBytes &&
		c.challenge(binary.BigEndian.Uint64(b)) == text
}

// appendSigned writes a signed request.
func appendSigned(b []byte, s *directory.Signed) []byte {
	b = wire.AppendText(wire.AppendText(b, s.Method), s.Path)
	b = wire.AppendText(b, string(s.Address.AsSlice()))
	return wire.AppendText(wire.AppendText(append(b, s.Form), string(s.Text)), string(s.Signature))
}

// forwardBody bounds a signed request, in bytes; the edge has its own limit.
const forwardBody = 16 << 20

// parseSigned reads the format of appendSigned.
func parseSigned(p *actors.Parser) *directory.Signed {
	s := &directory.Signed{Method: p.Text(actors.MaxText), Path: p.Text(actors.MaxText)}
	if from := p.Bytes(16); len(from) > 0 {
		var ok bool
		s.Address, ok = netip.AddrFromSlice(from)
		p.Check(ok)
	}
	s.Form = p.Byte()
	p.Check(s.Form <= directory.SignedLogin)
	s.Text = []byte(p.Text(forwardBody))
	if s.Signature = []byte(p.Text(actors.MaxText)); len(s.Signature) == 0 {
		s.Signature = nil
	}
	return s
}

// appendRead writes a signed read, for a member.
func appendRead(b []byte, key *directory.Key, nonce uint64) []byte {
	b = wire.AppendUints(wire.AppendText(b, key.Public), nonce)
	return appendSigned(wire.AppendText(b, key.Signed.Order), key.Signed)
}

// Answer implements observing.Host.
func (h observedMember) Answer(read []byte) ([]byte, error) {
	p := actors.Parse(read)
	public, nonce, order := p.Bytes(actors.MaxText), p.Uint(), p.Text(actors.MaxText)
	s := parseSigned(p)
	s.Order, s.Reads = order, true
	p.Check(s.Signature != nil && s.Form != directory.SignedLogin && nonce > 0)
	switch {
	case p.Done() != nil:
		return nil, line.ErrMalformed
	case h.opts.Edge == nil:
		return nil, errNoEdge
	}
	answer := h.opts.Edge.Answer(public, nonce, s)
	if answer.Unproven {
		h.traffic.Passed.Refused.Add(1)
	} else {
		h.traffic.Passed.Verified.Add(1)
	}
	return wire.AppendValue(nil, answer), nil
}

// A signedRequest is a client's signed request, forwarded by an observer.
type signedRequest struct {
	*directory.Signed
	key     *directory.Key
	nonce   uint64
	gated   bool
	back    bool // it only cancels
	answers int  // expected number of commands; 0: only to be verified
}

// acceptSigned starts a signed request of an observer.
func (f *forwardingSession) acceptSigned(p *actors.Parser) error {
	x := &forwardedRequest{by: f, number: p.Uint()}
	x.signed.key, x.signed.nonce = f.Key(p.Bytes(actors.MaxText)), p.Uint()
	x.signed.gated, x.signed.back = p.Flag(), p.Flag()
	x.signed.answers = int(p.UpTo(uint64(f.Limits().Batch)))
	x.signed.Signed = parseSigned(p)
	p.Check((x.signed.Signature != nil) != x.signed.gated)
	if err := p.Done(); err != nil {
		return err
	}
	x.keyless = x.signed.key == nil
	if x.signed.gated && !x.keyless {
		f.begin(x, x.signed.key.Account)
	} else {
		f.begin(x, nil)
	}
	return nil
}

// derive verifies a signed request, and makes its commands.
func (f *forwardingSession) derive(x *forwardedRequest) error {
	s := &x.signed
	if err := f.checkProof(s.key, s.nonce, s.Signed); err != nil {
		return err
	}
	switch {
	case s.Form == directory.SignedLogin:
		return f.logIn(s)
	case s.answers == 0 || f.edge == nil:
		return f.verify(s.key, s.Signed)
	}
	list, err := f.edge.Commands(f.Engine, s.key, s.nonce, s.Signed)
	if err != nil {
		return err
	}
	if len(list) != s.answers { // the other side could not match the outcomes
		for _, c := range list {
			c.Free()
		}
		return actors.ErrNotConfirmed
	}
	for _, c := range list {
		c.ReplyTo(x)
		if c.Through(nil); s.gated {
			c.Through(passedGate{})
		}
	}
	x.list, x.errs = list, make([]error, len(list))
	return nil
}

// checkProof checks the form of a client's proof. A request without a signature needs a login over
// this connection, a login must sign a challenge of it, and only signed requests have a nonce.
func (f *forwardingSession) checkProof(key *directory.Key, nonce uint64,
	s *directory.Signed) error {
	login := s.Form == directory.SignedLogin
	switch {
	case login && !f.seed.made(string(s.Text)):
	case !login && s.Signature == nil && !f.hasLogin(key):
	case (nonce == 0) != (login || s.Signature == nil):
	default:
		return nil
	}
	return actors.ErrNotLoggedIn
}

// verify checks the signature of a key.
func (f *forwardingSession) verify(key *directory.Key, s *directory.Signed) error {
	if f.edge == nil {
		return errNoEdge
	}
	return f.edge.Verify(f.Engine, key, s)
}

// countPassed counts a verified or refused request.
func (f *forwardingSession) countPassed(err error) error {
	if err == nil {
		f.counts.Verified.Add(1)
	} else {
		f.counts.Refused.Add(1)
	}
	return err
}

// logIn verifies the login of a socket. From then on the observer may send the key's commands over
// this connection.
func (f *forwardingSession) logIn(s *signedRequest) error {
	err := f.verify(s.key, s.Signed)
	if err == nil {
		f.mu.Lock()
		f.logins[s.key.Number] = struct{}{}
		f.mu.Unlock()
	}
	return err
}

func (f *forwardingSession) hasLogin(key *directory.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, has := f.logins[key.Number]
	return has && !key.Revoked()
}

// checkForwarded repeats the edge's checks on commands that another member has verified, as far as
// the commands allow. A key's permissions never change, so a correct member sends none that lacks
// one.
func (f *forwardingSession) checkForwarded(x *forwardedRequest) error {
	for _, c := range x.list {
		switch {
		case x.keyless:
		case c.Key().Permissions&c.Permission() == 0:
			return actors.ErrMalformed
		case c.IsBelowMinimum():
			return actors.ErrNotConfirmed // it has other rules, or did not check them
		}
	}
	return nil
}

// checkObserver returns why an observer must not send commands itself; nil: they begin or end
// sessions of a logged-in key. All other commands are derived from signed requests.
func (f *forwardingSession) checkObserver(x *forwardedRequest) error {
	for _, c := range x.list {
		if session, _ := c.Session(); session == 0 || c.Nonce() != 0 {
			return actors.ErrMalformed
		}
		if !x.keyless && (!f.hasLogin(c.Key()) || c.Key().Permissions&event.PermissionTrade == 0) {
			return actors.ErrNotLoggedIn
		}
	}
	return nil
}
