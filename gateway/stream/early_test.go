package stream

import (
	"testing"

	"exchange/actors/directory"
	"exchange/gateway/socketio"
)

func aPair(name string) *directory.Pair {
	p := &directory.Pair{}
	p.Name = name
	return p
}

// The events held until the answer to a name of a whole family are bounded in bytes. A client over
// that bound never gets an event after a gap.
func TestHeldEventsAreBoundedInBytes(t *testing.T) {
	const most = 10_000
	c := &client{}
	event := socketio.Delivery{Tag: 1, Frames: make([]byte, 1000-deliveryOverhead)}
	whole := socketio.Delivery{Tag: 2, Frames: make([]byte, 10*most), Shared: true}
	for i := range 10 {
		if e := c.backlog(diff); !c.keep(diff, most, event, whole) || e.full ||
			e.bytes != 1000*(i+1) || len(e.list) != 2*(i+1) {
			t.Fatalf("after %d: %d bytes, %d deliveries", i+1, e.bytes, len(e.list))
		}
	}
	c.early[diff].drop(2)
	if e := c.backlog(diff); e.bytes != most || len(e.list) != 10 {
		t.Errorf("%d bytes, %d deliveries", e.bytes, len(e.list))
	}
	for i := range 3 {
		if e := c.backlog(diff); c.keep(diff, most, event) != (i > 0) || !e.full || e.bytes != 0 ||
			e.list != nil {
			t.Errorf("%d bytes, %d deliveries are kept of too many", e.bytes, len(e.list))
		}
	}
	s := &shard{hub: &Hub{names: newNames([]*directory.Pair{aPair("BTC_USDT")})},
		topics: make([]*audience, families)}
	s.release(c, diff)
	if len(c.out) > 0 {
		t.Error("something was sent to it")
	}
	c.keep(trades, most, event)
	c.early[trades].drop(1)
	if e := c.backlog(trades); e.bytes != 0 || len(e.list) != 0 {
		t.Errorf("%d bytes, %d deliveries", e.bytes, len(e.list))
	}
}
