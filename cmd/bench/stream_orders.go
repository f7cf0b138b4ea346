package main

import (
	"context"
	"fmt"
	"time"
)

// Listened is an exchange whose orders are watched.
type listened struct {
	streamed
	server
	alone, watched       *row
	aloneCPU, watchedCPU *row // nil: they are not measured
	// audience has the subscribers, once the server has its accounts
	audience func(*server) wish
}

func newListened(o options) *listened {
	l := &listened{streamed: streamed{options: o},
		server: server{options: o, settings: manyFromHere}}
	l.alone = &row{subject: "stream: orders without subscribers", unit: "requests/s",
		group: groupStream}
	l.watched = &row{subject: "stream: orders with 960 subscribers", unit: "requests/s",
		group: groupStream, yardstick: l.alone, aim: aim{leastRatio: 0.7}}
	l.title = "orders with subscribers"
	l.audience = func(*server) wish { return audienceOf960 }
	return l
}

// audienceOf960 has subscribers of all kinds of public channels.
var audienceOf960 = wish{Groups: []audience{{900, []string{"ticker", "orderbook.20"}},
	{20, []string{"diff." + tradedPair}}, {20, []string{"trades." + tradedPair}},
	{20, []string{"book_" + tradedPair}}}}

// ownAccounts is how many accounts have a subscriber of own each.
const ownAccounts = 1000

// newOwned has a subscriber for each account, which receives the events of the account.
func newOwned(o options) *listened {
	l := &listened{streamed: streamed{options: o},
		server: server{title: "orders with subscribers of own", options: o,
			settings: manyFromHere, accounts: ownAccounts}}
	of := "orders of " + show(ownAccounts) + " accounts"
	row := func(subject, unit string, yardstick *row, a aim) *row {
		return &row{subject: "stream: " + subject, unit: unit, group: groupStream,
			yardstick: yardstick, aim: a}
	}
	l.alone = row(of, "requests/s", nil, aim{})
	l.watched = row(of+", each with a subscriber of own", "requests/s", l.alone, aim{})
	l.aloneCPU = row("CPU of "+of, "us/request", nil, aim{})
	l.watchedCPU = row("CPU of "+of+", each with a subscriber of own", "us/request", l.aloneCPU,
		aim{mostRatio: 1.25})
	l.audience = func(s *server) (w wish) {
		for _, c := range s.clients.conns {
			for _, u := range c.users {
				w.Owners = append(w.Owners, listener{u.key, u.text})
			}
		}
		return w
	}
	return l
}

func (l *listened) name() string { return l.title }

func (l *listened) rows() []*row {
	if l.aloneCPU == nil {
		return []*row{l.alone, l.watched}
	}
	return []*row{l.alone, l.watched, l.aloneCPU, l.watchedCPU}
}

func (l *listened) begin(_ context.Context, dir string) error {
	if err := l.startSubscribers(); err != nil {
		return err
	}
	if err := startExchange(&l.server, dir, nil); err != nil {
		return err
	}
	_, err := l.clients.run(l.server.options.length)
	return err
}

func (l *listened) end() {
	l.server.end()
	l.streamed.end()
}

// measure counts the orders without subscribers before and after those with them, so a change
// meanwhile changes both.
func (l *listened) measure(context.Context) error {
	whole := l.server.options.length
	before, cpuBefore, err := l.load(whole / 2)
	if err != nil {
		return err
	}
	w := l.audience(&l.server)
	w.Address = l.address
	if err := l.open(w); err != nil {
		return err
	}
	watched, cpuWatched, err := l.load(whole)
	if err != nil {
		return err
	}
	var s seen
	if err := l.subscribers.ask(wish{Do: "await"}, &s); err != nil {
		return err
	}
	if s.Closed > 0 {
		return fmt.Errorf("%d subscribers were disconnected under the load", s.Closed)
	}
	if err := l.close(); err != nil {
		return err
	}
	after, cpuAfter, err := l.load(whole / 2)
	if err != nil {
		return err
	}
	alone := result{requests: before.requests + after.requests, took: before.took + after.took}
	l.alone.values = append(l.alone.values, alone.rate())
	l.watched.values = append(l.watched.values, watched.rate())
	if l.aloneCPU == nil {
		return nil
	}
	each := func(cpu time.Duration, requests int) float64 {
		return cpu.Seconds() * 1e6 / float64(requests)
	}
	l.aloneCPU.values = append(l.aloneCPU.values, each(cpuBefore+cpuAfter, alone.requests))
	l.watchedCPU.values = append(l.watchedCPU.values, each(cpuWatched, watched.requests))
	return nil
}

// load returns the CPU of the exchange, too.
func (l *listened) load(length time.Duration) (r result, cpu time.Duration, err error) {
	before, err := cpuOf(l.pids)
	if err != nil {
		return r, 0, err
	}
	if r, err = l.clients.run(length); err != nil {
		return r, 0, err
	}
	after, err := cpuOf(l.pids)
	return r, after - before, err
}
