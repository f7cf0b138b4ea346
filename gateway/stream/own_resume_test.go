package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"exchange/actors"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/gateway/socketio"
)

func TestClientResumesAnywhereInBuffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l, m := w.watchOwn(0)
		places := []uint64{m.seq}
		for i := range 10 {
			w.place(0, "BTC_USDT", trading.Sell, 100+float64(i), 1)
			w.place(1, "BTC_USDT", trading.Buy, 100+float64(i), 0.5)
			places = append(places, m.whole(l).Sequence, m.whole(l).Sequence)
		}
		for i, place := range places {
			again := w.listen()
			again.in("key-trader-0")
			if !again.own(place) {
				t.Fatalf("place %d of %d is not resumed", i, len(places))
			}
			for _, want := range places[i+1:] {
				if s := again.next(); !strings.Contains(string(s.body),
					fmt.Sprintf(`{"sequence":%d,`, want)) {
					t.Fatalf("after %d comes %s, want %d", place, s.body, want)
				}
			}
			again.conn.Close()
		}
		last := places[len(places)-1]
		for name, after := range map[string]uint64{"before the buffer": places[0] - 1,
			"in the future": last + 1000} {
			again := w.listen()
			again.in("key-trader-0")
			if again.own(after) {
				t.Errorf("%s: %d is resumed", name, after)
			}
			fresh := newMirror(t)
			if fresh.whole(again); fresh.seq != last {
				t.Errorf("%s: a snapshot of %d", name, fresh.seq)
			}
			again.conn.Close()
		}
		// the last client leaves, events occur, and it returns
		l.conn.Close()
		w.waitForOwn(0)
		w.place(1, "BTC_USDT", trading.Buy, 200, 0.25)
		l = w.listen()
		l.in("key-trader-0")
		if !l.own(m.seq) {
			t.Fatal("it was dropped")
		}
		if x := m.whole(l); x.Cause != "trade" {
			t.Errorf("%+v", x)
		}
	})
}

// waitForOwn waits for a number of clients subscribed to own.
func (w *world) waitForOwn(n int64) {
	w.t.Helper()
	eventually(w.t, "the number of subscribers is reached", func() bool {
		return w.hub.Stats().Subscriptions["own"] == n
	})
}

func TestOwnSequenceContinuesAfterRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l, m := w.watchOwn(0)
		id := w.place(0, "BTC_USDT", trading.Sell, 100, 2)
		m.whole(l)
		w.restart()
		l = w.listen()
		l.in("key-trader-0")
		if l.own(m.seq) {
			t.Error("the buffer outlived the process")
		}
		fresh := newMirror(t)
		fresh.whole(l)
		fresh.same(m)
		w.place(1, "BTC_USDT", trading.Buy, 100, 2)
		if x := m.whole(l); x.Order != id { // which also wants the event to follow the one before
			t.Errorf("%+v", x)
		}
	})
}

func TestSelfTradeIsSentOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l, m := w.watchOwn(0)
		first := w.place(0, "BTC_USDT", trading.Sell, 100, 2)
		m.whole(l)
		second := w.place(0, "BTC_USDT", trading.Buy, 100, 2)
		x := m.whole(l)
		if x.Cause != "placed" || x.Order != second || len(x.Trades) != 1 || len(x.Orders) != 2 ||
			!strings.Contains(string(x.Trades[0]), fmt.Sprint(`"order":`, second, `,"maker":false`)) {
			t.Errorf("%+v", x)
		}
		m.isREST(w, 0)
		third := w.place(0, "BTC_USDT", trading.Sell, 100, 2)
		m.whole(l)
		q := actors.OrderRequest{Pair: w.pair("BTC_USDT"), Side: trading.Buy, Price: 100e8,
			Amount: coin, Special: &actors.SpecialRequest{SelfTradeGiven: true}}
		q.Special.SelfTrade = trading.SelfTradeCancelOldest
		c, err := w.engine.Place(w.keys[0], w.nonces.Add(1), &q)
		if err != nil || c.Outcome() != actors.Accepted {
			t.Fatal(err)
		}
		x = m.whole(l)
		if x.Cause != "self_trade" || x.Order != c.Record().Order.ID || len(x.Orders) != 2 ||
			len(x.Trades) != 0 {
			t.Errorf("%+v", x)
		}
		if row := m.orders[third]; !strings.Contains(row, `"status":2`) {
			t.Errorf("order %d: %s (beside %d)", third, row, first)
		}
		m.isREST(w, 0)
	})
}

