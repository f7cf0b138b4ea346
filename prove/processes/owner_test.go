//go:build prove && linux

package processes

import (
	"strings"
	"testing"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// owners returns two exchanges on one Redis, each with a data folder of its own, of which the first
// serves.
func owners(t *testing.T) (c *chaos, second *exchangetest.Server, w *world) {
	t.Helper()
	c = &chaos{t: t, redis: redistest.Start(t)}
	c.s = exchangetest.New(t, c.redis.URL())
	c.s.Start()
	return c, c.second(), opened(t, c.s, 1)
}

func TestATakeOverEndsTheOtherExchange(t *testing.T) {
	c, second, w := owners(t)
	c.insists(second)
	c.givesWay(c.s)
	w.turnTo(second)
	w.compare()
	c.standsBy(c.s) // the overtaken exchange may be started again
	c.stillServes(second)
}

// Any text in the key of the beat is a beat: the store belongs to its owner until the text has
// stopped changing.
func TestAnOwnersBeatMayBeGarbage(t *testing.T) {
	c, second, w := owners(t)
	c.s.Kill()
	r := c.redis.Client()
	long := strings.Repeat("\x00\xff%s\n", 10_000)
	succeeds(t, r.HSet(t.Context(), "{main}:m", "epoch", long, "beat", long, "owner", long).Err())
	second.Start()
	if text := second.Log(); !strings.Contains(text, "shows no sign of life") ||
		strings.Contains(text, strings.Repeat("%s", 1000)) || len(text) > 100_000 {
		t.Errorf("the log has %d bytes:\n%.2000s", len(text), text)
	}
	w.turnTo(second)
	w.compare()
	second.Kill()
	succeeds(t, r.Rename(t.Context(), "{main}:m", "away").Err())
	succeeds(t, r.Set(t.Context(), "{main}:m", "no hash", 0).Err())
	second.Refuses(70, "WRONGTYPE", "another type")
}

// No exchange serves the rest of a Redis by itself after a loss, whether the owner died or detects
// the loss.
func TestAStandbyServesNoRedisThatHasLostATail(t *testing.T) {
	for _, how := range []struct{ alive, accepts bool }{{false, false}, {true, false},
		{false, true}, {true, true}} {
		c, _, w := owners(t)
		c.random = newRandom(t)
		for range 20 {
			w.fund(w.traders[0].name, "BTC", "1")
		}
		c.loseTail(how.alive, how.accepts)
		w.compare()
		c.compareOthers()
	}
}

// An idle exchange detects that Redis may lose writes, and accepts nothing: no client is left
// without an outcome.
func TestAnIdleExchangeTakesNothingThatRedisMayLose(t *testing.T) {
	const stalled = `exchange_requests_turned_away_total{reason="stalled"}`
	c, _, w := owners(t)
	end := c.journalEnd()
	c.config("appendfsync", "everysec")
	c.refuses()
	before := c.s.Metrics()
	for range 3 {
		status, err := c.s.Call("POST", "/operator/v1/deposits",
			map[string]string{"account": w.traders[0].name, "currency": "BTC", "amount": "1",
				"reference": "idle"}, nil)
		if status != 503 {
			t.Fatalf("a deposit is answered with %d, %v", status, err)
		}
	}
	now := c.s.Metrics()
	waiting, sent := now["exchange_store_append_waiting_seconds"],
		now["exchange_commands_in_flight"]
	if waiting != 0 || sent != 0 || now[stalled] != before[stalled]+3 || c.journalEnd() != end {
		t.Errorf("%v were turned away, %v are in flight, the journal ends at %s after %s",
			now[stalled], sent,
			c.journalEnd(), end)
	}
	if log := c.s.Log(); !strings.Contains(log, "the store is not durable enough") ||
		strings.Contains(log, "the store does not answer") {
		t.Errorf("the log says\n%s", log)
	}
	c.config("appendfsync", "always")
	serves(t, c.s)
	w.compare()
}

// A standby does not create a new exchange on a store that was emptied while it waited. A backup is
// older than the data that its host has seen; a restore by that host is accepted all the same.
func TestAStandbyServesNoStoreThatWasEmptied(t *testing.T) {
	c, second, w := owners(t)
	backups := t.TempDir()
	w.run(0, "", "backup", backups)
	for range 5 {
		w.fund(w.traders[0].name, "BTC", "1")
	}
	c.standsBy(second)
	succeeds(t, c.redis.Client().FlushAll(t.Context()).Err())
	endsWith(t, second, 70, "a standby of a Redis that was emptied")
	// not with 77: there is no other one
	endsWith(t, c.s, 70, "an exchange whose Redis was emptied")
	if !strings.Contains(c.s.Log(), "has no owner of this engine") {
		t.Errorf("it says\n%s", c.s.Log())
	}
	second.Refuses(70, "the store has lost a tail")
	(&target{Server: c.s}).fill(t, backups)
	second.Start()
	if !strings.Contains(second.Log(), "has restored a backup") {
		t.Errorf("the log does not say that the store has less than was seen:\n%s", second.Log())
	}
	clean(c.t, second)
	c.standsBy(c.s)
}
