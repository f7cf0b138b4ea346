package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"exchange/loadtest/generator"
)

// waitingStops is the default of limits.stops_per_book.
const waitingStops = 100_000

// stopsEach is the default of limits.stops_per_account, and fewer.
const stopsEach = 100

// newStops measures the mix beside stops of others that no price reaches.
func newStops(o options, yardstick *server) *server {
	return newServer("Pebble, "+show(waitingStops)+" waiting stops", o,
		func(s *server, dir string) error {
			if err := startExchange(s, dir, nil); err != nil {
				return err
			}
			owners, err := s.more("owner", waitingStops/stopsEach, 1)
			if err != nil {
				return err
			}
			defer owners.Close()
			return owners.all(waitingStops, func(i int) string {
				if i%2 == 0 {
					return fmt.Sprintf("amount=0.001&pair="+tradedPair+
						"&price=1000&trigger_price=%d.%02d&type=sell", 10_000+i/100, i%100)
				}
				return fmt.Sprintf("amount=0.001&pair="+tradedPair+
					"&price=100000&trigger_price=%d.%02d&type=buy", 90_000+i/100, i%100)
			})
		}, yardstick, 0.95)
}

// all places n orders, numbered from 0, each on one of the connections. The mix leaves them.
func (cl *clients) all(n int, form func(i int) string) error {
	next := 0
	const most = 5 * time.Minute
	r, err := cl.phase(generator.Phase{Length: most}, func(conn int) []byte {
		if next == n {
			return nil
		}
		c := cl.conns[conn]
		c.nonce++
		b := c.user.stamp(c.user.order(form(next)), c.nonce)
		next++
		return b
	})
	for _, c := range cl.conns {
		c.user.open = nil
	}
	if err == nil && (r.requests != n || r.refused > 0) {
		err = fmt.Errorf("of %d orders %d were sent and %d refused", n, r.requests, r.refused)
	}
	return err
}

// A cascade is a chain of stops, each of which is triggered by the trade of the one before. Others
// place and cancel orders meanwhile, on the same pair and on another.
type cascade struct {
	server
	owners *clients // keys of one account, which has the stops and the orders that they take
	others [2]*clients
	took   *row
	waits  [2]*row // the longest of the others
}

const (
	cascadeStops = 10_000
	cascadeTop   = 50_000_00 // the first trigger, in ticks of 0.01; each other one is a tick lower
)

func newCascade(o options) *cascade {
	c := &cascade{server: server{title: "cascade", options: o, pairs: 1,
		settings: "limits: {stops_per_account: 1000000}\n"}}
	what := "cascade of " + show(cascadeStops) + " stops"
	c.took = &row{subject: what, unit: "ms", group: groupOpen}
	for i, where := range []string{"the same pair", "another pair"} {
		c.waits[i] = &row{subject: "longest wait of others beside a " + what + ": " + where,
			unit: "ms", group: groupOpen}
	}
	return c
}

func (c *cascade) rows() []*row { return []*row{c.took, c.waits[0], c.waits[1]} }

// begin makes all clients; the exchange's own are not needed.
func (c *cascade) begin(_ context.Context, dir string) error {
	if err := startExchange(&c.server, dir, nil); err != nil {
		return err
	}
	var errs [3]error
	c.others[1], errs[0] = c.more("elsewhere", othersConnections, 1)
	c.pairs = 0 // those that follow trade the pair of all
	c.others[0], errs[1] = c.more("near", othersConnections, 1)
	c.owners, errs[2] = c.more("owner", othersConnections, othersConnections)
	for i, others := range c.others {
		if others == nil {
			continue
		}
		pair := []string{tradedPair, "SYN0001_USDT"}[i]
		for _, conn := range others.conns {
			far := conn.user.order("amount=0.01&pair=" + pair + "&price=1000&type=buy")
			conn.other = func(u *user, nonce uint64) []byte {
				if u.turn%2 == 0 && len(u.open) > 0 {
					return u.cancel(nonce)
				}
				return u.stamp(far, nonce)
			}
		}
	}
	return errors.Join(errs[:]...)
}

// measure builds a staircase of buys with a stop that sells on each step, and takes the first step.
func (c *cascade) measure(context.Context) error {
	order := func(side string, tick, stop int) string {
		text := "amount=0.001&pair=" + tradedPair + "&price=" + ticks(tick) + "&type=" + side
		if stop != 0 {
			text += "&trigger_price=" + ticks(stop)
		}
		return text
	}
	// the last price is above all triggers, as that of the round before is not
	err := errors.Join(c.owners.place(0, order("buy", cascadeTop+1, 0)),
		c.owners.place(0, order("sell", cascadeTop+1, 0)),
		c.owners.all(cascadeStops+1, func(i int) string {
			return order("buy", cascadeTop-i, 0)
		}),
		c.owners.all(cascadeStops, func(i int) string {
			return order("sell", cascadeTop-cascadeStops, cascadeTop-i)
		}))
	if err != nil {
		return err
	}
	before, err := scrape(&c.server)
	if err != nil {
		return err
	}
	var over atomic.Bool
	latencies, done := [2]*hdrhistogram.Histogram{newLatencies(), newLatencies()},
		make(chan error, len(c.others))
	for i, others := range c.others {
		go func() { done <- others.until(&over, latencies[i]) }()
	}
	begin := time.Now()
	err = errors.Join(c.owners.place(0, order("sell", cascadeTop, 0)),
		await("the end of a cascade", func() bool {
			now, err := scrape(&c.server)
			return err == nil && now[metricTriggered]-before[metricTriggered] == cascadeStops
		}))
	took := time.Since(begin)
	over.Store(true)
	if err := errors.Join(err, <-done, <-done); err != nil {
		return err
	}
	c.took.values = append(c.took.values, float64(took.Microseconds())/1000)
	for i, l := range latencies {
		c.waits[i].values = append(c.waits[i].values, milliseconds(l.Max()))
	}
	return nil
}

// until sends requests in an open loop until its end; each is granted.
func (cl *clients) until(over *atomic.Bool, latencies *hdrhistogram.Histogram) error {
	const part = 100 * time.Millisecond
	for !over.Load() {
		r, err := cl.runOpen(othersRate, part, latencies)
		if err == nil && r.refused > 0 {
			err = fmt.Errorf("%d of %d requests of others were refused", r.refused, r.requests)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ticks is a price of this many ticks of 0.01.
func ticks(n int) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }
