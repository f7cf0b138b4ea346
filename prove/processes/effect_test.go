//go:build prove && linux

package processes

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// Redis reports `appendonly yes` before its append-only file is in effect: a kill loses writes that
// it acknowledged before the end of the first rewrite. These rounds cause that, and expect no
// acknowledgement meanwhile.

// switchOn switches the append-only file off and on.
func (c *chaos) switchOn() {
	c.config("appendonly", "no")
	c.config("appendonly", "yes")
}

// startBeforeFirstRewrite starts the exchange on a Redis whose first rewrite runs.
func (c *chaos) startBeforeFirstRewrite() {
	c.s.Kill()
	c.redis.HoldRewrites()
	c.switchOn()
	c.redis.AwaitRewrite()
	c.startsWhenInEffect()
}

// startAfterFailedRewrite starts the exchange on a Redis whose first rewrite fails.
func (c *chaos) startAfterFailedRewrite() {
	c.s.Kill()
	c.redis.FailRewrites()
	c.switchOn()
	c.redis.AwaitFailedRewrite()
	c.startsWhenInEffect()
}

// startsWhenInEffect expects a start to wait, and kills Redis meanwhile.
func (c *chaos) startsWhenInEffect() {
	c.t.Helper()
	const waits = "waiting for Redis"
	before := strings.Count(c.s.Log(), waits)
	c.s.Run()
	exchangetest.Eventually(c.t, "the start waits",
		func() bool { return strings.Count(c.s.Log(), waits) > before })
	if c.s.Ready() == nil {
		c.t.Error("orders are taken by a Redis that keeps them in memory alone")
	}
	c.redis.Kill()
	c.redis.Restart()
	c.s.Kill()
	c.s.Start()
}

// switchOnWhileRunning switches the append-only file off and on under a running exchange.
func (c *chaos) switchOnWhileRunning() {
	c.redis.HoldRewrites()
	c.switchOn()
	c.redis.AwaitRewrite()
	c.appendsNothing()
}

// resyncWhileStopped lets Redis load all its data from a copy while the exchange stands still, and
// then become a master again whose first rewrite fails.
func (c *chaos) resyncWhileStopped() {
	c.redis.FailRewrites()
	copied := redistest.Start(c.t)
	c.s.Signal(syscall.SIGSTOP)
	c.redis.ResyncWholly(copied)
	c.redis.AwaitFailedRewrite()
	c.s.Signal(syscall.SIGCONT)
	copied.Stop()
	c.appendsNothing()
}

// appendsNothing expects a running exchange to append nothing until a rewrite has ended, and then
// to resume. Later appends survive a kill of Redis.
func (c *chaos) appendsNothing() {
	c.t.Helper()
	const refused = `exchange_requests_turned_away_total{reason="stalled"}`
	c.refuses()
	end, before := c.journalEnd(), c.s.Metrics()[refused]
	exchangetest.Eventually(c.t, "commands are turned away",
		func() bool { return c.s.Metrics()[refused] >= before+5 })
	if now := c.journalEnd(); now != end {
		c.t.Errorf("a Redis that keeps records in memory alone took those from %s to %s", end, now)
	}
	c.redis.EndRewrites()
	c.accepts(10)
	c.killRedis()
}

// journalEnd returns the last sequence of the journal in Redis.
func (c *chaos) journalEnd() string {
	c.t.Helper()
	end := must[string](c.t)(c.redis.Client().HGet(c.t.Context(), "{main}:m", "seq").Result())
	return end
}

// lookAgain is the maximum age of a check of Redis at an append, as in docs/reliability.md.
const lookAgain = 500 * time.Millisecond

// inWindow returns an exchange on Redis and its clients. A kill of that Redis may lose requests
// acknowledged since the file was switched off.
func inWindow(t *testing.T) (*chaos, *world) {
	t.Helper()
	c := &chaos{t: t, redis: redistest.Start(t), random: newRandom(t)}
	c.s = exchangetest.New(t, c.redis.URL())
	c.s.Start()
	w := &world{t: t, s: c.s, backingUp: new(atomic.Bool)}
	w.open(4, c.random)
	for _, trader := range w.traders {
		trader.backingUp = w.backingUp
	}
	w.load(100, func() {})
	return c, w
}

// A request half a second or more after Redis's file was switched off is not acknowledged.
func TestTheRedisLossWindowIsAsLongAsDocumented(t *testing.T) {
	c, w := inWindow(t)
	for range 5 {
		c.config("appendonly", "no")
		changed := time.Now()
		exchangetest.Eventually(t, "a deposit is refused", func() bool {
			asked := time.Since(changed)
			if goOn, err := w.pay(w.traders[0].name, "BTC", "1"); !goOn || err != nil {
				t.Fatalf("a deposit is not answered: %v", err)
			}
			got := w.payments[len(w.payments)-1].outcome
			if got == acknowledged && asked >= lookAgain {
				t.Errorf("a deposit that was asked for %v after the change is acknowledged", asked)
			}
			return got == refused
		})
		c.config("appendonly", "yes")
		serves(t, c.s)
	}
	w.compare()
}

// Redis's file is switched off, and Redis is killed before the exchange has checked it again. Only
// requests acknowledged in between are lost. The exchange ends, and no start resumes without an
// operator's consent.
func TestARedisThatIsKilledInTheWindowLosesThatAlone(t *testing.T) {
	c, w := inWindow(t)
	before := w.marks()
	var kept uint64 // where the journal ended before the change
	w.load(50, func() {
		w.backingUp.Store(true) // all that was acknowledged up to here must be there
		kept = c.end()
		c.config("appendonly", "no")
		switched := c.end()
		exchangetest.Eventually(t, "something is acknowledged in the window", func() bool {
			if c.s.Ready() != nil { // its end came first
				c.config("appendonly", "yes")
				serves(t, c.s)
				kept = c.end()
				c.config("appendonly", "no")
				switched = c.end()
			}
			return c.end() > switched
		})
		c.redis.Kill()
		c.redis.Restart()
		endsWith(t, c.s, 70, "the exchange")
	})
	if end := c.end(); end < kept {
		t.Errorf("the journal ended at %d, and ends at %d", kept, end)
	}
	for range 2 {
		c.s.Refuses(70, "HEAD.redis")
	}
	succeeds(t, os.Remove(c.s.Data("HEAD.redis")))
	w.rollBack(before)
	w.backingUp.Store(false)
	c.insists(c.s)
	w.compare()
	w.load(50, func() {})
	w.compare()
}

// end returns journalEnd as a number.
func (c *chaos) end() uint64 {
	c.t.Helper()
	n := must[uint64](c.t)(strconv.ParseUint(c.journalEnd(), 10, 64))
	return n
}
