package committed

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/event"
)

// A login of the stream lasts until its key is revoked, or its account is frozen or closed. The
// stream gets that from here rather than from the directory, for two reasons: it is durable, and it
// is in order with the other events of the account. Earlier events are sent, later ones are not.

// A Revocation ends all logins of a key: the key is revoked, or its account frozen or closed.
type Revocation struct {
	Account uint32
	Key     uint32 // number of the key; 0: all keys of the account, which is frozen or closed
	Closed  bool   // the account is closed, permanently
}

// Revocations is a message to a watching channel: those of one batch, in record order. Shared: read
// only.
type Revocations struct{ List []Revocation }

// A revocationFeed holds the watchers of revocations. The committed actor owns it.
type revocationFeed struct {
	channels []*actor.PID
	forming  []Revocation // of the batch being folded
}

// noteRevocation records the revocation that a record causes, if any.
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

// notifyRevocations sends the watchers the revocations of the batch that ends.
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

// A KeyStatus asks whether a key may act. A caller that registers with a watching channel before it
// asks misses no revocation: each is in the answer or sent to the watcher later.
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
