package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An entering is orders that clients send to a node that follows, at a fixed rate, beside the same
// at an exchange of one machine: what is left of their work for the node that leads.
type entering struct {
	options              options
	alone                *server
	nodes                *cluster
	entry                int // place of the node that clients send to
	single, leads, takes *row
}

const (
	enteringRate        = 4_000 // requests a second
	enteringConnections = 512
)

func newEntering(o options) *entering {
	o.connections = enteringConnections
	e := &entering{options: o}
	rowOf := func(subject string) *row {
		return &row{subject: fmt.Sprintf("CPU at %s/s: %s", show(enteringRate), subject),
			unit: "us/request", group: groupCPU}
	}
	e.single, e.leads = rowOf("Pebble"), rowOf("node that leads, all load at another")
	e.takes = rowOf("node that takes the load")
	e.leads.yardstick, e.takes.yardstick, e.leads.aim.mostRatio = e.single, e.single, 0.6
	e.alone = &server{title: "Pebble", options: o}
	e.nodes = &cluster{server: server{title: "three nodes", options: o}}
	return e
}

func (e *entering) name() string { return "load at a node that follows" }

func (e *entering) rows() []*row { return []*row{e.single, e.leads, e.takes} }

func (e *entering) begin(_ context.Context, dir string) error {
	if err := startExchange(e.alone, dir, nil); err != nil {
		return err
	}
	if err := e.nodes.launch(dir); err != nil {
		return err
	}
	e.entry = (e.nodes.leads + 1) % len(e.nodes.nodes)
	users, err := makeAccounts(e.nodes.operator, e.options.connections, e.nodes.base)
	if err != nil {
		return err
	}
	e.nodes.clients, err = dial(e.nodes.nodes[e.entry].address, e.options.connections, users,
		func(i int) string { return e.nodes.base(i) + "_USDT" })
	for _, c := range []*clients{e.alone.clients, e.nodes.clients} {
		if err == nil {
			_, err = c.run(e.options.length)
		}
	}
	return err
}

func (e *entering) end() {
	e.alone.end()
	e.nodes.end()
}

// measure loads the one and the other for half of the time, twice, in turns.
func (e *entering) measure(context.Context) error {
	leads, takes := e.nodes.nodes[e.nodes.leads], e.nodes.nodes[e.entry]
	var alone, lead, took perRequest
	for range 2 {
		if err := e.load(e.alone.clients, map[*perRequest][]int{&alone: e.alone.pids}); err != nil {
			return err
		}
		if err := e.load(e.nodes.clients, map[*perRequest][]int{
			&lead: {leads.cmd.Process.Pid}, &took: {takes.cmd.Process.Pid}}); err != nil {
			return err
		}
	}
	if !e.nodes.complete(e.nodes.leads) {
		return errors.New("another node leads now")
	}
	e.single.values = append(e.single.values, alone.us())
	e.leads.values = append(e.leads.values, lead.us())
	e.takes.values = append(e.takes.values, took.us())
	return nil
}

// perRequest is the CPU of processes while requests were answered.
type perRequest struct {
	cpu      time.Duration
	requests int
}

func (p *perRequest) us() float64 { return p.cpu.Seconds() * 1e6 / float64(p.requests) }

// load has the clients send, and adds what it takes of each list of processes.
func (e *entering) load(clients *clients, processes map[*perRequest][]int) error {
	for p, pids := range processes {
		before, err := cpuOf(pids)
		if err != nil {
			return err
		}
		p.cpu -= before
	}
	r, err := clients.runOpen(enteringRate, e.options.openLength/2, newLatencies())
	if err != nil {
		return err
	}
	if 100*r.away > r.requests { // then it is not the CPU of orders
		return fmt.Errorf("%d of %d requests were turned away", r.away, r.requests)
	}
	for p, pids := range processes {
		after, err := cpuOf(pids)
		if err != nil {
			return err
		}
		p.cpu += after
		p.requests += r.requests
	}
	return nil
}
