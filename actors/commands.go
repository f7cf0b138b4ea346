package actors

import (
	"errors"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
)

// Commands accepts clients' commands, and looks up the keys that may send them. An Engine
// implements it, and so does a follower's connection to the leader. Any goroutine may call it.
type Commands interface {
	// Key returns the live API key with that public part; nil: none.
	Key(public []byte) *directory.Key
	// AwaitCurrent waits until this process knows every record that any process acknowledged before
	// the call. Handlers call it before they answer that a key does not exist or lacks a
	// permission, and then check again: such changes may arrive late. An error: it cannot know.
	AwaitCurrent() error
	// Challenge returns an unguessable text for a login to sign.
	Challenge() string
	// Verify has another node verify a request or a login, if this process lacks the key's secret.
	// Such a key comes from Key.With, which attaches the signed request. That node applies all
	// checks of its Edge. It answers a read; the answer to any other request is nil. Commands of
	// such a key need no Verify. Errors: RemoteAnswer, and those of admission.
	Verify(key *directory.Key, nonce uint64) (*RemoteAnswer, error)
	// Writable is nil while clients' commands are admitted at all. Handlers call it before they
	// check a request's fields; admission comes after the fields.
	Writable() error
	// Cancelling is nil while clients' cancels are admitted: as Writable, and in a maintenance that
	// allows cancels.
	Cancelling() error
	// Confirmed is nil while a recent check confirmed that commands reach the one deciding process.
	// Otherwise private reads are refused: another process may have taken over, with newer state.
	Confirmed() error
	// MailEnabled is nil while codes can be mailed, and at a follower, where only Do learns it.
	// Handlers call it before they check a withdrawal's fields.
	MailEnabled() error
	// Maintenance returns the current maintenance as shown to clients, nil if there is none. Read
	// only.
	Maintenance() *event.Maintenance
	// SwitchFires returns the time in Unix microseconds at which the switch set by c will fire:
	// later than its due time if a maintenance has just ended. c was accepted.
	SwitchFires(c *Command) int64
	// Do sends a command and waits for its release. Reads that complete the answer then use a state
	// that contains the command's record. The caller must Free the returned command, and may no
	// longer use c. Errors: those of admission, ErrNoMail, and ErrTimeout, after which the outcome
	// is unknown.
	Do(c *Command) (*Command, error)
	// DoAll sends commands of one key, which carry one nonce, and waits for all outcomes. They
	// reach their wallet together, with no other command of the account between them. The returned
	// error is one of admission: nothing was sent. Without it, a command without an outcome becomes
	// nil, with its error at its index of errs. The caller must Free the other commands.
	DoAll(list []*Command, errs []error) error
	// DrainGates waits until every command of the key's account that passed its gate before the
	// call is in its wallet's mailbox, or dropped. Errors: those of admission, and ErrTimeout.
	DrainGates(key *directory.Key) error
	// SessionLost notes the end of a session that NewSession began, without waiting. It ignores a
	// session that has already ended, or never began.
	SessionLost(key *directory.Key, session uint64)
}

var _ Commands = (*Engine)(nil)

// AwaitCurrent waits until the committed side has every record that any process acknowledged before
// the call. It returns ErrNotConfirmed if that takes too long.
func AwaitCurrent(d *committed.Door) error {
	err := d.AwaitCurrent()
	if errors.Is(err, committed.ErrTimeout) {
		return ErrNotConfirmed
	}
	return err
}
