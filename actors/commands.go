package actors

import (
	"errors"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
)

// Commands accepts clients' commands, and has the keys that may send them: an Engine, or a
// follower's connection to the leader. Any goroutine may call it.
type Commands interface {
	// Key returns the live API key with that public part, nil if there is none.
	Key(public []byte) *directory.Key
	// Current waits until this process has everything acknowledged before the call. Handlers call
	// it before they answer that a key does not exist, or lacks a permission, and then check again:
	// such changes may arrive here later than at other nodes. An error: this process cannot tell.
	Current() error
	// Challenge returns an unguessable text for a login to sign.
	Challenge() string
	// Verify verifies a request or a login at another node, because this process cannot: the key
	// has no material, and is one With it. That node applies all checks of its edge. It answers a
	// read; the answer to any other request is nil. Commands of such a key are verified together
	// with their request. Errors: RemoteAnswer, and those of admission.
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
	// MailEnabled is nil while codes can be mailed, and where only Do can tell. Handlers call it
	// before they check a withdrawal's fields.
	MailEnabled() error
	// Maintenance returns the current maintenance as shown to clients, nil if there is none. Read
	// only.
	Maintenance() *event.Maintenance
	// SwitchFires returns when the switch set by c, which was accepted, cancels, in Unix
	// microseconds: later than due if a maintenance has just ended.
	SwitchFires(c *Command) int64
	// Do sends a command and waits for its release. The rest of its answer is then read from a
	// state that contains its record. The caller must Free the returned command, and may no longer
	// use c. Errors: those of admission, ErrNoMail, and ErrTimeout, after which the outcome is
	// unknown.
	Do(c *Command) (*Command, error)
	// DoAll sends commands of one key, which carry one nonce, and waits for all of them as Do does
	// for one. They reach their wallet together, with no other command of the account between them.
	// An error is that of admission: nothing was sent. Otherwise each command without an outcome is
	// nil afterwards, with its error at its index of errs. The caller must Free the others.
	DoAll(list []*Command, errs []error) error
	// Settle returns once all commands of the key's account that passed their gates before the call
	// are with their wallet, or dropped. Errors: those of admission, and ErrTimeout.
	Settle(key *directory.Key) error
	// SessionLost notes the end of a session, after its NewSession, without waiting. A session that
	// has ended, or never began, is ignored.
	SessionLost(key *directory.Key, session uint64)
}

var _ Commands = (*Engine)(nil)

// AwaitKnown returns nil once the committed side has everything acknowledged before the call, by
// any process. A process that does not get there in time cannot tell.
func AwaitKnown(d *committed.Door) error {
	err := d.Current()
	if errors.Is(err, committed.ErrTimeout) {
		return ErrNotConfirmed
	}
	return err
}
