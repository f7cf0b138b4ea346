package actors

import (
	"crypto/rand"
	"encoding/hex"
	"errors"

	"exchange/actors/directory"
)

// An Edge checks a request forwarded by an observer as it checks its own clients' requests:
// signature, address, permission, rates, fields. Package gateway implements it. Any goroutine may
// call it.
type Edge interface {
	// Verify returns nil if a live key signed a request, or a login, and may send it now.
	Verify(e *Engine, key *directory.Key, s *directory.Signed) error
	// Commands is Verify, and returns the request's commands. It may wait.
	Commands(e *Engine, key *directory.Key, nonce uint64,
		s *directory.Signed) ([]*Command, error)
	// Answer answers a signed read as that of a client of this node. It may wait.
	Answer(public []byte, nonce uint64, s *directory.Signed) *RemoteAnswer
}

// A RemoteAnswer is another node's answer to a request, as the client gets it: of the leader a
// refusal, of a followed member the answer to a read.
type RemoteAnswer struct {
	Status   int
	Wait     int // seconds until the client may retry; 0: not given
	Unproven bool
	Body     []byte
}

// Error returns the answer's text.
func (a *RemoteAnswer) Error() string { return "answered by another node: " + string(a.Body) }

var (
	// ErrNotLoggedIn refuses a command of a socket whose login the leader does not hold: it was
	// verified over a closed connection, or by another node.
	ErrNotLoggedIn = errors.New("the leader does not have this login")
)

// ChallengeBytes is the length of a challenge, which is sent as hexadecimal digits.
const ChallengeBytes = 32

// NewChallenge returns an unguessable text.
func NewChallenge() string {
	var b [ChallengeBytes]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return hex.EncodeToString(b[:])
}
