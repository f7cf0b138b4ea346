//go:build linux

package crash

import (
	"strings"
	"syscall"

	"exchange/cmd/exchange/exchangetest"
	"exchange/persistence/redistest"
)

// Redis says `appendonly yes` before its append-only file is in effect: what it acknowledges until
// a first rewrite has ended is lost with it. These rounds bring that about, and want nothing to be
// acknowledged meanwhile.

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

// startsWhenInEffect wants a start to wait, and kills Redis meanwhile.
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

// resyncWhileStopped has Redis take all its data from a copy while the exchange stands still, and
// then be a master again whose first rewrite fails.
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

// appendsNothing wants a running exchange to append nothing until a rewrite has ended, and to go on
// then. What it appends from there on outlives a kill of Redis.
func (c *chaos) appendsNothing() {
	c.t.Helper()
	const refused = `exchange_requests_turned_away_total{reason="stalled"}`
	c.refuses()
	end, before := c.journalEnd(), metrics(c.t, c.s)[refused]
	exchangetest.Eventually(c.t, "commands are turned away",
		func() bool { return metrics(c.t, c.s)[refused] >= before+5 })
	if now := c.journalEnd(); now != end {
		c.t.Errorf("a Redis that keeps records in memory alone took those from %s to %s", end, now)
	}
	c.redis.EndRewrites()
	(&load{c: c, done: make(chan struct{})}).accepts(10)
	c.killRedis()
}

// journalEnd is the last sequence of the journal in Redis.
func (c *chaos) journalEnd() string {
	c.t.Helper()
	end, err := c.redis.Client().HGet(c.t.Context(), "{main}:m", "seq").Result()
	if err != nil {
		c.t.Fatal(err)
	}
	return end
}
