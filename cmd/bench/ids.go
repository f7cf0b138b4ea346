package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Orders with client order ids, beside the same orders without. Both are signed when they are sent,
// because each id is new, and both run in turns on one exchange.
type ids struct {
	server
	rates, cpus [2]*row // without ids, with ids
}

func newIDs(o options, store string, start func(*server, string) error) *ids {
	s := &ids{server: server{title: "client order ids, " + store, options: o, start: start}}
	for i, with := range []string{"without", "with"} {
		s.rates[i] = &row{subject: fmt.Sprintf("%s: orders %s client order ids", store, with),
			unit: "requests/s", group: groupRate}
		s.cpus[i] = &row{subject: fmt.Sprintf("CPU: %s, orders %s client order ids", store, with),
			unit: "us/request", group: groupCPU}
	}
	s.rates[1].yardstick, s.rates[1].aim = s.rates[0], aim{leastRatio: 0.95}
	s.cpus[1].yardstick = s.cpus[0]
	return s
}

func (s *ids) rows() []*row {
	return []*row{s.rates[0], s.rates[1], s.cpus[0], s.cpus[1]}
}

func (s *ids) begin(_ context.Context, dir string) error {
	if err := s.start(&s.server, dir); err != nil {
		return err
	}
	for _, c := range s.clients.conns {
		c.signing = true
	}
	_, err := s.clients.run(s.options.length)
	return err
}

// measure runs half of the orders without ids before those with ids, and half behind them, so that
// a change meanwhile changes both.
func (s *ids) measure(context.Context) error {
	var requests [2]int
	var took, used [2]time.Duration
	for _, with := range []int{0, 1, 1, 0} {
		for _, c := range s.clients.conns {
			c.naming = with == 1
		}
		before, err := cpuOf(s.pids)
		if err != nil {
			return err
		}
		r, err := s.clients.run(s.options.length / 2)
		if err != nil {
			return err
		}
		after, err := cpuOf(s.pids)
		if err != nil {
			return err
		}
		requests[with] += r.requests
		took[with] += r.took
		used[with] += after - before
	}
	for i, n := range requests {
		s.rates[i].values = append(s.rates[i].values, float64(n)/took[i].Seconds())
		s.cpus[i].values = append(s.cpus[i].values, used[i].Seconds()*1e6/float64(n))
	}
	return nil
}

// sign makes an order that is signed now, with an id of its own if the connection names orders.
func (c *connection) sign(u *user) []byte {
	form := u.forms[u.next%len(u.forms)]
	text := form[0]
	if c.naming {
		text += "&client_order_id=" + clientOrderID(u.key, c.nonce)
	}
	b := u.order(text + form[1])
	putNonce(b[u.nonceAt:], c.nonce)
	return b
}

// clientOrderID returns an id of 36 characters, as clients make them, which the user has not used.
func clientOrderID(key string, nonce uint64) string {
	n := strconv.FormatUint(nonce*0x9e3779b97f4a7c15, 16)
	n = "0000000000000000"[len(n):] + n
	return n[:8] + "-" + n[8:12] + "-" + n[12:] + "-0000-" + (key + "000000000000")[:12]
}
