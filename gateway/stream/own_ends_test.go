package stream

import (
	"strings"
	"testing"

	"exchange/core/trading"
)

// sends sends events together, each with an id for its acknowledgement, and returns the
// acknowledgements.
func (l *listener) sends(events ...string) []string {
	l.t.Helper()
	for i, event := range events {
		l.say("42" + strings.Repeat("1", i+9) + event)
	}
	var list []string
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range events {
		id := strings.Repeat("1", i+9)
		l.wait("an acknowledgement", func() bool { return l.acks[id] != nil || l.over != nil })
		list = append(list, string(l.acks[id]))
		delete(l.acks, id)
	}
	return list
}

// A client that logs out while it waits for own is answered.
func TestOwnIsAnsweredAfterLogout(t *testing.T) { bubble(t, testOwnIsAnsweredAfterLogout) }

func testOwnIsAnsweredAfterLogout(t *testing.T) {
	l := newWorld(t, nil).listen()
	for range 20 {
		l.in("key-trader-0")
		got := l.sends(`["own.subscribe"]`, `["logout"]`)
		if got[0] != `[{"status":401,"body":{"detail":"This socket is not logged in."}}]` &&
			got[0] != `[{"status":200,"body":{"resumed":false}}]` ||
			got[1] != `[{"status":200,"body":{}}]` {
			t.Fatal(got)
		}
	}
}

// A client that ends its subscription while it waits for it gets no events.
func TestPendingOwnSubscriptionCanEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l := w.listen()
		l.in("key-trader-0")
		for range 20 {
			got := l.sends(`["own.subscribe"]`, `["own.subscribe",{"after":0}]`,
				`["own.unsubscribe"]`)
			for i, want := range []string{`[{"status":200,"body":{"resumed":`,
				`[{"status":200,"body":{"resumed":`, `[{"status":200,"body":{}}]`} {
				if !strings.HasPrefix(got[i], want) {
					t.Fatal(got)
				}
			}
			if n := w.hub.Stats().Subscriptions["own"]; n != 0 {
				t.Fatalf("%d clients are subscribed", n)
			}
		}
		l.mu.Lock()
		l.got = nil
		l.mu.Unlock()
		if l.own(0) || l.next().name != "own" {
			t.Error("a later subscription starts without snapshot")
		}
	})
}

// A client that subscribes while the last subscription of its account ends receives all later
// events.
func TestSubscriptionSurvivesEndOfPreviousOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l, _ := w.watchOwn(0)
		for range 200 {
			l.sends(`["own.unsubscribe"]`, `["own.subscribe"]`)
			m := newMirror(t)
			if x := m.whole(l); !x.Snapshot {
				t.Fatalf("%+v", x)
			}
			w.place(0, "BTC_USDT", trading.Sell, 100, 0.01)
			m.whole(l)
		}
	})
}
