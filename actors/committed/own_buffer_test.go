package committed

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/state"
)

// buffers are ownFeeds with checks.
type buffers struct {
	*ownFeeds
	t     *testing.T
	seq   uint64
	token uint64 // of the newest watch
}

func newBuffers(t *testing.T, most int) *buffers {
	return &buffers{ownFeeds: &ownFeeds{most: most}, t: t}
}

var aChannel = actor.NewPID("here", "a channel")

func (b *buffers) watch(account uint32, after uint64) (events []*OwnEvent, resumed bool) {
	b.token++
	return b.ownFeeds.watch(&state.Account{ID: account},
		&OwnWatch{Channel: aChannel, Token: b.token, After: after})
}

// unwatch ends the newest watch of an account.
func (b *buffers) unwatch(account uint32, now time.Time) {
	b.ownFeeds.unwatch(&OwnUnwatch{account, aChannel, b.feeds[account].token}, now)
}

// record makes an event of each account, with that number of orders.
func (b *buffers) record(orders int, accounts ...uint32) uint64 {
	b.t.Helper()
	b.seq++
	for _, id := range accounts {
		if f := b.feeds[id]; f != nil {
			b.begin(f, &OwnEvent{Account: id, Seq: b.seq, Prev: f.last,
				Orders: make([]Order, orders)})
		}
	}
	b.endRecord()
	b.check()
	return b.seq
}

// check checks the byte counts and bounds of all feeds.
func (b *buffers) check() {
	b.t.Helper()
	all := 0
	for id, f := range b.feeds {
		bytes := 0
		for i, x := range f.kept {
			if bytes += x.size(); i > 0 && x.Prev != f.kept[i-1].Seq {
				b.t.Fatalf("account %d: event %d follows %d", id, x.Seq, f.kept[i-1].Seq)
			}
		}
		if len(f.kept) > 0 && f.kept[0].Prev != f.base || bytes != f.bytes ||
			bytes > ownKeptBytes || len(f.kept) > ownKept {
			b.t.Fatalf("account %d: %d events of %d bytes, counted as %d, from %d on", id,
				len(f.kept), bytes, f.bytes, f.base)
		}
		all += bytes
	}
	if all != b.bytes || all > b.most || b.idle.Len()+b.used.Len() != len(b.feeds) {
		b.t.Fatalf("%d bytes of %d, counted as %d; %d idle and %d used of %d feeds", all, b.most,
			b.bytes, b.idle.Len(), b.used.Len(), len(b.feeds))
	}
}

func TestOwnBufferKeepsNewestEvents(t *testing.T) {
	b := newBuffers(t, 1<<30)
	b.watch(1, 0)
	var seqs []uint64
	for range ownKept + 10 {
		b.seq += 2 // of other accounts
		seqs = append(seqs, b.record(0, 1))
	}
	kept := len(b.feeds[1].kept)
	if want := min(ownKept, ownKeptBytes/ownEventBytes); kept != want {
		t.Errorf("%d events are kept, not %d", kept, want)
	}
	first := len(seqs) - kept
	for i, seq := range seqs {
		events, resumed := b.watch(1, seq)
		// the event before the first that is kept will do
		if resumed != (i >= first-1) || resumed && len(events) != len(seqs)-1-i {
			t.Fatalf("index %d of %d, %d kept: %d events, %v", i, len(seqs), kept, len(events),
				resumed)
		}
		if _, resumed := b.watch(1, seq-1); resumed {
			t.Fatalf("resumed at %d, which is no event of the account", seq-1)
		}
	}
	// an event that is too long for the buffer empties it, but can be resumed after
	last := b.record(ownKeptBytes/ownOrderBytes, 1)
	if events, resumed := b.watch(1, last); !resumed || len(events) > 0 {
		t.Errorf("%d events, %v", len(events), resumed)
	}
	if _, resumed := b.watch(1, seqs[len(seqs)-1]); resumed {
		t.Error("resumed after an event that is not kept")
	}
}

func TestLeastRecentlyUsedBuffersAreDroppedFirst(t *testing.T) {
	const events, each = 10, 10 * ownEventBytes
	b := newBuffers(t, 4*each)
	now := time.Now()
	for id := range uint32(4) {
		b.watch(id+1, 0)
		for range events {
			b.record(0, id+1)
		}
	}
	b.unwatch(3, now)
	b.unwatch(2, now.Add(time.Second))
	b.record(0, 1)
	if b.feeds[3] != nil || b.feeds[2] == nil {
		t.Error("another account than 3 was dropped")
	}
	for range events {
		b.record(0, 4)
	}
	if b.feeds[2] != nil {
		t.Error("account 2 is kept although those with subscribers are not")
	}
	for range 3 * events {
		b.record(0, 1, 4)
	}
	if len(b.feeds) != 2 || b.feeds[1].last != b.seq || b.feeds[4].last != b.seq {
		t.Error("an account with a subscriber was dropped")
	}
}

// Events of one record for accounts without a subscriber may evict each other.
func TestOneRecordMayEvictBuffersOfItsAccounts(t *testing.T) {
	for _, most := range []int{0, 1, ownEventBytes, 2 * ownEventBytes, 3 * ownEventBytes} {
		b := newBuffers(t, most)
		for id := range uint32(3) {
			b.watch(id+1, 0)
			b.unwatch(id+1, time.Now())
		}
		for range 5 {
			b.record(0, 1, 2, 3)
			b.watch(2, 0)
			b.record(0, 3, 2, 1)
			b.unwatch(2, time.Now())
		}
	}
}

func TestOwnBufferExpiresAfterLastSubscriber(t *testing.T) {
	b := newBuffers(t, 1<<20)
	b.watch(1, 0)
	first := b.record(0, 1)
	now := time.Now()
	b.unwatch(1, now)
	b.record(0, 1)
	b.forget(now.Add(ownLife - 1))
	if events, resumed := b.watch(1, first); !resumed || len(events) != 1 {
		t.Errorf("%d events, %v", len(events), resumed)
	}
	b.forget(now.Add(2 * ownLife)) // it has a subscriber again
	b.unwatch(1, now)
	b.forget(now.Add(ownLife))
	if b.check(); len(b.feeds) > 0 || b.bytes != 0 {
		t.Errorf("%d feeds, %d bytes", len(b.feeds), b.bytes)
	}
}

// A channel that watches again before it ends the previous watch keeps the new one.
func TestUnwatchKeepsNewerWatch(t *testing.T) {
	b := newBuffers(t, 1<<20)
	b.watch(1, 0)
	first := b.token
	b.watch(1, 0)
	another := actor.NewPID("here", "another channel")
	for _, m := range []*OwnUnwatch{{1, aChannel, 0}, {1, aChannel, first},
		{1, another, b.token}, {2, aChannel, b.token}} {
		b.ownFeeds.unwatch(m, time.Now())
		if b.check(); b.feeds[1].channel != aChannel {
			t.Fatalf("watch %d of account 1 was ended by %+v", b.token, m)
		}
	}
	b.unwatch(1, time.Now())
	b.unwatch(1, time.Now()) // it has ended
	if b.check(); b.feeds[1].channel != nil || b.idle.Len() != 1 {
		t.Error("the newest watch continues after its end")
	}
}
