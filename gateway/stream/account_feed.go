package stream

import (
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
)

// An accountFeed is the actor of a part of the accounts: all events of an account go through one
// feed, in order, to the shards of the account's clients. It encodes each event once. It watches an
// account while the account has a client.
type accountFeed struct {
	hub          *Hub
	number       int
	writer       ownWriter
	accounts     map[uint32]*ownAccount
	pendingJoins map[uint64]*ownJoin // clients waiting for an answer, by token
	touched      []*ownAccount       // of the current batch, reused
}

// An ownAccount is an account with clients, possibly pending ones.
type ownAccount struct {
	id      uint32
	members []int // number of clients by shard
	total   int
	pending int
	token   uint64      // of the newest answer about the account
	frames  []*ownFrame // of the current batch
}

// newAccountFeed starts a feed, which watches revocations from now on.
func newAccountFeed(h *Hub, number int) *actor.PID {
	pid := h.public.SpawnChannel("account-feed-"+strconv.Itoa(number), func() actor.Actor {
		return &accountFeed{hub: h, number: number, writer: ownWriter{public: h.public},
			accounts: map[uint32]*ownAccount{}, pendingJoins: map[uint64]*ownJoin{}}
	})
	h.public.Watch(committed.Watch{Channel: pid, Kind: committed.WatchRevocations})
	return pid
}

// feedNumber returns the number of an account's feed, and feedOf the feed.
func (h *Hub) feedNumber(account uint32) int { return int(account) % len(h.feeds) }

func (h *Hub) feedOf(account uint32) *actor.PID { return h.feeds[h.feedNumber(account)] }

// Receive implements actor.Actor.
func (d *accountFeed) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Restarting:
		d.failed()
	case *committed.Revocations:
		for _, x := range m.List {
			if d.hub.feedNumber(x.Account) == d.number {
				d.endLogins(x)
			}
		}
	case *ownJoin:
		d.account(m.login.key.Account.ID).pending++
		d.pendingJoins[m.token] = m
	case *committed.OwnWatched:
		d.onWatched(m)
	case *committed.OwnEvents:
		d.events(m.List)
	case *ownGivenUp:
		d.givenUp(m.join)
	case *ownLeft:
		if a := d.accounts[m.account]; a != nil && a.members[m.shard] > 0 {
			a.members[m.shard]--
			a.total--
			d.release(m.account, a.token)
		}
	}
}

// account returns an account, creating it for its first client.
func (d *accountFeed) account(id uint32) *ownAccount {
	a := d.accounts[id]
	if a == nil {
		a = &ownAccount{id: id, members: make([]int, len(d.hub.shards))}
		d.accounts[id] = a
	}
	return a
}

// release ends the watch of an account without clients, where token is that of the newest answer. A
// client whose join is still in the mailbox may have been answered already.
func (d *accountFeed) release(id uint32, token uint64) {
	if a := d.accounts[id]; a == nil || a.total == 0 && a.pending == 0 {
		delete(d.accounts, id)
		d.hub.public.UnwatchOwn(id, d.hub.feeds[d.number], token)
	}
}

// onWatched admits the client that subscribed.
func (d *accountFeed) onWatched(m *committed.OwnWatched) {
	j, a := d.pendingJoins[m.Token], d.accounts[m.Account]
	if a != nil {
		a.token = m.Token
	}
	if j == nil { // the client was answered with a failure, or this actor restarted
		d.release(m.Account, m.Token)
		return
	}
	delete(d.pendingJoins, m.Token)
	s := j.client.shard
	a.pending--
	a.members[s.number]++
	a.total++
	x := &ownAdmitted{join: j, resumed: m.Snapshot == nil}
	if m.Snapshot != nil {
		x.first = []*ownFrame{d.writer.snapshot(m.Snapshot)}
	}
	for _, e := range m.Events {
		x.first = append(x.first, d.writer.event(e))
	}
	s.post(x)
}

// givenUp removes a client that was answered with a failure.
func (d *accountFeed) givenUp(j *ownJoin) {
	if d.pendingJoins[j.token] == nil {
		j.client.shard.post(&ownLeaves{client: j.client})
		return
	}
	delete(d.pendingJoins, j.token)
	id := j.login.key.Account.ID
	a := d.accounts[id]
	a.pending--
	d.release(id, a.token)
}

// events sends the events of a batch to the shards of their accounts' clients, one message per
// account.
func (d *accountFeed) events(list []*committed.OwnEvent) {
	for _, x := range list {
		a := d.accounts[x.Account]
		if a == nil || a.total == 0 {
			continue // the events were in flight when the last client left
		}
		if a.frames == nil {
			d.touched = append(d.touched, a)
		}
		a.frames = append(a.frames, d.writer.event(x))
		d.hub.counts.units.Add(1)
	}
	for _, a := range d.touched {
		m := &ownFrames{a.id, a.frames}
		a.frames = nil
		for i, n := range a.members {
			if n > 0 {
				d.hub.shards[i].post(m)
			}
		}
	}
	clear(d.touched)
	d.touched = d.touched[:0]
}

// endLogins ends logins, each on its client's shard.
func (d *accountFeed) endLogins(x committed.Revocation) {
	for _, l := range d.hub.logins.endedBy(x) {
		l.client.shard.post(&loginEnded{l, detailOf(x)})
	}
}

// failed handles a restart of the actor. Its list of clients is lost, so the shards disconnect
// them.
func (d *accountFeed) failed() {
	for id, a := range d.accounts {
		d.hub.public.UnwatchOwn(id, d.hub.feeds[d.number], a.token)
	}
	for _, s := range d.hub.shards {
		s.post(&ownFailed{d.number})
	}
}
