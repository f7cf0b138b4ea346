package directory

import (
	"net/netip"
	"sync/atomic"
)

// Forms of what is signed.
const (
	SignedQuery = iota // the text is that of the address behind '?'
	SignedForm
	SignedJSON
	SignedLogin // the text is a challenge
)

// A Signed is a request of a client at a process that cannot verify its signature: an observer
// passes it on as it was sent, and the node that leads holds it against all that an edge checks.
// Its fields do not change.
type Signed struct {
	Method, Path string     // of the operation; "": a login
	Address      netip.Addr // of the client, in the words of the process that passes it on
	Form         byte
	Text         []byte
	Signature    []byte // nil: the request came over a socket that has logged in
	asked        atomic.Bool
}

// Asked reports whether the node that leads was asked to verify it. It has been when there is an
// answer to what went with it.
func (s *Signed) Asked() bool { return s.asked.Load() }

// Ask notes that the node that leads is asked.
func (s *Signed) Ask() { s.asked.Store(true) }

// With returns the key for one request, which is passed on with it.
func (k *Key) With(s *Signed) *Key {
	return &Key{Number: k.Number, Permissions: k.Permissions, Parallel: k.Parallel, of: k,
		Public: k.Public, Account: k.Account, Allow: k.Allow, Signed: s}
}