func TestNoEventsAfterRevocation(t *testing.T) {
	bubble(t, testNoEventsAfterRevocation)
}

func testNoEventsAfterRevocation(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.engine.CreateKey("test", "trader-0", "second", "secret", event.PermissionRead, nil))
	first, m := w.watchOwn(0)
	second := w.listen()
	second.login("second")
	second.own(0)
	second.next()
	w.place(0, "BTC_USDT", trading.Sell, 100, 2)
	w.must(w.engine.RevokeKey("test", "second"))
	w.place(1, "BTC_USDT", trading.Buy, 100, 2)
	if s := second.next(); s.name != "own" {
		t.Fatalf("%s %s", s.name, s.body)
	}
	second.expect("login.end", `{"detail":"The key is revoked."}`)
	if x := m.whole(first); x.Cause != "placed" {
		t.Errorf("%+v", x)
	}
	if x := m.whole(first); x.Cause != "trade" {
		t.Errorf("%+v", x)
	}
	w.must(w.engine.Freeze("test", "trader-0", true))
	w.must(w.engine.Deposit("test", "trader-0", "ETH", coin, "after the freeze"))
	first.expect("own", `{"sequence":*,"prev":*,"timestamp":*,"cause":"freeze","frozen":true,`+
		`"orders":[],"trades":[],"balances":[]}`)
	first.expect("login.end", `{"detail":"The account is frozen."}`)
	for _, l := range []*listener{first, second} {
		if got := l.ask("own.subscribe"); !strings.Contains(got, `"This socket is not logged in."`) {
			t.Error(got)
		}
		if l.mu.Lock(); len(l.got) > 0 {
			t.Errorf("it still receives %s", l.got[0].body)
		}
		l.mu.Unlock()
	}
}

// A freeze is sent before it ends the login, and its end to the returning client.
func TestFreezeAndUnfreezeAreSent(t *testing.T) { bubble(t, testFreezeAndUnfreezeAreSent) }

func testFreezeAndUnfreezeAreSent(t *testing.T) {
	w := newWorld(t, nil)
	l, m := w.watchOwn(0)
	w.must(w.engine.Freeze("test", "trader-0", true))
	if x := m.whole(l); x.Cause != "freeze" || !m.frozen {
		t.Errorf("%+v", x)
	}
	l.expect("login.end", `{"detail":"The account is frozen."}`)
	w.must(w.engine.Deposit("test", "trader-0", "ETH", coin, "after the freeze"))
	w.must(w.engine.Freeze("test", "trader-0", false))
	again := w.listen()
	again.in("key-trader-0")
	if !again.own(m.seq) {
		t.Fatal("it was not resumed")
	}
	if x := m.whole(again); x.Cause != "deposit" || !m.frozen {
		t.Errorf("%+v", x)
	}
	if x := m.whole(again); x.Cause != "freeze" || m.frozen {
		t.Errorf("%+v", x)
	}
	m.isREST(w, 0)
}

func TestOwnNeedsALoginAndThePermissionToRead(t *testing.T) {
	bubble(t, testOwnNeedsALoginAndThePermissionToRead)
}

func testOwnNeedsALoginAndThePermissionToRead(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.engine.CreateKey("test", "trader-0", "trades", "secret", event.PermissionTrade, nil))
	l := w.listen()
	if got := l.ask("own.subscribe"); got != `{"status":401,"body":{"detail":"This socket is not `+
		`logged in."}}` {
		t.Error(got)
	}
	l.login("trades")
	if got := l.ask("own.subscribe"); got != `{"status":403,"body":{"detail":"This key lacks the `+
		`permission read."}}` {
		t.Error(got)
	}
	l.ask("logout")
	l.in("key-trader-0")
	for _, bad := range []string{`{"after":-1}`, `{"after":"x"}`, `{"after":1.5}`, `{"after":[]}`,
		`{"after":1e-3}`, `[]`, `"x"`, `{"after":99999999999999999999}`} {
		if got := l.ask("own.subscribe", json.RawMessage(bad)); got != `{"status":400,"body":{`+
			`"after":["A valid integer is required."]}}` {
			t.Errorf("%s: %s", bad, got)
		}
	}
	for _, good := range []string{`{}`, `{"after":null}`, `{"after":0}`, `{"other":1}`} {
		if got := l.ask("own.subscribe", json.RawMessage(good)); got !=
			`{"status":200,"body":{"resumed":false}}` {
			t.Errorf("%s: %s", good, got)
		}
		newMirror(t).whole(l)
	}
	if n := w.hub.Stats().Subscriptions["own"]; n != 1 {
		t.Errorf("%d subscribers", n)
	}
}

