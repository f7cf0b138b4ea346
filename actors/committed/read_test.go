package committed

import (
	"testing"

	"exchange/core/state"
	"exchange/persistence"
)

func TestAPooledReadKeepsNoLongLists(t *testing.T) {
	const n = keptRows + 1
	r := NewRead(ReadAccount)
	r.Orders, r.Trades = make([]persistence.Order, n), make([]persistence.Trade, n)
	r.Withdraws, r.Holders = make([]state.Withdraw, n), make([]uint32, n)
	r.dropLongLists()
	if kept := max(cap(r.Orders), cap(r.Trades), cap(r.Withdraws),
		cap(r.Holders)); kept > keptRows {
		t.Errorf("%d rows are kept", kept)
	}
}

func TestAReadThatWaitsIsGivenUpAndOneThatIsAnsweredIsNot(t *testing.T) {
	d := new(Door)
	r := NewRead(ReadOrders)
	r.door, r.Orders = d, make([]persistence.Order, 3)
	r.stage.Store(readWaiting)
	if !r.leave() || r.Orders != nil || d.ReadsInFlight() != 0 {
		t.Errorf("left while it waits: %d rows are kept, %d reads in flight", len(r.Orders),
			d.ReadsInFlight())
	}
	if r.Answer(); len(r.reply) != 0 {
		t.Error("it is answered although nobody waits")
	}
	r = NewRead(ReadOrders)
	r.door = d
	if r.Answer(); r.leave() || len(r.reply) != 1 || d.ReadsInFlight() != 0 {
		t.Errorf("left when the answer is there: %d answers, %d reads in flight", len(r.reply),
			d.ReadsInFlight())
	}
}
