package directory

import (
	"net/netip"
	"sync/atomic"
)

// Forms of a signed text.
const (
	SignedQuery = iota // the text is the query of the address, after '?'
	SignedForm
	SignedJSON
	SignedLogin // the text is a challenge
)

// A Signed is a client's request at a process that cannot verify its signature: an observer
// forwards it as received, and a member verifies it with all checks of an edge. Its fields do not
// change.
type Signed struct {
	Method, Path string     // of the operation; "": a login
	Order        string     // the variable part of the path; "": it has none
	Reads        bool       // another node runs it: a GET the followed member, others the leader
	Address      netip.Addr // of the client, as seen by the forwarding process
	Form         byte
	Text         []byte
	Signature    []byte // nil: the request came over a socket that is logged in
	requested    atomic.Bool
}

// VerificationRequested reports whether the leader was asked to verify the request. A request with
// an answer always was.
func (s *Signed) VerificationRequested() bool { return s.requested.Load() }

// SetVerificationRequested marks the request as sent to the leader.
func (s *Signed) SetVerificationRequested() { s.requested.Store(true) }

// With returns the key for one request, which is forwarded with it.
func (k *Key) With(s *Signed) *Key {
	return &Key{Number: k.Number, Permissions: k.Permissions, NonceWindow: k.NonceWindow, of: k,
		Public: k.Public, Account: k.Account, Allow: k.Allow, Signed: s}
}