func TestLongSnapshotIsSentInParts(t *testing.T) { bubble(t, testLongSnapshotIsSentInParts) }

func testLongSnapshotIsSentInParts(t *testing.T) {
	w := newWorld(t, func(o *socketio.Options) { o.QueueBytes = 64 << 10 })
	const orders = ownOrdersOfTest
	for i := range orders {
		w.place(0, "BTC_USDT", trading.Sell, 1+float64(i)/100, 1)
	}
	l, m := w.listen(), newMirror(t)
	l.in("key-trader-0")
	l.own(0)
	x := m.whole(l)
	if x.Parts < 2 || !x.Complete || len(m.open) != orders {
		t.Errorf("%d parts, complete %v, %d orders", x.Parts, x.Complete, len(m.open))
	}
	m.isREST(w, 0)
	// a record that meets many of them is one event for its maker, in parts, too
	w.place(1, "BTC_USDT", trading.Buy, 25, orders)
	if x := m.whole(l); x.Parts < 2 || x.Cause != "trade" {
		t.Errorf("%d parts of %s", x.Parts, x.Cause)
	}
	m.isREST(w, 0)
	// and comes so to a client that resumes, with all else that it has missed
	places := m.seq
	for range 50 {
		w.place(0, "BTC_USDT", trading.Sell, 100, 1)
		m.whole(l)
	}
	again := w.listen()
	again.in("key-trader-0")
	if !again.own(places) {
		t.Fatal("it was not resumed")
	}
	late := *m
	late.seq, late.began = places, true
	late.until(again, m.seq)
}

// ownOrdersOfTest are more orders than fit into one part.
const ownOrdersOfTest = 1980

func TestSlowOwnReaderIsDisconnected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(o *socketio.Options) { o.QueueBytes = 16 << 10 })
		l, m := w.watchOwn(0)
		l.hold(true)
		for i := 0; ; i++ {
			w.place(0, "BTC_USDT", trading.Sell, 100+float64(i%100), 0.01)
			if w.hub.Stats().Subscriptions["own"] == 0 {
				break
			}
		}
		l.hold(false)
		for s, ok := l.tryNext(); ok; s, ok = l.tryNext() {
			m.take(s)
		}
		again := w.listen()
		again.in("key-trader-0")
		again.own(m.seq)
		fresh := w.listen()
		fresh.in("key-trader-0")
		fresh.own(0)
		now := newMirror(t)
		now.whole(fresh)
		m.until(again, now.seq)
		m.same(now)
	})
}

// tryNext returns the next event, false if the connection ends before.
func (l *listener) tryNext() (streamEvent, bool) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait("an event, or the end", func() bool { return len(l.got) > 0 || l.over != nil })
	if len(l.got) == 0 {
		return streamEvent{}, false
	}
	s := l.got[0]
	l.got = l.got[1:]
	return s, true
}

func TestSocketsOfAnAccountReceiveTheSame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		var all []*listener
		var mirrors []*mirror
		for range 5 {
			l, m := w.watchOwn(0)
			all, mirrors = append(all, l), append(mirrors, m)
		}
		other, foreign := w.watchOwn(1)
		for i := range 20 {
			w.place(0, "BTC_USDT", trading.Sell, 100+float64(i), 1)
		}
		for i := range all {
			for range 20 {
				mirrors[i].whole(all[i])
			}
			mirrors[i].isREST(w, 0)
		}
		w.place(1, "BTC_USDT", trading.Buy, 1, 1)
		if x := foreign.whole(other); x.Cause != "placed" || foreign.events != 1 {
			t.Errorf("another account received %+v", x)
		}
		// a socket that logs in to another account receives only that one's events
		all[0].ask("logout")
		all[0].in("key-trader-1")
		all[0].own(0)
		w.place(0, "ETH_USDT", trading.Sell, 100, 1)
		m := newMirror(t)
		m.whole(all[0])
		m.isREST(w, 1)
		w.place(1, "ETH_USDT", trading.Buy, 1, 1)
		if x := m.whole(all[0]); x.Cause != "placed" || m.events != 1 {
			t.Errorf("%+v", x)
		}
	})
}
