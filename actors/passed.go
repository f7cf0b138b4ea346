package actors

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/wire"
)

// An Edge holds a request that an observer has passed on against all that it holds its own clients'
// requests against: the signature, the address, the permission, the rates, the fields. Package
// gateway has it. Any goroutine may call it.
type Edge interface {
	// Verify returns nil if a live key has signed a request, or a login, and may send it now.
	Verify(e *Engine, key *directory.Key, s *directory.Signed) error
	// Commands is Verify, and returns the commands that the request asks for. It may wait.
	Commands(e *Engine, key *directory.Key, nonce uint64,
		s *directory.Signed) ([]*Command, error)
}

// An Answered is the answer to a request that the node that leads has refused, as a client gets it.
type Answered struct {
	Status   int
	Wait     int // seconds after which the client may come back; 0: not told
	Unproven bool
	Body     []byte
}

// Error tells the answer.
func (a *Answered) Error() string { return "refused by the node that leads: " + string(a.Body) }

var (
	// ErrNotLoggedIn refuses a command of a socket whose login the node that leads does not know:
	// it was verified over a connection that is over, or by another node.
	ErrNotLoggedIn = errors.New("the node that leads does not know this login")
	errNoEdge      = errors.New("BUG: this node has no edge that verifies what observers pass on")
)

// challengeBytes is the length of a challenge, which is sent as hexadecimal digits.
const challengeBytes = 32

// newChallenge returns a text that no client can guess.
func newChallenge() string {
	var b [challengeBytes]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return hex.EncodeToString(b[:])
}

// A challenger makes the challenges of one connection of an observer, of which both sides have the
// seed. So a login that was signed for one connection is worth nothing over another one.
type challenger [sha256.Size]byte

// challenge returns the one with a number.
func (c *challenger) challenge(number uint64) string {
	b := binary.BigEndian.AppendUint64(nil, number)
	sum := sha256.Sum256(append(c[:], b...))
	return hex.EncodeToString(append(b, sum[:challengeBytes-len(b)]...))
}

// made reports whether a challenge is one of this connection's.
func (c *challenger) made(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == challengeBytes &&
		c.challenge(binary.BigEndian.Uint64(b)) == text
}

// appendSigned writes what a client has signed.
func appendSigned(b []byte, s *directory.Signed) []byte {
	b = wire.AppendText(wire.AppendText(b, s.Method), s.Path)
	b = wire.AppendText(b, string(s.Address.AsSlice()))
	return wire.AppendText(wire.AppendText(append(b, s.Form), string(s.Text)), string(s.Signature))
}

// forwardBody bounds what a client has signed, in bytes; its edge bounds it by its own limit.
const forwardBody = 16 << 20

// signed reads what appendSigned has written.
func (p *forwardParser) signed() *directory.Signed {
	s := &directory.Signed{Method: p.Text(forwardText), Path: p.Text(forwardText)}
	if from := p.Bytes(16); len(from) > 0 {
		var ok bool
		s.Address, ok = netip.AddrFromSlice(from)
		p.Check(ok)
	}
	s.Form = p.Byte()
	p.Check(s.Form <= directory.SignedLogin)
	s.Text = []byte(p.Text(forwardBody))
	if s.Signature = []byte(p.Text(forwardText)); len(s.Signature) == 0 {
		s.Signature = nil
	}
	return s
}

// A passedOn is what an observer has passed on, and the errand is about.
type passedOn struct {
	*directory.Signed
	key     *directory.Key
	nonce   uint64
	gated   bool
	back    bool // it takes something back
	answers int  // commands whose outcomes the observer waits for; 0: it asks for Verify
}

// passes begins a request that an observer has passed on.
func (f *forwarded) passes(p *forwardParser) error {
	x := &errand{by: f, number: p.Uint()}
	x.passed.key, x.passed.nonce = f.Key(p.Bytes(forwardText)), p.Uint()
	x.passed.gated, x.passed.back = p.Flag(), p.Flag()
	x.passed.answers = int(p.UpTo(uint64(f.opts.Limits.Batch)))
	x.passed.Signed = p.signed()
	p.Check((x.passed.Signature != nil) != x.passed.gated)
	if err := p.done(); err != nil {
		return err
	}
	x.keyless = x.passed.key == nil
	if x.passed.gated && !x.keyless {
		f.begin(x, x.passed.key.Account)
	} else {
		f.begin(x, nil)
	}
	return nil
}

