package stream

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/gateway/api"
)

// armed returns the switches of all keys, as operators see them.
func (w *world) armed() []committed.NamedSwitch {
	w.t.Helper()
	q := &committed.Switches{}
	worked(w.t, w.engine.Ask(q, nil, 0))
	return q.List
}

// protected logs a client in whose end cancels orders.
func (l *listener) protected(key string, seconds any, more ...string) string {
	l.t.Helper()
	l.ask("challenge")
	fields := map[string]any{"key": key, "sign": "right", "cancel_on_disconnect": seconds}
	for i := 0; i+1 < len(more); i += 2 {
		fields[more[i]] = more[i+1]
	}
	return l.ask("login", fields)
}

func (l *listener) mustProtect(key string, seconds any, more ...string) {
	l.t.Helper()
	want := fmt.Sprintf(`","cancel_on_disconnect":%v}}`, seconds)
	got := l.protected(key, seconds, more...)
	if !strings.HasPrefix(got, allRights) || !strings.HasSuffix(got, want) {
		l.t.Fatal(got)
	}
}

// stillOpen waits until no switch is armed, and takes back those of a trader's orders that are open
// still, which it returns.
func (w *world) stillOpen(trader int, orders ...uint64) (open []uint64) {
	w.t.Helper()
	eventually(w.t, "the switch has fired", func() bool { return len(w.armed()) == 0 })
	for _, id := range orders {
		c := must(w.engine.Cancel(w.keys[trader], w.nonces.Add(1), id))
		if c.Outcome() == actors.Accepted {
			open = append(open, id)
		}
		c.Free()
	}
	return open
}

func TestEndOfLastSocketCancelsOrders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		sell := w.place(0, "BTC_USDT", trading.Sell, 100, 1)
		buy := w.place(0, "BTC_USDT", trading.Buy, 1, 1)
		elsewhere := w.place(0, "ETH_USDT", trading.Sell, 100, 1)
		first, second, other := w.listen(), w.listen(), w.listen()
		first.mustProtect("key-trader-0", 0, "type", "sell", "pair", "BTC_USDT")
		second.mustProtect("key-trader-0", "0", "type", "sell", "pair", "BTC_USDT")
		other.in("key-trader-0") // its end is none of a protected socket
		first.conn.Close()
		eventually(t, "the first has gone", func() bool { return w.hub.Stats().Logins == 2 })
		if got := w.armed(); len(got) != 1 || got[0].DueUs != 0 || !got[0].Session ||
			got[0].Side != trading.Sell {
			t.Fatalf("while a socket lives: %+v", got)
		}
		second.conn.Close()
		got := w.stillOpen(0, sell, buy, elsewhere)
		if !slices.Equal(got, []uint64{buy, elsewhere}) {
			t.Errorf("%v of %d, %d and %d are open", got, sell, buy, elsewhere)
		}
	})
}

func TestReturningSocketKeepsOrders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		id := w.place(0, "BTC_USDT", trading.Sell, 100, 1)
		l := w.listen()
		l.mustProtect("key-trader-0", 60)
		l.conn.Close()
		eventually(t, "the switch has its time", func() bool { return w.armed()[0].DueUs != 0 })
		l = w.listen()
		l.mustProtect("key-trader-0", 30)
		if got := w.armed(); len(got) != 1 || got[0].DueUs != 0 || got[0].Seconds != 30 {
			t.Errorf("armed are %+v", got)
		}
		// a socket that takes the place of another one may protect in another way
		next := w.listen()
		next.mustProtect("key-trader-0", 20, "type", "buy", "ends", l.sid())
		l.ended()
		if got := w.armed(); len(got) != 1 || got[0].DueUs != 0 || got[0].Seconds != 20 {
			t.Errorf("armed are %+v", got)
		}
		if got := next.ask("logout"); got != `{"status":200,"body":{}}` {
			t.Error(got)
		}
		if got := w.stillOpen(0, id); len(got) != 1 {
			t.Error("the order of a client that logged out is cancelled")
		}
	})
}

func TestProtectedSocketsOfAKeyAreAlike(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		first, second := w.listen(), w.listen()
		first.mustProtect("key-trader-0", 60, "type", "sell")
		const differs = `{"status":400,"body":{"cancel_on_disconnect":["Another socket of the key is ` +
			`logged in with other seconds, or for other orders."]}}`
		for _, more := range [][]string{{}, {"type", "buy"}, {"type", "sell", "pair", "BTC_USDT"},
			{"type", "sell", "client_order_id_prefix", "a"}} {
			if got := second.protected("key-trader-0", 60, more...); got != differs {
				t.Errorf("%v: %s", more, got)
			}
		}
		if got := second.protected("key-trader-0", 59, "type", "sell"); got != differs {
			t.Error(got)
		}
		second.mustProtect("key-trader-1", 59)
		if got := second.ask("logout"); got != `{"status":200,"body":{}}` {
			t.Error(got)
		}
		second.mustProtect("key-trader-0", 60, "type", "sell")
		if n := w.hub.Stats().Logins; n != 2 {
			t.Errorf("%d logins", n)
		}
	})
}

