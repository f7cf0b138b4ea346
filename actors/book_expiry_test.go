package actors

import (
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/trading"
)

func TestATickExpiresInQuietPairs(t *testing.T) {
	d := newDesk(t, nil)
	d.sell(ann, 1, 100, until(2e6))
	if at := d.b.wakeAtUs.Load(); at != 2e6 {
		t.Errorf("the ticker is to wake it at %d", at)
	}
	d.lines = nil
	d.b.tick(2e6 - 1)
	d.want("too early", d.newLines(), "")
	d.held = true
	d.b.tick(2e6)
	d.want("held", d.newLines(), "")
	d.held = false
	d.halt(true)
	d.lines = nil
	d.b.tick(2e6)
	d.want("also on a halted pair", d.newLines(), "expired 1")
	if at := d.b.wakeAtUs.Load(); at != never {
		t.Errorf("the ticker is to wake it at %d", at)
	}
}

func TestATurnExpiresSomeAndCommandsKeepTheirOrder(t *testing.T) {
	d := newDesk(t, nil)
	const most = expiredAtOnce * event.MaxExpired
	for range 2*most + 1 {
		d.sell(ann, 1, 100, until(2e6))
	}
	d.lines, d.nowUs = nil, 3e6
	first := d.order(bob, trading.Buy, 1, 100)
	second := d.command(event.KindCancel, ann)
	second.order.id = 2*most + 1
	d.b.decide(first)
	d.b.decide(second)
	if d.fold(); len(d.lines) != expiredAtOnce || d.b.waiting.Len() != 2 || !d.called {
		t.Fatalf("%d records, %d commands wait", len(d.lines), d.b.waiting.Len())
	}
	d.call()
	if d.fold(); len(d.lines) != 2*expiredAtOnce || d.b.waiting.Len() != 2 || !d.called {
		t.Fatalf("%d records, %d commands wait", len(d.lines), d.b.waiting.Len())
	}
	d.called = false
	d.call()
	news := d.newLines()
	if i := strings.LastIndex(news, "expired"); !strings.HasSuffix(news[i:],
		" 2049 | order 4099: rests 1 at 100 | not_open") {
		t.Errorf("at last: %s", news[i:])
	}
	if first.timeUs != 3e6 || d.b.waiting.Len() != 0 {
		t.Errorf("the command's time is %d", first.timeUs)
	}
}

func TestAQueuedStopExpiresFirst(t *testing.T) {
	d := newDesk(t, nil)
	d.last(100)
	d.buy(ann, 1, 50, rising(101), until(2e6))
	d.buy(ann, 1, 51, rising(101))
	d.sell(bob, 1, 101)
	d.held = true
	d.buy(cid, 1, 101)
	d.held, d.lines = false, nil
	d.b.tick(2e6)
	d.want("a tick", d.settle(), "expired 3 | triggered 4: rests 1 at 51")
}
