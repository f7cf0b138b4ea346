package committed

import (
	"errors"
	"testing"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/state"
)

// Questions are zero when they come from their pools but for memory, which is bounded.
func TestPooledQuestionsAreReset(t *testing.T) {
	for _, n := range []int{10, keptRows + 1} {
		open := &OpenOrders{Account: 7, offset: 1, Limit: 2, Seq: 3, Orders: make([]Order, n)}
		open.free()
		ids := &openIDs{account: 7, limit: 2, seq: 3, ids: make([]uint64, n)}
		ids.free()
		list := &List[Trade]{Rows: make([]Trade, n), home: &tradeLists}
		list.Free()
		if open.Account != 0 || open.offset|open.Limit != 0 || open.Seq != 0 ||
			len(open.Orders) != 0 || ids.account != 0 || ids.limit != 0 || len(ids.ids) != 0 ||
			len(list.Rows) != 0 {
			t.Errorf("%d rows: there is something left: %+v, %+v, %+v", n, open, ids, list)
		}
		if most := max(cap(open.Orders), cap(ids.ids), cap(list.Rows)); most > keptRows {
			t.Errorf("%d rows are kept", most)
		}
	}
	d := new(Door)
	id, _ := event.NewClientID("mine")
	r := newRead(d, &OpenOrders{ClientID: id}, true)
	r.Err, r.nonce, r.after, r.needs, r.slot = ErrNonce, 1, 2, 3, true
	if r.free(); r.trip != (trip{}) {
		t.Errorf("a read keeps %+v", r.trip)
	}
}

func TestOnlyUnansweredReadsCanBeAbandoned(t *testing.T) {
	d := new(Door)
	r := newRead(d, new(OpenOrders), false)
	r.stage.Store(readWaiting)
	if !r.leave() || r.question != nil || d.ReadsInFlight() != 0 {
		t.Errorf("left while it waits: it keeps %+v, %d reads in flight", r.question,
			d.ReadsInFlight())
	}
	if r.Answer(); len(r.reply) != 0 {
		t.Error("it is answered although nobody waits")
	}
	r = newRead(d, new(OpenOrders), false)
	if r.Answer(); r.leave() || len(r.reply) != 1 || d.ReadsInFlight() != 0 {
		t.Errorf("left when the answer is there: %d answers, %d reads in flight", len(r.reply),
			d.ReadsInFlight())
	}
}

func TestReadOfEarlierTermRecordsNoNonce(t *testing.T) {
	dead := make(chan struct{})
	close(dead)
	c := &Side{state: state.New(), readNonces: map[uint32]uint64{}}
	r := newRead(&Door{dead: dead}, new(OpenOrders), false)
	r.key, r.nonce = &directory.Key{Number: 1}, 5
	c.read(r)
	if !errors.Is(r.Err, ErrTimeout) || len(r.reply) != 1 || len(c.readNonces) > 0 {
		t.Errorf("it ends with %v, %d answers, and notes %v", r.Err, len(r.reply), c.readNonces)
	}
}
