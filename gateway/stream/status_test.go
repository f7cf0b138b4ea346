package stream

import (
	"context"
	"testing"

	"exchange/core/event"
)

// The status starts with all bars on orders, followed by each change, in the order of the records.
func TestStatusSendsHaltsAndMaintenance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.must(w.engine.Halt("test", "ETH_USDT", true))
		l := w.listen()
		l.say(`42["subscribe","status"]`)
		l.expect("subscribe.success", `{"channel":"status","timestamp":*}`)
		l.expect("status",
			`{"snapshot":true,"timestamp":*,"maintenance":null,"halted":["ETH_USDT"]}`)
		w.must(w.engine.Halt("test", "BTC_USDT", true))
		l.expect("status", `{"timestamp":*,"pair":"BTC_USDT","status":"halted"}`)
		w.must(w.engine.Halt("test", "BTC_USDT", true)) // it is halted already
		w.must(w.engine.Halt("test", "ETH_USDT", false))
		l.expect("status", `{"timestamp":*,"pair":"ETH_USDT","status":"trading"}`)
		change := func(m event.Maintenance) {
			t.Helper()
			w.must(w.engine.SetMaintenance(context.Background(), "test", m))
		}
		maintain := func(on bool, message string) {
			t.Helper()
			change(event.Maintenance{On: on, Message: message})
		}
		maintain(true, `a "new" disk`)
		l.expect("status", `{"timestamp":*,"maintenance":{"message":"a \"new\" disk"}}`)
		change(event.Maintenance{On: true, Cancels: true})
		l.expect("status", `{"timestamp":*,"maintenance":{"message":"","cancels":true}}`)
		maintain(true, "")
		l.expect("status", `{"timestamp":*,"maintenance":{"message":""}}`)
		for range 2 { // the second time after a restart, which the maintenance outlives
			other := w.listen()
			other.say(`42["subscribe","status"]`)
			other.expect("subscribe.success", `{"channel":"status","timestamp":*}`)
			other.expect("status",
				`{"snapshot":true,"timestamp":*,"maintenance":{"message":""},"halted":["BTC_USDT"]}`)
			if w.hub.Stats().Subscriptions["status"] == 2 {
				w.restart()
				l = w.listen()
				l.subscribe("status")
				l.next()
			}
		}
		maintain(false, "")
		l.expect("status", `{"timestamp":*,"maintenance":null}`)
		l.ask("unsubscribe", "status") // its answer follows
		w.must(w.engine.Halt("test", "BTC_USDT", false))
		l.say(`42["subscribe","status","trades.BTC_USDT"]`)
		got := map[string]string{}
		for range 3 {
			s := l.next()
			got[s.name] += string(s.body)
		}
		if !matches(`{"snapshot":true,"timestamp":*,"maintenance":null,"halted":[]}`,
			got["status"]) {
			t.Error(got)
		}
	})
}
