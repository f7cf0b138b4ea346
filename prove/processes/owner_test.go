//go:build prove && linux

package processes

import (
	"encoding/json"
	"os"
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
	w = &world{t: t, s: c.s}
	w.open(1, newRandom(t))
	return c, c.second(), w
}

func TestASecondExchangeOnOneRedisWaits(t *testing.T) {
	c, second, w := owners(t)
	c.standsBy(second)
	c.stillServes(c.s)
	status, err := second.Call("GET", "/operator/v1/accounts", nil, nil)
	if status != 503 || !strings.Contains(err.Error(), "standby") ||
		!strings.Contains(err.Error(), "pid") {
		t.Errorf("an operator is told %d, %v", status, err)
	}
	if m := second.Metrics(); m["exchange_standby"] != 1 || m["exchange_ready"] != 0 {
		t.Errorf("standby %v, ready %v", m["exchange_standby"], m["exchange_ready"])
	}
	if code := second.Terminate(); code != 0 {
		t.Errorf("a standby that is told to stop ends with %d", code)
	}
	// The first one is gone, and has not given the store back.
	c.standsBy(second)
	c.s.Kill()
	exchangetest.Eventually(t, "the standby serves", func() bool { return second.Ready() == nil })
	w.turnTo(second)
	w.compare()
	// It gives the store back, so that the first need not wait.
	if code := second.Terminate(); code != 0 {
		t.Errorf("an orderly stop ends with %d", code)
	}
	waits := strings.Count(c.s.Log(), "standby:")
	c.s.Start()
	// A restart after a kill needs not wait either.
	c.s.Kill()
	c.s.Start()
	if n := strings.Count(c.s.Log(), "standby:"); n != waits {
		t.Errorf("it has waited %d times", n-waits)
	}
	w.turnTo(c.s)
	w.compare()
}

func TestOneDataFolderIsOfOneProcess(t *testing.T) {
	c, _, w := owners(t)
	backups := t.TempDir()
	w.run(0, "", "backup", backups)
	same := exchangetest.New(t, redistest.Start(t).URL()) // even on another store
	same.Args = append(same.Args, "--data",
		strings.TrimSuffix(c.s.Data("serve.lock"), "/serve.lock"))
	same.Refuses(75, "serve.lock", "is held by pid", "--data")
	w.run(75, "serve.lock", append([]string{"restore", backups}, same.Args[1:]...)...)
	c.stillServes(c.s)
	if c.s.Ready() != nil {
		t.Error("the first is not ready any more")
	}
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

// A copy of a data folder remembers an owner that lives in the original. A start there waits as a
// standby does, and the other exchange goes on.
func TestACopiedDataFolderIsToldFromItsOriginal(t *testing.T) {
	c, second, _ := owners(t)
	if err := os.CopyFS(second.Data(""), os.DirFS(c.s.Data(""))); err != nil {
		t.Fatal(err)
	}
	c.standsBy(second)
	if text := second.Log(); !strings.Contains(text, "is a copy of another") {
		t.Errorf("it does not say that its folder is a copy:\n%s", text)
	}
	c.stillServes(c.s)
}

// Damage that makes an owner's id useless costs a wait, and no more.
func TestAnIDFileThatIsDamagedOrGoneCostsAWait(t *testing.T) {
	c, _, _ := owners(t)
	file := c.s.Data("owner.id")
	for what, spoil := range map[string]func() error{
		"gone":    func() error { return os.Remove(file) },
		"empty":   func() error { return os.WriteFile(file, nil, 0o600) },
		"garbage": func() error { return os.WriteFile(file, []byte("\x00\xff{"), 0o600) },
		"another version": func() error {
			return os.WriteFile(file, []byte(`{"version":9,"newest":{"id":"00"}}`), 0o600)
		},
	} {
		c.s.Kill()
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		before := len(c.s.Log())
		c.s.Start()
		if text := c.s.Log()[before:]; !strings.Contains(text, "shows no sign of life") {
			t.Errorf("%s: it has not waited:\n%s", what, text)
		}
		var known struct{ Version int }
		if b, err := os.ReadFile(file); err != nil || json.Unmarshal(b, &known) != nil ||
			known.Version != 4 {
			t.Errorf("%s: the file is %q, %v", what, b, err)
		}
	}
}

// Any text in the place of a beat is a beat: the store belongs to its owner until the text is seen
// not to change.
func TestAnOwnersBeatMayBeGarbage(t *testing.T) {
	c, second, w := owners(t)
	c.s.Kill()
	r := c.redis.Client()
	long := strings.Repeat("\x00\xff%s\n", 10_000)
	if err := r.HSet(t.Context(), "{main}:m", "epoch", long, "beat", long, "owner",
		long).Err(); err != nil {
		t.Fatal(err)
	}
	second.Start()
	if text := second.Log(); !strings.Contains(text, "shows no sign of life") ||
		strings.Contains(text, strings.Repeat("%s", 1000)) || len(text) > 100_000 {
		t.Errorf("the log has %d bytes:\n%.2000s", len(text), text)
	}
	w.turnTo(second)
	w.compare()
	second.Kill()
	if err := r.Rename(t.Context(), "{main}:m", "away").Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(t.Context(), "{main}:m", "no hash", 0).Err(); err != nil {
		t.Fatal(err)
	}
	second.Refuses(70, "WRONGTYPE", "another type")
}

// No exchange by itself serves the rest of a Redis after a loss, whether the owner has died or
// finds out.
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

// An idle exchange learns that Redis may lose writes, and takes nothing: no client is left without
// an outcome.
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
	exchangetest.Eventually(t, "it takes orders again", func() bool { return c.s.Ready() == nil })
	w.compare()
}

// A standby does not begin a new exchange on a store that was emptied while it waited. A backup has
// less than its host has seen. When that host restores it, the exchange takes it all the same.
func TestAStandbyServesNoStoreThatWasEmptied(t *testing.T) {
	c, second, w := owners(t)
	backups := t.TempDir()
	w.run(0, "", "backup", backups)
	for range 5 {
		w.fund(w.traders[0].name, "BTC", "1")
	}
	c.standsBy(second)
	if err := c.redis.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	c.ends(second, "a standby of a Redis that was emptied")
	c.ends(c.s, "an exchange whose Redis was emptied")
	if a, b := c.s.ExitCode(), second.ExitCode(); a != 70 || b != 70 {
		t.Errorf("they end with %d and %d", a, b)
	}
	second.Refuses(70, "the store has lost a tail")
	(&target{Server: c.s}).fill(t, backups)
	second.Start()
	if !strings.Contains(second.Log(), "has restored a backup") {
		t.Errorf("the log does not say that the store has less than was seen:\n%s", second.Log())
	}
	if err := second.Audit(); err != nil {
		t.Error(err)
	}
	c.standsBy(c.s)
}
