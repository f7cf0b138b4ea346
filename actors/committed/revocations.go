package committed

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/event"
)

// A login of the stream lasts until its key or its account may do nothing any more. The stream
// learns that from here, and not from the directory, for two reasons. The end is durable when it is
// told. And it is told in its place among all that the committed side tells of the account: what
// came before it is sent, and nothing that came after.

// A Revocation is the end of all that was begun with a key: its revocation, or the freeze or the end of
// its account.
type Revocation struct {
	Account uint32
	Key     uint32 // number of the key; 0: all keys of the account, which is frozen or closed
	Closed  bool   // the account, for good
}

// Revocations are a message to those who watch them: those of one batch, in the order of their records.
// Shared: read only.
type Revocations struct{ List []Revocation }

// A revocationFeed has the watchers of ends. The committed actor owns it.
type revocationFeed struct {
	channels []*actor.PID
	forming  []Revocation // of the batch that is being folded
}

// noteRevocation keeps the end that a record made, if it made one.
func (c *Side) noteRevocation(r *event.Record) {
	if len(c.revocations.channels) == 0 {
		return
	}
	var x Revocation
	switch {
	case r.Kind == event.KindKeyRevoked:
		x.Key = r.KeyRevoked.Number
		x.Account = c.state.Keys()[x.Key-1].Account
	case r.Kind == event.KindFreeze && r.Freeze.Frozen:
		x.Account = r.Freeze.Account
	case r.Kind == event.KindAccountClosed:
		x.Account, x.Closed = r.AccountClosed.Account, true
	default:
		return
	}
	c.revocations.forming = append(c.revocations.forming, x)
}

// notifyRevocations ends a batch: it tells the watchers of the batch's ends.
func (c *Side) notifyRevocations() {
	if len(c.revocations.forming) == 0 {
		return
	}
	m := &Revocations{c.revocations.forming}
	c.revocations.forming = nil
	for _, pid := range c.revocations.channels {
		c.out.Notify(pid, m)
	}
}

func (f *revocationFeed) add(watcher *actor.PID) {
	if !slices.Contains(f.channels, watcher) {
		f.channels = append(f.channels, watcher)
	}
}

// A KeyStatus asks whether a key may act. A caller that has made itself known to a watcher of ends
// before it asks misses no end: it is in the answer, or the watcher is told it later.
type KeyStatus struct {
	Key uint32 // its number

	Revoked bool
	Frozen  bool // the account
}

func (q *KeyStatus) from(c *Side) (needs uint64) {
	k := c.state.Keys()[q.Key-1]
	q.Revoked, q.Frozen = k.Revoked, c.state.Account(k.Account).Frozen
	return 0
}