func TestBadFieldsOfAProtectedLoginAreNamed(t *testing.T) {
	bubble(t, testBadFieldsOfAProtectedLoginAreNamed)
}

func testBadFieldsOfAProtectedLoginAreNamed(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.engine.CreateKey("test", "trader-0", "reader", "secret", event.PermissionRead, nil))
	l := w.listen()
	const seconds = `{"status":400,"body":{"cancel_on_disconnect":["A valid integer is required. ` +
		`It must be 0 to 60."]}}`
	for _, x := range []any{-1, 61, 1.5, "x", 1e30, "", "4294967297"} {
		if got := l.protected("key-trader-0", x); got != seconds {
			t.Errorf("%v: %s", x, got)
		}
	}
	for _, x := range []any{true, []int{1}, map[string]int{}} {
		if got := l.protected("key-trader-0", x); !strings.HasPrefix(got,
			`{"status":400,"body":{"cancel_on_disconnect":[`) {
			t.Errorf("%v: %s", x, got)
		}
	}
	got := l.protected("key-trader-0", 61, "pair", "X_Y", "type", "both",
		"client_order_id_prefix", "?")
	for _, name := range []string{"pair", "type", "client_order_id_prefix",
		"cancel_on_disconnect"} {
		if !strings.Contains(got, `"`+name+`":["`) {
			t.Errorf("%s is not named: %s", name, got)
		}
	}
	l.ask("challenge")
	if got := l.ask("login", map[string]string{"key": "key-trader-0", "sign": "right",
		"pair": "BTC_USDT", "Cancel_On_Disconnect": "5"}); got != `{"status":400,"body":{"pair":`+
		`["Only with cancel_on_disconnect."]}}` {
		t.Error(got)
	}
	if got := l.protected("reader", 60); got != `{"status":403,"body":{"detail":"This key lacks `+
		`the permission trade."}}` {
		t.Error(got)
	}
	if n, list := w.hub.Stats().Logins, w.armed(); n != 0 || len(list) != 0 {
		t.Errorf("%d logins, armed are %+v", n, list)
	}
	if got := l.login("reader"); got !=
		`{"status":200,"body":{"permissions":["read"],"account":"trader-0"}}` {
		t.Error(got)
	}
}

func TestRevocationCancelsForLostSockets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		for trader, end := range []func() (actors.Admin, error){
			func() (actors.Admin, error) { return w.engine.Freeze("test", "trader-0", true) },
			func() (actors.Admin, error) { return w.engine.RevokeKey("test", "key-trader-1") },
		} {
			key := []string{"key-trader-0", "key-trader-1"}[trader]
			w.place(trader, "BTC_USDT", trading.Sell, 100, 1)
			l := w.listen()
			l.mustProtect(key, 0)
			w.must(end())
			eventually(t, "the switch has fired", func() bool { return len(w.armed()) == 0 })
			q := committed.KeyStatus{Key: w.keys[trader].Number}
			if err := w.engine.Ask(&q, nil, 0); err != nil || !q.Frozen && !q.Revoked {
				t.Errorf("%+v, %v", q, err)
			}
		}
		if open := w.engine.Stats().Meter.Open.Load(); open != 0 {
			t.Errorf("%d orders are open", open)
		}
	})
}

// The socket closes while its login is in flight to the wallet: the end follows.
func TestLoginOfClosedSocketEndsItsSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l := w.listen()
		l.mustProtect("key-trader-0", 60)
		old := w.loginOf("key-trader-0")
		l.ask("logout")
		late := &login{key: old.key, client: old.client, session: &actors.Session{Number: 77}}
		if !late.end("") {
			t.Fatal("it was over")
		}
		var call api.Call
		guard := testGuard{w}
		guard.Begin(&call)
		guard.Login(&call, netip.Addr{}, &Proof{"key-trader-0", "right", "x"})
		if !late.beginSession(&call) {
			t.Fatalf("the session does not begin: %+v", call.Failure)
		}
		eventually(t, "the switch has fired", func() bool { return len(w.armed()) == 0 })
	})
}

// A start is the end of all sockets, not the end that the stop gives them.
func TestStopDoesNotExtendSwitches(t *testing.T) { bubble(t, testStopDoesNotExtendSwitches) }

func testStopDoesNotExtendSwitches(t *testing.T) {
	w := newWorld(t, nil)
	w.place(0, "BTC_USDT", trading.Sell, 100, 1)
	w.listen().mustProtect("key-trader-0", 60)
	before := w.armed()
	w.engine.CloseAdmission()
	w.restart()
	after := w.armed()
	if len(after) != 1 || after[0].DueUs == 0 || before[0].DueUs != 0 {
		t.Fatalf("before %+v, after %+v", before, after)
	}
	w.listen().mustProtect("key-trader-0", 0)
	if got := w.armed(); len(got) != 1 || got[0].DueUs != 0 {
		t.Errorf("armed are %+v", got)
	}
}
