package stream

import (
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
)

// A desk is the actor of a part of the accounts: all that the committed side tells of one account
// goes through one desk, in order, and on to the shards of the account's clients.
type desk struct {
	hub    *Hub
	number int
}

// newDesk starts a desk, which watches the ends of keys from now on.
func newDesk(h *Hub, number int) *actor.PID {
	pid := h.engine.SpawnChannel("desk-"+strconv.Itoa(number), func() actor.Actor {
		return &desk{h, number}
	})
	h.engine.Watch(committed.Watch{Channel: pid, Kind: committed.WatchEnds})
	return pid
}

// Receive implements actor.Actor.
func (d *desk) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*committed.Ends); ok {
		for _, x := range m.List {
			if d.serves(x.Account) {
				d.end(x)
			}
		}
	}
}

// serves reports whether an account is one of the desk's.
func (d *desk) serves(account uint32) bool {
	return int(account)%len(d.hub.shards) == d.number
}

// end ends logins, each on the shard of its client.
func (d *desk) end(x committed.End) {
	for _, l := range d.hub.logins.endedBy(x) {
		l.owner.shard.post(&loginEnded{l, detailOf(x)})
	}
}
