package actors

import (
	"crypto/rand"
	"encoding/hex"
	"errors"

	"exchange/actors/directory"
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
)

// ChallengeBytes is the length of a challenge, which is sent as hexadecimal digits.
const ChallengeBytes = 32

// NewChallenge returns a text that no client can guess.
func NewChallenge() string {
	var b [ChallengeBytes]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return hex.EncodeToString(b[:])
}