// derive verifies what an observer has passed on, and makes the commands that it asks for.
func (f *forwarded) derive(x *errand) error {
	s := &x.passed
	if err := f.proves(s.key, s.nonce, s.Signed); err != nil {
		return err
	}
	switch {
	case s.Form == directory.SignedLogin:
		return f.logIn(s)
	case s.answers == 0 || f.opts.Edge == nil:
		return f.verify(s.key, s.Signed)
	}
	list, err := f.opts.Edge.Commands(f.Engine, s.key, s.nonce, s.Signed)
	if err != nil {
		return err
	}
	if len(list) != s.answers { // the other side could not tell them apart
		for _, c := range list {
			c.Free()
		}
		return ErrNotConfirmed
	}
	for _, c := range list {
		c.errand = x
		if c.gate = nil; s.gated {
			c.gate = passed{}
		}
	}
	x.list, x.errs = list, make([]error, len(list))
	return nil
}

// proves returns nil for what can be a client's. A request without a signature is of a socket that
// has logged in over this connection, a login answers a challenge of it, and a nonce is that of a
// signed request alone.
func (f *forwarded) proves(key *directory.Key, nonce uint64, s *directory.Signed) error {
	login := s.Form == directory.SignedLogin
	switch {
	case login && !f.seed.made(string(s.Text)):
	case !login && s.Signature == nil && !f.hasLogin(key):
	case (nonce == 0) != (login || s.Signature == nil):
	default:
		return nil
	}
	return ErrNotLoggedIn
}

// verify returns nil for what a key has signed.
func (f *forwarded) verify(key *directory.Key, s *directory.Signed) error {
	if f.opts.Edge == nil {
		return errNoEdge
	}
	return f.opts.Edge.Verify(f.Engine, key, s)
}

// counted counts what was verified, or refused.
func (f *forwarded) counted(err error) error {
	if err == nil {
		f.counts.Verified.Add(1)
	} else {
		f.counts.Refused.Add(1)
	}
	return err
}

// logIn verifies the login of a socket: from then on that observer may send its key's commands,
// over this connection.
func (f *forwarded) logIn(s *passedOn) error {
	err := f.verify(s.key, s.Signed)
	if err == nil {
		f.mu.Lock()
		f.logins[s.key.Number] = struct{}{}
		f.mu.Unlock()
	}
	return err
}

func (f *forwarded) hasLogin(key *directory.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, has := f.logins[key.Number]
	return has && !key.Revoked()
}

// needs is the permission that a client's command needs.
func (c *Command) needs() uint8 {
	switch c.kind {
	case event.KindWithdrawal, event.KindWithdrawalMoved:
		return event.PermissionWithdraw
	}
	return event.PermissionTrade
}

// checkForwarded holds commands that another member has verified once more against what its edge
// has checked, as far as the command itself says it. A key's permissions never change, so a member
// that works sends none that lacks one.
func (f *forwarded) checkForwarded(x *errand) error {
	for _, c := range x.list {
		switch {
		case x.keyless:
		case c.key.Permissions&c.needs() == 0:
			return errForward
		case c.kind == event.KindOrder && c.isBelowMinimum():
			return ErrNotConfirmed // it has other rules by now, or did not check them
		}
	}
	return nil
}

// isBelowMinimum reports whether an order, or the sum that it spends, is below the pair's minimum
// value. An amend is held against it by its book.
func (c *Command) isBelowMinimum() bool {
	if c.special != nil && c.special.Quote != 0 {
		return c.special.Quote.Balance().Cmp(c.pair.Rules().MinimumOrderValue) < 0
	}
	return c.pair.ValueFault(c.order.price, c.order.amount) != ""
}

// mayAsk returns why an observer must not send commands of its own words; nil: they begin or end
// sessions of a key that has logged in. All other commands follow from what a client has sent.
func (f *forwarded) mayAsk(x *errand) error {
	for _, c := range x.list {
		if c.kind != event.KindSwitch || c.switching.session == 0 || c.order.nonce != 0 {
			return errForward
		}
		if !x.keyless && (!f.hasLogin(c.key) || c.key.Permissions&event.PermissionTrade == 0) {
			return ErrNotLoggedIn
		}
	}
	return nil
}
