package actors

import (
	"errors"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
)

// Commands is where clients' commands go, with the keys that may send them: an Engine, or the way
// from a node that follows to the one that leads. Any goroutine may call it.
type Commands interface {
	// Key returns the live API key with that public part, nil if there is none.
	Key(public []byte) *directory.Key
	// Current waits until this process knows all that was acknowledged before the call. Handlers
	// ask before they answer that there is no such key, or that a key may not do something, and
	// then look again: what changes that may come here later than to other nodes. An error says
	// that this process cannot know.
	Current() error
	// Challenge returns a text that no client can guess, which a login signs.
	Challenge() string
	// Verify has a request or a login verified that this process cannot verify: the key has no
	// material, and is one With it. The node that leads holds it against all that its edge checks.
	// Commands and reads of such a key are verified with what they ask for. Errors: Answered, and
	// those of admission.
	Verify(key *directory.Key, nonce uint64) error
	// Writable is nil while clients' commands are taken at all. Handlers ask before they look at a
	// request's fields; admission comes after the fields.
	Writable() error
	// Cancelling is nil while clients' cancels are taken: as Writable, and in a maintenance in
	// which clients may cancel.
	Cancelling() error
	// Confirmed is nil while it was lately confirmed that the commands go to the one process that
	// decides. Otherwise private reads are refused: another one may have taken over, and know more.
	Confirmed() error
	// Mails is nil while codes can be mailed, and where only Do knows. Handlers ask before they
	// look at a withdrawal's fields.
	Mails() error
	// Maintenance returns the maintenance that clients are told of, nil if there is none. Read
	// only.
	Maintenance() *event.Maintenance
	// SwitchFires returns when the switch cancels that c, which was accepted, has set, in Unix
	// microseconds: later than it is due if a maintenance has just ended.
	SwitchFires(c *Command) int64
	// Do sends a command and waits for its release. Then what completes its answer is read from a
	// state that has its record. The caller must Free the command that Do returns, and may use the
	// one that it gave no more. Errors: those of admission, ErrNoMail, and ErrTimeout, after which
	// the command may or may not be carried out.
	Do(c *Command) (*Command, error)
	// DoAll sends commands of one key, which carry one nonce, and waits for all of them as Do does
	// for one. They reach their wallet together, and nothing of the account's comes between them.
	// An error is that of admission: no command was sent. Otherwise each command that has no
	// outcome is nil afterwards, and has its error at its place of errs. The caller must Free the
	// others.
	DoAll(list []*Command, errs []error) error
	// Settle returns once all commands of the key's account are with their wallet, or dropped, that
	// have passed their gates before the call. Errors: those of admission, and ErrTimeout.
	Settle(key *directory.Key) error
	// SessionLost notes the end of a session, behind its NewSession, and does not wait. One that
	// has ended before, or never begun, is none.
	SessionLost(key *directory.Key, session uint64)
}

var _ Commands = (*Engine)(nil)

// AwaitKnown returns nil once the committed side has all that was acknowledged before the call, by
// any process. One that does not get there in time cannot know.
func AwaitKnown(d *committed.Door) error {
	err := d.Current()
	if errors.Is(err, committed.ErrTimeout) {
		return ErrNotConfirmed
	}
	return err
}
